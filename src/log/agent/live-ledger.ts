/**
 * A ledger that a program keeps open while it acts: it asks before each action, reserves what that may use, claims it, runs it, and
 * records what it used. What it knows is in memory and exact: each decision rests on every record before it, those of other processes
 * among them, and nothing comes between the question and its record.
 */

import { checkOptions, checkString, type OptionTypes } from '../../base/options.js';
import type { MeterVector } from '../../base/value/meter.js';
import { formatInstant, parseTimestamp } from '../../base/value/timestamp.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { authorizeAction, type AuthorizeOptions, type RecordedDecision } from '../policy/authorize.js';
import type { HonourOptions } from '../policy/evaluator.js';
import {
  ABANDONED,
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
import type { AskOptions } from '../writer/withdrawal.js';
import { type Budget, findBudget, listBudgets } from './budget.js';
import { Guard, type GuardedFunction, type GuardOptions, type LiveRequest } from './guard.js';

/** How a {@link LiveLedger} is opened: as a `Ledger`, which decides. `strict` is on by default. */
export interface LiveLedgerOptions extends Omit<LedgerOptions, 'decides' | 'stopsAtRefusal'>, HonourOptions {
  /** The policy to ask, given the ledger's state. Default: the ledger's own grants (`GrantEvaluator`). */
  readonly policy?: AuthorizeOptions['policy'] | undefined;
  /** The clock by which durations are measured, in milliseconds. Default: `performance.now`, which nobody sets. */
  readonly ticks?: (() => number) | undefined;
}

/** What was done under an authorization. */
export interface DoneExecution extends ExecutionOutcome {
  /** Needed under a grant; an action has its own. */
  readonly toolName?: string;
  /** The start that it settles: an id, or a prefix of one; `true` for the only one that is open. */
  readonly start?: string | true;
}

/** What is settled of something that was started and of which nobody recorded the end. */
export interface AbandonOptions extends AskOptions, ExecutionDetails {
  /** Which start: an id, or a prefix of one. Default: the only one that is open. */
  readonly start?: string;
  /** What it used, where that is known. */
  readonly meterUsed?: MeterVector;
}

/** What {@link LiveLedger.abandonOpen} settles of what is open: at least one of `expired` and `olderThanMs` is needed. */
export interface AbandonOpenOptions extends AskOptions {
  /** Actions that have expired and were not started: they are released. */
  readonly expired?: boolean | undefined;
  /**
   * Whatever is older than so many milliseconds: actions that were allowed before that and not started are released, and of what was
   * started before that it is recorded that how it ended is unknown, charged as reserved. To be given by somebody who knows that nothing
   * of that age runs any more.
   */
  readonly olderThanMs?: number | undefined;
  /** Only what is under this grant, or under one delegated from it: `sha-256:…`. */
  readonly grantId?: string | undefined;
}

/** What became of what was open. */
export interface AbandonedOpen {
  /** Those that were settled, with their executions, in the order of the ledger. */
  readonly settled: readonly (Abandonable & { readonly recorded: Appended })[];
  /** Those that could not be, such as what another key has to sign for. */
  readonly refused: readonly (Abandonable & { readonly error: unknown })[];
}

/** How a {@link LiveLedger} is closed. */
export interface CloseOptions {
  /** Aborting aborts the guards that run, and settles them. Without it closing waits for them. */
  readonly signal?: AbortSignal | undefined;
  /** For how long an aborted function may take to end, in milliseconds; then it is recorded as `unknown`. Default 1,000. */
  readonly graceMs?: number | undefined;
}

const { decides, stopsAtRefusal, ...OF_LEDGER } = LEDGER_OPTIONS;
void [decides, stopsAtRefusal];

const OPTION_TYPES: OptionTypes<LiveLedgerOptions> = {
  ...OF_LEDGER,
  policy: 'function',
  ticks: 'function',
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

const ASK_TYPES: OptionTypes<AskOptions> = { signal: 'signal' };
const DEFAULT_GRACE_MS = 1_000;
const ABANDONED_AT_ONCE = 500;

/** See the head of this file. */
export class LiveLedger {
  /** The file or folder, or what the store is called. */
  readonly path: string;
  readonly #ledger: Ledger;
  readonly #options: LiveLedgerOptions;
  readonly #guards = new Set<Guard<unknown>>();
  /** What was asked for in more than one step. */
  readonly #asked = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  private constructor(ledger: Ledger, options: LiveLedgerOptions) {
    this.path = ledger.path;
    this.#ledger = ledger;
    this.#options = options;
  }

  /**
   * Opens a ledger to act by: a file, a folder of segments, or a store. All of it is verified, every signature too.
   *
   * @param options - As of `Ledger.open`. With `trust`, decisions rest on what that policy says of the ledger. Unless `strict` is false,
   *   an event is refused that would make the ledger invalid, since nothing can be decided after it.
   * @throws TypeError for an option that is not known or of another type, by its name; RangeError for one out of range.
   * @throws NorthrootError, EventError as `Ledger.open`. That a ledger does not verify (`LEDGER_INVALID`) is told by the first decision.
   */
  static async open(place: string | LedgerStore, options: LiveLedgerOptions = {}): Promise<LiveLedger> {
    checkOptions('LiveLedger.open', options, OPTION_TYPES);
    const ledger = await Ledger.open(place, { strict: true, ...withoutOwn(options), decides: true });
    return new LiveLedger(ledger, options);
  }

  /** The log's unique name. */
  get origin(): string {
    return this.#ledger.origin;
  }

  /** The id of the ledger's genesis event, `sha-256:…`. */
  get genesisId(): string {
    return this.#ledger.genesisId;
  }

  /** How many records the ledger is known to have on disk. */
  get size(): number {
    return this.#ledger.size;
  }

  /**
   * Asks the policy, and appends its answer: allow or deny. What is allowed is reserved when the promise settles. Calls need not wait
   * for each other: those that wait together share a write, and each rests on those before it.
   *
   * @throws TypeError, RangeError when the request is not of its form.
   * @throws NorthrootError `LEDGER_INVALID` when the ledger's evidence is broken; as {@link LiveLedger.append}.
   */
  async authorize(request: LiveRequest, options: AskOptions = {}): Promise<RecordedDecision> {
    this.#assertOpen();
    checkOptions('authorize: request', request, REQUEST_TYPES);
    checkOptions('authorize', options, ASK_TYPES);
    return this.#authorize(request, options.signal);
  }

  /**
   * Claims an authorization before anything is done under it: appends a start, which every decision counts until it is recorded.
   *
   * @param authorizationId - Of an action or a grant: its id (`sha-256:…`), its seq, or an unambiguous prefix of the id.
   * @throws NorthrootError as `startExecution`: what may not be executed now is not started.
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
   * Records what was done under an authorization, and settles its start where it has one. What was used is recorded as it was, also
   * where it is more than was allowed.
   *
   * @param authorizationId - Of an action or a grant: its id (`sha-256:…`), its seq, or an unambiguous prefix of the id.
   * @param done - An action that was not executed is given back by the outcome `failure` with the code `ABANDONED` and no use.
   * @returns Where it stands, and what verification says of it: `METER_CAP_EXCEEDED`, for one.
   * @throws NorthrootError as `findPermission`; TypeError, RangeError when it is not of its form. Nothing is recorded then.
   */
  async record(authorizationId: string, done: DoneExecution, options: AskOptions = {}): Promise<Appended> {
    this.#assertOpen();
    checkString('record', 'authorizationId', authorizationId);
    checkOptions('record', done, DONE_TYPES);
    checkOptions('record: options', options, ASK_TYPES);
    const { toolName, start, ...outcome } = done;
    const { startedAt, endedAt, errorCode, meterUsed, meterBasis, modelId, provider } = outcome;
    checkDetails('record', { meterBasis, modelId, provider });
    for (const [name, value] of Object.entries({ startedAt, endedAt, outcome: outcome.outcome })) {
      checkString('record', name, value);
    }
    if (!Array.isArray(meterUsed)) throw new TypeError('record: expected meterUsed to be an array');
    const makes = (state: VerifyState, id: string): Entry => {
      const permission = findPermission(state, id, {
        now: startedAt,
        meterUsed,
        done: { endedAt, isRelease: errorCode === ABANDONED && meterUsed.length === 0 },
        ...(toolName === undefined ? {} : { toolName }),
        ...(start === undefined ? {} : { start }),
      });
      return { event: draftExecution(permission, outcome) };
    };
    return this.#keep(decideUnder(this.#ledger, authorizationId, makes, options));
  }

  /**
   * Settles what a killed program has left ({@link LiveLedger.budget} lists it): an action that was never started is released. Of what
   * was started it is recorded that how it ended is unknown; what was reserved counts as used, as estimated use, where it is not said
   * what was used.
   *
   * @param authorizationId - Of an action or a grant: its id (`sha-256:…`), its seq, or an unambiguous prefix of the id.
   * @throws NorthrootError as `findPermission`: `START_NOT_FOUND`, `START_AMBIGUOUS`, for two.
   */
  async abandon(authorizationId: string, options: AbandonOptions = {}): Promise<Appended> {
    this.#assertOpen();
    checkString('abandon', 'authorizationId', authorizationId);
    checkOptions('abandon', options, ABANDON_TYPES);
    const { start = true as const, meterUsed = [], signal, meterBasis, modelId, provider } = options;
    const details = { meterBasis, modelId, provider };
    checkDetails('abandon', details);
    const makes = (state: VerifyState, id: string): Entry => {
      const request = { now: this.#now(), start, meterUsed, ...details };
      return { event: draftAbandonment(state, id, request).draft };
    };
    return this.#keep(decideUnder(this.#ledger, authorizationId, makes, { signal }));
  }

  /**
   * Settles what is open and nobody will end, of a kind at a time: what has expired, or what is old. What somebody else begins or settles
   * meanwhile is left alone.
   *
   * @throws NorthrootError as {@link LiveLedger.append} where it cannot be read; TypeError, RangeError for its options.
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
    // So many at a time share a group; what is left when one is withdrawn or the ledger fails is not begun.
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
   * Runs a function that the ledger allows, and records what it used:
   *
   * 1. asks the policy, and reserves what the action may use; a deny is recorded, and thrown as a {@link DeniedError};
   * 2. claims it by a start, on disk before the function is called;
   * 3. calls the function, which meters what it uses; `calls` and `time.ms` are measured;
   * 4. records the execution: `success` when it returned; `failure` when it threw, with the error's `code` where it has one and else
   *    `ERROR`; `unknown` when it threw after it was aborted. What was aborted before it was called is given back (`ABANDONED`).
   *
   * @param toolName - The tool that is called.
   * @param params - What it is called with, any JSON: recorded is the digest of its canonical bytes. A member that is undefined is like one
   *   that is absent, as `JSON.stringify` has it; whatever else is no JSON is a TypeError.
   * @param run - Given a signal to stop at, and a meter to add to.
   * @returns What the function returned, when its execution is on disk.
   * @throws DeniedError; what the function threw; the signal's reason when it was aborted before the function was called.
   * @throws UnrecordedExecutionError, with what the function returned or threw, where that could not be recorded.
   * @throws NorthrootError `LEDGER_INVALID` and as {@link LiveLedger.append}; the function was not called then. TypeError, RangeError for
   *   options or parameters that are not of their form.
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
        authorize: (request, signal) => this.#authorize(request, signal),
        ledger: this.#ledger,
        honourImported: this.#options.honourImported,
        now: () => this.#now(),
        ticks: this.#options.ticks ?? (() => performance.now()),
      },
      { toolName, params, run, options },
    );
    this.#guards.add(guard);
    try {
      return await guard.perform();
    } finally {
      this.#guards.delete(guard);
    }
  }

  /**
   * What every grant has left, exactly, with what others wrote until now; what was started and is not recorded counts as reserved.
   * By the trust policy, where the ledger was opened with one.
   */
  budget(): Promise<Budget[]>;
  /**
   * What one grant has left.
   *
   * @param grantId - `sha-256:…`
   * @throws NorthrootError `GRANT_NOT_FOUND`, `GRANT_DENIED`
   */
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

  /** Appends an event of any kind. @throws as `Ledger.append`; the signal's reason where it was withdrawn before it was written. */
  async append(entry: Entry, options: AskOptions = {}): Promise<Appended> {
    this.#assertOpen();
    checkOptions('append', options, ASK_TYPES);
    return this.#ledger.append(entry, options);
  }

  /** Seals all records so far. The ledger was opened with `checkpoints`. @throws as `Ledger.checkpoint` */
  async checkpoint(options: AskOptions = {}): Promise<CheckpointResult> {
    this.#assertOpen();
    checkOptions('checkpoint', options, ASK_TYPES);
    return this.#ledger.checkpoint(undefined, options);
  }

  /** Each record that others append from now on, in order, until the ledger is closed or the signal aborts: as `Ledger.watch`. */
  watch(options: WatchOptions = {}): WatchedRecords {
    this.#assertOpen();
    checkOptions('watch', options, { signal: 'signal', limit: 'number' });
    return this.#ledger.watch(options);
  }

  /**
   * Takes no further calls, waits for the guards that run and for what was asked for, and gives the ledger up. It may be called again,
   * with a signal, to wait no longer.
   *
   * @throws NorthrootError when closing fails; TypeError, RangeError for its options.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkOptions('close', options, { signal: 'signal', graceMs: 'number' });
    const { signal, graceMs = DEFAULT_GRACE_MS } = options;
    if (!(graceMs >= 0 && graceMs < 2 ** 31)) throw new RangeError('graceMs must be at least 0');
    this.#closing ??= this.#giveUp();
    if (signal === undefined) return this.#closing;
    let timer: NodeJS.Timeout | undefined;
    const abort = (): void => {
      for (const guard of this.#guards) guard.abort(signal.reason);
      timer = setTimeout(() => {
        for (const guard of this.#guards) guard.leave();
      }, graceMs);
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    try {
      await this.#closing;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }

  /** Closes it: `await using ledger = await LiveLedger.open(…)`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #giveUp(): Promise<void> {
    await Promise.all([...this.#guards].map((guard) => guard.ended));
    await Promise.allSettled(this.#asked);
    await this.#ledger.close();
  }

  /** Closing waits for it. */
  async #keep<T>(asked: Promise<T>): Promise<T> {
    this.#asked.add(asked);
    try {
      return await asked;
    } finally {
      this.#asked.delete(asked);
    }
  }

  #authorize(request: LiveRequest, signal: AbortSignal | undefined): Promise<RecordedDecision> {
    const { principalId = this.#options.principalId, ...rest } = request;
    if (principalId === undefined) {
      throw new TypeError('expected principalId, of the request or of the ledger');
    }
    const { policy, honourImported } = this.#options;
    return authorizeAction(
      this.#ledger,
      { ...rest, principalId },
      { now: () => this.#now(), signal, honourImported, ...(policy === undefined ? {} : { policy }) },
    );
  }

  #now(): string {
    return this.#options.now?.() ?? new Date().toISOString();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new TypeError('the ledger is closed');
  }
}

/** The first instant that can be named where it would be before that. */
function timeBefore(now: string, ms: number): string {
  const instant = parseTimestamp(now) - BigInt(Math.floor(ms)) * NANOSECONDS_PER_MS;
  return formatInstant(instant < FIRST_INSTANT ? FIRST_INSTANT : instant);
}

const NANOSECONDS_PER_MS = 1_000_000n;
const FIRST_INSTANT = parseTimestamp('0000-01-01T00:00:00Z');

/** The options that a `Ledger` knows. */
function withoutOwn(options: LiveLedgerOptions): LedgerOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([name]) => !['policy', 'ticks', 'honourImported'].includes(name)),
  );
}

/**
 * Opens a ledger for one piece of work, and closes it whatever happens.
 *
 * @param use - What it throws is thrown on, when the ledger is closed.
 * @throws as {@link LiveLedger.open}, and what `use` throws.
 */
export async function withLiveLedger<T>(
  place: string | LedgerStore,
  options: LiveLedgerOptions,
  use: (ledger: LiveLedger) => T | Promise<T>,
): Promise<T> {
  const ledger = await LiveLedger.open(place, options);
  try {
    return await use(ledger);
  } finally {
    await ledger.close();
  }
}
