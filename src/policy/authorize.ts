/** Asking a policy and recording its answer, in one step under the writer's lock: nobody can spend in between. */

import { NorthrootError } from '../error.js';
import { printable } from '../bytes/printable.js';
import { openLedgerSource } from '../fs/source.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { runVerification } from '../verify/run-verification.js';
import type { VerifyState } from '../verify/state.js';
import { digestFromBase64url } from '../value/digest.js';
import { Ledger, type Appended, type LedgerOptions } from '../writer/ledger.js';
import { appendAnew } from './append-anew.js';
import {
  GrantEvaluator,
  type AuthorizationDecision,
  type AuthorizationRequest,
  type PolicyEvaluator,
} from './evaluator.js';

/** How {@link authorizeAction} works. */
export interface AuthorizeOptions extends LedgerOptions {
  /** The policy to ask, given the ledger's state. Default: its own grants ({@link GrantEvaluator}). */
  readonly policy?: (state: VerifyState) => PolicyEvaluator;
  readonly trust?: TrustPolicy;
}

/** What is asked of a ledger. Without `now` it is asked about the moment in which nobody else can spend any more. */
export type ActionRequest = Omit<AuthorizationRequest, 'now'> & { readonly now?: string };

/** A decision and where it was recorded. */
export interface RecordedDecision extends AuthorizationDecision {
  readonly recorded: Appended;
}

/**
 * Verifies a ledger, asks a policy, and appends the authorization event: allow or deny. Each call appends an event of its
 * own, so that what one asker was allowed no other may use.
 *
 * @throws NorthrootError `LEDGER_INVALID` (exit status 1) when the ledger's evidence is broken; as `Ledger.open` and `append`.
 * @throws TypeError, RangeError when the request is not of its form.
 */
export async function authorizeAction(
  path: string,
  request: ActionRequest,
  options: AuthorizeOptions = {},
): Promise<RecordedDecision> {
  const { policy, trust, ...ledgerOptions } = options;
  const ledger = await Ledger.open(path, ledgerOptions);
  try {
    const state = await readState(path, trust);
    const evaluator = policy?.(state) ?? new GrantEvaluator(state);
    const now = request.now ?? options.now?.() ?? new Date().toISOString();
    const decision = evaluator.evaluate({ ...request, now });
    const recorded = await appendAnew(ledger, toDraft({ ...request, now }, decision, evaluator));
    return { ...decision, recorded };
  } finally {
    await ledger.close();
  }
}

/**
 * The state of a ledger that is fit to decide upon.
 *
 * @throws NorthrootError `LEDGER_INVALID` when its evidence is broken.
 */
export async function readState(path: string, trust: TrustPolicy | undefined): Promise<VerifyState> {
  const source = await openLedgerSource(path);
  const { state } = await runVerification(source, {
    maxFindings: 0,
    ...(trust === undefined ? {} : { trust }),
  });
  if (!state.hasInvalid) return state;
  throw new NorthrootError(
    'LEDGER_INVALID',
    `${printable(path)} is not valid: nothing can be decided upon it`,
    {
      exitStatus: 1,
      hint: `northroot verify ${printable(path)} says what is wrong`,
    },
  );
}

function toDraft(
  request: AuthorizationRequest,
  answer: AuthorizationDecision,
  evaluator: PolicyEvaluator,
): object {
  const { decision, decisionCode, checks, grantId, reservation } = answer;
  return {
    event_type: 'authorization',
    principal_id: request.principalId,
    occurred_at: request.now,
    intents: { intent_digest: request.intentDigest },
    policy_id: evaluator.policyId,
    policy_digest: evaluator.policyDigest,
    decision,
    decision_code: decisionCode,
    checks,
    ...(request.hygiene === undefined ? {} : { hygiene: request.hygiene }),
    ...(request.contextDigest === undefined ? {} : { context_digest: request.contextDigest }),
    authorization: {
      kind: 'action',
      ...(grantId === undefined
        ? {}
        : { grant_event_id: digestFromBase64url(grantId.replace(/^sha-256:/, '')) }),
      action: {
        tool_name: request.toolName,
        tool_params_digest: request.paramsDigest,
        ...(reservation.length === 0 ? {} : { meter_reservation: reservation }),
      },
    },
  };
}
