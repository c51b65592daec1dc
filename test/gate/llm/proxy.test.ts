import { createHash } from 'node:crypto';
import { readFileSync, renameSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyLedger } from '../../../src/log/read/verify-ledger.js';
import { encodeUtf8 } from '../../../src/base/bytes/text.js';
import { makeToken, Tokens } from '../../../src/gate/service/tokens.js';
import { AGENT, type Event, filePlace, leftOf, openLive, memoryPlace, usedBy } from '../../agent/support.js';
import { ask } from '../proxy/support.js';
import { reopen } from '../support.js';
import {
  answerChat,
  chat,
  chatAnswer,
  chatEvents,
  messagesEvents,
  openModels,
  type Script,
  send,
} from './proxy-support.js';

const executions = (events: readonly Event[]): Event[] =>
  events.filter(({ event_type: type, outcome }) => type === 'execution' && outcome !== undefined);
const reserved = (event: Event | undefined): Record<string, string> => {
  const action = event?.authorization?.action as
    | { meter_reservation?: NonNullable<Event['meter_used']> }
    | undefined;
  return usedBy({ event_type: '', meter_used: action?.meter_reservation ?? [] });
};
const decisions = (events: readonly Event[]): Event[] =>
  events.filter(({ event_type: type, authorization }) => type === 'authorization' && authorization?.action);

