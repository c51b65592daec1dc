/** What hook logs and rollouts of Codex CLI can be held against. */

import type { HostRule } from '../shared/host.js';

export const CODEX_RULES: readonly HostRule[] = [
  { id: 'CX-1', statement: 'an id of a call names one call of its session' },
  { id: 'CX-2', statement: 'an output is that of a call' },
  { id: 'CX-3', statement: 'history that a session was forked with can be told from its own' },
  { id: 'CX-5', statement: 'a call ends once, and all that is said of its end agrees' },
  { id: 'CX-6', statement: 'what was denied does not run' },
  { id: 'CX-7', statement: 'what ran was allowed' },
  { id: 'CX-8', statement: 'what ran is the tool, with the parameters, that was allowed' },
  { id: 'CX-9', statement: 'a call has an output, or was denied' },
  { id: 'CX-10', statement: 'an output is not dated before its call' },
  {
    id: 'CX-11',
    statement:
      'usage is stated in whole numbers, and totals grow by what each answer used, no part more than its whole',
  },
  { id: 'CX-12', statement: 'a decision is one that hooks can give' },
  {
    id: 'CX-13',
    statement: 'no line was removed from the end, or rewritten',
    undecidable: 'lines are neither hashed nor signed',
  },
  {
    id: 'CX-14',
    statement: 'what a person or the approval policy allowed is what ran',
    undecidable: 'rollouts state only denials',
  },
];
