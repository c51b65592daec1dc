/** The rules for hook logs and transcripts of Claude Code. */

import { rulesOf } from '../shared/findings.js';

export const CLAUDE_CODE_RULES = rulesOf({
  'CC-1': 'a tool use id names one tool use',
  'CC-2': 'a result belongs to a tool use',
  'CC-3': 'a uuid names one line',
  'CC-4': 'the parent of a line is an earlier line',
  'CC-5': 'a tool use ends once, and all sources agree on its end',
  'CC-6': 'a denied tool use does not run',
  'CC-7': 'every tool use that ran was allowed',
  'CC-8': 'tool and parameters that ran are those that were allowed',
  'CC-9': 'a tool use has a result, or was denied',
  'CC-10': 'a result is not dated before its use',
  'CC-11': 'lines of one message state one usage in whole numbers, whose output only grows',
  'CC-12': 'a decision is one that hooks can give',
  'CC-13': [
    'no line was removed from the end, or rewritten',
    'lines are neither hashed, numbered nor signed',
  ],
  'CC-14': [
    'the tool that ran is the one that a person or the settings allowed',
    'neither hooks nor transcripts state it; only denials are written',
  ],
});
