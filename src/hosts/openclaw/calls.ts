/** Tool calls as hooks show them: what a hook let through, and what came of it. */

import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { Digest } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import type { ExecutionClaim, HostPlace, Observation } from '../shared/host.js';
import { codeOf } from '../shared/names.js';
import { amountOf, jcsDigest, listAt, numberAt, objectAt, textAt, valueAt } from '../shared/values.js';
import {
  type ClaimBase,
  type Context,
  factsOf,
  hexOf,
  type HookCall,
  hookText,
  shortDigest,
  type Profile,
} from './context.js';
import type { Entry } from './entries.js';
import type { Code } from './rules.js';
import { isSame, mergedParams } from './same.js';
import { callMeters } from '../shared/usage.js';

/** Results of exec that stand for no run of it: it was blocked, or waits for an approval. */
const NOT_RUN = new Set(['blocked', 'approval-pending', 'approval-unavailable']);
const FAILED = new Set(['error', 'failed', 'timeout', 'timed_out', 'cancelled', 'aborted', 'killed']);

/** A call, from its before_tool_call on; of one that has none, from its end on. */
export interface Call {
  /** `SESSION/CALL`, with `#2` where the session used the id again. */
  readonly key: string;
  readonly scope: string;
  /** Of a call whose hooks state none, that of another source that requested the same. */
  callId: string | undefined;
  runId: string | undefined;
  readonly tool: string;
  readonly at: HostPlace;
  readonly asked: SourceValue | undefined;
  readonly authorized?: SourceValue | undefined;
  /** Undefined where there is no before_tool_call, or it does not say what was returned. */
  decision?: 'allow' | 'deny' | 'pending' | undefined;
  readonly blockReason?: string | undefined;
  readonly isAnnounced: boolean;
  /** Whether the host lets it run where an approval request is not answered. */
  readonly runsUnanswered: boolean;
  /** {@link Claim.id} of what authorizes it. */
  authorization?: string;
  /** What came of it; undefined until a source says. */
  end?: CallEnd;
}

/** At most this many calls of one id are read for the one that a transcript means. */
const MAX_SAME_ID = 16;

interface CallEnd {
  readonly at: HostPlace;
  readonly event: SourceValue;
  readonly ran: boolean;
  readonly outcome: ExecutionClaim['outcome'];
  readonly isError: boolean;
}

interface CallResult {
  readonly tool: string | undefined;
  readonly params: SourceValue | undefined;
  readonly result: SourceValue | undefined;
  readonly error: SourceValue | undefined;
  readonly durationMs: string | undefined;
}

/** What a lesser source says came of a call. Which source says what is in README.md. */
export interface CallReport {
  readonly source: 'agent_event' | 'transcript';
  readonly scope: string;
  readonly runId: string | undefined;
  readonly callId: string;
  readonly tool: string | undefined;
  readonly args: SourceValue | undefined;
  readonly result: SourceValue | undefined;
  readonly isError: boolean;
}

interface KnownReport {
  readonly entry: Entry;
  readonly base: ClaimBase;
  readonly call: Call;
  readonly report: CallReport;
}

/** Where a claim of a call comes from: what stands before its id, but for hooks. */
type CallSource = 'hook' | CallReport['source'];

export class Calls {
  readonly #context: Context;
  readonly #all: Call[] = [];
  readonly #open = new Map<string, Call>();
  readonly #byScope = new Map<string, Call[]>();
  /** Of calls without an id: those that have not ended, by session, tool and what was let through. */
  readonly #unnamed = new Map<string, Call[]>();
  readonly #observed = new Map<Call, Observation>();
  readonly #reports: KnownReport[] = [];
  /** What agent events say was requested: they come before the hook. */
  readonly #asked: { readonly at: HostPlace; readonly runId: string; readonly data: SourceValue }[] = [];
  /** Calls that a transcript has, so that the next of the same id is another. */
  readonly #transcribed = new Set<Call>();
  readonly #transcribedTo = new Map<string, number>();
  /** Of calls without an id: those that no other source was found to have, by session, tool and what was requested. */
  readonly #nameless = new Map<string, Call[]>();
  /** Ids of calls that agent events have and hooks do not, by the same. */
  readonly #starts = new Map<string, { readonly runId: string; readonly callId: string }[]>();
  /** Runs that agent events show the end of. */
  readonly #endedRuns = new Set<string>();
  /** Calls whose result a hook wrote otherwise than it was. */
  readonly #rewritten = new Set<string>();

