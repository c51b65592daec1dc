/** One guarded call: authorize, claim, run, record. */

import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytesWithout } from '../../base/json/omit-undefined.js';
import { checkOptions, checkString, describeValue, type OptionTypes } from '../../base/options.js';
import { type Digest, isDigest, sha256Digest } from '../../base/value/digest.js';
import { type AmountsByUnit, type Meter, meters } from '../../base/value/meter.js';
import { formatInstant, parseTimestamp } from '../../base/value/timestamp.js';
import type { Finding } from '../../format/finding/finding.js';
import { describeFinding } from '../../format/finding/words.js';
import type { ResourceRef } from '../../format/schema/generated/types.js';
import type {
  ActionRequest,
  ActionStart,
  AuthorizeOptions,
  BegunDecision,
  RecordedDecision,
} from '../policy/authorize.js';
import {
  ABORTED,
  checkDetails,
  dateExecution,
  DETAIL_TYPES,
  draftExecution,
  draftRelease,
  draftSettlement,
  type ExecutionDetails,
  measuredBases,
  raiseMeters,
  stateReserved,
  type Unmetered,
} from '../policy/record.js';
import { ONE_CALL_USED, type StartedExecution } from '../policy/start.js';
import type { Appended, Entry, Ledger } from '../writer/ledger.js';
import { DeniedError, type GuardedOutcome, UnrecordedExecutionError, ViolationError } from './errors.js';
import { type CallPricing, MODEL_USAGE_INVALID } from './model-usage.js';
import { UsageMeter } from './usage-meter.js';

/** A request to a {@link LiveLedger}. */
export type LiveRequest = Omit<ActionRequest, 'principalId'> & {
  /** Default: the ledger's `principalId`. */
  readonly principalId?: string;
};

export interface GuardContext {
  /** Aborts with the guard's own signal, or when the ledger is closed by a signal. */
  readonly signal: AbortSignal;
  /** Reports use. `calls` and `time.ms` are measured, and can only be raised. */
  readonly meter: Pick<UsageMeter, 'add' | 'addUsage' | 'isPriced' | 'read'>;
  readonly decision: RecordedDecision;
  /** The start that the execution will settle, `sha-256:…`. */
  readonly startId: string;
  /** Sets the execution's `output_digest`. @throws TypeError unless it is a digest */
  readonly setOutputDigest: (digest: Digest) => void;
  /** Sets details known only now, such as the model that answered; overrides the guard's options. @throws TypeError, RangeError */
  readonly setDetails: (details: ExecutionDetails) => void;
}

export type GuardedFunction<T> = (context: GuardContext) => T | Promise<T>;

