/**
 * A gate in the path of a pipeline: it decides on tools, messages and subagents, last of all and on what the mutators have left, and settles
 * what the host says came of it. What other vetoes cancelled is recorded as a denial.
 */

import { defined } from '../../../base/defined.js';
import { NorthrootError } from '../../../base/error.js';
import { canonicalBytes } from '../../../base/json/canonicalize.js';
import { decodeSourceJson, SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import { checkOptions, describeValue, type OptionTypes } from '../../../base/options.js';
import { sha256Digest } from '../../../base/value/digest.js';
import type { AmountsByUnit } from '../../../base/value/meter.js';
import type { CallName, CallOutcome, Gate, GateCall, GateDecision } from '../../../gate/gate.js';
import type { DelegateOptions } from '../../../log/policy/delegate.js';
import { draftAdjustment } from '../../../log/policy/draft-adjustment.js';
import { codeOf, factText, principalOf, toolOf } from '../../shared/names.js';
import { objectAt, textAt, valueAt } from '../../shared/values.js';
import { outcomeOf } from '../calls.js';
import { SYSTEM } from '../context.js';
import { SEND, SPAWN } from '../deliveries.js';
import { modelCallOf } from '../model-calls.js';
import { asLast, type Contribution, GATE_EXTENSION, type StageHandler } from './contribution.js';
import { type FrozenJson, type FrozenObject, memberOf, type PipelineEvent, textOf } from './event.js';
import type { StageGate, StageOutcome, StageProblem } from './runner.js';

export interface GateStagesOptions {
  /** Who acts. Default: `agent:openclaw/AGENT` by the event's `agentId`, as an import names it; without one `service:openclaw`. */
  readonly principal?: string | ((event: PipelineEvent) => string) | undefined;
  /** The most that a call may use, by unit. Default: one call. */
  readonly reserve?: ((event: PipelineEvent, working: FrozenObject) => AmountsByUnit | undefined) | undefined;
  /** How long a call waits for an approver, in milliseconds: less than 585,000. Default 0. */
  readonly waitMs?: number | undefined;
  /** The part of a grant that a subagent receives when its start is allowed. Default: none. */
  readonly delegate?: ((event: PipelineEvent) => DelegateOptions | undefined) | undefined;
  /** How long a decision may take, in milliseconds. Default: 15,000 more than `waitMs`, without which the pipeline's time. */
  readonly timeoutMs?: number | undefined;
}

const OPTION_TYPES: OptionTypes<GateStagesOptions> = {
  principal: ['string', 'function'],
  reserve: 'function',
  waitMs: 'number',
  delegate: 'function',
  timeoutMs: 'number',
};

/** What a decision may take besides waiting, in milliseconds. */
const MORE_MS = 15_000;

/** What a stage decides on: a tool, and its parameters. */
interface Asked {
  readonly tool: string;
  readonly params: FrozenJson;
  /** The host's id of the call. */
  readonly ref: string | undefined;
}

/** The call that an event is about; undefined of stages that decide on none. */
type Read = (event: PipelineEvent, working: FrozenObject | undefined) => Asked | undefined;

const readTool: Read = ({ payload }, working) => ({
  tool: toolOf(textOf(payload, 'toolName') ?? ''),
  params: working ?? memberOf(payload, 'params') ?? {},
  ref: textOf(payload, 'toolCallId'),
});

const readMessage: Read = ({ payload, messageRef }, working) => ({
  tool: SEND,
  params: working ?? messageOf(payload),
  ref: typeof messageRef === 'string' ? `message:${messageRef}` : undefined,
});

const readSpawn: Read = ({ payload }) => {
  const child = textOf(payload, 'childSessionKey');
  return {
    tool: SPAWN,
    params: child === undefined ? {} : { childSessionKey: child },
    ref: child === undefined ? undefined : `spawn:${child}`,
  };
};

/** The stages that decide, and by which events what they allowed ends. */
const DECIDING: Readonly<Record<string, Read>> = {
  'agent.tool.calling': readTool,
  'egress.preparing': readMessage,
  'subagent.spawning': readSpawn,
};
const ENDING: Readonly<Record<string, Read>> = {
  'agent.tool.called': readTool,
  'egress.sent': readMessage,
  'egress.failed': readMessage,
  'subagent.spawned': readSpawn,
};

/**
 * The gate's part of a pipeline, for `createPipeline({ gate })`. Its vetoes at `agent.tool.calling`, `egress.preparing` and, where the host
 * declares that stage, `subagent.spawning` fail closed and run last: no contribution may have a lower priority. It settles at
 * `agent.tool.called`, `egress.sent`, `egress.failed` and `subagent.spawned`, and records the usage of `agent.llm.output`. A call is known by
 * `payload.toolCallId`, `messageRef` or `payload.childSessionKey` within its session; one without is told by its parameters, which the event
 * of its end must then state (`payload.params`; of a message `channel`, `to` and `content`). What ran with other parameters than those that
 * were allowed is recorded as `Gate.settle` says.
 *
 * Parameters that the gate's advisers would rewrite are denied, as a veto changes nothing. The gate stays the caller's to close.
 * @throws TypeError for anything but a gate, and for malformed options
 */
export function gateStages(gate: Gate, options: GateStagesOptions = {}): StageGate {
  if (typeof (gate as Gate | undefined)?.decide !== 'function')
    throw new TypeError(`gateStages: expected a gate, found ${describeValue(gate)}`);
  checkOptions('gateStages', options, OPTION_TYPES);
  return new GateStages(gate, options);
}

class GateStages implements StageGate {
  readonly contributions: readonly Contribution[];
  onProblem: ((problem: StageProblem) => void) | undefined;
  readonly #gate: Gate;
  readonly #options: GateStagesOptions;

  constructor(gate: Gate, options: GateStagesOptions) {
    this.#gate = gate;
    this.#options = options;
    const { waitMs } = options;
    const { timeoutMs = waitMs === undefined ? undefined : waitMs + MORE_MS } = options;
    const own = defined({ timeoutMs });
    const deciding = Object.entries(DECIDING).map(([stage, read]) =>
      asLast({
        ...own,
        contributionId: 'decide',
        stage,
        class: 'veto',
        failClosed: true,
        handler: this.#decider(read),
      }),
    );
    const observing = [
      ...Object.entries(ENDING).map(([stage, read]) => [stage, this.#settler(read)] as const),
      ['agent.llm.output', (event: PipelineEvent) => this.#recordUsage(event)] as const,
    ].map(([stage, handler]) =>
      asLast({ ...own, contributionId: 'record', stage, class: 'observer', handler }),
    );
    this.contributions = [...deciding, ...observing];
  }

  /** Records what other vetoes, or errors, have cancelled. */
  async stageEnded({ event, working, decision, by }: StageOutcome): Promise<void> {
    if (decision !== 'cancel' || by?.extensionId === GATE_EXTENSION) return;
    const read = DECIDING[event.family];
    const who =
      by === undefined
        ? {}
        : { extension: factText(by.extensionId), contribution: factText(by.contributionId) };
    if (read === undefined) {
      await this.#gate.ledger.append({
        event: {
          event_type: `x.${SYSTEM}.stage_cancelled`,
          principal_id: this.#principalOf(event),
          ...{ stage: event.family, event_id_of_host: factText(event.eventId), ...who },
        },
      });
      return;
    }
    await this.#gate.decide({
      ...this.#callOf(event, read, working),
      found: {
        checks: [
          {
            check: 'openclaw.stage',
            result: 'fail',
            code: codeOf(`CANCELLED_BY_${by?.extensionId ?? 'NOBODY'}`),
          },
        ],
        denial: { code: 'OPENCLAW_STAGE_CANCELLED', reason: 'another handler of the stage has cancelled it' },
      },
    });
  }

  #decider(read: Read): StageHandler {
    return async (event, working, { signal }) => {
      const call = this.#callOf(event, read, working);
      const { delegate } = this.#options;
      const decision = await this.#decideAnew(call, signal);
      const isAllowed = decision.effect === 'allow';
      if (!isAllowed && decision.effect !== 'rewrite')
        return { decision: 'cancel', reason: reasonOf(decision.code, decision.reason) };
      if (decision.isRepeated)
        return { decision: 'cancel', reason: 'CALL_REPEATED: too many calls of this id have not ended' };
      // Decided too late, or for other parameters than what would run: it does not run.
      if (!isAllowed || signal.aborted) {
        await this.#release(call, decision.ref);
        return { decision: 'cancel', reason: isAllowed ? 'DECIDED_TOO_LATE' : 'REWRITE_NOT_POSSIBLE' };
      }
      // In shadow, what the grants deny starts with no part of them.
      if (decision.shadow !== undefined) return { decision: 'allow' };
      const part = event.family === 'subagent.spawning' ? delegate?.(event) : undefined;
      if (part !== undefined) {
        try {
          await this.#gate.ledger.delegate(part);
        } catch (error) {
          await this.#release(call, decision.ref);
          throw error;
        }
      }
      return { decision: 'allow' };
    };
  }

  /** A decision is for one run: a call under the id of one that has not ended is another, and has a name of its own. */
  async #decideAnew(call: GateCall, signal: AbortSignal): Promise<GateDecision> {
    const { waitMs } = this.#options;
    for (let count = 0; ; count += 1) {
      const ref = nameAgain(call.ref, count);
      const asked = { ...call, ...defined({ ref }) };
      const decision = await this.#gate.decide(asked, { signal, ...defined({ waitMs }) });
      const isAllowed = decision.effect === 'allow' || decision.effect === 'rewrite';
      if (!isAllowed || !decision.isRepeated || ref === undefined || count === MAX_SAME_ID) return decision;
    }
  }

  /** Settles the first call of an id that has not ended. */
  async #settleNext(name: CallName, done: CallOutcome): Promise<void> {
    const { ref } = name as { readonly ref?: string };
    for (let count = 0; count <= MAX_SAME_ID; count += 1) {
      const again = nameAgain(ref, count);
      try {
        const { recorded } = await this.#gate.settle(
          again === undefined ? name : { ...name, ref: again },
          done,
        );
        if (recorded !== undefined || ref === undefined) return;
      } catch (error) {
        if (count > 0 && error instanceof NorthrootError && error.code === 'CALL_NOT_FOUND') return;
        throw error;
      }
    }
  }

  async #release({ session, principal }: GateCall, ref: string): Promise<void> {
    await this.#gate.release({ ref, ...defined({ session, principal }) });
  }

  #settler(read: Read): StageHandler {
    return async (event) => {
      const asked = read(event, undefined);
      if (asked === undefined) return;
      const { payload, family } = event;
      const name = this.#nameOf(event, asked);
      const ran = family === 'agent.tool.called' ? memberOf(payload, 'params') : undefined;
      const paramsDigest = ran === undefined ? {} : { paramsDigest: sha256Digest(canonicalBytes(ran)) };
      const done = family === 'egress.failed' ? SEND_FAILED : outcomeOfEvent(event);
      try {
        await this.#settleNext(name, { ...done, ...paramsDigest });
      } catch (error) {
        if (!(error instanceof NorthrootError) || error.code !== 'CALL_NOT_FOUND') throw error;
        this.#problem(event, 'CALL_NOT_ALLOWED', error);
      }
    };
  }

  /** Nothing decides on calls of models beforehand: they are decided on when they are reported, for the budget. */
  async #recordUsage(event: PipelineEvent): Promise<void> {
    const said = sourceOf(event.payload);
    const usage = objectAt(said, 'usage');
    if (said === undefined || usage === undefined) return;
    const {
      tool,
      meters = [],
      meterBasis,
      outcome,
      errorCode,
      modelId,
      provider,
    } = modelCallOf(
      said,
      usage,
      textAt(said, 'stopReason') ?? textAt(said, 'lastAssistant', 'stopReason'),
      false,
    );
    const used = Object.fromEntries(meters.map(({ unit, amount }) => [unit, amount]));
    const decision = await this.#gate.decide({
      ...this.#base(event),
      ref: `llm:${event.eventId}`,
      tool: toolOf(tool),
      params: { event: event.eventId },
      reserve: used,
      found: { checks: [{ check: 'openclaw.decision', result: 'pass', code: 'AFTER_THE_FACT' }] },
    });
    if (decision.effect !== 'allow') {
      this.#problem(event, 'MODEL_USAGE_DENIED');
      await this.#gate.ledger.append({
        event: {
          event_type: `x.${SYSTEM}.model_usage`,
          principal_id: this.#principalOf(event),
          ...{
            tool_name: toolOf(tool),
            meters: meters.map(({ unit, amount }) => ({ unit, amount: { ...amount } })),
          },
        },
      });
      await this.#debit(event, decision, used);
      return;
    }
    await this.#gate.settle(this.#nameOf(event, { ref: decision.ref }), {
      outcome,
      used,
      ...defined({ errorCode, meterBasis, modelId, provider }),
    });
  }

  /** What the budget did not hold was used all the same, and counts against the grant that had too little left. */
  async #debit(event: PipelineEvent, { bound }: GateDecision, used: AmountsByUnit): Promise<void> {
    if (bound?.grantId === undefined || bound.unit === undefined) return;
    const { grantId } = bound;
    const { ledger } = this.#gate;
    const capped = new Set((await ledger.balances(grantId)).map(({ unit }) => unit));
    const debit = Object.fromEntries(Object.entries(used).filter(([unit]) => capped.has(unit)));
    if (Object.keys(debit).length === 0) return;
    const principalId = this.#principalOf(event);
    const reason = 'MODEL_USAGE_DENIED';
    await ledger.append({
      event: draftAdjustment({ grantId, debit, reason, principalId, meterBasis: 'reported' }),
    });
  }

  #callOf(event: PipelineEvent, read: Read, working: FrozenObject): GateCall {
    const asked = read(event, working);
    const { reserve } = this.#options;
    return {
      ...this.#base(event),
      ...defined({ ref: asked?.ref, reserve: reserve?.(event, working) }),
      tool: asked?.tool ?? '',
      params: asked?.params,
    };
  }

  #base(event: PipelineEvent): Pick<GateCall, 'session' | 'principal' | 'coverage'> {
    const session = sessionOf(event);
    return { ...defined({ session }), principal: this.#principalOf(event), coverage: 'hook' };
  }

  #nameOf(event: PipelineEvent, { ref, tool, params }: Partial<Asked>): CallName {
    const { session, principal } = this.#base(event);
    return { ...defined({ session, principal }), ...(ref === undefined ? { tool, params } : { ref }) };
  }

  #principalOf(event: PipelineEvent): string {
    const { principal } = this.#options;
    if (typeof principal === 'string') return principal;
    if (principal !== undefined) return principal(event);
    return event.agentId === null
      ? principalOf('service', SYSTEM)
      : principalOf('agent', SYSTEM, event.agentId);
  }

  #problem({ family, eventId }: PipelineEvent, code: string, cause?: unknown): void {
    const contribution = { extensionId: GATE_EXTENSION, contributionId: 'record' };
    this.onProblem?.({ code, stage: family, eventId, contribution, cause });
  }
}

