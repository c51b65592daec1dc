/** The rules for OpenClaw's recordings: OC-1 to OC-10 from its documents, the others follow from them. */

import { rulesOf } from '../shared/findings.js';

export const OPENCLAW_RULES = rulesOf({
  'OC-1':
    'every end was announced: after_tool_call has its before_tool_call, message_sent its message_sending',
  'OC-2': 'a call that was blocked, cancelled or not approved does not run',
  'OC-3': 'tool and parameters that ran are those that were let through',
  'OC-4': 'the agent events of a run are numbered from 1 without gaps; a repeated number is the same event',
  'OC-5': 'the entries of a transcript form one tree; each tool call has its result and each result its call',
  'OC-6': 'the agent events of a run are between its start and its end',
  'OC-7': 'audit records are numbered without gaps, and everything that finished had started',
  'OC-8': 'hooks and audit records of a run have the same calls, by the SHA-256 of the call id',
  'OC-9': [
    'handlers follow the class, mode, order, merging and error policy of their stage',
    'recordings of hooks hold one result and no handlers; stage traces do, and the checker openclaw-pipeline decides it on them',
  ],
  'OC-10': 'the tokens of a run are the sum of those of its model calls',
  'OC-14': 'the total of a model call, of tokens and of costs, is the sum of its parts',
  'OC-11': 'every call that ran was decided',
  'OC-12': 'the sources of one call agree',
  'OC-13': 'the times of one recording do not go back',
});
