/** Guarded streams: read piece by piece, and recorded however they end. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { guardStream } from '../../src/api/index.js';
import type { GuardContext, GuardOptions } from '../../src/log/agent/guard.js';
import type { LiveLedger } from '../../src/log/agent/live-ledger.js';
import { DeniedError } from '../../src/log/agent/errors.js';
import { grant, leftOf, memoryPlace, openLive, type Place, usedBy } from '../agent/support.js';
import { collectingGarbage } from '../collect-garbage.js';
import { codeOf, errorOf } from '../writer/support.js';
import { imported, LITELLM } from './samples.js';

const RESERVE: GuardOptions = { reserve: { usd: '0.50' } };

async function open(): Promise<{ place: Place; ledger: LiveLedger; left: () => Promise<string> }> {
  const place = memoryPlace();
  const ledger = await openLive(place, { prices: imported(LITELLM) });
  const grantId = await grant(ledger, { meterCaps: { usd: '1', calls: 10 } });
  return { place, ledger, left: () => leftOf(ledger, grantId, 'usd') };
}

/** Three pieces, and the usage with the last. */
async function* chat({ meter }: Pick<GuardContext, 'meter'>): AsyncGenerator<string> {
  yield 'a';
  await Promise.resolve();
  yield 'b';
  meter.addUsage({ model: 'm-1', input: 1_000, output: 100 });
  yield 'c';
}

async function readAll<T>(pieces: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const piece of pieces) all.push(piece);
  return all;
}

/** Never settles. */
const FOREVER = new Promise<never>(() => undefined);

