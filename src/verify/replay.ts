/** Verifies a ledger up to a point in it, for asking what was so then. */

import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import type { LedgerSource } from '../fs/source.js';
import { examineLine } from '../ledger/examine-line.js';
import { LineSplitter, MAX_LINE_BYTES } from '../ledger/line-splitter.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { defaultVerifier } from '../signature/default-verifier.js';
import { compareTimestamps, isTimestamp } from '../value/timestamp.js';
import { startVerification, type VerifyState } from './state.js';
import { verifyLine } from './verify-line.js';

/** A point in a ledger: after the record of a number, or before the first record that occurred after a time. */
export type Point = { readonly seq: number } | { readonly time: string } | 'end';

/**
 * The state of a ledger at a point.
 *
 * @param signal - Aborting ends it with its reason.
 * @throws NorthrootError `RECORD_NOT_FOUND` when no record has the number; as the source when that cannot be read.
 */
export async function replayTo(
  source: LedgerSource,
  point: Point,
  trust?: TrustPolicy,
  signal?: AbortSignal,
): Promise<VerifyState> {
  const state = startVerification(trust, defaultVerifier);
  const [time, seq] =
    point === 'end' ? [] : 'time' in point ? [point.time, undefined] : [undefined, point.seq];
  for await (const segment of source.segments) {
    const splitter = new LineSplitter();
    for await (const chunk of segment.chunks) {
      signal?.throwIfAborted();
      for (const line of splitter.push(chunk)) {
        if (time !== undefined && isAfter(line.bytes, time, state)) return state;
        const { records } = state;
        const { examined } = verifyLine(state, line, segment);
        // A record without a number of its own has that of its place.
        if (state.records > records && (examined?.seq ?? records) === seq) return state;
      }
    }
    const torn = splitter.finish();
    if (torn !== undefined) verifyLine(state, torn, segment);
  }
  if (seq === undefined) return state;
  const [where = ''] = source.paths;
  throw new NorthrootError('RECORD_NOT_FOUND', `no record ${seq} in ${printable(where)}`, {
    hint: `it has ${state.records} records; northroot log lists them`,
  });
}

function isAfter(line: Uint8Array, time: string, state: VerifyState): boolean {
  if (line.length === 0 || line.length > MAX_LINE_BYTES) return false;
  const occurredAt = examineLine(line, state.layout).event?.['occurred_at'];
  return typeof occurredAt === 'string' && isTimestamp(occurredAt) && compareTimestamps(occurredAt, time) > 0;
}
