/** Evaluates a policy and records its decision in one step under the writer's lock, so that no other writer can spend in between. */

import { type Clock, presentTime, sleep, systemClock } from '../../base/clock.js';
import { formatDigest, fromDigestText } from '../../base/value/digest.js';
import { formatInstant, isTimestamp, parseTimestamp } from '../../base/value/timestamp.js';
import { APPROVAL_REQUIRED } from '../../rules/verify/approvals.js';
import type { Grant } from '../../rules/bounds/grant.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { IndexFault } from '../cache/entry-store.js';
import { assertContentOf, ContentFolder } from '../contents/content-folder.js';
import { type Appended, type Entry, Ledger, type LedgerOptions } from '../writer/ledger.js';
import { usedSince } from './approve.js';
import { findReject } from './choose-approvals.js';
import {
  type AuthorizationDecision,
  type AuthorizationRequest,
  draftDecision,
  GrantEvaluator,
  type HonourOptions,
  type PolicyEvaluator,
} from './evaluator.js';
import {
  expectDecision,
  type ExpectedDecision,
  isAsExpected,
  rememberDecision,
} from './expected-decision.js';
import { findKnownAnswer, type KnownAnswer } from './known-answer.js';
import {
  type ExpectedStart,
  startExecution,
  type StartedExecution,
  StartMaker,
  type StartRequest,
} from './start.js';
import { sweepExpired } from './sweep.js';

export interface AuthorizeOptions extends LedgerOptions, HonourOptions {
  /** Default: the ledger's own grants ({@link GrantEvaluator}). */
  readonly policy?: (state: VerifyState) => PolicyEvaluator;
  /** How long to wait for approvals, in milliseconds, where the answer is `APPROVAL_REQUIRED`. Default 0: not at all. */
  readonly waitMs?: number | undefined;
  /** Called with the recorded request before waiting begins. */
  readonly onApprovalNeeded?: ((request: RecordedDecision) => void) | undefined;
  /**
   * The canonical bytes of the parameters, for who approves: kept in `LEDGER.contents`, on disk before the decision is recorded. If they
   * cannot be kept, nothing is recorded. Default: not kept.
   */
  readonly attach?: Uint8Array | undefined;
  /** How much `LEDGER.contents` may hold, in bytes. Default 1 GiB. */
  readonly maxContentsBytes?: number | undefined;
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
  /** Until when what was allowed may be begun. */
  readonly expiresAt?: string | undefined;
}

/**
 * Evaluates a policy on a verified ledger, and appends the authorization event: allow or deny. Each call appends its own event, so no two
 * callers share an allowance. A `requestKey` allowed before for the same principal, tool and parameters returns the earlier decision, or is
 * denied if the action can no longer begin (`ACTION_EXPIRED`, `AUTHORIZATION_REUSED`, `GRANT_EXPIRED`, …); nothing is recorded then.
 * With `waitMs`, a call that needs approval is decided again once it was approved or rejected (`APPROVAL_REJECTED`); where nobody answers
 * in time the first answer is returned.
 * Expired actions that were not started are released in the same step, if the ledger's signer may sign for their principals.
 * @param ledger - A path, opened and verified for this call; or an open ledger, whose own signer and trust policy hold: of `options` only
 *   `policy`, `now` and `signal` count
 * @throws NorthrootError `LEDGER_INVALID` for broken evidence; `REQUEST_CONFLICT` for a request key of another request, recording nothing;
 *   as `Ledger.open` and `append`; with `attach` as `writeContent`
 * @throws TypeError, RangeError for a malformed request; TypeError for a trust policy or `attach` with an open ledger
 */
export async function authorizeAction(
  ledger: string | Ledger,
  request: ActionRequest,
  options: AuthorizeOptions = {},
): Promise<RecordedDecision> {
  if (typeof ledger !== 'string') {
    if (options.trust !== undefined)
      throw new TypeError('the ledger is open: give trust to Ledger.open instead');
    if (options.attach !== undefined)
      throw new TypeError('the ledger is open: give attach to a LiveLedger, or call writeContent before');
    return decideOrWait(ledger, request, options);
  }
  const { policy, honourImported, waitMs, onApprovalNeeded, attach, maxContentsBytes, ...own } = options;
  if (attach !== undefined) assertContentOf(request.paramsDigest, attach);
  const contents = new ContentFolder(ledger, { maxBytes: maxContentsBytes }, own.fileSystem);
  const opened = await Ledger.open(ledger, { ...own, decides: true });
  try {
    if (attach !== undefined) await contents.write(attach);
    return await decideOrWait(opened, request, {
      ...own,
      honourImported,
      waitMs,
      onApprovalNeeded,
      ...(policy === undefined ? {} : { policy }),
    });
  } finally {
    await opened.close();
  }
}

/** How an action is begun where it is allowed; its parameters are the request's. */
export type ActionStart = Pick<StartRequest, 'meterUsed' | 'now'>;

export interface BegunDecision extends RecordedDecision {
  /** Absent for a denial, and where the start was refused. */
  readonly started?: StartedExecution;
  /** Why what was allowed could not be started: as {@link startExecution} throws, or the signal's reason. It stays reserved. */
  readonly refusal?: unknown;
}