  constructor(context: Context) {
    this.#context = context;
  }

  get all(): readonly Call[] {
    return this.#all;
  }

  ofSession(scope: string, callId: string): readonly Call[] {
    return this.#byScope.get(`${scope}\n${callId}`) ?? [];
  }

  ofRun(runId: string | undefined, callId: string): Call | undefined {
    return this.#open.get(runKey(runId, callId));
  }

  before(hook: HookCall): void {
    const context = this.#context;
    const { entry, base, event, returned, scope, runId, callId } = hook;
    const tool = hookText(hook, 'toolName') ?? '';
    const asked = valueAt(event, 'params');
    const known = callId === undefined ? undefined : this.ofRun(runId, callId);
    if (known !== undefined && known.end === undefined && known.tool === tool && isSame(known.asked, asked)) {
      context.fate(entry, 'repeated', 'SAME_CALL');
      return;
    }
    const override = objectAt(returned, 'params');
    const authorized = override === undefined ? asked : mergedParams(asked, override);
    const isBlocked = valueAt(returned, 'block') === true;
    const isAsked = objectAt(returned, 'requireApproval') !== undefined;
    const call: Call = {
      ...this.#new(scope, callId, runId, tool, entry, asked),
      authorized,
      decision: returned === undefined ? undefined : isBlocked ? 'deny' : isAsked ? 'pending' : 'allow',
      blockReason: isBlocked ? textAt(returned, 'blockReason') : undefined,
      isAnnounced: true,
      runsUnanswered: textAt(returned, 'requireApproval', 'timeoutBehavior') === 'allow',
    };
    this.#add(call);
    if (callId === undefined) {
      listOf(this.#unnamed, contentKey(scope, tool, authorized)).push(call);
      const key = contentKey(scope, tool, asked);
      const start = this.#starts.get(key)?.shift();
      if (start === undefined) listOf(this.#nameless, key).push(call);
      else this.#name(call, start.runId, start.callId);
    }
    if (call.decision === undefined) {
      this.#notRecorded(entry.at, call.key, 'what the hook returned');
      context.evidence(entry, base, `hook:${hexOf(entry.bytes).slice(0, 32)}`, 'hook', {
        hook: 'before_tool_call',
        call: call.key,
      });
      return;
    }
    const id = `decision:${call.key}`;
    const allowed = call.decision === 'allow';
    call.authorization = id;
    const noDecision = allowed && override === undefined;
    context.builder.claim({
      ...base,
      kind: 'action',
      id,
      tool,
      decision: allowed ? 'allow' : 'deny',
      decisionCode: isBlocked
        ? 'OPENCLAW_HOOK_BLOCKED'
        : isAsked
          ? 'OPENCLAW_PENDING_APPROVAL'
          : override === undefined
            ? 'OPENCLAW_NO_DECISION'
            : 'OPENCLAW_PARAMS_REWRITTEN',
      paramsDigest: jcsDigest(authorized),
      checks: noDecision ? [{ check: 'openclaw.decision', result: 'pass', code: 'NO_DECISION' }] : [],
    });
    context.fate(entry, 'mapped');
    if (call.blockReason !== undefined) {
      const facts = factsOf({ decision: id, reason_digest: jcsDigest(call.blockReason) });
      context.builder.claim({
        ...base,
        kind: 'evidence',
        id: `block-reason:${call.key}`,
        type: 'block_reason',
        facts,
      });
    }
    if (noDecision)
      context.find('NO_DECISION', entry.at, {
        about: call.key,
        expected: 'block, or approval, or parameters',
        actual: 'no hook decided; the host let it run',
      });
    const resolution = textAt(entry.value, 'resolution') ?? textAt(returned, 'requireApproval', 'resolution');
    if (call.decision === 'pending' && resolution !== undefined) this.#resolve(base, call, resolution);
  }

  /** What somebody decided whom a hook had asked. Whether there was such a call. */
  resolve(base: ClaimBase, runId: string | undefined, callId: string, resolution: string): boolean {
    const call = this.ofRun(runId, callId);
    if (call?.decision !== 'pending') return false;
    this.#resolve(base, call, resolution);
    return true;
  }

  #resolve(base: ClaimBase, call: Call, resolution: string): void {
    const word = resolution.toLowerCase();
    const isAllowed =
      ['allow-once', 'allow-always', 'approved', 'allowed'].includes(word) ||
      (call.runsUnanswered && ['timeout', 'timed-out', 'expired'].includes(word));
    const id = this.#context.uniqueId(`approval:${call.key}`);
    call.decision = isAllowed ? 'allow' : 'deny';
    call.authorization = id;
    this.#context.builder.claim({
      ...base,
      kind: 'action',
      id,
      tool: call.tool,
      decision: call.decision,
      decisionCode: codeOf(`OPENCLAW_APPROVAL_${resolution}`),
      paramsDigest: jcsDigest(call.authorized),
    });
  }

  /** @param isCut - Whether what came before it may have been cut off. */
  after(hook: HookCall, isCut: boolean): void {
    const context = this.#context;
    const { entry, base, event, scope, runId, callId } = hook;
    const tool = hookText(hook, 'toolName') ?? '';
    const params = valueAt(event, 'params');
    const found =
      callId === undefined
        ? this.#unnamed.get(contentKey(scope, tool, params))?.shift()
        : this.ofRun(runId, callId);
    if (found?.end !== undefined) {
      const isRepeated = isSame(found.end.event, event);
      if (isRepeated) context.fate(entry, 'repeated', 'SAME_CALL');
      else {
        context.find('CALL_ENDED_TWICE', entry.at, { about: found.key, related: [found.end.at] });
        context.evidence(entry, base, `hook:${hexOf(entry.bytes).slice(0, 32)}`, 'hook', {
          hook: 'after_tool_call',
          call: found.key,
        });
      }
      return;
    }
    const call: Call = found ?? this.#new(scope, callId, runId, tool, entry, params);
    if (found === undefined) {
      this.#add(call);
      // A ledger may have it from the recording's first part.
      if (isCut) call.authorization = `decision:${call.key}`;
      if (!isStoppedByHost(event))
        context.find('BEFORE_MISSING', entry.at, {
          about: call.key,
          expected: 'a before_tool_call of the same run and call',
          actual: isCut ? 'none; the recording may begin after it' : 'none before it',
          weight: isCut ? 'warning' : 'invalid',
        });
    }
    const result: CallResult = {
      tool,
      params,
      result: valueAt(event, 'result'),
      error: valueAt(event, 'error') ?? undefined,
      // What the host measures besides, it waited for its own.
      durationMs: numberAt(event, 'result', 'details', 'durationMs') ?? numberAt(event, 'durationMs'),
    };
    this.#end(entry, base, call, result, event, 'hook');
  }

  #end(
    entry: Entry,
    base: ClaimBase,
    call: Call,
    said: CallResult,
    event: SourceValue,
    source: CallSource,
  ): void {
    const context = this.#context;
    const status = textAt(said.result, 'details', 'status');
    const isError = said.error !== undefined || (status !== undefined && FAILED.has(status));
    const state = { at: entry.at, event, isError };
    if (status !== undefined && NOT_RUN.has(status)) {
      this.#notRun(call, base, state);
      if (call.decision === 'deny' || call.decision === 'pending') {
        this.#blockedEvidence(entry, base, call);
        return;
      }
      // The hook that the recording is of let it pass, or there is none: something else did not.
      const why = textAt(said.result, 'details', 'deniedReason') ?? status;
      context.builder.claim({
        ...base,
        kind: 'action',
        ...idsOf('blocked', call, source),
        tool: call.tool,
        decision: 'deny',
        decisionCode: codeOf(`OPENCLAW_${why === 'blocked' ? why : `BLOCKED_${why}`}`),
        paramsDigest: jcsDigest(said.params),
      });
      if (call.decision === undefined) {
        // A recording that does not have what the hook returned shows it here.
        call.decision = 'deny';
        this.#observe(call, base, []);
      }
      context.fate(entry, 'mapped');
      return;
    }
    const isHeld =
      call.decision === 'deny'
        ? isEchoOfBlock(said, status, call.blockReason)
        : call.decision === 'pending' && isRefusal(said.error);
    if (isHeld) {
      this.#notRun(call, base, state);
      this.#blockedEvidence(entry, base, call);
      return;
    }
    if (!call.isAnnounced && source === 'hook' && isEchoOfBlock(said, status, undefined)) {
      this.#notRun(call, base, state);
      this.#undecided(entry, base, call, source, said.result);
      return;
    }
    const { outcome, errorCode } = outcomeOf(said, status, this.#context.profile);
    call.end = { ...state, ran: true, outcome };
    this.#checkRun(entry.at, call, said);
    const meters = callMeters(amountOf(said.durationMs));
    context.builder.claim({
      ...base,
      kind: 'execution',
      ...idsOf('run', call, source),
      authorization: call.decision === 'pending' ? undefined : call.authorization,
      tool: said.tool ?? call.tool,
      paramsDigest: jcsDigest(said.params),
      meters,
      meterBasis: said.durationMs === undefined ? undefined : 'measured',
      outcome,
      errorCode,
      outputDigest: jcsDigest(said.result),
    });
    context.fate(entry, 'mapped');
    this.#observe(call, base, meters, said.params);
  }

  #notRun(call: Call, base: ClaimBase, end: Pick<CallEnd, 'at' | 'event' | 'isError'>): void {
    call.end = { ...end, ran: false, outcome: 'unknown' };
    this.#observe(call, base, []);
  }

  /** What an agent event says that the model requested. */
  asked(at: HostPlace, scope: string, runId: string, data: SourceValue | undefined): void {
    if (data === undefined) return;
    this.#asked.push({ at, runId, data });
    const callId = textAt(data, 'toolCallId');
    if (callId === undefined || this.ofRun(runId, callId) !== undefined) return;
    const key = contentKey(scope, textAt(data, 'name') ?? '', valueAt(data, 'args'));
    const call = this.#nameless.get(key)?.shift();
    if (call === undefined) listOf(this.#starts, key).push({ runId, callId });
    else this.#name(call, runId, callId);
  }

  /** An agent event shows the end of a run: what hooks have not said of its calls by then they will not say. */
  runEnded(runId: string): void {
    this.#endedRuns.add(runId);
  }

  rewritesResult(callId: string): void {
    this.#rewritten.add(callId);
  }

  /**
   * What a lesser source says came of a call. Of a call that hooks have it is repeated; else it stands for the call as far as it goes:
   * neither agent events nor transcripts tell a call that failed from one that was blocked.
   */
  report(entry: Entry, base: ClaimBase, report: CallReport): void {
    const known =
      report.source === 'transcript'
        ? (this.#inSession(report) ?? this.#namelessOf(report))
        : this.ofRun(report.runId, report.callId);
    if (known !== undefined) {
      if (report.source === 'transcript') this.#transcribed.add(known);
      // What becomes of it is said when all hooks are known.
      this.#reports.push({ entry, base, call: known, report });
      return;
    }
    const status = textAt(report.result, 'details', 'status');
    const { scope, callId, runId, isError } = report;
    const call = this.#new(scope, callId, runId, report.tool ?? '', entry, report.args);
    this.#add(call);
    if (report.source === 'transcript') this.#transcribed.add(call);
    const end = { at: entry.at, event: report.result ?? null, isError };
    if (status !== undefined && NOT_RUN.has(status)) {
      const said = { ...NOTHING, result: report.result, error: undefined };
      this.#end(entry, base, call, said, end.event, report.source);
      return;
    }
    const isUndecided = isError || (status !== undefined && FAILED.has(status));
    this.#notRecorded(entry.at, call.key, 'a before_tool_call');
    if (isUndecided) {
      this.#notRun(call, base, end);
      this.#undecided(entry, base, call, report.source, report.result);
      return;
    }
    this.#ran(entry, base, call, report);
  }

  /** What ran as far as a lesser source shows it: a transcript does not show how it ended. */
  #ran(entry: Entry, base: ClaimBase, call: Call, report: CallReport): void {
    const { source, result, isError } = report;
    const ended =
      source === 'transcript'
        ? ({ outcome: 'unknown' } as const)
        : outcomeOf({ result, error: undefined }, textAt(result, 'details', 'status'), this.#context.profile);
    call.end = { at: entry.at, event: result ?? null, isError, ran: true, outcome: ended.outcome };
    const meters = callMeters(undefined);
    this.#context.builder.claim({
      ...base,
      kind: 'execution',
      ...idsOf('run', call, source),
      authorization: call.decision === 'pending' ? undefined : call.authorization,
      tool: call.tool,
      meters,
      ...ended,
      outputDigest: jcsDigest(result),
    });
    this.#context.fate(entry, 'mapped');
    this.#observe(call, base, meters, undefined);
  }

  /** Calls that hooks saw begin and not end: what a lesser source says of their end is used instead. */
  #standIns(): void {
    for (const { entry, base, call, report } of this.#reports) {
      const { source, runId, result } = report;
      const isOver = source === 'transcript' || (runId !== undefined && this.#endedRuns.has(runId));
      const shown = call.end === undefined && isOver ? shownBy(report) : 'nothing';
      if (shown === 'run') {
        this.#checkRun(entry.at, call, NO_RESULT);
        if (call.decision !== 'deny') this.#endMissing(call, 'none; another source shows that it ran');
        this.#ran(entry, base, call, report);
      } else if (shown === 'block')
        this.#end(entry, base, call, { ...NO_RESULT, result }, result ?? null, source);
      else this.#context.fate(entry, 'repeated', 'SAME_CALL');
    }
  }

  /** Of an id that the session used several times the first that requested the same, near the first that is left. */
  #inSession({ scope, callId, args }: CallReport): Call | undefined {
    const calls = this.ofSession(scope, callId);
    const key = `${scope}\n${callId}`;
    let from = this.#transcribedTo.get(key) ?? 0;
    while (from < calls.length && this.#transcribed.has(calls[from]!)) from++;
    this.#transcribedTo.set(key, from);
    const open = calls.slice(from, from + MAX_SAME_ID).filter((call) => !this.#transcribed.has(call));
    return open.find((call) => isSame(call.asked, args)) ?? open[0];
  }

  #namelessOf({ scope, callId, runId, tool, args }: CallReport): Call | undefined {
    const call =
      args === undefined ? undefined : this.#nameless.get(contentKey(scope, tool ?? '', args))?.shift();
    if (call !== undefined) this.#name(call, runId, callId);
    return call;
  }

  /** Another source has the id of a call whose hooks state none. */
  #name(call: Call, runId: string | undefined, callId: string): void {
    call.callId = callId;
    call.runId ??= runId;
    this.#open.set(runKey(runId, callId), call);
    listOf(this.#byScope, `${call.scope}\n${callId}`).push(call);
  }

  /** OC-12: a source that says otherwise than the hooks. */
  #disagree(at: HostPlace, call: Call, code: Code, expected: string, actual: string): void {
    this.#context.find(code, at, { about: call.key, expected, actual, related: [call.at] });
  }

  #differ(
    at: HostPlace,
    call: Call,
    code: Code,
    ...values: readonly [SourceValue | undefined, SourceValue]
  ): void {
    const [expected, actual] = values.map((value) => textOfDigest(jcsDigest(value))) as [string, string];
    this.#disagree(at, call, code, expected, actual);
  }

  #compare(): void {
    for (const { at, runId, data } of this.#asked) {
      const callId = textAt(data, 'toolCallId');
      const call = callId === undefined ? undefined : this.ofRun(runId, callId);
      const args = valueAt(data, 'args');
      if (call?.asked === undefined || args === undefined || isSame(call.asked, args)) continue;
      // An id that the run used again: the event may be of the call before.
      if (this.ofSession(call.scope, callId!).length > 1) continue;
      this.#differ(at, call, 'ARGUMENTS_DIFFER', call.asked, args);
    }
    for (const { entry, call, report } of this.#reports) {
      const { at } = entry;
      const { source, args, result } = report;
      const status = textAt(result, 'details', 'status');
      const isError = report.isError || (status !== undefined && FAILED.has(status));
      if (call.decision !== undefined && args !== undefined && !isSame(call.asked, args))
        this.#differ(at, call, 'ARGUMENTS_DIFFER', call.asked, args);
      // What ran although it was blocked is already reported.
      if (call.end === undefined || call.end.at === at || (call.decision === 'deny' && call.end.ran))
        continue;
      if (!call.end.ran) {
        if (source === 'agent_event' && shownBy(report) === 'run')
          this.#disagree(at, call, 'RESULTS_DISAGREE', 'blocked', 'a result without an error');
        continue;
      }
      // A transcript has isError false of errors too.
      if (isError !== call.end.isError && (source === 'agent_event' || isError))
        this.#disagree(
          at,
          call,
          'RESULTS_DISAGREE',
          call.end.isError ? 'an error' : 'no error',
          isError ? 'an error' : 'none',
        );
      const [had, has] = [valueAt(call.end.event, 'result', 'content'), valueAt(result, 'content')];
      if (
        had !== undefined &&
        has !== undefined &&
        !isSame(had, has) &&
        !this.#rewritten.has(call.callId ?? '')
      )
        this.#differ(at, call, 'RESULTS_DIFFER', had, has);
    }
  }

  #notRecorded(at: HostPlace, about: string, expected: string): void {
    this.#context.find('DECISION_NOT_RECORDED', at, { about, expected, actual: 'none' });
  }

  #checkRun(at: HostPlace, call: Call, said: CallResult): void {
    const context = this.#context;
    const about = call.key;
    if (call.decision === 'deny')
      context.find('EXECUTED_AFTER_BLOCK', at, {
        about,
        actual: 'a result that is not that of the block',
        related: [call.at],
      });
    else if (call.decision === 'pending')
      context.find('EXECUTED_BEFORE_APPROVAL', at, { about, related: [call.at] });
    if (call.decision === undefined || said.params === undefined) return;
    if (said.tool !== undefined && said.tool !== call.tool)
      context.find('TOOL_DIFFERS', at, { about, expected: call.tool, actual: said.tool, related: [call.at] });
    if (!isSame(call.authorized, said.params))
      context.find('PARAMS_DIFFER', at, {
        about,
        expected: textOfDigest(jcsDigest(call.authorized)),
        actual: textOfDigest(jcsDigest(said.params)),
        related: [call.at],
      });
  }

  /** An error of which nobody can tell whether it is that of a call that ran, or of one that was blocked. */
  #undecided(
    entry: Entry,
    base: ClaimBase,
    call: Call,
    source: CallSource,
    result: SourceValue | undefined,
  ): void {
    const facts = factsOf({ source, call: call.key, tool: call.tool, result_digest: jcsDigest(result) });
    const { id, sameAs } = idsOf('run', call, source);
    const known = [...sameAs.filter((each) => each !== id), `run:${call.key}`, `held:${call.key}`];
    this.#context.evidence(entry, base, `result:${call.key}`, 'tool_result', facts, known);
  }

  #blockedEvidence(entry: Entry, base: ClaimBase, call: Call): void {
    this.#context.evidence(entry, base, `held:${call.key}`, 'block_held', {
      call: call.key,
      ...(call.authorization === undefined ? {} : { decision: call.authorization }),
    });
  }

  /** Warns of calls that were let through and whose end is not recorded. */
  finish(): void {
    this.#standIns();
    for (const call of this.#all) {
      if (call.end !== undefined) continue;
      if (call.decision !== 'deny') this.#endMissing(call, 'none; whether it ran is not known');
      this.#observe(call, undefined, []);
    }
    this.#compare();
    for (const observation of this.#observed.values()) this.#context.builder.observe(observation);
  }

  #endMissing(call: Call, actual: string): void {
    this.#context.find('END_NOT_RECORDED', call.at, { about: call.key, actual });
  }

  #observe(call: Call, base: ClaimBase | undefined, meters: MeterVector, params = call.authorized): void {
    const { key, callId, end, tool } = call;
    this.#observed.set(call, {
      at: end?.at ?? call.at,
      callIds: callId === undefined ? [key] : [callId, `sha256:${hexOf(callId)}`, key],
      tool,
      paramsDigest: jcsDigest(params),
      decision:
        call.decision === 'pending' || (end?.ran === false && call.decision === 'allow')
          ? 'deny'
          : call.decision,
      outcome: end?.ran === true ? end.outcome : undefined,
      meters,
      occurredAt: base?.occurredAt,
    });
  }

  #new(
    scope: string,
    callId: string | undefined,
    runId: string | undefined,
    tool: string,
    entry: Entry,
    asked: SourceValue | undefined,
  ): Call {
    const name =
      callId ??
      `~${shortDigest(
        new SourceObject(
          new Map([
            ['tool', tool],
            ['params', asked ?? null],
          ]),
        ),
        entry.bytes,
      )}`;
    const key = this.#context.uniqueId(`${scope}/${name}`);
    if (callId === undefined) this.#context.find('CALL_ID_NOT_STATED', entry.at, { about: key });
    const { at } = entry;
    return { key, scope, callId, runId, tool, at, asked, isAnnounced: false, runsUnanswered: false };
  }

  #add(call: Call): void {
    this.#all.push(call);
    if (call.callId === undefined) return;
    this.#open.set(runKey(call.runId, call.callId), call);
    listOf(this.#byScope, `${call.scope}\n${call.callId}`).push(call);
  }
}

