/** What an adapter tells in events: in the ratified vocabulary, or in the draft's. */

import type { JsonObject } from '../../../base/json/value.js';
import type { RanCall } from '../../shared/live/run-decided.js';
import type { LiveDecision } from './decision.js';
import type { Proposal, Verdict } from './verdict.js';

export type Told = readonly [type: string, payload: JsonObject];

/** How an executed action ended, as it is reported. */
export interface Ended {
  readonly ran: RanCall;
  readonly actualCost: JsonObject | undefined;
  readonly sideEffects: readonly string[];
  readonly outcomeHash: string;
}

export interface Teller {
  readonly proposed: (proposal: Proposal) => readonly Told[];
  /** Before anything runs. */
  readonly settled: (proposal: Proposal, verdict: Verdict) => readonly Told[];
  /** When the host gives it up before it is decided on. */
  readonly withdrawn: (proposal: Proposal) => readonly Told[];
  /** When its outcome waits to be reported. */
  readonly done: (proposal: Proposal, verdict: Verdict, ended: Ended) => readonly Told[];
}

/** What names the server and the deadline in events. */
export interface TellerContext {
  /** Without credentials. */
  readonly endpoint: string;
  readonly timeoutMs: number;
}

/** How long an action is put off, in seconds: what the policy calls `max_proposal_age_seconds`. */
const DEFERRED_SECONDS = 300;
const MILLISECONDS = 1_000;

function ids(proposal: Proposal, { decisionId }: Verdict): JsonObject {
  return { proposal_id: proposal.id, decision_id: decisionId };
}

function unanswered(
  { id, riskTier }: Proposal,
  why: string,
  mode: string,
  { endpoint, timeoutMs }: TellerContext,
): Told {
  const of = { proposal_id: id, fail_mode: mode, risk_tier: riskTier };
  return why === 'PEER_TIMEOUT'
    ? ['evaluate_timeout', { ...of, timeout_ms: timeoutMs }]
    : ['cgf_unreachable', { ...of, endpoint, error_type: why }];
}

function deferredUntil(): number {
  return Date.now() / MILLISECONDS + DEFERRED_SECONDS;
}

/** The event of an action that does not run. */
function stopped(proposal: Proposal, verdict: Verdict): Told {
  const { act, code, justification } = verdict;
  const of = { ...ids(proposal, verdict), reason_code: code, justification };
  return act === 'defer'
    ? ['action_deferred', { ...of, deferred_until: deferredUntil(), escalation_path: 'review' }]
    : ['action_blocked', of];
}

/** The 19 types that were ratified. */
export function ratifiedTeller(context: TellerContext): Teller {
  return {
    proposed: ({ id, actionType, riskTier, toolName, paramsHash }) => [
      [
        'proposal_received',
        {
          ...{
            proposal_id: id,
            action_type: actionType,
            action_params_hash: paramsHash,
            risk_tier: riskTier,
          },
          ...(toolName === undefined ? {} : { tool_name: toolName }),
        },
      ],
    ],
    settled: (proposal, verdict) => {
      const of = ids(proposal, verdict);
      // Which is no decision that binds: a proposal has one, or a rejection.
      const rejected: Told = [
        'decision_rejected',
        { ...of, rejection_reason: verdict.justification, reason_code: verdict.code },
      ];
      switch (verdict.by) {
        case 'decision':
          return [made(proposal, verdict), ratifiedAct(proposal, verdict)];
        case 'constraint': {
          const type = verdict.decision.constraint?.type ?? 'not_stated';
          const failed = { ...of, constraint_type: type, error: verdict.justification };
          return [made(proposal, verdict), ['constraint_failed', failed], stopped(proposal, verdict)];
        }
        case 'fail_mode': {
          const first = unanswered(proposal, verdict.why, verdict.mode, context);
          return [first, verdict.act === 'run' ? ['action_allowed', of] : stopped(proposal, verdict)];
        }
        case 'audit':
        case 'answer':
          return [rejected, stopped(proposal, verdict)];
        case 'ledger': {
          const { why } = verdict;
          const error = { proposal_id: proposal.id, error_type: why ?? '', message: 'no answer' };
          return [
            ...(why === undefined ? [] : [['errors', error] as const]),
            rejected,
            stopped(proposal, verdict),
          ];
        }
      }
    },
    withdrawn: ({ id }) => [['proposal_revoked', { proposal_id: id, revoked_by: 'host' }]],
    done: (proposal, verdict, { ran, actualCost, sideEffects }) => [
      [
        'outcome_logged',
        {
          ...{ ...ids(proposal, verdict), executed: true, success: ran.outcome === 'success' },
          duration_ms: ran.durationMs,
          ...(actualCost === undefined ? {} : { actual_cost: actualCost }),
        },
      ],
      ...sideEffects.map((type): Told => [
        'side_effect_reported',
        { ...ids(proposal, verdict), side_effect_type: type },
      ]),
    ],
  };
}

function made(proposal: Proposal, verdict: Verdict & { readonly by: 'decision' | 'constraint' }): Told {
  const { decision, confidence, justification, policyVersion, rules, reasonCode } = verdict.decision;
  return [
    'decision_made',
    {
      ...{ ...ids(proposal, verdict), decision_type: decision, confidence, justification },
      ...(reasonCode === undefined ? {} : { reason_code: reasonCode }),
      ...(policyVersion === undefined ? {} : { policy_version: policyVersion }),
      ...(rules.length === 0 ? {} : { matched_rule_ids: [...rules] }),
    },
  ];
}

