/** The rules for hook logs and transcripts of Claude Code. */

import { findingsOf, rulesOf } from '../shared/findings.js';

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

export const finding = findingsOf({
  DUPLICATE_TOOL_USE: ['CC-1', 'invalid', 'the tool and the parameters as they were before', 'others'],
  RESULT_WITHOUT_USE: ['CC-2', 'invalid', undefined, 'none'],
  TWO_RESULTS: ['CC-5', 'invalid'],
  OUTCOME_DISAGREES: ['CC-5', 'invalid'],
  PARENT_AFTER_CHILD: ['CC-4', 'warning'],
  PARENT_NOT_FOUND: ['CC-4', 'warning'],
  DUPLICATE_UUID: ['CC-3', 'invalid', 'the line as it was before', 'another'],
  RAN_AFTER_DENIAL: ['CC-6', 'violation', undefined, 'a result'],
  DECISION_NOT_STATED: ['CC-7', 'undecided', 'a decision', 'none in these files'],
  TOOL_CHANGED: ['CC-8', 'invalid'],
  PARAMS_CHANGED: ['CC-8', 'invalid'],
  RESULT_MISSING: ['CC-9', 'warning', 'a result, or a denial', 'neither'],
  RESULT_BEFORE_USE: ['CC-10', 'invalid'],
  AMOUNT_INVALID: ['CC-11', 'invalid'],
  PART_EXCEEDS_TOTAL: ['CC-11', 'warning'],
  USAGE_DISAGREES: ['CC-11', 'warning', undefined, 'another'],
  DECISION_UNKNOWN: ['CC-12', 'invalid', 'allow, deny, ask or defer'],
  ID_NOT_STATED: ['INPUT', 'invalid', undefined, 'none'],
  TIME_OF_TRANSCRIPT: ['INPUT', 'info', 'a date and time'],
  KIND_UNKNOWN: ['INPUT', 'warning', 'a kind of line that is known'],
});

export type Code = Parameters<typeof finding>[0];