/**
 * {@link authorizeAction} and, where it allows, {@link startExecution} in one durable step: decision and start are on disk at once.
 * @param start - `meterUsed`: the known use; `now`: when it starts
 * @throws as {@link authorizeAction}
 */
export async function authorizeAndStart(
  ledger: Ledger,
  request: ActionRequest,
  start: ActionStart,
  options: Omit<AuthorizeOptions, keyof LedgerOptions> &
    Pick<AuthorizeOptions, 'now' | 'clock' | 'signal'> = {},
): Promise<BegunDecision> {
  return decideOrWait(ledger, request, { ...options, start });
}

interface DecidingOptions extends AuthorizeOptions {
  readonly start?: ActionStart;
}

const POLL_MS = 250;
/** The longest of a timer: 2^31 − 1. */
export const MAX_WAIT_MS = 2_147_483_647;

async function decideOrWait(
  ledger: Ledger,
  request: ActionRequest,
  options: DecidingOptions,
): Promise<BegunDecision> {
  const { waitMs = 0, onApprovalNeeded, signal, clock = systemClock } = options;
  if (!(waitMs >= 0 && waitMs <= MAX_WAIT_MS))
    throw new RangeError(`waitMs: expected milliseconds, at most ${MAX_WAIT_MS}`);
  let decision = await decideAction(ledger, request, options);
  if (decision.decisionCode !== APPROVAL_REQUIRED || waitMs === 0) return decision;
  onApprovalNeeded?.(decision);
  const until = clock.ticks() + waitMs;
  for (let left = waitMs; left > 0; left = until - clock.ticks()) {
    const asked = decision;
    const seen = await lookTogether(ledger, clock, Math.min(POLL_MS, left), signal, (state) =>
      lookAgain(state, request, asked, options),
    );
    if (seen === 'open') continue;
    if (seen !== 'decide') return { ...seen, recorded: decision.recorded };
    decision = await decideAction(ledger, request, options);
    if (decision.decisionCode !== APPROVAL_REQUIRED) return decision;
    // Another one of the same calls has used the approval up: this is a request of its own.
    onApprovalNeeded?.(decision);
  }
  return decision;
}

/** Calls that look at the ledger at the same instant: one query serves all, as each takes the write lock. */
interface Round {
  readonly clock: Clock;
  /** By {@link Clock.ticks}. */
  readonly at: number;
  readonly looks: Set<(state: VerifyState) => () => void>;
  readonly ended: Promise<void>;
  /** Ends it when nobody waits for it any more. */
  readonly abandon: AbortController;
}

const rounds = new WeakMap<Ledger, Round>();

/**
 * Waits, at most `ms`, and looks at what decisions rest on.
 * @throws what `look` throws; the signal's reason; as {@link Ledger.inspect}
 */
function lookTogether<T>(
  ledger: Ledger,
  clock: Clock,
  ms: number,
  signal: AbortSignal | undefined,
  look: (state: VerifyState) => T,
): Promise<T> {
  const begun = rounds.get(ledger);
  const isSoon = begun?.clock === clock && begun.at <= clock.ticks() + ms;
  const { looks, ended, abandon } = isSoon ? begun : beginRound(ledger, clock, ms);
  return new Promise<T>((resolve, reject) => {
    const fail: (error: unknown) => void = reject;
    const own = (state: VerifyState): (() => void) => {
      try {
        const seen = look(state);
        return () => resolve(seen);
      } catch (error) {
        if (error instanceof IndexFault) throw error;
        return () => fail(error);
      }
    };
    const leave = (): void => {
      signal?.removeEventListener('abort', leave);
      fail(signal?.reason);
      looks.delete(own);
      if (looks.size === 0) abandon.abort();
    };
    looks.add(own);
    void ended.catch(fail).finally(() => signal?.removeEventListener('abort', leave));
    signal?.addEventListener('abort', leave);
    if (signal?.aborted === true) leave();
  });
}

function beginRound(ledger: Ledger, clock: Clock, ms: number): Round {
  const looks: Round['looks'] = new Set();
  const abandon = new AbortController();
  const end = async (): Promise<void> => {
    await sleep(clock, ms, abandon.signal);
    if (rounds.get(ledger) === round) rounds.delete(ledger);
    if (looks.size === 0) return;
    const answers = await ledger.inspect((_, deciding) => [...looks].map((look) => look(deciding)));
    for (const answer of answers) answer();
  };
  const round: Round = { clock, at: clock.ticks() + ms, looks, ended: end(), abandon };
  rounds.set(ledger, round);
  return round;
}

