/**
 * The gate: it stands in the path of calls. It decides before a call, and settles after it. Advisers are asked first, outside the ledger's
 * lock; the grants decide last. A call is known by its host's own id, which the ledger keeps as the request key (SPEC §8 rule 18): another
 * process, or this one after it died, gives the same answer, and can settle the call.
 */

import type { Timer } from '../base/clock.js';
import { printable } from '../base/bytes/printable.js';
import { defined } from '../base/defined.js';
import { joinSignals, untilAborted } from '../base/deadline.js';
import { NorthrootError } from '../base/error.js';
import { tryInGroups } from '../base/in-groups.js';
import { canonicalBytesWithout } from '../base/json/omit-undefined.js';
import { checkOptions, checkString, type OptionTypes } from '../base/options.js';
import { type Digest, formatDigest, isDigest, parseDigest, sha256Digest } from '../base/value/digest.js';
import { type AmountsByUnit, type Meter, meters, type MeterVector } from '../base/value/meter.js';
import { compareTimestamps, formatInstant, parseTimestamp } from '../base/value/timestamp.js';
import type { MeterBasis, MeterDecimals, ResourceRef } from '../format/schema/generated/types.js';
import {
  LiveLedger,
  type AbandonedOpen,
  type LiveLedgerOptions,
  type WaitOptions,
} from '../log/agent/live-ledger.js';
import type { LiveRequest } from '../log/agent/guard.js';
import { APPROVAL_REJECTED, type RecordedDecision } from '../log/policy/authorize.js';
import type { ApprovalNeed } from '../log/policy/choose-approvals.js';
import type { DecidingBound } from '../log/policy/deciding-bound.js';
import { type Advice, OWN_CODES, type PolicyCheck } from '../log/policy/evaluator.js';
import type { KnownCall } from '../log/policy/known-answer.js';
import {
  draftExecution,
  type ExecutionDetails,
  type ExecutionOutcome,
  measuredBases,
  type Permission,
  raiseMeters,
  stateReserved,
  type Unmetered,
} from '../log/policy/record.js';
import { ONE_CALL_USED } from '../log/policy/start.js';
import { isOvertaken } from '../log/policy/sweep.js';
import type { LedgerStore } from '../log/store/ledger-store.js';
import type { Appended } from '../log/writer/ledger.js';
import type { AskOptions, PatientOptions } from '../log/writer/withdrawal.js';
import { APPROVAL_REQUIRED } from '../rules/verify/approvals.js';
import { decimalsOf } from '../rules/report/accounts.js';
import { type Adviser, type Advised, askAdvisers, checkAdvisers } from './advisers/adviser.js';
import { findOverdue, keepOnly, type LookedAt, type Overdue } from './find-overdue.js';
import { type LateCall, type LateOutcome, recordLate } from './late-report.js';
import { OTHER_PARAMS, recordOtherParams } from './other-params.js';
import { type KeptCall, type OpenCall, OpenCalls } from './open-calls.js';
import { makeSharedAbort } from './shared-abort.js';
import { keyOfCall, keyOfOrder, keyOfRef, keyOfTry, MAX_ORDER, MAX_TRIES, nextTryOf } from './request-key.js';

export type { OpenCall } from './open-calls.js';

/**
 * How complete the way is by which calls come: `hook`, what a host's hooks report; `proxy`, all that passes a wire; `sdk`, what a program
 * guards; `kernel`, all that is done at all.
 */
export type Coverage = 'hook' | 'proxy' | 'sdk' | 'kernel';

export interface GateOptions {
  /** Asked in order before the grants. At most 16. */
  readonly advisers?: readonly Adviser[] | undefined;
  /** Recorded in `checks` of every decision. Default `sdk`. */
  readonly coverage?: Coverage | undefined;
  /** Decides and records, and stops nothing: every call may run. Default false. */
  readonly shadow?: boolean | undefined;
  /**
   * Keeps the parameters of each call beside the ledger, in `LEDGER.contents`, for who approves and audits; on disk before the decision.
   * Default false.
   */
  readonly attach?: boolean | undefined;
  /** How long an allowed call may take, in milliseconds, unless it says otherwise. Default 900,000 (15 minutes). */
  readonly ttlMs?: number | undefined;
  /**
   * Settles as unknown what other processes' gates have begun and not settled, so many milliseconds after its end: they are gone, for each
   * settles its own at its end. What has no end is never settled, nor what was begun without a gate. Needs a ledger in files. Default:
   * nothing of others is settled.
   */
  readonly settleAfterMs?: number | undefined;
  /** Called with each call that the gate has settled by itself. */
  readonly onOverdue?: ((call: OverdueCall) => void) | undefined;
  /** Called with each call that the gate could not settle by itself, once until it is settled; it tries again at the next sweep. */
  readonly onUnsettled?: ((call: UnsettledCall) => void) | undefined;
}

/** A call whose end had passed, settled as unknown and charged as reserved. */
export interface OverdueCall extends OpenCall {
  readonly recorded: Appended;
}

/** A call whose end has passed, and that the ledger refuses to settle. */
export interface UnsettledCall {
  readonly principal: string;
  /** The recorded decision, `sha-256:…`. */
  readonly authorization: string;
  readonly error: unknown;
}

export interface GateCall {
  /** The host's own id of it. A host that has none leaves it out: such calls are told apart by their order. */
  readonly ref?: string | undefined;
  /** What the id is unique in. */
  readonly session?: string | undefined;
  /** Default: the ledger's `principalId`. */
  readonly principal?: string | undefined;
  /** A ToolName (SPEC §2). */
  readonly tool: string;
  /** Any JSON; its digest is recorded. Undefined members are left out. */
  readonly params: unknown;
  /** The most that it may use, by unit. One call is reserved unless more are given. */
  readonly reserve?: AmountsByUnit | undefined;
  readonly resources?: readonly ResourceRef[] | undefined;
  /** The purpose, any JSON; its digest is recorded. Default: the tool and its parameters. */
  readonly intent?: unknown;
  readonly userIntentDigest?: Digest | undefined;
  /** The grant to act under, `sha-256:…`. Default: the principal's grants are tried in ledger order. */
  readonly grantId?: string | undefined;
  /**
   * How long it may take, in milliseconds. What was not begun by then is released, what was begun is settled as unknown. `Infinity`: no
   * limit.
   */
  readonly ttlMs?: number | undefined;
  /**
   * Whether it begins at once, which is recorded too. False for hosts that may never report: until such a call has ended it counts in no
   * rate and no concurrency. Default true.
   */
  readonly start?: boolean | undefined;
  readonly coverage?: Coverage | undefined;
  /** Asked after the gate's own, about this call alone: who know more of it than its parameters. At most 16 with those. */
  readonly advisers?: readonly Adviser[] | undefined;
  /**
   * What the asker found of it besides: recorded with the decision, at most 8 checks. A denial holds whatever else is said; a rule of
   * approval holds besides those of the grants, instead of an adviser's. Where another policy was asked, its name and digest are recorded as
   * the decision's, and its code as that of an allowed call.
   */
  readonly found?:
    | Pick<Advice, 'checks' | 'denial' | 'approval' | 'code' | 'policyId' | 'policyDigest'>
    | undefined;
}

