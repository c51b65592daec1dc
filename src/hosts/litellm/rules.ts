/** What LiteLLM's spend logs can be held against. */

import type { HostRule } from '../shared/host.js';

export const LITELLM_RULES: readonly HostRule[] = [
  { id: 'LL-1', statement: 'a request is logged once' },
  { id: 'LL-2', statement: 'a request does not end before it starts' },
  { id: 'LL-3', statement: 'the tokens in total are those of the prompt and of the completion' },
  { id: 'LL-4', statement: 'spend and tokens are amounts, and tokens are whole numbers' },
  { id: 'LL-5', statement: 'the parts of a cost add up to it, to a millionth of it' },
  { id: 'LL-6', statement: 'usage within the metadata is that of the row' },
  { id: 'LL-7', statement: 'cached and reasoning tokens are not more than those that they are part of' },
  { id: 'LL-8', statement: 'a request that failed, or was answered from the cache, costs nothing' },
  { id: 'LL-9', statement: 'keys are logged as their hashes' },
  { id: 'LL-10', statement: 'pages of rows that say how many there are have all of them' },
  { id: 'LL-13', statement: 'a call id names one call that was answered' },
  {
    id: 'LL-11',
    statement: 'every request that was made is logged',
    undecidable: 'rows are neither numbered nor linked, and failed writes leave no gap',
  },
  {
    id: 'LL-12',
    statement: 'spend is what the provider bills',
    undecidable: 'LiteLLM computes it from its own table of prices, and the row names no version of it',
  },
];
