/** LiteLLM's spend logs: what becomes of each row, and each rule broken. */

import { expect, it } from 'vitest';
import { accountFor } from '../../../src/hosts/shared/account.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import { litellm } from '../../../src/hosts/litellm/index.js';
import { edited, fileOf, found, holdsForBrokenFiles, linesOf, sample, verifyPlan } from '../samples.js';

const rows = sample('litellm', 'spend-logs.jsonl');
const page = sample('litellm', 'spend-logs.json');

function rowWith(change: object): ReturnType<typeof litellm.read> {
  const [, row] = linesOf(rows) as { metadata: object }[];
  return litellm.read([fileOf('f', [{ ...row, ...change }])]);
}

it('keeps rows as evidence, and what the proxy refused as a denial', async () => {
  const plan = planImport(litellm, [rows]);
  expect(accountFor(plan.reading.items).total).toEqual({
    items: 6,
    mapped: 1,
    evidence: 5,
    repeated: 0,
    dropped: 0,
  });
  expect(Object.fromEntries(plan.byType)).toEqual({ 'x.litellm.spend': 6, authorization: 1 });
  expect(plan.findings).toEqual([]);
  expect(plan.events.find(({ kind }) => kind === 'action')?.event).toMatchObject({
    decision: 'deny',
    decision_code: 'BUDGET_EXCEEDED',
    occurred_at: '2026-11-20T10:03:00Z',
    authorization: { action: { tool_name: 'llm.gpt-sample' } },
  });
  const report = await verifyPlan(plan);
  expect(report.verdict).toBe('ok');
  expect(report.findings).toEqual([]);
});

it('keeps amounts exactly, under the names of the row', () => {
  const [spend] = planImport(litellm, [rows]).events;
  expect(spend?.event).toMatchObject({
    request_id: 'msg_01sample1',
    amounts: {
      spend: { t: 'dec', m: '40063853022226', s: 15 },
      prompt_tokens: { t: 'int', v: '23697' },
      cached_tokens: { t: 'int', v: '15030' },
    },
  });
  expect(spend?.event['startTime']).toBeUndefined();
});

it('observes each request by its ids, with meters that other sources have too', () => {
  const { observations } = litellm.read([rows]);
  expect(observations[0]).toMatchObject({
    callIds: ['msg_01sample1', expect.stringContaining('-9000-')],
    tool: 'llm.anthropic/claude-sample-1',
    outcome: 'success',
    occurredAt: '2026-11-20T10:00:04.1Z',
  });
  expect(observations[0]?.meters.map(({ unit }) => unit)).toEqual([
    'usd',
    'tokens.input',
    'tokens.output',
    'tokens.input.cache_read',
  ]);
  expect(observations.map(({ outcome, decision }) => outcome ?? decision)).toEqual([
    'success',
    'success',
    'success',
    'failure',
    'deny',
    'success',
  ]);
  expect(observations[5]).toMatchObject({ tool: 'get_weather', paramsDigest: { alg: 'sha-256' } });
});

it('gives the same events for a page, newest first, and for lines', () => {
  const ids = (file: typeof rows): unknown[] =>
    planImport(litellm, [file]).events.map(({ event }) => event.event_id);
  expect(ids(page)).toEqual(ids(rows));
  const text = `{"data":${Buffer.from(page.bytes).toString()},"total":6,"page":1}`;
  const ui = { name: 'ui.json', bytes: Buffer.from(text) };
  expect(ids(ui)).toEqual(ids(rows));
  expect([page, rows, ui].map((file) => litellm.recognises(file))).toEqual([true, true, true]);
});

it('reads standard logging payloads', () => {
  const payload = {
    id: 'chatcmpl-9',
    call_type: 'acompletion',
    response_cost: 0.25,
    status: 'success',
    total_tokens: 3,
    prompt_tokens: 1,
    completion_tokens: 2,
    startTime: 1795291446.384348,
    endTime: 1795291447.5,
    model: 'gpt-sample',
  };
  const { observations, findings } = litellm.read([fileOf('f', [payload])]);
  expect(findings).toEqual([]);
  expect(observations[0]).toMatchObject({
    callIds: ['chatcmpl-9'],
    occurredAt: '2026-11-21T20:04:06.384348Z',
  });
});

it('never lets a key out', () => {
  const key = 'sk-sample-in-clear';
  const reading = rowWith({ api_key: key });
  expect(found(reading)).toEqual(['LL-9 KEY_IN_CLEAR']);
  expect(JSON.stringify(reading.claims.map((claim) => ({ ...claim, bytes: '' })))).not.toContain(key);
  expect(JSON.stringify(reading.findings)).not.toContain(key);
});

it('drops sums of several requests, and rows that name no request or no time', () => {
  const day = { startTime: '2026-11-20', spend: 1.5, users: {}, models: {} };
  const { items, findings } = litellm.read([
    fileOf('f', [day, { request_id: '', spend: 0 }, { request_id: 'x' }]),
  ]);
  expect(items.map(({ reason }) => reason)).toEqual(['SUMMARY', 'ID_NOT_STATED', 'TIME_NOT_STATED']);
  expect(findings.map(({ code }) => code)).toEqual(['ID_NOT_STATED', 'TIME_NOT_STATED']);
});

it('takes a row that is there twice once', () => {
  const plan = planImport(litellm, [rows, { ...rows, name: 'again' }]);
  expect(accountFor(plan.reading.items).byReason.get('ROW_REPEATED')).toBe(6);
  expect(plan.events).toHaveLength(7);
  expect(plan.findings).toEqual([]);
});