/** Which call is meant: by its id, or by what was asked for, where it has none. */
export interface CallName extends Pick<GateCall, 'ref' | 'session' | 'principal'> {
  readonly tool?: string | undefined;
  readonly params?: unknown;
}

export type GateAnswer = Pick<GateDecision, 'effect' | 'code' | 'reason' | 'params' | 'remaining' | 'need'>;

export interface GateDecision {
  /**
   * `allow`; `deny`; `ask`: somebody must approve, and `authorization` is the request to approve; `rewrite`: allowed with `params` instead
   * of the given ones. In shadow, never `deny` or `ask`: see `shadow`.
   */
  readonly effect: 'allow' | 'deny' | 'ask' | 'rewrite';
  /** `ALLOW`, or why not. */
  readonly code: string;
  /** In words. */
  readonly reason: string | undefined;
  /** The call's id, to settle it; given or assigned. */
  readonly ref: string;
  /** The recorded decision, `sha-256:…`. */
  readonly authorization: string;
  /** The recorded start, `sha-256:…`. */
  readonly start: string | undefined;
  /** For `rewrite`: the parameters to use. */
  readonly params?: unknown;
  /** The deciding grant's accounts after it, as exact decimals by unit; empty for a denial. */
  readonly remaining: Readonly<Record<string, MeterDecimals>>;
  /** Until when it may take. */
  readonly expires: string | undefined;
  /** For `ask`: who may approve. */
  readonly need?: ApprovalNeed | undefined;
  readonly bound?: DecidingBound | undefined;
  /** Whether it was decided before: nothing was recorded. */
  readonly isRepeated: boolean;
  /** In shadow: what would have been decided. */
  readonly shadow?: 'deny' | 'ask' | undefined;
}

export interface CallOutcome extends ExecutionDetails {
  readonly outcome: 'success' | 'failure' | 'unknown';
  /** By unit. What was reserved and is not said counts as used, as estimated use. `calls` and `time.ms` are measured. */
  readonly used?: AmountsByUnit | undefined;
  readonly meterBasisByUnit?: Readonly<Record<string, MeterBasis>> | undefined;
  /** Any JSON, or bytes; its digest is recorded. */
  readonly output?: unknown;
  /** Excludes `output`. */
  readonly outputDigest?: Digest | undefined;
  /**
   * Of the parameters that it ran with, where the host can tell. Default: those authorized. If it ran with others, what was authorized is
   * settled as unknown with the code `TOOL_PARAMS_MISMATCH`, and what ran is recorded as an execution under a denial.
   */
  readonly paramsDigest?: Digest | undefined;
  /** A Code (SPEC §2). Default for a failure: `ERROR`. */
  readonly errorCode?: string | undefined;
  /** As the host measured it, in milliseconds. Default: since the call was allowed. */
  readonly durationMs?: number | undefined;
  /** What happens to what was reserved and is not said. Default `charge`. */
  readonly unmetered?: Unmetered | undefined;
}

/** Of what ends a call. */
export interface EndCallOptions extends AskOptions {
  /** Whether who asks may end calls of this tool. Default: of any. */
  readonly mayEnd?: ((toolName: string) => boolean) | undefined;
}

/** Of what settles a call. */
export interface SettleOptions extends EndCallOptions, PatientOptions {}

type Refused = AbandonedOpen['refused'][number];

export interface Settled {
  /** The call's authorization, `sha-256:…`; undefined for a call that was denied in shadow. */
  readonly authorization: string | undefined;
  /** Undefined where it was settled before. */
  readonly recorded: Appended | undefined;
}

/** A call that is being decided. */
interface Deciding {
  /** What was asked. */
  readonly asked: string;
  readonly answer: Promise<GateDecision>;
  /** Of who asked first. */
  readonly signal: AbortSignal | undefined;
}

/** A call about which the advisers were asked. */
interface Prepared {
  readonly principal: string;
  readonly advised: Advised;
  readonly request: LiveRequest & { readonly meters: MeterVector };
  /** The parameters to use, canonical. */
  readonly content: Uint8Array;
}

const OPTION_TYPES: OptionTypes<GateOptions> = {
  advisers: 'array',
  coverage: 'string',
  shadow: 'boolean',
  attach: 'boolean',
  ttlMs: 'number',
  settleAfterMs: 'number',
  onOverdue: 'function',
  onUnsettled: 'function',
};

const CALL_TYPES: OptionTypes<GateCall> = {
  ref: 'string',
  session: 'string',
  principal: 'string',
  tool: 'string',
  params: 'any',
  reserve: 'object',
  resources: 'array',
  intent: 'any',
  userIntentDigest: 'object',
  grantId: 'string',
  ttlMs: 'number',
  start: 'boolean',
  coverage: 'string',
  advisers: 'array',
  found: 'object',
};

const OUTCOME_TYPES: OptionTypes<CallOutcome> = {
  outcome: 'string',
  used: 'object',
  meterBasis: 'string',
  meterBasisByUnit: 'object',
  modelId: 'string',
  provider: 'string',
  pricingSnapshotDigest: 'object',
  source: 'object',
  output: 'any',
  outputDigest: 'object',
  paramsDigest: 'object',
  errorCode: 'string',
  durationMs: 'number',
  unmetered: 'string',
};

const WAIT_TYPES: OptionTypes<WaitOptions> = {
  signal: 'signal',
  waitMs: 'number',
  onApprovalNeeded: 'function',
};

