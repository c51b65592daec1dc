/**
 * Binding (SPEC §3): an event that carries `ledger_id` is for the one ledger whose genesis has that id, and cannot be replayed in
 * another. Key events must carry it; where genesis says so, every other event too.
 */

import { toDigestText } from '../../base/value/digest.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

/** MUST be called for each line that was read, before it may set the ledger's id. */
export function checkBinding(state: VerifyState, line: ExaminedLine, findings: LineFindings): void {
  if (line.span === undefined) return;
  if (line.layout === 'bare') {
    // Bare events need no `ledger_id`; those that have one must have the same.
    state.ledgerId ??= line.ledgerId;
    checkLedgerId(state, line, findings);
    return;
  }
  if (state.records === 0) {
    state.ledgerId = line.eventId;
    return;
  }
  if (checkLedgerId(state, line, findings)) return;
  const { eventType: type } = line;
  const isDemanded = type === 'key' || (state.bindingRequired && type !== 'genesis');
  // A malformed one has its finding already.
  if (!isDemanded || (!line.wellFormed && Object.hasOwn(line.json() ?? {}, 'ledger_id'))) return;
  findings.isUnbound = true;
  findings.addToEvent({
    code: 'LEDGER_UNBOUND',
    pointer: '/ledger_id',
    expected: state.ledgerId === undefined ? 'present' : `${toDigestText(state.ledgerId)}, the id of genesis`,
    actual: 'absent',
    cause: type === 'key' ? 'key' : 'event',
  });
}

/** @returns Whether the event names its ledger. */
function checkLedgerId({ ledgerId }: VerifyState, line: ExaminedLine, findings: LineFindings): boolean {
  if (line.ledgerId === undefined) return false;
  if (ledgerId === undefined || line.ledgerId === ledgerId) return true;
  findings.isUnbound = true;
  findings.addToEvent({
    code: 'LEDGER_MISMATCH',
    pointer: '/ledger_id',
    expected: `${toDigestText(ledgerId)}${line.layout === 'bare' ? ', as an event before it' : ', the id of genesis'}`,
    actual: toDigestText(line.ledgerId),
    cause: line.ledgerId,
  });
  return true;
}