/** How a call ended, by what the host says of it. */
export function outcomeOf(
  { result, error }: Pick<CallResult, 'result' | 'error'>,
  status: string | undefined,
  { nonzeroExit }: Profile,
): Pick<ExecutionClaim, 'outcome' | 'errorCode'> {
  if (status !== undefined && FAILED.has(status))
    return {
      outcome: 'failure',
      errorCode: status === 'error' || status === 'failed' ? 'TOOL_ERROR' : codeOf(`TOOL_${status}`),
    };
  if (error !== undefined) return { outcome: 'failure', errorCode: 'TOOL_ERROR' };
  // A command that continues in the background, and a call of which neither a result nor an error is stated.
  if (status === 'running' || result === undefined || result === null) return { outcome: 'unknown' };
  const exit = numberAt(result, 'details', 'exitCode');
  if (exit !== undefined && !/^-?0(?:\.0+)?$/.test(exit) && nonzeroExit === 'failure')
    return { outcome: 'failure', errorCode: codeOf(`EXIT_${exit}`) };
  return { outcome: 'success' };
}

const NOTHING = { tool: undefined, params: undefined, durationMs: undefined } as const;
const NO_RESULT: CallResult = { ...NOTHING, result: undefined, error: undefined };

/** The prefix of the ids of claims of a call, by what they come from: the same call is reported in several places. */
const PREFIXES: Readonly<Record<CallSource | 'audit', string>> = {
  hook: '',
  agent_event: 'event-',
  transcript: 'transcript-',
  audit: 'audit-',
};

