/** CGF's HTTP API as an adapter calls it. */

import { NorthrootError } from '../../../base/error.js';
import { decodeSourceJson, SourceObject } from '../../../base/json/source-json.js';
import { type HttpAnswer, requestJson } from '../../../gate/json-client.js';
import { CircuitBreaker, type CircuitOptions, isOfGateway } from '../../shared/live/circuit-breaker.js';
import type { Delivery } from '../../shared/live/outbox.js';

export interface ExchangeOptions {
  readonly endpoint: URL;
  readonly token: string | undefined;
  readonly timeoutMs: number;
  readonly circuit: CircuitOptions | undefined;
}

/** The server cannot be asked: a Code. */
export type NoAnswer = 'PEER_TIMEOUT' | 'PEER_UNREACHABLE' | 'CIRCUIT_OPEN';

/** What came of a request. An answer other than 200, and one that is not JSON, is `refused`: why, as a Code. */
export type Exchanged =
  | { readonly kind: 'answered'; readonly body: SourceObject }
  | { readonly kind: 'refused'; readonly code: string; readonly status: number | undefined }
  | { readonly kind: 'none'; readonly why: NoAnswer };

const MAX_ANSWER_BYTES = 256 * 1024;
/** How long a report may take: nobody waits for it. */
const REPORT_TIMEOUT_MS = 10_000;
/** A report that is answered so is sent again. */
const PASSING: readonly number[] = [401, 403, 408, 425, 429];
const MISSING = 404;

export class CgfExchange {
  readonly #options: ExchangeOptions;
  readonly #circuit: CircuitBreaker;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#circuit = new CircuitBreaker(options.circuit);
  }

  get circuit(): CircuitBreaker['state'] {
    return this.#circuit.state;
  }

  /** Registers, at the path that the server has: its own, else that of the documents. */
  async register(body: object): Promise<Exchanged> {
    const answer = await this.#ask('v1/register', body);
    if (answer.kind !== 'refused' || answer.status !== MISSING) return answer;
    return this.#ask('v1/adapters/register', body);
  }

  /** Asks once: after a timeout the server may have decided. */
  evaluate(body: object, signal?: AbortSignal): Promise<Exchanged> {
    return this.#ask('v1/evaluate', body, signal);
  }

  async report(body: object): Promise<Delivery> {
    const answer = await this.#send('v1/outcomes/report', body, REPORT_TIMEOUT_MS);
    const { status } = answer;
    if (status >= 200 && status < 300) return 'taken';
    if (PASSING.includes(status) || isOfGateway(answer)) return 'later';
    return status >= 500 ? 'failed' : 'refused';
  }

  async #ask(path: string, body: object, signal?: AbortSignal): Promise<Exchanged> {
    try {
      const answer = await this.#circuit.send(() => this.#send(path, body, this.#options.timeoutMs, signal));
      return readAnswer(answer);
    } catch (error) {
      if (!(error instanceof NorthrootError)) throw error;
      const { code } = error;
      if (code === 'PEER_TIMEOUT' || code === 'PEER_UNREACHABLE' || code === 'CIRCUIT_OPEN')
        return { kind: 'none', why: code };
      return { kind: 'refused', code: 'MALFORMED', status: undefined };
    }
  }

  #send(path: string, body: object, timeoutMs: number, signal?: AbortSignal): Promise<HttpAnswer> {
    const { endpoint, token } = this.#options;
    return requestJson({
      url: new URL(path, endpoint),
      headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
      ...{ timeoutMs, signal, maxBytes: MAX_ANSWER_BYTES },
    });
  }
}

function readAnswer({ status, bytes }: HttpAnswer): Exchanged {
  if (status !== 200) return { kind: 'refused', code: `STATUS_${status}`, status };
  const decoded = decodeSourceJson(bytes);
  if (!decoded.ok || !(decoded.value instanceof SourceObject))
    return { kind: 'refused', code: 'MALFORMED', status };
  return { kind: 'answered', body: decoded.value };
}
