/**
 * A ledger that a program keeps open while it acts: it authorizes, reserves, claims, runs and records. Decisions rest on every earlier
 * record, other processes' included; nothing comes between a decision and its record.
 */

import { type Clock, presentTime, systemClock, type Timer } from '../../base/clock.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import type { Signer } from '../../format/signature/signer.js';
import { checkOptions, checkString, type OptionTypes } from '../../base/options.js';
import { fromDigestText } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { formatInstant, parseTimestamp } from '../../base/value/timestamp.js';
import { type EventPlace, grantChain } from '../../rules/bounds/grant.js';
import { findStop } from '../../rules/bounds/withdrawal.js';
import type { VerifyState } from '../../rules/verify/state.js';
import {
  type ActionRequest,
  type ActionStart,
  authorizeAction,
  authorizeAndStart,
  type AuthorizeOptions,
  type BegunDecision,
} from '../policy/authorize.js';
import {
  type ApprovalOptions,
  draftApproval,
  findPendingApproval,
  findWaitingRequest,
  listPendingApprovals,
  type PendingApproval,
  type RequestedCall,
  type RequestSelection,
} from '../policy/approve.js';
import type { Webauthn } from '../../format/schema/generated/types.js';
import {
  completePasskeyApproval,
  hasHadPasskey,
  listPasskeys,
  type PasskeyAnswer,
  type PasskeyApprovalOptions,
  type PasskeyRequest,
  preparePasskeyApproval,
} from '../policy/passkey.js';
import { assertContentOf, ContentFolder } from '../contents/content-folder.js';
import { type AuthorizationDecision, GrantEvaluator, type HonourOptions } from '../policy/evaluator.js';
import type { LedgerView, ViewOptions } from '../read/ledger-view.js';
import { findCall, type FoundCall } from '../policy/known-answer.js';
import { type DelegateOptions, draftDelegation } from '../policy/delegate.js';
import { findGrants, type RevocationOptions, withdrawGrants } from '../policy/revoke.js';
import {
  ABANDONED,
  assertNoSlice,
  checkDetails,
  decideUnder,
  DETAIL_TYPES,
  draftAbandonment,
  draftExecution,
  type ExecutionDetails,
  type ExecutionOutcome,
  findPermission,
} from '../policy/record.js';
import { type StartedExecution, startExecution, type StartRequest } from '../policy/start.js';
import { type Abandonable, draftAbandoned, isOvertaken, listAbandonable } from '../policy/sweep.js';
import type { LedgerStore } from '../store/ledger-store.js';
import {
  type Appended,
  type CheckpointResult,
  type Entry,
  Ledger,
  type LedgerOptions,
} from '../writer/ledger.js';
import { LEDGER_OPTIONS } from '../writer/options.js';
import type { WatchedRecords, WatchOptions } from '../writer/watch.js';
import type { AskOptions, PatientOptions } from '../writer/withdrawal.js';
import type { Balance } from '../../rules/bounds/balance.js';
import { type Budget, findBalances, findBudget, listBudgets } from './budget.js';
import type { CallPricing } from './model-usage.js';
import { Guard, type GuardedFunction, type GuardOptions, type LiveRequest } from './guard.js';

/** As of `Ledger.open`. `strict` is on by default. */
export interface LiveLedgerOptions extends Omit<LedgerOptions, 'decides' | 'stopsAtRefusal'>, HonourOptions {
  /** Default: the ledger's own grants (`GrantEvaluator`). */
  readonly policy?: AuthorizeOptions['policy'] | undefined;
  readonly prices?: CallPricing | undefined;
  /** How much `LEDGER.contents` may hold, in bytes; each file counts for at least 4,096. Default 1 GiB. */
  readonly maxContentsBytes?: number | undefined;
  /** The clock for durations, in milliseconds. Default: that of `clock`, which is monotonic. */
  readonly ticks?: (() => number) | undefined;
}

export interface DoneExecution extends ExecutionOutcome {
  /** Required under a grant; an action names its tool. */
  readonly toolName?: string;
  /** The start to settle: an id or a prefix; `true` for the only open one. */
  readonly start?: string | true;
  /**
   * Whether the record is dated when it is made, after those of calls that came first. Otherwise it is dated `endedAt`. Default false.
   */
  readonly isDatedNow?: boolean;
  /**
   * Whether it is recorded whatever bound it breaks, by a violation. Otherwise that holds of amounts, and what breaks another bound is
   * refused, unless it was begun. Default false.
   */
  readonly mayBreakBounds?: boolean;
}

/** How to settle a start whose end was never recorded. */
export interface AbandonOptions extends AskOptions, ExecutionDetails {
  /** An id or a prefix. Default: the only open start. */
  readonly start?: string | undefined;
  readonly meterUsed?: MeterVector;
}

/** What to settle: at least one of `expired` and `olderThanMs` is required. */
export interface AbandonOpenOptions extends AskOptions {
  /** Releases actions that have expired and were not started. */
  readonly expired?: boolean | undefined;
  /**
   * Settles whatever is older than this many milliseconds: actions not started are released; starts are recorded with outcome `unknown` and
   * charged as reserved. The caller MUST know that nothing of that age still runs.
   */
  readonly olderThanMs?: number | undefined;
  /** Only under this grant, or one delegated from it: `sha-256:…`. */
  readonly grantId?: string | undefined;
}