const COVERAGES: readonly string[] = ['hook', 'proxy', 'sdk', 'kernel'];
const DEFAULT_TTL_MS = 15 * 60_000;
const SWEEP_MS = 30_000;
const MIN_SWEEP_MS = 1_000;
/** How long after its end a call that was not begun may still be reported here. */
const LATE_MS = 3_600_000;
/** The most denials that are remembered. */
const MAX_DENIED = 1_000;
/** Denials that pass by themselves, as other calls end or time passes: whoever asks again is decided on again. */
const PASSING: ReadonlySet<string> = new Set(['CONCURRENCY_EXCEEDED', 'RATE_LIMIT_EXCEEDED']);
/** The most checks of an asker. */
const MAX_FOUND = 8;
const NANOSECONDS_PER_MS = 1_000_000n;
const ONE_CALL: Meter = { unit: 'calls', amount: { t: 'int', v: '1' } };

/** A gate over a ledger; see the head of this file. */
export class Gate {
  /** For all else: approvals, revocations, budgets, delegation. */
  readonly ledger: LiveLedger;
  readonly #options: GateOptions;
  readonly #principal: string | undefined;
  readonly #open = new OpenCalls();
  /** Calls that are being decided, by principal and request key. */
  readonly #deciding = new Map<string, Deciding>();
  /** The last denials, likewise: a repeated call gets the same answer. */
  readonly #denied = new Map<string, { readonly asked: string; readonly decision: GateDecision }>();
  /** This gate's calls that the last sweep could not settle, `sha-256:…`. */
  readonly #refused = new Map<string, KeptCall>();
  /** Others' that sweeps have looked at. */
  readonly #lookedAt: LookedAt = { notGates: new Set(), refused: new Map() };
  readonly #closing = makeSharedAbort();
  #sweeper: Timer | undefined;