export interface GuardOptions extends ExecutionDetails {
  /** Default: the ledger's `principalId`. */
  readonly principalId?: string | undefined;
  /** The most that it may use, by unit: `{ usd: '0.10' }`; reserved before the call. One call is reserved unless more are given. */
  readonly reserve?: AmountsByUnit | undefined;
  /** The grant to act under, `sha-256:…`. Default: the principal's grants are tried in ledger order. */
  readonly grantId?: string | undefined;
  /** The purpose, any JSON; its digest is recorded. Undefined members are left out. Default: the tool and its parameters. */
  readonly intent?: unknown;
  /** Excludes `intent`. */
  readonly intentDigest?: Digest | undefined;
  /** Default: the grant's intent. */
  readonly userIntentDigest?: Digest | undefined;
  readonly contextDigest?: Digest | undefined;
  readonly resources?: readonly ResourceRef[] | undefined;
  /**
   * How long the reservation of a call that has not begun is held, in milliseconds. Expired reservations are released at the next decision.
   * A started call does not expire. Default 900,000 (15 minutes); `Infinity` never expires.
   */
  readonly ttlMs?: number | undefined;
  /**
   * What happens to an unmetered reservation when the function has returned or was aborted: `charge` records it as estimated use, `release`
   * states 0. Default `charge`. A function that throws releases it, unless it had set the digest of an output.
   */
  readonly unmetered?: Unmetered | undefined;
  /**
   * What to do when the execution breaks a bound: `warn` emits a process warning (`NORTHROOT_VIOLATION`), `throw` throws a {@link
   * ViolationError} with the result, a function receives the findings. Default `warn`.
   */
  readonly onViolation?:
    | 'warn'
    | 'throw'
    | ((findings: readonly Finding[], recorded: Appended) => void)
    | undefined;
  /**
   * Called for each amount that could not be metered; the unit's reservation is charged. Default: a process warning
   * (`NORTHROOT_UNMETERED`).
   */
  readonly onMeterProblem?: ((message: string) => void) | undefined;
  /** What `meter.addUsage` prices calls of models by. Default: the ledger's `prices`. */
  readonly prices?: CallPricing | undefined;
  /** Aborting ends the wait, and notifies the function. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Keeps the parameters beside the ledger, in `LEDGER.contents`, for who approves and audits the call; on disk before the decision. If
   * they cannot be kept, nothing is recorded and the function is not called. Default false.
   */
  readonly attach?: boolean | undefined;
  /**
   * What to do where the call needs an approval: `deny` throws a {@link DeniedError}, `wait` waits for it, at most `approvalWaitMs`.
   * Default `deny`.
   */
  readonly approval?: 'wait' | 'deny' | undefined;
  /** How long `wait` waits, in milliseconds. Default 900,000 (15 minutes). */
  readonly approvalWaitMs?: number | undefined;
  /** Called with the request that an approver is given, before waiting begins. */
  readonly onApprovalNeeded?: ((request: RecordedDecision) => void) | undefined;
  /**
   * What to do where a `stop` meets the running function: `abort` notifies it by its signal, `finish` lets it end. What was begun before is
   * recorded either way. Default `abort`.
   */
  readonly onStop?: 'abort' | 'finish' | undefined;
  /** Called with the execution's position and findings once it is on disk. */
  readonly onRecorded?: ((recorded: Appended) => void) | undefined;
}

interface GuardParts {
  readonly begin: (
    request: LiveRequest,
    start: ActionStart,
    options: Pick<AuthorizeOptions, 'signal' | 'waitMs' | 'onApprovalNeeded' | 'attach'>,
  ) => Promise<BegunDecision>;
  readonly ledger: Ledger;
  readonly prices: CallPricing | undefined;
  readonly now: () => string;
  readonly ticks: () => number;
}

interface Written {
  event: object;
}

interface GuardedCall<T> {
  readonly toolName: string;
  readonly params: unknown;
  readonly run: GuardedFunction<T>;
  readonly options: GuardOptions;
}

const OPTION_TYPES: OptionTypes<GuardOptions> = {
  principalId: 'string',
  reserve: 'object',
  grantId: 'string',
  intent: 'any',
  intentDigest: 'object',
  userIntentDigest: 'object',
  contextDigest: 'object',
  resources: 'array',
  ttlMs: 'number',
  ...DETAIL_TYPES,
  unmetered: 'string',
  onViolation: 'any',
  onMeterProblem: 'function',
  prices: 'object',
  signal: 'signal',
  attach: 'boolean',
  approval: 'string',
  approvalWaitMs: 'number',
  onApprovalNeeded: 'function',
  onStop: 'string',
  onRecorded: 'function',
};

const DEFAULT_TTL_MS = 15 * 60_000;
const ONE_CALL: Meter = { unit: 'calls', amount: { t: 'int', v: '1' } };
const ERROR_CODE = /^[A-Z0-9_]{1,64}$/;
const NANOSECONDS_PER_MS = 1_000_000n;

/** One guarded call; see the head of this file. */
export class Guard<T> {
  /** Resolves when the call is over; never rejects. */
  readonly ended: Promise<void>;
  /** The action that is being executed and that a stop aborts, `sha-256:…`. */
  running: string | undefined;
  readonly #parts: GuardParts;
  readonly #call: GuardedCall<T>;
  readonly #abort = new AbortController();
  #end: () => void = () => undefined;
  #leave: () => void = () => undefined;
  #isLeft = false;

