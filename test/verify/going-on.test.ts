/**
 * Going on with a saved verification, for one ledger with everything in it that verification remembers: the report of one
 * pass wherever it was saved, in a file or a folder, once or again and again; damage that is noticed; states at a point.
 */

import { createHash } from 'node:crypto';
import { serialize } from 'node:v8';
import { describe, expect, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import type { AnyEvent } from '../../src/format/event/build.js';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource, Segment } from '../../src/rules/source/ledger-source.js';
import { findBalance, listGrants, listOpenAuthorizations } from '../../src/rules/report/accounts.js';
import { buildReport, type Report } from '../../src/rules/report/report.js';
import { meters } from '../../src/base/value/meter.js';
import { formatQuantity } from '../../src/base/value/quantity.js';
import { VERSION } from '../../src/base/version.js';
import { type Point, replayTo } from '../../src/log/read/read-records.js';
import { runVerification, type VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import type { SavedVerification } from '../../src/rules/verify/verified-prefix.js';
import { DIGEST, bare, event, genesis, keyOf, ledger, makeSigner, note } from '../docs/ledger-kit.js';
import { emptyState, feed, grantEvent, int } from '../policy/bare-events.js';
import { samplePositions, times } from '../slow.js';
import { inChunks, ledgerOf, linesOf, rememberingBackend } from './support.js';

const backend = rememberingBackend();

const signer = makeSigner();
const stranger = makeSigner('p256');
const intents = { intent_digest: DIGEST };
const decided = {
  intents,
  policy_id: 'test/1',
  policy_digest: DIGEST,
  decision: 'allow',
  decision_code: 'ALLOW',
};
const NOON = '2026-03-01T12:00:00Z';

const at = (minute: number): string => `2026-03-01T12:${String(minute).padStart(2, '0')}:00Z`;

function grant(n: number, bounds: object, members: object = {}, parent?: AnyEvent): AnyEvent {
  const meter_caps = meters({ usd: 10, calls: 8 });
  return event('authorization', {
    ...decided,
    occurred_at: NOON,
    policy_id: `test/${n}`,
    authorization: {
      kind: 'grant',
      bounds: { allowed_tools: ['fs.*'], meter_caps, ...bounds },
      ...(parent === undefined ? {} : { grant_event_id: parent.event_id }),
    },
    ...members,
  });
}

function action(n: number, under: AnyEvent | undefined, members: object = {}): AnyEvent {
  return event('authorization', {
    ...decided,
    occurred_at: NOON,
    policy_id: `test/${n}`,
    authorization: {
      kind: 'action',
      ...(under === undefined ? {} : { grant_event_id: under.event_id }),
      action: {
        tool_name: 'fs.read',
        tool_params_digest: DIGEST,
        meter_reservation: meters({ usd: '0.5', calls: 1 }),
      },
    },
    ...members,
  });
}

function execution(
  authorization: Pick<AnyEvent, 'event_id'>,
  minute: number,
  members: object = {},
): AnyEvent {
  return event('execution', {
    intents,
    occurred_at: at(minute),
    started_at: at(minute),
    ended_at: at(minute + 5),
    auth_event_id: authorization.event_id,
    tool_name: 'fs.read',
    meter_used: meters({ usd: '0.25', calls: 1 }),
    outcome: 'success',
    ...members,
  });
}

/** Every kind of thing that verification remembers, and of every kind of it something that is wrong. */
function makeLedger(): Buffer {
  const root = grant(1, {
    rate_limits: meters({ 'usd.per_hour': 2, 'calls.per_min': 3 }),
    concurrency_limit: int(3),
  });
  const narrow = {
    meter_caps: meters({ usd: 3, calls: 4 }),
    rate_limits: meters({ 'usd.per_hour': 1, 'calls.per_min': 1 }),
    concurrency_limit: int(1),
  };
  const child = grant(2, narrow, {}, root);
  const greedy = grant(3, { meter_caps: meters({ usd: 11, calls: 8 }) }, {}, root);
  const deniedGrant = grant(4, {}, { decision: 'deny' });
  const underDenied = grant(5, {}, {}, deniedGrant);
  const expired = grant(12, { expires_at: NOON }, {}, root);
  const used = action(7, root);
  const alone = action(8, undefined);
  const denied = action(9, root, { decision: 'deny' });
  const late = action(10, root);
  const never = { event_id: { alg: 'sha-256', b64: `${'N'.repeat(42)}A` } } as const;
  const unknown = (n: number): AnyEvent => event('mystery', { n });
  const lossy = grant(11, {
    meter_caps: [{ unit: 'usd', amount: { t: 'f64', bits: '3fb999999999999a' } }],
  });
  const all = [
    root,
    child,
    greedy,
    deniedGrant,
    underDenied,
    action(6, child),
    used,
    alone,
    denied,
    lossy,
    ...[0, 1, 2, 3, 4].map((n) => execution(root, 3 * n, { tool_params_digest: DIGEST })),
    execution(child, 20),
    execution(child, 21, { started_at: at(22), ended_at: at(40) }),
    execution(used, 30),
    execution(used, 31),
    execution(used, 32),
    execution(denied, 33),
    execution(denied, 34, { outcome: 'failure', error_code: 'BLOCKED', meter_used: [] }),
    // Named before it comes, and named though it never comes: once and again.
    execution(late, 35),
    execution(late, 36),
    execution(never, 37),
    execution(never, 38),
    unknown(1),
    unknown(2),
    late,
    unknown(3),
    execution(greedy, 10, { meter_used: meters({ usd: 12, tok: 1 }) }),
    execution(lossy, 11, { started_at: at(1) }),
    execution(alone, 12, { outcome: 'failure', error_code: 'ABANDONED', meter_used: [] }),
    execution(used, 13, { started_at: '2026-03-01T11:00:00Z' }),
    note('a', { prev_event_id: never.event_id }),
    note('b'),
    note('b'),
    expired,
    execution(expired, 50),
    action(13, child),
    execution(root, 51, { started_at: '2026-03-01T11:00:00Z' }),
  ];
  const signed = (each: AnyEvent, n: number) => ({
    event: each,
    signers: n % 7 === 3 ? [stranger, signer] : n % 7 === 5 ? [] : [signer],
  });
  return ledger(
    { event: genesis([keyOf(signer)]), signers: [signer] },
    ...all.slice(0, 20).map(signed),
    'no record',
    `"${'x'.repeat(70_000)}"`,
    ...all.slice(20).map(signed),
    { event: note('gap'), signers: [signer], seq: 99 },
    { event: note('end'), signers: [signer] },
  );
}

const LEDGER = makeLedger();
const LINES = linesOf(LEDGER);

/** The lines as segments of so many lines each, of which the first `count` lines are there. */
function folder(lines: readonly Uint8Array[], size: number, count = lines.length): LedgerSource {
  const segments: Segment[] = [];
  for (let first = 0; first < count; first += size) {
    const bytes = ledgerOf(lines.slice(first, Math.min(first + size, count)));
    const file = `folder/${String(first).padStart(20, '0')}.jsonl`;
    segments.push({ file, firstSeq: first, chunks: inChunks(bytes, 1_000) });
  }
  return { paths: ['folder'], size: undefined, segments: oneByOne(segments) };
}

async function* oneByOne<T>(items: readonly T[]): AsyncGenerator<T, void, void> {
  for (const item of items) yield await Promise.resolve(item);
}

function file(lines: readonly Uint8Array[]): LedgerSource {
  return bytesSource(ledgerOf(lines), '-');
}

interface Verified {
  readonly report: Report;
  /** The findings as they came. */
  readonly stream: readonly string[];
  readonly saved: Uint8Array;
}

async function verify(source: LedgerSource, options: VerifyOptions = {}): Promise<Verified> {
  const stream: string[] = [];
  const result = await runVerification(source, {
    backend,
    ...options,
    onFinding: ({ code, at: place }) => stream.push(`${place.file}:${place.line} ${code}`),
  });
  const saved = saveVerification({ state: result.state, findings: result.kept });
  return { report: buildReport(result), stream, saved };
}

function restore(saved: Uint8Array): SavedVerification {
  return restoreVerification(saved, backend);
}

async function codeOf(attempt: Promise<unknown>): Promise<string> {
  const error = await attempt.then(
    () => expect.fail('expected a refusal'),
    (reason: unknown) => reason,
  );
  if (error instanceof NorthrootError) return error.code;
  throw error;
}

describe('a resumed verification', () => {
  test('is of a ledger with everything in it', async () => {
    const { report } = await verify(file(LINES));
    const codes = new Set(report.findings.map(({ code }) => code));
    for (const code of [
      ...['NOT_JSON', 'LINE_TOO_LONG', 'SEQ_GAP', 'PREV_EVENT_NOT_FOUND', 'EVENT_DUPLICATE'],
      ...['SIGNATURE_MISSING', 'KEY_UNKNOWN', 'AUTH_NOT_FOUND', 'AUTH_AFTER_EXECUTION', 'GRANT_DENIED'],
      ...['DELEGATION_EXCEEDED', 'RATE_LIMIT_EXCEEDED', 'CONCURRENCY_EXCEEDED', 'METER_CAP_EXCEEDED'],
      ...['AUTHORIZATION_REUSED', 'EXECUTION_UNDER_DENY', 'METER_UNCAPPED', 'QUANTITY_LOSSY'],
      ...['TIME_REGRESSION', 'EVENT_TYPE_UNKNOWN', 'GRANT_EXPIRED', 'EXECUTION_BEFORE_AUTHORIZATION'],
    ])
      expect(codes).toContain(code);
    const folded = report.findings.filter((finding) => finding.folded !== undefined);
    expect(new Set(folded.map(({ code }) => code))).toEqual(
      new Set([
        ...['AUTH_NOT_FOUND', 'AUTH_AFTER_EXECUTION', 'AUTHORIZATION_REUSED', 'EVENT_TYPE_UNKNOWN'],
        ...['TIME_REGRESSION', 'KEY_UNKNOWN'],
      ]),
    );
    expect(report.open_authorizations.length).toBeGreaterThan(1);
    expect(LINES.length).toBeGreaterThan(40);
  });

  test.each<[string, (count?: number) => LedgerSource]>([
    ['a file', (count) => file(LINES.slice(0, count))],
    ['a folder', (count) => folder(LINES, 7, count)],
    ['a folder of single lines', (count) => folder(LINES, 1, count)],
  ])('gives the report of one pass, wherever it was saved: %s', async (what, open) => {
    const whole = await verify(open());
    // Every place in a file; in a folder, which is read in the same way, some.
    const count = what === 'a file' ? times(LINES.length + 1, LINES.length + 1) : times(8, LINES.length + 1);
    for (const cut of samplePositions(LINES.length + 1, count)) {
      const { saved } = await verify(open(cut));
      const rest = await verify(open(), { from: restore(saved) });
      expect(rest.report, `saved after ${cut} lines`).toEqual(whole.report);
      expect(rest.stream, `saved after ${cut} lines`).toEqual(whole.stream);
    }
  });

  test('may be saved again and again', async () => {
    for (const step of [1, 3, 10]) {
      let { report, saved } = await verify(folder(LINES, 7, 0));
      for (let cut = step; cut < LINES.length + step; cut += step) {
        const count = Math.min(cut, LINES.length);
        ({ report, saved } = await verify(folder(LINES, 7, count), { from: restore(saved) }));
        if (step > 1) expect(report).toEqual((await verify(folder(LINES, 7, count))).report);
      }
      expect(report).toEqual((await verify(folder(LINES, 7))).report);
    }
  });

  test('may be resumed where nothing was added', async () => {
    const { report, saved } = await verify(file(LINES));
    expect((await verify(file(LINES), { from: restore(saved) })).report).toEqual(report);
  });

  test('does not depend on how many findings were shown before', async () => {
    const whole = await verify(file(LINES));
    for (const maxFindings of [0, 1, 5]) {
      const first = await verify(file(LINES.slice(0, 30)), { maxFindings, show: () => false });
      const rest = await verify(file(LINES), { from: restore(first.saved) });
      expect(rest.report).toEqual(whole.report);
      const few = await verify(file(LINES), { from: restore(first.saved), maxFindings });
      expect(few.report.findings).toEqual(whole.report.findings.slice(0, maxFindings));
      expect(few.report.findings_total).toBe(whole.report.findings_total);
    }
  });

  test('keeps of many findings the first of each rank, in their order', async () => {
    const { event_id } = note('none');
    const lines = Array.from({ length: 1_200 }, (_, n) =>
      n % 2 === 0
        ? note(n, { prev_event_id: event_id, occurred_at: NOON })
        : note(n, { occurred_at: n === 1 ? at(1) : NOON }),
    );
    const bytes = bare(...lines, ...lines);
    const result = await runVerification(bytesSource(bytes, '-'), { maxFindings: 3 });
    const { kept, state, findings } = result;
    expect(findings).toHaveLength(3);
    expect(state.findings).toBeGreaterThan(kept.length);
    expect(kept.filter(({ class: kind }) => kind === 'invalid')).toHaveLength(1_000);
    expect(kept.map(({ at: { line } }) => line)).toEqual(
      kept.map(({ at: { line } }) => line).sort((a, b) => a - b),
    );
  });

  test('takes a chain of 6,000 grants', () => {
    const state = emptyState();
    let grantId: string | undefined;
    const bounds = { allowed_tools: ['*'], meter_caps: [{ unit: 'usd', amount: int(1) }] };
    for (let n = 0; n < 6_000; n += 1) {
      ({ id: grantId } = feed(state, grantEvent({ principal: `agent:a${n}`, at: NOON, grantId, bounds })));
    }
    const { state: again } = restore(saveVerification({ state, findings: [] }));
    const last = [...again.links.grants.values()].at(-1);
    expect([last?.place.eventId, last?.depth]).toEqual([grantId, 6_000]);
    expect(last?.parent).toBe([...again.links.grants.values()].at(-2));
  });
});

describe('a ledger that is not the one verified then', () => {
  const CUT = 30;
  const resume = async (lines: readonly Uint8Array[]): Promise<Verified> => {
    const { saved } = await verify(file(LINES.slice(0, CUT)));
    return verify(file(lines), { from: restore(saved) });
  };

  test('is refused with a byte changed in any line', async () => {
    for (let n = 0; n < CUT; n += 1) {
      const changed = Buffer.from(LINES[n]);
      changed[changed.length >> 1] ^= 1;
      expect(await codeOf(resume(LINES.with(n, changed)))).toBe('STATE_MISMATCH');
    }
  });

  test.each<[string, readonly Uint8Array[]]>([
    ['cut off before its end then', LINES.slice(0, CUT - 1)],
    ['empty', []],
    ['without a line', LINES.toSpliced(4, 1)],
    ['with a line more', LINES.toSpliced(4, 0, LINES[4])],
    ['in another order', [LINES[1], LINES[0], ...LINES.slice(2)]],
    ['another one', LINES.slice(1)],
  ])('is refused when it is %s', async (_what, lines) => {
    expect(await codeOf(resume(lines))).toBe('STATE_MISMATCH');
  });

  test('may be different after what was verified', async () => {
    const lines = [...LINES.slice(0, CUT), Buffer.from('no record')];
    const { report } = await verify(file(lines));
    expect((await resume(lines)).report).toEqual(report);
  });

  test('is refused when its torn end was mended', async () => {
    const torn = Buffer.concat([ledgerOf(LINES.slice(0, CUT)), Buffer.from('{"event"')]);
    const { saved, report } = await verify(bytesSource(torn, '-'));
    expect(report.findings.map(({ code }) => code)).toContain('LINE_TORN');
    const same = await verify(bytesSource(torn, '-'), { from: restore(saved) });
    expect(same.report).toEqual(report);
    for (const lines of [LINES, LINES.slice(0, CUT)]) {
      expect(await codeOf(verify(file(lines), { from: restore(saved) }))).toBe('STATE_MISMATCH');
    }
  });
});

describe('bytes that are no saved state', () => {
  const refusalOf = (bytes: Uint8Array): string => {
    try {
      restore(bytes);
    } catch (error) {
      if (error instanceof NorthrootError) return error.code;
      throw error;
    }
    return 'none';
  };

  test('are refused, whatever they are', async () => {
    const { saved } = await verify(file(LINES));
    expect(refusalOf(saved)).toBe('none');
    for (const bytes of [new Uint8Array(0), Buffer.alloc(5_000), LEDGER, saved.subarray(1)]) {
      expect(refusalOf(bytes)).toBe('STATE_INVALID');
    }
    for (let length = 0; length < saved.length; length += Math.ceil(saved.length / 200)) {
      expect(refusalOf(saved.subarray(0, length))).toBe('STATE_INVALID');
    }
    expect(refusalOf(Buffer.concat([saved, Buffer.from([0])]))).toBe('STATE_INVALID');
  });

  test('are refused with any bit changed', async () => {
    const { saved } = await verify(file(LINES.slice(0, 3)));
    for (let index = 0; index < saved.length; index += 1) {
      const changed = Uint8Array.from(saved);
      changed[index] ^= 1 << (index % 8);
      // A changed version is another version.
      expect(refusalOf(changed)).toMatch(/^STATE_(?:INVALID|OUTDATED)$/);
    }
  });

  test('are refused when another version saved them', async () => {
    const { saved } = await verify(file(LINES));
    const text = Buffer.from(saved).toString('latin1');
    expect(text.startsWith(`northroot-state ${VERSION} sha-256:`)).toBe(true);
    expect(refusalOf(Buffer.from(text.replace(` ${VERSION} `, ' 0.0.9 '), 'latin1'))).toBe('STATE_OUTDATED');
  });

  test('are refused when another build of the same version saved them in another form', () => {
    const body = serialize({ head: {}, kept: [] });
    const digest = createHash('sha256').update(body).digest('base64url');
    const header = Buffer.from(`northroot-state ${VERSION} sha-256:${digest}\n`);
    expect(refusalOf(Buffer.concat([header, body]))).toBe('STATE_OUTDATED');
  });

  test('are refused when they are whole but something else', () => {
    const body = Buffer.from('a structured clone this is not');
    const digest = createHash('sha256').update(body).digest('base64url');
    const header = Buffer.from(`northroot-state ${VERSION} sha-256:${digest}\n`);
    expect(refusalOf(Buffer.concat([header, body]))).toBe('STATE_INVALID');
  });
});

describe('replayTo', () => {
  /** What the accounts say at a point. */
  const accountsAt = async (point: Point, source = file(LINES)): Promise<unknown> => {
    const state = await replayTo(source, point);
    const { records, lines, countsByVerdict, countsByType } = state;
    const grants = listGrants(state);
    return { records, lines, countsByVerdict, countsByType, grants, open: listOpenAuthorizations(state) };
  };
  /** The same of the first lines, to their end. */
  const accountsOf = (count: number): Promise<unknown> => accountsAt('end', file(LINES.slice(0, count)));

  test('stops after the record of a number', async () => {
    for (const seq of [0, 1, 5, 19, 20, 21, 22, 23, 24, 40]) {
      expect(await accountsAt({ seq }), `seq ${seq}`).toEqual(await accountsOf(seq + 1));
      expect(await accountsAt({ seq }, folder(LINES, 5)), `seq ${seq}`).toEqual(await accountsOf(seq + 1));
    }
  });

  test('counts bare events by their places', async () => {
    const events = bare(...[1, 2, 3].map((n) => grant(n, {})));
    for (const seq of [0, 1, 2]) {
      expect(listGrants(await replayTo(bytesSource(events, '-'), { seq }))).toHaveLength(seq + 1);
    }
    expect(await codeOf(replayTo(bytesSource(events, '-'), { seq: 3 }))).toBe('RECORD_NOT_FOUND');
  });

  test('refuses a number that no record has', async () => {
    expect(await codeOf(accountsAt({ seq: 98 }))).toBe('RECORD_NOT_FOUND');
    expect(await codeOf(accountsAt({ seq: 0 }, file([])))).toBe('RECORD_NOT_FOUND');
    // It is there, though it should not be.
    expect(await accountsAt({ seq: 99 })).toEqual(await accountsOf(LINES.length - 1));
  });

  test('stops before the first record that occurred after a time', async () => {
    const root = grant(1, {});
    const bytes = ledger(
      { event: genesis() },
      { event: root },
      { event: execution(root, 10) },
      { event: execution(root, 20, { occurred_at: '2026-03-01T12:20:00.000000001Z' }) },
      // Later in the ledger, though earlier by its clock.
      { event: execution(root, 15) },
    );
    const usedAt = async (time: string): Promise<string | undefined> => {
      const state = await replayTo(bytesSource(bytes, '-'), { time });
      const balance = findBalance(state, `sha-256:${root.event_id.b64}`, 'usd');
      return balance && formatQuantity(balance.used);
    };
    const times = [
      ...['2025-01-01T00:00:00Z', NOON, '2026-03-01T12:09:59.999999999Z', at(10), at(20)],
      ...['2026-03-01T12:20:00.000000001Z', at(59)],
    ];
    const used = [undefined, '0', '0', '0.25', '0.25', '0.75', '0.75'];
    expect(await Promise.all(times.map(usedAt))).toEqual(used);
  });

  test('sees the torn end of a ledger', async () => {
    const torn = Buffer.concat([ledgerOf(LINES.slice(0, 3)), Buffer.from('{"event"')]);
    expect((await replayTo(bytesSource(torn, '-'), 'end')).hasInvalid).toBe(true);
    expect((await replayTo(bytesSource(torn, '-'), { seq: 2 })).hasInvalid).toBe(false);
  });

  test('ends when it is aborted', async () => {
    const reason = new Error('enough');
    const attempt = replayTo(file(LINES), 'end', undefined, AbortSignal.abort(reason));
    await expect(attempt).rejects.toBe(reason);
  });
});