  /** @throws TypeError, RangeError naming the malformed option */
  constructor(ledger: LiveLedger, options: GateOptions = {}) {
    checkOptions('Gate', options, OPTION_TYPES);
    const { advisers = [], coverage, ttlMs, settleAfterMs } = options;
    checkAdvisers(advisers);
    checkCoverage(coverage);
    checkTtl(ttlMs);
    if (settleAfterMs !== undefined && !(settleAfterMs >= 0))
      throw new RangeError('settleAfterMs: expected milliseconds, at least 0');
    this.ledger = ledger;
    this.#principal = ledger.principalId;
    this.#options = options;
    if (this.#settlesOthers) this.#sweepInTime();
  }

  /**
   * Opens a ledger as `LiveLedger.open`, with a gate over it.
   * @throws as `LiveLedger.open`; TypeError, RangeError
   */
  static async open(
    place: string | LedgerStore,
    options: LiveLedgerOptions & GateOptions = {},
  ): Promise<Gate> {
    const { advisers, coverage, shadow, attach, ttlMs, settleAfterMs, onOverdue, onUnsettled, ...ofLedger } =
      options;
    const own = { advisers, coverage, shadow, attach, ttlMs, settleAfterMs, onOverdue, onUnsettled };
    checkOptions('Gate.open', own, OPTION_TYPES);
    checkAdvisers(advisers ?? []);
    const ledger = await LiveLedger.open(place, ofLedger);
    try {
      return new Gate(ledger, own);
    } catch (error) {
      await ledger.close();
      throw error;
    }
  }

  /**
   * Decides on a call, reserves what it may use, and records that it begins. The same call, told by its id, gets the same answer.
   * @param options - `waitMs`: how long to wait for approvals; `onApprovalNeeded` is called before
   * @throws NorthrootError `REQUEST_CONFLICT`: the id is that of another tool or other parameters; `LEDGER_INVALID`; as
   *   `LiveLedger.append`. Nothing may run then.
   * @throws TypeError, RangeError for a malformed call
   */
  async decide(call: GateCall, options: WaitOptions = {}): Promise<GateDecision> {
    checkOptions('decide', call, CALL_TYPES);
    checkOptions('decide: options', options, WAIT_TYPES);
    checkString('decide', 'tool', call.tool);
    const principal = this.#principalOf(call);
    const digest = sha256Digest(canonicalBytesWithout(call.params));
    const asked = `${call.tool} ${digest.b64}`;
    const { ref } = call;
    if (ref === undefined) return this.#decideInOrder(call, principal, digest, options);
    const requestKey = keyOfCall(call.session, ref);
    const name = nameOf(principal, requestKey);
    const denied = this.#denied.get(name);
    if (denied !== undefined) {
      if (denied.asked !== asked) throw conflict(ref);
      if (await this.#isStillDenied(denied.decision, call, principal, digest, options))
        return { ...denied.decision, isRepeated: true };
      this.#denied.delete(name);
    }
    const same = this.#deciding.get(name);
    if (same !== undefined) {
      if (same.asked !== asked) throw conflict(ref);
      try {
        return { ...(await untilAborted(same.answer, options.signal)), isRepeated: true };
      } catch (error) {
        // Who asked first has left, and takes the answer from nobody else.
        if (same.signal?.aborted !== true || options.signal?.aborted === true) throw error;
        return this.decide(call, options);
      }
    }
    const answer = this.#untilClosed(options, (until) =>
      this.#decide(call, principal, requestKey, ref, until),
    );
    this.#deciding.set(name, { asked, answer, signal: options.signal });
    try {
      const decision = await answer;
      if (decision.effect === 'deny' && !PASSING.has(decision.code)) this.#remember(name, asked, decision);
      return decision;
    } finally {
      this.#deciding.delete(name);
    }
  }

  /**
   * What {@link Gate.decide} would answer now. Nothing is recorded or reserved.
   * @throws TypeError, RangeError for a malformed call; NorthrootError as `LiveLedger.evaluate`
   */
  async ask(call: GateCall, options: AskOptions = {}): Promise<GateAnswer> {
    const { principal, advised, request } = await this.#prepare(call, options);
    const decision = await this.ledger.evaluate({ ...request, principalId: principal }, options);
    const { decisionCode: code, reason, need, remaining } = decision;
    const denied = code === APPROVAL_REQUIRED ? 'ask' : 'deny';
    const allowed = advised.isRewritten ? 'rewrite' : 'allow';
    return {
      effect: decision.decision === 'deny' ? denied : allowed,
      code,
      reason,
      ...(advised.isRewritten && decision.decision === 'allow' ? { params: advised.params } : {}),
      remaining: decimalsOf(remaining),
      need,
    };
  }

  /**
   * Records how a call ended. To repeat it is harmless. Of a call that was settled as unknown, by whichever process, the first late report
   * is recorded as `x.northroot.late_report`, and what it used beyond the charge is debited; nothing is given back.
   * @param call - As given to {@link Gate.decide}; its id alone is enough
   * @throws NorthrootError `CALL_NOT_FOUND`: no such call was allowed; `REQUEST_CONFLICT`: something else was reported late;
   *   `NOT_ALLOWED` by `mayEnd`; as `LiveLedger.record`
   * @throws TypeError, RangeError for malformed input. Nothing is recorded then.
   */
  async settle(
    call: string | CallName,
    done: CallOutcome,
    { mayEnd, mayWait, ...options }: SettleOptions = {},
  ): Promise<Settled> {
    checkOutcome(done);
    const said = meters(done.used ?? {});
    const found = await this.#find(call, options);
    if (found === undefined) return { authorization: undefined, recorded: undefined };
    if (found.kept === undefined) {
      const { authorization, isLost } = found;
      if (isLost !== true || done.outcome === 'unknown') return { authorization, recorded: undefined };
      return { authorization, recorded: await this.#recordLate(authorization, done, said, mayEnd, options) };
    }
    const { kept } = found;
    assertMayEnd(kept, mayEnd);
    const { paramsDigest } = done;
    const isOther = paramsDigest !== undefined && formatDigest(paramsDigest) !== kept.paramsDigest;
    const ended = isOther
      ? ({
          ...done,
          outcome: 'unknown',
          errorCode: OTHER_PARAMS,
          output: undefined,
          outputDigest: undefined,
        } as const)
      : done;
    const begun = toBegun(kept);
    const endedAt = this.#endOf(kept);
    const drafted = draftOutcome(begun, ended, said, endedAt);
    const recorded = await this.#record(kept, drafted, options, mayWait);
    this.#forget(kept);
    if (recorded === ASKED_AGAIN) return this.settle(call, done, { mayEnd, mayWait, ...options });
    const { authorization, requestKey } = kept;
    // Another process may have settled it as unknown meanwhile.
    if (recorded === undefined && done.outcome !== 'unknown')
      return { authorization, recorded: await this.#recordLate(authorization, done, said, mayEnd, options) };
    if (!isOther || recorded === undefined) return { authorization, recorded };
    // What is used of the grant is charged by then.
    const ran = draftOutcome(begun, { ...done, used: undefined }, [], endedAt);
    const other = { permission: toPermission(kept), requestKey, paramsDigest, outcome: ran };
    return { authorization, recorded: await recordOtherParams(this.ledger, other, options) };
  }

  /**
   * Gives back what a call reserved, as it did not run. One that was begun is settled as unknown, and charged: what was begun is not given
   * back (SPEC §8 rule 8). To repeat it is harmless.
   * @throws as {@link Gate.settle}
   */
  async release(call: string | CallName, { mayEnd, ...options }: EndCallOptions = {}): Promise<Settled> {
    const found = await this.#find(call, options);
    if (found === undefined) return { authorization: undefined, recorded: undefined };
    if (found.kept === undefined) return { authorization: found.authorization, recorded: undefined };
    const { kept } = found;
    assertMayEnd(kept, mayEnd);
    const recorded = await this.#end(kept, options);
    if (recorded === ASKED_AGAIN) return this.release(call, { mayEnd, ...options });
    return { authorization: kept.authorization, recorded };
  }

  /** The calls that this gate has allowed and that are not settled, oldest first. Others' are in `ledger.budget()`. */
  listOpen(session?: string): OpenCall[] {
    const open = [...this.#open.values()].map(toOpenCall);
    return session === undefined ? open : open.filter((call) => call.session === session);
  }

  /** How many those are. */
  get openCalls(): number {
    return this.#open.size;
  }

  /**
   * Releases expired calls that were not begun, this gate's and others'; settles this gate's calls that took longer than they may as
   * unknown, and others' as `settleAfterMs` says. Done every 30 seconds by itself.
   * @returns What was released of expired calls; and what could not be ended, which keeps nothing else from it and is tried again next time
   * @throws the signal's reason; as `LiveLedger.abandonOpen`
   */
  async sweep(options: AskOptions = {}): Promise<AbandonedOpen> {
    const ended = this.#open.listEnded(this.ledger.clock.ticks());
    for (const kept of ended) if (kept.start === undefined) this.#forget(kept);
    const begun = ended.filter(({ start }) => start !== undefined);
    keepOnly(this.#refused, new Set(begun.map(({ authorization }) => authorization)));
    const own = await this.#settleEach(
      begun,
      async (kept) => this.#tell(kept, await this.#end(kept, options)),
      this.#refused,
      options,
    );
    const { settled, refused } = await this.ledger.abandonOpen({ expired: true, ...options });
    // Last, as it reads records again, which may fail for reasons of its own.
    const others = this.#settlesOthers ? await this.#settleOthers(options) : [];
    return { settled, refused: [...own, ...others, ...refused] };
  }

  /** Waits for what is being decided, and closes the ledger. Open calls stay open: another gate can settle them. */
  async close(): Promise<void> {
    this.ledger.clock.clear(this.#sweeper);
    this.#closing.abort(new NorthrootError('GATE_CLOSED', 'the gate was closed'));
    await Promise.allSettled([...this.#deciding.values()].map(({ answer }) => answer));
    await this.ledger.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Whether the grants deny still what they denied before: calls have ended, or somebody has granted, resumed or approved meanwhile. */
  async #isStillDenied(
    { code }: GateDecision,
    call: GateCall,
    principalId: string,
    paramsDigest: Digest,
    { signal }: AskOptions,
  ): Promise<boolean> {
    const wasRejected = code === APPROVAL_REJECTED;
    if (!wasRejected && !OWN_CODES.has(code)) return true;
    const request = { ...requestOf(call, paramsDigest), principalId };
    const { decision, decisionCode } = await this.ledger.evaluate(request, defined({ signal }));
    const asks = decisionCode === APPROVAL_REQUIRED;
    return decision === 'deny' && (wasRejected || !asks);
  }

  #remember(name: string, asked: string, decision: GateDecision): void {
    this.#denied.set(name, { asked, decision });
    const [oldest] = this.#denied.keys();
    if (this.#denied.size > MAX_DENIED && oldest !== undefined) this.#denied.delete(oldest);
  }

  /** Closing ends the wait for approvals. */
  async #untilClosed<T>(options: WaitOptions, decide: (options: WaitOptions) => Promise<T>): Promise<T> {
    if (!(options.waitMs !== undefined && options.waitMs > 0)) return decide(options);
    const { signal, clear } = joinSignals([options.signal, this.#closing.signal]);
    return decide({ ...options, signal }).finally(clear);
  }

  /** Calls without an id have one by their order among the same ones. */
  async #decideInOrder(
    call: GateCall,
    principal: string,
    digest: Digest,
    options: WaitOptions,
  ): Promise<GateDecision> {
    const base = { session: call.session, tool: call.tool, digest };
    for (let order = await this.#nextOrder(principal, base); order < MAX_ORDER; order += 1) {
      const ref = keyOfOrder(base, order);
      const name = nameOf(principal, ref);
      if (this.#deciding.has(name)) continue;
      const answer = this.#untilClosed(options, (until) => this.#decide(call, principal, ref, ref, until, 1));
      this.#deciding.set(name, { asked: '', answer, signal: options.signal });
      try {
        const decision = await answer;
        // Another process has taken this number.
        if (!decision.isRepeated) return decision;
      } finally {
        this.#deciding.delete(name);
      }
    }
    throw new NorthrootError('CALL_LIMIT', `more than ${MAX_ORDER} calls are the same`, {
      hint: 'give calls an id',
    });
  }

  /** A number that no call has, below which all are taken. */
  async #nextOrder(principal: string, base: Parameters<typeof keyOfOrder>[0]): Promise<number> {
    const isTaken = async (order: number): Promise<boolean> => {
      const ref = keyOfOrder(base, order);
      if (this.#open.has(principal, ref)) return true;
      const { open, spent, released } = await this.ledger.findCall(principal, ref);
      return (open ?? spent ?? released) !== undefined;
    };
    let [low, high] = [0, 1];
    while (high < MAX_ORDER && (await isTaken(high))) [low, high] = [high, high * 2];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (await isTaken(middle)) low = middle;
      else high = middle;
    }
    return high;
  }

  async #decide(
    call: GateCall,
    principal: string,
    requestKey: string,
    ref: string,
    options: WaitOptions,
    tries = MAX_TRIES,
  ): Promise<GateDecision> {
    const prepared = await this.#prepare({ ...call, principal }, options);
    for (let count = 1; ; count += 1) {
      const key = keyOfTry(requestKey, count);
      const decision = await this.#decideOnce(call, prepared, key, ref, options);
      const mayTryAgain = TRIED_AGAIN.has(decision.code) && decision.isRepeated && count < tries;
      // A released call that is asked for again has another key (SPEC §8 rule 18).
      if (!mayTryAgain || (await this.ledger.findCall(principal, key)).released === undefined)
        return decision;
    }
  }

  async #decideOnce(
    call: GateCall,
    { principal, advised, request, content }: Prepared,
    requestKey: string,
    ref: string,
    options: WaitOptions,
  ): Promise<GateDecision> {
    const { session } = call;
    const { shadow = false, ttlMs: usual = DEFAULT_TTL_MS } = this.#options;
    const { ttlMs = usual } = call;
    const { paramsDigest, intentDigest, meters: reserved, toolName } = request;
    const start = call.start === false ? undefined : { meterUsed: ONE_CALL_USED };
    const decision = await this.ledger.authorize(
      { ...request, principalId: principal, ttlMs, requestKey },
      {
        ...(shadow ? { signal: options.signal } : options),
        ...defined({ start, attach: this.#options.attach === true ? content : undefined }),
      },
    );
    const { recorded, started, refusal } = decision;
    const isRepeated = recorded.status === 'exists';
    if (decision.decision === 'deny') return this.#toDenial(decision, ref, isRepeated, shadow);
    const ticks = this.ledger.clock.ticks();
    // A call that was begun when it was first asked for has its start.
    const known = isRepeated ? (await this.ledger.findCall(principal, requestKey)).open : undefined;
    const begun = started && { startId: started.recorded.eventId, startedAt: started.startedAt };
    const kept = this.#keep(ref, session, requestKey, ttlMs, {
      authorizationId: recorded.eventId,
      allowedAt: this.ledger.now(),
      expiresAt: decision.expiresAt,
      reserved,
      ...known,
      start: known?.start ?? begun,
      principalId: principal,
      toolName,
      paramsDigest: formatDigest(paramsDigest),
      intentDigest: formatDigest(intentDigest),
      ticks: isRepeated && begun === undefined ? this.#open.get(principal, requestKey)?.sinceTicks : ticks,
    });
    if (start !== undefined && kept.start === undefined) {
      await this.#release(kept, {}).catch(() => undefined);
      this.#forget(kept);
      if (!(refusal instanceof NorthrootError) || !REFUSALS.has(refusal.code)) throw refusal;
      return this.#toDenial(
        { ...decision, decisionCode: refusal.code, reason: refusal.message },
        ref,
        isRepeated,
        shadow,
      );
    }
    return {
      effect: advised.isRewritten ? 'rewrite' : 'allow',
      code: decision.decisionCode,
      reason: undefined,
      ref,
      authorization: kept.authorization,
      start: kept.start,
      ...(advised.isRewritten ? { params: advised.params } : {}),
      remaining: decimalsOf(decision.remaining),
      expires: kept.expires,
      isRepeated,
    };
  }

  /** Asks the advisers, and makes the request for the grants. */
  async #prepare(call: GateCall, { signal }: AskOptions): Promise<Prepared> {
    checkOptions('decide', call, CALL_TYPES);
    checkString('decide', 'tool', call.tool);
    checkCoverage(call.coverage);
    checkTtl(call.ttlMs);
    if ((call.found?.checks.length ?? 0) > MAX_FOUND)
      throw new RangeError(`decide: found: expected at most ${MAX_FOUND} checks`);
    const principal = this.#principalOf(call);
    const { tool, session, reserve = {}, resources = [] } = call;
    const advisers = this.#advisersOf(call);
    checkAdvisers(advisers);
    const given = canonicalBytesWithout(call.params);
    const asked = sha256Digest(given);
    const advised = await askAdvisers(
      advisers,
      { principalId: principal, toolName: tool, params: call.params, reserve, resources, session },
      signal,
    );
    // In shadow the call runs as it is.
    const isRewritten = advised.isRewritten && this.#options.shadow !== true;
    const content = isRewritten ? canonicalBytesWithout(advised.params) : given;
    const paramsDigest = isRewritten ? sha256Digest(content) : asked;
    const request = { ...requestOf(call, paramsDigest), advice: this.#adviceOf(advised, asked, call) };
    return { principal, advised: { ...advised, isRewritten }, request, content };
  }

  #toDenial(
    { decisionCode, reason, need, bound, recorded }: RecordedDecision,
    ref: string,
    isRepeated: boolean,
    isShadow: boolean,
  ): GateDecision {
    const effect: 'ask' | 'deny' = decisionCode === APPROVAL_REQUIRED ? 'ask' : 'deny';
    return {
      effect: isShadow ? 'allow' : effect,
      code: decisionCode,
      reason,
      ref,
      authorization: recorded.eventId,
      start: undefined,
      remaining: {},
      expires: undefined,
      need,
      bound,
      isRepeated,
      shadow: isShadow ? effect : undefined,
    };
  }

  #advisersOf({ advisers = [] }: GateCall): readonly Adviser[] {
    return [...(this.#options.advisers ?? []), ...advisers];
  }

  #adviceOf({ advice, isRewritten }: Advised, asked: Digest, call: GateCall): Advice {
    const { coverage: usual = 'sdk', shadow: isShadow = false } = this.#options;
    const { coverage = usual, found } = call;
    const checks: PolicyCheck[] = [
      { check: 'coverage', result: 'pass', code: coverage.toUpperCase() },
      ...(isShadow ? [{ check: 'shadow', result: 'pass', code: 'SHADOW' } as const] : []),
      ...(found?.checks ?? []),
      ...advice.checks,
      ...(isRewritten ? [{ check: `asked:${asked.b64}`, result: 'pass', code: 'REWRITTEN' } as const] : []),
    ];
    const denial = found?.denial ?? advice.denial;
    const approval = found?.approval ?? advice.approval;
    const { code, policyId, policyDigest } = found ?? {};
    return {
      ...(this.#advisersOf(call).length > 0 ? advice : {}),
      checks,
      ...defined({ denial, approval, code, policyId, policyDigest }),
    };
  }

  #keep(
    ref: string,
    session: string | undefined,
    requestKey: string,
    ttlMs: number,
    {
      authorizationId,
      principalId,
      toolName,
      paramsDigest,
      intentDigest,
      allowedAt,
      expiresAt,
      reserved,
      start,
      ticks,
    }: KnownCall & { readonly ticks?: number | undefined },
  ): KeptCall {
    const kept: KeptCall = {
      ref,
      session,
      principal: principalId,
      tool: toolName,
      authorization: authorizationId,
      start: start?.startId,
      since: start?.startedAt ?? allowedAt,
      sinceTicks: ticks === undefined ? undefined : Math.floor(ticks),
      expires: expiresAt,
      requestKey,
      paramsDigest,
      intentDigest,
      reserved,
      // What was not begun is released by the ledger; it may still be reported.
      keptUntil: this.ledger.clock.ticks() + ttlMs + (start === undefined ? LATE_MS : 0),
    };
    this.#open.set(kept);
    this.#sweepInTime();
    return kept;
  }

  #sweepInTime(): void {
    if (this.#sweeper !== undefined) return;
    const { settleAfterMs = SWEEP_MS } = this.#options;
    // What cannot be swept now can be next time.
    const sweep = (): void => void this.sweep().catch(() => undefined);
    this.#sweeper = this.ledger.clock.setInterval(
      sweep,
      Math.min(SWEEP_MS, Math.max(MIN_SWEEP_MS, settleAfterMs)),
    );
    this.#sweeper.unref();
  }

  #forget({ principal, requestKey }: KeptCall): void {
    this.#open.delete(principal, requestKey);
    if (this.#open.size > 0 || this.#settlesOthers) return;
    this.ledger.clock.clear(this.#sweeper);
    this.#sweeper = undefined;
  }

  /** The open call that is meant; in shadow undefined for none. */
  async #find(
    call: string | CallName,
    options: AskOptions,
  ): Promise<
    { readonly kept?: KeptCall; readonly authorization: string; readonly isLost?: boolean } | undefined
  > {
    const name: CallName = typeof call === 'string' ? { ref: call } : call;
    // A whole call may be given.
    checkOptions<CallName>('call', name, CALL_TYPES);
    const principal = this.#principalOf(name);
    const requestKey =
      name.ref === undefined ? await this.#oldest(principal, name) : keyOfRef(name.session, name.ref);
    let used: { readonly authorization: string; readonly isLost: boolean } | undefined;
    for (let count = 1; requestKey !== undefined && count <= MAX_TRIES; count += 1) {
      const key = keyOfTry(requestKey, count);
      const kept = this.#open.get(principal, key);
      if (kept !== undefined) return { kept, authorization: kept.authorization };
      const known = await this.ledger.findCall(principal, key, options);
      const { open, released, spent = released, isLost = false } = known;
      if (open !== undefined) {
        const found = this.#keep(name.ref ?? requestKey, name.session, key, DEFAULT_TTL_MS, open);
        return { kept: found, authorization: found.authorization };
      }
      if (spent !== undefined) used = { authorization: spent, isLost };
      if (released === undefined) break;
    }
    if (used !== undefined) return used;
    if (this.#options.shadow === true) return undefined;
    throw new NorthrootError(
      'CALL_NOT_FOUND',
      `no call ${printable(name.ref ?? name.tool ?? '', 80)} was allowed`,
      {
        hint: 'decide on it first; the principal and the session must be the same',
      },
    );
  }

  /** The oldest open call without an id that is the same. */
  async #oldest(principal: string, { session, tool, params }: CallName): Promise<string | undefined> {
    if (tool === undefined) throw new TypeError('expected the ref of a call, or its tool and params');
    const base = { session, tool, digest: sha256Digest(canonicalBytesWithout(params)) };
    const next = await this.#nextOrder(principal, base);
    let oldest: string | undefined;
    for (let order = next - 1; order >= 1 && next - order <= MAX_LOOK_BACK; order -= 1) {
      const ref = keyOfOrder(base, order);
      if (this.#open.has(principal, ref) || (await this.ledger.findCall(principal, ref)).open !== undefined)
        oldest = ref;
    }
    return oldest;
  }

  /** Undefined where it was settled before. */
  async #record(
    kept: KeptCall,
    outcome: ExecutionOutcome,
    options: AskOptions,
    mayWait: boolean | undefined,
  ): Promise<Ended> {
    const start = kept.start === undefined ? {} : { start: kept.start };
    try {
      return await this.ledger.record(
        kept.authorization,
        { ...outcome, ...start, isDatedNow: true, mayBreakBounds: true },
        { ...options, mayWait },
      );
    } catch (error) {
      if (!(error instanceof NorthrootError) || error.code !== 'AUTHORIZATION_REUSED') throw error;
    }
    const { released } = await this.ledger.findCall(kept.principal, kept.requestKey, options);
    if (released === undefined) return undefined;
    if (await this.#wasAskedAgain(kept, options)) return ASKED_AGAIN;
    // It ran after its reservation was given back: the ledger says so.
    return this.ledger.append({ event: draftExecution(toPermission(kept), outcome) }, options);
  }

  /** Ends a call without a report. Undefined where another process has settled it. */
  async #end(kept: KeptCall, options: AskOptions): Promise<Ended> {
    try {
      const recorded = await this.#release(kept, options);
      this.#forget(kept);
      return recorded;
    } catch (error) {
      if (!isOvertaken(error)) throw error;
    }
    this.#forget(kept);
    const { open, released } = await this.ledger.findCall(kept.principal, kept.requestKey, options);
    if (released !== undefined && (await this.#wasAskedAgain(kept, options))) return ASKED_AGAIN;
    const start = open?.start?.startId;
    if (start === undefined || start === kept.start) return undefined;
    // Another process has begun it meanwhile.
    return this.#release({ ...kept, start }, options);
  }

  /** Whether a released call was allowed anew, which another process may have done. */
  async #wasAskedAgain({ principal, requestKey }: KeptCall, options: AskOptions): Promise<boolean> {
    const next = nextTryOf(requestKey);
    if (next === undefined) return false;
    const { open, spent, released } = await this.ledger.findCall(principal, next, options);
    return (open ?? spent ?? released) !== undefined;
  }

  #tell(kept: KeptCall, recorded: Ended): void {
    if (recorded !== undefined && recorded !== ASKED_AGAIN)
      this.#options.onOverdue?.({ ...toOpenCall(kept), recorded });
  }

  get #settlesOthers(): boolean {
    const { settleAfterMs = Infinity } = this.#options;
    return settleAfterMs < Infinity && this.ledger.isInFiles;
  }

  async #settleOthers(options: AskOptions): Promise<Refused[]> {
    const { settleAfterMs = Infinity } = this.#options;
    const overdue = await findOverdue(this.ledger, settleAfterMs, this.#lookedAt, options);
    const settle = async ({ principal, requestKey, authorization }: Overdue): Promise<void> => {
      if (this.#open.has(principal, requestKey)) return;
      const { open } = await this.ledger.findCall(principal, requestKey, options);
      if (open?.start === undefined || open.authorizationId !== authorization) return;
      const kept = this.#keep(requestKey, undefined, requestKey, Infinity, open);
      try {
        this.#tell(kept, await this.#end(kept, options));
      } finally {
        this.#forget(kept);
      }
    };
    return this.#settleEach(overdue, settle, this.#lookedAt.refused, options);
  }

  /**
   * What fails for one call keeps no other from being settled.
   * @param known - Those that were refused before, `sha-256:…`; changed
   */
  async #settleEach<T extends Pick<OpenCall, 'principal' | 'authorization'>>(
    calls: readonly T[],
    settle: (call: T) => Promise<void>,
    known: Map<string, T>,
    { signal }: AskOptions,
  ): Promise<Refused[]> {
    const { onUnsettled } = this.#options;
    const ends = await tryInGroups(calls, settle, signal);
    signal?.throwIfAborted();
    const refused: Refused[] = [];
    for (const [index, end] of ends.entries()) {
      const call = calls[index] as T;
      const { principal, authorization } = call;
      const wasRefused = known.delete(authorization);
      if (end.status === 'fulfilled') continue;
      const error: unknown = end.reason;
      refused.push({ authorizationId: authorization, startId: undefined, error });
      // Where the ledger fails, nothing is wrong with the call.
      if (error instanceof NorthrootError && error.code.startsWith('LEDGER_')) continue;
      // At the end: those that were refused first are tried first.
      known.set(authorization, call);
      if (!wasRefused) onUnsettled?.({ principal, authorization, error });
    }
    return refused;
  }

  /** What is reported of a call after it was settled as unknown. Undefined where nothing new is. */
  async #recordLate(
    authorization: string,
    done: CallOutcome,
    said: MeterVector,
    mayEnd: EndCallOptions['mayEnd'],
    options: AskOptions,
  ): Promise<Appended | undefined> {
    const describe = ({ tool, since, reserved }: LateCall): LateOutcome => {
      assertMayEnd({ tool }, mayEnd);
      const outcome = draftOutcome(
        { since, reserved, isBegun: true, isLate: true },
        done,
        said,
        this.ledger.now(),
      );
      return { outcome, paramsDigest: done.paramsDigest && formatDigest(done.paramsDigest) };
    };
    return recordLate(this.ledger, authorization, describe, options);
  }

