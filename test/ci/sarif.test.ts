/** SARIF 2.1.0: valid by the official schema, within the host's limits, the same finding under the same fingerprint. */

import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { Ajv, type ValidateFunction } from 'ajv';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  CODE_PAGES,
  parseTrustPolicy,
  runVerification,
  verifyLedger,
  type ByteSink,
  type FindingJson,
  type Report,
} from '../../src/api/index.js';
import { fingerprintFinding } from '../../src/out/ci/fingerprint.js';
import { MAX_SARIF_RESULTS, MAX_SARIF_RUNS } from '../../src/out/ci/sarif.js';
import { writeSarif, type SarifOptions } from '../../src/api/export.js';
import { FindingSpool } from '../../src/out/ci/finding-spool.js';
import { writeRuns } from '../../src/out/ci/sarif.js';
import { Spool } from '../../src/log/fs/spool.js';
import { toChunkSource } from '../../src/rules/report/verify-chunks.js';
import { buildReport } from '../../src/rules/report/report.js';
import { HOSTILE_STRINGS } from '../hostile-strings.js';
import { cutReport, fixture, reportOf, reportOn, reportWith, UNSAFE } from './reports.js';

const SCHEMA = new URL(
  '../../../shared/vectors/sarif-schema/sarif-2.1/schema/sarif-schema-2.1.0.json',
  import.meta.url,
).pathname;

interface Result {
  readonly ruleId: string;
  readonly ruleIndex: number;
  readonly level: string;
  readonly message: { readonly text: string };
  readonly locations: readonly [
    {
      readonly physicalLocation: {
        readonly artifactLocation: { readonly uri: string };
        readonly region: { readonly startLine: number };
      };
    },
  ];
  readonly relatedLocations?: readonly {
    readonly physicalLocation: { readonly region: { readonly startLine: number } };
  }[];
  readonly partialFingerprints: Readonly<Record<string, string>>;
  readonly baselineState?: string;
  readonly properties: { readonly folded?: number };
}

interface Run {
  readonly tool: {
    readonly driver: {
      readonly informationUri: string;
      readonly rules: readonly { readonly id: string; readonly name: string; readonly help: object }[];
    };
  };
  readonly automationDetails: { readonly id: string };
  readonly results: readonly Result[];
  readonly invocations: readonly [
    {
      readonly executionSuccessful: boolean;
      readonly exitCode: number;
      readonly toolExecutionNotifications: readonly {
        readonly descriptor: { readonly id: string };
        readonly level: string;
        readonly message: { readonly text: string };
      }[];
    },
  ];
}

/** Keeps what is written. */
class TextSink implements ByteSink {
  text = '';

  write(piece: Uint8Array | string): undefined {
    this.text += String(piece);
  }
}

async function sarifText(report: Report, options?: SarifOptions): Promise<string> {
  const sink = new TextSink();
  await writeSarif(sink, report, options);
  return sink.text;
}

async function runsOf(report: Report, options?: SarifOptions): Promise<readonly Run[]> {
  return (JSON.parse(await sarifText(report, options)) as { runs: readonly Run[] }).runs;
}

async function runOf(report: Report, options?: SarifOptions): Promise<Run> {
  const [run] = await runsOf(report, options);
  if (run === undefined) throw new Error('no run');
  return run;
}

const invalid = await reportOn('broken/auth-not-found-folded.jsonl');

it('names each rule by a name that is not its id, and the driver by where it is described', async () => {
  const { driver } = (await runOf(invalid)).tool;
  expect(new URL(driver.informationUri).protocol).toBe('https:');
  const names = driver.rules.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const { id, name } of driver.rules) {
    expect(name).toMatch(/^[A-Z][A-Za-z0-9]+$/);
    expect(name.toLowerCase()).not.toBe(id.toLowerCase());
  }
});