it.each([
  ['LL-1 DUPLICATE_REQUEST', '"request_id":"chatcmpl-sample3"', '"request_id":"chatcmpl-sample1"'],
  ['LL-2 END_BEFORE_START', '"endTime":"2026-11-20T10:01:01.500000Z"', '"endTime":"2026-11-20T10:00:59Z"'],
  ['LL-3 TOKEN_SUM', '"spend":0.0021,"total_tokens":1285', '"spend":0.0021,"total_tokens":1286'],
  ['LL-4 NEGATIVE_SPEND', '"spend":0.0021', '"spend":-0.0021'],
  ['LL-4 AMOUNT_INVALID', '"spend":0.0021', '"spend":"0.0021"'],
  ['LL-5 COST_PARTS', '"output_cost":0.00048', '"output_cost":0.00049'],
  ['LL-7 PART_EXCEEDS_TOTAL', '"cached_tokens":1024', '"cached_tokens":1201'],
  ['LL-8 CACHE_HIT_SPENT', '"spend":0,"total_tokens":1285', '"spend":0.5,"total_tokens":1285'],
])('finds %s', (expected, from, to) => {
  const findings = found(litellm.read([edited(rows, from, to)]));
  expect(new Set(findings)).toEqual(
    new Set(expected === 'LL-3 TOKEN_SUM' ? [expected, 'LL-6 USAGE_DISAGREES'] : [expected]),
  );
});

it('finds usage within the metadata that is another', () => {
  const [, row] = linesOf(rows) as { metadata: { usage_object: object } }[];
  const metadata = { ...row.metadata, usage_object: { ...row.metadata.usage_object, prompt_tokens: 1199 } };
  expect(found(rowWith({ metadata }))).toEqual(['LL-6 USAGE_DISAGREES']);
});

it('finds a failure that cost something, and a page that lacks rows', () => {
  expect(found(rowWith({ status: 'failure' }))).toEqual(['LL-8 FAILURE_SPENT']);
  const { findings } = litellm.read([fileOf('ui', [{ data: linesOf(rows), total: 7 }])]);
  expect(found({ findings })).toEqual(['LL-10 ROWS_MISSING']);
  expect(findings[0]).toMatchObject({ severity: 'warning', class: 'none' });
});

it('reads metadata that is the text of an object', () => {
  const asText = (row: unknown): object => {
    const { metadata, ...rest } = row as { metadata: object };
    return { ...rest, metadata: JSON.stringify(metadata) };
  };
  const plan = planImport(litellm, [fileOf('ui.jsonl', linesOf(rows).map(asText))]);
  const before = planImport(litellm, [rows]);
  const facts = ({ events }: typeof plan): unknown[] =>
    events.map(({ event: { source: _source, event_id: _id, payload_digest: _digest, ...fact } }) => fact);
  expect(plan.findings).toEqual([]);
  expect(facts(plan)).toEqual(facts(before));
  expect(
    plan.reading.observations.map(({ callIds, meters, decision }) => [callIds, meters, decision]),
  ).toEqual(before.reading.observations.map(({ callIds, meters, decision }) => [callIds, meters, decision]));
  const both = litellm.read([rows, fileOf('ui.jsonl', linesOf(rows).map(asText))]);
  expect(both.findings).toEqual([]);
  expect(both.items.filter(({ reason }) => reason === 'ROW_REPEATED')).toHaveLength(6);
});

it('takes the state of a request from the metadata where the row has none', () => {
  const [, , , failure, refusal] = linesOf(rows) as object[];
  const { observations } = litellm.read([
    fileOf('f', [
      { ...failure, status: null },
      { ...refusal, status: '' },
    ]),
  ]);
  expect(observations.map(({ outcome, decision }) => outcome ?? decision)).toEqual(['failure', 'deny']);
});

it('takes tokens of thinking that a provider counts beside those of the answer', () => {
  const usage = (total: number): object => ({
    prompt_tokens: 32,
    completion_tokens: 9,
    total_tokens: total,
    metadata: { usage_object: { completion_tokens_details: { reasoning_tokens: 94 } } },
  });
  const { findings } = rowWith(usage(135));
  expect(findings).toMatchObject([{ code: 'PART_EXCEEDS_TOTAL', severity: 'warning', class: 'none' }]);
  expect(found(rowWith(usage(134)))).toContain('LL-3 TOKEN_SUM');
});

it('counts the rows of all pages of a list', () => {
  const lines = linesOf(rows);
  const pages = [lines.slice(0, 4), lines.slice(4)].map((data, index) =>
    fileOf(`page-${index}.json`, [{ data, total: 6, page: index + 1, page_size: 4, total_pages: 2 }]),
  );
  expect(litellm.read(pages).findings).toEqual([]);
  expect(found(litellm.read(pages.slice(1)))).toEqual(['LL-10 ROWS_MISSING']);
});

it('reads a long list on one line, and lines whose first one is cut at its beginning', () => {
  const [first, ...rest] = linesOf(rows) as object[];
  const long = { ...first, messages: 'x'.repeat(17 * 1024 * 1024) };
  const { items } = litellm.read([{ name: 'f', bytes: Buffer.from(JSON.stringify([long, ...rest])) }]);
  expect(items).toHaveLength(6);
  const cut = litellm.read([{ ...rows, bytes: rows.bytes.subarray(10) }]);
  expect(cut.items).toHaveLength(6);
  expect(cut.items.filter(({ fate }) => fate === 'dropped')).toHaveLength(1);
  expect(found(cut)).toEqual(['INPUT NOT_JSON']);
});

it('reads whatever it is given', () => {
  holdsForBrokenFiles(litellm, [rows, page]);
});

it('takes no aids and no options that it does not know', () => {
  expect(() => litellm.read([], { aids: { prices: rows } })).toThrow(RangeError);
  expect(() => litellm.read([], { occuredAt: 'x' } as never)).toThrow(TypeError);
});