  #release(kept: KeptCall, options: AskOptions): Promise<Appended> {
    const start = kept.start === undefined ? {} : { start: kept.start };
    return this.ledger.abandon(kept.authorization, { ...start, ...defined({ signal: options.signal }) });
  }

  /** When a call ends that ends now. Its length is not that of a step of the clock, where it is known. */
  #endOf({ since, sinceTicks }: KeptCall): string {
    if (sinceTicks === undefined) return this.ledger.now();
    const lasted = BigInt(Math.max(0, Math.ceil(this.ledger.clock.ticks() - sinceTicks)));
    return formatInstant(parseTimestamp(since) + lasted * NANOSECONDS_PER_MS);
  }

  #principalOf({ principal = this.#principal }: Pick<GateCall, 'principal'>): string {
    if (principal === undefined) throw new TypeError('expected principal, of the call or of the ledger');
    return principal;
  }
}

function toPermission(kept: KeptCall): Permission {
  return {
    kind: 'action',
    authorizationId: kept.authorization,
    principalId: kept.principal,
    toolName: kept.tool,
    intentDigest: parseDigest(kept.intentDigest),
    paramsDigest: parseDigest(kept.paramsDigest),
    reserved: kept.reserved,
    startId: kept.start,
    started: undefined,
  };
}

