/** What must hold of OpenClaw's recordings, and what such recordings do not decide. */

import type { HostRule } from '../shared/host.js';

/** OC-1 to OC-10; OC-11 to OC-13 follow from them. */
export const OPENCLAW_RULES: readonly HostRule[] = [
  {
    id: 'OC-1',
    statement:
      'what ended was announced: after_tool_call has its before_tool_call, message_sent its message_sending',
  },
  { id: 'OC-2', statement: 'what was blocked, cancelled or not approved does not run' },
  { id: 'OC-3', statement: 'what ran is the tool, with the parameters, that was let through' },
  {
    id: 'OC-4',
    statement:
      'the agent events of a run are numbered from 1 without gaps; a number repeated is the same event',
  },
  {
    id: 'OC-5',
    statement:
      'the entries of a transcript are one tree, and each tool call has its result and each result its call',
  },
  { id: 'OC-6', statement: 'the agent events of a run stand between its start and its end' },
  { id: 'OC-7', statement: 'audit records are numbered without gaps, and what finished had started' },
  {
    id: 'OC-8',
    statement: 'hooks and audit records of a run have the same calls, by the SHA-256 of the call id',
  },
  {
    id: 'OC-9',
    statement: 'handlers keep to the class, mode, order, merging and error policy of their stage',
    undecidable:
      'recordings of hooks hold one result and no handlers; stage traces do, and the checker openclaw-pipeline decides it on them',
  },
  { id: 'OC-10', statement: 'the tokens of a run are the sum of those of its model calls' },
  { id: 'OC-14', statement: 'the total of a call of a model, of tokens and of costs, is that of its parts' },
  { id: 'OC-11', statement: 'what ran was decided by somebody' },
  { id: 'OC-12', statement: 'the sources of one call say the same of it' },
  { id: 'OC-13', statement: 'the times of one recording do not go back' },
];