/** Whether a call that waits for approval would be decided otherwise now. */
function lookAgain(
  state: VerifyState,
  request: ActionRequest,
  asked: RecordedDecision,
  { policy, now: readClock, clock, honourImported }: AuthorizeOptions,
): 'open' | 'decide' | AuthorizationDecision {
  const { ttlMs, ...rest } = request;
  void ttlMs;
  const now = rest.now ?? readClock?.() ?? presentTime(clock);
  const evaluator = policy?.(state) ?? new GrantEvaluator(state, { honourImported });
  const evaluated = evaluator.evaluate({ ...rest, now });
  if (evaluated.decisionCode !== APPROVAL_REQUIRED) return 'decide';
  const grant =
    asked.grantId === undefined ? undefined : state.links.grants.get(fromDigestText(asked.grantId));
  const call = { grant, toolName: request.toolName, params: formatDigest(request.paramsDigest) };
  const { need = { approvers: [] } } = evaluated;
  const { seq } = asked.recorded;
  const reject = findReject(state, call, need, seq);
  if (reject === undefined) return wasOvertaken(state, call, seq) ? 'decide' : 'open';
  const { need: lifted, ...denied } = evaluated;
  void lifted;
  return {
    ...denied,
    decisionCode: APPROVAL_REJECTED,
    reason: `${reject.principalId} rejected it by ${reject.eventId}`,
    reservation: [],
  };
}

/** Whether another one of the same calls was approved and allowed since the request, which nobody is shown then any more. */
function wasOvertaken(
  state: VerifyState,
  {
    grant,
    ...call
  }: { readonly grant: Grant | undefined; readonly toolName: string; readonly params: string },
  seq: number,
): boolean {
  return grant !== undefined && usedSince(state, { ...call, grant, seq }) !== undefined;
}

/** The answer to who waited for an approval that was refused. It is not recorded: the reject is. */
export const APPROVAL_REJECTED = 'APPROVAL_REJECTED';

async function decideAction(
  ledger: Ledger,
  request: ActionRequest,
  { policy, now: told, clock, signal, honourImported, start }: DecidingOptions,
): Promise<BegunDecision> {
  const { ttlMs, ...asked } = request;
  assertTtl(ttlMs, asked.expiresAt);
  const readClock = (): string => asked.now ?? told?.() ?? presentTime(clock);
  const askNow = (): AuthorizationRequest => {
    const now = readClock();
    const expiresAt = asked.expiresAt ?? endOf(ttlMs, now);
    return { ...asked, now, ...(expiresAt === undefined ? {} : { expiresAt }) };
  };
  let decision: AuthorizationDecision | undefined;
  let end: string | undefined;
  let expected: ExpectedDecision | undefined;
  let expectedStart: ExpectedStart | undefined;
  const expects = (complete: (entry: Entry) => string): void => {
    expected = undefined;
    expectedStart = undefined;
    const likely = expectDecision(ledger, askNow());
    if (likely === undefined) return;
    const eventId = complete(likely.entry);
    expected = likely;
    expectedStart = maker?.expect(likely.request, eventId);
    if (expectedStart !== undefined) complete(expectedStart.entry);
  };
  const makeEvent = (state: VerifyState): Entry => {
    const likely = expected;
    expected = undefined;
    const grants = policy === undefined ? new GrantEvaluator(state, { honourImported }) : undefined;
    const evaluator = grants ?? (policy?.(state) as PolicyEvaluator);
    const whole = likely?.request ?? askNow();
    const evaluated =
      grants === undefined || likely === undefined
        ? evaluator.evaluate(whole)
        : grants.evaluateWellFormed(whole);
    const known = findKnownAnswer(state, whole, evaluated, honourImported);
    if (known !== undefined) throw new Answered(known);
    decision = evaluated;
    end = evaluated.decision === 'allow' ? whole.expiresAt : undefined;
    if (grants !== undefined) rememberDecision(ledger, whole, evaluated);
    if (likely !== undefined && isAsExpected(evaluated, likely)) return likely.entry;
    return { event: draftDecision(whole, decision, evaluator), isAnew: true };
  };
  const before = (state: VerifyState): Entry[] => {
    const now = expected?.request.now ?? readClock();
    return isTimestamp(now) ? sweepExpired(ledger, state, now) : [];
  };
  const toStart = start && { ...start, paramsDigest: asked.paramsDigest, honourImported };
  const maker = toStart && new StartMaker(ledger, toStart);
  const after = (state: VerifyState, { eventId }: Appended): Entry[] => {
    if (maker === undefined || decision?.decision !== 'allow') return [];
    signal?.throwIfAborted();
    return [maker.make(state, eventId, expectedStart)];
  };
  try {
    const { followers, refusal, ...recorded } = await ledger.decide(makeEvent, {
      signal,
      before,
      ...(policy === undefined ? { expects } : {}),
      ...(maker && { after }),
    });
    const [started] = followers ?? [];
    return {
      ...(decision as unknown as AuthorizationDecision),
      recorded,
      expiresAt: end,
      ...(maker && started && { started: maker.started(started) }),
      ...(refusal === undefined ? {} : { refusal }),
    };
  } catch (error) {
    if (!(error instanceof Answered)) throw error;
    const known = { ...error.known.decision, recorded: error.known.recorded };
    if (toStart === undefined || known.decision !== 'allow') return known;
    // It may have been started when it was first asked for.
    return startExecution(ledger, known.recorded.eventId, { ...toStart, signal }).then(
      (started) => ({ ...known, started }),
      (refusal: unknown) => ({ ...known, refusal }),
    );
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
