/** A ledger against what other systems recorded: what agrees, what is on one side only, what contradicts, and what cannot be told. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  Ledger,
  type ReconcileCall,
  type ReconcileExpectation,
  type ReconcileReport,
} from '../../src/api/index.js';
import { eventsOfClaims } from '../../src/hosts/shared/claims.js';
import { parseExpectation } from '../../src/hosts/shared/expectation.js';
import type { Host } from '../../src/hosts/shared/host.js';
import type { LedgerEntry } from '../../src/hosts/shared/ledger-calls.js';
import { readSource, recogniseHost } from '../../src/hosts/shared/reconcile-sources.js';
import {
  RECONCILE_STATEMENT,
  reconcileLedger,
  type ReconcileLedgerOptions,
  Reconciler,
} from '../../src/hosts/shared/reconcile.js';
import { renderReconciliation, renderReconciliationMarkdown } from '../../src/out/text/reconcile-text.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { inTime } from '../in-time.js';
import { validatorOf } from '../schema/ajv.js';
import { plainFile, plainHost } from './plain-host.js';

const T = 1_767_225_600_000;
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

type CallLine = Readonly<Record<string, unknown>>;

/** A call that was allowed and went well. */
function line(id: string, rest: CallLine = {}): CallLine {
  return { id, ms: T, allow: true, tool: 'fetch', params: { id }, ran: 'success', usd: 0.25, ...rest };
}

/** Bare events as the plain host's files are imported. */
function ledgerOf(...lines: readonly CallLine[]): Buffer {
  const { claims } = plainHost.read([plainFile(...lines)]);
  const { events } = eventsOfClaims(claims, { system: 'plain' });
  return Buffer.from(events.map(({ event }) => `${canonicalText(event as never)}\n`).join(''));
}

/** Another system that names calls by the same ids. */
const other: Host = { ...plainHost, name: 'other' };

async function reconcile(
  ledger: Buffer | string,
  lines: readonly CallLine[],
  options: ReconcileLedgerOptions = {},
  host = other,
): Promise<ReconcileReport> {
  const report = await reconcileLedger(ledger, [readSource(host, [plainFile(...lines)])], options);
  expect(validatorOf('reconcile-report')(report)).toBe(true);
  const { total, ...states } = report.calls;
  expect(Object.values(states).reduce((sum, n) => sum + n, 0)).toBe(total);
  expect(report.statement).toBe(RECONCILE_STATEMENT);
  expect(report.not_checked[0]?.code).toBe('SOURCES_ONLY');
  return report;
}

function codesOf({ findings }: ReconcileReport): string[] {
  return findings.map(({ code }) => code);
}

function statesOf({ calls }: ReconcileReport): object {
  return Object.fromEntries(Object.entries(calls).filter(([name, n]) => n > 0 && name !== 'total'));
}

