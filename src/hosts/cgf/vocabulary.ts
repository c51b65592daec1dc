/**
 * The four vocabularies in which CGF's hosts write events: the draft, the ratified one, the SDK's base adapter and the OpenClaw plugin.
 * They share names and differ in the envelope, in what a payload must hold, and in which events there are at all.
 */

import { SourceNumber, type SourceObject } from '../../base/json/source-json.js';
import { textAt, valueAt } from '../shared/values.js';

/** Which vocabulary an event is written in. */
export type Vocabulary = 'draft' | 'ratified' | 'sdk' | 'plugin';

/** What an event says, whatever the vocabulary calls it. */
export type Kind =
  | 'registered'
  | 'disconnected'
  | 'proposal'
  | 'decision'
  | 'rejected'
  | 'enacted'
  | 'expired'
  | 'revoked'
  | 'started'
  | 'finished'
  | 'executing'
  | 'blocked'
  | 'deferred'
  | 'constraint-applied'
  | 'constraint-failed'
  | 'audit-required'
  | 'outcome-reported'
  | 'outcome'
  | 'fail-mode'
  | 'side-effect'
  | 'other';

const KINDS: ReadonlyMap<string, Kind> = new Map([
  ['adapter_registered', 'registered'],
  ['adapter_disconnected', 'disconnected'],
  ['proposal_received', 'proposal'],
  ['proposal_enacted', 'enacted'],
  ['proposal_expired', 'expired'],
  ['proposal_revoked', 'revoked'],
  ['decision_made', 'decision'],
  ['decision_rejected', 'rejected'],
  ['enforcement_started', 'started'],
  ['enforcement_finished', 'finished'],
  ['action_executed', 'executing'],
  ['action_allowed', 'executing'],
  ['action_constrained', 'executing'],
  ['action_audited', 'executing'],
  ['action_blocked', 'blocked'],
  ['action_deferred', 'deferred'],
  ['constraint_applied', 'constraint-applied'],
  ['constraint_failed', 'constraint-failed'],
  ['audit_required', 'audit-required'],
  ['outcome_reported', 'outcome-reported'],
  ['outcome_logged', 'outcome'],
  ['cgf_unreachable', 'fail-mode'],
  ['evaluate_timeout', 'fail-mode'],
  ['side_effect_reported', 'side-effect'],
]);

/** What an event of this type says. */
export function kindOf(type: string): Kind {
  return KINDS.get(type) ?? 'other';
}

/** A member that must be there: its name and type, `s` a text, `n` a number, `a` anything. */
type Field = readonly [name: string, type: 's' | 'n' | 'a'];
type Types = Readonly<Record<string, readonly Field[]>>;

const PROPOSAL: Field = ['proposal_id', 's'];
const DECISION: Field = ['decision_id', 's'];
const IDS = [PROPOSAL, DECISION];

/**
 * Of the draft, the table of its §5.1 but for what its own reference code leaves out: the timestamp of payloads (the envelope has one),
 * `timeout_ms` of evaluate_timeout, `success` of a failed enforcement, `execution_time_ms` of what ran without a decision.
 */
const DRAFT: Types = {
  adapter_registered: [
    ['adapter_id', 's'],
    ['host_type', 's'],
  ],
  proposal_received: [PROPOSAL, ['action_type', 's'], ['risk_tier', 's']],
  decision_made: [PROPOSAL, ['decision', 's'], ['confidence', 'n'], DECISION],
  enforcement_started: [PROPOSAL, ['decision', 's']],
  enforcement_finished: [PROPOSAL],
  action_executed: [PROPOSAL],
  action_blocked: [PROPOSAL, ['justification', 's']],
  action_deferred: [PROPOSAL, ['escalation_path', 'a']],
  constraint_applied: [PROPOSAL, ['modified_fields', 'a'], ['reason', 's']],
  constraint_failed: [PROPOSAL, ['error', 's'], ['fallback', 's']],
  audit_required: [PROPOSAL, ['audit_level', 'a']],
  outcome_reported: [PROPOSAL, ['outcome_hash', 's']],
  outcome_logged: [PROPOSAL, ['executed', 'a'], ['success', 'a'], ['duration_ms', 'a']],
  cgf_unreachable: [PROPOSAL, ['fail_mode', 's'], ['risk_tier', 's']],
  evaluate_timeout: [PROPOSAL, ['fail_mode', 's'], ['risk_tier', 's']],
  capacity_exceeded: [
    ['capacity_axis', 'a'],
    ['threshold', 'a'],
    ['current_value', 'a'],
  ],
  excision_triggered: [
    ['feature_ids', 'a'],
    ['capacity_at_excision', 'a'],
  ],
  adapter_disconnected: [
    ['adapter_id', 's'],
    ['reason', 's'],
  ],
};

const RATIFIED: Types = {
  adapter_registered: [
    ['adapter_id', 's'],
    ['host_type', 's'],
    ['version', 's'],
  ],
  adapter_disconnected: [
    ['adapter_id', 's'],
    ['reason', 's'],
  ],
  proposal_received: [PROPOSAL, ['action_type', 's'], ['action_params_hash', 's'], ['risk_tier', 's']],
  proposal_enacted: IDS,
  proposal_expired: [PROPOSAL, ['expired_at', 'n']],
  proposal_revoked: [PROPOSAL, ['revoked_by', 's']],
  decision_made: [...IDS, ['decision_type', 's'], ['confidence', 'n'], ['justification', 's']],
  decision_rejected: [...IDS, ['rejection_reason', 's']],
  action_allowed: IDS,
  action_blocked: [...IDS, ['justification', 's'], ['reason_code', 's']],
  action_constrained: [...IDS, ['constraint_type', 's']],
  action_deferred: [...IDS, ['deferred_until', 'n']],
  action_audited: [...IDS, ['audit_level', 's']],
  errors: [
    ['error_type', 's'],
    ['message', 's'],
  ],
  constraint_failed: [
    ['constraint_type', 's'],
    ['error', 's'],
  ],
  cgf_unreachable: [PROPOSAL, ['endpoint', 's'], ['error_type', 's']],
  evaluate_timeout: [PROPOSAL, ['timeout_ms', 'n']],
  outcome_logged: IDS,
  side_effect_reported: [PROPOSAL, ['side_effect_type', 's']],
};

