/** Findings by code: the rule, the weight, and what is expected and found where that is always the same. */

import { findingsOf } from '../shared/findings.js';

export const finding = findingsOf({
  DUPLICATE_SPAN: ['OT-1', 'invalid', 'the span as it was before', 'another'],
  END_BEFORE_START: ['OT-2', 'invalid'],
  ID_INVALID: ['OT-3', 'invalid', '32 and 16 hexadecimal digits'],
  PARENT_NOT_FOUND: ['OT-4', 'warning', undefined, 'none in these files'],
  AMOUNT_INVALID: ['OT-5', 'invalid', 'a whole number that is not negative'],
  PART_EXCEEDS_TOTAL: ['OT-6', 'warning'],
  STATUS_DISAGREES: ['OT-7', 'invalid', 'no error.type, since the status is ok'],
  ERROR_TYPE_MISSING: ['OT-7', 'warning', 'error.type', 'none'],
  DUPLICATE_CALL: ['OT-8', 'invalid'],
  CALL_REPEATED: ['OT-8', 'info', 'usage on one span of a call'],
  ATTRIBUTE_REPEATED: ['OT-9', 'invalid', undefined, 'several'],
  ATTRIBUTE_MISSING: ['OT-9', 'warning', undefined, 'none'],
  TOTAL_DIFFERS: ['OT-10', 'warning'],
  RESPONSE_REPEATED: ['OT-13', 'info', 'a response of its own'],
  RESPONSE_ID_REUSED: ['OT-13', 'warning', 'a response of its own'],
  UNIT_UNKNOWN: ['OT-14', 'info', 'tokens of input and output'],
  USAGE_IN_LOG: ['OT-15', 'info'],
});

/** A code of the table. */
export type Code = Parameters<typeof finding>[0];