describe('a call that both have', () => {
  it('is corroborated where they agree', async () => {
    const report = await reconcile(ledgerOf(line('1'), line('2', { allow: false, ran: undefined })), [
      line('1', { allow: undefined }),
      line('2', { allow: false, ran: undefined, usd: undefined }),
    ]);
    expect(statesOf(report)).toEqual({ corroborated: 2 });
    expect(report).toMatchObject({ verdict: 'ok', exit_status: 0, findings: [] });
    expect(report.agreed).toEqual({ tool: 2, params: 2, decision: 1, execution: 1, outcome: 1, meters: 1 });
    expect(report.listed[0]).toMatchObject({
      call_ids: ['1', 'decision:1', 'run:1'],
      ledger: [{ seq: 0 }, { seq: 1 }],
      sources: [{ source: 'other', by: 'id', at: [{ file: 'plain.jsonl', line: 1 }], same_file: false }],
    });
  });

  it('is not corroborated by the file that the record was made from', async () => {
    const lines = [line('1'), line('2')];
    const report = await reconcile(ledgerOf(...lines), lines, {}, plainHost);
    expect(statesOf(report)).toEqual({ same_file: 2 });
    expect(codesOf(report)).toEqual(['SAME_FILE']);
    expect(report.exit_status).toBe(0);
    // The same system's own other file is another witness.
    const changed = await reconcile(ledgerOf(...lines), [{ ...line('1'), note: 'x' }], {}, plainHost);
    expect(statesOf(changed)).toEqual({ corroborated: 1, ledger_only: 1 });
  });

  it.each([
    ['TOOL_DIFFERS', { tool: 'shell' }, 'invalid', 'fetch', 'shell'],
    ['PARAMS_DIFFER', { params: { id: 'x' } }, 'invalid', undefined, undefined],
    ['OUTCOME_DIFFERS', { ran: 'failure' }, 'invalid', 'success', 'failure'],
    ['METERS_DIFFER', { usd: 0.26 }, 'invalid', '0.25 usd', '0.26 usd'],
    ['DECISION_DIFFERS', { allow: false }, 'invalid', 'allow', 'deny'],
    ['RAN_THOUGH_DENIED', { allow: false, ran: undefined }, 'violation', undefined, undefined],
  ] as const)('is contradicted: %s', async (code, rest, of, expected, actual) => {
    const report = await reconcile(ledgerOf(line('1'), line('2')), [line('1', rest), line('2')]);
    expect(statesOf(report)).toEqual({ contradicted: 1, corroborated: 1 });
    expect(report.findings.slice(0, 1)).toMatchObject([
      {
        code,
        class: of,
        severity: 'error',
        source: 'other',
        at: { line: 1 },
        ledger: [{ seq: 0 }, { seq: 1 }],
      },
    ]);
    if (expected !== undefined) expect(report.findings[0]).toMatchObject({ expected, actual });
    expect(report.exit_status).toBe(of === 'invalid' ? 1 : 3);
  });

  it.each([
    ['llm.chat', 'llm.openai/gpt-x', true],
    ['llm.azure/gpt-x', 'llm.azure.ai.openai/gpt-x', true],
    ['llm.bedrock/anthropic/claude-x', 'llm.aws.bedrock/claude-x', true],
    ['llm.openai/gpt-x-2026-08-06', 'llm.openai/gpt-x', true],
    ['llm.openai/gpt-x', 'llm.openai/gpt-x-mini', false],
    ['llm.anthropic/claude-large', 'llm.anthropic/claude-small', false],
    ['chat', 'llm.openai/gpt-x', false],
  ])('of a model is contradicted by another model, and not by another name: %s, %s', async (own, its, is) => {
    const report = await reconcile(ledgerOf(line('1', { tool: own })), [line('1', { tool: its })]);
    expect(statesOf(report)).toEqual(is ? { corroborated: 1 } : { contradicted: 1 });
    expect(codesOf(report)).toEqual(is ? [] : ['TOOL_DIFFERS']);
    expect(report.agreed.tool).toBe(0);
  });

  it('is a violation where a source executed what the ledger denied', async () => {
    const report = await reconcile(ledgerOf(line('1', { allow: false, ran: undefined })), [
      line('1', { allow: undefined }),
    ]);
    expect(codesOf(report)).toEqual(['RAN_THOUGH_DENIED']);
    expect([report.verdict, report.exit_status]).toEqual(['violation', 3]);
  });

  it('does not take an outcome that one side does not know for another one', async () => {
    const report = await reconcile(ledgerOf(line('1')), [line('1', { ran: 'unknown' })]);
    expect(statesOf(report)).toEqual({ corroborated: 1 });
    expect(report.agreed).toMatchObject({ execution: 1, outcome: 0 });
  });

  it('is not corroborated as executed by a source that only shows the decision', async () => {
    const report = await reconcile(ledgerOf(line('1')), [line('1', { ran: undefined })]);
    expect(statesOf(report)).toEqual({ ledger_only: 1 });
    expect(report.exit_status).toBe(2);
  });

  it('is not corroborated where its record is invalid', async () => {
    const report = await reconcile(ledgerOf(line('1', { allow: undefined })), [line('1')]);
    expect(statesOf(report)).toEqual({ invalid: 1 });
    expect(codesOf(report)).toEqual(['LEDGER_RECORD_INVALID', 'LEDGER_INVALID']);
    expect(report.exit_status).toBe(1);
  });
});