/** The id of a claim of a call, and those that the call has from other sources. */
function idsOf(
  what: 'run' | 'blocked',
  { key, scope, callId }: Call,
  source: CallSource,
): { readonly id: string; readonly sameAs: readonly string[] } {
  const ids = (['hook', 'agent_event', 'transcript'] as const)
    .filter((each) => each !== source)
    .map((each) => `${PREFIXES[each]}${what}:${key}`);
  // The suffix of an id that was used again is the same there.
  const again = callId === undefined ? '' : key.slice(`${scope}/${callId}`.length);
  const audited =
    callId === undefined
      ? []
      : [`${PREFIXES.audit}${what}:${scope}/sha256:${hexOf(callId)}${/^#\d+$/.test(again) ? again : ''}`];
  const decided = what === 'blocked' && source !== 'hook' ? [`decision:${key}`] : [];
  return { id: `${PREFIXES[source]}${what}:${key}`, sameAs: [...ids, ...audited, ...decided] };
}

/** Whether a lesser source shows that a call ran, or that it did not; an error may be that of a block. */
function shownBy({ source, result, isError }: CallReport): 'run' | 'block' | 'nothing' {
  const status = textAt(result, 'details', 'status');
  if (status !== undefined && NOT_RUN.has(status)) return 'block';
  if (isError || (status !== undefined && FAILED.has(status))) return 'nothing';
  // Transcripts have isError false of errors too.
  return source === 'transcript' && status === undefined && !isPlainResult(result) ? 'nothing' : 'run';
}

