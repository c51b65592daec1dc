/** Traces: one execution for each call of a tool, and the trace itself as evidence. */

import { encodeBase64url, tryDecodeHex } from '../../base/bytes/encoding.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { Digest } from '../../base/value/digest.js';
import type { Meter } from '../../base/value/meter.js';
import { notStated } from '../shared/claims.js';
import { STABLE_FORM } from '../shared/forms/stable.js';
import { findingOf } from '../shared/findings.js';
import type { ForeignDigest, HostPlace } from '../shared/host.js';
import { codeOf } from '../shared/names.js';
import {
  amountOf,
  jcsDigest,
  listAt,
  numberAt,
  objectAt,
  textAt,
  timeOfText,
  valueAt,
} from '../shared/values.js';
import { adapterPrincipal, amountFact, type Desk, evidenceOf, SYSTEM } from './desk.js';
import type { Part } from './parts.js';
import { firstBeyond, isNotBefore, readScope, type Scope, textsAt } from './scope.js';
import {
  claimId,
  type ClasperState,
  type Decided,
  firstText,
  type Ids,
  keyOf,
  type ToolToken,
} from './state.js';
import { checkSteps, stepHash } from './steps.js';
import { callMeters, exceeds } from '../shared/usage.js';

interface TraceContext {
  readonly tenant: string;
  readonly adapterId: string;
  /** Empty where nothing says it. */
  readonly executionId: string;
  readonly type: string;
  readonly issuedAt: string | undefined;
  readonly digests: readonly ForeignDigest[];
  /** Whether it is as the host keeps it, without members that it does not know. */
  readonly isStored: boolean;
}

/** A call of a tool, put together from the steps that speak of it. */
interface Call {
  readonly id: string;
  readonly tool: string;
  readonly pointer: string;
  readonly call: SourceValue | undefined;
  readonly result: SourceValue | undefined;
  /** What the trace lists of it beside its steps. */
  readonly listed?: SourceValue | undefined;
}

interface CallAuthorization {
  readonly claim: string | undefined;
  readonly principalId: string;
  readonly paramsDigest: Digest | undefined;
  /** What its token was issued for, as a ledger that issued it has it. */
  readonly scope?: Digest | undefined;
}

type Under = (at: HostPlace, ids: Omit<Ids, 'traceId'>) => Decided | undefined;

interface Ran {
  readonly at: HostPlace;
  readonly call: Call;
  readonly data: SourceObject | undefined;
  readonly context: TraceContext;
  readonly decided: Decided | undefined;
  readonly time: string | undefined;
}

const MAX_STEPS = 10_000;

export class TraceReader {
  readonly #desk: Desk;
  readonly #state: ClasperState;
  readonly #under: Under;

  constructor(desk: Desk, state: ClasperState, under: Under) {
    this.#desk = desk;
    this.#state = state;
    this.#under = under;
  }