describe('a call on one side', () => {
  it('in the ledger only is a warning', async () => {
    const report = await reconcile(ledgerOf(line('1'), line('2')), [line('1')]);
    expect(statesOf(report)).toEqual({ corroborated: 1, ledger_only: 1 });
    expect(report.findings).toMatchObject([{ code: 'NOT_IN_SOURCES', severity: 'warning', class: 'none' }]);
    expect(report.exit_status).toBe(0);
  });

  it.each([
    ['nothing of it in the ledger', [line('1')]],
    ['only its decision in the ledger', [line('1'), line('2', { ran: undefined })]],
  ])('executed in a source is missing: %s', async (_what, lines) => {
    const sources = [line('1'), line('2')];
    const report = await reconcile(ledgerOf(...lines), sources);
    expect(statesOf(report)).toEqual({ corroborated: 1, source_only: 1 });
    expect(report.findings).toMatchObject([
      { code: 'EXECUTION_NOT_IN_LEDGER', class: 'invalid', at: { line: 2 } },
    ]);
    expect(report.exit_status).toBe(1);
    const allowed = await reconcile(ledgerOf(...lines), sources, { allowsMissing: true });
    expect(allowed.findings).toMatchObject([
      { code: 'EXECUTION_NOT_IN_LEDGER', severity: 'warning', class: 'none' },
    ]);
    expect(allowed.exit_status).toBe(0);
  });

  it('denied in a source is a warning', async () => {
    const report = await reconcile(ledgerOf(line('1')), [
      line('1'),
      line('2', { allow: false, ran: undefined }),
    ]);
    expect(codesOf(report)).toEqual(['DECISION_NOT_IN_LEDGER']);
    expect(report.exit_status).toBe(0);
  });

  it('is undecided where nothing can be compared', async () => {
    expect((await reconcile(ledgerOf(line('1')), [])).exit_status).toBe(2);
    expect((await reconcile(Buffer.of(), [])).exit_status).toBe(2);
    expect((await reconcile(Buffer.of(), [line('1')])).exit_status).toBe(1);
  });
});

describe('calls of one id', () => {
  it('are told apart by their content', async () => {
    const twice = [line('x', { params: 1 }), line('x', { params: 2, ms: T + 1, ran: 'failure' })];
    const { claims } = plainHost.read([plainFile(...twice)]);
    const unique = claims.map((claim, index) => ({ ...claim, id: index < 2 ? claim.id : `${claim.id}/x` }));
    const renamed = unique.map((claim) =>
      claim.kind === 'execution' && claim.id.endsWith('/x')
        ? { ...claim, authorization: 'decision:x/x' }
        : claim,
    );
    const { events } = eventsOfClaims(renamed, { system: 'plain' });
    const ledger = Buffer.from(events.map(({ event }) => `${canonicalText(event as never)}\n`).join(''));
    const report = await reconcile(ledger, twice);
    expect(statesOf(report)).toEqual({ corroborated: 2 });
  });

  it('are ambiguous where they are alike', async () => {
    const report = await reconcile(ledgerOf(line('x'), line('2')), [line('x'), line('x'), line('2')]);
    expect(statesOf(report)).toEqual({ corroborated: 1, ambiguous: 3 });
    expect(new Set(codesOf(report))).toEqual(new Set(['CALL_AMBIGUOUS']));
    expect(report.exit_status).toBe(0);
  });

  it('of which none is like the call are ambiguous', async () => {
    const report = await reconcile(ledgerOf(line('x')), [line('x', { params: 1 }), line('x', { params: 2 })]);
    expect(report.calls).toMatchObject({ ambiguous: 3, contradicted: 0 });
    expect(report.exit_status).toBe(2);
  });

  it('that are one call in two places are one', async () => {
    const report = await reconcile(ledgerOf(line('x')), [
      line('x', { ran: undefined, usd: undefined }),
      line('x', { allow: undefined }),
    ]);
    expect(statesOf(report)).toEqual({ corroborated: 1 });
    expect(report.listed[0]?.sources[0]?.at).toHaveLength(2);
  });

  it('are not guessed among very many', async () => {
    const many = Array.from({ length: 100 }, () => line('x'));
    const report = await reconcile(ledgerOf(line('x')), many);
    expect(report.calls).toMatchObject({ ambiguous: 1, corroborated: 0 });
  });
});

