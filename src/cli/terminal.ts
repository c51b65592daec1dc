/**
 * The terminal: results go to standard output, talk to standard error. A reader that goes away (`… | head`) ends the
 * output quietly; colours and progress are for terminals only.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { NorthrootError } from '../error.js';
import { printable } from '../bytes/printable.js';
import { plainPaint, type Paint } from '../report/text.js';

const STYLES = { bold: 1, dim: 2, green: 32, red: 31, yellow: 33 } as const;
const PROGRESS_MS = 100;

const ansiPaint: Paint = (style, text) => `\u001b[${STYLES[style]}m${text}\u001b[0m`;

/** Standard input, output and error of one run of the CLI. */
export class Terminal {
  /** Silences talk that is not an error. */
  quiet = false;
  /** Set when the reader of standard output has gone. */
  closed = false;
  #progressAt = 0;
  #hasProgress = false;

  constructor() {
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      this.closed = true;
    });
    process.stderr.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }

  /** How standard output is to be painted. */
  get paint(): Paint {
    return this.#colours(process.stdout) ? ansiPaint : plainPaint;
  }

  /** Writes a result; waits while the reader is slow. */
  async write(result: string | Uint8Array): Promise<void> {
    if (this.closed || result.length === 0) return;
    this.#clearProgress();
    if (process.stdout.write(result)) return;
    while (!this.closed && process.stdout.writableNeedDrain) await sleep(1);
  }

  /** Says something to the user. */
  say(message: string): void {
    if (this.quiet) return;
    this.#clearProgress();
    process.stderr.write(`${message}\n`);
  }

  /** Tells of an error: what, and what to do. */
  fail(error: NorthrootError, place?: string): void {
    this.#clearProgress();
    const paint = this.#colours(process.stderr) ? ansiPaint : plainPaint;
    const where = place === undefined ? '' : `${printable(place)}: `;
    process.stderr.write(
      `${paint('red', 'error')}: ${where}${error.code}: ${printable(error.message, 2_000)}\n`,
    );
    if (error.hint !== undefined) process.stderr.write(`hint: ${printable(error.hint, 2_000)}\n`);
  }

  /** Draws how far a long command has come, on a terminal. */
  progress(done: number, total: number | undefined): void {
    if (this.quiet || !process.stderr.isTTY || performance.now() < this.#progressAt) return;
    this.#progressAt = performance.now() + PROGRESS_MS;
    this.#hasProgress = true;
    const megabytes = (done / 1e6).toFixed(1);
    const share = total === undefined || total === 0 ? 0 : Math.min(1, done / total);
    const bar =
      total === undefined ? '' : ` [${'#'.repeat(share * 30).padEnd(30)}] ${(share * 100).toFixed(0)}%`;
    process.stderr.write(`\r\u001b[K${megabytes} MB${bar}`);
  }

  #clearProgress(): void {
    if (this.#hasProgress) process.stderr.write('\r\u001b[K');
    this.#hasProgress = false;
  }

  #colours(stream: NodeJS.WriteStream): boolean {
    return stream.isTTY && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb';
  }
}
