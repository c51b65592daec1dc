/** Asking a policy and recording its answer, in one step under the writer's lock: nobody can spend in between. */

import { digestFromBase64url, fromDigestText } from '../../base/value/digest.js';
import { formatInstant, isTimestamp, parseTimestamp } from '../../base/value/timestamp.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { runVerification } from '../../rules/verify/run-verification.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { openLedgerSource } from '../fs/source.js';
import { type Appended, type Entry, Ledger, type LedgerOptions } from '../writer/ledger.js';
import { assertDecidable } from '../writer/running-verification.js';
import {
  type AuthorizationDecision,
  type AuthorizationRequest,
  GrantEvaluator,
  type HonourOptions,
  type PolicyEvaluator,
} from './evaluator.js';
import { findKnownAnswer, type KnownAnswer } from './known-answer.js';
import { sweepExpired } from './sweep.js';

/** How {@link authorizeAction} works. */
export interface AuthorizeOptions extends LedgerOptions, HonourOptions {
  /** The policy to ask, given the ledger's state. Default: its own grants ({@link GrantEvaluator}). */
  readonly policy?: (state: VerifyState) => PolicyEvaluator;
}

/** What is asked of a ledger. Without `now` it is asked about the moment in which nobody else can spend any more. */
export type ActionRequest = Omit<AuthorizationRequest, 'now'> & {
  readonly now?: string;
  /** Instead of `expiresAt`: for how long from the decision on it may be begun, in milliseconds. `Infinity`: for ever. */
  readonly ttlMs?: number;
};

/**
 * A decision and where it was recorded. Of a request key that was allowed before, `recorded` is the action that was allowed then, with the
 * status `exists`, and `checks` is empty.
 */
export interface RecordedDecision extends AuthorizationDecision {
  readonly recorded: Appended;
}

/**
 * Asks a policy of a ledger that verifies, and appends the authorization event: allow or deny. Each call appends an event of its
 * own, so that what one asker was allowed no other may use; but for a `requestKey` under which the same principal was allowed the same
 * tool with the same parameters before: that gets the answer that it has, or is denied where the action can no longer be begun
 * (`ACTION_EXPIRED`, `AUTHORIZATION_REUSED`, `GRANT_EXPIRED`, …), and nothing is recorded. Actions that have expired and were not started
 * are released before, in the same step, as far as the ledger's signer may sign for their principals.
 *
 * @param ledger - The file or folder, which is opened for it and verified; or a ledger that is open, also one that others of the same
 *   process append to: its own signer and trust policy hold, and of `options` only `policy`, `now` and `signal`.
 * @throws NorthrootError `LEDGER_INVALID` when the ledger's evidence is broken; as `Ledger.open` and `append`.
 * @throws NorthrootError `REQUEST_CONFLICT` when the request key was used for another tool or other parameters. Nothing is recorded then.
 * @throws TypeError, RangeError when the request is not of its form; TypeError for a trust policy beside a ledger that is open.
 */
export async function authorizeAction(
  ledger: string | Ledger,
  request: ActionRequest,
  options: AuthorizeOptions = {},
): Promise<RecordedDecision> {
  if (typeof ledger !== 'string') {
    if (options.trust !== undefined)
      throw new TypeError('the ledger is open: give trust to Ledger.open instead');
    return decideAction(ledger, request, options);
  }
  const { policy, honourImported, ...own } = options;
  const opened = await Ledger.open(ledger, { ...own, decides: true });
  try {
    return await decideAction(opened, request, {
      ...own,
      honourImported,
      ...(policy === undefined ? {} : { policy }),
    });
  } finally {
    await opened.close();
  }
}

