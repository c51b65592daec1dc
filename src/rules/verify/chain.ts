/** Steps 5 and 8 of SPEC §8: numbering, `prev`, the place of genesis, duplicates and causal links. */

import { toDigestText } from '../../base/value/digest.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import { hashToBase64url } from '../../format/tree/compact-range.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

/** Judges a record's `seq` and `prev` against the line before it and, in the first line of a segment, its file's name. */
export function checkChain(
  state: VerifyState,
  line: ExaminedLine,
  findings: LineFindings,
  promisedSeq: number | undefined,
): void {
  const { chain } = state;
  if (line.prev !== undefined && line.prev !== chain.prev)
    findings.add('PREV_MISMATCH', {
      pointer: '/prev',
      expected: toDigestText(chain.prev),
      actual: toDigestText(line.prev),
    });
  if (line.seq !== undefined && line.seq !== chain.seq && line.seq !== chain.otherSeq) {
    findings.add('SEQ_GAP', { pointer: '/seq', expected: String(chain.seq), actual: String(line.seq) });
  } else if (line.seq !== undefined && promisedSeq !== undefined && line.seq !== promisedSeq) {
    const expected = `${promisedSeq}, which the segment is named by`;
    findings.add('SEQ_GAP', { pointer: '/seq', expected, actual: String(line.seq) });
  }
}

/**
 * Moves the chain to the next line. After an unexpected `seq` the next one may follow it (lines were dropped) or the expected one (only
 * this one was wrong).
 *
 * @param seq - The `seq` of the line, where it has one.
 */
export function advanceChain(state: VerifyState, leaf: string, seq: number | undefined): void {
  const { chain } = state;
  chain.otherSeq = (seq === chain.seq ? seq : chain.otherSeq) + 1;
  chain.seq = (seq ?? chain.seq) + 1;
  chain.prev = hashToBase64url(leaf);
}

/** Genesis is the first record, and only that. */
export function checkGenesisPlace(state: VerifyState, line: ExaminedLine, findings: LineFindings): void {
  const { eventType: type } = line;
  if (type === undefined) return;
  if (state.records === 0 && type !== 'genesis')
    findings.add('GENESIS_MISSING', { pointer: '/event/event_type', expected: 'genesis', actual: type });
  if (state.records > 0 && type === 'genesis')
    findings.add('GENESIS_MISPLACED', {
      pointer: '/event/event_type',
      expected: 'genesis in the first record only',
      actual: `genesis in record ${state.records}`,
    });
}

/**
 * An event occurs once, and its `prev_event_id` names an earlier one.
 *
 * @returns Whether the event has a new id.
 */
export function checkEventIds(state: VerifyState, line: ExaminedLine, findings: LineFindings): boolean {
  const { previousId: id } = line;
  if (line.wellFormed && id !== undefined && state.events.find(id) === undefined)
    findings.addToEvent({
      code: 'PREV_EVENT_NOT_FOUND',
      pointer: '/prev_event_id',
      expected: 'the id of an earlier event',
      actual: toDigestText(id),
    });
  if (line.eventId === undefined) return false;
  const earlier = state.events.find(line.eventId);
  if (earlier === undefined) return true;
  const eventId = toDigestText(line.eventId);
  findings.addToEvent({
    code: 'EVENT_DUPLICATE',
    pointer: '/event_id',
    expected: 'an id that is not in the ledger yet',
    actual: eventId,
    related: [{ file: earlier.file, line: earlier.line, seq: earlier.seq, eventId }],
  });
  return false;
}