export interface AbandonedOpen {
  /** In ledger order, with their executions. */
  readonly settled: readonly (Abandonable & { readonly recorded: Appended })[];
  /** Those that failed, such as ones that another key must sign for. */
  readonly refused: readonly (Abandonable & { readonly error: unknown })[];
}

export interface CloseOptions {
  /** Aborting aborts and settles running guards. Without it, closing waits for them. */
  readonly signal?: AbortSignal | undefined;
  /** How long an aborted function may take to end, in milliseconds; then `unknown` is recorded. Default 1,000. */
  readonly graceMs?: number | undefined;
}

const { decides, stopsAtRefusal, ...OF_LEDGER } = LEDGER_OPTIONS;
void [decides, stopsAtRefusal];

const OPTION_TYPES: OptionTypes<LiveLedgerOptions> = {
  ...OF_LEDGER,
  policy: 'function',
  prices: 'object',
  ticks: 'function',
  maxContentsBytes: 'number',
  honourImported: 'array',
};

const REQUEST_TYPES: OptionTypes<LiveRequest> = {
  principalId: 'string',
  toolName: 'string',
  paramsDigest: 'object',
  intentDigest: 'object',
  userIntentDigest: 'object',
  meters: 'array',
  expiresAt: 'string',
  ttlMs: 'number',
  resources: 'array',
  now: 'string',
  grantId: 'string',
  contextDigest: 'object',
  hygiene: 'object',
  requestKey: 'string',
  approvalIds: 'array',
  advice: 'object',
};

const START_TYPES: OptionTypes<StartRequest> = {
  paramsDigest: 'object',
  now: ['string', 'function'],
  signal: 'signal',
  toolName: 'string',
  meterUsed: 'array',
  start: ['string', 'boolean'],
  honourImported: 'array',
};

const DONE_TYPES: OptionTypes<DoneExecution> = {
  startedAt: 'string',
  endedAt: 'string',
  meterUsed: 'array',
  meterBasisByUnit: 'object',
  outcome: 'string',
  errorCode: 'string',
  outputDigest: 'object',
  ...DETAIL_TYPES,
  toolName: 'string',
  start: ['string', 'boolean'],
  isDatedNow: 'boolean',
  mayBreakBounds: 'boolean',
};

const ABANDON_TYPES: OptionTypes<AbandonOptions> = {
  start: 'string',
  meterUsed: 'array',
  signal: 'signal',
  ...DETAIL_TYPES,
};

const ABANDON_OPEN_TYPES: OptionTypes<AbandonOpenOptions> = {
  expired: 'boolean',
  olderThanMs: 'number',
  grantId: 'string',
  signal: 'signal',
};

const APPROVAL_TYPES: OptionTypes<ApprovalOptions> = {
  decision: 'string',
  principalId: 'string',
  limit: 'object',
  expiresAt: 'string',
  code: 'string',
  occurredAt: 'string',
};

/** How grants are withdrawn. */
export type WithdrawOptions = Omit<RevocationOptions, 'effect' | 'occurredAt'>;

const WITHDRAW_TYPES: OptionTypes<WithdrawOptions> = {
  inFlight: 'string',
  reason: 'string',
  principalId: 'string',
};

const DELEGATE_TYPES: OptionTypes<DelegateOptions> = {
  to: 'string',
  parent: 'string',
  caps: 'object',
  tools: 'array',
  expires: 'string',
  intent: 'any',
};

/** Default: all, also what was approved or rejected. */
export interface RequestsOptions extends AskOptions, RequestSelection {}

const ASK_TYPES: OptionTypes<AskOptions> = { signal: 'signal' };
const PATIENT_TYPES: OptionTypes<PatientOptions> = { ...ASK_TYPES, mayWait: 'boolean' };

/** Of a decision that may wait for approvals. */
export type WaitOptions = Pick<AuthorizeOptions, 'signal' | 'waitMs' | 'onApprovalNeeded'>;

export interface DecisionOptions extends WaitOptions, Pick<AuthorizeOptions, 'attach'> {
  /** Begins what is allowed, in the same durable step. */
  readonly start?: ActionStart | undefined;
}

const DECISION_TYPES: OptionTypes<DecisionOptions> = {
  signal: 'signal',
  waitMs: 'number',
  onApprovalNeeded: 'function',
  start: 'object',
  attach: 'bytes',
};
const DEFAULT_GRACE_MS = 1_000;
const STOP_POLL_MS = 500;
const ABANDONED_AT_ONCE = 500;

/** A ledger of a running program: it decides, guards functions and records what they did. One process SHOULD have one for a path. */
export class LiveLedger {
  readonly path: string;
  readonly #ledger: Ledger;
  readonly #options: LiveLedgerOptions;
  /** Where another handle opens it; undefined for a store, which is given open. */
  readonly #place: string | undefined;
  readonly #contents: ContentFolder | undefined;
  /** The grant that requests are made under unless they name one, `sha-256:…`. */
  readonly #grantId: string | undefined;
  /** What {@link LiveLedger.as} has opened. */
  readonly #handles = new Set<LiveLedger>();
  readonly #guards = new Set<Guard<unknown>>();
  readonly #watched = new Set<Stoppable>();
  /** Requests of more than one step, which closing waits for. */
  readonly #asked = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;
  #stopWatch: Timer | undefined;

