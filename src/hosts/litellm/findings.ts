/** Findings by code: the rule, the weight, and what is expected and found where that is always the same. */

import { findingsOf } from '../shared/findings.js';

export const finding = findingsOf({
  ID_NOT_STATED: ['INPUT', 'invalid', 'request_id', 'none'],
  DUPLICATE_REQUEST: ['LL-1', 'invalid'],
  END_BEFORE_START: ['LL-2', 'invalid'],
  TOKEN_SUM: ['LL-3', 'invalid'],
  NEGATIVE_SPEND: ['LL-4', 'invalid'],
  AMOUNT_INVALID: ['LL-4', 'invalid'],
  COST_PARTS: ['LL-5', 'invalid'],
  USAGE_DISAGREES: ['LL-6', 'invalid'],
  PART_EXCEEDS_TOTAL: ['LL-7', 'warning'],
  CACHE_HIT_SPENT: ['LL-8', 'warning', 'no spend'],
  FAILURE_SPENT: ['LL-8', 'warning', 'no spend'],
  KEY_IN_CLEAR: ['LL-9', 'warning', 'the hash of a key', 'a key'],
  ROWS_MISSING: ['LL-10', 'warning'],
  CALL_LOGGED_TWICE: ['LL-13', 'warning'],
  CALL_LOGGED_AGAIN: ['LL-13', 'warning'],
});

/** A code of the table. */
export type Code = Parameters<typeof finding>[0];