/** Whether a result in a transcript is not the text that the host makes of an error: JSON with `"status": "error"`. */
function isPlainResult(result: SourceValue | undefined): boolean {
  const [first] = listAt(result, 'content') ?? [];
  return !/^\s*\{\s*"status"\s*:\s*"error"/.test(textAt(first, 'text') ?? '');
}

const REFUSALS = [
  'Denied by user',
  'Approval timed out',
  'Approval cancelled (run aborted)',
  'Plugin approval unavailable (no approval route)',
  'Plugin approval required (gateway unavailable)',
  'Plugin approval request failed',
];

function isRefusal(error: SourceValue | undefined): boolean {
  return typeof error === 'string' && REFUSALS.some((text) => error.includes(text));
}

function contentKey(scope: string, tool: string, params: SourceValue | undefined): string {
  return [scope, tool, jcsDigest(params)?.b64 ?? ''].join('\n');
}

function listOf<T>(lists: Map<string, T[]>, key: string): T[] {
  let list = lists.get(key);
  if (list === undefined) lists.set(key, (list = []));
  return list;
}

function runKey(runId: string | undefined, callId: string): string {
  return `${runId ?? ''}\n${callId}`;
}

/** Whether an end says no more than that the call was blocked: its error is the reason of the block. */
function isEchoOfBlock(
  { error }: CallResult,
  status: string | undefined,
  reason: string | undefined,
): boolean {
  if (typeof error !== 'string' || (status !== undefined && status !== 'error')) return false;
  return reason === undefined || reason === '' || error.includes(reason);
}

function textOfDigest(digest: Digest | undefined): string {
  return digest === undefined ? 'parameters without a canonical form' : `${digest.alg}:${digest.b64}`;
}

/** What the host itself stops no hook is asked about: calls of the same again and again, and arguments that do not fit the tool. */
function isStoppedByHost(end: SourceValue): boolean {
  return (
    textAt(end, 'result', 'details', 'deniedReason') === 'tool-loop' ||
    textAt(end, 'error')?.startsWith('Validation failed for tool "') === true
  );
}
