/** The rules for OTLP spans with GenAI attributes. */

import { rulesOf } from '../shared/findings.js';

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
