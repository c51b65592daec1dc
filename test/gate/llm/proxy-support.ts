/** Scripted providers, and proxies over ledgers, of the tests of the proxy for models. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, onTestFinished } from 'vitest';
import type { AmountsByUnit } from '../../../src/base/value/meter.js';
import { Gate, type GateOptions } from '../../../src/gate/gate.js';
import type { ModelProxyEvent } from '../../../src/gate/llm/model-proxy.js';
import { serveModels, type ServeModelsOptions } from '../../../src/gate/llm/serve-models.js';
import { parsePrices, type Prices } from '../../../src/gate/price/price-file.js';
import type { GrantOptions } from '../../../src/log/policy/draft-grant.js';
import { signer } from '../../writer/support.js';
import { AGENT, grant, openLive, type Place } from '../../agent/support.js';
import { ask, type Got, type Served, serveUpstream } from '../proxy/support.js';
import { model, priceFile } from '../samples.js';

/** A dollar for a million tokens of input, two for one of output. */
export const PRICES: Prices = parsePrices(
  priceFile(
    ['openai', 'anthropic'].map((provider) =>
      model({
        provider,
        model: 'm-1',
        aliases: [],
        prefixes: [],
        periods: [
          {
            prices: [
              { unit: 'tokens.input', usd: '0.000001' },
              { unit: 'tokens.output', usd: '0.000002' },
            ],
          },
        ],
      }),
    ),
  ),
);

export interface OpenedModels {
  readonly url: string;
  readonly gate: Gate;
  readonly grantId: string;
  readonly upstream: Served;
  readonly events: ModelProxyEvent[];
  /** Waits until so many requests are over, and settled. */
  readonly over: (count: number) => Promise<void>;
  close(): Promise<void>;
}

export type Script = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;

export interface ModelsSetting {
  readonly bounds?: Partial<GrantOptions>;
  readonly gate?: GateOptions;
  readonly models?: Partial<ServeModelsOptions>;
}

/** A proxy over a new ledger, with a grant for the agent and a scripted provider. */
export async function openModels(
  place: Place,
  script: Script,
  { bounds = { meterCaps: { usd: '1' } }, gate: how = {}, models = {} }: ModelsSetting = {},
): Promise<OpenedModels> {
  const ledger = await openLive(place);
  const grantId = await grant(ledger, { allowedTools: ['llm.*'], ...bounds });
  await ledger.close();
  const upstream = await serveUpstream(script);
  const gate = await Gate.open(place.open(), { signer, principalId: AGENT, lockTimeoutMs: 60_000, ...how });
  const events: ModelProxyEvent[] = [];
  const server = await serveModels({
    gate,
    upstream: upstream.url,
    prices: PRICES,
    place: { port: 0 },
    onEvent: (event) => events.push(event),
    ...models,
  });
  let isClosed = false;
  const close = async (): Promise<void> => {
    if (isClosed) return;
    isClosed = true;
    await server.close();
    await gate.close();
  };
  onTestFinished(close);
  const over = (count: number): Promise<void> => expect.poll(() => events.length).toBe(count);
  return { url: server.url, gate, grantId, upstream, events, over, close };
}

export type Reply = Got & {
  readonly json: { readonly error: { code: string; message: string; type: string } };
};

/** Sends a request in JSON. */
export async function send(
  url: string,
  path: string,
  body: object | string,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const got = await ask(
    `${url}${path}`,
    { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers } },
    text,
  );
  let json: unknown;
  try {
    json = JSON.parse(got.body.toString());
  } catch {
    json = undefined;
  }
  return { ...got, json: json as Reply['json'] };
}

/** A chat request that may make so many tokens. */
export function chat(most: number | null = 100, more: object = {}): object {
  return {
    model: 'm-1',
    ...(most === null ? {} : { max_completion_tokens: most }),
    messages: [{ role: 'user', content: 'Say hello.' }],
    ...more,
  };
}

export function chatAnswer(
  usage: unknown = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
): string {
  return JSON.stringify({
    id: 'c-1',
    object: 'chat.completion',
    model: 'm-1',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
    usage,
  });
}

export function answerChat(usage?: unknown): Script {
  return (_, response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(chatAnswer(usage));
  };
}

/** A streamed chat: pieces of text, and the usage at its end. */
export function chatEvents(usage: AmountsByUnit | undefined): string[] {
  const event = (more: object): string =>
    `data: ${JSON.stringify({ id: 'c-1', object: 'chat.completion.chunk', model: 'm-1', ...more })}\n\n`;
  const piece = (content: string) =>
    event({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
  return [
    piece('Hel'),
    piece('lo.'),
    event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    ...(usage === undefined ? [] : [event({ choices: [], usage })]),
    'data: [DONE]\n\n',
  ];
}

export function messagesEvents(): string[] {
  const event = (type: string, more: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  return [
    event('message_start', {
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm-1',
        content: [],
        stop_reason: null,
        usage: { input_tokens: 10, output_tokens: 1 },
      },
    }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello.' } }),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } }),
    event('message_stop', {}),
  ];
}
