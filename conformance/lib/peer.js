/** The process of an implementation: one request, one answer, within bounds of length and time. */

import { spawn } from 'node:child_process';
import { clearTimeout } from 'node:timers';
import { TextDecoder } from 'node:util';

/** The longest frame, its newline included. */
export const MAX_FRAME_BYTES = 32 * 1024 * 1024;
const STDERR_BYTES = 4 * 1024;
const END_MS = 5_000;
const NEWLINE = 0x0a;

/** The process broke the protocol, hangs or is gone: nothing more can be asked of it. */
export class PeerError extends Error {}

export class Peer {
  #child;
  #timeoutMs;
  #nextId = 0;
  #pending;
  #broken;
  #chunks = [];
  #bytes = 0;
  #stderr = Buffer.alloc(0);
  #ended;
  #closing;

  /** @param command - The program and its arguments */
  constructor([program, ...args], { timeoutMs }) {
    this.#timeoutMs = timeoutMs;
    // A group of its own, so that what it starts ends with it.
    const detached = process.platform !== 'win32';
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], detached });
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        this.#break(new PeerError(`could not be started: ${error.code ?? error.message}`));
        resolve();
      });
      this.#child.once('close', (status, signal) => {
        const isClean = status === 0 && this.#closing !== undefined;
        if (!isClean)
          this.#break(new PeerError(`the process has ended, with ${signal ?? `status ${status}`}`));
        resolve();
      });
    });
    this.#child.stdin.on('error', () => undefined);
    this.#child.stdout.on('data', (chunk) => this.#read(chunk));
    this.#child.stderr.on('data', (chunk) => {
      this.#stderr = Buffer.concat([this.#stderr, chunk.subarray(-STDERR_BYTES)]).subarray(-STDERR_BYTES);
    });
  }

  /** The last of its standard error, as it came. */
  get stderr() {
    return this.#stderr.toString();
  }

  /**
   * Sends a request and waits for its answer.
   * @throws PeerError; from then on always
   */
  async ask(request) {
    if (this.#broken !== undefined) throw this.#broken;
    const id = this.#nextId++;
    const frame = Buffer.from(`${JSON.stringify({ id, ...request })}\n`);
    if (frame.length > MAX_FRAME_BYTES) throw new RangeError('the request is longer than a frame');
    const line = await new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => this.#break(new PeerError(`no answer within ${this.#timeoutMs / 1_000} seconds`)),
        this.#timeoutMs,
      );
      this.#pending = { resolve, reject, timer };
      this.#child.stdin.write(frame);
    });
    const answer = this.#parse(line);
    if (answer.id !== id) {
      this.#break(new PeerError('the answer has the id of another request'));
      throw this.#broken;
    }
    return answer;
  }

  /**
   * Ends the process: by the end of its input, or by force.
   * @returns What was wrong up to then, in words; undefined where it ended by itself, with status 0, and said nothing more
   */
  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    this.#child.stdin.end();
    const timer = setTimeout(
      () => {
        this.#break(new PeerError(`it did not end within ${END_MS / 1_000} seconds of its input`));
        // What it started in a group of its own may hold the pipes open: that is not waited for.
        this.#child.stdout.destroy();
        this.#child.stderr.destroy();
      },
      this.#broken === undefined ? END_MS : 0,
    );
    await this.#ended;
    clearTimeout(timer);
    this.#kill();
    return this.#broken?.message;
  }

  #parse(line) {
    let answer;
    try {
      answer = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(line));
    } catch {
      // Told below.
    }
    if (typeof answer === 'object' && answer !== null && !Array.isArray(answer)) return answer;
    this.#break(new PeerError('the answer is not one JSON object in UTF-8'));
    throw this.#broken;
  }

  #read(chunk) {
    if (this.#broken !== undefined) return;
    const end = chunk.indexOf(NEWLINE);
    this.#bytes += end < 0 ? chunk.length : end + 1;
    if (this.#bytes > MAX_FRAME_BYTES)
      return this.#break(new PeerError(`an answer of more than ${MAX_FRAME_BYTES} bytes`));
    if (this.#pending === undefined) return this.#break(new PeerError('a frame that nobody asked for'));
    this.#chunks.push(end < 0 ? chunk : chunk.subarray(0, end));
    if (end < 0) return undefined;
    const line = Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#bytes = 0;
    const { resolve, timer } = this.#pending;
    this.#pending = undefined;
    clearTimeout(timer);
    resolve(line);
    if (end + 1 < chunk.length) this.#break(new PeerError('a frame that nobody asked for'));
    return undefined;
  }

  #break(error) {
    if (this.#broken !== undefined) return;
    this.#broken = error;
    this.#chunks = [];
    if (this.#pending !== undefined) {
      clearTimeout(this.#pending.timer);
      this.#pending.reject(error);
      this.#pending = undefined;
    }
    this.#kill();
  }

  #kill() {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      if (process.platform === 'win32') this.#child.kill('SIGKILL');
      else process.kill(-pid, 'SIGKILL');
    } catch {
      // Nothing of it is left.
    }
  }
}