function ratifiedAct(proposal: Proposal, verdict: Verdict & { readonly by: 'decision' }): Told {
  const of = ids(proposal, verdict);
  const { decision, constraint, auditLevel } = verdict.decision;
  if (verdict.act !== 'run') return stopped(proposal, verdict);
  if (decision === 'CONSTRAIN')
    return ['action_constrained', { ...of, constraint_type: constraint?.type ?? 'modified_params' }];
  if (decision === 'AUDIT') return ['action_audited', { ...of, audit_level: auditLevel ?? 'basic' }];
  return ['action_allowed', of];
}

/** The draft's 18 types. */
export function draftTeller(context: TellerContext): Teller {
  return {
    proposed: ({ id, actionType, riskTier, toolName }) => [
      [
        'proposal_received',
        {
          ...{ proposal_id: id, action_type: actionType, risk_tier: riskTier },
          ...(toolName === undefined ? {} : { tool_name: toolName }),
        },
      ],
    ],
    settled: (proposal, verdict) => {
      const { id } = proposal;
      const decision = 'decision' in verdict ? verdict.decision : undefined;
      const decided = decision === undefined ? [] : draftDecided(proposal, decision);
      const failed: JsonObject = { proposal_id: id, error: verdict.justification, fallback: 'BLOCK' };
      switch (verdict.by) {
        case 'decision':
          return [...decided, ...draftAct(proposal, verdict)];
        case 'constraint':
          return [...decided, ['constraint_failed', failed], stopped(proposal, verdict)];
        case 'audit': {
          const fallback = verdict.act === 'defer' ? 'defer' : 'fail_closed';
          const level = verdict.decision.auditLevel ?? 'basic';
          const audit = { proposal_id: id, audit_level: level, audit_failed: true, fallback };
          return [
            ...decided,
            ['audit_required', audit],
            stopped(proposal, verdict),
            finished(proposal, 'AUDIT'),
          ];
        }
        case 'fail_mode': {
          const first = unanswered(proposal, verdict.why, verdict.mode, context);
          if (verdict.act !== 'run') return [first, stopped(proposal, verdict)];
          const note = 'FAIL_OPEN: not decided by CGF';
          return [first, ['action_executed', { ...ids(proposal, verdict), note }]];
        }
        case 'answer':
          return [['constraint_failed', failed], ...blockedInDraft(proposal, verdict)];
        case 'ledger':
          if (decision === undefined) return blockedInDraft(proposal, verdict);
          return [
            ...decided,
            ['enforcement_finished', { ...failed, decision: decision.decision }],
            // The draft puts off only what the server does.
            stopped(proposal, { ...verdict, act: 'block' }),
          ];
      }
    },
    // It has no event for it.
    withdrawn: () => [],
    done: (proposal, verdict, { ran, actualCost, outcomeHash }) => {
      const { id } = proposal;
      const of = ids(proposal, verdict);
      const decision = verdict.by === 'decision' ? verdict.decision : undefined;
      const constraint = decision?.decision === 'CONSTRAIN' ? decision.constraint : undefined;
      const applied = {
        modified_fields: constraint?.modified?.keys() ?? [],
        reason: decision?.reasonCode ?? '',
      };
      const took = { execution_time_ms: ran.durationMs };
      const enforced: readonly Told[] =
        decision === undefined
          ? []
          : [
              ['action_executed', { ...of, ...took }],
              ...(constraint === undefined
                ? []
                : [['constraint_applied', { proposal_id: id, ...applied }] as const]),
              finished(proposal, decision.decision),
            ];
      return [
        ...enforced,
        ['outcome_reported', { ...of, outcome_hash: outcomeHash }],
        [
          'outcome_logged',
          {
            ...{ ...of, executed: true, success: ran.outcome === 'success', duration_ms: ran.durationMs },
            ...(actualCost === undefined ? {} : { actual_cost: actualCost }),
          },
        ],
      ];
    },
  };
}

function finished({ id }: Proposal, decision: string): Told {
  return ['enforcement_finished', { proposal_id: id, decision, success: true }];
}

function draftDecided({ id }: Proposal, decision: LiveDecision): Told[] {
  const { decision: word, id: decision_id, confidence, justification, excised } = decision;
  const told: Told[] = [
    ['decision_made', { proposal_id: id, decision_id, decision: word, confidence, justification }],
  ];
  if (excised.length > 0) {
    const features = { proposal_id: id, feature_ids: [...excised], capacity_at_excision: {} };
    told.push(['excision_triggered', features]);
  }
  return [...told, ['enforcement_started', { proposal_id: id, decision: word }]];
}

function draftAct(proposal: Proposal, verdict: Verdict & { readonly by: 'decision' }): Told[] {
  const { decision, auditLevel } = verdict.decision;
  if (verdict.act !== 'run') return [stopped(proposal, verdict), finished(proposal, decision)];
  if (decision !== 'AUDIT') return [];
  return [['audit_required', { proposal_id: proposal.id, audit_level: auditLevel ?? 'basic' }]];
}

/** A block that the adapter itself decides, as the draft's own code does after a failure. */
function blockedInDraft(proposal: Proposal, verdict: Verdict): Told[] {
  const { justification } = verdict;
  const decided = { ...ids(proposal, verdict), decision: 'BLOCK', confidence: 1, justification };
  return [
    ['decision_made', decided],
    ['enforcement_started', { proposal_id: proposal.id, decision: 'BLOCK' }],
    stopped(proposal, { ...verdict, act: 'block' }),
    finished(proposal, 'BLOCK'),
  ];
}
