/** The rules of CGF, by the ids in docs/hosts/cgf.md. */

import { rulesOf } from '../shared/findings.js';

export const CGF_RULES = rulesOf({
  'CGF-1':
    'An action event follows a decision about the same proposal, names it, and is of a kind that the decision permits.',
  'CGF-2': 'Nothing is executed that was blocked, deferred, rejected or revoked, or that has expired.',
  'CGF-3': 'A proposal has one decision, and all sources agree on it.',
  'CGF-4': 'A proposal is decided, a decision has one action event, and an execution has one outcome.',
  'CGF-5': 'An enforcement that starts finishes, unless its constraint fails.',
  'CGF-6': 'A failed constraint is followed by a block, never by an execution.',
  'CGF-7': 'The fail mode is the one in the table, and it is followed.',
  'CGF-8': 'A decision to audit is followed by evidence of the audit.',
  'CGF-9': 'The executed params are the proposed ones, as constrained by the decision.',
  'CGF-10': 'An outcome names the decision about its proposal, and its adapter.',
  'CGF-11':
    'Every item has a compatible schema_version, the members that its vocabulary requires, and known values.',
  'CGF-12': 'Times do not go back within a proposal.',
  'CGF-13': 'Usage does not exceed the estimate.',
  'CGF-14': 'The hash of the policy bundle is the hash of its content.',
  'CGF-15': 'A decision is the one that the policy bundle gives for its proposal.',
});
