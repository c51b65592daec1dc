/** A client of `northroot serve` on its Unix socket. */

import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { printable } from './values.js';

/** The largest request that the service takes, in bytes. */
const MAX_REQUEST_BYTES = 1024 * 1024;
/** The largest answer, in bytes: a rewrite has parameters. */
const MAX_ANSWER_BYTES = 2 * 1024 * 1024;
const CODE = /^[A-Z0-9_]{1,64}$/;
const TOKEN = /^[\x21-\x7e]{1,512}$/;

/** Answers that refuse this very request; all other errors mean that nobody could be asked. */
const REFUSALS = new Set([
  ...['BODY_TOO_LARGE', 'CALL_LIMIT', 'CALL_NOT_FOUND', 'NOT_ALLOWED', 'REQUEST_CONFLICT'],
  ...['TOKEN_INVALID', 'USAGE'],
]);

/** The gate gave no decision. */
export class GateError extends Error {
  /**
   * @param {string} code - `SERVICE_FAILED`, or the service's own
   * @param {string} message
   */
  constructor(code, message) {
    super(`${code}: ${printable(message, 400)}`);
    this.code = code;
  }

  /** Whether it is an answer: asking somebody else, or nobody, would not do. */
  get isRefusal() {
    return REFUSALS.has(this.code);
  }

  /** Whether the service may have carried out what it was asked for, although its answer did not come. */
  mayHaveDecided = false;
}

export class GateClient {
  #config;

  /** @param {Pick<import('./config.js').Config, 'socket' | 'tokenFile' | 'token'>} config */
  constructor(config) {
    this.#config = config;
  }

  /**
   * @param {string} path
   * @param {object} body
   * @param {AbortSignal} signal
   * @returns {Promise<Record<string, unknown>>}
   * @throws {GateError} `SERVICE_FAILED` for anything but a sound answer
   */
  async post(path, body, signal) {
    const text = JSON.stringify(body);
    if (Buffer.byteLength(text) > MAX_REQUEST_BYTES)
      throw new GateError('BODY_TOO_LARGE', `the call is larger than ${MAX_REQUEST_BYTES} bytes`);
    const { status, text: said } = await this.#send(path, text, signal);
    const answer = parse(said);
    if (status === 200 && answer !== undefined) return answer;
    if (status === 200) throw unknownAnswer();
    const fault = answer?.['error'];
    const { code, message } = /** @type {Record<string, unknown>} */ (
      typeof fault === 'object' && fault !== null ? fault : {}
    );
    const own = typeof code === 'string' && CODE.test(code) ? code : undefined;
    const why = typeof message === 'string' ? `: ${message}` : '';
    const error = new GateError(
      own ?? (status >= 400 && status < 500 ? 'NOT_ALLOWED' : 'SERVICE_FAILED'),
      `the service answered ${status}${why}`,
    );
    error.mayHaveDecided = status >= 500;
    throw error;
  }

  /** It is read anew each time: a token may be replaced while the host runs. */
  async #token() {
    const { tokenFile, token } = this.#config;
    const text = tokenFile === undefined ? token : (await readFile(tokenFile, 'utf8')).trim();
    if (text !== undefined && !TOKEN.test(text))
      throw new GateError('TOKEN_INVALID', 'the token is malformed');
    return text;
  }

  /**
   * @param {string} path
   * @param {string} body
   * @param {AbortSignal} signal
   * @returns {Promise<{ status: number, text: string }>}
   */
  async #send(path, body, signal) {
    const token = await this.#token().catch((error) => {
      throw error instanceof GateError ? error : new GateError('TOKEN_INVALID', 'the token cannot be read');
    });
    return new Promise((resolve, reject) => {
      let isSent = false;
      /** @param {string} why */
      const fail = (why) => {
        const error = new GateError('SERVICE_FAILED', `the service did not answer: ${why}`);
        error.mayHaveDecided = isSent;
        reject(error);
      };
      const late = 'it took too long, or the call was given up';
      const asked = request({
        socketPath: this.#config.socket,
        path,
        method: 'POST',
        agent: false,
        signal,
        headers: {
          host: 'localhost',
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
      });
      asked.on('error', (/** @type {NodeJS.ErrnoException} */ error) =>
        fail(signal.aborted ? late : (error.code ?? 'the connection broke')),
      );
      asked.on('response', (response) => {
        /** @type {Buffer[]} */
        const chunks = [];
        let size = 0;
        response.on('data', (/** @type {Buffer} */ chunk) => {
          size += chunk.length;
          if (size > MAX_ANSWER_BYTES) response.destroy(new Error('its answer is too large'));
          else chunks.push(chunk);
        });
        response.on('error', () => fail(signal.aborted ? late : 'its answer is broken'));
        response.on('aborted', () => fail('the connection broke'));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
        );
      });
      asked.on('socket', (socket) => socket.once('connect', () => (isSent = true)));
      asked.end(body);
    });
  }
}

/**
 * @param {string} text
 * @returns {Record<string, unknown> | undefined}
 */
function parse(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** @returns {GateError} */
export function unknownAnswer() {
  const error = new GateError('SERVICE_FAILED', 'the service gave an answer that is not known');
  error.mayHaveDecided = true;
  return error;
}
