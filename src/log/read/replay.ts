/** Verifies a ledger up to a point. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import { examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES, type RawLine } from '../../format/record/line-splitter.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { readLines } from '../../rules/source/read-lines.js';
import { startVerification, type VerifyState } from '../../rules/verify/state.js';
import { verifyLine } from '../../rules/verify/verify-line.js';

/** After a record's number, or before the first record later than a time. */
export type Point = { readonly seq: number } | { readonly time: string } | 'end';

/** @throws NorthrootError `RECORD_NOT_FOUND` when no record has the number; as the source does; the signal's reason */
export async function replayTo(
  source: LedgerSource,
  point: Point,
  trust?: TrustPolicy,
  signal?: AbortSignal,
): Promise<VerifyState> {
  const state = startVerification(trust, defaultBackend);
  const [time, seq] =
    point === 'end' ? [] : 'time' in point ? [point.time, undefined] : [undefined, point.seq];
  for await (const { line, segment, ordinal, takesPlace } of readLines(source, { signal })) {
    if (time !== undefined && takesPlace && isAfter(line, time, state)) return state;
    const { examined } = verifyLine(state, line, segment);
    // Without a number of its own, its ordinal counts.
    if (takesPlace && (examined?.seq ?? ordinal) === seq) return state;
  }
  if (seq === undefined) return state;
  const [where = ''] = source.paths;
  throw new NorthrootError('RECORD_NOT_FOUND', `no record ${seq} in ${printable(where)}`, {
    hint: `it has ${state.records} records`,
  });
}

function isAfter({ bytes, length }: RawLine, time: string, state: VerifyState): boolean {
  if (length > MAX_LINE_BYTES) return false;
  const { occurredAt } = examineLine(bytes, state.layout);
  return occurredAt !== undefined && isTimestamp(occurredAt) && compareTimestamps(occurredAt, time) > 0;
}