  /** @throws TypeError, RangeError naming the malformed option */
  constructor(parts: GuardParts, call: GuardedCall<T>) {
    checkString('guard', 'toolName', call.toolName);
    checkOptions('guard', call.options, OPTION_TYPES);
    checkDetails('guard', detailsOf(call.options));
    if (typeof call.run !== 'function')
      throw new TypeError(`guard: expected a function to run, found ${describeValue(call.run)}`);
    const { unmetered, onViolation } = call.options;
    if (unmetered !== undefined && unmetered !== 'charge' && unmetered !== 'release')
      throw new RangeError("guard: unmetered: expected 'charge' or 'release'");
    const isKnown = onViolation === undefined || onViolation === 'warn' || onViolation === 'throw';
    if (!isKnown && typeof onViolation !== 'function')
      throw new TypeError("guard: onViolation: expected 'warn', 'throw' or a function");
    const { approval, onStop } = call.options;
    if (onStop !== undefined && onStop !== 'abort' && onStop !== 'finish')
      throw new RangeError("guard: onStop: expected 'abort' or 'finish'");
    if (approval !== undefined && approval !== 'wait' && approval !== 'deny')
      throw new RangeError("guard: approval: expected 'wait' or 'deny'");
    if (call.options.intent !== undefined && call.options.intentDigest !== undefined)
      throw new TypeError('guard: intent and intentDigest exclude each other');
    this.#parts = parts;
    this.#call = call;
    this.ended = new Promise((resolve) => (this.#end = resolve));
  }

  /** Before the function is called, ends the call with this reason; later, notifies the function. */
  abort(reason: unknown): void {
    this.#abort.abort(reason);
  }

  /** Stops waiting for the function. */
  leave(): void {
    this.#isLeft = true;
    this.#leave();
  }

  async perform(): Promise<T> {
    const { signal } = this.#call.options;
    const pass = (): void => this.#abort.abort(signal?.reason);
    if (signal?.aborted === true) pass();
    else signal?.addEventListener('abort', pass);
    try {
      this.#abort.signal.throwIfAborted();
      return await this.#perform();
    } finally {
      signal?.removeEventListener('abort', pass);
      this.#end();
    }
  }

  async #perform(): Promise<T> {
    const { toolName, params, options } = this.#call;
    const content = canonicalBytesWithout(params);
    const paramsDigest = sha256Digest(content);
    const { attach, approval, approvalWaitMs = DEFAULT_TTL_MS, onApprovalNeeded } = options;
    const { started, refusal, ...decision } = await this.#parts.begin(
      this.#toRequest(paramsDigest),
      { meterUsed: ONE_CALL_USED, now: this.#parts.now },
      {
        signal: this.#abort.signal,
        attach: attach === true ? content : undefined,
        waitMs: approval === 'wait' ? approvalWaitMs : 0,
        onApprovalNeeded: onApprovalNeeded && ((asked) => queueMicrotask(() => onApprovalNeeded(asked))),
      },
    );
    if (decision.decision === 'deny') throw new DeniedError(toolName, decision);
    const claim = await this.#claim(decision, started, refusal);
    if (options.onStop !== 'finish') this.running = decision.recorded.eventId;
    const { outcome, event } = await this.#run(decision, claim);
    this.running = undefined;
    const written: Written = { event };
    let recorded: Appended;
    try {
      recorded = await this.#record(written);
    } catch (error) {
      throw new UnrecordedExecutionError(claim.recorded.eventId, written.event, outcome, error);
    }
    const { onRecorded } = options;
    // A listener's errors must not reach the guard.
    if (onRecorded !== undefined) queueMicrotask(() => onRecorded(recorded));
    this.#reportViolation(recorded, outcome);
    if (outcome.kind === 'returned') return outcome.value as T;
    throw outcome.kind === 'threw' ? outcome.error : this.#abort.signal.reason;
  }

  /** Reports a broken bound; the result is never lost by it. */
  #reportViolation(recorded: Appended, outcome: GuardedOutcome): void {
    const findings = recorded.findings.filter(({ severity }) => severity === 'error').sort(worstFirst);
    const [worst] = findings;
    if (worst === undefined) return;
    const { onViolation = 'warn' } = this.#call.options;
    if (onViolation === 'throw') throw new ViolationError(findings, recorded, outcome);
    if (typeof onViolation === 'function') {
      queueMicrotask(() => onViolation(findings, recorded));
      return;
    }
    const text = `${printable(this.#call.toolName)} broke a bound: ${worst.code}: ${describeFinding(worst)}`;
    process.emitWarning(text, { code: 'NORTHROOT_VIOLATION' });
  }