describe('calls without an id in common', () => {
  const source = (id: string, rest: CallLine = {}): CallLine => line(id, { params: 'same', ...rest });

  it('are found by tool and parameters within the window', async () => {
    const ledger = ledgerOf(source('1'));
    const near = await reconcile(ledger, [source('z', { ms: T + 300_000 })]);
    expect(statesOf(near)).toEqual({ corroborated: 1 });
    expect(near.listed[0]?.sources[0]?.by).toBe('content');
    expect(near.not_checked.map(({ code }) => code)).toContain('FOUND_BY_CONTENT');
    const far = await reconcile(ledger, [source('z', { ms: T + 300_001 })]);
    expect(statesOf(far)).toEqual({ ledger_only: 1, source_only: 1 });
    const wide = await reconcile(ledger, [source('z', { ms: T + 300_001 })], { windowSeconds: 301 });
    expect(statesOf(wide)).toEqual({ corroborated: 1 });
  });

  it('are told apart by time', async () => {
    const later = T + 3_600_000;
    const ledger = ledgerOf(source('1'), source('2', { ms: later }));
    const report = await reconcile(ledger, [source('b', { ms: later + 5 }), source('a', { ms: T + 5 })]);
    expect(
      report.listed.map(({ ledger: [first], sources: [found] }) => [first?.seq, found?.at[0]?.line]),
    ).toEqual([
      [0, 2],
      [3, 1],
    ]);
  });

  it.each([
    ['on the side of the source', [source('1')], [source('a'), source('b')]],
    ['on the side of the ledger', [source('1'), source('2')], [source('a')]],
  ])('are ambiguous where there are two %s', async (_what, lines, seen) => {
    const report = await reconcile(ledgerOf(...lines), seen);
    expect(statesOf(report)).toEqual({ ambiguous: 3 });
  });

  it('are none of a system whose ids the ledger has', async () => {
    const report = await reconcile(ledgerOf(source('1')), [source('z')], {}, plainHost);
    expect(statesOf(report)).toEqual({ ledger_only: 1, source_only: 1 });
  });
});

it('finds calls under ids in meta, and says that nothing covers these', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-reconcile-'));
  folders.push(folder);
  const path = join(folder, 'ledger.jsonl');
  const ledger = await Ledger.open(path, { create: {} });
  const { claims } = plainHost.read([plainFile(line('1', { params: undefined }))]);
  const { events } = eventsOfClaims(claims, { system: 'plain' });
  const made = new Set(['source', 'event_id', 'payload_digest', 'canonical_profile_id']);
  const [decision, run] = events.map(({ event }) =>
    Object.fromEntries(Object.entries(event).filter(([name]) => !made.has(name))),
  );
  const { eventId } = await ledger.append({
    event: decision,
    meta: { toolCallId: 'toolu_1', trace_id: 't' },
  });
  const auth = { alg: 'sha-256', b64: eventId.slice('sha-256:'.length) };
  await ledger.append({ event: { ...run, auth_event_id: auth } });
  await ledger.close();
  const report = await reconcile(path, [
    line('toolu_1', { params: undefined }),
    line('t', { ran: undefined }),
  ]);
  expect(report.listed.find(({ state }) => state === 'corroborated')?.sources[0]?.by).toBe('meta');
  expect(report.not_checked.map(({ code }) => code)).toContain('META');
  expect(statesOf(report)).toEqual({ corroborated: 1, source_only: 1 });
});

