/**
 * An agent that wants to spend more than it reserves, and a provider that reads requests as carelessly as any does: keys in any case, the
 * last of two, compressed bodies, other methods by header. What it charges is never above what was reserved.
 */

import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { memoryPlace } from '../../agent/support.js';
import { ask } from '../proxy/support.js';
import { openModels, type OpenedModels, type Script } from './proxy-support.js';
import { CHAT, MESSAGES, RESPONSES, user } from './support.js';

type Members = Readonly<Record<string, unknown>>;

/** The most that a model makes if it is not limited. */
const UNLIMITED = 200_000;
/** What a search, a file, or what is kept of earlier turns adds to the input. */
const FETCHED = 150_000;

/** A careless provider: what a request costs it in tokens. */
function bill(members: Members, body: Buffer): { input: number; output: number } {
  const folded = new Map(
    Object.entries(members).map(([name, value]) => [name.normalize('NFKC').toLowerCase(), value]),
  );
  const text = JSON.stringify(members);
  const number = (...names: readonly string[]): number | undefined =>
    names.map((name) => Number(folded.get(name) ?? Number.NaN)).find((each) => each > 0);
  const fetches = [
    ...['previous_response_id', 'conversation', 'prompt', 'plugins', 'container', 'mcp_servers', 'fallbacks'],
    ...['web_search_options', 'search_parameters'],
  ].filter((name) => folded.has(name)).length;
  const parts = [...text.matchAll(/"type":"([a-z_0-9]+)"/g)].map(([, type = '']) => type);
  const images = parts.filter((type) => /image/.test(type)).length;
  const files = parts.filter((type) =>
    /^(?:file|input_file|document|item_reference|web_search.*|mcp)$/.test(type),
  ).length;
  const tools = folded.has('tools') || folded.has('functions') ? 600 : 0;
  const limit = Math.max(
    ...['max_tokens', 'max_completion_tokens', 'max_output_tokens'].map((name) => number(name) ?? 0),
  );
  const choices = Math.max(number('n') ?? 1, number('best_of') ?? 1);
  const factor = folded.get('service_tier') === 'priority' || folded.get('speed') === 'fast' ? 6 : 1;
  return {
    // A template adds a few tokens to each message.
    input:
      factor *
      (Buffer.byteLength(text.normalize('NFKC')) + images * 4_000 + (files + fetches) * FETCHED + tools),
    output: factor * choices * (limit > 0 ? limit : UNLIMITED) + (body.length === 0 ? UNLIMITED : 0),
  };
}

const provider: Script = (request, response, body) => {
  const isZipped = /gzip/.test(String(request.headers['content-encoding']));
  let members: Members = {};
  try {
    members = JSON.parse(
      (isZipped ? gunzipSync(body) : body).toString('utf8').replace(/^\ufeff/, ''),
    ) as Members;
  } catch {
    // It then makes what it likes.
  }
  const { input, output } = bill(members, body);
  const path = request.url ?? '';
  const usage = path.includes('chat')
    ? { prompt_tokens: input, completion_tokens: output }
    : { input_tokens: input, output_tokens: output };
  response.setHeader('Content-Type', 'application/json');
  response.end(
    JSON.stringify({ model: 'm-1', status: 'completed', choices: [], content: [], output: [], usage }),
  );
};

const chat = (more: Members = {}): Members => ({
  model: 'm-1',
  messages: [user('hi')],
  max_completion_tokens: 50,
  ...more,
});
const responses = (more: Members = {}): Members => ({
  model: 'm-1',
  input: 'hi',
  max_output_tokens: 50,
  ...more,
});
const messages = (more: Members = {}): Members => ({
  model: 'm-1',
  messages: [user('hi')],
  max_tokens: 50,
  ...more,
});
const raw = (text: string): string => JSON.stringify(chat()).replace('"max_completion_tokens":50', text);
const IMAGE = 'data:image/png;base64,AAAA';

type Attack = readonly [path: string, body: Members | string | Buffer, headers?: Record<string, string>];

