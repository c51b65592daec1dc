/** Requests that name earlier turns, which the provider keeps: bounded where those passed here. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../../../src/base/bytes/text.js';
import { KnownAnswers } from '../../../src/gate/llm/known-answers.js';
import type { ModelRequest } from '../../../src/gate/llm/model-api.js';
import { AnswerReader, type NamedAnswer } from '../../../src/gate/llm/read-answer.js';
import { readModelRequest } from '../../../src/gate/llm/read-request.js';
import { makeToken, Tokens } from '../../../src/gate/service/tokens.js';
import { AGENT, type Event, memoryPlace, usedBy } from '../../agent/support.js';
import { openModels, type Script, send } from './proxy-support.js';
import { callOf, post, REQUEST_TOKENS, RESPONSES } from './support.js';

const reference = (id: string): object => ({ type: 'item_reference', id });
const CALL = callOf(RESPONSES, { model: 'm-1', input: 'hi', max_output_tokens: 50 });

function knownOf(...items: readonly string[]): KnownAnswers {
  const known = new KnownAnswers();
  known.add(AGENT, {
    model: 'm-1',
    inputTokens: 1_000,
    outputTokens: 300,
    responseId: 'resp_1',
    itemIds: items,
  });
  return known;
}

/** What the ids in a request add to its bytes, or what has no bound. */
function added(known: KnownAnswers, more: object, principal = AGENT): number | readonly string[] {
  const body = { model: 'm-1', input: 'hi', max_output_tokens: 50, ...more };
  const read = readModelRequest(post(RESPONSES, body), { known: known.of(principal) });
  if (read.kind !== 'call') throw new Error(read.kind);
  const { unbounded, inputBytes } = read.request;
  return unbounded.length > 0 ? unbounded : inputBytes - JSON.stringify(body).length - REQUEST_TOKENS;
}

describe('what is named', () => {
  const known = knownOf('rs_1', 'fc_1');

  it.each<[string, object, number]>([
    ['an item', { input: [reference('fc_1')] }, 300],
    ['all items of an answer', { input: [reference('rs_1'), reference('fc_1')] }, 300],
    ['an item twice', { input: [reference('fc_1'), reference('rs_1'), reference('fc_1')] }, 600],
    ['reasoning without its content', { input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }, 300],
    ['a response', { previous_response_id: 'resp_1' }, 1_300],
    ['both', { previous_response_id: 'resp_1', input: [reference('fc_1')] }, 1_600],
  ])('is bounded: %s', (_, more, tokens) => {
    expect(added(known, more)).toBe(tokens);
  });

  const item = 'item_reference that was not seen here';
  const response = 'previous_response_id that was not seen here';
  it.each<[string, object, string]>([
    ['an item', { input: [reference('fc_1'), reference('fc_2')] }, item],
    ['no item', { input: [{ type: 'item_reference' }] }, item],
    ['a response in place of an item', { input: [reference('resp_1')] }, item],
    ['an item in place of a response', { previous_response_id: 'fc_1' }, response],
    ['an item of another model', { model: 'm-2', input: [reference('fc_1')] }, item],
    ['a response of another model', { model: 'm-2', previous_response_id: 'resp_1' }, response],
    ['no text', { previous_response_id: 7 }, response],
    ['reasoning', { input: [{ type: 'reasoning', id: 'rs_2' }] }, 'reasoning by id that was not seen here'],
    ['a conversation', { conversation: 'resp_1' }, 'conversation'],
  ])('has no bound where it was not seen: %s', (_, more, reason) => {
    expect(added(known, more)).toEqual([reason]);
  });

  it('is nobody else’s', () => {
    expect(added(known, { input: [reference('fc_1')] }, 'agent:b')).toEqual([item]);
    expect(added(known, { previous_response_id: 'resp_1' }, 'agent:b')).toEqual([response]);
  });

  it('is never more than a price takes', () => {
    const much = new KnownAnswers();
    const [inputTokens, outputTokens] = [900_000_000, 900_000_000];
    much.add(AGENT, { model: 'm-1', inputTokens, outputTokens, responseId: 'r', itemIds: ['i'] });
    const body = { model: 'm-1', input: [reference('i')], previous_response_id: 'r' };
    expect(readModelRequest(post(RESPONSES, body), { known: much.of(AGENT) })).toMatchObject({
      request: { inputBytes: 1_000_000_000, unbounded: [] },
    });
  });
});