function toOpenCall({
  ref,
  session,
  principal,
  tool,
  authorization,
  start,
  since,
  expires,
}: KeptCall): OpenCall {
  return { ref, session, principal, tool, authorization, start, since, expires };
}

/** What is known of a call is out of date: it was released, and what is meant is a later try of it. */
const ASKED_AGAIN = 'asked again';
/** Undefined where another process was first. */
type Ended = Appended | typeof ASKED_AGAIN | undefined;

/** The most calls without an id that are looked at to find the oldest. */
const MAX_LOOK_BACK = 64;

/** Codes for a repeated call that may have been released: also just now, since the clock was set back behind its authorization. */
const TRIED_AGAIN: ReadonlySet<string> = new Set(['AUTHORIZATION_REUSED', 'EXECUTION_BEFORE_AUTHORIZATION']);

/** Codes of refusals by the rules, for which nothing is wrong with the ledger. */
const REFUSALS: ReadonlySet<string> = new Set([
  'EXECUTION_BEFORE_AUTHORIZATION',
  'GRANT_REVOKED',
  'GRANT_EXPIRED',
  'ACTION_EXPIRED',
  'AUTHORIZATION_REUSED',
  'AUTHORIZATION_STARTED',
  'RATE_LIMIT_EXCEEDED',
  'CONCURRENCY_EXCEEDED',
  'METER_CAP_EXCEEDED',
  'GRANT_UNSOUND',
]);