  read(part: Part, trace: SourceObject, context: TraceContext): void {
    const { at } = part;
    const { tenant, executionId, adapterId, type } = context;
    const id = firstText(textAt(trace, 'id'));
    const key = keyOf(tenant, id);
    const steps = (listAt(trace, 'steps') ?? []).slice(0, MAX_STEPS);
    const stepHashes = steps.map((step) => stepHash(step, true));
    const seen = this.#state.traces.get(key);
    if (seen !== undefined) {
      const isSame = stepHashes.join() === seen.stepHashes.join();
      if (!isSame) {
        this.#desk.find('TRACE_EDITED', at, { about: id, related: [seen.at] });
        this.#steps(at, trace, id);
      }
      this.#status(at, trace, id, context);
      this.#desk.item(part, type, 'repeated', isSame ? 'ALREADY_READ' : 'TRACE_EDITED');
      return;
    }
    const time = timeOfText(textAt(trace, 'startedAt')) ?? context.issuedAt;
    const occurredAt = time ?? this.#desk.timeOf(part, type, undefined, id);
    if (occurredAt === undefined) return;
    this.#state.traces.set(key, { executionId, stepHashes, at });
    this.#state.traced.add(keyOf(tenant, executionId));
    const count = listAt(trace, 'steps')?.length ?? 0;
    if (count > MAX_STEPS) {
      const details = { about: id, expected: `at most ${MAX_STEPS} steps`, actual: `${count}` };
      this.#desk.find('STEPS_TOO_MANY', at, details);
    }
    this.#steps(at, trace, id);
    this.#status(at, trace, id, context);
    const decided = executionId === '' ? undefined : this.#under(at, context);
    if (executionId === '') this.#unlinked(at, id);
    for (const violation of (listAt(trace, 'violations') ?? []).slice(0, MAX_VIOLATIONS)) {
      const name = firstText(textAt(violation, 'type'), 'one');
      const details = { about: id, actual: `the trace itself reports ${name.slice(0, 128)}` };
      this.#desk.find('VIOLATION_REPORTED', at, details);
    }
    this.#scope(at, trace, id, decided);
    this.#amounts(at, trace, steps, id);
    this.#remember(at, trace, tenant, executionId);
    this.#desk.claim(
      evidenceOf(part, 'trace', {
        id: claimId('trace', tenant, id),
        occurredAt: context.issuedAt ?? occurredAt,
        principalId: adapterPrincipal(tenant, adapterId),
        facts: {
          trace_id: id,
          execution_id: executionId === '' ? undefined : executionId,
          steps: amountFact(String(steps.length)),
          last_step_hash: textAt(steps.at(-1), 'step_hash'),
          usd: amountFact(numberAt(trace, 'usage', 'totalCost')),
          'tokens.input': amountFact(numberAt(trace, 'usage', 'inputTokens')),
          'tokens.output': amountFact(numberAt(trace, 'usage', 'outputTokens')),
        },
        foreignDigests: context.digests,
      }),
    );
    let claims = 0;
    for (const call of this.#calls(at, trace, steps, id))
      if (this.#call(part, call, id, context, decided, occurredAt)) claims++;
    this.#desk.item(part, type, claims > 0 ? 'mapped' : 'evidence');
  }

  #unlinked(at: HostPlace, id: string): void {
    this.#desk.find('EXECUTION_NOT_STATED', at, { about: id });
  }

