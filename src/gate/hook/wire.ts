/**
 * The least of HTTP/1.1 (RFC 9112) that a hook needs: requests with JSON over one connection to a Unix socket, one after the other.
 * `node:http` takes longer to load than all of this takes.
 */

import { connect, type Socket } from 'node:net';
import { NorthrootError } from '../../base/error.js';
import { fitsSocket } from '../../base/platform/socket-path.js';

/** The most of an answer's head, and of its body, in bytes. */
const MAX_HEAD_BYTES = 16 * 1024;
const MAX_BODY_BYTES = 2 * 1024 * 1024;

export interface WireAnswer {
  readonly status: number;
  readonly body: Buffer;
}

export class Wire {
  readonly #socket: Socket;
  readonly #token: string | undefined;
  #received: Buffer = Buffer.alloc(0);
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  private constructor(socket: Socket, token: string | undefined) {
    this.#socket = socket;
    this.#token = token;
    socket.on('data', (chunk: Buffer) => {
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
      this.#wake?.();
    });
    socket.on('end', () => this.#end());
    socket.on('close', () => this.#end());
    socket.on('error', (error) => {
      this.#failure ??= error;
      this.#end();
    });
  }

  /**
   * @returns Undefined where nobody listens
   * @throws NorthrootError `TOKEN_INVALID` for what no field of a head can have
   */
  static async connect(path: string, token: string | undefined): Promise<Wire | undefined> {
    if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
      throw new NorthrootError('TOKEN_INVALID', 'expected a token of printable ASCII without spaces');
    // Nobody listens there; cut off, it could be another's.
    if (!fitsSocket(path)) return undefined;
    return new Promise((resolve) => {
      const socket = connect({ path });
      const refuse = (): void => resolve(undefined);
      socket.once('error', refuse);
      socket.once('connect', () => {
        socket.off('error', refuse);
        resolve(new Wire(socket, token));
      });
    });
  }

  /** @throws NorthrootError `SERVICE_FAILED` where the connection breaks or what comes is no answer */
  async request(method: 'POST' | 'GET', target: string, body: string): Promise<WireAnswer> {
    const content = Buffer.from(body);
    const head = [
      `${method} ${target} HTTP/1.1`,
      'Host: localhost',
      ...(this.#token === undefined ? [] : [`Authorization: Bearer ${this.#token}`]),
      'Content-Type: application/json',
      `Content-Length: ${content.length}`,
    ];
    this.#socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), content]));
    const [status = '', ...lines] = (await this.#readTo('\r\n\r\n', MAX_HEAD_BYTES)).split('\r\n');
    const [, code] = /^HTTP\/1\.1 (\d{3})(?: |$)/.exec(status) ?? [];
    if (code === undefined) throw failed('it does not speak HTTP/1.1');
    const fields = new Map(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    return { status: Number(code), body: await this.#readBody(fields) };
  }

  close(): void {
    this.#socket.destroy();
  }

  async #readBody(fields: ReadonlyMap<string, string>): Promise<Buffer> {
    const coding = fields.get('transfer-encoding');
    const length = fields.get('content-length');
    if (coding === undefined) return this.#read(numberOf(length, /^\d{1,8}$/, 10), MAX_BODY_BYTES);
    if (coding.toLowerCase() !== 'chunked' || length !== undefined)
      throw failed('its answer is framed badly');
    const chunks: Buffer[] = [];
    let size = 0;
    for (;;) {
      const [text = ''] = (await this.#readTo('\r\n', 1024)).split(';');
      const count = numberOf(text.trim(), /^[0-9a-f]{1,7}$/i, 16);
      if (count === 0) break;
      size += count;
      if (size > MAX_BODY_BYTES) throw failed('its answer is too large');
      chunks.push(await this.#read(count, MAX_BODY_BYTES));
      if ((await this.#readTo('\r\n', 2)) !== '') throw failed('its answer is framed badly');
    }
    while ((await this.#readTo('\r\n', MAX_HEAD_BYTES)) !== '');
    return Buffer.concat(chunks);
  }

  /** What comes before a mark, which is taken, too. */
  async #readTo(mark: string, most: number): Promise<string> {
    for (;;) {
      const at = this.#received.indexOf(mark);
      if (at > most || (at === -1 && this.#received.length > most + mark.length))
        throw failed('its answer is too large');
      if (at !== -1) return this.#take(at + mark.length).toString('latin1', 0, at);
      await this.#more();
    }
  }

  async #read(count: number, most: number): Promise<Buffer> {
    if (count > most) throw failed('its answer is too large');
    while (this.#received.length < count) await this.#more();
    return this.#take(count);
  }

  #take(count: number): Buffer {
    const taken = this.#received.subarray(0, count);
    this.#received = this.#received.subarray(count);
    return taken;
  }

  #more(): Promise<void> {
    if (this.#ended) throw failed(this.#failure?.message ?? 'it closed the connection');
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #end(): void {
    this.#ended = true;
    this.#wake?.();
  }
}

function numberOf(text: string | undefined, form: RegExp, radix: number): number {
  if (text === undefined || !form.test(text)) throw failed('its answer is framed badly');
  return Number.parseInt(text, radix);
}

function failed(why: string): NorthrootError {
  return new NorthrootError('SERVICE_FAILED', `the service did not answer: ${why}`);
}
