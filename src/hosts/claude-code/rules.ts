/** What hook logs and transcripts of Claude Code can be held against. */

import type { HostRule } from '../shared/host.js';

export const CLAUDE_CODE_RULES: readonly HostRule[] = [
  { id: 'CC-1', statement: 'an id of a tool use names one tool use' },
  { id: 'CC-2', statement: 'a result is that of a tool use' },
  { id: 'CC-3', statement: 'a uuid names one line' },
  { id: 'CC-4', statement: 'the parent of a line is a line before it' },
  { id: 'CC-5', statement: 'a tool use ends once, and all that is said of its end agrees' },
  { id: 'CC-6', statement: 'what was denied does not run' },
  { id: 'CC-7', statement: 'what ran was allowed' },
  { id: 'CC-8', statement: 'what ran is the tool, with the parameters, that was allowed' },
  { id: 'CC-9', statement: 'a tool use has a result, or was denied' },
  { id: 'CC-10', statement: 'a result is not dated before its use' },
  {
    id: 'CC-11',
    statement: 'lines of one message state one usage in whole numbers, whose output only grows',
  },
  { id: 'CC-12', statement: 'a decision is one that hooks can give' },
  {
    id: 'CC-13',
    statement: 'no line was removed from the end, or rewritten',
    undecidable: 'lines are neither hashed, numbered nor signed',
  },
  {
    id: 'CC-14',
    statement: 'what a person allowed in a dialog, and what rules of settings allowed, is what ran',
    undecidable: 'neither hooks nor transcripts state it; only denials are written',
  },
];