it('sums every unit exactly, and of what both have apart', async () => {
  const report = await reconcile(ledgerOf(line('1', { usd: 0.1 }), line('2', { usd: 0.2 })), [
    line('1', { usd: 0.1 }),
    line('3', { usd: 1e-20 }),
  ]);
  expect(report.meters).toEqual([
    {
      unit: 'usd',
      ledger: '0.3',
      sources: [
        {
          source: 'other',
          amount: '0.10000000000000000001',
          difference: '0.19999999999999999999',
          compared_ledger: '0.1',
          compared_source: '0.1',
          compared_difference: '0',
        },
      ],
    },
  ]);
});

it('counts what a selection takes, and compares with everything', async () => {
  const ledger = ledgerOf(line('1'), line('2', { ms: T + 10_000, tool: 'shell' }));
  const source = [line('1'), line('2', { ms: T + 10_000, tool: 'shell' }), line('3', { tool: 'shell' })];
  const report = await reconcile(ledger, source, { selection: { tool: 'fetch' } });
  expect(statesOf(report)).toEqual({ corroborated: 1 });
  expect(report.sources[0]).toMatchObject({ calls: 1, outside: 2 });
  const principal = await reconcile(ledger, source, { selection: { principal: 'agent:nobody' } });
  expect(statesOf(principal)).toEqual({ source_only: 1 });
  expect(principal.not_checked.map(({ code }) => code)).toContain('SELECTION');
});

it('takes in what is wrong with the source', async () => {
  const broken = await reconcileLedger(ledgerOf(line('1')), [
    readSource(other, [plainFile(line('1'), '{"id"')]),
  ]);
  expect(codesOf(broken)).toEqual(['SOURCE_INVALID']);
  const violating = await reconcile(ledgerOf(line('1')), [line('1'), line('2', { allow: false })], {
    allowsMissing: true,
  });
  expect([codesOf(violating)[0], violating.exit_status]).toEqual(['SOURCE_VIOLATION', 3]);
});