describe.skipIf(!existsSync(SCHEMA))('writeSarif, by the official schema', () => {
  let validate: ValidateFunction;

  // Not in the body, which runs where the tests in it are skipped, too.
  beforeAll(() => {
    // Draft 4, of which it uses what later drafts have too, but for the name of its own id.
    const schema = JSON.parse(readFileSync(SCHEMA, 'utf8')) as Record<string, unknown>;
    delete schema['$schema'];
    delete schema['id'];
    const ajv = new Ajv({ strict: false, allErrors: true });
    ajv.addFormat('uri', /^[a-z][a-z0-9+.-]*:[!-~]*$/i);
    ajv.addFormat('uri-reference', /^[\w\-.~:/?#[\]@!$&'()*+,;=%]*$/);
    ajv.addFormat('date-time', true);
    validate = ajv.compile(schema);
  });

  async function expectValid(report: Report, options?: SarifOptions): Promise<void> {
    expect(validate(JSON.parse(await sarifText(report, options))) ? [] : validate.errors).toEqual([]);
  }

  it('is valid for ledgers that are well, broken, and empty', async () => {
    await expectValid(await reportOn('ledgers/agent-run.jsonl'));
    await expectValid(invalid, { anchor: 'README.md', exitStatus: 1 });
    await expectValid(await verifyLedger(new Uint8Array()));
    await expectValid(
      { ...invalid, baseline: { known: 1, new: 1, gone: 0, unlisted: 3 } },
      { known: invalid.findings },
    );
  });

  it('is valid whatever stands in it', async () => {
    for (const text of HOSTILE_STRINGS) await expectValid(reportOf(text), { anchor: text });
  });
});

describe('writeSarif', () => {
  it('declares every rule with its help', async () => {
    const { rules } = (await runOf(invalid)).tool.driver;
    expect(rules.map(({ id }) => id)).toEqual(Object.keys(CODE_PAGES));
    const [result] = (await runOf(invalid)).results;
    expect(rules[result?.ruleIndex ?? -1]?.id).toBe(result?.ruleId);
  });

  it('tells of what was not checked, so that a run that could not look does not look clean', async () => {
    const good = await reportOn('ledgers/agent-run.jsonl');
    const [{ executionSuccessful, exitCode, toolExecutionNotifications: told }] = (await runOf(good))
      .invocations;
    expect([executionSuccessful, exitCode]).toEqual([true, 0]);
    expect(told.map(({ descriptor, level }) => `${level} ${descriptor.id}`)).toEqual(
      good.not_checked.map(({ code }) => `warning ${code}`),
    );
    const [empty] = (await runOf(await verifyLedger(new Uint8Array()))).invocations;
    expect([empty.executionSuccessful, empty.exitCode]).toEqual([false, 2]);
  });

  it('points to the anchor, and names the place in the ledger beside it', async () => {
    const [result] = (await runOf(invalid, { anchor: './ci/pipe line.yml' })).results;
    const { physicalLocation } = result?.locations[0] ?? {};
    expect(physicalLocation).toMatchObject({
      artifactLocation: { uri: 'ci/pipe%20line.yml' },
      region: { startLine: 1 },
    });
    expect(result?.relatedLocations?.[0]?.physicalLocation.region.startLine).toBe(3);
    expect(result?.message.text).toContain(':3)');
  });

  it('says in the message whose act a finding is about', async () => {
    const report = await reportOn('broken/meter-cap-exceeded.jsonl');
    const { principal_id: principal = '-', tool_name: tool = '-', amounts = '-' } = report.findings[0] ?? {};
    const [result] = (await runOf(report)).results;
    for (const each of [principal, tool, amounts]) expect(result?.message.text).toContain(each);
  });

  it('points to no line behind the last one', async () => {
    const [result] = (await runOf(await cutReport())).results;
    expect([result?.ruleId, result?.locations[0]?.physicalLocation.region]).toEqual([
      'TRUNCATED',
      { startLine: 5 },
    ]);
  });

  it('leaves no placeholder and no link in a message, and no control anywhere', async () => {
    for (const text of HOSTILE_STRINGS) {
      const sarif = await sarifText(reportOf(text));
      expect(sarif).not.toMatch(UNSAFE);
      const [run] = (JSON.parse(sarif) as { runs: [Run] }).runs;
      for (const { message } of [...run.results, ...run.invocations[0].toolExecutionNotifications]) {
        expect(message.text.replaceAll('{{', '').replaceAll('}}', '')).not.toMatch(/[{}]/);
        expect(message.text).not.toMatch(/(?<!\\)\[[^\]]*(?<!\\)\]\(/);
      }
    }
  });

  it('keeps within the runs and results that hosts take, each run of a category of its own, and counts the rest', async () => {
    expect([MAX_SARIF_RUNS, MAX_SARIF_RESULTS]).toEqual([20, 25_000]);
    const sink = new TextSink();
    await writeRuns(sink, reportWith(50, 37), {}, { runs: 3, results: 10, compressed: Infinity });
    const { runs } = JSON.parse(sink.text) as { runs: readonly Run[] };
    expect(runs.map(({ results }) => results.length)).toEqual([10, 10, 10]);
    expect(new Set(runs.map(({ automationDetails }) => automationDetails.id)).size).toBe(3);
    const told = runs.map(
      ({ invocations: [{ toolExecutionNotifications: list }] }) =>
        list.find(({ descriptor }) => descriptor.id === 'FINDINGS_OMITTED')?.message.text.split(' ')[0],
    );
    expect(told).toEqual([undefined, undefined, '20']);
  });

  it('is never larger, compressed, than hosts take, and counts the rest', async () => {
    const limit = 500_000;
    const ending = { runs: 20, results: 1_000, compressed: limit };
    for (const message of [() => 'alike', () => randomBytes(300).toString('base64')]) {
      const report = reportWith(5_000, 5_000);
      const findings = report.findings.map((finding) => ({
        ...finding,
        line_digest: `sha-256:${randomBytes(32).toString('base64url')}`,
        message: message(),
      }));
      const sink = new TextSink();
      await writeRuns(sink, { ...report, findings }, {}, ending);
      expect(gzipSync(sink.text).length).toBeLessThanOrEqual(limit);
      const { runs } = JSON.parse(sink.text) as { runs: readonly Run[] };
      const written = runs.reduce((sum, { results }) => sum + results.length, 0);
      expect(written).toBeGreaterThan(100);
      const told = runs
        .at(-1)
        ?.invocations[0].toolExecutionNotifications.find(
          ({ descriptor }) => descriptor.id === 'FINDINGS_OMITTED',
        );
      expect(told?.message.text.split(' ')[0]).toBe((5_000 - written).toLocaleString('en'));
    }
  });

  it('gives two findings that are alike two alerts', async () => {
    const { results } = await runOf({
      ...invalid,
      findings: [...invalid.findings, ...invalid.findings],
      findings_total: 2,
    });
    const prints = results.map(({ partialFingerprints: of }) => of['primaryLocationLineHash']);
    expect([prints.length, new Set(prints).size]).toEqual([2, 2]);
    expect(prints[0]).toBe((await runOf(invalid)).results[0]?.partialFingerprints['primaryLocationLineHash']);
  });

  it('counts what the report does not list', async () => {
    const [{ toolExecutionNotifications: told }] = (await runOf(reportWith(5_000, 10))).invocations;
    expect(told.find(({ descriptor }) => descriptor.id === 'FINDINGS_OMITTED')?.message.text).toContain(
      '4,990',
    );
  });
});

describe('fingerprintFinding', () => {
  const [finding] = invalid.findings as [FindingJson];
  const print = fingerprintFinding(finding);

  it('is of what the finding is, not of where it stands or what it is called', () => {
    const moved = { ...finding, seq: 99, message: 'other words', folded: 7, expected: 'other words' };
    expect(fingerprintFinding({ ...moved, at: { ...finding.at, file: 'b', line: 9, byte_offset: 1 } })).toBe(
      print,
    );
  });

  it.each([
    ['code', { code: 'GRANT_NOT_FOUND' }],
    ['event', { event_id: `sha-256:${'A'.repeat(43)}` }],
    ['line, where it has faults of its own', { line_digest: `sha-256:${'A'.repeat(43)}` }],
    ['pointer', { at: { ...finding.at, pointer: '/event' } }],
  ])('is another for another %s', (_name, change) => {
    expect(fingerprintFinding({ ...finding, ...change })).not.toBe(print);
  });

  it('is the same at another time, and by a checkpoint of another name', async () => {
    const ledger = fixture('broken/checkpoint-missing-max-age.jsonl');
    const trust = parseTrustPolicy(fixture('trust/checkpoint-max-age.json'));
    const notes = ['forged', 'of-4'].map((name) => fixture(`anchors/${name}.checkpoint`));
    const prints = async (now: string, folder: string): Promise<string[]> => {
      const checkpoints = notes.map((note, index) => ({ name: `${folder}/${index} says`, note }));
      const { findings } = await verifyLedger(ledger, { trust, now, checkpoints });
      return findings.map((each) => `${each.code} ${fingerprintFinding(each)}`);
    };
    const once = await prints('2026-02-01T00:00:00Z', '/tmp/1');
    expect(once.join()).toContain('CHECKPOINT_MISSING');
    expect(once.join()).toMatch(/FORKED|TRUNCATED/);
    expect(await prints('2026-03-01T00:00:00Z', 'b')).toEqual(once);
    // Where the checkpoint is held, and is no record.
    const old = (now: string): string =>
      fingerprintFinding({
        ...finding,
        code: 'CHECKPOINT_MISSING',
        event_id: null,
        expected: `a checkpoint made within 60 seconds of ${now}`,
      });
    expect(old('2026-03-01T00:00:00Z')).toBe(old('2026-04-01T00:00:00Z'));
  });

  it('tells apart what one checkpoint lacks', () => {
    const of = (expected: string): string =>
      fingerprintFinding({ ...finding, code: 'CHECKPOINT_MISSING', expected, actual: 'none' });
    expect(of('a signature by 2 of 3 keys')).not.toBe(of('a checkpoint made within 60 seconds of now'));
  });

  it('knows a line that cannot be read by its bytes, wherever it stands', async () => {
    const prints = async (text: string): Promise<string[]> =>
      (await verifyLedger(new TextEncoder().encode(text))).findings
        .filter(({ code }) => code === 'NOT_JSON')
        .map(fingerprintFinding);
    const [x, y] = await prints('x\ny\n');
    expect(x).not.toBe(y);
    expect(await prints('y\nx\n')).toEqual([y, x]);
  });
});

describe('FindingSpool', () => {
  it('gives findings worst first, each with what folded under it, as the report lists them', async () => {
    for (const name of ['auth-not-found-folded', 'ledger-unbound-folded', 'genesis-missing-cut-head']) {
      const store = new Spool();
      const spool = new FindingSpool(store, 1_000);
      const source = toChunkSource(fixture(`broken/${name}.jsonl`), '-');
      const result = await runVerification(source, { onFinding: spool.add });
      const given: FindingJson[] = [];
      for await (const finding of spool.worstFirst(result)) given.push(finding);
      expect(given).toEqual(buildReport(result).findings);
      store.close();
    }
  });

  it('keeps no more than its limit, and the worst', async () => {
    const store = new Spool();
    const spool = new FindingSpool(store, 3);
    const source = toChunkSource(new TextEncoder().encode('x\n'.repeat(50)), '-');
    const result = await runVerification(source, { onFinding: spool.add });
    let given = 0;
    for await (const finding of spool.worstFirst(result)) given += finding.code === 'NOT_JSON' ? 1 : 0;
    expect(given).toBe(3);
    store.close();
  });
});
