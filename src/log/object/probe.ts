/**
 * Whether a store keeps its conditions when many writers come at once. Some ignore them, others look and then write: with those, two
 * publishers could each write their own tile or checkpoint. So before each use, writers race for one object that nothing refers to.
 */

import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { joinSignals } from '../../base/deadline.js';
import { NorthrootError } from '../../base/error.js';
import { isSame, type ObjectSink, type StoredObject } from './object-sink.js';

const MAX_PROBE_BYTES = 256;
/** A read may be older than what was written. */
const MAX_READS = 4;

type Race = (bytes: Uint8Array) => Promise<boolean>;

interface ProbeOptions {
  readonly writers: number;
  readonly remove: (key: string) => Promise<void>;
  /** Waits before the nth repetition. */
  readonly pause: (nth: number) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Races for a new object, then for replacing it; exactly one MUST win each, and what is there MUST be the winner's.
 * @throws NorthrootError `OBJECT_STORE_UNFIT`; as the sink does
 */
export async function assertConditions(
  sink: ObjectSink,
  { writers, remove, pause, signal: given }: ProbeOptions,
): Promise<void> {
  const { signal, clear } = joinSignals([given]);
  // All writers listen.
  setMaxListeners(0, signal);
  const key = `northroot-probe-${randomBytes(12).toString('hex')}`;
  const race = async (round: string, condition: string, take: Race): Promise<StoredObject> => {
    const each = Array.from({ length: writers }, (_, at) => Buffer.from(`${round} ${at}\n`));
    // All are over, whatever one says, before the object is removed.
    const results = await Promise.allSettled(each.map(take));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    const winners = each.filter((_, at) => (results[at] as PromiseFulfilledResult<boolean>).value);
    if (winners.length !== 1) {
      const found = `${winners.length} of ${writers} writers at once`;
      throw unfit(`${sink.name}: with ${condition}, ${found} were told that they had written, expected one`);
    }
    for (let reads = 1; ; reads += 1) {
      const found = await sink.get(key, MAX_PROBE_BYTES, signal);
      if (found !== undefined && isSame(found.bytes, winners[0])) return found;
      if (reads === MAX_READS)
        throw unfit(`${sink.name}: with ${condition}, what is there is not what the one that won wrote`);
      await pause(reads);
    }
  };
  // With connections that are open already, all arrive at once.
  await Promise.all(Array.from({ length: writers }, () => sink.get(`${key}.none`, MAX_PROBE_BYTES, signal)));
  try {
    const first = await race('new', 'If-None-Match', (bytes) =>
      sink.putNew(key, bytes, signal).then(
        (result) => result === 'written',
        (error: unknown) => orLost(error, 'TILE_MISMATCH'),
      ),
    );
    await race('next', 'If-Match', (bytes) =>
      sink.replaceIf(key, bytes, first, signal).then(
        () => true,
        (error: unknown) => orLost(error, 'FILE_CHANGED'),
      ),
    );
  } finally {
    clear();
    await remove(key);
  }
}

function orLost(error: unknown, code: string): false {
  if (error instanceof NorthrootError && error.code === code) return false;
  throw error;
}

function unfit(message: string): NorthrootError {
  return new NorthrootError('OBJECT_STORE_UNFIT', message, {
    hint: 'two publishers could overwrite each other there: publish to a store that keeps its conditions',
  });
}