describe('what was promised', () => {
  const expecting = (rest: object): ReconcileExpectation =>
    parseExpectation(Buffer.from(JSON.stringify({ expect_version: '1', ...rest })));
  const lines = [line('c-1'), line('c-2', { tool: 'shell', ms: T + 1_000 }), line('c-4')];

  it.each([
    ['all of it', { tools: [{ tool: 'fetch', min: 2, max: 2 }, { tool: 'sh*' }] }, []],
    ['a tool that is missing', { tools: [{ tool: '*' }, { tool: 'rm' }] }, ['TOOL_MISSING']],
    ['too few', { counts: [{ of: 'ledger', min: 4 }] }, ['COUNT_MISSING']],
    [
      'numbers that are missing',
      { sequences: [{ of: 'other', prefix: 'c-', first: 1, last: 5 }] },
      ['SEQUENCE_MISSING'],
    ],
    ['records that are missing', { sequences: [{ of: 'ledger', first: 0, last: 20 }] }, ['SEQUENCE_MISSING']],
    ['another tool', { tools: [{ tool: 'fetch' }] }, ['TOOL_NOT_PROMISED']],
    ['too many of a tool', { tools: [{ tool: '*', max: 2 }] }, ['COUNT_EXCEEDED']],
    ['too many', { counts: [{ of: 'other', max: 2 }] }, ['COUNT_EXCEEDED']],
    [
      'another time',
      { window: { from: '2026-01-01T00:00:00Z', until: '2026-01-01T00:00:01Z' } },
      ['OUTSIDE_WINDOW'],
    ],
    [
      'other numbers',
      { sequences: [{ of: 'other', prefix: 'c-', first: 1, last: 2 }] },
      ['SEQUENCE_NOT_PROMISED'],
    ],
  ])('%s', async (_what, expectation, codes) => {
    const report = await reconcile(ledgerOf(...lines), lines, { expectation: expecting(expectation) });
    expect(codesOf(report)).toEqual(codes);
    const isThere = codes[0]?.endsWith('PROMISED') ?? false;
    const status = codes.length === 0 ? 0 : isThere || /EXCEEDED|WINDOW/.test(codes[0] ?? '') ? 3 : 1;
    expect(report.exit_status).toBe(status);
  });

  it('counts as calls of the ledger what the report says are its calls, whatever it keeps as evidence', async () => {
    const kept = { id: '2', ms: T, tool: 'fetch' };
    const expectation: ReconcileExpectation = { expect_version: '1', counts: [{ of: 'ledger' }] };
    const seen: Host = {
      ...plainHost,
      read: (files, options) => {
        const reading = plainHost.read(files, options);
        const evidence = reading.claims.flatMap(({ kind, id, at }) =>
          kind === 'evidence' ? [{ at, callIds: [id], outcome: 'success' as const, meters: [] }] : [],
        );
        return { ...reading, observations: [...reading.observations, ...evidence] };
      },
    };
    const report = await reconcile(ledgerOf(line('1'), kept), [line('1'), kept], { expectation }, seen);
    expect(statesOf(report)).toEqual({ same_file: 2 });
    expect([report.ledger.calls, report.expected?.counts]).toEqual([1, [{ of: 'ledger', calls: 1 }]]);
  });

  it('names the gaps', async () => {
    const expectation = expecting({ sequences: [{ of: 'other', prefix: 'c-', first: 0, last: 7 }] });
    const report = await reconcile(ledgerOf(...lines), lines, { expectation });
    expect(report.findings[0]?.actual).toBe('missing: 0, 3, 5–7');
    expect(report.expected?.sequences).toEqual([
      { of: 'other', prefix: 'c-', first: 0, last: 7, there: 3, missing: 5 },
    ]);
  });

  it.each([
    ['no JSON', 'x'],
    ['a key twice', '{"expect_version":"1","expect_version":"1"}'],
    ['another version', '{"expect_version":"2"}'],
    ['a member that is not known', '{"expect_version":"1","tool":[]}'],
    ['an empty window', '{"expect_version":"1","window":{}}'],
    [
      'a window that ends first',
      '{"expect_version":"1","window":{"from":"2026-01-02T00:00:00Z","until":"2026-01-01T00:00:00Z"}}',
    ],
    ['a day that does not exist', '{"expect_version":"1","window":{"from":"2026-02-30T00:00:00Z"}}'],
    ['a range that ends first', '{"expect_version":"1","counts":[{"of":"ledger","min":2,"max":1}]}'],
    [
      'a very long sequence',
      '{"expect_version":"1","sequences":[{"of":"ledger","first":0,"last":9000000000000}]}',
    ],
    [
      'a sequence of a source without a prefix',
      '{"expect_version":"1","sequences":[{"of":"cgf","first":0,"last":1}]}',
    ],
    ['a number that is none', '{"expect_version":"1","counts":[{"of":"ledger","min":1.5}]}'],
  ])('is refused: %s', (_what, text) => {
    expect(() => parseExpectation(Buffer.from(text))).toThrow(
      expect.objectContaining({ code: 'EXPECTATION_INVALID' }) as Error,
    );
  });

  it('is refused of a source that is not given', async () => {
    const expectation = expecting({ counts: [{ of: 'nobody' }] });
    await expect(reconcile(ledgerOf(), [], { expectation })).rejects.toMatchObject({
      code: 'EXPECTATION_INVALID',
    });
  });
});

it('shows what comes from outside as text and nothing else', async () => {
  const hostile = '"><script>\u202e::error::=cmd|`';
  const lines = [line(hostile, { tool: hostile }), line('2', { tool: hostile })];
  const file = { ...plainFile(...lines, line('2', { tool: `${hostile}x`, ms: T + 1 })), name: hostile };
  const report = await reconcileLedger(ledgerOf(...lines), [readSource(other, [file], {}, hostile)]);
  expect(validatorOf('reconcile-report')(report)).toBe(true);
  expect(renderReconciliation(report)).not.toMatch(/\u202e|^::/mu);
  expect(renderReconciliationMarkdown(report)).not.toMatch(/\u202e|(?<!`[^`]*)<script>/u);
});

