/** Findings by code: the rule, the weight, and what is expected and found where that is always the same. */

import { findingsOf } from '../shared/findings.js';

export const finding = findingsOf({
  DUPLICATE_TOOL_USE: ['CC-1', 'invalid', 'the tool and the parameters as they were before', 'others'],
  RESULT_WITHOUT_USE: ['CC-2', 'invalid', undefined, 'none'],
  TWO_RESULTS: ['CC-5', 'invalid'],
  OUTCOME_DISAGREES: ['CC-5', 'invalid'],
  PARENT_AFTER_CHILD: ['CC-4', 'warning'],
  PARENT_NOT_FOUND: ['CC-4', 'warning'],
  DUPLICATE_UUID: ['CC-3', 'invalid', 'the line as it was before', 'another'],
  RAN_AFTER_DENIAL: ['CC-6', 'violation', undefined, 'a result'],
  DECISION_NOT_STATED: ['CC-7', 'undecided', 'a decision', 'none in these files'],
  TOOL_CHANGED: ['CC-8', 'invalid'],
  PARAMS_CHANGED: ['CC-8', 'invalid'],
  RESULT_MISSING: ['CC-9', 'warning', 'a result, or a denial', 'neither'],
  RESULT_BEFORE_USE: ['CC-10', 'invalid'],
  AMOUNT_INVALID: ['CC-11', 'invalid'],
  PART_EXCEEDS_TOTAL: ['CC-11', 'warning'],
  USAGE_DISAGREES: ['CC-11', 'warning', undefined, 'another'],
  DECISION_UNKNOWN: ['CC-12', 'invalid', 'allow, deny, ask or defer'],
  ID_NOT_STATED: ['INPUT', 'invalid', undefined, 'none'],
  TIME_OF_TRANSCRIPT: ['INPUT', 'info', 'a date and time'],
  KIND_UNKNOWN: ['INPUT', 'warning', 'a kind of line that is known'],
});

/** A code of the table. */
export type Code = Parameters<typeof finding>[0];