async function decideAction(
  ledger: Ledger,
  request: ActionRequest,
  { policy, now: clock, signal, honourImported }: AuthorizeOptions,
): Promise<RecordedDecision> {
  const { ttlMs, ...asked } = request;
  assertTtl(ttlMs, asked.expiresAt);
  const readClock = (): string => asked.now ?? clock?.() ?? new Date().toISOString();
  let decision: AuthorizationDecision | undefined;
  const makeEvent = (state: VerifyState): Entry => {
    const evaluator = policy?.(state) ?? new GrantEvaluator(state, { honourImported });
    const now = readClock();
    const expiresAt = asked.expiresAt ?? endOf(ttlMs, now);
    const whole = { ...asked, now, ...(expiresAt === undefined ? {} : { expiresAt }) };
    const evaluated = evaluator.evaluate(whole);
    const known = findKnownAnswer(state, whole, evaluated, honourImported);
    if (known !== undefined) throw new Answered(known);
    decision = evaluated;
    return { event: toDraft(whole, decision, evaluator), isAnew: true };
  };
  const before = (state: VerifyState): Entry[] => {
    const now = readClock();
    return isTimestamp(now) ? sweepExpired(ledger, state, now) : [];
  };
  try {
    const recorded = await ledger.decide(makeEvent, { signal, before });
    return { ...(decision as unknown as AuthorizationDecision), recorded };
  } catch (error) {
    if (!(error instanceof Answered)) throw error;
    return { ...error.known.decision, recorded: error.known.recorded };
  }
}

/** Ends a decision of which nothing is to be recorded. It is told when all before it is on disk. */
class Answered extends Error {
  readonly known: KnownAnswer;

  constructor(known: KnownAnswer) {
    super('the request was answered before');
    this.known = known;
  }
}

function assertTtl(ttlMs: number | undefined, expiresAt: string | undefined): void {
  if (ttlMs === undefined) return;
  if (expiresAt !== undefined) throw new TypeError('expiresAt and ttlMs exclude each other');
  if (!(typeof ttlMs === 'number' && ttlMs >= 1))
    throw new RangeError('ttlMs: expected milliseconds, at least 1');
}

/** The last instant that can be named is as good as none. */
function endOf(ttlMs: number | undefined, now: string): string | undefined {
  if (ttlMs === undefined || ttlMs > MAX_TTL_MS || !isTimestamp(now)) return undefined;
  try {
    return formatInstant(parseTimestamp(now) + BigInt(Math.ceil(ttlMs)) * NANOSECONDS_PER_MS);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

const NANOSECONDS_PER_MS = 1_000_000n;
const MAX_TTL_MS = Number.MAX_SAFE_INTEGER;

/**
 * The state of a ledger that is fit to decide upon. What is decided upon it is not recorded in the same step: see {@link Ledger.decide}.
 *
 * @throws NorthrootError `LEDGER_INVALID` when its evidence is broken.
 */
export async function readState(path: string, trust: TrustPolicy | undefined): Promise<VerifyState> {
  const source = await openLedgerSource(path);
  const { state } = await runVerification(source, {
    maxFindings: 0,
    ...(trust === undefined ? {} : { trust }),
  });
  assertDecidable(state, path);
  return state;
}

function toDraft(
  request: AuthorizationRequest,
  answer: AuthorizationDecision,
  evaluator: PolicyEvaluator,
): object {
  const { decision, decisionCode, checks, grantId, reservation } = answer;
  const userIntent = answer.userIntentDigest ?? request.userIntentDigest;
  return {
    event_type: 'authorization',
    principal_id: request.principalId,
    occurred_at: request.now,
    intents: {
      intent_digest: request.intentDigest,
      ...(userIntent === undefined ? {} : { user_intent_digest: userIntent }),
    },
    policy_id: evaluator.policyId,
    policy_digest: evaluator.policyDigest,
    decision,
    decision_code: decisionCode,
    checks,
    ...(request.hygiene === undefined ? {} : { hygiene: request.hygiene }),
    ...(request.contextDigest === undefined ? {} : { context_digest: request.contextDigest }),
    authorization: {
      kind: 'action',
      ...(grantId === undefined ? {} : { grant_event_id: digestFromBase64url(fromDigestText(grantId)) }),
      action: {
        tool_name: request.toolName,
        tool_params_digest: request.paramsDigest,
        ...(reservation.length === 0 ? {} : { meter_reservation: reservation }),
        ...(request.expiresAt === undefined || decision === 'deny' ? {} : { expires_at: request.expiresAt }),
        ...(request.requestKey === undefined ? {} : { request_key: request.requestKey }),
      },
    },
  };
}