const ATTACKS: readonly Attack[] = [
  [CHAT, chat()],
  [CHAT, chat({ max_completion_tokens: undefined })],
  [CHAT, chat({ max_completion_tokens: null })],
  [CHAT, chat({ max_completion_tokens: undefined, n: 100 })],
  [CHAT, chat({ max_tokens: 90_000 })],
  [CHAT, chat({ max_tokens: 90_000, n: 3 })],
  [CHAT, chat({ MAX_COMPLETION_TOKENS: 100_000 })],
  [CHAT, chat({ 'max_completion_token\u017f': 100_000 })],
  [CHAT, chat({ N: 100 })],
  [CHAT, raw('"max_completion_tokens":50,"max_completion_tokens":100000')],
  [CHAT, raw('"max_completion_tokens":50,"max_completion_token\\u0073":100000')],
  [CHAT, raw('"max_completion_tokens":"100000"')],
  [CHAT, raw('"max_completion_tokens":1e5')],
  [CHAT, raw('"max_completion_tokens":-1')],
  [CHAT, raw('"max_completion_tokens":0')],
  [CHAT, raw('"max_completion_tokens":50,"x":1')],
  [CHAT, chat({ messages: Array.from({ length: 200 }, () => user('')) })],
  [CHAT, chat({ messages: [user('\ufdfa'.repeat(1_000))] })],
  [CHAT, chat({ messages: [user([{ type: 'image_url', image_url: { url: IMAGE } }])] })],
  [
    CHAT,
    chat({ messages: [user([{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }])] }),
  ],
  [CHAT, chat({ messages: [user(Array(20).fill({ type: 'image_url', image_url: IMAGE }))] })],
  [CHAT, chat({ messages: [user([{ type: 'file', file: { file_id: 'f' } }])] })],
  [CHAT, chat({ messages: [user([{ type: 'document', file: { file_id: 'f' } }])] })],
  [CHAT, chat({ tools: [{ type: 'function', function: { name: 'f' } }] })],
  [CHAT, chat({ tools: [{ type: 'web_search' }] })],
  [CHAT, chat({ functions: [{ name: 'f' }] })],
  [CHAT, chat({ service_tier: 'priority' })],
  [CHAT, chat({ plugins: [{ id: 'web' }] })],
  [CHAT, chat({ search_parameters: { mode: 'on' } })],
  [CHAT, chat({ web_search_options: {} })],
  [CHAT, gzipSync(JSON.stringify(chat({ max_completion_tokens: 100_000 }))), { 'Content-Encoding': 'gzip' }],
  [CHAT, JSON.stringify(chat({ max_completion_tokens: 100_000 })), { 'Content-Type': 'text/plain' }],
  [CHAT, JSON.stringify(chat()), { 'Content-Type': 'application/json; charset=utf-7' }],
  [CHAT, `\ufeff${JSON.stringify(chat())}`],
  [CHAT, JSON.stringify(chat()), { Connection: 'content-type' }],
  [CHAT, JSON.stringify(chat()), { 'X-HTTP-Method-Override': 'PUT' }],
  [`${CHAT}?max_completion_tokens=100000`, chat()],
  ['/v1/moderations', chat({ max_completion_tokens: 100_000 }), { 'X-HTTP-Method-Override': 'PUT' }],
  ['/v1/moderations/../chat/completions', chat({ max_completion_tokens: 100_000 })],
  ['/v1/moderations/%2e%2e/chat/completions', chat({ max_completion_tokens: 100_000 })],
  ['/v1//chat/completions', chat({ max_completion_tokens: 100_000 })],
  ['/v1/chat/completions/', chat({ max_completion_tokens: 100_000 })],
  [RESPONSES, responses()],
  [RESPONSES, responses({ max_output_tokens: undefined })],
  [RESPONSES, responses({ max_tokens: 100_000 })],
  [RESPONSES, responses({ previous_response_id: 'resp_1' })],
  [RESPONSES, responses({ conversation: 'conv_1' })],
  [RESPONSES, responses({ prompt: { id: 'p' } })],
  [RESPONSES, responses({ input: [{ type: 'item_reference', id: 'msg_1' }] })],
  [RESPONSES, responses({ input: [user([{ type: 'input_file', file_id: 'f' }])] })],
  [RESPONSES, responses({ input: [user([{ type: 'input_image', file_id: 'f' }])] })],
  [RESPONSES, responses({ tools: [{ type: 'mcp', server_url: 'https://example.com' }] })],
  [MESSAGES, messages()],
  [MESSAGES, messages({ max_tokens: undefined })],
  [MESSAGES, messages({ max_completion_tokens: 100_000 })],
  [
    MESSAGES,
    messages({ messages: [user([{ type: 'image', source: { type: 'url', url: 'https://example.com' } }])] }),
  ],
  [
    MESSAGES,
    messages({
      messages: [user([{ type: 'document', source: { type: 'url', url: 'https://example.com' } }])],
    }),
  ],
  [
    MESSAGES,
    messages({
      messages: [
        user([
          { type: 'tool_result', content: [{ type: 'document', source: { type: 'base64', data: 'AA' } }] },
        ]),
      ],
    }),
  ],
  [MESSAGES, messages({ tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 1 }] })],
  [MESSAGES, messages({ mcp_servers: [{ type: 'url', url: 'https://example.com' }] })],
  [MESSAGES, messages({ container: 'c' })],
  [MESSAGES, messages({ speed: 'fast' })],
];

async function attack({ url }: OpenedModels, [path, body, headers = {}]: Attack): Promise<number> {
  const bytes = Buffer.isBuffer(body)
    ? body
    : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const { status } = await ask(
    `${url}${path}`,
    { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers } },
    bytes,
  );
  return status;
}

it('no call costs more than was reserved for it, however it is asked', async () => {
  const place = memoryPlace();
  const opened = await openModels(place, provider, { bounds: { meterCaps: { usd: '1000' } } });
  const statuses: number[] = [];
  for (const each of ATTACKS) statuses.push(await attack(opened, each));
  expect(new Set(statuses)).toEqual(new Set([200, 400, 404, 415, 429]));
  // Some pass, or nothing was tried.
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(15);
  const isFree = ({ url = '' }: { readonly url?: string | undefined }): boolean =>
    url.includes('moderations');
  const charged = opened.upstream.seen.filter(({ request }) => !isFree(request));
  const executions = place.events().filter(({ outcome }) => outcome !== undefined);
  expect(executions).toHaveLength(charged.length);
  expect(executions.every(({ outcome }) => outcome === 'success')).toBe(true);
  await opened.close();
  expect(await place.verdict()).toBe('ok');
});