  private constructor(
    ledger: Ledger,
    options: LiveLedgerOptions,
    place: string | undefined,
    contents: ContentFolder | undefined,
    grantId?: string,
  ) {
    this.path = ledger.path;
    this.#ledger = ledger;
    this.#options = options;
    this.#place = place;
    this.#contents = contents;
    this.#grantId = grantId;
  }

  /**
   * Opens a file, a folder of segments or a store; verifies all of it, every signature included. With `trust`, decisions rest on that
   * policy. Unless `strict` is false, an event that would make the ledger invalid is refused.
   * @throws TypeError, RangeError naming an unknown or malformed option
   * @throws NorthrootError, EventError as `Ledger.open`; `LEDGER_INVALID` comes with the first decision
   */
  static async open(place: string | LedgerStore, options: LiveLedgerOptions = {}): Promise<LiveLedger> {
    checkOptions('LiveLedger.open', options, OPTION_TYPES);
    return LiveLedger.#open(place, options);
  }

  static async #open(
    place: string | LedgerStore,
    options: LiveLedgerOptions,
    grantId?: string,
  ): Promise<LiveLedger> {
    const { policy, prices, ticks, honourImported, maxContentsBytes, ...ofLedger } = options;
    const own = typeof place === 'string' ? place : undefined;
    const contents =
      own === undefined
        ? undefined
        : new ContentFolder(own, { maxBytes: maxContentsBytes }, options.fileSystem);
    const ledger = await Ledger.open(place, { strict: true, ...ofLedger, decides: true });
    return new LiveLedger(
      ledger,
      { ...ofLedger, policy, prices, ticks, honourImported, maxContentsBytes },
      own,
      contents,
      grantId,
    );
  }

  /**
   * A handle for who holds a grant, such as a sub-agent: it signs with that holder's key, acts in its name, and spends this grant unless a
   * request names another. It is closed with this one, or before.
   * @param grant - A grant's seq, id (`sha-256:…`), or unambiguous prefix
   * @throws NorthrootError as `findGrants` and {@link LiveLedger.open}; TypeError for a ledger in a store, which cannot be opened again
   */
  async as(grant: string, signer: Signer): Promise<LiveLedger> {
    this.#assertOpen();
    checkString('as', 'grant', grant);
    const place = this.#place;
    if (place === undefined) throw new TypeError('as: expected a ledger that was opened by its path');
    const found = await this.#ledger.inspect((_, deciding) =>
      findGrants(deciding, [grant]).map(({ principalId, place: { eventId } }) => ({ principalId, eventId })),
    );
    const [{ principalId, eventId }] = found as [(typeof found)[number]];
    const { create, ...options } = this.#options;
    void create;
    const handle = await LiveLedger.#open(place, { ...options, signer, principalId }, eventId);
    this.#handles.add(handle);
    return handle;
  }

  get origin(): string {
    return this.#ledger.origin;
  }

  /** The id of the genesis event, `sha-256:…`. */
  get genesisId(): string {
    return this.#ledger.genesisId;
  }

  /** Who acts unless a request says otherwise. */
  get principalId(): string | undefined {
    return this.#options.principalId;
  }

  /** Whether it is a file or a folder, whose records can be read by its path; false for a store. */
  get isInFiles(): boolean {
    return this.#place !== undefined;
  }

  /** The present, by the ledger's clock: a timestamp of SPEC §2. */
  now(): string {
    return this.#now();
  }

  /** What its timers, and those of a gate over it, go by. */
  get clock(): Clock {
    return this.#options.clock ?? systemClock;
  }

  /** Records known to be on disk. */
  get size(): number {
    return this.#ledger.size;
  }

  /**
   * Evaluates the policy and appends its decision. An allowed amount is reserved when the promise resolves. Calls MAY overlap: those that
   * wait together share one write, each resting on those before it.
   * @param options - `attach`: the canonical bytes of the parameters, kept beside the ledger before the decision is recorded
   * @throws TypeError, RangeError for a malformed request; TypeError for `attach` with a ledger in a store
   * @throws NorthrootError `LEDGER_INVALID`; as {@link LiveLedger.append}; with `attach` as `writeContent`, nothing being recorded
   */
  async authorize(request: LiveRequest, options: DecisionOptions = {}): Promise<BegunDecision> {
    this.#assertOpen();
    checkOptions('authorize: request', request, REQUEST_TYPES);
    checkOptions('authorize', options, DECISION_TYPES);
    return this.#authorize(request, options);
  }

  /**
   * What {@link LiveLedger.authorize} would answer now. Nothing is recorded or reserved.
   * @throws TypeError, RangeError for a malformed request; NorthrootError as {@link LiveLedger.budget}
   */
  async evaluate(request: LiveRequest, options: AskOptions = {}): Promise<AuthorizationDecision> {
    this.#assertOpen();
    checkOptions('evaluate: request', request, REQUEST_TYPES);
    checkOptions('evaluate', options, ASK_TYPES);
    const { ttlMs, ...asked } = this.#toRequest(request);
    void ttlMs;
    const { policy, honourImported } = this.#options;
    return this.#ledger.inspect((_, deciding) => {
      const evaluator = policy?.(deciding) ?? new GrantEvaluator(deciding, { honourImported });
      return evaluator.evaluate({ ...asked, now: asked.now ?? this.#now() });
    }, options);
  }

  /**
   * The call that a principal was allowed under a request key, other writers' records included.
   * @returns `open`, if it can still be executed, released or settled; else the action that was `spent` or `released`; nothing for an
   *   unknown key
   */
  async findCall(principalId: string, requestKey: string, options: AskOptions = {}): Promise<FoundCall> {
    this.#assertOpen();
    checkString('findCall', 'principalId', principalId);
    checkString('findCall', 'requestKey', requestKey);
    checkOptions('findCall', options, ASK_TYPES);
    return this.#ledger.inspect((_, deciding) => findCall(deciding, principalId, requestKey), options);
  }

  /**
   * Claims an authorization before work begins: appends a start, which counts in every decision until it is settled.
   * @param authorizationId - An id (`sha-256:…`), a seq, or an unambiguous prefix of the id
   * @throws NorthrootError as `startExecution`
   */
  async start(authorizationId: string, request: StartRequest): Promise<StartedExecution> {
    this.#assertOpen();
    checkString('start', 'authorizationId', authorizationId);
    checkOptions('start', request, START_TYPES);
    const { honourImported } = this.#options;
    const asked = { now: () => this.#now(), honourImported, ...request };
    return this.#keep(startExecution(this.#ledger, authorizationId, asked));
  }

  /**
   * Records an execution, and settles its start if it has one. The use is recorded even above what was allowed. The outcome `failure` with
   * the code `ABANDONED` and no use releases an action that was not executed.
   * @param authorizationId - An id (`sha-256:…`), a seq, or an unambiguous prefix of the id
   * @returns Its position, and its findings, such as `METER_CAP_EXCEEDED`
   * @throws NorthrootError as `findPermission`; TypeError, RangeError for malformed input. Nothing is recorded then.
   */
  async record(
    authorizationId: string,
    done: DoneExecution,
    options: PatientOptions = {},
  ): Promise<Appended> {
    this.#assertOpen();
    checkString('record', 'authorizationId', authorizationId);
    checkOptions('record', done, DONE_TYPES);
    checkOptions('record: options', options, PATIENT_TYPES);
    const { toolName, start, isDatedNow = false, mayBreakBounds, ...outcome } = done;
    const { startedAt, endedAt, errorCode, meterUsed } = outcome;
    const { meterBasis, modelId, provider, pricingSnapshotDigest } = outcome;
    checkDetails('record', { meterBasis, modelId, provider, pricingSnapshotDigest });
    for (const [name, value] of Object.entries({ startedAt, endedAt, outcome: outcome.outcome }))
      checkString('record', name, value);
    if (!Array.isArray(meterUsed)) throw new TypeError('record: expected meterUsed to be an array');
    const makes = (state: VerifyState, id: string): Entry => {
      const permission = findPermission(state, id, {
        now: startedAt,
        meterUsed,
        done: { endedAt, isRelease: errorCode === ABANDONED && meterUsed.length === 0, mayBreakBounds },
        ...defined({ toolName, start }),
      });
      assertNoSlice(permission);
      return { event: draftExecution(permission, outcome, isDatedNow ? this.#now() : undefined) };
    };
    return this.#keep(decideUnder(this.#ledger, authorizationId, makes, options));
  }

  /**
   * Settles what a killed program left ({@link LiveLedger.budget} lists it): releases an action that was never started; records a start
   * with outcome `unknown`, its reservation charged as estimated use unless `meterUsed` is given.
   * @param authorizationId - An id (`sha-256:…`), a seq, or an unambiguous prefix of the id
   * @throws NorthrootError as `findPermission`: `START_NOT_FOUND`, `START_AMBIGUOUS`, …
   */
  async abandon(authorizationId: string, options: AbandonOptions = {}): Promise<Appended> {
    this.#assertOpen();
    checkString('abandon', 'authorizationId', authorizationId);
    checkOptions('abandon', options, ABANDON_TYPES);
    const { start = true as const, meterUsed = [], signal, ...details } = options;
    checkDetails('abandon', details);
    const makes = (state: VerifyState, id: string): Entry => {
      const request = { now: this.#now(), start, meterUsed, ...details };
      return { event: draftAbandonment(state, id, request).draft };
    };
    return this.#keep(decideUnder(this.#ledger, authorizationId, makes, { signal }));
  }

  /**
   * Settles what is open and expired or old. What another recorder begins or settles meanwhile is left alone.
   * @throws NorthrootError as {@link LiveLedger.append}; TypeError, RangeError for its options
   */
  async abandonOpen(options: AbandonOpenOptions): Promise<AbandonedOpen> {
    this.#assertOpen();
    checkOptions('abandonOpen', options, ABANDON_OPEN_TYPES);
    const { expired, olderThanMs, grantId, signal } = options;
    if (expired !== true && olderThanMs === undefined)
      throw new TypeError('abandonOpen: expected expired or olderThanMs');
    if (olderThanMs !== undefined && !(olderThanMs >= 0 && olderThanMs <= Number.MAX_SAFE_INTEGER))
      throw new RangeError('abandonOpen: olderThanMs: expected milliseconds, at least 0');
    return this.#keep(this.#abandonOpen({ expired, olderThanMs, grantId }, signal));
  }

  async #abandonOpen(
    { expired, olderThanMs, grantId }: AbandonOpenOptions,
    signal: AbortSignal | undefined,
  ): Promise<AbandonedOpen> {
    const found = await this.#ledger.inspect(
      async (_, deciding) => {
        await deciding.links.actions.load?.();
        const now = this.#now();
        const before = olderThanMs === undefined ? undefined : timeBefore(now, olderThanMs);
        return listAbandonable(deciding, { now, expired, before, grantId });
      },
      { signal },
    );
    const settled: (Abandonable & { readonly recorded: Appended })[] = [];
    const refused: (Abandonable & { readonly error: unknown })[] = [];
    // Each chunk shares a group; after an abort or a failure no further chunk begins.
    for (let at = 0; at < found.length; at += ABANDONED_AT_ONCE) {
      signal?.throwIfAborted();
      const some = found.slice(at, at + ABANDONED_AT_ONCE);
      const makes = (each: Abandonable) => (state: VerifyState) => ({
        event: draftAbandoned(state, each, this.#now()),
      });
      const ended = await Promise.allSettled(
        some.map((each) => this.#ledger.decide(makes(each), { signal })),
      );
      for (const [index, end] of ended.entries()) {
        const each = some[index] as Abandonable;
        if (end.status === 'fulfilled') settled.push({ ...each, recorded: end.value });
        else if (!isOvertaken(end.reason)) refused.push({ ...each, error: end.reason });
      }
    }
    return { settled, refused };
  }

  /**
   * Runs a function that the ledger allows, and records its use:
   * 1. authorizes and reserves; a denial is recorded, and thrown as {@link DeniedError};
   * 2. claims by a start, in the same write, before the call;
   * 3. calls the function, which meters its use; `calls` and `time.ms` are measured;
   * 4. records the execution: `success`; `failure` with the error's `code`, else `ERROR`; `unknown` if it threw after an abort. Aborted
   *   before the call, it is released (`ABANDONED`).
   * @param params - Any JSON; its digest is recorded. Undefined members are left out.
   * @param run - Receives a signal to stop at and a meter
   * @returns The function's result, once its execution is on disk
   * @throws DeniedError; what the function threw; the signal's reason if aborted before the call
   * @throws UnrecordedExecutionError with the result, if the execution could not be recorded
   * @throws NorthrootError `LEDGER_INVALID` and as {@link LiveLedger.append}; TypeError, RangeError for malformed input. The function was
   *   not called then.
   * @example
   * const text = await ledger.guard('fs.read', { path }, () => readFile(path, 'utf8'), { reserve: { usd: '0.10' } });
   */
  async guard<T>(
    toolName: string,
    params: unknown,
    run: GuardedFunction<T>,
    options: GuardOptions = {},
  ): Promise<T> {
    this.#assertOpen();
    const guard = new Guard(
      {
        begin: (request, start, how) => this.#authorize(request, { start, ...how }),
        ledger: this.#ledger,
        prices: this.#options.prices,
        now: () => this.#now(),
        ticks: this.#options.ticks ?? (() => this.clock.ticks()),
      },
      { toolName, params, run, options },
    );
    this.#guards.add(guard);
    this.#watchStops();
    try {
      return await guard.perform();
    } finally {
      this.#guards.delete(guard);
    }
  }

  /**
   * Who waits for approval of what, in ledger order, other writers' records included. By the trust policy, if there is one. Each takes some
   * 20 µs, while others wait: of what may be many, ask for some.
   * @throws RangeError unless `waiting` and `most` are whole numbers above 0, and `after` is one of at least 0
   */
  async requests({ waiting, most, after, ...options }: RequestsOptions = {}): Promise<PendingApproval[]> {
    this.#assertOpen();
    const selection = { waiting, most, after };
    checkOptions(
      'requests',
      { ...selection, ...options },
      { ...ASK_TYPES, waiting: 'number', most: 'number', after: 'number' },
    );
    for (const [name, value] of Object.entries(selection)) {
      const least = name === 'after' ? 0 : 1;
      if (value !== undefined && !(Number.isSafeInteger(value) && value >= least))
        throw new RangeError(
          `requests: ${name}: expected a whole number of at least ${least}, found ${value}`,
        );
    }
    return this.#ledger.inspect(async (_, deciding) => {
      await deciding.links.awaiting.load?.();
      return listPendingApprovals(deciding, this.#now(), selection);
    }, options);
  }

  /** The request that waits for this call of a principal, by any of its grants; undefined for none. */
  async waitingRequest(call: RequestedCall, options: AskOptions = {}): Promise<PendingApproval | undefined> {
    this.#assertOpen();
    for (const name of ['principalId', 'toolName', 'paramsDigest'] as const)
      checkString('waitingRequest', name, call[name]);
    checkOptions('waitingRequest', options, ASK_TYPES);
    return this.#ledger.inspect((_, deciding) => findWaitingRequest(deciding, call, this.#now()), options);
  }

  /**
   * One request of these, by any denial of its call; undefined where the call was allowed since, or no approval was asked for.
   * @param request - The denied action, `sha-256:…`
   * @throws NorthrootError as `draftApproval`
   */
  async request(request: string, options: AskOptions = {}): Promise<PendingApproval | undefined> {
    this.#assertOpen();
    checkString('request', 'request', request);
    checkOptions('request', options, ASK_TYPES);
    return this.#ledger.inspect(
      (_, deciding) => findPendingApproval(deciding, request, this.#now()),
      options,
    );
  }

  /**
   * Approves a denied action, so that the same call may be allowed once. The ledger's signer signs it.
   * @param request - The denied action: a seq, an id (`sha-256:…`), or an unambiguous prefix
   * @throws NorthrootError, OptionsError as `draftApproval`; as {@link LiveLedger.append}
   */
  async approve(request: string, options: ApprovalOptions = {}, ask: AskOptions = {}): Promise<Appended> {
    return this.#answer('approve', request, { ...options, decision: 'approve' }, ask);
  }

  /** Rejects a denied action, and withdraws what the same principal approved of the call. @throws as {@link LiveLedger.approve} */
  async reject(request: string, options: ApprovalOptions = {}, ask: AskOptions = {}): Promise<Appended> {
    return this.#answer('reject', request, { ...options, decision: 'reject' }, ask);
  }

  /** What the passkeys are pinned to by which a principal may answer requests now; none if it has no passkey. */
  async passkeysOf(principalId: string, ask: AskOptions = {}): Promise<Webauthn[]> {
    this.#assertOpen();
    checkString('passkeysOf', 'principalId', principalId);
    checkOptions('passkeysOf', ask, ASK_TYPES);
    return this.#ledger.inspect((_, deciding) => listPasskeys(deciding, principalId, this.#now()), ask);
  }

  /** Whether a principal has, or had, a passkey: whoever answers for it by less, such as a token, is to be refused. */
  async hasHadPasskey(principalId: string, ask: AskOptions = {}): Promise<boolean> {
    this.#assertOpen();
    checkString('hasHadPasskey', 'principalId', principalId);
    checkOptions('hasHadPasskey', ask, ASK_TYPES);
    return this.#ledger.inspect((_, deciding) => hasHadPasskey(deciding, principalId), ask);
  }

  /**
   * What a passkey of a principal is asked for, to answer a denied action; {@link LiveLedger.answerByPasskey} takes what comes back.
   * @throws NorthrootError `KEY_UNKNOWN` without a passkey for this origin; as {@link LiveLedger.approve}
   */
  async askPasskey(
    request: string,
    options: PasskeyApprovalOptions,
    ask: AskOptions = {},
  ): Promise<PasskeyRequest> {
    this.#assertOpen();
    checkString('askPasskey', 'request', request);
    checkOptions('askPasskey', options, { ...APPROVAL_TYPES, origin: 'string' });
    checkOptions('askPasskey: options', ask, ASK_TYPES);
    const { principalId = this.#options.principalId } = options;
    return this.#ledger.inspect(
      (_, deciding) =>
        preparePasskeyApproval(deciding, request, { ...options, principalId, occurredAt: this.#now() }),
      ask,
    );
  }

  /**
   * Appends an answer that a passkey signed. The ledger's signer adds nothing to it.
   * @param said - Who answers what: another event is refused
   * @throws NorthrootError `SIGNATURE_INVALID` where the assertion is not of this event; as {@link LiveLedger.approve}
   */
  async answerByPasskey(
    request: string,
    answer: PasskeyAnswer,
    said: { readonly decision: 'approve' | 'reject'; readonly principalId: string },
    ask: AskOptions = {},
  ): Promise<Appended> {
    this.#assertOpen();
    checkString('answerByPasskey', 'request', request);
    checkOptions('answerByPasskey', answer, { event: 'object', credential: 'object' });
    checkOptions('answerByPasskey', said, { decision: 'string', principalId: 'string' });
    checkOptions('answerByPasskey: options', ask, ASK_TYPES);
    const makes = (state: VerifyState): Entry =>
      completePasskeyApproval(state, request, answer, { ...said, now: this.#now() });
    return this.#keep(this.#ledger.decide(makes, ask));
  }

  async #answer(name: string, request: string, options: ApprovalOptions, ask: AskOptions): Promise<Appended> {
    this.#assertOpen();
    checkString(name, 'request', request);
    checkOptions(name, options, APPROVAL_TYPES);
    checkOptions(`${name}: options`, ask, ASK_TYPES);
    const { principalId = this.#options.principalId } = options;
    const makes = (state: VerifyState): Entry => ({
      event: draftApproval(state, request, { ...options, principalId, occurredAt: this.#now() }),
    });
    return this.#keep(this.#ledger.decide(makes, ask));
  }

  /**
   * Withdraws grants, with all that hangs below them, for good.
   * @param grants - A grant's seq, id (`sha-256:…`) or unambiguous prefix, or several; `'all'`: every root grant
   * @returns What was appended, in the order of the grants, in one group
   * @throws NorthrootError, OptionsError as `findGrants` and `draftRevocation`; as {@link LiveLedger.append}
   */
  async revoke(
    grants: string | readonly string[],
    options: WithdrawOptions,
    ask?: AskOptions,
  ): Promise<Appended[]> {
    return this.#withdraw('revoke', grants, options, ask);
  }

  /** Withdraws grants until they are resumed. @throws as {@link LiveLedger.revoke} */
  async suspend(
    grants: string | readonly string[],
    options: WithdrawOptions,
    ask?: AskOptions,
  ): Promise<Appended[]> {
    return this.#withdraw('suspend', grants, options, ask);
  }

  /** Ends suspensions. It revives nothing that a stop met. @throws as {@link LiveLedger.revoke} */
  async resume(
    grants: string | readonly string[],
    options: Omit<WithdrawOptions, 'inFlight'>,
    ask?: AskOptions,
  ): Promise<Appended[]> {
    return this.#withdraw('resume', grants, options, ask);
  }

  async #withdraw(
    effect: RevocationOptions['effect'],
    grants: string | readonly string[],
    options: WithdrawOptions,
    ask: AskOptions = {},
  ): Promise<Appended[]> {
    this.#assertOpen();
    checkOptions(effect, options, WITHDRAW_TYPES);
    checkOptions(`${effect}: options`, ask, ASK_TYPES);
    const { principalId = this.#options.principalId } = options;
    const draft = { ...options, effect, principalId };
    return this.#keep(withdrawGrants(this.#ledger, grants, draft, () => this.#now(), ask));
  }

  /**
   * Tells of a revocation that stops an action which has begun, other writers' included: about a second after it, once, with
   * `GRANT_REVOKED`.
   * @param authorizationId - `sha-256:…`
   * @returns What ends the watch; it MUST be called
   */
  watchStop(authorizationId: string, onStop: (reason: NorthrootError) => void): () => void {
    checkString('watchStop', 'authorizationId', authorizationId);
    const watched = { running: authorizationId, abort: onStop };
    this.#watched.add(watched);
    this.#watchStops();
    return () => void this.#watched.delete(watched);
  }

  /** While something runs, looks for a stop that meets it, other writers' included. */
  #watchStops(): void {
    if (this.#stopWatch !== undefined) return;
    const look = async (): Promise<void> => {
      const all: readonly Stoppable[] = [...this.#guards, ...this.#watched];
      const running = all.filter((each) => each.running !== undefined);
      if (all.length === 0) {
        this.clock.clear(this.#stopWatch);
        this.#stopWatch = undefined;
      }
      if (running.length === 0) return;
      // A ledger that cannot be read is reported by what is asked of it.
      const stops = await this.#ledger
        .inspect((_, deciding) => running.map((each) => findStopOf(deciding, each.running as string)))
        .catch(() => []);
      for (const [index, stop] of stops.entries()) {
        const met = running[index];
        if (stop === undefined || met === undefined) continue;
        this.#watched.delete(met);
        met.abort(new NorthrootError('GRANT_REVOKED', `stopped by ${stop.eventId}`));
      }
    };
    this.#stopWatch = this.clock.setInterval(() => void look(), STOP_POLL_MS);
    this.#stopWatch.unref();
  }

  /**
   * Hands a part of a grant on: its grantee spends it in its own name, and it counts under the parent too. The ledger's signer signs it.
   * Each call makes a grant of its own, with caps of its own.
   * @throws NorthrootError, OptionsError as `draftDelegation`; as {@link LiveLedger.append}
   */
  async delegate(options: DelegateOptions, ask: AskOptions = {}): Promise<Appended> {
    this.#assertOpen();
    checkOptions('delegate', options, DELEGATE_TYPES);
    checkOptions('delegate: options', ask, ASK_TYPES);
    const makes = (state: VerifyState): Entry => ({
      event: draftDelegation(state, options, this.#now()),
      isAnew: true,
    });
    return this.#keep(this.#ledger.decide(makes, ask));
  }

  /**
   * What a grant (`sha-256:…`) has left of what it caps, as {@link LiveLedger.budget} says it, in a time that does not grow with what is open.
   * @throws NorthrootError `GRANT_NOT_FOUND`, `GRANT_DENIED`
   */
  async balances(grantId: string, options: AskOptions = {}): Promise<readonly Balance[]> {
    this.#assertOpen();
    checkString('balances', 'grantId', grantId);
    checkOptions('balances', options, ASK_TYPES);
    return this.#ledger.inspect((_, deciding) => findBalances(deciding, grantId), options);
  }

  /** What every grant has left, other writers' records included; started work counts as reserved. By the trust policy, if there is one. */
  budget(): Promise<Budget[]>;
  /** What one grant (`sha-256:…`) has left. @throws NorthrootError `GRANT_NOT_FOUND`, `GRANT_DENIED` */
  budget(grantId: string, options?: AskOptions): Promise<Budget>;
  async budget(grantId?: string, options: AskOptions = {}): Promise<Budget | Budget[]> {
    this.#assertOpen();
    if (grantId !== undefined) checkString('budget', 'grantId', grantId);
    checkOptions('budget', options, ASK_TYPES);
    const look = async (state: VerifyState): Promise<Budget | Budget[]> => {
      await state.links.actions.load?.();
      return grantId === undefined ? listBudgets(state) : findBudget(state, grantId);
    };
    return this.#ledger.inspect((_, deciding) => look(deciding), options);
  }

  /** Appends an event of any kind. @throws as `Ledger.append`; the signal's reason if withdrawn before it was written */
  async append(entry: Entry, options: AskOptions = {}): Promise<Appended> {
    this.#assertOpen();
    checkOptions('append', options, ASK_TYPES);
    return this.#ledger.append(entry, options);
  }

  /** Seals all records so far. Requires the option `checkpoints`. @throws as `Ledger.checkpoint` */
  async checkpoint(options: AskOptions = {}): Promise<CheckpointResult> {
    this.#assertOpen();
    checkOptions('checkpoint', options, ASK_TYPES);
    return this.#ledger.checkpoint(undefined, options);
  }

  /** Reads other writers' records, as `Ledger.readOn`, so that the next decision need not. */
  async readOn(): Promise<void> {
    this.#assertOpen();
    await this.#ledger.readOn();
  }

  /**
   * Calls a function of a `Ledger`, such as `openSlice`, with the writer beneath. Closing waits for it.
   * @throws TypeError when it is closed; what `act` throws
   */
  async use<T>(act: (ledger: Ledger) => Promise<T>): Promise<T> {
    this.#assertOpen();
    return this.#keep(act(this.#ledger));
  }

  /** What is recorded, as `Ledger.view`. @throws TypeError for a ledger in a store */
  view(options: Pick<ViewOptions, 'trust' | 'signal'> = {}): LedgerView {
    this.#assertOpen();
    if (!this.isInFiles) throw new TypeError('view: expected a ledger that was opened by its path');
    return this.#ledger.view(options);
  }

  /** Records of other writers, as `Ledger.watch`. */
  watch(options: WatchOptions = {}): WatchedRecords {
    this.#assertOpen();
    checkOptions('watch', options, { signal: 'signal', limit: 'number' });
    return this.#ledger.watch(options);
  }

  /**
   * Accepts no further calls, waits for guards and pending requests, and closes the ledger. MAY be called again with a signal, to stop
   * waiting.
   * @throws NorthrootError when closing fails; TypeError, RangeError for its options
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkOptions('close', options, { signal: 'signal', graceMs: 'number' });
    const { signal, graceMs = DEFAULT_GRACE_MS } = options;
    if (!(graceMs >= 0 && graceMs < 2 ** 31)) throw new RangeError('graceMs must be at least 0');
    this.#closing ??= this.#giveUp();
    if (signal === undefined) return this.#closing;
    let timer: Timer | undefined;
    const abort = (): void => {
      for (const guard of this.#guards) guard.abort(signal.reason);
      timer = this.clock.setTimeout(() => {
        for (const guard of this.#guards) guard.leave();
      }, graceMs);
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    try {
      await this.#closing;
    } finally {
      this.clock.clear(timer);
      signal.removeEventListener('abort', abort);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #giveUp(): Promise<void> {
    await Promise.all([...this.#guards].map((guard) => guard.ended));
    await Promise.allSettled(this.#asked);
    this.clock.clear(this.#stopWatch);
    await Promise.all([...this.#handles].map((handle) => handle.close()));
    await this.#ledger.close();
  }

  /** Makes closing wait for it. */
  async #keep<T>(asked: Promise<T>): Promise<T> {
    this.#asked.add(asked);
    try {
      return await asked;
    } finally {
      this.#asked.delete(asked);
    }
  }

  async #authorize(request: LiveRequest, { start, attach, ...how }: DecisionOptions): Promise<BegunDecision> {
    const [asked, ways] = [this.#toRequest(request), this.#toHow(how)];
    if (attach !== undefined) {
      assertContentOf(asked.paramsDigest, attach);
      if (this.#contents === undefined)
        throw new TypeError('attach: expected a ledger that was opened by its path');
      await this.#keep(this.#contents.write(attach));
    }
    if (start === undefined) return authorizeAction(this.#ledger, asked, ways);
    return authorizeAndStart(this.#ledger, asked, { now: () => this.#now(), ...start }, ways);
  }

  #toRequest(request: LiveRequest): ActionRequest {
    const { principalId = this.#options.principalId, ...rest } = request;
    if (principalId === undefined)
      throw new TypeError('expected principalId, of the request or of the ledger');
    return { ...defined({ grantId: this.#grantId }), ...rest, principalId };
  }

  #toHow<T extends Pick<AuthorizeOptions, 'signal' | 'waitMs' | 'onApprovalNeeded'>>(
    how: T,
  ): T & Pick<AuthorizeOptions, 'now' | 'clock' | 'honourImported' | 'policy'> {
    const { policy, honourImported } = this.#options;
    return { now: () => this.#now(), clock: this.clock, ...how, honourImported, ...defined({ policy }) };
  }

  #now(): string {
    return this.#options.now?.() ?? presentTime(this.clock);
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new TypeError('the ledger is closed');
  }
}

interface Stoppable {
  /** The action, `sha-256:…`; undefined while there is none. */
  readonly running: string | undefined;
  abort(reason: NorthrootError): void;
}

/** The stop that has met an open action; undefined for none. */
function findStopOf({ links: { actions } }: VerifyState, actionId: string): EventPlace | undefined {
  const action = actions.get(fromDigestText(actionId));
  return action && findStop(grantChain(action.grant), action.place.seq);
}

function timeBefore(now: string, ms: number): string {
  const instant = parseTimestamp(now) - BigInt(Math.floor(ms)) * NANOSECONDS_PER_MS;
  return formatInstant(instant < FIRST_INSTANT ? FIRST_INSTANT : instant);
}

const NANOSECONDS_PER_MS = 1_000_000n;
const FIRST_INSTANT = parseTimestamp('0000-01-01T00:00:00Z');
