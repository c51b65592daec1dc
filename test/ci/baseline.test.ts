/** Baselines: what an earlier report acknowledges, and what it cannot. */

import { describe, expect, it } from 'vitest';
import {
  NorthrootError,
  parseTrustPolicy,
  runVerification,
  verifyLedger,
  type Report,
  type VerificationResult,
  type VerifyOptions,
} from '../../src/api/index.js';
import { BaselineMatch, type BaselineOutcome } from '../../src/out/ci/baseline.js';
import { decideExitStatus, parseBaseline, type FailOn } from '../../src/api/export.js';
import { buildReport } from '../../src/rules/report/report.js';
import { toChunkSource } from '../../src/rules/report/verify-chunks.js';
import { checkReport } from '../../src/format/schema/check.js';
import { fixture } from './reports.js';

const bytesOf = (report: Report): Uint8Array => new TextEncoder().encode(JSON.stringify(report));

interface Held extends BaselineOutcome {
  readonly result: VerificationResult;
  readonly status: (failOn?: FailOn) => number;
}

/** Verifies with a baseline. */
async function hold(
  ledger: Uint8Array,
  baseline: Report,
  maxFindings = 1_000,
  options: VerifyOptions = {},
): Promise<Held> {
  const match = new BaselineMatch(parseBaseline(bytesOf(baseline)));
  const { acknowledge } = match;
  const result = await runVerification(toChunkSource(ledger, '-'), { ...options, maxFindings, acknowledge });
  const outcome = match.finish(buildReport(result), result, maxFindings);
  expect(checkReport(outcome.report)).toEqual([]);
  const status = (failOn: FailOn = 'violation'): number =>
    decideExitStatus(outcome.report, result.warnings, failOn, outcome.fresh);
  return { ...outcome, result, status };
}