describe('the memory', () => {
  const answer = (id: string, tokens = 1) => ({
    model: 'm',
    inputTokens: undefined,
    outputTokens: tokens,
    responseId: undefined,
    itemIds: [id],
  });

  it('forgets what was not used for longest', () => {
    const known = new KnownAnswers(2);
    known.add(AGENT, answer('a'));
    known.add(AGENT, answer('b'));
    expect(known.of(AGENT).item('m', 'a')).toBeDefined();
    known.add(AGENT, answer('c'));
    expect(['a', 'b', 'c'].map((id) => known.of(AGENT).item('m', id)?.tokens)).toEqual([1, undefined, 1]);
    expect(known.size).toBe(2);
  });

  it('has at most 20,000 ids, and forgets those of whom it has most of', () => {
    const known = new KnownAnswers();
    known.add('agent:b', answer('theirs'));
    for (let n = 0; n < 20_500; n += 1) known.add(AGENT, answer(`i${n}`));
    expect(known.size).toBe(20_000);
    expect(known.of('agent:b').item('m', 'theirs')).toBeDefined();
    expect(known.of(AGENT).item('m', 'i500')).toBeUndefined();
    expect(known.of(AGENT).item('m', 'i501')).toBeDefined();
  });

  it('keeps no long ids and none that could be another', () => {
    const known = new KnownAnswers();
    for (const id of ['', 'x'.repeat(129), 'a b', 'é']) known.add(AGENT, answer(id));
    expect(known.size).toBe(0);
    known.add(AGENT, answer('x'.repeat(128)));
    expect(known.size).toBe(1);
  });

  it('keeps the greater bound of an id that comes twice', () => {
    const known = new KnownAnswers();
    for (const tokens of [5, 9, 2]) known.add(AGENT, answer('a', tokens));
    expect([known.of(AGENT).item('m', 'a')?.tokens, known.size]).toEqual([9, 1]);
  });
});

const USAGE = { input_tokens: 20, output_tokens: 700, output_tokens_details: { reasoning_tokens: 600 } };
const REASONING = { id: 'rs_1', type: 'reasoning', summary: [] };
const TOOL_CALL = { id: 'fc_1', type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };

function response(id: string, output: readonly object[], more: object = {}): Record<string, unknown> {
  return { id, object: 'response', status: 'completed', model: 'm-1', output, usage: USAGE, ...more };
}

function events(whole: Record<string, unknown>): string {
  const event = (type: string, more: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  const output = whole['output'] as object[];
  return [
    event('response.created', { response: { ...whole, status: 'in_progress', output: [], usage: null } }),
    ...output.flatMap((item) => [
      event('response.output_item.added', { item: { ...item, status: 'in_progress' } }),
      event('response.output_item.done', { item }),
    ]),
    event('response.completed', { response: whole }),
  ].join('');
}

function namedBy(
  text: string,
  { status = 200, sizes = [text.length], request = CALL }: Readonly<Named> = {},
): NamedAnswer | undefined {
  const reader = new AnswerReader(
    request,
    status,
    text.startsWith('{') ? 'application/json' : 'text/event-stream',
  );
  const bytes = Buffer.from(text);
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const end = at + (sizes[n % sizes.length] ?? 1);
    reader.push(Buffer.from(bytes.subarray(at, end)));
    at = end;
  }
  const named = reader.named(request.maxOutput);
  reader.end();
  return named;
}

interface Named {
  readonly status?: number;
  readonly sizes?: readonly number[];
  readonly request?: ModelRequest;
}

const FORMS: readonly (readonly [string, (whole: Record<string, unknown>) => string])[] = [
  ['in one piece', (whole) => JSON.stringify(whole)],
  ['as events', events],
];