const SDK: Types = {
  adapter_registered: [['adapter_id', 'a']],
  adapter_disconnected: [],
  proposal_received: [PROPOSAL, ['action_type', 's']],
  proposal_enacted: IDS,
  proposal_expired: [PROPOSAL],
  proposal_revoked: [PROPOSAL],
  decision_made: [...IDS, ['decision', 's'], ['confidence', 'a']],
  decision_rejected: IDS,
  action_allowed: [PROPOSAL],
  action_blocked: [PROPOSAL],
  action_constrained: [PROPOSAL],
  action_deferred: [PROPOSAL],
  action_audited: [PROPOSAL],
  errors: [],
  constraint_failed: [PROPOSAL],
  cgf_unreachable: [PROPOSAL, ['fail_mode', 's'], ['risk_tier', 's']],
  evaluate_timeout: [PROPOSAL],
  outcome_logged: IDS,
  side_effect_reported: [PROPOSAL],
};

const PLUGIN: Types = {
  adapter_registered: [['adapter_id', 's']],
  decision_made: [...IDS, ['decision', 's']],
  tool_alias_applied: [
    ['tool_name', 's'],
    ['policy_tool_name', 's'],
  ],
  cgf_unreachable: [['stage', 's']],
  outcome_logged: [...IDS, ['success', 'a']],
  errors: [['stage', 's']],
};

const TYPES: Readonly<Record<Vocabulary, Types>> = {
  draft: DRAFT,
  ratified: RATIFIED,
  sdk: SDK,
  plugin: PLUGIN,
};

/** Whether the vocabulary has the type. */
export function hasType(vocabulary: Vocabulary, type: string): boolean {
  return Object.hasOwn(TYPES[vocabulary], type);
}

/** The vocabulary that an event's envelope is of. */
export function vocabularyOf(event: SourceObject): Vocabulary {
  const type = textAt(event, 'event_type') ?? '';
  if (event.has('event_type_enum') || event.has('correlation_id')) return 'draft';
  if (event.has('data') && !event.has('payload')) return 'sdk';
  if (event.has('proposal_id') || event.has('decision_id')) return 'ratified';
  if (
    !event.has('schema_version') ||
    (hasType('draft', type) && !hasType('plugin', type) && !hasType('ratified', type))
  )
    return 'draft';
  return 'plugin';
}

/** The members that an event's payload must hold and that are missing, or of another type; an id may be in the envelope alone. */
export function missingFields(
  vocabulary: Vocabulary,
  type: string,
  payload: SourceObject,
  envelope: SourceObject,
): readonly string[] {
  const fields = [...(hasType(vocabulary, type) ? TYPES[vocabulary][type]! : [])];
  if (vocabulary === 'draft') {
    // What ran without a decision says so in a note instead; a failed enforcement has an error instead.
    if (type === 'action_executed' && !payload.has('note')) fields.push(['execution_time_ms', 'a']);
    if (type === 'enforcement_finished' && !payload.has('error')) fields.push(['success', 'a']);
  }
  return fields
    .filter(([name, wanted]) => {
      const inEnvelope = vocabulary === 'sdk' && (name === 'proposal_id' || name === 'decision_id');
      const value = valueAt(inEnvelope ? envelope : payload, name);
      if (wanted === 's') return typeof value !== 'string';
      return wanted === 'n' ? !(value instanceof SourceNumber) : value === undefined;
    })
    .map(([name]) => name);
}

const DECISIONS = ['ALLOW', 'CONSTRAIN', 'AUDIT', 'DEFER', 'BLOCK'] as const;
/** One of the five. */
export type Decision = (typeof DECISIONS)[number];

/** Whether the text is one of the five. */
export function isDecision(text: string | undefined): text is Decision {
  return DECISIONS.includes(text as Decision);
}

/** What is to happen while nobody decides, from the least to the most careful. */
export const FAIL_MODES = ['fail_open', 'defer', 'fail_closed'] as const;
/** One of the three. */
export type FailMode = (typeof FAIL_MODES)[number];

/** Whether the text is one of the three. */
export function isFailMode(text: string | undefined): text is FailMode {
  return FAIL_MODES.includes(text as FailMode);
}

export const ACTION_TYPES: readonly string[] = ['tool_call', 'message_send', 'memory_write', 'workflow_step'];
export const AUDIT_LEVELS: readonly string[] = ['basic', 'deep', 'human'];
/** The values that members of an action's params may have. */
export const PARAM_VALUES: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  message_send: {
    recipient_type: ['user', 'system', 'channel'],
    message_type: ['text', 'structured', 'file'],
  },
  memory_write: {
    operation: ['create', 'update', 'delete', 'append'],
    sensitivity_hint: ['low', 'medium', 'high'],
  },
};
export const RISK_TIERS: readonly string[] = ['low', 'medium', 'high'];

/** Whether a schema_version is one that the ratified schemas accept. */
export function isCompatible(version: string): boolean {
  return version === '0.3.0' || /^0\.2\.\d{1,9}$/.test(version);
}
