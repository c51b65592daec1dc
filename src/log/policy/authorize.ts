/** Evaluates a policy and records its decision in one step under the writer's lock, so that no other writer can spend in between. */

import { formatInstant, isTimestamp, parseTimestamp } from '../../base/value/timestamp.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { type Appended, type Entry, Ledger, type LedgerOptions } from '../writer/ledger.js';
import {
  type AuthorizationDecision,
  type AuthorizationRequest,
  draftDecision,
  GrantEvaluator,
  type HonourOptions,
  type PolicyEvaluator,
} from './evaluator.js';
import { findKnownAnswer, type KnownAnswer } from './known-answer.js';
import { sweepExpired } from './sweep.js';

export interface AuthorizeOptions extends LedgerOptions, HonourOptions {
  /** Default: the ledger's own grants ({@link GrantEvaluator}). */
  readonly policy?: (state: VerifyState) => PolicyEvaluator;
}

/** A request. `now` defaults to the instant of the decision. */
export type ActionRequest = Omit<AuthorizationRequest, 'now'> & {
  readonly now?: string;
  /** Instead of `expiresAt`: how long after the decision it may begin, in milliseconds. `Infinity` never expires. */
  readonly ttlMs?: number;
};

/**
 * A decision and its record. For a repeated request key, `recorded` is the earlier action with the status `exists`, and `checks` is empty.
 */
export interface RecordedDecision extends AuthorizationDecision {
  readonly recorded: Appended;
}

/**
 * Evaluates a policy on a verified ledger, and appends the authorization event: allow or deny. Each call appends its own event, so no two
 * callers share an allowance. A `requestKey` allowed before for the same principal, tool and parameters returns the earlier decision, or is
 * denied if the action can no longer begin (`ACTION_EXPIRED`, `AUTHORIZATION_REUSED`, `GRANT_EXPIRED`, …); nothing is recorded then.
 * Expired actions that were not started are released in the same step, if the ledger's signer may sign for their principals.
 * @param ledger - A path, opened and verified for this call; or an open ledger, whose own signer and trust policy hold: of `options` only
 *   `policy`, `now` and `signal` count
 * @throws NorthrootError `LEDGER_INVALID` for broken evidence; `REQUEST_CONFLICT` for a request key of another request, recording nothing;
 *   as `Ledger.open` and `append`
 * @throws TypeError, RangeError for a malformed request; TypeError for a trust policy with an open ledger
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
    return { event: draftDecision(whole, decision, evaluator), isAnew: true };
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

/** Ends a decision that records nothing. */
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

/** Undefined beyond the last instant that a timestamp can name. */
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
