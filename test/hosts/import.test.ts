/** What all imports have in common: every item accounted for, the same events for the same files, links, and nothing made up. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { draftGrant, Ledger, openLedger, verifyLedger } from '../../src/api/index.js';
import { accountFor } from '../../src/hosts/shared/account.js';
import { notStated } from '../../src/hosts/shared/claims.js';
import type { Host, HostFile } from '../../src/hosts/shared/host.js';
import { reportImport } from '../../src/hosts/shared/import-report.js';
import {
  appendImport,
  firstTimeOf,
  type ImportPlan,
  type ImportResult,
  planImport,
  readKnownLedger,
} from '../../src/hosts/shared/import.js';
import { renderImport, renderImportMarkdown } from '../../src/out/text/import-text.js';
import type { Bounds } from '../../src/format/schema/generated/types.js';
import { toDigestText } from '../../src/base/value/digest.js';
import { validatorOf } from '../schema/ajv.js';
import { inTime } from '../in-time.js';
import { plainFile, plainHost } from './plain-host.js';

const T = 1_767_225_600_000;
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-import-'));
  folders.push(folder);
  return join(folder, 'ledger.jsonl');
}

async function importInto(path: string, file: HostFile): Promise<ImportResult & { plan: ImportPlan }> {
  const time = firstTimeOf(plainHost.read([file]))!;
  const ledger = await Ledger.open(path, { create: {}, now: () => time, stopsAtRefusal: true });
  try {
    const into = await readKnownLedger(await openLedger(path), plainHost.name);
    const plan = planImport(plainHost, [file], { into });
    return { ...(await appendImport(ledger, plan)), plan };
  } finally {
    await ledger.close();
  }
}

/** Verifies the bare events that a plan would append. */
async function verify(plan: ImportPlan) {
  return verifyLedger(Buffer.from(plan.events.map(({ event }) => `${canonical(event)}\n`).join('')));
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

const GOOD = [
  { id: '1', ms: T, allow: true, tool: 'fs.read(*)', ran: 'success', usd: 0.25 },
  { id: '2', ms: T + 1000, allow: false, tool: 'rm' },
  { id: '3', ms: T + 2000, tool: 'note' },
];

it('adds nothing the second time either where what authorizes stands after what it authorizes', () => {
  const file = plainFile(...GOOD);
  const backwards: Host = {
    ...plainHost,
    read: (files, options) => {
      const reading = plainHost.read(files, options);
      return { ...reading, claims: reading.claims.toReversed() };
    },
  };
  const { events } = planImport(backwards, [file]);
  const sources = new Map(
    events.map(({ sourceId, event }) => [sourceId, toDigestText(event.event_id.b64)] as const),
  );
  const into = { ledgerId: undefined, sources, openEnds: new Set<string>() };
  const again = planImport(backwards, [file], { into });
  expect(again.findings).toEqual([]);
  expect([again.events.length, again.existing]).toEqual([0, events.length]);
});

it('makes authorizations, executions and evidence, linked and verified', async () => {
  const plan = planImport(plainHost, [plainFile(...GOOD)]);
  expect(plan.events.map(({ kind, sourceId }) => [kind, sourceId])).toEqual([
    ['action', 'decision:1'],
    ['execution', 'run:1'],
    ['digests', 'digests:run:1'],
    ['action', 'decision:2'],
    ['evidence', '3'],
  ]);
  expect(plan.events[0]?.event).toMatchObject({
    principal_id: 'agent:plain/a1',
    policy_id: 'plain:not-stated',
    policy_digest: notStated('plain', 'policy'),
    source: { system: 'plain', id: 'decision:1' },
    authorization: { action: { tool_name: 'fs.read~28~2A~29' } },
  });
  expect(plan.events[4]?.event).toMatchObject({ event_type: 'x.plain.note', tool: 'note' });
  const report = await verify(plan);
  expect(report.verdict).toBe('ok');
  expect(report.findings.filter(({ severity }) => severity !== 'info')).toEqual([]);
});

it('shows what ran without a decision as evidence that is missing', async () => {
  const plan = planImport(plainHost, [plainFile({ id: '1', ms: T, ran: 'success' })]);
  const report = await verify(plan);
  expect(report.findings.map(({ code }) => code)).toContain('AUTH_NOT_FOUND');
  expect(plan.events[0]?.event['auth_event_id']).toEqual(notStated('plain', 'authorization'));
});

it('accounts for every item, whatever it is', () => {
  const file = plainFile(
    ...GOOD,
    '{"id":"4"',
    '',
    '{"id":"5","id":"6"}',
    { tool: 'x', ms: T },
    '{"id":"torn',
  );
  const { reading, findings } = planImport(plainHost, [file]);
  const { total, byReason } = accountFor(reading.items);
  expect(total).toEqual({ items: 7, mapped: 2, evidence: 1, repeated: 0, dropped: 4 });
  expect([...byReason]).toEqual([
    ['NOT_JSON', 2],
    ['DUPLICATE_KEY', 1],
    ['ID_NOT_STATED', 1],
  ]);
  expect(findings.map(({ code, at }) => [code, at.line])).toEqual([
    ['NOT_JSON', 4],
    ['DUPLICATE_KEY', 6],
    ['NOT_JSON', 8],
  ]);
});

it('calls the end of a file that has no line feed torn', () => {
  const { findings } = planImport(plainHost, [{ name: 'f', bytes: Buffer.from('{"id":"1"') }]);
  expect(findings.map(({ code }) => code)).toEqual(['LINE_TORN']);
});

it('takes the time of what is before where an item states none, and says so', () => {
  const lines = [{ id: '1' }, { id: '2', ms: T, tool: 'a' }, { id: '3', tool: 'b' }];
  const { events, findings, reading } = planImport(plainHost, [plainFile(...lines)]);
  expect(reading.items[0]).toMatchObject({ fate: 'dropped', reason: 'TIME_NOT_STATED' });
  expect(events.map(({ event }) => event.occurred_at)).toEqual([
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z',
  ]);
  expect(findings.map(({ code }) => code)).toEqual(['TIME_NOT_STATED', 'TIME_NOT_STATED']);
  const given = planImport(plainHost, [plainFile(...lines)], { occurredAt: '2025-12-31T00:00:00Z' });
  expect(given.events[0]?.event.occurred_at).toBe('2025-12-31T00:00:00Z');
});

it('importing the same again adds nothing, and more adds what is more', async () => {
  const path = newPath();
  expect(await importInto(path, plainFile(...GOOD))).toMatchObject({ appended: 5, existing: 0 });
  const bytes = readFileSync(path);
  expect(await importInto(path, plainFile(...GOOD))).toMatchObject({ appended: 0 });
  expect(readFileSync(path)).toEqual(bytes);
  const more = { id: '4', ms: T + 3000, allow: true, ran: 'failure' };
  const { appended, plan } = await importInto(path, plainFile(...GOOD, more));
  expect([appended, plan.existing]).toEqual([3, 5]);
  const report = await verifyLedger(path);
  expect(report.verdict).toBe('ok');
  expect(report.findings.map(({ code }) => code)).not.toContain('TIME_REGRESSION');
});

it('keeps what it has where the same source says something else', async () => {
  const path = newPath();
  await importInto(path, plainFile(...GOOD));
  const other = GOOD.map((line) => (line.id === '1' ? { ...line, usd: 99 } : line));
  const { appended, plan } = await importInto(path, plainFile(...other));
  expect(plan.conflicting).toBeGreaterThan(0);
  expect(plan.findings.map(({ code }) => code)).toContain('SOURCE_CONFLICT');
  expect(appended).toBe(0);
  expect((await verifyLedger(path)).verdict).toBe('ok');
});

it('appends nothing that would name something else than what the files name', async () => {
  const path = newPath();
  await importInto(path, plainFile({ id: '1', ms: T, allow: true, tool: 'a' }));
  const { appended, plan } = await importInto(
    path,
    plainFile({ id: '1', ms: T, allow: true, tool: 'b', ran: 'success' }),
  );
  expect([appended, plan.conflicting]).toEqual([0, 3]);
  expect(plan.findings.map(({ code, about }) => [code, about])).toEqual([['SOURCE_CONFLICT', 'decision:1']]);
  expect((await verifyLedger(path)).verdict).toBe('ok');
});

it('calls it no conflict that the end of what ran is known by now', async () => {
  const path = newPath();
  await importInto(path, plainFile({ id: '1', ms: T, allow: true, ran: 'unknown' }));
  const { appended, plan } = await importInto(
    path,
    plainFile({ id: '1', ms: T, allow: true, ran: 'success' }),
  );
  expect(appended).toBe(0);
  // The line is another one, and with it the decision's source.digest.
  expect(plan.findings.map(({ code }) => code)).toContain('SOURCE_CONFLICT');
  const lines = [
    { id: '1', ms: T, allow: true },
    { id: '1', ms: T, ran: 'unknown' },
  ];
  const later = [lines[0], { id: '1', ms: T, ran: 'success' }];
  const other = newPath();
  await importInto(other, plainFile(...lines));
  const again = await importInto(other, plainFile(...later));
  expect(again.plan.findings.map(({ code, severity }) => [code, severity])).toEqual([
    ['OUTCOME_KNOWN_LATER', 'warning'],
  ]);
});

it('calls it no conflict that the ledger knows an end that a log which was cut does not', async () => {
  const path = newPath();
  const start = { id: '1', ms: T, allow: true };
  await importInto(path, plainFile(start, { id: '1', ms: T, ran: 'success' }));
  const { appended, plan } = await importInto(path, plainFile(start, { id: '1', ms: T, ran: 'unknown' }));
  expect(appended).toBe(0);
  expect(plan.findings.map(({ code, severity }) => [code, severity])).toEqual([
    ['OUTCOME_KNOWN_BEFORE', 'warning'],
  ]);
});

it('records nothing twice where another import of the same comes between', async () => {
  const path = newPath();
  const start = { id: '1', ms: T, allow: true };
  await importInto(path, plainFile(start));
  const open = () => Ledger.open(path, { stopsAtRefusal: true });
  const plan = async (ran: string) => {
    const into = await readKnownLedger(await openLedger(path), plainHost.name);
    return planImport(plainHost, [plainFile(start, { id: '1', ms: T, ran })], { into });
  };
  const [one, other] = [await open(), await open()];
  const [first, second] = [await plan('unknown'), await plan('success')];
  expect(await appendImport(one, first)).toEqual({ appended: 2, existing: 0 });
  const outdated = { code: 'IMPORT_OUTDATED', result: { appended: 0, existing: 0 } };
  await expect(appendImport(other, second)).rejects.toMatchObject(outdated);
  await Promise.all([one.close(), other.close()]);
  // It is opened after the other's records, and the plan was made before them.
  const late = await open();
  await expect(appendImport(late, second)).rejects.toMatchObject(outdated);
  await late.close();
  const again = await importInto(path, plainFile(start, { id: '1', ms: T, ran: 'success' }));
  expect([again.appended, again.plan.findings.map(({ code }) => code)]).toEqual([0, ['OUTCOME_KNOWN_LATER']]);
  expect((await readKnownLedger(await openLedger(path), plainHost.name)).size).toBe(4);
});

it('appends beside others that record something else', async () => {
  const path = newPath();
  await importInto(path, plainFile(GOOD[2]));
  const into = await readKnownLedger(await openLedger(path), plainHost.name);
  const [one, other] = [await Ledger.open(path), await Ledger.open(path, { stopsAtRefusal: true })];
  const plan = planImport(plainHost, [plainFile(...GOOD)], { into });
  await one.append({ event: plan.events[0].event });
  await one.append({
    event: { event_type: 'x.note', occurred_at: '2026-01-01T00:00:00Z', principal_id: 'agent:b' },
  });
  expect(await appendImport(other, plan)).toEqual({ appended: 3, existing: 1 });
  await Promise.all([one.close(), other.close()]);
});

it('takes a byte order mark for no part of an item', () => {
  const file = plainFile(...GOOD);
  const marked = { ...file, bytes: Buffer.concat([Buffer.from('\ufeff'), file.bytes]) };
  const eventsOf = (of: HostFile) => planImport(plainHost, [of]).events.map(({ event }) => event);
  expect(eventsOf(marked)).toEqual(eventsOf(file));
});

it('counts a file that is not text as one item', () => {
  const noise = Buffer.from(Array.from({ length: 20_000 }, (_, i) => (i * i * 31 + (i >> 3)) & 0xff));
  const log = plainFile(...GOOD);
  const gzip = Buffer.concat([Buffer.from([0x1f, 0x8b]), noise]);
  for (const bytes of [noise, gzip, Buffer.from(Buffer.from(log.bytes).toString(), 'utf16le')]) {
    const { reading, findings } = planImport(plainHost, [{ name: 'b', bytes }, log]);
    expect(reading.items[0]).toMatchObject({ fate: 'dropped', reason: 'NOT_TEXT' });
    expect(accountFor(reading.items).total).toMatchObject({ items: 4, dropped: 1 });
    expect(findings.map(({ code }) => code)).toEqual(['NOT_TEXT']);
  }
  // A log that is damaged is a log all the same.
  const damaged = Buffer.concat([Buffer.alloc(5_000), Buffer.from('\n'), log.bytes]);
  const { reading } = planImport(plainHost, [{ name: 'd', bytes: damaged }]);
  expect(accountFor(reading.items).total).toMatchObject({ items: 4, dropped: 1 });
});

it('gives the same events for the same files, bound to their ledger', async () => {
  const one = newPath();
  const two = newPath();
  await importInto(one, plainFile(...GOOD));
  await importInto(two, plainFile(...GOOD));
  const [first, second] = [
    await readKnownLedger(await openLedger(one), 'plain'),
    await readKnownLedger(await openLedger(two), 'plain'),
  ];
  expect(first.ledgerId).not.toBe(second.ledgerId);
  const plan = (into: typeof first): string =>
    canonical(
      planImport(plainHost, [plainFile(...GOOD)], { into: { ...into, sources: new Map() } }).events.map(
        ({ event }) => event,
      ),
    );
  expect(plan(first)).toBe(plan(first));
  expect(plan(first)).not.toBe(plan(second));
});

it('counts what would be authority on the word of the host, and what the ledger has of its own', async () => {
  const path = newPath();
  const base = { at: { file: 'g' }, bytes: Buffer.from('g'), occurredAt: new Date(T).toISOString() };
  const bounds: Bounds = {
    allowed_tools: ['*'],
    meter_caps: [{ unit: 'usd', amount: { t: 'int', v: '1' } }],
  };
  const granting: Host = {
    ...plainHost,
    read(files, options) {
      const reading = plainHost.read(files, options);
      const by = { principalId: 'agent:plain/a1', decisionCode: 'YES' };
      const grant = { ...base, ...by, kind: 'grant', id: 'g1', decision: 'allow', bounds } as const;
      const denied = { ...base, ...by, kind: 'grant', id: 'g2', decision: 'deny' } as const;
      return { ...reading, claims: [grant, denied, ...reading.claims] };
    },
  };
  const first = planImport(granting, [plainFile(...GOOD)]);
  expect(first.authority).toEqual({ grants: 1, actions: 1, credits: 0, ownGrants: 0 });
  const ledger = await Ledger.open(path, { create: {}, now: () => new Date(T).toISOString() });
  await ledger.append({
    event: draftGrant({ principalId: 'agent:a1', allowedTools: ['*'], meterCaps: { usd: 1 } }),
  });
  const known = async () => readKnownLedger(await openLedger(path), 'plain');
  await appendImport(ledger, planImport(granting, [plainFile(...GOOD)], { into: await known() }));
  await ledger.close();
  const again = planImport(granting, [plainFile(...GOOD)], { into: await known() });
  const report = reportImport(again);
  expect(report.events?.new).toBe(0);
  expect(report.imported_authority).toEqual({ grants: 1, actions: 1, credits: 0, own_grants: 1 });
  expect(validatorOf('import-report')(report)).toBe(true);
});

it('says in its report, in words and by its schema, what was and was not', () => {
  const hostile = '"><script>\u202e::error::=cmd|';
  const plan = planImport(plainHost, [
    plainFile(...GOOD, { id: hostile, ms: T, allow: false, tool: hostile, ran: 'success' }, 'x'),
    { ...plainFile({ id: '9', ms: T }), name: hostile },
  ]);
  const report = reportImport(plan, { appended: 3, existing: 1 });
  expect(validatorOf('import-report')(report)).toBe(true);
  expect(report).toMatchObject({ verdict: 'invalid', exit_status: 1, findings_total: plan.findings.length });
  expect(report.rules.map(({ id, findings }) => [id, findings])).toEqual([
    ['PL-1', 1],
    ['PL-2', 0],
    ['INPUT', 1],
  ]);
  const text = renderImport(report);
  expect(text).not.toMatch(/\u202e|^::/mu);
  expect(renderImportMarkdown(report)).not.toMatch(/\u202e|(?<!`[^`]*)<script>/u);
  expect(reportImport(planImport(plainHost, [])).verdict).toBe('undecided');
  expect(reportImport(planImport(plainHost, [plainFile({ of: 'another system' })])).verdict).toBe(
    'undecided',
  );
});