describe('a call that is allowed', () => {
  it('passes, and costs what it states, exactly', async () => {
    const place = memoryPlace();
    const { url, gate, grantId, upstream, events, over } = await openModels(place, answerChat());
    const got = await send(url, '/v1/chat/completions', chat());
    expect([got.status, got.body.toString()]).toEqual([200, chatAnswer()]);
    await over(1);
    expect(upstream.seen[0]?.body.toString()).toBe(JSON.stringify(chat()));
    const [execution] = executions(place.events());
    expect(execution).toMatchObject({
      outcome: 'success',
      tool_name: 'llm.openai/m-1',
      model_id: 'm-1',
      provider: 'openai',
      meter_basis_by_unit: { usd: 'estimated', 'tokens.input': 'reported', 'tokens.output': 'reported' },
    });
    expect(usedBy(execution)).toMatchObject({
      calls: '1',
      usd: '0.00002',
      'tokens.input': '10',
      'tokens.output': '5',
    });
    expect(execution).toHaveProperty('pricing_snapshot_digest');
    expect(execution?.output_digest).toMatchObject({
      b64: createHash('sha256').update(chatAnswer()).digest('base64url'),
    });
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.99998');
    const id = got.headers['x-northroot-authorization'];
    expect(events).toMatchObject([
      {
        api: 'openai-chat',
        status: 200,
        principal: AGENT,
        tool: 'llm.openai/m-1',
        effect: 'allow',
        outcome: 'success',
        authorization: id,
      },
    ]);
    expect(await place.verdict()).toBe('ok');
    expect(JSON.stringify(decisions(place.events())[0])).toContain('"code":"PROXY"');
  });

  it('streams, and costs what it states at its end', async () => {
    const place = memoryPlace();
    const pieces = chatEvents({ prompt_tokens: 10, completion_tokens: 5 });
    const { url, over } = await openModels(place, (_, response) => {
      response.setHeader('Content-Type', 'text/event-stream');
      for (const piece of pieces) response.write(piece);
      response.end();
    });
    const body = chat(100, { stream: true, stream_options: { include_usage: true } });
    const got = await send(url, '/v1/chat/completions', body);
    await over(1);
    expect(got.body.toString()).toBe(pieces.join(''));
    expect(usedBy(executions(place.events())[0])).toMatchObject({ usd: '0.00002' });
  });

  it('is of Anthropic too', async () => {
    const place = memoryPlace();
    const pieces = messagesEvents();
    const { url, over } = await openModels(place, (_, response) => {
      response.setHeader('Content-Type', 'text/event-stream');
      response.end(pieces.join(''));
    });
    const body = {
      model: 'm-1',
      max_tokens: 50,
      stream: true,
      messages: [{ role: 'user', content: 'Hello' }],
    };
    const got = await send(url, '/v1/messages', body, {
      'anthropic-version': '2023-06-01',
      'x-api-key': 'k',
    });
    expect(got.body.toString()).toBe(pieces.join(''));
    await over(1);
    const [execution] = executions(place.events());
    expect(execution).toMatchObject({ outcome: 'success', tool_name: 'llm.anthropic/m-1' });
    expect(usedBy(execution)).toMatchObject({ 'tokens.input': '10', 'tokens.output': '5', usd: '0.00002' });
  });

  it('that leaves its output open is limited', async () => {
    const place = memoryPlace();
    const { url, upstream } = await openModels(place, answerChat(), { models: { maxOutput: 321 } });
    expect((await send(url, '/v1/chat/completions', chat(null))).status).toBe(200);
    expect(JSON.parse(upstream.seen[0]?.body.toString() ?? '').max_completion_tokens).toBe(321);
    expect(reserved(decisions(place.events())[0])['tokens.output']).toBe('321');
  });

  it('that leaves its output open is limited by what the budget allows', async () => {
    const place = memoryPlace();
    const bounds = { meterCaps: { usd: '0.002' } };
    const { url, upstream, gate, grantId, over } = await openModels(place, answerChat(), { bounds });
    expect((await send(url, '/v1/chat/completions', chat(null))).status).toBe(200);
    await over(1);
    const limit = JSON.parse(upstream.seen[0]?.body.toString() ?? '').max_completion_tokens as number;
    expect(limit).toBeGreaterThan(500);
    expect(limit).toBeLessThan(1_000);
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.00198');
  });

  it('what costs nothing passes without a record', async () => {
    const place = memoryPlace();
    const { url, upstream, events } = await openModels(place, (_, response) => response.end('{"data":[]}'));
    const before = place.events().length;
    expect((await ask(`${url}/v1/models`)).body.toString()).toBe('{"data":[]}');
    expect(upstream.seen).toHaveLength(1);
    expect(place.events()).toHaveLength(before);
    expect(events).toMatchObject([{ api: 'free', status: 200 }]);
  });

  it('below an upstream that has the version in its path', async () => {
    const place = memoryPlace();
    const opened = await openModels(place, answerChat());
    const { serveModels } = await import('../../../src/gate/llm/serve-models.js');
    const { PRICES } = await import('./proxy-support.js');
    const server = await serveModels({
      gate: opened.gate,
      prices: PRICES,
      upstream: `${opened.upstream.url}/v1`,
      place: { port: 0 },
    });
    onTestFinished(() => server.close());
    await send(server.url, '/v1/chat/completions', chat());
    await send(server.url, '/chat/completions', chat());
    expect(opened.upstream.seen.map(({ request }) => request.url)).toEqual([
      '/v1/chat/completions',
      '/v1/chat/completions',
    ]);
  });
});