  #toRequest(paramsDigest: Digest): LiveRequest {
    const { toolName, options } = this.#call;
    const { reserve = {}, intent, intentDigest, principalId, grantId } = options;
    const { userIntentDigest, contextDigest, resources, ttlMs = DEFAULT_TTL_MS } = options;
    const meant =
      intent === undefined
        ? { tool_name: toolName, tool_params_digest: { alg: paramsDigest.alg, b64: paramsDigest.b64 } }
        : intent;
    return {
      toolName,
      paramsDigest,
      intentDigest: intentDigest ?? sha256Digest(canonicalBytesWithout(meant)),
      meters: raiseMeters([ONE_CALL], meters(reserve)),
      ttlMs,
      ...defined({ principalId, grantId, userIntentDigest, contextDigest, resources }),
    };
  }

  /** The start of what was allowed. Without one the reservation is released, unless another recorder has begun it. */
  async #claim(
    { recorded }: RecordedDecision,
    claim: StartedExecution | undefined,
    refusal: unknown,
  ): Promise<StartedExecution> {
    const { signal } = this.#abort;
    if (claim === undefined) {
      await this.#release(recorded.eventId);
      throw refusal;
    }
    if (!signal.aborted) return claim;
    const { permission, startedAt } = claim;
    const nothing = { meterUsed: [], outcome: 'failure', errorCode: ABORTED } as const;
    const event = draftExecution(permission, { startedAt, endedAt: startedAt, ...nothing });
    await this.#record({ event }).catch(() => undefined);
    throw signal.reason;
  }

  /** Dates it when it is recorded, after what other calls recorded meanwhile. */
  async #record(written: Written): Promise<Appended> {
    const { ledger, now } = this.#parts;
    try {
      const makes = (): Entry => {
        written.event = dateExecution(written.event, now());
        return { event: written.event };
      };
      return await ledger.decide(makes, { ignoresState: true });
    } catch (error) {
      if (!(error instanceof NorthrootError && error.code === 'LEDGER_INVALID')) throw error;
    }
    // Nothing is decided by it: what was done is recorded also where nothing more may be.
    return ledger.append({ event: written.event });
  }

  /** Releases a reservation that has not begun. If that fails, it stays reserved, so it is never spent twice. */
  async #release(authorizationId: string): Promise<void> {
    const { ledger, now: clock } = this.#parts;
    const released = ledger.decide((state) => ({ event: draftRelease(state, authorizationId, clock()) }));
    await released.catch(() => undefined);
  }

  async #run(
    decision: RecordedDecision,
    { permission, startedAt, recorded }: StartedExecution,
  ): Promise<{ readonly outcome: GuardedOutcome; readonly event: object }> {
    const { run, options } = this.#call;
    const { ticks } = this.#parts;
    const { signal } = this.#abort;
    const meter = new UsageMeter(options.prices ?? this.#parts.prices);
    let outputDigest: Digest | undefined;
    let details: ExecutionDetails = {};
    const context: GuardContext = {
      signal,
      meter,
      decision,
      startId: recorded.eventId,
      setOutputDigest: (digest) => {
        if (!isDigest(digest)) throw new TypeError(`expected a digest, found ${describeValue(digest)}`);
        outputDigest = digest;
      },
      setDetails: (given) => {
        checkDetails('setDetails', given);
        details = { ...details, ...defined(given) };
      },
    };
    const left = new Promise<GuardedOutcome>((resolve) => {
      this.#leave = () => resolve({ kind: 'left' });
      if (this.#isLeft) this.#leave();
    });
    const from = ticks();
    const outcome = await Promise.race([settle(run, context), left]);
    const elapsed = elapsedSince(from, ticks());
    meter.close();
    const said = meter.read();
    this.#reportProblems(meter.problems);
    details = { ...detailsOf(options), ...defined(meter.details), ...details };
    // Amounts that only the guard measured have a known basis.
    if (said.every(({ unit }) => Object.hasOwn(meter.bases, unit)))
      details = { ...details, meterBasis: details.meterBasis ?? 'measured' };
    const endedAt = formatInstant(parseTimestamp(startedAt) + BigInt(elapsed) * NANOSECONDS_PER_MS);
    const time: Meter = { unit: 'time.ms', amount: { t: 'int', v: String(elapsed) } };
    const measured = [ONE_CALL, time];
    const meterUsed = raiseMeters(measured, said);
    const meterBasisByUnit = { ...measuredBases(details.meterBasis, measured, meterUsed), ...meter.bases };
    const stated = { ...details, meterBasisByUnit };
    const unsure = isUnread(outcome) ? new Set(permission.reserved.map(({ unit }) => unit)) : meter.unsure;
    const rest = { unmetered: options.unmetered ?? 'charge', unsure };
    if (outcome.kind !== 'returned' && signal.aborted)
      return { outcome, event: draftSettlement(permission, endedAt, meterUsed, stated, rest) };
    const ending =
      outcome.kind === 'returned'
        ? ({ outcome: 'success' } as const)
        : ({ outcome: 'failure', errorCode: codeOf(outcome) } as const);
    const done = { ...stated, startedAt, endedAt, meterUsed, ...ending, ...defined({ outputDigest }) };
    return { outcome, event: draftExecution(permission, stateReserved(permission, done, rest)) };
  }

  #reportProblems(problems: readonly string[]): void {
    const { onMeterProblem } = this.#call.options;
    for (const problem of problems) {
      // A listener's errors must not reach the guard.
      if (onMeterProblem !== undefined) queueMicrotask(() => onMeterProblem(problem));
      else process.emitWarning(problem, { code: 'NORTHROOT_UNMETERED' });
    }
  }
}

