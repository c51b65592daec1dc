/** What was found when a ledger was reconciled, in words. */

import { printable } from '../../base/bytes/printable.js';
import type { ReconcileFinding } from '../../format/schema/generated/types.js';
import type { ReconcileCode } from './reconcile-compare.js';

const MAX_VALUE = 200;

const WORDS: Readonly<Record<ReconcileCode, string>> = {
  TOOL_DIFFERS: 'ledger and source name different tools for one call',
  PARAMS_DIFFER: 'ledger and source have different parameters of one call',
  DECISION_DIFFERS: 'ledger and source state different decisions about one call',
  OUTCOME_DIFFERS: 'ledger and source state different outcomes of one call',
  METERS_DIFFER: 'ledger and source state different amounts of one call',
  RAN_THOUGH_DENIED: 'one side denied the call, and the other executed it',
  EXECUTION_NOT_IN_LEDGER: 'a source shows an execution that the ledger does not have',
  DECISION_NOT_IN_LEDGER: 'a source shows a call that the ledger does not have; it shows no execution of it',
  NOT_IN_SOURCES: 'no source shows what the ledger has of this call',
  CALL_AMBIGUOUS: 'which call of the source this is cannot be told; nothing is guessed',
  LEDGER_RECORD_INVALID: 'a record of this call is invalid, and corroborates nothing',
  LEDGER_INVALID: 'the ledger is invalid by itself; its own verification says why',
  LEDGER_VIOLATION: 'the ledger shows by itself what was not allowed; its own verification says what',
  SOURCE_INVALID: 'the source is broken by the rules of its host; checking it for an import says why',
  SOURCE_VIOLATION:
    'the source shows what was not allowed by the rules of its host; checking it for an import says what',
  SAME_FILE: 'records were made from this very file, which therefore corroborates nothing that they say',
  TOOL_MISSING: 'a promised tool was not called as often as promised',
  TOOL_NOT_PROMISED: 'a call of a tool that was not promised',
  COUNT_MISSING: 'there are fewer calls than were promised',
  COUNT_EXCEEDED: 'there are more calls than were promised',
  OUTSIDE_WINDOW: 'a call outside the promised window of time',
  SEQUENCE_MISSING: 'promised numbers are missing',
  SEQUENCE_NOT_PROMISED: 'there are numbers that were not promised',
};

/** A finding as a sentence; everything that comes from outside is made printable. */
export function describeReconcileFinding(
  code: ReconcileCode,
  { call_ids: [id] = [], source, expected, actual }: Omit<ReconcileFinding, 'code' | 'message'>,
): string {
  return [
    WORDS[code],
    ...(id === undefined ? [] : [` (${printable(id, MAX_VALUE)})`]),
    ...(expected === undefined ? [] : [`; expected ${printable(expected, MAX_VALUE)}`]),
    ...(actual === undefined ? [] : [`; found ${printable(actual, MAX_VALUE)}`]),
    ...(source === undefined ? [] : [`, in ${printable(source, MAX_VALUE)}`]),
  ].join('');
}
