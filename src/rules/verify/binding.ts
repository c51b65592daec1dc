/**
 * Binding (SPEC §3): an event that carries `ledger_id` is for the one ledger whose genesis has that id, and cannot be replayed in
 * another. Key events must carry it; where genesis says so, every other event too.
 */

import { toDigestText } from '../../base/value/digest.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

/** Call for each line that was read, before the ledger's own id is known by it. */
export function checkBinding(state: VerifyState, line: ExaminedLine, findings: LineFindings): void {
  if (line.span === undefined) return;
  if (line.layout === 'bare') {
    // Events without records around them are of no ledger; those that name one must name the same.
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
  // One that is there and has the wrong form has its finding.
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

/** @returns Whether the event says which ledger it is for. */
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