describe('a call that is denied', () => {
  it('429 in the form of the API, and nothing is forwarded', async () => {
    const place = memoryPlace();
    const { url, upstream, events } = await openModels(place, answerChat(), {
      bounds: { meterCaps: { usd: '0.0001' } },
    });
    const got = await send(url, '/v1/chat/completions', chat(1_000));
    const [decision] = decisions(place.events());
    expect(got.status).toBe(429);
    expect(got.headers['x-should-retry']).toBe('false');
    expect(got.headers['x-request-id']).toBe(events[0]?.authorization);
    expect(got.json.error).toMatchObject({ code: 'RESERVATION_OVER_CAP', type: 'insufficient_quota' });
    expect(upstream.seen).toHaveLength(0);
    expect(decision).toMatchObject({ decision: 'deny' });
    const headers = { 'anthropic-version': '2023-06-01' };
    const body = { model: 'm-1', max_tokens: 1_000, messages: [{ role: 'user', content: 'x' }] };
    const other = await send(url, '/v1/messages', body, headers);
    expect([other.status, other.json.error.type]).toEqual([429, 'rate_limit_error']);
  });

  it.each([
    ['another tool', { allowedTools: ['fs.*'] }, chat(), 'TOOL_NOT_ALLOWED'],
    ['a model without a price', {}, chat(100, { model: 'unknown' }), 'MODEL_UNKNOWN'],
    [
      'what cannot be bounded',
      {},
      { model: 'm-1', max_output_tokens: 50, input: 'x', previous_response_id: 'r' },
      'CALL_UNBOUNDED',
    ],
    ['no budget for the least', { meterCaps: { usd: '0.0000001' } }, chat(null), 'RESERVATION_OVER_CAP'],
  ])('for %s', async (_, bounds, body, code) => {
    const place = memoryPlace();
    const { url, upstream } = await openModels(place, answerChat(), {
      bounds: { meterCaps: { usd: '1' }, ...bounds },
    });
    const path = 'input' in body ? '/v1/responses' : '/v1/chat/completions';
    const got = await send(url, path, body);
    expect([got.status, got.json.error.code]).toEqual([429, code]);
    expect(upstream.seen).toHaveLength(0);
    expect(decisions(place.events())).toMatchObject([{ decision: 'deny', decision_code: code }]);
    expect(await place.verdict()).toBe('ok');
  });

  it('not for a model without a price where no grant bounds money', async () => {
    const place = memoryPlace();
    const { url, over } = await openModels(place, answerChat(), { bounds: { meterCaps: { calls: 5 } } });
    expect((await send(url, '/v1/chat/completions', chat(100, { model: 'unknown' }))).status).toBe(200);
    await over(1);
    const [execution] = executions(place.events());
    expect(usedBy(execution)).toMatchObject({ 'tokens.input': '10', 'tokens.output': '5' });
    expect(usedBy(execution)).not.toHaveProperty('usd');
  });

  it('not for what cannot be bounded where an amount is reserved, which is charged where usage is missing', async () => {
    const place = memoryPlace();
    const script: Script = (_, response) => {
      response.setHeader('Content-Type', 'application/json');
      response.end('{"object":"response","status":"completed"}');
    };
    const { url, gate, grantId } = await openModels(place, script, { models: { reserve: { usd: '0.4' } } });
    const body = { model: 'm-1', max_output_tokens: 50, input: 'x', previous_response_id: 'r' };
    expect((await send(url, '/v1/responses', body)).status).toBe(200);
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.6');
  });

  it.each([
    ['/v1/batches', { input_file_id: 'f', endpoint: '/v1/responses', completion_window: '24h' }],
    ['/v1/messages/batches', { requests: [] }],
  ])('not for %s where an amount of money is reserved, though it names no model', async (path, body) => {
    const script: Script = (_, response) => {
      response.setHeader('Content-Type', 'application/json');
      response.end('{"id":"batch_1"}');
    };
    const place = memoryPlace();
    const models = { reserve: { usd: '0.4' } };
    const { url, gate, grantId } = await openModels(place, script, { models });
    const all = [await send(url, path, body), await send(url, path, body), await send(url, path, body)];
    expect(all.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.2');
    const unpriced = await openModels(memoryPlace(), script, { models: { reserve: { calls: 1 } } });
    expect((await send(unpriced.url, path, body)).json.error.code).toBe('MODEL_UNKNOWN');
  });

  it('names who may approve, and passes when that is done', async () => {
    const place = memoryPlace();
    const bounds = {
      meterCaps: { usd: '1' },
      approvals: [{ tools: ['llm.*'], approvers: ['human:*'] }],
    } as never;
    const { url, upstream, gate } = await openModels(place, answerChat(), { bounds });
    const key = { 'Idempotency-Key': 'k-1' };
    const got = await send(url, '/v1/chat/completions', chat(), key);
    expect([got.status, got.json.error.code]).toEqual([429, 'APPROVAL_REQUIRED']);
    expect(got.json.error.message).toContain('human:*');
    await gate.ledger.approve(String(got.headers['x-request-id']), { principalId: 'human:olga' });
    expect((await send(url, '/v1/chat/completions', chat(), key)).status).toBe(200);
    expect(upstream.seen).toHaveLength(1);
  });

  it.each([
    ['no JSON', '{', 400],
    ['duplicate keys', '{"model":"m-1","model":"m-2","messages":[]}', 400],
    ['a negative limit', JSON.stringify(chat(-1)), 400],
  ])('400 for %s', async (_, body, status) => {
    const { url, upstream } = await openModels(memoryPlace(), answerChat());
    const got = await send(url, '/v1/chat/completions', body);
    expect(got.status).toBe(status);
    expect(got.json.error.type).toBe('invalid_request_error');
    expect(upstream.seen).toHaveLength(0);
  });

  it.each([
    '/v1/audio/unknown',
    '/v1/fine_tuning/jobs',
    '/x',
    '/v1/chat/completions/',
    '//v1/chat/completions',
  ])('404 for the path %s', async (path) => {
    const { url, upstream } = await openModels(memoryPlace(), answerChat());
    expect((await send(url, path, chat())).status).toBe(404);
    expect(upstream.seen).toHaveLength(0);
  });
});

describe('an answer that is not as it should be', () => {
  const use = async (
    script: Script,
    body: object = chat(100),
    path = '/v1/chat/completions',
  ): Promise<{ event: Event | undefined; most: Record<string, string>; status: number; verdict: string }> => {
    const place = memoryPlace();
    const { url, close } = await openModels(place, script);
    const got = await send(url, path, body).catch(() => ({ status: 0 }));
    await close();
    const events = place.events();
    return {
      event: executions(events)[0],
      most: reserved(decisions(events)[0]),
      status: got.status,
      verdict: await place.verdict(),
    };
  };
  const json =
    (text: string, status = 200): Script =>
    (_, response) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(text);
    };

  it.each([400, 401, 429, 500, 503, 529])(
    'an error of the upstream, %i: nothing is charged',
    async (status) => {
      const { event, status: got } = await use(json('{"error":{"message":"no","type":"t"}}', status));
      expect(got).toBe(status);
      expect(event?.outcome).toBe('failure');
      expect(usedBy(event)).not.toHaveProperty('usd');
    },
  );

  it('a dead upstream: nothing is charged', async () => {
    const place = memoryPlace();
    const { url, gate, grantId } = await openModels(place, answerChat(), {
      models: { upstream: 'http://127.0.0.1:1' },
    });
    const got = await send(url, '/v1/chat/completions', chat());
    expect([got.status, got.json.error.code]).toEqual([502, 'UPSTREAM_UNREACHABLE']);
    expect(got.headers['x-should-retry']).toBe('true');
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('1');
  });

  it('one that breaks before its answer: all is charged that was reserved', async () => {
    const { event, most, status } = await use((_, response) => void response.destroy());
    expect([status, event?.outcome]).toEqual([502, 'unknown']);
    expect(usedBy(event)['usd']).toBe(most['usd']);
  });

  it.each([
    ['usage is missing', chatAnswer(null)],
    ['usage is no usage', chatAnswer('free')],
    ['usage is negative', chatAnswer({ prompt_tokens: -5, completion_tokens: -5 })],
    ['usage is absurd', chatAnswer({ prompt_tokens: 1e30, completion_tokens: 0 })],
    ['usage has a fraction', chatAnswer({ prompt_tokens: 0.1, completion_tokens: 0 })],
    ['the answer is cut', chatAnswer().slice(0, 60)],
    ['the answer is no JSON', 'hello'],
    ['the answer is empty', ''],
  ])('%s: it is not free, and not more than reserved', async (_, text) => {
    const { event, most, verdict } = await use(json(text));
    const usd = Number(usedBy(event)['usd']);
    expect(usd).toBeGreaterThan(0.000008);
    expect(usd).toBeLessThanOrEqual(Number(most['usd']));
    expect(event).toMatchObject({ meter_basis_by_unit: { usd: 'estimated' } });
    expect(verdict).toBe('ok');
  });

  it('one that goes on in the background: all is charged that was reserved', async () => {
    const { event, most, verdict } = await use(
      json(JSON.stringify({ id: 'resp_1', model: 'm-1', status: 'queued', output: [], usage: null })),
      { model: 'm-1', input: 'Write a book.', max_output_tokens: 50_000, background: true },
      '/v1/responses',
    );
    expect(event?.outcome).toBe('unknown');
    expect(usedBy(event)).toMatchObject({ usd: most['usd'], 'tokens.output': '50000' });
    expect(verdict).toBe('ok');
  });

  it('usage above the reservation is charged as stated, and verification shows it', async () => {
    const { event, verdict } = await use(
      json(chatAnswer({ prompt_tokens: 10_000, completion_tokens: 5_000 })),
    );
    expect(usedBy(event)).toMatchObject({ usd: '0.02' });
    expect(verdict).toBe('violation');
  });

  it('a stream that breaks is unknown, and not free', async () => {
    const [first = ''] = chatEvents(undefined);
    const { event, most } = await use(
      (_, response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.write(first);
        setTimeout(() => response.destroy(), 20);
      },
      chat(100, { stream: true }),
    );
    expect(event?.outcome).toBe('unknown');
    const usd = Number(usedBy(event)['usd']);
    expect(usd).toBeGreaterThan(0);
    expect(usd).toBeLessThanOrEqual(Number(most['usd']));
  });

  it('a client that leaves pays', async () => {
    const place = memoryPlace();
    const [first = ''] = chatEvents(undefined);
    const { url, gate, close } = await openModels(place, (_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write(first);
    });
    const asked = ask(
      `${url}/v1/chat/completions`,
      { method: 'POST', headers: { 'Content-Type': 'application/json' } },
      JSON.stringify(chat(100, { stream: true })),
    );
    asked.catch(() => undefined);
    await new Promise((resolve) => asked.request.once('response', resolve));
    asked.request.destroy();
    while (gate.openCalls > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await close();
    const [execution] = executions(place.events());
    expect(execution?.outcome).toBe('unknown');
    expect(Number(usedBy(execution)['usd'])).toBeGreaterThan(0);
  });

  it.each([
    ['within its answer', true],
    ['before its answer', false],
  ])('a grant that is withdrawn with a stop ends its calls, %s', async (_, isBegun) => {
    const place = memoryPlace();
    const [first = ''] = chatEvents(undefined);
    const { url, grantId, events, over } = await openModels(place, (_request, response) => {
      if (!isBegun) return;
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write(first);
    });
    const answered = send(url, '/v1/chat/completions', chat(100, { stream: true }));
    while (!place.events().some(({ event_type: type }) => type === 'x.northroot.start'))
      await new Promise((resolve) => setTimeout(resolve, 10));
    const owner = await openLive(place, { principalId: 'human:owner' });
    await owner.suspend(grantId, { reason: 'INCIDENT', inFlight: 'stop' });
    const got = await answered;
    expect([got.status, got.isWhole]).toEqual(isBegun ? [200, false] : [403, true]);
    await over(1);
    expect(events).toMatchObject([{ code: 'GRANT_REVOKED', outcome: 'unknown' }]);
    const [execution] = executions(place.events());
    expect(execution?.outcome).toBe('unknown');
    expect(Number(usedBy(execution)['usd'])).toBeGreaterThan(0);
    expect(await place.verdict()).toBe('ok');
  });

  it('a redirect is not followed, and not charged', async () => {
    const { event, status } = await use((_, response) =>
      response.writeHead(302, { Location: 'http://127.0.0.1:1/' }).end(),
    );
    expect(status).toBe(502);
    expect(event).toMatchObject({ outcome: 'failure', error_code: 'UPSTREAM_REDIRECTED' });
    expect(usedBy(event)).not.toHaveProperty('usd');
  });
});

describe('an Idempotency-Key', () => {
  const key = { 'Idempotency-Key': 'key-1' };

  it('of a call that was denied as another one ran is allowed when that has ended', async () => {
    const place = memoryPlace();
    const held: (() => void)[] = [];
    const bounds = { meterCaps: { usd: '1' }, concurrencyLimit: 1 };
    const script: Script = (...asked) => {
      if (held.length > 0) answerChat()(...asked);
      else held.push(() => answerChat()(...asked));
    };
    const { url, upstream, over } = await openModels(place, script, { bounds });
    const first = send(url, '/v1/chat/completions', chat());
    await expect.poll(() => upstream.seen).toHaveLength(1);
    const denied = await send(url, '/v1/chat/completions', chat(), key);
    expect(denied).toMatchObject({ status: 429, json: { error: { code: 'CONCURRENCY_EXCEEDED' } } });
    expect(denied.headers['retry-after']).toBe('1');
    held[0]?.();
    await first;
    await over(2);
    expect((await send(url, '/v1/chat/completions', chat(), key)).status).toBe(200);
    await over(3);
    expect(await place.verdict()).toBe('ok');
  });

  it('has one reservation while its call is open, here and elsewhere', async () => {
    const place = memoryPlace();
    let finish: () => void = () => undefined;
    const { url, upstream, gate } = await openModels(place, (_, response) => {
      finish = () => {
        response.setHeader('Content-Type', 'application/json');
        response.end(chatAnswer());
      };
    });
    const first = send(url, '/v1/chat/completions', chat(), key);
    while (upstream.seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = await send(url, '/v1/chat/completions', chat(), key);
    expect([second.status, second.json.error.code]).toEqual([409, 'REQUEST_IN_PROGRESS']);
    const { serveModels } = await import('../../../src/gate/llm/serve-models.js');
    const { PRICES } = await import('./proxy-support.js');
    const elsewhere = await serveModels({ gate, prices: PRICES, upstream: upstream.url, place: { port: 0 } });
    const third = await send(elsewhere.url, '/v1/chat/completions', chat(), key);
    expect([third.status, third.json.error.code]).toEqual([409, 'REQUEST_IN_PROGRESS']);
    await elsewhere.close();
    finish();
    expect((await first).status).toBe(200);
    const fourth = await send(url, '/v1/chat/completions', chat(), key);
    expect([fourth.status, fourth.json.error.code]).toEqual([409, 'REQUEST_REPEATED']);
    const other = await send(url, '/v1/chat/completions', chat(99), key);
    expect([other.status, other.json.error.code]).toEqual([409, 'REQUEST_CONFLICT']);
    expect(upstream.seen).toHaveLength(1);
  });

  it('has another try after an error of the upstream', async () => {
    const place = memoryPlace();
    let count = 0;
    const { url, upstream } = await openModels(place, (request, response, body) => {
      count += 1;
      if (count > 2) return answerChat()(request, response, body);
      response.writeHead(500).end('{}');
    });
    const statuses: number[] = [];
    for (let n = 0; n < 4; n += 1)
      statuses.push((await send(url, '/v1/chat/completions', chat(), key)).status);
    expect(statuses).toEqual([500, 500, 200, 409]);
    expect(upstream.seen).toHaveLength(3);
    expect(executions(place.events()).map(({ outcome }) => outcome)).toEqual([
      'failure',
      'failure',
      'success',
    ]);
  });
});

describe('who asks', () => {
  const { token, entry } = makeToken({ name: 'ci', principals: [AGENT], tools: ['llm.openai/*'] });
  const tokens = Tokens.parse(encodeUtf8(JSON.stringify({ tokens: [entry] })));

  it('says so by a token, which no provider sees', async () => {
    const place = memoryPlace();
    const { url, upstream } = await openModels(place, answerChat(), { models: { tokens } });
    expect((await send(url, '/v1/chat/completions', chat())).status).toBe(401);
    expect(
      (await send(url, '/v1/chat/completions', chat(), { 'X-Northroot-Token': 'nr_wrong' })).status,
    ).toBe(401);
    expect((await ask(`${url}/v1/models`)).status).toBe(401);
    expect((await ask(`${url}/northroot/budget`)).status).toBe(401);
    const headers = { 'X-Northroot-Token': token, Authorization: 'Bearer sk-theirs' };
    expect((await send(url, '/v1/chat/completions', chat(), headers)).status).toBe(200);
    expect(
      (await send(url, '/v1/chat/completions', chat(), { Authorization: `Bearer ${token}` })).status,
    ).toBe(200);
    const misspelt = { ...headers, Authorization: `Bearer\t${token}`, 'X-Api-Key': `"${token}"` };
    expect((await send(url, '/v1/chat/completions', chat(), misspelt)).status).toBe(200);
    const other = { ...headers, 'anthropic-version': '2023-06-01' };
    const body = { model: 'm-1', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] };
    expect((await send(url, '/v1/messages', body, other)).status).toBe(403);
    const foreign = { ...headers, 'X-Northroot-Principal': 'agent:other' };
    expect((await send(url, '/v1/chat/completions', chat(), foreign)).status).toBe(403);
    expect(upstream.seen).toHaveLength(3);
    expect(upstream.seen[0]?.request.headers.authorization).toBe('Bearer sk-theirs');
    expect(JSON.stringify(upstream.seen.map(({ request }) => request.rawHeaders))).not.toContain('nr_');
  });

  it('does not need the key of the provider, where the proxy has it', async () => {
    const { url, upstream } = await openModels(memoryPlace(), answerChat(), {
      models: { tokens, upstreamKey: 'sk-own' },
    });
    await send(url, '/v1/chat/completions', chat(), { Authorization: `Bearer ${token}`, 'X-Api-Key': 'x' });
    expect(upstream.seen[0]?.request.headers.authorization).toBe('Bearer sk-own');
    expect(upstream.seen[0]?.request.headers['x-api-key']).toBeUndefined();
  });

  it('is told what is left', async () => {
    const { url } = await openModels(memoryPlace(), answerChat());
    await send(url, '/v1/chat/completions', chat());
    const got = JSON.parse((await ask(`${url}/northroot/budget`)).body.toString()) as {
      grants: { meters: { unit: string; left: unknown }[] }[];
    };
    expect(got.grants[0]?.meters[0]).toMatchObject({ unit: 'usd', left: { t: 'dec', m: '99998', s: 5 } });
    expect((await ask(`${url}/healthz`)).status).toBe(200);
    expect((await ask(`${url}/northroot/else`)).status).toBe(404);
  });

  it('must be of this machine without tokens', async () => {
    const place = { host: '0.0.0.0', port: 0 };
    await expect(openModels(memoryPlace(), answerChat(), { models: { place } })).rejects.toThrow(TypeError);
  });
});

describe('a ledger that cannot be asked', () => {
  const broken = () => Promise.reject(new Error('the disk is gone'));

  it('503, and nothing is forwarded', async () => {
    const place = memoryPlace();
    const { url, upstream, gate } = await openModels(place, answerChat());
    Object.assign(gate, { decide: broken });
    const got = await send(url, '/v1/chat/completions', chat());
    expect(got.status).toBe(503);
    expect(got.body.toString()).not.toContain('disk');
    expect(upstream.seen).toHaveLength(0);
  });

  it('forwards unrecorded where it shall, and says so', async () => {
    const place = memoryPlace();
    const { url, upstream, gate, events } = await openModels(place, answerChat(), {
      models: { fail: 'open' },
    });
    Object.assign(gate, { decide: broken });
    expect((await send(url, '/v1/chat/completions', chat())).status).toBe(200);
    expect(upstream.seen).toHaveLength(1);
    expect(events).toMatchObject([{ unrecorded: true, code: 'INTERNAL_ERROR', status: 200 }]);
  });

  it('is opened again after it has failed, and settles what passed meanwhile', async () => {
    const place = filePlace();
    let release: () => void = () => undefined;
    const script: Script = (request, response, body) => {
      if (body.length < 150) return answerChat()(request, response, body);
      release = () => answerChat()(request, response, body);
    };
    const opened = await openModels(place, script, {
      models: { reopen: () => reopen(place) },
    });
    const { url, upstream } = opened;
    const passing = send(url, '/v1/chat/completions', chat(100, { user: 'x'.repeat(100) }));
    while (upstream.seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    renameSync(place.path, `${place.path}.away`);
    const failed = await send(url, '/v1/chat/completions', chat());
    expect([failed.status, failed.headers['x-should-retry']]).toEqual([503, 'true']);
    renameSync(`${place.path}.away`, place.path);
    let status = 0;
    while (status !== 200) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      ({ status } = await send(url, '/v1/chat/completions', chat()));
    }
    expect(status).toBe(200);
    release();
    expect((await passing).status).toBe(200);
    await opened.close();
    expect(executions(place.events()).map(({ outcome }) => outcome)).toEqual(['success', 'success']);
    expect(await place.verdict()).toBe('ok');
  });

  it('not for a denial, and not for a request that is malformed', async () => {
    const { url, upstream } = await openModels(memoryPlace(), answerChat(), {
      models: { fail: 'open' },
      bounds: { meterCaps: { usd: '0' } },
    });
    expect((await send(url, '/v1/chat/completions', chat())).status).toBe(429);
    expect((await send(url, '/v1/chat/completions', '{')).status).toBe(400);
    expect(upstream.seen).toHaveLength(0);
  });

  it('an execution that cannot be recorded leaves the call charged, and is told', async () => {
    const { url, gate, grantId, events, over } = await openModels(memoryPlace(), answerChat());
    Object.assign(gate, { settle: broken });
    expect((await send(url, '/v1/chat/completions', chat())).status).toBe(200);
    await over(1);
    expect(events).toMatchObject([{ unsettled: 'INTERNAL_ERROR' }]);
    expect(Number(await leftOf(gate.ledger, grantId, 'usd'))).toBeLessThan(0.9999);
  });
});

it('in a dry run all passes, and is recorded', async () => {
  const place = memoryPlace();
  const { url, upstream, events, over } = await openModels(place, answerChat(), {
    bounds: { meterCaps: { usd: '0.0003' } },
    gate: { shadow: true },
    models: { dryRun: true },
  });
  expect((await send(url, '/v1/chat/completions', chat(1_000))).status).toBe(200);
  expect((await send(url, '/v1/chat/completions', chat(100, { model: 'unknown' }))).status).toBe(200);
  expect((await send(url, '/v1/chat/completions', chat(10))).status).toBe(200);
  expect(upstream.seen).toHaveLength(3);
  await over(3);
  expect(events.map(({ effect }) => effect)).toEqual(['deny', 'deny', 'allow']);
  expect(decisions(place.events()).map(({ decision }) => decision)).toEqual(['deny', 'deny', 'allow']);
  expect(executions(place.events())).toHaveLength(1);
  expect(await place.verdict()).toBe('ok');
});

it('keys and prompts are in no log, no error and no ledger', async () => {
  const place = filePlace();
  const secrets = ['sk-planted-key', 'planted prompt', 'planted answer', 'planted-cookie', 'planted-idem'];
  const script: Script = (request, response, body) => {
    response.setHeader('Content-Type', 'application/json');
    if (body.includes('broken')) response.destroy();
    else if (body.includes('error')) response.writeHead(500).end('{"error":{"message":"planted answer"}}');
    else response.end(chatAnswer().replace('Hello.', 'planted answer'));
  };
  const { url, events, close } = await openModels(place, script);
  const headers = { Authorization: 'Bearer sk-planted-key', Cookie: 'a=planted-cookie' };
  const replies: string[] = [];
  for (const text of ['fine', 'broken', 'error']) {
    const body = chat(100, { messages: [{ role: 'user', content: `planted prompt ${text}` }] });
    const got = await send(url, '/v1/chat/completions', body, headers);
    if (got.status === 502) replies.push(got.body.toString());
  }
  const malformed = '{"planted prompt":1,"planted prompt":2}';
  replies.push((await send(url, '/v1/chat/completions', malformed, headers)).body.toString());
  const denied = chat(900_000_000, { messages: [{ role: 'user', content: 'planted prompt' }] });
  replies.push((await send(url, '/v1/chat/completions', denied, headers)).body.toString());
  await close();
  const all = [JSON.stringify(events), ...replies, readFileSync(place.path, 'utf8')].join('\n');
  for (const secret of secrets) expect(all).not.toContain(secret);
  expect((await verifyLedger(place.path)).verdict).toBe('ok');
});
