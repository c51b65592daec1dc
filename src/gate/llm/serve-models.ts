/** Serves a proxy for the APIs of models on an address or a Unix socket, and says how clients find it. */

import type { HttpServer, ListenPlace } from '../../base/platform/serve-http.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { meters } from '../../base/value/meter.js';
import { isLoopback } from '../proxy/headers.js';
import { serveProxy } from '../proxy/serve-proxy.js';
import { ModelProxy, type ModelProxyOptions } from './model-proxy.js';

export interface ServeModelsOptions extends ModelProxyOptions {
  /** The provider, such as `https://api.openai.com` or `https://api.anthropic.com`; nothing else is asked. */
  readonly upstream: string | URL;
  /** Other addresses than this machine's loopback require `tokens`. Default: port 8790 of the loopback. */
  readonly place?: ListenPlace | undefined;
  /** Names besides this machine's loopback that `Host` may have. */
  readonly hosts?: readonly string[] | undefined;
  /** Web pages that may ask, such as `https://app.example`. Default: none. */
  readonly origins?: readonly string[] | undefined;
  /** Certificates that may issue the upstream's, PEM. Default: Node's. */
  readonly ca?: string | undefined;
  /** How long the upstream may send nothing, in milliseconds. Default 600,000 (10 minutes). */
  readonly idleTimeoutMs?: number | undefined;
}

/** Where `northroot llm` listens unless it is told otherwise. */
export const DEFAULT_MODELS_PORT = 8790;
const DEFAULT_PLACE: ListenPlace = { host: '127.0.0.1', port: DEFAULT_MODELS_PORT };
const MAX_OUTPUT = 10_000_000;
const VERSIONED = /\/v1\/*$/;

const OPTION_TYPES: OptionTypes<ServeModelsOptions> = {
  gate: 'object',
  reopen: 'function',
  prices: 'object',
  provider: 'string',
  maxOutput: 'number',
  reserve: 'object',
  dryRun: 'boolean',
  fail: 'string',
  tokens: 'object',
  upstreamKey: 'string',
  streamUsage: 'boolean',
  waitMs: 'number',
  onEvent: 'function',
  upstream: 'any',
  place: 'object',
  hosts: 'array',
  origins: 'array',
  ca: 'string',
  idleTimeoutMs: 'number',
};

/**
 * Serves until it is closed. Closing waits for answers that pass, at most 10 seconds; the gate stays open.
 * @throws NorthrootError `LISTEN_FAILED`, `SOCKET_IN_USE`; TypeError, RangeError for malformed options
 * @example
 * const gate = await Gate.open('ledger.jsonl', { signer, principalId: 'agent:a1' });
 * const prices = await openPrices('prices.json');
 * const proxy = await serveModels({ gate, prices, upstream: 'https://api.openai.com' });
 * const client = new OpenAI({ baseURL: `${proxy.url}/v1` });
 */
export async function serveModels(options: ServeModelsOptions): Promise<HttpServer> {
  checkOptions('serveModels', options, OPTION_TYPES);
  const { upstream, place = DEFAULT_PLACE, tokens, fail, maxOutput, reserve, upstreamKey } = options;
  if (fail !== undefined && fail !== 'open' && fail !== 'closed')
    throw new RangeError("serveModels: fail: expected 'open' or 'closed'");
  if (maxOutput !== undefined && !(Number.isInteger(maxOutput) && maxOutput >= 1 && maxOutput <= MAX_OUTPUT))
    throw new RangeError(`serveModels: maxOutput: expected a whole number from 1 to ${MAX_OUTPUT}`);
  if (upstreamKey !== undefined && !/^[\x21-\x7e]{1,4096}$/.test(upstreamKey))
    throw new RangeError('serveModels: upstreamKey: expected printable characters of ASCII');
  if (tokens === undefined && !('socket' in place) && !isLoopback(place.host))
    throw new TypeError(
      'serveModels: another address than the loopback requires tokens: anybody can connect to it',
    );
  meters(reserve ?? {});
  const proxy = new ModelProxy(options);
  const { hosts, origins, ca, idleTimeoutMs } = options;
  return serveProxy({
    upstream,
    place,
    hosts,
    origins,
    ca,
    idleTimeoutMs,
    handle: async (request) => {
      const answer = await proxy.handle(request);
      // Both URLs may have the version.
      const isTwice = VERSIONED.test(String(upstream)) && request.path.startsWith('/v1/');
      return answer.kind === 'forward' && isTwice ? { ...answer, path: request.path.slice(3) } : answer;
    },
    refuse: (refusal) => proxy.refuse(refusal),
  });
}

/**
 * The environment variables by which clients find a proxy. Official clients of OpenAI and Anthropic read them, and most tools that are built
 * on those.
 * @param url - As {@link serveModels} has it, `http://HOST:PORT`
 */
export function modelEnvironment(url: string): Readonly<Record<string, string>> {
  const base = url.replace(/\/+$/, '');
  return {
    ANTHROPIC_BASE_URL: base,
    OPENAI_API_BASE: `${base}/v1`,
    OPENAI_BASE_URL: `${base}/v1`,
  };
}