it('recognises a file that exactly one host claims', () => {
  const never: Host = { ...plainHost, name: 'never', recognises: () => false };
  const file = plainFile();
  expect(recogniseHost(file, [never, plainHost])).toBe(plainHost);
  expect(() => recogniseHost(file, [never])).toThrow(
    expect.objectContaining({ code: 'HOST_UNKNOWN' }) as Error,
  );
  expect(() => recogniseHost(file, [plainHost, other])).toThrow(
    expect.objectContaining({
      code: 'HOST_AMBIGUOUS',
      message: expect.stringContaining('plain, other') as string,
    }) as Error,
  );
});

it('refuses what it does not know', async () => {
  const source = readSource(other, []);
  await expect(reconcileLedger(Buffer.of(), [], { windowseconds: 1 } as never)).rejects.toThrow(TypeError);
  expect(() => new Reconciler([source, source])).toThrow(RangeError);
  expect(() => new Reconciler([], { windowSeconds: -1 })).toThrow(RangeError);
});

it('takes a hundred thousand calls, and lists no more than it was asked for', () => {
  const n = 100_000;
  const observations = Array.from({ length: n }, (_, i) => ({
    at: { file: 'f', line: i + 1 },
    callIds: [`call-${i}`],
    tool: 'fetch',
    outcome: 'success' as const,
    meters: [],
  }));
  const source = {
    name: 'many',
    system: 'many',
    files: [],
    reading: { items: [], claims: [], observations, findings: [] },
  };
  const counts = new Map<string, number>();
  const reconciler = new Reconciler([source], {
    maxListed: 10,
    onCall: ({ state }: ReconcileCall) => counts.set(state, (counts.get(state) ?? 0) + 1),
  });
  for (let seq = 0; seq < 2 * n; seq++) {
    reconciler.take({
      seq,
      eventId: `sha-256:${seq}`,
      kind: 'execution',
      source: { system: 'here', id: `run:call-${seq}` },
      metaIds: [],
      tool: 'fetch',
      outcome: 'success',
      meters: [],
      estimated: [],
      occurredAt: '2026-01-01T00:00:00Z',
      verdict: 'ok',
      isMeant: true,
    } satisfies LedgerEntry);
  }
  const report = reconciler.finish({
    verdict: 'ok',
    ledger: { paths: [], origin: null, records: 2 * n, root: null } as never,
    not_checked: [],
  });
  expect(report.calls).toMatchObject({ corroborated: n, ledger_only: n, total: 2 * n });
  expect([report.listed.length, report.findings.length, report.findings_total]).toEqual([10, 10, n]);
  expect(counts.get('corroborated')).toBe(n);
});

it('tells calls apart that all have the same hundreds of observations in common', () => {
  const n = 4_000;
  const shared = Array.from({ length: 15 }, (_, of) => `shared-${of}`);
  const ids = [
    ...Array.from({ length: n }, (_, of) => `own-${of}`),
    ...shared.flatMap((id) => Array.from({ length: 64 }, () => id)),
  ];
  const observations = ids.map((id, index) => ({
    at: { file: 'f', line: index + 1 },
    callIds: [id],
    tool: id.startsWith('own') ? 'fetch' : 'store',
    decision: 'allow' as const,
    meters: [],
  }));
  const reading = { items: [], claims: [], observations, findings: [] };
  const reconciler = new Reconciler([{ name: 's', system: 's', files: [], reading }]);
  const entry = (seq: number, tool: string): LedgerEntry => ({
    seq,
    eventId: `sha-256:${seq}`,
    kind: 'action',
    metaIds: [`own-${seq}`, ...shared],
    tool,
    decision: 'allow',
    meters: [],
    estimated: [],
    occurredAt: '2026-01-01T00:00:00Z',
    verdict: 'ok',
    isMeant: true,
  });
  for (let seq = 0; seq < n; seq++) reconciler.take(entry(seq, seq % 2 === 0 ? 'fetch' : 'store'));
  const ledger = { paths: [], origin: null, records: n, root: null } as never;
  const { calls } = inTime(() => reconciler.finish({ verdict: 'ok', ledger, not_checked: [] }));
  expect(calls).toMatchObject({ corroborated: n / 2, ambiguous: n / 2 + 960, source_only: n / 2 });
});