  /** CLA-8. */
  #steps(at: HostPlace, trace: SourceObject, about: string): void {
    const codes = {
      no_steps: ['NO_STEPS', 'warning'],
      missing_step_hashes: ['STEP_HASHES_MISSING', 'warning'],
      missing_hash: ['STEP_HASH_MISSING', 'invalid'],
      prev_hash_mismatch: ['STEP_PREV_HASH_MISMATCH', 'invalid'],
      hash_mismatch: ['STEP_HASH_MISMATCH', 'invalid'],
      stripped: ['STEP_DATA_STRIPPED', 'warning'],
    } as const;
    for (const { kind, step, expected, actual } of checkSteps(trace).slice(0, MAX_FAULTS)) {
      const [code, grade] = codes[kind];
      const place = step === undefined ? at : { ...at, pointer: `${at.pointer ?? ''}/steps/${step}` };
      this.#desk.builder.find(
        findingOf('CLA-8', grade, code, place, { about, expected, actual: actual?.slice(0, 128) }),
      );
    }
  }

  /** What the host says of a stored trace's integrity against what its steps say. */
  #status(at: HostPlace, trace: SourceObject, about: string, { isStored }: TraceContext): void {
    const stated = textAt(trace, 'integrity_status');
    if (!isStored || stated === undefined) return;
    const kinds = new Set(checkSteps(trace).map(({ kind }) => kind));
    kinds.delete('stripped');
    const actual = kinds.has('no_steps')
      ? 'unverified'
      : kinds.has('missing_step_hashes')
        ? 'unsigned'
        : kinds.size > 0
          ? 'compromised'
          : 'verified';
    if (stated !== actual)
      this.#desk.find('TRACE_STATUS_WRONG', at, { about, expected: actual, actual: stated.slice(0, 64) });
  }

  /** CLA-4 for the trace as a whole; by what it says itself where nothing else says what was granted. */
  #scope(at: HostPlace, trace: SourceObject, about: string, decided: Decided | undefined): void {
    const own = objectAt(trace, 'granted_scope');
    const granted = decided?.kind === 'allow' ? decided.scope : undefined;
    const stated = own === undefined ? undefined : readScope(own);
    if (granted !== undefined && stated !== undefined && differ(granted, stated))
      this.#desk.find('SCOPE_MISSTATED', at, { about });
    const scope = granted ?? stated;
    if (scope === undefined) return;
    const outside = firstBeyond(textsAt(trace, 'used_scope', 'capabilities'), scope.capabilities);
    const tell = (code: string, expected: string, actual: string): void => {
      this.#desk.builder.find(
        findingOf('CLA-4', 'violation', code, at, { about, expected, actual: actual.slice(0, 128) }),
      );
    };
    if (outside !== undefined) tell('CAPABILITY_NOT_GRANTED', 'a capability that was granted', outside);
    const counts = [String(listAt(trace, 'steps')?.length ?? 0), numberAt(trace, 'used_scope', 'step_count')];
    const steps = counts.find((text) => exceeds(amountOf(text), scope.maxSteps));
    if (steps !== undefined) tell('STEPS_EXCEEDED', 'at most max_steps', `${steps} steps`);
    const costs = [numberAt(trace, 'usage', 'totalCost'), numberAt(trace, 'used_scope', 'actual_cost')];
    const cost = costs.find((text) => exceeds(amountOf(text), scope.maxCost));
    if (cost !== undefined) tell('COST_EXCEEDED', 'at most max_cost', `${cost} USD`);
  }

  /** Amounts that are none would silently not be counted. */
  #amounts(at: HostPlace, trace: SourceObject, steps: readonly SourceValue[], about: string): void {
    const amounts: [string, SourceValue | undefined][] = [
      ...['inputTokens', 'outputTokens', 'totalCost'].map((name): [string, SourceValue | undefined] => [
        `/usage/${name}`,
        valueAt(trace, 'usage', name),
      ]),
      ...steps.map((step, i): [string, SourceValue | undefined] => [
        `/steps/${i}/durationMs`,
        valueAt(step, 'durationMs'),
      ]),
    ];
    const wrong = amounts.filter(
      ([, value]) =>
        value !== undefined &&
        value !== null &&
        !(value instanceof SourceNumber && amountOf(value.text) !== undefined),
    );
    for (const [pointer, value] of wrong.slice(0, MAX_FAULTS))
      this.#desk.find(
        'AMOUNT_INVALID',
        { ...at, pointer: `${at.pointer ?? ''}${pointer}` },
        { about, actual: (value instanceof SourceNumber ? value.text : typeof value).slice(0, 64) },
      );
  }

  #remember(at: HostPlace, trace: SourceObject, tenant: string, executionId: string): void {
    if (executionId === '') return;
    const execution = this.#state.execution(tenant, executionId);
    const startedAt = timeOfText(textAt(trace, 'startedAt'));
    if (startedAt !== undefined) execution.startedAt ??= startedAt;
    const cost = numberAt(trace, 'usage', 'totalCost');
    if (cost !== undefined) execution.traceCost ??= { text: cost, at };
  }

  /** The calls of tools in a trace, in the order in which they begin. */
  #calls(at: HostPlace, trace: SourceObject, steps: readonly SourceValue[], about: string): Call[] {
    const calls: { -readonly [K in keyof Call]: Call[K] }[] = [];
    const open = new Map<string, (typeof calls)[number]>();
    // Results that are before their calls.
    const early = new Map<string, (typeof calls)[number]>();
    const counts = new Map<string, number>();
    const begin = (id: string, call: Omit<Call, 'id'>): void => {
      const count = (counts.get(id) ?? 0) + 1;
      counts.set(id, count);
      if (count > 1)
        this.#desk.find('CALL_REPEATED', at, { about, actual: `toolCallId ${id.slice(0, 128)} twice` });
      const made = { id: count === 1 ? id : `${id}#${count}`, ...call };
      calls.push(made);
      if (made.result === undefined) open.set(id, made);
    };
    for (const [i, step] of steps.entries()) {
      const type = textAt(step, 'type');
      const data = objectAt(step, 'data');
      if (data === undefined || (type !== 'tool_call' && type !== 'tool_result')) continue;
      const id = firstText(textAt(data, 'toolCallId'));
      const tool = firstText(textAt(data, 'toolName'));
      const pointer = `/steps/${i}`;
      const before = open.get(id);
      const orphan = type === 'tool_call' ? early.get(id) : undefined;
      if (orphan !== undefined) {
        orphan.call = step;
        early.delete(id);
      } else if (type === 'tool_call') begin(id, { tool, pointer, call: step, result: undefined });
      else if (before === undefined) {
        this.#desk.find(
          'RESULT_WITHOUT_CALL',
          { ...at, pointer: `${at.pointer ?? ''}${pointer}` },
          { about, actual: `toolCallId ${id.slice(0, 128)}` },
        );
        begin(id, { tool, pointer, call: undefined, result: step });
        early.set(id, calls.at(-1)!);
      } else {
        before.result = step;
        open.delete(id);
        // Where the call names a token, the tool is the token's: CLA-6 checks it against that.
        const isPinned = textAt(before.call, 'data', 'tool_token_jti') !== undefined;
        if (tool !== before.tool && !isPinned)
          this.#desk.find(
            'RESULT_OF_OTHER_TOOL',
            { ...at, pointer: `${at.pointer ?? ''}${pointer}` },
            { about, expected: before.tool.slice(0, 128), actual: tool.slice(0, 128) },
          );
      }
    }
    for (const [i, listed] of (listAt(trace, 'output', 'toolCalls') ?? []).slice(0, MAX_STEPS).entries()) {
      const id = firstText(textAt(listed, 'id'));
      if (counts.has(id)) continue;
      const tool = firstText(textAt(listed, 'name'));
      begin(id, { tool, pointer: `/output/toolCalls/${i}`, call: undefined, result: undefined, listed });
    }
    return calls;
  }

  /** Whether an execution was claimed: a call that was blocked and has no result did not run. */
  #call(
    part: Part,
    call: Call,
    traceId: string,
    context: TraceContext,
    decided: Decided | undefined,
    otherwise: string,
  ): boolean {
    const { tenant, executionId } = context;
    const at = { ...part.at, pointer: `${part.at.pointer ?? ''}${call.pointer}` };
    const data =
      objectAt(call.call, 'data') ?? (call.listed instanceof SourceObject ? call.listed : undefined);
    const isBlocked = valueAt(data, 'permitted') === false;
    const success = valueAt(call.result, 'data', 'success') ?? valueAt(call.listed, 'success');
    const hasRun = success === true || (!isBlocked && success !== undefined);
    const time = timeOfText(textAt(call.result, 'timestamp')) ?? timeOfText(textAt(call.call, 'timestamp'));
    const startedAt = timeOfText(textAt(call.call, 'timestamp'));
    const callIds = [call.id, firstText(textAt(data, 'tool_token_jti'))].filter((id) => id !== '');
    const argsDigest = jcsDigest(valueAt(data, 'arguments'));
    const meters = metersOf(call);
    const observe = (
      decision: 'allow' | 'deny' | undefined,
      outcome: 'success' | 'failure' | 'unknown' | undefined,
      paramsDigest = argsDigest,
    ) =>
      this.#desk.builder.observe({
        at,
        callIds,
        tool: call.tool,
        paramsDigest,
        decision,
        outcome,
        meters: outcome === undefined ? [] : meters,
        occurredAt: time,
      });
    if (isBlocked && !hasRun) {
      observe('deny', undefined);
      return false;
    }
    if (isBlocked) this.#desk.find('RAN_THOUGH_NOT_PERMITTED', at, { about: call.id });
    const ran: Ran = { at, call, data, context, decided, time: startedAt ?? time };
    const authorization = this.#authorize(ran);
    const outcome = success === true ? 'success' : success === false ? 'failure' : 'unknown';
    const result = valueAt(call.result, 'data', 'result') ?? valueAt(call.listed, 'result');
    const steps = [call.call, call.result].filter((step) => step !== undefined);
    const isNew = this.#desk.claim({
      kind: 'execution',
      id: claimId('call', tenant, traceId, call.id),
      at,
      bytes: part.bytes,
      occurredAt: time ?? otherwise,
      principalId: authorization.principalId,
      authorization: authorization.claim,
      tool: call.tool,
      paramsDigest: authorization.paramsDigest ?? argsDigest,
      startedAt,
      meters,
      meterBasis: 'reported',
      outcome,
      errorCode:
        outcome === 'failure'
          ? codeOf(firstText(textAt(call.result, 'data', 'code'), 'TOOL_FAILED'))
          : undefined,
      outputDigest: jcsDigest(result ?? undefined),
      foreignDigests: steps.flatMap((step) => digestOf(step)),
    });
    if (!isNew) return true;
    observe(
      authorization.claim === undefined ? undefined : isDeny(decided, authorization) ? 'deny' : 'allow',
      outcome,
      // What a token allows need not be the arguments.
      authorization.scope,
    );
    if (executionId !== '') this.#inScope(ran);
    return true;
  }

  /** CLA-6 and what a call names as its authorization: its token, else what its execution was granted. */
  #authorize(ran: Ran): CallAuthorization {
    const { at, call, data, decided } = ran;
    const { tenant, executionId, adapterId } = ran.context;
    const principalId = decided?.principalId ?? adapterPrincipal(tenant, adapterId);
    const jti = textAt(data, 'tool_token_jti');
    if (jti === undefined || jti === '') {
      const key = keyOf(tenant, executionId, call.tool);
      const refusal = this.#state.refused.get(key);
      if (refusal !== undefined && this.#state.toolAnswers.get(key) === 'deny') {
        this.#desk.find('TOOL_RAN_AFTER_DENY', at, {
          about: call.id,
          expected: `no call of ${call.tool.slice(0, 128)}: it was refused`,
        });
        return { claim: refusal.claim, principalId: refusal.principalId, paramsDigest: undefined };
      }
      if (this.#state.toolAnswers.get(key) === 'allow')
        this.#desk.find('TOOL_TOKEN_NOT_STATED', at, {
          about: call.id,
          expected: `the token that was issued for ${call.tool.slice(0, 128)}`,
        });
      return { claim: decided?.claim, principalId, paramsDigest: undefined };
    }
    const token = this.#state.toolTokens.get(keyOf(tenant, jti));
    const stated = textAt(data, 'tool_token_scope_hash');
    if (token === undefined) {
      this.#desk.find('TOOL_TOKEN_UNKNOWN', at, {
        about: call.id,
        actual: jti.slice(0, 128),
        weight: this.#state.hasToolTokens ? 'invalid' : 'warning',
      });
      // It may have been recorded before, from other files.
      const claim = claimId('tool-token', tenant, jti);
      return { claim, principalId, paramsDigest: stated === undefined ? undefined : scopeDigest(stated) };
    }
    this.#token(ran, token, stated);
    token.used ??= at;
    const hash = token.scopeHash === undefined ? undefined : (stated ?? token.scopeHash);
    return {
      claim: token.claim,
      principalId: token.principalId,
      // Where the token's scope is not stated, neither are the parameters of the action that it is recorded as.
      paramsDigest: (hash === undefined ? undefined : scopeDigest(hash)) ?? notStated(SYSTEM, 'params'),
      scope: token.scopeDigest,
    };
  }

  #token({ at, call, context, time }: Ran, token: ToolToken, stated: string | undefined): void {
    const { executionId } = context;
    const tell = (code: string, expected: string, actual: string): void => {
      const related = token.used === undefined ? {} : { related: [token.used] };
      this.#desk.builder.find(
        findingOf('CLA-6', 'violation', code, at, {
          about: call.id,
          expected,
          actual: actual.slice(0, 128),
          ...related,
        }),
      );
    };
    if (token.used !== undefined) tell('TOOL_TOKEN_REUSED', 'a token that was not used', 'one that was');
    if (executionId !== '' && token.executionId !== executionId)
      tell('TOOL_TOKEN_OTHER_EXECUTION', token.executionId, executionId);
    if (token.tool !== call.tool) tell('TOOL_TOKEN_OTHER_TOOL', token.tool, call.tool);
    if (stated !== undefined && token.scopeHash !== undefined && stated !== token.scopeHash)
      tell('TOOL_TOKEN_OTHER_SCOPE', token.scopeHash, stated);
    if (stated === undefined && token.scopeHash !== undefined)
      this.#desk.find('SCOPE_HASH_NOT_STATED', at, { about: call.id, expected: token.scopeHash });
    if (isNotBefore(time, token.expiresAt))
      tell('TOOL_TOKEN_EXPIRED', `before ${token.expiresAt ?? ''}`, time ?? '');
    if (time !== undefined && token.issuedAt !== undefined && !isNotBefore(time, token.issuedAt)) {
      const details = { about: call.id, expected: `from ${token.issuedAt} on`, actual: time };
      this.#desk.find('DATED_BEFORE_TOKEN', at, details);
    }
  }

  /** CLA-4 for one call. */
  #inScope({ at, call, data, decided, time }: Ran): void {
    if (decided?.kind !== 'allow' || decided.scope === undefined) return;
    const { expiresAt } = decided.scope;
    if (isNotBefore(time, expiresAt)) {
      const details = { about: call.id, expected: `before ${expiresAt ?? ''}`, actual: time };
      this.#desk.find('GRANT_EXPIRED', at, details);
    }
    const isWithin = this.#state.capabilities.isWithin(decided.scope, call.tool);
    if (isWithin === true) return;
    if (isWithin === false)
      this.#desk.find('CAPABILITY_NOT_GRANTED', at, { about: call.id, actual: call.tool.slice(0, 128) });
    else if (textAt(data, 'tool_token_jti') === undefined)
      this.#desk.find('CAPABILITY_NOT_STATED', at, {
        about: call.id,
        expected: `which capability ${call.tool.slice(0, 128)} needs`,
      });
  }

  /** At the end: spending that only a trace speaks of, or that two reports speak of differently. */
  finish(executions: Iterable<{ readonly id: string; readonly tenant: string }>): void {
    for (const { id, tenant } of executions) {
      const { cost, traceCost } = this.#state.execution(tenant, id);
      if (traceCost === undefined) continue;
      const inTrace = amountOf(traceCost.text);
      const reported = amountOf(cost);
      const details = { about: id, expected: `${traceCost.text} USD, as its trace says` };
      if (cost === undefined) {
        if (exceeds(inTrace, { t: 'int', v: '0' }))
          this.#desk.find('COST_NOT_REPORTED', traceCost.at, { ...details });
      } else if (exceeds(inTrace, reported) || exceeds(reported, inTrace))
        this.#desk.find('COST_DISAGREES', traceCost.at, { actual: `${cost} USD`, ...details });
    }
  }
}