describe('a guarded stream', () => {
  it('gives every piece, and is recorded as a success with its usage when it has ended', async () => {
    const { place, ledger, left } = await open();
    expect(await readAll(guardStream(ledger, 'fs.read', { n: 1 }, chat, RESERVE))).toEqual(['a', 'b', 'c']);
    const event = place.events().at(-1);
    expect(event).toMatchObject({ event_type: 'execution', outcome: 'success', model_id: 'm-1' });
    expect(usedBy(event)).toMatchObject({ usd: '0.0045', 'tokens.output': '100', calls: '1' });
    expect(await left()).toBe('0.9955');
    expect(await place.verdict()).toBe('ok');
  });

  it("ends by the caller's time, which nobody else holds on to", async () => {
    const { place, ledger } = await open();
    const begin = (): Promise<unknown> =>
      guardStream(ledger, 'fs.read', {}, () => FOREVER, { signal: AbortSignal.timeout(2_000) }).next();
    expect(await collectingGarbage(errorOf(begin()))).toMatchObject({ name: 'TimeoutError' });
    expect(place.events().at(-1)).toMatchObject({ event_type: 'execution', outcome: 'unknown' });
  });

  it('takes pieces of any async iterable, returned now or later, undefined ones too', async () => {
    const { ledger } = await open();
    const stream = new ReadableStream<undefined>({
      start(controller) {
        controller.enqueue(undefined);
        controller.close();
      },
    });
    const of = Promise.resolve(stream as unknown as AsyncIterable<undefined>);
    expect(await readAll(guardStream(ledger, 'fs.read', null, () => of))).toEqual([undefined]);
    const none = guardStream(ledger, 'fs.read', null, async function* () {
      // Nothing.
    });
    expect(await readAll(none)).toEqual([]);
  });

  it('asks for nothing before it is read, and for one piece at a time', async () => {
    const { place, ledger } = await open();
    const before = place.events().length;
    const made: number[] = [];
    const pieces = guardStream(ledger, 'fs.read', null, async function* () {
      for (let n = 0; n < 3; n += 1) {
        made.push(n);
        yield await Promise.resolve(n);
      }
    });
    await ledger.budget();
    expect([place.events().length, made]).toEqual([before, []]);
    expect((await pieces.next()).value).toBe(0);
    await ledger.budget();
    expect(made).toEqual([0]);
    expect((await pieces.next()).value).toBe(1);
    expect(made).toEqual([0, 1]);
    await pieces.return();
    expect(made).toEqual([0, 1]);
    expect(await pieces.next()).toEqual({ done: true, value: undefined });
  });

  it('is denied where the grant does not allow it; nothing is called', async () => {
    const { ledger } = await open();
    const run = (): never => expect.fail('was called');
    expect(
      await errorOf(guardStream(ledger, 'fs.read', null, run, { reserve: { usd: '5' } }).next()),
    ).toBeInstanceOf(DeniedError);
  });

  it.each<[string, (context: GuardContext) => AsyncIterable<string>]>([
    [
      'at once',
      () => {
        throw new Error('broken');
      },
    ],
    [
      'between pieces',
      async function* () {
        yield await Promise.resolve('a');
        throw new Error('broken');
      },
    ],
  ])('that throws %s is a failure, and throws at its reader', async (_, run) => {
    const { place, ledger, left } = await open();
    const error = await errorOf(readAll(guardStream(ledger, 'fs.read', null, run, RESERVE)));
    expect((error as Error).message).toBe('broken');
    expect(place.events().at(-1)).toMatchObject({ outcome: 'failure', error_code: 'ERROR' });
    expect(await left()).toBe('1');
  });

  it('of an unknown model is a failure that is charged as reserved', async () => {
    const { place, ledger, left } = await open();
    const pieces = guardStream(
      ledger,
      'fs.read',
      null,
      async function* ({ meter }) {
        yield await Promise.resolve('a');
        meter.addUsage({ model: 'm-9', input: 1, output: 1 });
      },
      { ...RESERVE, onMeterProblem: () => undefined },
    );
    expect(await codeOf(readAll(pieces))).toBe('MODEL_UNKNOWN');
    expect(place.events().at(-1)).toMatchObject({ outcome: 'failure', error_code: 'MODEL_UNKNOWN' });
    expect(await left()).toBe('0.5');
  });

  it('of what is no async iterable fails', async () => {
    const { place, ledger } = await open();
    for (const made of [undefined, 'text', ['a'], {}]) {
      const pieces = guardStream(ledger, 'fs.read', null, () => made as unknown as AsyncIterable<string>);
      expect(await errorOf(readAll(pieces))).toBeInstanceOf(TypeError);
      expect(place.events().at(-1)).toMatchObject({ outcome: 'failure' });
    }
    expect(() => guardStream(ledger, 'fs.read', null, undefined as never)).toThrow(TypeError);
    expect(() => guardStream(ledger, 'fs.read', null, chat, { signal: 1 as never })).toThrow(TypeError);
  });
});

describe('a stream whose reader leaves', () => {
  it('is recorded as unknown, and the reservation is charged', async () => {
    const { place, ledger, left } = await open();
    let ended = 0;
    const run = async function* (): AsyncGenerator<string> {
      try {
        yield await Promise.resolve('a');
        yield 'b';
      } finally {
        ended += 1;
      }
    };
    for await (const piece of guardStream(ledger, 'fs.read', null, run, RESERVE)) {
      expect(piece).toBe('a');
      break;
    }
    expect(ended).toBe(1);
    const event = place.events().at(-1);
    expect(event).toMatchObject({ outcome: 'unknown' });
    expect([usedBy(event)['usd'], await left()]).toEqual(['0.5', '0.5']);
  });

  it('keeps what was metered so far, and what is metered when it is told to end', async () => {
    const { place, ledger } = await open();
    const run = async function* ({ meter, signal }: GuardContext): AsyncGenerator<string> {
      try {
        meter.add('usd', '0.1');
        yield await Promise.resolve('a');
      } finally {
        expect(signal.aborted).toBe(true);
        meter.add('usd', '0.02');
      }
    };
    const pieces = guardStream(ledger, 'fs.read', null, run, RESERVE);
    await pieces.next();
    await pieces.return();
    expect(usedBy(place.events().at(-1))['usd']).toBe('0.12');
  });

  it('leaves its error where it was thrown', async () => {
    const { place, ledger } = await open();
    const reading = async (): Promise<void> => {
      for await (const piece of guardStream(ledger, 'fs.read', null, chat)) throw new Error(`mine: ${piece}`);
    };
    expect(await errorOf(reading())).toMatchObject({ message: 'mine: a' });
    expect(place.events().at(-1)).toMatchObject({ outcome: 'unknown' });
  });

  it('ends also where the source fails to end', async () => {
    const { place, ledger } = await open();
    const source = {
      next: () => Promise.resolve({ done: false, value: 'a' } as const),
      return: () => Promise.reject(new Error('cannot end')),
    };
    const run = (): AsyncIterable<string> => ({ [Symbol.asyncIterator]: () => source });
    const pieces = guardStream(ledger, 'fs.read', null, run);
    await pieces.next();
    await pieces.return();
    expect(place.events().at(-1)).toMatchObject({ outcome: 'unknown' });
  });
});

