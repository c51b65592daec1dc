/** The rules for OpenClaw's recordings: OC-1 to OC-10 from its documents, the others follow from them. */

import { findingsOf, rulesOf } from '../shared/findings.js';

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

/** Findings by code: the rule, the weight, and what is expected and found where that is always the same. */

export const finding = findingsOf({
  PROFILE_INVALID: ['INPUT', 'invalid', '{"nonzero_exit":"success"} or {"nonzero_exit":"failure"}'],
  CALL_ENDED_TWICE: ['OC-1', 'invalid', 'a before_tool_call of its own'],
  BEFORE_MISSING: ['OC-1', 'invalid'],
  END_NOT_RECORDED: ['OC-1', 'warning', 'an after_tool_call'],
  CALL_ID_NOT_STATED: ['OC-1', 'warning'],
  EXECUTED_AFTER_BLOCK: ['OC-2', 'violation', 'no execution'],
  EXECUTED_BEFORE_APPROVAL: [
    'OC-2',
    'invalid',
    'the resolution of the approval that a hook required',
    'none recorded',
  ],
  TOOL_DIFFERS: ['OC-3', 'invalid'],
  PARAMS_DIFFER: ['OC-3', 'invalid'],
  SEQ_INVALID: ['OC-4', 'invalid', 'a number from 1'],
  SEQ_CONFLICT: ['OC-4', 'invalid', 'the same event as before', 'another'],
  SEQ_ORDER: ['OC-4', 'warning'],
  SEQ_GAP: ['OC-4', 'invalid'],
  ENTRY_ID_MISSING: ['OC-5', 'invalid'],
  ENTRY_ID_REUSED: ['OC-5', 'invalid'],
  PARENT_MISSING: ['OC-5', 'invalid', 'the id of an entry before it'],
  CALL_WITHOUT_RESULT: ['OC-5', 'invalid', 'a toolResult'],
  RESULT_WITHOUT_CALL: ['OC-5', 'invalid', 'a toolCall before it'],
  RUN_NOT_STARTED: ['OC-6', 'invalid', 'lifecycle start as the first event'],
  RUN_NOT_ENDED: ['OC-6', 'warning', 'lifecycle end or error', 'none; the recording may be cut off'],
  EVENT_AFTER_END: ['OC-6', 'warning'],
  RUN_STARTED_TWICE: ['OC-6', 'invalid'],
  SEQUENCE_INVALID: ['OC-7', 'invalid', 'a number from 1'],
  SEQUENCE_CONFLICT: ['OC-7', 'invalid', 'the same record as before'],
  AUDIT_INCOMPLETE: ['OC-7', 'warning'],
  START_MISSING: ['OC-7', 'warning', 'a started record before it'],
  FINGERPRINT_INVALID: ['OC-8', 'warning', 'sha256: and 64 hexadecimal digits'],
  CALL_NOT_IN_HOOKS: ['OC-8', 'warning', 'a hook record of a call whose id has this SHA-256'],
  CALL_NOT_IN_AUDIT: ['OC-8', 'warning'],
  USAGE_DIFFERS: ['OC-10', 'invalid'],
  TOKEN_SUM_DIFFERS: ['OC-10', 'invalid'],
  NO_DECISION: ['OC-11', 'info'],
  DECISION_NOT_RECORDED: ['OC-11', 'undecided'],
  DECISION_NOT_ENFORCED: ['OC-11', 'info', 'enforced, verified, with nothing missing'],
  MODEL_CALL_NOT_DECIDED: ['OC-11', 'info'],
  RECEIPT_REPEATED: ['OC-12', 'warning'],
  RESULTS_DISAGREE: ['OC-12', 'invalid'],
  TIME_REGRESSION: ['OC-13', 'warning'],
  ARGUMENTS_DIFFER: ['OC-12', 'invalid'],
  RESULTS_DIFFER: ['OC-12', 'warning'],
  CACHE_WITHIN_INPUT: ['OC-14', 'info'],
  TOTAL_DIFFERS: ['OC-14', 'warning'],
  COST_TOTAL_DIFFERS: ['OC-14', 'warning'],
});

export type Code = Parameters<typeof finding>[0];