describe.each(FORMS)('an answer %s', (_, form) => {
  it('tells its ids and what they bring, in any chunks', () => {
    const whole = response('resp_1', [REASONING, TOOL_CALL]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }), (sizes) => {
        expect(namedBy(form(whole), { sizes })).toEqual({
          responseId: 'resp_1',
          itemIds: ['rs_1', 'fc_1'],
          inputTokens: 20,
          outputTokens: 700,
        });
      }),
      { numRuns: 50 },
    );
  });

  it('is at least its bytes', () => {
    const long = { ...TOOL_CALL, arguments: 'x'.repeat(5_000) };
    const named = namedBy(form(response('resp_1', [long])));
    expect(named?.outputTokens).toBeGreaterThanOrEqual(5_000);
    expect(named?.outputTokens).toBeLessThan(12_000);
  });

  it('has the limit of output as its bound where usage is missing', () => {
    const request = callOf(RESPONSES, { model: 'm-1', input: 'hi', max_output_tokens: 4_000 });
    const named = namedBy(form(response('resp_1', [TOOL_CALL], { usage: null })), { request });
    expect(named).toMatchObject({ responseId: 'resp_1', inputTokens: 0, outputTokens: 4_000 });
  });

  it('that is very long tells them too', () => {
    const filler = { ...TOOL_CALL, id: 'fc_2', arguments: 'x'.repeat(300_000) };
    const named = namedBy(form(response('resp_1', [TOOL_CALL, filler])));
    expect(named).toMatchObject({ responseId: 'resp_1', itemIds: ['fc_1', 'fc_2'] });
    expect(named?.outputTokens).toBeGreaterThanOrEqual(300_000);
  });

  it.each<[string, object[], object, Named]>([
    ['found something', [{ id: 'ws_1', type: 'web_search_call' }, TOOL_CALL], {}, {}],
    ['has an item of another type', [{ id: 'x_1', type: 'memory' }], {}, {}],
    ['is an error', [TOOL_CALL], {}, { status: 500 }],
    ['has no ids', [], { id: 7 }, {}],
    [
      'has no bound',
      [TOOL_CALL],
      { usage: null },
      { request: callOf(RESPONSES, { model: 'm-1', input: 'x' }) },
    ],
  ])('tells none where it %s', (_name, output, more, how) => {
    expect(namedBy(form(response('resp_1', output, more)), how)).toBeUndefined();
  });
});

it('an answer that is not over tells no ids', () => {
  expect(namedBy(JSON.stringify(response('resp_1', [], { status: 'queued' })))).toBeUndefined();
  const whole = events(response('resp_1', [TOOL_CALL]));
  expect(namedBy(whole.slice(0, whole.lastIndexOf('event:')))).toBeUndefined();
  expect(namedBy(JSON.stringify(response('resp_1', [TOOL_CALL])).slice(0, -1))).toBeUndefined();
});

/** What was reserved for each call that was allowed. */
function reservations(list: readonly Event[]): Record<string, string>[] {
  return list.flatMap(({ decision, authorization }) => {
    const action = authorization?.action as
      | { meter_reservation: NonNullable<Event['meter_used']> }
      | undefined;
    if (decision !== 'allow' || action === undefined) return [];
    return [usedBy({ event_type: '', meter_used: action.meter_reservation })];
  });
}

const inputs = (list: readonly Event[]): number[] =>
  reservations(list).map((each) => Number(each['tokens.input']));

/** Each answer has another id: `resp_1`, then `resp_2`. */
function answering(isStream: boolean, more: object = {}): Script {
  let count = 0;
  return (_, reply) => {
    count += 1;
    const items = [
      { ...REASONING, id: `rs_${count}` },
      { ...TOOL_CALL, id: `fc_${count}` },
    ];
    const whole = response(`resp_${count}`, items, more);
    reply.setHeader('Content-Type', isStream ? 'text/event-stream' : 'application/json');
    reply.end(isStream ? events(whole) : JSON.stringify(whole));
  };
}

const step = (input: unknown, more: object = {}): object => ({
  model: 'm-1',
  max_output_tokens: 1_000,
  input,
  ...more,
});
const sizeOf = (body: object): number => JSON.stringify(body).length + REQUEST_TOKENS;