const broken = fixture('broken/prev-mismatch-two-dropped-lines.jsonl');
const folded = fixture('broken/auth-not-found-folded.jsonl');
const noise = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a baseline', () => {
  it('acknowledges all that it lists, and leaves the verdict', async () => {
    for (const ledger of [broken, folded, noise('a\nb\nb\n')]) {
      const before = await verifyLedger(ledger);
      const { report, known, status } = await hold(ledger, before);
      expect(report).toMatchObject({
        verdict: 'invalid',
        exit_status: 1,
        findings: [],
        findings_total: before.findings_total,
        baseline: { known: before.findings_total, new: 0, gone: 0, unlisted: 0 },
      });
      expect([known.length, status()]).toEqual([before.findings_total, 0]);
    }
  });

  it('lists what is new, however much is known, and counts what is gone', async () => {
    const before = await verifyLedger(noise('gone\na\nb\nc\n'), { maxFindings: 100 });
    const { report, status } = await hold(noise('a\nb\nc\nnew\n'), before, 1);
    expect(report.baseline).toEqual({ known: before.findings_total - 1, new: 1, gone: 1, unlisted: 0 });
    expect(report.findings).toMatchObject([{ code: 'NOT_JSON', at: { line: 4 } }]);
    expect(status()).toBe(1);
  });

  it('acknowledges a finding as often as it lists it', async () => {
    const { report } = await hold(noise('a\na\na\n'), await verifyLedger(noise('a\na\n')));
    expect(report.baseline).toMatchObject({ new: 1, gone: 0 });
  });

  it('cannot acknowledge what it does not list, and says so', async () => {
    const before = await verifyLedger(noise('a\nb\nc\n'), { maxFindings: 1 });
    const { report, status } = await hold(noise('a\nb\nc\n'), before);
    const unlisted = before.findings_total - 1;
    expect(report.baseline).toEqual({ known: 1, new: unlisted, gone: 0, unlisted });
    expect(status()).toBe(1);
  });

  it('does not acknowledge a record that was changed once more', async () => {
    const change = (from: string, to: string, ledger: Uint8Array): Uint8Array =>
      Buffer.from(Buffer.from(ledger).toString('latin1').replace(from, to), 'latin1');
    const once = change('"tool_name":"fs.read"', '"tool_name":"fs.reed"', folded);
    const twice = change('"tool_name":"fs.reed"', '"tool_name":"fs.raid"', once);
    expect(once).not.toEqual(folded);
    const { report, status } = await hold(twice, await verifyLedger(once));
    expect(report.findings.map(({ code }) => code)).toContain('EVENT_ID_MISMATCH');
    expect(status()).toBe(1);
  });

  it('acknowledges as many findings under one as folded under it then', async () => {
    const lines = Buffer.from(folded).toString().trimEnd().split('\n');
    const shorter = Buffer.from(`${lines.slice(0, -1).join('\n')}\n`);
    const { report, grown, status } = await hold(folded, await verifyLedger(shorter));
    expect([report.baseline, grown.length, status()]).toEqual([
      { known: 0, new: 1, gone: 0, unlisted: 0 },
      1,
      1,
    ]);
    expect(report.findings).toMatchObject([{ code: 'AUTH_NOT_FOUND', folded: 2 }]);
    const back = await hold(shorter, await verifyLedger(folded));
    expect([back.report.baseline, back.status()]).toEqual([{ known: 1, new: 0, gone: 0, unlisted: 0 }, 0]);
  });

  it('acknowledges no error by a warning, and a warning by an error', async () => {
    const run = fixture('ledgers/agent-run.jsonl');
    const [strict, lenient] = ['other-key', 'other-key-optional'].map((name) => ({
      trust: parseTrustPolicy(fixture(`trust/${name}.json`)),
    }));
    const warned = await hold(run, await verifyLedger(run, lenient), 1_000, strict);
    expect([warned.report.findings[0]?.code, warned.report.baseline?.known, warned.status()]).toEqual([
      'KEY_UNKNOWN',
      0,
      1,
    ]);
    const mended = await hold(run, await verifyLedger(run, strict), 1_000, lenient);
    expect([mended.report.baseline?.new, mended.status('warning')]).toEqual([0, 0]);
  });

  it('does not acknowledge an error of more records than it lists', async () => {
    const all = fixture('broken/tail-unsealed.jsonl');
    const limits = { trust: parseTrustPolicy(fixture('trust/max-unsealed.json')) };
    const before = await verifyLedger(all, limits);
    const [finding] = before.findings;
    expect([finding?.code, finding?.severity]).toEqual(['TAIL_UNSEALED', 'error']);
    const fewer = { ...before, findings: [{ ...finding, actual: '1' }] };
    expect((await hold(all, before, 1_000, limits)).status()).toBe(0);
    expect((await hold(all, fewer, 1_000, limits)).status()).toBe(1);
    // Where it is no error, it grows with each record.
    const [info] = (await verifyLedger(all)).findings;
    expect(info?.severity).toBe('info');
    const told = { ...before, findings: [{ ...info, actual: '1' }] };
    expect((await hold(all, told)).report.baseline).toMatchObject({ known: 1, new: 0 });
    expect((await hold(all, told, 1_000, limits)).status()).toBe(1);
  });

  it('acknowledges a cut of the records that are left, and not of others in their place', async () => {
    const lines = Buffer.from(fixture('ledgers/agent-run.jsonl')).toString().split('\n').slice(0, 5);
    const cut = Buffer.from(`${lines.join('\n')}\n`);
    // Nothing covers the meta of the last record.
    const other = Buffer.from(cut.toString().replace(/("meta":\{"\w+":")(?=[^\n]*\n$)/, '$1x'));
    expect(other).not.toEqual(cut);
    const root = Buffer.alloc(32).toString('base64');
    const note = Buffer.from(`example.com/agents/report\n9\n${root}\n\n\u2014 x AAAAAAAA\n`);
    const held = { checkpoints: [{ name: 'held', note }] };
    const before = await verifyLedger(cut, held);
    expect(before.findings.map(({ code }) => code)).toEqual(['TRUNCATED']);
    expect((await hold(cut, before, 1_000, held)).status()).toBe(0);
    const replaced = await hold(other, before, 1_000, held);
    expect(replaced.report.findings.map(({ code }) => code)).toEqual(['TRUNCATED']);
    expect([replaced.report.baseline, replaced.status()]).toMatchObject([{ known: 0, new: 1 }, 1]);
  });

  it('acknowledges nothing in a ledger of another origin', async () => {
    const before = await verifyLedger(folded);
    const other = { ...before, ledger: { ...before.ledger, origin: 'example.com/other' } };
    const { report, isOfOther, status } = await hold(folded, other);
    expect([isOfOther, report.baseline, status()]).toMatchObject([true, { known: 0, new: 1 }, 1]);
  });

  it('decides nothing about a ledger that is well, or empty', async () => {
    const before = await verifyLedger(folded);
    const good = await hold(fixture('ledgers/agent-run.jsonl'), before);
    expect([good.report.verdict, good.report.baseline?.gone, good.status()]).toEqual(['ok', 1, 0]);
    expect((await hold(new Uint8Array(), before)).status()).toBe(2);
  });

  it.each(['', '{', '[]', '{"report_version":"1"}', '{"__proto__":{"findings":[]}}'])(
    'is refused when it is not a report: %s',
    (text) => {
      expect(() => parseBaseline(noise(text))).toThrow(NorthrootError);
    },
  );

  it('is refused when it lists no findings, as the end of NDJSON does', async () => {
    const report = { ...(await verifyLedger(folded)), findings: undefined };
    expect(() => parseBaseline(bytesOf(report as unknown as Report))).toThrow(
      expect.objectContaining({ code: 'BASELINE_MALFORMED' }) as Error,
    );
  });
});

describe('decideExitStatus', () => {
  const base = { verdict: 'violation', exit_status: 3, not_checked: [] } as unknown as Report;
  it.each<[Partial<Report>, number, FailOn, number]>([
    [{}, 0, 'violation', 3],
    [{}, 0, 'invalid', 0],
    [{ verdict: 'ok', exit_status: 0 }, 1, 'violation', 0],
    [{ verdict: 'ok', exit_status: 0 }, 1, 'warning', 3],
    [{ verdict: 'ok', exit_status: 0 }, 0, 'warning', 0],
    [{ verdict: 'undecided', exit_status: 2 }, 0, 'invalid', 2],
    [{ verdict: 'invalid', exit_status: 1 }, 0, 'invalid', 1],
  ])(
    'without a baseline is the verdict and the line that is drawn: %j',
    (report, warnings, failOn, status) => {
      expect(decideExitStatus({ ...base, ...report }, warnings, failOn)).toBe(status);
    },
  );

  it.each<[object, FailOn, number]>([
    [{ invalid: 1 }, 'invalid', 1],
    [{ violation: 1 }, 'violation', 3],
    [{ violation: 1 }, 'invalid', 0],
    [{ warning: 1 }, 'violation', 0],
    [{ warning: 1 }, 'warning', 3],
    [{}, 'warning', 0],
  ])('with a baseline is decided by what is new: %j, fail on %s', (fresh, failOn, status) => {
    const baseline = { known: 5, new: 1, gone: 0, unlisted: 0 };
    const none = { invalid: 0, violation: 0, warning: 0 };
    expect(decideExitStatus({ ...base, baseline }, 9, failOn, { ...none, ...fresh })).toBe(status);
  });
});
