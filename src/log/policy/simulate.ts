/**
 * Simulates a grant: what it would have denied of calls that were made without it. The evaluator decides on each over a verification in
 * memory, which holds the grant and what it allowed so far, so that the rules are those of a ledger. Nothing is written.
 */

import { canonicalBytes } from '../../base/json/canonicalize.js';
import { checkOptions } from '../../base/options.js';
import { type Digest, formatDigest, sha256Digest } from '../../base/value/digest.js';
import type { Meter, MeterVector } from '../../base/value/meter.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { completeDraft } from '../../format/event/build.js';
import type { AuthorizationEvent, Bounds, ResourceRef } from '../../format/schema/generated/types.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { type Balance, balancesOf } from '../../rules/bounds/balance.js';
import { APPROVAL_REQUIRED } from '../../rules/verify/approvals.js';
import { startVerification, type VerifyState } from '../../rules/verify/state.js';
import { verifyLine } from '../../rules/verify/verify-line.js';
import type { DecidingBound } from './deciding-bound.js';
import { draftDecision, GrantEvaluator } from './evaluator.js';

export interface MadeCall {
  /** A ToolName (SPEC §2). */
  readonly toolName: string;
  /** When it began: a timestamp of SPEC §2. */
  readonly startedAt: string;
  /** Likewise. Where it is left out, or before `startedAt`, the call took no time. */
  readonly endedAt?: string | undefined;
  /** What it used, each unit once. Without `calls` it is one call. */
  readonly meterUsed: MeterVector;
  readonly resources?: readonly ResourceRef[] | undefined;
}

export interface SimulatedDenial<C extends MadeCall = MadeCall> {
  readonly call: C;
  /** `APPROVAL_REQUIRED`, or the code of the first failed check. */
  readonly code: string;
  /** In words. */
  readonly reason: string | undefined;
  /** The bound that denied, with what was left of it. Its grant is that of the simulation, which no ledger has. */
  readonly bound: DecidingBound | undefined;
}

export interface Simulation<C extends MadeCall = MadeCall> {
  readonly calls: number;
  readonly allowed: number;
  /** How many calls would have waited for approval. They are not among the denied. */
  readonly needApproval: number;
  /** How many were denied, by code. */
  readonly denied: Readonly<Record<string, number>>;
  /** The first 100 that were denied or would have waited, in the order of time. */
  readonly denials: readonly SimulatedDenial<C>[];
  /** The accounts of the grant after the last call. */
  readonly remaining: readonly Balance[];
}

/** The most denials that a simulation lists. */
export const MAX_LISTED_DENIALS = 100;

const PRINCIPAL = 'agent:simulated';
const PLACE = { file: 'simulation', firstSeq: undefined } as const;
const ONE_CALL: Meter = { unit: 'calls', amount: { t: 'int', v: '1' } };
/** For a grant that no call is made under. */
const ANY_TIME = '2000-01-01T00:00:00Z';

/**
 * Decides on calls as one grant would have, in the order of their times. Each asks for what it used. What is allowed is settled before the
 * next call; what is not uses nothing. All calls count as the grantee's, and the grant as made when the first call began.
 *
 * @param bounds - Of the grant, as events have them (SPEC §3.1). A delegated grant's parent is not considered.
 * @throws EventError `SCHEMA` and others for malformed bounds; TypeError, RangeError for a malformed call
 */
export function simulateGrant<C extends MadeCall>(calls: readonly C[], bounds: Bounds): Simulation<C> {
  const inOrder = calls
    .map((call) => checkedCall(call))
    .sort((a, b) => compareTimestamps(a.startedAt, b.startedAt));
  const scratch = new Scratch(bounds, inOrder[0]?.startedAt ?? ANY_TIME);
  const denials: SimulatedDenial<C>[] = [];
  const denied = new Map<string, number>();
  let needApproval = 0;
  let notAllowed = 0;
  for (const call of inOrder) {
    const denial = scratch.make(call);
    if (denial === undefined) continue;
    notAllowed += 1;
    if (denial.code === APPROVAL_REQUIRED) needApproval += 1;
    else denied.set(denial.code, (denied.get(denial.code) ?? 0) + 1);
    if (denials.length < MAX_LISTED_DENIALS) denials.push({ call, ...denial });
  }
  return {
    calls: inOrder.length,
    allowed: inOrder.length - notAllowed,
    needApproval,
    denied: Object.fromEntries([...denied].sort(([a], [b]) => (a < b ? -1 : 1))),
    denials,
    remaining: scratch.remaining(),
  };
}

