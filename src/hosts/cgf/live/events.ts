/** Events of CGF's ratified vocabulary, as a server that names all ids writes them. They hold ids, codes and digests, and no params. */

import { defined } from '../../../base/defined.js';
import type { JsonValue } from '../../../base/json/value.js';
import { pythonSha256 } from '../../shared/forms/python.js';
import { objectAt } from '../../shared/values.js';
import type { Decision } from '../vocabulary.js';
import { type Answer, SCHEMA_VERSION } from './answer.js';
import type { OutcomeReport } from './outcome.js';
import type { Proposal } from './proposal.js';

/** How long an adapter may hold what was deferred before it asks anew, in seconds. */
const DEFERRED_S = 300;
const HASH_LENGTH = 16;

export interface CgfEvent {
  readonly schema_version: string;
  readonly event_type: string;
  readonly adapter_id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly proposal_id: string | null;
  readonly decision_id: string | null;
  readonly payload: Readonly<Record<string, JsonValue>>;
}

interface About {
  readonly adapterId: string;
  readonly proposalId?: string;
  readonly decisionId?: string;
  /** A Timestamp. */
  readonly at: string;
}

function eventOf(
  { adapterId, proposalId, decisionId, at }: About,
  type: string,
  payload: CgfEvent['payload'],
): CgfEvent {
  const ids = {
    ...(decisionId === undefined ? {} : { decision_id: decisionId }),
    ...(proposalId === undefined ? {} : { proposal_id: proposalId }),
  };
  return {
    schema_version: SCHEMA_VERSION,
    event_type: type,
    adapter_id: adapterId,
    timestamp: secondsOf(at),
    proposal_id: proposalId ?? null,
    decision_id: decisionId ?? null,
    payload: { ...ids, ...payload },
  };
}

export function secondsOf(timestamp: string): number {
  return Date.parse(timestamp) / 1_000;
}

export function registeredEvent(
  adapterId: string,
  at: string,
  about: { readonly adapterType: string; readonly hostType: string; readonly version: string },
): CgfEvent {
  return eventOf({ adapterId, at }, 'adapter_registered', {
    adapter_id: adapterId,
    adapter_type: about.adapterType,
    host_type: about.hostType,
    version: about.version,
  });
}

/** The digest of params that OpenClaw's adapter writes. */
export function paramsHashOf({ body }: Pick<Proposal, 'body'>): string {
  const params = objectAt(body, 'action_params') ?? null;
  return pythonSha256(params, 'py-json-sorted-spaced-ascii').slice(0, HASH_LENGTH);
}

/** What a decision is about, as far as it is known. */
export interface Asked {
  readonly actionType: string;
  readonly riskTier: string;
  readonly paramsHash: string | undefined;
}

/** A proposal, its decision, and what that holds back. */
export function decisionEvents(answer: Answer, asked: Asked): CgfEvent[] {
  const { adapterId, proposalId, decisionId, decision, at } = answer;
  const about = { adapterId, proposalId, at };
  const decided = { ...about, decisionId };
  const { justification, code, constraint, version, rule } = answer;
  const received = eventOf(about, 'proposal_received', {
    action_type: asked.actionType,
    ...(asked.paramsHash === undefined ? {} : { action_params_hash: asked.paramsHash }),
    risk_tier: asked.riskTier,
  });
  const made = eventOf(decided, 'decision_made', {
    decision_type: decision,
    confidence: answer.confidence,
    justification,
    reason_code: code,
    ...(version === undefined ? {} : { policy_version: version }),
    matched_rule_ids: rule === undefined ? [] : [rule],
    ...(constraint === undefined ? {} : { constraint: { type: constraint.type, params: constraint.params } }),
  });
  if (decision === 'BLOCK')
    return [received, made, eventOf(decided, 'action_blocked', { justification, reason_code: code })];
  if (decision === 'DEFER')
    return [
      received,
      made,
      eventOf(decided, 'action_deferred', { deferred_until: secondsOf(at) + DEFERRED_S }),
    ];
  return [received, made];
}

const ACTIONS: Readonly<Record<Decision, string | undefined>> = {
  ALLOW: 'action_allowed',
  CONSTRAIN: 'action_constrained',
  AUDIT: 'action_audited',
  DEFER: undefined,
  BLOCK: undefined,
};

/** What was done, as the adapter reported it. */
export function outcomeEvents(
  answer: Answer,
  outcome: Pick<OutcomeReport, 'executed' | 'success' | 'durationMs'> &
    Partial<Pick<OutcomeReport, 'committed' | 'quarantined'>>,
  at: string,
): CgfEvent[] {
  const { adapterId, proposalId, decisionId, decision, constraint } = answer;
  const about = { adapterId, proposalId, decisionId, at };
  const action = outcome.executed ? ACTIONS[decision] : undefined;
  const details: CgfEvent['payload'] =
    decision === 'CONSTRAIN'
      ? { constraint_type: constraint?.type ?? 'unknown' }
      : decision === 'AUDIT'
        ? { audit_level: 'basic' }
        : {};
  const { executed, success, committed, quarantined } = outcome;
  const logged = eventOf(about, 'outcome_logged', {
    ...{ executed, success },
    ...defined({ committed, quarantined }),
    duration_ms: Number(outcome.durationMs),
  });
  return action === undefined ? [logged] : [eventOf(about, action, details), logged];
}
