/** The rules for hook logs and rollouts of Codex CLI. */

import { rulesOf } from '../shared/findings.js';

export const CODEX_RULES = rulesOf({
  'CX-1': 'a call id names one call of its session',
  'CX-2': 'an output belongs to a call',
  'CX-3': "a forked session's history can be told from its own lines",
  'CX-5': 'a call ends once, and all sources agree on its end',
  'CX-6': 'a denied call does not run',
  'CX-7': 'every call that ran was allowed',
  'CX-8': 'tool and parameters that ran are those that were allowed',
  'CX-9': 'a call has an output, or was denied',
  'CX-10': 'an output is not dated before its call',
  'CX-11':
    'usage is stated in whole numbers, totals grow by the usage of each answer, and no part exceeds its whole',
  'CX-12': 'a decision is one that hooks can give',
  'CX-13': ['no line was removed from the end, or rewritten', 'lines are neither hashed nor signed'],
  'CX-14': [
    'the call that ran is the one that a person or the approval policy allowed',
    'rollouts state only denials',
  ],
});