/** @throws TypeError, RangeError for what is malformed */
function checkOutcome(done: CallOutcome): void {
  checkOptions('settle', done, OUTCOME_TYPES);
  const { outcome, outputDigest, paramsDigest, output, durationMs } = done;
  if (outcome !== 'success' && outcome !== 'failure' && outcome !== 'unknown')
    throw new RangeError("settle: outcome: expected 'success', 'failure' or 'unknown'");
  if (outputDigest !== undefined && output !== undefined)
    throw new TypeError('settle: output and outputDigest exclude each other');
  if (outputDigest !== undefined && !isDigest(outputDigest))
    throw new TypeError('settle: outputDigest: expected a digest');
  if (paramsDigest !== undefined && !isDigest(paramsDigest))
    throw new TypeError('settle: paramsDigest: expected a digest');
  if (durationMs !== undefined && !(durationMs >= 0 && durationMs <= Number.MAX_SAFE_INTEGER))
    throw new RangeError('settle: durationMs: expected milliseconds, at least 0');
}

/** What an execution is drafted from. */
interface BegunCall extends Pick<KeptCall, 'since' | 'reserved'> {
  /** Whether it was recorded as begun. */
  readonly isBegun: boolean;
  /** Whether it may have ended long ago: then only who says so knows for how long it ran. */
  readonly isLate: boolean;
}