it('names an option that is not known', () => {
  expect(() => planImport(plainHost, [], { ledgerid: 'x' } as never)).toThrow(TypeError);
});

describe('the table of files', () => {
  const named = (...names: string[]): string => {
    const files = names.map((name) => ({ ...plainFile({ id: name, ms: T, ran: 'success' }), name }));
    const report = reportImport(planImport(plainHost, files));
    return inTime(() => renderImport(report) + renderImportMarkdown(report));
  };

  it.each([
    [['/logs/a.jsonl', 'b.jsonl'], undefined],
    [['b.jsonl', '/logs/a.jsonl'], undefined],
    [['/a.jsonl', 'b.jsonl'], undefined],
    [['/a.jsonl', '/b.jsonl'], '/'],
    [['/a.jsonl', '//b.jsonl'], '/'],
    [['//a', '/b', 'c'], undefined],
    [['/', 'a'], undefined],
    [['/', '/a'], '/'],
    [['./a.jsonl', './b.jsonl'], './'],
    [['./a.jsonl', 'a.jsonl'], undefined],
    [['../a.jsonl', '../../b.jsonl'], '../'],
    [['..', '.'], undefined],
    [['logs/x/a.jsonl', 'logs/y/b.jsonl'], 'logs/'],
    [['logs/a.jsonl', 'logs2/a.jsonl'], undefined],
    [['C:\\logs\\a.jsonl', 'C:\\logs\\b.jsonl'], undefined],
    [['C:/logs/a.jsonl', 'D:/logs/b.jsonl'], undefined],
    [['', '/a'], undefined],
    [['stdin', '/var/a.jsonl'], undefined],
  ])('says what all names begin with: %j', (names, folder) => {
    const text = named(...names);
    expect(/^ *in (.*)$/m.exec(text)?.[1]).toBe(folder);
  });

  it('ends for one file, and for two of one name', () => {
    expect(named('/a.jsonl')).not.toMatch(/^ *in /m);
    expect(named('/a.jsonl', '/a.jsonl')).toContain('/a.jsonl');
  });
});
