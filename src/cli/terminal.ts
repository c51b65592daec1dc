/**
 * The terminal: results go to standard output, talk to standard error. A reader that goes away (`… | head`) ends the
 * output quietly; colours and progress are for terminals only.
 */

import { printable, withoutPasswords } from '../base/bytes/printable.js';
import type { NorthrootError } from '../base/error.js';
import { EventError } from '../format/event/validate.js';
import { type Paint, plainPaint } from '../out/text/guide.js';
import { CommandError } from './command-error.js';
import { hintFor } from './hints.js';

const STYLES = { bold: 1, dim: 2, green: 32, red: 31, yellow: 33 } as const;
const PROGRESS_MS = 100;
/** What is done sooner needs no progress bar. */
const FIRST_PROGRESS_MS = 400;

const ansiPaint: Paint = (style, text) => `\u001b[${STYLES[style]}m${text}\u001b[0m`;

/** Standard input, output and error of one run of the CLI. */
export class Terminal {
  /** Silences talk that is not an error. */
  quiet = false;
  /** Set when standard output takes no more: its reader has gone, or its disk is full. */
  closed = false;
  /** Where a ledger's own key was looked for, and was not. */
  missingKey: string | undefined;
  /** The ledger argument of the command, for hints. */
  ledger: string | undefined;
  #outputError: Error | undefined;
  #progressAt = performance.now() + FIRST_PROGRESS_MS;
  #hasProgress = false;

  constructor() {
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      this.closed = true;
      if (error.code !== 'EPIPE') this.#outputError ??= error;
    });
    // What cannot be said on standard error cannot be said at all.
    process.stderr.on('error', () => undefined);
  }

  /** How standard output is to be painted. */
  get paint(): Paint {
    return this.#colours(process.stdout) ? ansiPaint : plainPaint;
  }

  /** Whether results are shown to somebody, rather than read by a program. */
  get isShown(): boolean {
    return process.stdout.isTTY;
  }

  /** Writes a result; waits until the reader has it, or is gone. */
  async write(result: string | Uint8Array): Promise<void> {
    if (this.closed || result.length === 0) return;
    this.#clearProgress();
    await new Promise<void>((resolve) => process.stdout.write(result, () => resolve()));
  }

  /**
   * Ends the output.
   *
   * @throws NorthrootError `OUTPUT_FAILED` when a result could not be written, unless its reader is gone.
   */
  finish(): void {
    this.#clearProgress();
    if (this.#outputError === undefined) return;
    throw new CommandError('OUTPUT_FAILED', `cannot write standard output: ${this.#outputError.message}`, {
      cause: this.#outputError,
      hint: 'what was to be done is done; only its result is not complete',
    });
  }

  say(message: string): void {
    if (this.quiet) return;
    this.#clearProgress();
    process.stderr.write(`${message}\n`);
  }

  fail(error: NorthrootError, place?: string): void {
    this.#clearProgress();
    const paint = this.#colours(process.stderr) ? ansiPaint : plainPaint;
    const where = place === undefined ? '' : `${printable(place)}: `;
    const [message, ...faults] = wordsOf(error);
    process.stderr.write(`${paint('red', 'error')}: ${where}${error.code}: ${shown(message)}\n`);
    for (const fault of faults) process.stderr.write(`  ${shown(fault)}\n`);
    const hint = this.#hintFor(error);
    if (hint !== undefined) process.stderr.write(`hint: ${shown(hint)}\n`);
  }

  /** Shows where in the program an error arose. */
  trace(error: Error): void {
    const [, ...places] = (error.stack ?? '').split('\n');
    process.stderr.write(places.map((place) => `${printable(place, 2_000)}\n`).join(''));
  }

  /** Draws how far a long command has come, on a terminal. */
  progress(done: number, total: number | undefined): void {
    const isDrawn = process.stderr.isTTY && process.env['TERM'] !== 'dumb';
    if (this.quiet || !isDrawn || performance.now() < this.#progressAt) return;
    this.#progressAt = performance.now() + PROGRESS_MS;
    this.#hasProgress = true;
    const megabytes = (done / 1e6).toFixed(1);
    const share = total === undefined || total === 0 ? 0 : Math.min(1, done / total);
    const bar =
      total === undefined ? '' : ` [${'#'.repeat(share * 30).padEnd(30)}] ${(share * 100).toFixed(0)}%`;
    process.stderr.write(`\r\u001b[K${megabytes} MB${bar}`);
  }

  #hintFor(error: NorthrootError): string | undefined {
    const { code } = error;
    const hint = hintFor(error, this.ledger);
    if (code !== 'SIGNATURE_MISSING' || this.missingKey === undefined) return hint;
    const looked = `looked for a key in NORTHROOT_KEY and ${this.missingKey}, and found none`;
    return hint === undefined ? looked : `${looked}; ${hint}`;
  }

  #clearProgress(): void {
    if (this.#hasProgress) process.stderr.write('\r\u001b[K');
    this.#hasProgress = false;
  }

  #colours(stream: NodeJS.WriteStream): boolean {
    return stream.isTTY && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb';
  }
}

/** The message of an error; of an event with several faults, how many, and each on a line of its own. */
function wordsOf(error: NorthrootError): [string, ...string[]] {
  if (!(error instanceof EventError)) return [error.message];
  const { messages, schema } = error;
  const of = schema === undefined ? 'the event' : `not a valid event by the schema ${schema}`;
  if (messages.length === 1)
    return [schema === undefined ? error.message : `${error.message} (schema ${schema})`];
  return [
    schema === undefined ? `${of} has ${messages.length} faults` : `${of}: ${messages.length} faults`,
    ...messages,
  ];
}

/** Words of an error may quote what was given, such as a malformed URL. */
function shown(text: string): string {
  return printable(withoutPasswords(text), 2_000);
}
