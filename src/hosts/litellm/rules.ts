/** The rules for LiteLLM's spend logs. */

import { findingsOf, rulesOf } from '../shared/findings.js';

export const LITELLM_RULES = rulesOf({
  'LL-1': 'a request is logged once',
  'LL-2': 'a request does not end before it starts',
  'LL-3': 'total tokens are the sum of prompt and completion tokens',
  'LL-4': 'spend and tokens are amounts, and tokens are whole numbers',
  'LL-5': 'the parts of a cost add up to it, to one part in a million',
  'LL-6': 'usage in the metadata matches the row',
  'LL-7': 'cached and reasoning tokens do not exceed the tokens that include them',
  'LL-8': 'a request that failed, or was answered from the cache, costs nothing',
  'LL-9': 'keys are logged as their hashes',
  'LL-10': 'pages that state a number of rows have all of them',
  'LL-13': 'a call id names one answered call',
  'LL-11': [
    'every request is logged',
    'rows are neither numbered nor linked, and failed writes leave no gap',
  ],
  'LL-12': [
    'spend is what the provider bills',
    'LiteLLM computes it from its own table of prices, and the row names no version of it',
  ],
});

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

export type Code = Parameters<typeof finding>[0];