const MAX_FAULTS = 1000;
const MAX_VIOLATIONS = 1000;

function isDeny(decided: Decided | undefined, { claim }: CallAuthorization): boolean {
  return decided?.claim === claim && decided?.kind !== 'allow';
}

function differ(granted: Scope, stated: Scope): boolean {
  const more = (a: Scope, b: Scope): boolean =>
    firstBeyond(a.capabilities, b.capabilities) !== undefined ||
    exceeds(a.maxSteps, b.maxSteps) ||
    exceeds(a.maxCost, b.maxCost);
  return more(granted, stated) || more(stated, granted);
}

/** The duration is the call's; of a host that writes it only with the result, the result's. */
function metersOf({ call, result, listed }: Call): Meter[] {
  const ofCall = numberAt(call, 'durationMs');
  const text =
    ofCall !== undefined && Number(ofCall) !== 0 ? ofCall : (numberAt(result, 'durationMs') ?? ofCall);
  return callMeters(amountOf(text ?? numberAt(listed, 'durationMs')));
}

function digestOf(step: SourceValue): ForeignDigest[] {
  const stated = textAt(step, 'step_hash');
  if (stated === undefined) return [];
  const isRight = stated === stepHash(step, true) || stated === stepHash(step, false);
  const check = isRight ? 'match' : 'mismatch';
  return [{ of: textAt(step, 'type') ?? 'step', form: STABLE_FORM, stated: stated.slice(0, 256), check }];
}

/** `sha256:…` of a scope as the digest of parameters; undefined where it is none. */
export function scopeDigest(hash: string): Digest | undefined {
  const bytes = /^sha256:[0-9a-f]{64}$/.test(hash) ? tryDecodeHex(hash.slice(7)) : undefined;
  return bytes === undefined ? undefined : { alg: STABLE_FORM, b64: encodeBase64url(bytes) };
}
