/** The rules for LiteLLM's spend logs. */

import { rulesOf } from '../shared/findings.js';

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
