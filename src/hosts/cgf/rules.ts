/** The rules of CGF, by the ids that docs/hosts/cgf.md lists. */

import type { HostRule } from '../shared/host.js';

/** CGF-1 to CGF-15. */
export const CGF_RULES: readonly HostRule[] = [
  {
    id: 'CGF-1',
    statement:
      'An event of an action comes after a decision about the same proposal, names it, and is of a kind that it permits.',
  },
  {
    id: 'CGF-2',
    statement: 'Nothing is executed that was blocked, deferred, rejected, revoked or has expired.',
  },
  { id: 'CGF-3', statement: 'A proposal has one decision, and all sources tell the same one.' },
  {
    id: 'CGF-4',
    statement:
      'A proposal is decided; a decision has one event of its action; what is executed has one outcome.',
  },
  { id: 'CGF-5', statement: 'An enforcement that starts finishes, unless its constraint fails.' },
  { id: 'CGF-6', statement: 'A constraint that fails is followed by a block, never by an execution.' },
  {
    id: 'CGF-7',
    statement: 'The fail mode that is applied is that of the table, and what follows is what it says.',
  },
  { id: 'CGF-8', statement: 'A decision to audit is followed by evidence of the audit.' },
  {
    id: 'CGF-9',
    statement: 'What is executed has the params that were proposed, as the decision constrains them.',
  },
  { id: 'CGF-10', statement: 'An outcome names the decision about its proposal, and its adapter.' },
  {
    id: 'CGF-11',
    statement:
      'Every item has a compatible schema_version, the members that its vocabulary requires, and known values.',
  },
  { id: 'CGF-12', statement: 'Times do not go back within a proposal.' },
  { id: 'CGF-13', statement: 'What is used is not more than what was estimated.' },
  { id: 'CGF-14', statement: 'The hash of the policy bundle is that of its content.' },
  { id: 'CGF-15', statement: 'A decision is the one that the policy bundle gives for its proposal.' },
];
