/** The rules for events and stages of the canonical pipeline: the parts of OC-9. */

import { findingsOf, rulesOf } from '../shared/findings.js';

export const PIPELINE_RULES = rulesOf({
  'OC-9.1': 'an event has the 16 members of the envelope, each of its type, and no others',
  'OC-9.2': 'events and stages belong to a family of the pipeline',
  'OC-9.3': 'an event never changes: the same id means the same event',
  'OC-9.4': 'a handler declares exactly one class, which its stage allows',
  'OC-9.5': 'a stage runs in its mode; handlers of a sequential stage run sequentially',
  'OC-9.6': 'handlers run by priority descending, extension id ascending, contribution id ascending',
  'OC-9.7': 'a synchronous stage rejects asynchronous handlers',
  'OC-9.8': 'only vetoes and resolvers decide; observers return nothing',
  'OC-9.9': 'additions of augmenters are appended; only fields marked replaceable are replaced',
  'OC-9.10':
    'patches of mutators apply in order; the first override of the model wins; only trusted mutators replace the system prompt',
  'OC-9.11':
    'a veto says allow or cancel, and a cancel takes effect; if the stage fails closed, nothing runs after it',
  'OC-9.12': 'an explicit target wins, else the valid candidate of the highest rank, else the first',
  'OC-9.13': 'a stage states its error policy, and errors have the effect that it says',
  'OC-9.14': 'a stage belongs to an event of its family',
  'OC-9.15': 'nothing follows a cancelled event',
});

export const finding = findingsOf({
  UNKNOWN_ITEM: ['INPUT', 'invalid'],
  HANDLERS_MISSING: ['INPUT', 'invalid', undefined, 'none stated'],
  TOO_MANY_HANDLERS: ['INPUT', 'invalid'],
  OUTPUT_MISSING: ['INPUT', 'invalid', 'what came of the stage'],
  MEMBER_MISSING: ['OC-9.1', 'invalid'],
  MEMBER_INVALID: ['OC-9.1', 'invalid'],
  MEMBER_UNKNOWN: ['OC-9.1', 'invalid'],
  FAMILY_UNKNOWN: ['OC-9.2', 'invalid', 'a family of the pipeline'],
  EVENT_CHANGED: ['OC-9.3', 'violation'],
  CLASS_INVALID: ['OC-9.4', 'invalid'],
  CLASS_NOT_ALLOWED: ['OC-9.4', 'violation'],
  MODE_WRONG: ['OC-9.5', 'violation'],
  HANDLERS_OVERLAP: ['OC-9.5', 'violation'],
  HANDLER_REPEATED: ['OC-9.6', 'invalid'],
  ORDER_WRONG: ['OC-9.6', 'violation'],
  ASYNC_IN_SYNC_STAGE: ['OC-9.7', 'violation', 'rejected'],
  REJECTED_WITH_RESULT: ['OC-9.7', 'invalid', 'no result'],
  OBSERVER_GAVE: ['OC-9.8', 'violation', 'no result'],
  DECIDED_BY_OTHERS: ['OC-9.8', 'violation'],
  RESULT_OF_OTHER_CLASS: ['OC-9.8', 'violation'],
  ROUTE_CHOSEN: ['OC-9.8', 'violation', 'no route'],
  CONTEXT_DIFFERS: ['OC-9.9', 'invalid', 'what the augmenters added, merged'],
  REPLACED: ['OC-9.9', 'violation', 'a field marked replaceable'],
  WORKING_DIFFERS: ['OC-9.10', 'invalid', 'the input, patched in order'],
  SEES_OTHER: ['OC-9.10', 'invalid', 'what the handlers before it left'],
  MUTATOR_NOT_TRUSTED: ['OC-9.10', 'violation', 'an explicitly trusted mutator'],
  DECISION_INVALID: ['OC-9.11', 'invalid', 'allow or cancel'],
  RAN_AFTER_CANCEL: ['OC-9.11', 'violation', 'nothing'],
  CANCEL_IGNORED: ['OC-9.11', 'violation', 'cancel'],
  SELECTED_BY_NOBODY: ['OC-9.12', 'invalid'],
  SELECTED_OTHER: ['OC-9.12', 'invalid'],
  POLICY_NOT_STATED: ['OC-9.13', 'invalid', 'failPolicy open or closed'],
  RAN_AFTER_FAILURE: ['OC-9.13', 'violation', 'nothing'],
  FAILURE_IGNORED: ['OC-9.13', 'violation', 'cancel'],
  NO_BACKEND: ['OC-9.13', 'violation', 'cancel: no valid provider remains'],
  EVENT_NOT_FOUND: ['OC-9.14', 'warning', 'an event of that id in the files'],
  FAMILY_DIFFERS: ['OC-9.14', 'invalid'],
  FOLLOWS_CANCEL: ['OC-9.15', 'violation', 'nothing after the cancel'],
  CANCELLED_BY_NOBODY: ['OC-9.11', 'violation', 'allow', 'cancel'],
  FAILED_CLOSED: ['OC-9.13', 'violation', 'allow', 'cancel'],
});

export type Code = Parameters<typeof finding>[0];