/** Calls of one id that have not ended, besides the first. */
const MAX_SAME_ID = 16;

/** The name of the call that has an id for the `count`th time, from 0. */
function nameAgain(ref: string | undefined, count: number): string | undefined {
  return ref === undefined || count === 0 ? ref : `${ref}+${count}`;
}

const SEND_FAILED: CallOutcome = { outcome: 'failure', errorCode: 'SEND_FAILED' };

/** How a tool call, a message or a start of a subagent ended. */
function outcomeOfEvent({ family, payload }: PipelineEvent): CallOutcome {
  if (family !== 'agent.tool.called') return { outcome: 'success' };
  const said = sourceOf(payload);
  const result = valueAt(said, 'result');
  const ended = outcomeOf(
    { result, error: valueAt(said, 'error') ?? undefined },
    textAt(result, 'details', 'status'),
    { nonzeroExit: 'failure' },
  );
  const output = memberOf(payload, 'result');
  // As the reader of recordings has it: what the host measures besides, it waited for its own.
  const durationMs = memberOf(memberOf(output, 'details'), 'durationMs') ?? memberOf(payload, 'durationMs');
  return {
    ...{ outcome: ended.outcome, ...defined({ errorCode: ended.errorCode }) },
    ...(typeof durationMs === 'number' && durationMs >= 0 ? { durationMs } : {}),
    ...(output === undefined || output === null ? {} : { output }),
  };
}

/** As the reader of recordings has it. */
function sourceOf(payload: FrozenJson): SourceValue | undefined {
  const decoded = decodeSourceJson(canonicalBytes(payload));
  return decoded.ok && decoded.value instanceof SourceObject ? decoded.value : undefined;
}

/** What a message is authorized by: where it goes and what it says. */
function messageOf(payload: FrozenJson): FrozenObject {
  return Object.fromEntries(
    ['channel', 'content', 'to'].map((name) => [name, memberOf(payload, name) ?? null]),
  );
}

function sessionOf({ sessionId, correlationId }: PipelineEvent): string | undefined {
  return sessionId ?? correlationId ?? undefined;
}

function reasonOf(code: string, words: string | undefined): string {
  return words === undefined ? code : `${code}: ${words}`;
}
