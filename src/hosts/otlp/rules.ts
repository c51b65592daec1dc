/** The rules for OTLP spans with GenAI attributes. */

import { findingsOf, rulesOf } from '../shared/findings.js';

export const OTLP_RULES = rulesOf({
  'OT-1': 'a span id is unique within its trace',
  'OT-2': 'a span does not end before it starts',
  'OT-3': 'ids are hexadecimal digits, 32 of a trace and 16 of a span, not all zero',
  'OT-4': 'the parent of a span is in its trace',
  'OT-5': 'tokens are whole numbers that are not negative',
  'OT-6': 'cached and reasoning tokens do not exceed the tokens that include them',
  'OT-7': 'a span that ended in an error names its type, and no other span does',
  'OT-8': 'a tool call id names one call',
  'OT-9': 'required attributes are present, each once',
  'OT-10': 'the tokens of a span are the sum of those of the spans below it',
  'OT-13': 'a response id names one response',
  'OT-15': 'usage is on spans',
  'OT-14': 'usage is stated in units of the conventions',
  'OT-11': ['every call that ran was allowed', 'the conventions have no attribute for a decision'],
  'OT-12': ['every call has a span', 'spans are sampled and dropped, and nothing counts them'],
});

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

export type Code = Parameters<typeof finding>[0];