describe.each([false, true])('through a proxy, streamed: %s', (isStream) => {
  const stream = isStream ? { stream: true } : {};

  it('a loop of tools is bounded in its second step', async () => {
    const place = memoryPlace();
    const { url, upstream } = await openModels(place, answering(isStream));
    const result = { type: 'function_call_output', call_id: 'c', output: 'ok' };
    const first = step('hi', stream);
    const second = step([reference('rs_1'), reference('fc_1'), result], stream);
    const third = step([reference('rs_1'), reference('fc_1'), reference('fc_2'), result], stream);
    for (const body of [first, second, third])
      expect((await send(url, '/v1/responses', body)).status).toBe(200);
    expect(inputs(place.events())).toEqual([sizeOf(first), sizeOf(second) + 700, sizeOf(third) + 1_400]);
    expect(upstream.seen[1]?.body.toString()).toBe(JSON.stringify(second));
    expect(await place.verdict()).toBe('ok');
  });

  it('the bounds of a chain of responses add up', async () => {
    const place = memoryPlace();
    const { url } = await openModels(place, answering(isStream));
    const bodies = [undefined, 'resp_1', 'resp_2'].map((id) =>
      step('hi', { ...stream, previous_response_id: id }),
    );
    for (const body of bodies) expect((await send(url, '/v1/responses', body)).status).toBe(200);
    const [first = {}, second = {}, third = {}] = bodies;
    expect(inputs(place.events())).toEqual([
      sizeOf(first),
      sizeOf(first) + 700 + sizeOf(second),
      sizeOf(first) + 700 + sizeOf(second) + 700 + sizeOf(third),
    ]);
  });

  it('a limit that was put into a request is a bound of its answer', async () => {
    const place = memoryPlace();
    const models = { maxOutput: 2_000 };
    const { url } = await openModels(place, answering(isStream, { usage: null }), { models });
    const first = step('hi', { ...stream, max_output_tokens: undefined });
    const second = step([reference('fc_1')], stream);
    for (const body of [first, second]) expect((await send(url, '/v1/responses', body)).status).toBe(200);
    expect(inputs(place.events())).toEqual([sizeOf(first), sizeOf(second) + 2_000]);
  });
});

it('what did not pass a proxy is denied, and the refusal says so', async () => {
  const place = memoryPlace();
  const { url, upstream } = await openModels(place, answering(false));
  expect((await send(url, '/v1/responses', step('hi'))).status).toBe(200);
  for (const [body, name] of [
    [step([reference('fc_1'), reference('fc_7')]), 'item_reference'],
    [step('hi', { previous_response_id: 'resp_7' }), 'previous_response_id'],
  ] as const) {
    const got = await send(url, '/v1/responses', body);
    expect([got.status, got.json.error.code]).toEqual([429, 'CALL_UNBOUNDED']);
    expect(got.json.error.message).toContain(`${name} that was not seen here`);
  }
  expect(upstream.seen).toHaveLength(1);
});

it('a response to what has no bound has none, though an amount is reserved', async () => {
  const place = memoryPlace();
  const { url } = await openModels(place, answering(false), { models: { reserve: { usd: '0.4' } } });
  for (const body of [
    step('hi', { previous_response_id: 'resp_0' }),
    step('hi', { previous_response_id: 'resp_1' }),
    step([reference('fc_1')]),
  ])
    expect((await send(url, '/v1/responses', body)).status).toBe(200);
  const reserved = reservations(place.events()).map(({ usd }) => usd === '0.4');
  expect(reserved).toEqual([true, true, false]);
});

it('nobody names what passed for another', async () => {
  const place = memoryPlace();
  const { token, entry } = makeToken({ name: 'ci', principals: ['agent:*'], tools: ['llm.*'] });
  const tokens = Tokens.parse(encodeUtf8(JSON.stringify({ tokens: [entry] })));
  const { url } = await openModels(place, answering(false), { models: { tokens } });
  const as = (principal: string) => ({ 'X-Northroot-Token': token, 'X-Northroot-Principal': principal });
  expect((await send(url, '/v1/responses', step('hi'), as(AGENT))).status).toBe(200);
  for (const body of [step([reference('fc_1')]), step('hi', { previous_response_id: 'resp_1' })]) {
    const theirs = await send(url, '/v1/responses', body, as('agent:b2'));
    expect([theirs.status, theirs.json.error.code]).toEqual([429, 'CALL_UNBOUNDED']);
  }
  expect((await send(url, '/v1/responses', step([reference('fc_1')]), as(AGENT))).status).toBe(200);
});