function toBegun({ since, reserved, start }: KeptCall): BegunCall {
  return { since, reserved, isBegun: start !== undefined, isLate: false };
}

function draftOutcome(kept: BegunCall, done: CallOutcome, said: MeterVector, now: string): ExecutionOutcome {
  const { outcome, errorCode, output, unmetered, durationMs } = done;
  const { meterBasis, modelId, provider, pricingSnapshotDigest, source } = done;
  const endedAt = compareTimestamps(now, kept.since) < 0 ? kept.since : now;
  const since = parseTimestamp(kept.since);
  const end = parseTimestamp(endedAt);
  const lasted = durationMs === undefined ? end - since : BigInt(Math.ceil(durationMs)) * NANOSECONDS_PER_MS;
  // Of a call that was recorded as begun the beginning is known.
  const began = !kept.isBegun && end - lasted > since ? end - lasted : since;
  const ms = (lasted + NANOSECONDS_PER_MS - 1n) / NANOSECONDS_PER_MS;
  const time: Meter = { unit: 'time.ms', amount: { t: 'int', v: ms.toString() } };
  const measured = kept.isLate && durationMs === undefined ? [ONE_CALL] : [ONE_CALL, time];
  const meterUsed = raiseMeters(measured, said);
  const basis = meterBasis ?? (said.length === 0 ? 'measured' : undefined);
  const outputDigest = done.outputDigest ?? (output === undefined ? undefined : digestOf(output));
  return stateReserved(
    { reserved: kept.reserved },
    {
      startedAt: formatInstant(began),
      endedAt,
      meterUsed,
      outcome,
      ...(outcome === 'failure' ? { errorCode: errorCode ?? 'ERROR' } : defined({ errorCode })),
      ...defined({ outputDigest, meterBasis: basis, modelId, provider, pricingSnapshotDigest, source }),
      meterBasisByUnit: { ...measuredBases(basis, measured, meterUsed), ...done.meterBasisByUnit },
    },
    { unmetered: unmetered ?? 'charge' },
  );
}

function digestOf(output: unknown): Digest {
  return sha256Digest(output instanceof Uint8Array ? output : canonicalBytesWithout(output));
}

/** What the grants are asked. */
function requestOf(
  call: GateCall,
  paramsDigest: Digest,
): Omit<LiveRequest, 'principalId'> & { readonly meters: MeterVector } {
  const { tool, reserve = {}, resources = [], grantId, userIntentDigest } = call;
  return {
    toolName: tool,
    paramsDigest,
    intentDigest: intentOf(call, paramsDigest),
    meters: raiseMeters([ONE_CALL], meters(reserve)),
    resources,
    ...defined({ grantId, userIntentDigest }),
  };
}

function intentOf({ intent, tool }: GateCall, { alg, b64 }: Digest): Digest {
  const meant = intent === undefined ? { tool_name: tool, tool_params_digest: { alg, b64 } } : intent;
  return sha256Digest(canonicalBytesWithout(meant));
}

/** @throws NorthrootError `NOT_ALLOWED` */
function assertMayEnd({ tool }: Pick<KeptCall, 'tool'>, mayEnd: EndCallOptions['mayEnd'] = () => true): void {
  if (!mayEnd(tool))
    throw new NorthrootError('NOT_ALLOWED', `calls of ${printable(tool, 128)} are not its own`);
}

function nameOf(principal: string, requestKey: string): string {
  return `${principal} ${requestKey}`;
}

function checkCoverage(coverage: string | undefined): void {
  if (coverage !== undefined && !COVERAGES.includes(coverage))
    throw new RangeError(`coverage: expected ${COVERAGES.join(', ')}`);
}

function checkTtl(ttlMs: number | undefined): void {
  if (ttlMs !== undefined && !(ttlMs >= 1)) throw new RangeError('ttlMs: expected milliseconds, at least 1');
}

function conflict(ref: string): NorthrootError {
  return new NorthrootError(
    'REQUEST_CONFLICT',
    `call ${printable(ref, 80)} is being decided with another tool or other parameters`,
    {
      hint: 'one id is for one call',
    },
  );
}
