/** Clasper's HTTP API as an adapter calls it. */

import { NorthrootError } from '../../../base/error.js';
import { decodeSourceJson, SourceObject } from '../../../base/json/source-json.js';
import { requestJson } from '../../../gate/json-client.js';
import { CircuitBreaker, type CircuitOptions } from '../../shared/live/circuit-breaker.js';

/** A token, or what gives one whenever it is asked. */
export type TokenSource = string | (() => string | Promise<string>);

export interface ExchangeOptions {
  readonly endpoint: URL;
  readonly token: TokenSource;
  readonly timeoutMs: number;
  readonly circuit: CircuitOptions | undefined;
}

export type Answer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** Undefined where it is no JSON object. */
      readonly body: SourceObject | undefined;
      readonly bytes: Uint8Array;
      /** By how much the server's clock is ahead, in milliseconds, as far as it says. */
      readonly aheadMs: number | undefined;
    }
  | { readonly kind: 'none'; readonly why: string };

const MAX_ANSWER_BYTES = 1024 * 1024;

export class ClasperExchange {
  readonly #options: ExchangeOptions;
  readonly #circuit: CircuitBreaker;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#circuit = new CircuitBreaker(options.circuit);
  }

  get circuit(): CircuitBreaker['state'] {
    return this.#circuit.state;
  }

  /** Asks once. @param headers - Besides the adapter's token; `Authorization` instead of it */
  async ask(
    method: 'GET' | 'POST',
    path: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): Promise<Answer> {
    const { token, endpoint, timeoutMs } = this.#options;
    const own =
      headers['Authorization'] === undefined
        ? { 'X-Adapter-Token': typeof token === 'string' ? token : await token() }
        : {};
    try {
      const { status, bytes, date } = await this.#circuit.send(() =>
        requestJson({
          ...{ url: new URL(path, endpoint), method, headers: { ...own, ...headers } },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          ...{ timeoutMs, signal, maxBytes: MAX_ANSWER_BYTES },
        }),
      );
      const decoded = decodeSourceJson(bytes);
      const value = decoded.ok && decoded.value instanceof SourceObject ? decoded.value : undefined;
      const ahead = date === null ? Number.NaN : Date.parse(date) - Date.now();
      return {
        kind: 'answered',
        status,
        body: value,
        bytes,
        aheadMs: Number.isNaN(ahead) ? undefined : ahead,
      };
    } catch (error) {
      if (!(error instanceof NorthrootError)) throw error;
      // An answer that breaks the bounds is as good as none.
      return { kind: 'none', why: error.code };
    }
  }
}
