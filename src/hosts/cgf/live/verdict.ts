/** What becomes of a proposal, and by what. */

import { randomBytes } from 'node:crypto';
import type { FailMode } from '../vocabulary.js';
import type { LiveDecision } from './decision.js';
import type { NoAnswer } from './exchange.js';

export interface Proposal {
  readonly id: string;
  readonly adapterId: string;
  readonly actionType: string;
  readonly riskTier: string;
  readonly toolName: string | undefined;
  /** The first 16 digits of the SHA-256 of the parameters, as CGF's adapters take it. */
  readonly paramsHash: string;
}

/** Whether it runs, is refused, or is put off. */
export type Act = 'run' | 'block' | 'defer';

interface Known {
  readonly act: Act;
  /** A Code: the decision's own, or why something else came of it. */
  readonly code: string;
  /** The server's, or one that is made up as CGF's adapters do. */
  readonly decisionId: string;
  readonly justification: string;
}

/**
 * By what it was settled: the server's decision; that its constraint could not be applied, or its audit could not be held; the fail mode,
 * as nobody answered; an answer that is none; the ledger, which has the last word.
 */
export type Verdict = Known &
  (
    | { readonly by: 'decision'; readonly decision: LiveDecision }
    | { readonly by: 'constraint'; readonly decision: LiveDecision }
    | { readonly by: 'audit'; readonly decision: LiveDecision }
    | { readonly by: 'fail_mode'; readonly mode: FailMode; readonly why: NoAnswer }
    | { readonly by: 'answer'; readonly fault: string }
    | {
        readonly by: 'ledger';
        readonly decision?: LiveDecision | undefined;
        readonly why?: NoAnswer | undefined;
      }
  );

/** The id of what no decision of the server stands behind. */
export function madeUpId(kind: 'failmode' | 'fallback'): string {
  return `${kind}-${randomBytes(4).toString('hex')}`;
}

export const ACTS: Readonly<Record<FailMode, Act>> = {
  fail_open: 'run',
  fail_closed: 'block',
  defer: 'defer',
};