async function settle<T>(run: GuardedFunction<T>, context: GuardContext): Promise<GuardedOutcome> {
  try {
    return { kind: 'returned', value: await run(context) };
  } catch (error) {
    return { kind: 'threw', error };
  }
}

const CLASSES = ['invalid', 'violation', 'none'];

function worstFirst(a: Finding, b: Finding): number {
  return CLASSES.indexOf(a.class) - CLASSES.indexOf(b.class);
}

function detailsOf({ meterBasis, modelId, provider, pricingSnapshotDigest }: GuardOptions): ExecutionDetails {
  return { meterBasis, modelId, provider, pricingSnapshotDigest };
}

/** Whole milliseconds; 0 for a broken clock, since the execution MUST be recorded all the same. */
function elapsedSince(from: number, to: number): number {
  const elapsed = Math.ceil(to - from);
  return Number.isSafeInteger(elapsed) && elapsed > 0 ? elapsed : 0;
}

/** Whether a call was made whose usage could not be read: its failure is not free. */
function isUnread(outcome: GuardedOutcome): boolean {
  return outcome.kind === 'threw' && codeOf(outcome) === MODEL_USAGE_INVALID;
}

/** The error's `code`, such as `ENOENT`, where an event may carry it. */
export function codeOf(outcome: GuardedOutcome): string {
  const error: unknown = outcome.kind === 'threw' ? outcome.error : undefined;
  if (typeof error !== 'object' || error === null) return 'ERROR';
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && ERROR_CODE.test(code) ? code : 'ERROR';
}
