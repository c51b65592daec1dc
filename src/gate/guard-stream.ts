/** A guarded call whose result comes in pieces: the caller reads them while the call runs, and what it used is recorded at its end. */

import { joinSignals } from '../base/deadline.js';
import { NorthrootError } from '../base/error.js';
import { describeValue } from '../base/options.js';
import type { GuardContext, GuardOptions } from '../log/agent/guard.js';
import type { LiveLedger } from '../log/agent/live-ledger.js';

/** Returns the pieces, such as by being an async generator. */
export type StreamFunction<T> = (context: GuardContext) => AsyncIterable<T> | Promise<AsyncIterable<T>>;

/**
 * `LiveLedger.guard` around a stream. The call is authorized with the first piece that is asked for, and each piece is made when it is asked
 * for. Recorded is `success` when the pieces end, `failure` when they throw, and `unknown` when the reader leaves before the end, or the
 * signal of the options or of `LiveLedger.close` is aborted: then what was metered so far, and the rest of the reservation as estimated.
 * `LiveLedger.close` without a signal waits until the reader is done.
 *
 * A model states its usage with its last piece: meter it in `run`, and read to the end.
 * @returns The pieces, to be read once; they end when the execution is on disk
 * @throws TypeError for a malformed argument; when reading, what `LiveLedger.guard` throws
 * @example
 * const pieces = guardStream(ledger, 'llm.chat', { prompt }, async function* ({ meter, signal }) {
 *   for await (const { text, usage } of chat(prompt, { signal })) {
 *     if (usage) meter.addUsage({ model: 'm-1', ...usage });
 *     yield text;
 *   }
 * }, { reserve: { usd: '0.10' } });
 */
export function guardStream<T>(
  ledger: Pick<LiveLedger, 'guard'>,
  toolName: string,
  params: unknown,
  run: StreamFunction<T>,
  options: GuardOptions = {},
): AsyncGenerator<T, void, void> {
  if (typeof run !== 'function')
    throw new TypeError(`guardStream: expected a function to run, found ${describeValue(run)}`);
  const { signal } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new TypeError(
      `guardStream: option signal: expected an AbortSignal, found ${describeValue(signal)}`,
    );
  return readGuarded(ledger, toolName, params, run, options);
}

/**
 * As {@link guardStream}, of arguments that are sound.
 * @param broken - Aborted where a piece says that the call has failed
 */
export function readGuarded<T>(
  ledger: Pick<LiveLedger, 'guard'>,
  toolName: string,
  params: unknown,
  run: StreamFunction<T>,
  options: GuardOptions,
  broken?: AbortSignal,
): AsyncGenerator<T, void, void> {
  const left = new NorthrootError('STREAM_LEFT', 'the reader left before the end');
  const leave = new AbortController();
  const pieces = readPieces(ledger, toolName, params, run, options, { leave, left, broken });
  const end = pieces.return.bind(pieces);
  // A generator would first wait for the piece that was asked for, which may never come.
  pieces.return = (value) => {
    leave.abort(left);
    return end(value);
  };
  return pieces;
}

interface Leaving {
  readonly leave: AbortController;
  /** What `leave` is aborted with. */
  readonly left: NorthrootError;
  readonly broken: AbortSignal | undefined;
}

async function* readPieces<T>(
  ledger: Pick<LiveLedger, 'guard'>,
  toolName: string,
  params: unknown,
  run: StreamFunction<T>,
  options: GuardOptions,
  { leave, left, broken }: Leaving,
): AsyncGenerator<T, void, void> {
  const { signal, clear } = joinSignals([options.signal, leave.signal, broken]);
  const handover = new Handover<T>();
  const guarded = ledger.guard(toolName, params, (context) => feed(run, context, handover), {
    ...options,
    signal,
  });
  // A failure is thrown where the reader is, or not at all if it never asks again.
  guarded.then(
    () => handover.finish({ isEnd: true }),
    (error: unknown) => handover.finish({ isEnd: true, error }),
  );
  void guarded.finally(clear).catch(() => undefined);
  let isEnd = false;
  try {
    for (;;) {
      const next = await handover.take();
      if ('isEnd' in next) {
        isEnd = true;
        // Leaving is no failure; what could not be recorded is.
        if ('error' in next && next.error !== left) throw next.error;
        return;
      }
      yield next.piece;
    }
  } finally {
    if (!isEnd) {
      leave.abort(left);
      await guarded.catch((error: unknown) => {
        if (error !== left) throw error;
      });
    }
  }
}

/** Runs inside the guard: makes a piece for each that is asked for. */
async function feed<T>(run: StreamFunction<T>, context: GuardContext, handover: Handover<T>): Promise<void> {
  const wait = new AbortableWait(context.signal);
  let iterator: AsyncIterator<T> | undefined;
  let isWorking = true;
  try {
    iterator = iteratorOf<T>(await wait.for(Promise.resolve(run(context))));
    for (;;) {
      isWorking = false;
      await wait.for(handover.asked());
      isWorking = true;
      const next = await wait.for(iterator.next());
      if (next.done === true) return;
      handover.give(next.value);
    }
  } catch (error) {
    // What threw has ended by itself. What is idle may still meter; what works may never end.
    const ending = context.signal.aborted ? endQuietly(iterator) : undefined;
    if (!isWorking) await ending;
    throw error;
  } finally {
    wait.end();
  }
}

function iteratorOf<T>(pieces: unknown): AsyncIterator<T> {
  const make = (pieces as Partial<AsyncIterable<T>> | null | undefined)?.[Symbol.asyncIterator];
  if (typeof make === 'function') return make.call(pieces);
  throw new TypeError(
    `guardStream: expected run to return an async iterable, found ${describeValue(pieces)}`,
  );
}

async function endQuietly(iterator: AsyncIterator<unknown> | undefined): Promise<void> {
  try {
    await iterator?.return?.();
  } catch {
    // Why the call was aborted is what is told.
  }
}

/** Waits for one promise after another, each until the signal is aborted. A race would keep them all. */
class AbortableWait {
  readonly #signal: AbortSignal;
  #interrupt: (reason: unknown) => void = () => undefined;
  readonly #abort = (): void => this.#interrupt(this.#signal.reason);

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.#abort);
  }

  for<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      promise.then(resolve, reject);
      if (this.#signal.aborted) this.#abort();
    });
  }

  end(): void {
    this.#signal.removeEventListener('abort', this.#abort);
  }
}

type End = { readonly isEnd: true } | { readonly isEnd: true; readonly error: unknown };

/** Where one side asks for pieces and the other gives them, one at a time. */
class Handover<T> {
  #end: End | undefined;
  #give: ((next: { readonly piece: T } | End) => void) | undefined;
  #wake: () => void = () => undefined;

  take(): Promise<{ readonly piece: T } | End> {
    if (this.#end !== undefined) return Promise.resolve(this.#end);
    return new Promise((resolve) => {
      this.#give = resolve;
      this.#wake();
    });
  }

  asked(): Promise<void> {
    if (this.#give !== undefined) return Promise.resolve();
    return new Promise((resolve) => (this.#wake = resolve));
  }

  give(piece: T): void {
    const give = this.#give;
    this.#give = undefined;
    give?.({ piece });
  }

  /** There are no more pieces. */
  finish(end: End): void {
    this.#end = end;
    this.#give?.(end);
  }
}