/** What a call uses, as a reservation states it. */
export function usedByCall({ meterUsed }: Pick<MadeCall, 'meterUsed'>): MeterVector {
  const whole = meterUsed.some(({ unit }) => unit === 'calls') ? meterUsed : [...meterUsed, ONE_CALL];
  return [...whole].sort((a, b) => (a.unit < b.unit ? -1 : 1));
}

function checkedCall<C extends MadeCall>(call: C): C {
  const { toolName, startedAt, endedAt, meterUsed, resources } = call;
  const own = { toolName, startedAt, endedAt, meterUsed, resources };
  checkOptions('simulateGrant: call', own, {
    toolName: 'string',
    startedAt: 'string',
    endedAt: 'string',
    meterUsed: 'array',
    resources: 'array',
  });
  if (endedAt !== undefined) compareTimestamps(startedAt, endedAt);
  return call;
}

class Scratch {
  readonly #state: VerifyState = startVerification(undefined, defaultBackend);
  readonly #evaluator = new GrantEvaluator(this.#state);
  readonly #grant: Digest;
  readonly #intents: AuthorizationEvent['intents'];
  #made = 0;

  constructor(bounds: Bounds, occurredAt: string) {
    const intent = sha256Digest(canonicalBytes(bounds));
    this.#intents = { intent_digest: intent };
    this.#grant = this.#add({
      event_type: 'authorization',
      occurred_at: occurredAt,
      intents: this.#intents,
      policy_id: this.#evaluator.policyId,
      policy_digest: this.#evaluator.policyDigest,
      decision: 'allow',
      decision_code: 'ALLOW',
      authorization: { kind: 'grant', bounds },
    });
  }

  /** Settles the call if it is allowed. @returns Why it is not. */
  make(call: MadeCall): Omit<SimulatedDenial, 'call'> | undefined {
    const { toolName, startedAt, endedAt, resources = [] } = call;
    const meters = usedByCall(call);
    const request = {
      principalId: PRINCIPAL,
      toolName,
      // Equal calls would be one event.
      paramsDigest: sha256Digest(canonicalBytes({ call: (this.#made += 1) })),
      intentDigest: this.#intents.intent_digest,
      meters,
      resources,
      now: startedAt,
      grantId: formatDigest(this.#grant),
    };
    const answer = this.#evaluator.evaluate(request);
    if (answer.decision === 'deny') {
      const { decisionCode: code, reason, bound } = answer;
      return { code, reason, bound };
    }
    const id = this.#add(draftDecision(request, answer, this.#evaluator));
    const hasEnd = endedAt !== undefined && compareTimestamps(startedAt, endedAt) <= 0;
    this.#add({
      event_type: 'execution',
      occurred_at: hasEnd ? endedAt : startedAt,
      intents: this.#intents,
      auth_event_id: id,
      tool_name: toolName,
      tool_params_digest: request.paramsDigest,
      started_at: startedAt,
      ended_at: hasEnd ? endedAt : startedAt,
      meter_used: meters,
      outcome: 'success',
      ...(resources.length === 0 ? {} : { resources_touched: resources }),
    });
    return undefined;
  }

  remaining(): Balance[] {
    const grant = this.#state.links.grants.get(this.#grant.b64);
    return grant === undefined ? [] : balancesOf(grant);
  }

  #add(draft: object): Digest {
    const { bytes, event } = completeDraft(draft, { principalId: PRINCIPAL });
    const { bytes: offset, lines } = this.#state;
    const line = {
      bytes,
      length: bytes.length,
      offset,
      number: lines + 1,
      terminated: true,
      longLeafHash: undefined,
    };
    verifyLine(this.#state, line, PLACE);
    return event.event_id;
  }
}
