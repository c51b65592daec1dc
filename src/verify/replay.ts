/** Verifies a ledger up to a point in it, for asking what was so then. */

import type { LedgerSource } from '../fs/source.js';
import { examineLine } from '../ledger/examine-line.js';
import { LineSplitter, MAX_LINE_BYTES } from '../ledger/line-splitter.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import { compareTimestamps, isTimestamp } from '../value/timestamp.js';
import { startVerification, type VerifyState } from './state.js';
import { verifyLine } from './verify-line.js';

/** A point in a ledger: after the record of a number, or before the first record that occurred after a time. */
export type Point = { readonly seq: number } | { readonly time: string } | 'end';

/**
 * The state of a ledger at a point.
 *
 * @throws NorthrootError when the source cannot be read.
 */
export async function replayTo(
  source: LedgerSource,
  point: Point,
  trust?: TrustPolicy,
): Promise<VerifyState> {
  const state = startVerification(trust, nodeVerifier);
  for await (const segment of source.segments) {
    const splitter = new LineSplitter();
    for await (const chunk of segment.chunks) {
      for (const line of splitter.push(chunk)) {
        if (typeof point === 'object' && 'time' in point && isAfter(line.bytes, point.time, state))
          return state;
        const { examined } = verifyLine(state, line, segment);
        if (typeof point === 'object' && 'seq' in point && examined?.seq === point.seq) return state;
      }
    }
  }
  return state;
}

function isAfter(line: Uint8Array, time: string, state: VerifyState): boolean {
  if (line.length === 0 || line.length > MAX_LINE_BYTES) return false;
  const occurredAt = examineLine(line, state.layout).event?.['occurred_at'];
  return typeof occurredAt === 'string' && isTimestamp(occurredAt) && compareTimestamps(occurredAt, time) > 0;
}
