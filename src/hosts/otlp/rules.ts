/** What OTLP spans with GenAI attributes can be held against. */

import type { HostRule } from '../shared/host.js';

export const OTLP_RULES: readonly HostRule[] = [
  { id: 'OT-1', statement: 'the id of a span is its own within its trace' },
  { id: 'OT-2', statement: 'a span does not end before it starts' },
  { id: 'OT-3', statement: 'ids are hexadecimal digits, 32 of a trace and 16 of a span, not all zero' },
  { id: 'OT-4', statement: 'the parent of a span is in its trace' },
  { id: 'OT-5', statement: 'tokens are whole numbers that are not negative' },
  { id: 'OT-6', statement: 'cached and reasoning tokens are not more than those that they are part of' },
  { id: 'OT-7', statement: 'what ended in an error names its type, and nothing else does' },
  { id: 'OT-8', statement: 'a tool call id names one call' },
  { id: 'OT-9', statement: 'attributes that the conventions require are there, and each is there once' },
  { id: 'OT-10', statement: 'the tokens of a span are those of the spans below it' },
  { id: 'OT-13', statement: 'a response id names one response' },
  { id: 'OT-15', statement: 'usage stands on spans' },
  { id: 'OT-14', statement: 'usage is stated in units of the conventions' },
  {
    id: 'OT-11',
    statement: 'what ran was allowed',
    undecidable: 'the conventions have no attribute for a decision',
  },
  {
    id: 'OT-12',
    statement: 'every call has a span',
    undecidable: 'spans are sampled and dropped, and nothing counts them',
  },
];