describe('a stream that is aborted', () => {
  it('while a piece is awaited throws the reason at its reader, whatever the source does', async () => {
    const { place, ledger, left } = await open();
    const abort = new AbortController();
    const run = async function* (): AsyncGenerator<string> {
      yield await Promise.resolve('a');
      await FOREVER;
    };
    const pieces = guardStream(ledger, 'fs.read', null, run, { ...RESERVE, signal: abort.signal });
    await pieces.next();
    const next = pieces.next();
    abort.abort(new Error('enough'));
    expect(await errorOf(next)).toMatchObject({ message: 'enough' });
    expect(place.events().at(-1)).toMatchObject({ outcome: 'unknown' });
    expect(await left()).toBe('0.5');
  });

  it('while nothing is awaited throws it with the next piece, and rejects nothing unseen', async () => {
    const { place, ledger } = await open();
    const unseen: unknown[] = [];
    const see = (error: unknown): void => void unseen.push(error);
    process.on('unhandledRejection', see);
    onTestFinished(() => void process.off('unhandledRejection', see));
    const abort = new AbortController();
    const pieces = guardStream(ledger, 'fs.read', null, chat, { signal: abort.signal });
    await pieces.next();
    abort.abort(new Error('enough'));
    while (place.events().at(-1)?.outcome === undefined)
      await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    expect(place.events().at(-1)).toMatchObject({ outcome: 'unknown' });
    expect(await errorOf(pieces.next())).toMatchObject({ message: 'enough' });
    expect(unseen).toEqual([]);
  });

  it('before it is read begins nothing', async () => {
    const { place, ledger } = await open();
    const before = place.events().length;
    const signal = AbortSignal.abort(new Error('enough'));
    expect(await errorOf(guardStream(ledger, 'fs.read', null, chat, { signal }).next())).toMatchObject({
      message: 'enough',
    });
    expect(place.events()).toHaveLength(before);
  });
});

describe('closing the ledger', () => {
  it('with a signal ends a stream, and records it', async () => {
    const { place, ledger } = await open();
    const pieces = guardStream(ledger, 'fs.read', null, chat, RESERVE);
    await pieces.next();
    await ledger.close({ signal: AbortSignal.abort(new Error('closing')) });
    expect(place.events().at(-1)).toMatchObject({ event_type: 'execution', outcome: 'unknown' });
    expect(await errorOf(pieces.next())).toMatchObject({ message: 'closing' });
    expect(await place.verdict()).toBe('ok');
  });

  it('without one waits for its reader', async () => {
    const { place, ledger } = await open();
    const pieces = guardStream(ledger, 'fs.read', null, chat, RESERVE);
    await pieces.next();
    const closed = ledger.close();
    expect(await readAll(pieces)).toEqual(['b', 'c']);
    await closed;
    expect(place.events().at(-1)).toMatchObject({ outcome: 'success' });
  });
});
