/**
 * The four vocabularies in which CGF's hosts write events: the draft, the ratified one, the SDK's base adapter and the OpenClaw plugin.
 * They share names and differ in the envelope, in what a payload must hold, and in which events there are at all.
 */

import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { textAt, valueAt } from '../shared/values.js';

export type Vocabulary = 'draft' | 'ratified' | 'sdk' | 'plugin';

const KINDS = {
  adapter_registered: 'registered',
  adapter_disconnected: 'disconnected',
  proposal_received: 'proposal',
  proposal_enacted: 'enacted',
  proposal_expired: 'expired',
  proposal_revoked: 'revoked',
  decision_made: 'decision',
  decision_rejected: 'rejected',
  enforcement_started: 'started',
  enforcement_finished: 'finished',
  action_executed: 'executing',
  action_allowed: 'executing',
  action_constrained: 'executing',
  action_audited: 'executing',
  action_blocked: 'blocked',
  action_deferred: 'deferred',
  constraint_applied: 'constraint-applied',
  constraint_failed: 'constraint-failed',
  audit_required: 'audit-required',
  outcome_reported: 'outcome-reported',
  outcome_logged: 'outcome',
  cgf_unreachable: 'fail-mode',
  evaluate_timeout: 'fail-mode',
  side_effect_reported: 'side-effect',
} as const;

/** What an event says, whatever the vocabulary calls it. */
export type Kind = (typeof KINDS)[keyof typeof KINDS] | 'other';

/** What an event of this type says. */
export function kindOf(type: string): Kind {
  return Object.hasOwn(KINDS, type) ? KINDS[type as keyof typeof KINDS] : 'other';
}

/**
 * The members that a payload must hold, by the event's type: texts; `NAME#` is a number, `NAME?` of any type.
 */
type Types = Readonly<Record<string, string>>;

const PROPOSAL = 'proposal_id';
const IDS = 'proposal_id decision_id';

/**
 * Of the draft, the table of its §5.1 but for what its own reference code leaves out: the timestamp of payloads (the envelope has one),
 * `timeout_ms` of evaluate_timeout, `success` of a failed enforcement, `execution_time_ms` of what ran without a decision.
 */
const DRAFT: Types = {
  adapter_registered: 'adapter_id host_type',
  proposal_received: 'proposal_id action_type risk_tier',
  decision_made: 'proposal_id decision confidence# decision_id',
  enforcement_started: 'proposal_id decision',
  enforcement_finished: PROPOSAL,
  action_executed: PROPOSAL,
  action_blocked: 'proposal_id justification',
  action_deferred: 'proposal_id escalation_path?',
  constraint_applied: 'proposal_id modified_fields? reason',
  constraint_failed: 'proposal_id error fallback',
  audit_required: 'proposal_id audit_level?',
  outcome_reported: 'proposal_id outcome_hash',
  outcome_logged: 'proposal_id executed? success? duration_ms?',
  cgf_unreachable: 'proposal_id fail_mode risk_tier',
  evaluate_timeout: 'proposal_id fail_mode risk_tier',
  capacity_exceeded: 'capacity_axis? threshold? current_value?',
  excision_triggered: 'feature_ids? capacity_at_excision?',
  adapter_disconnected: 'adapter_id reason',
};

const RATIFIED: Types = {
  adapter_registered: 'adapter_id host_type version',
  adapter_disconnected: 'adapter_id reason',
  proposal_received: 'proposal_id action_type action_params_hash risk_tier',
  proposal_enacted: IDS,
  proposal_expired: 'proposal_id expired_at#',
  proposal_revoked: 'proposal_id revoked_by',
  decision_made: 'proposal_id decision_id decision_type confidence# justification',
  decision_rejected: 'proposal_id decision_id rejection_reason',
  action_allowed: IDS,
  action_blocked: 'proposal_id decision_id justification reason_code',
  action_constrained: 'proposal_id decision_id constraint_type',
  action_deferred: 'proposal_id decision_id deferred_until#',
  action_audited: 'proposal_id decision_id audit_level',
  errors: 'error_type message',
  constraint_failed: 'constraint_type error',
  cgf_unreachable: 'proposal_id endpoint error_type',
  evaluate_timeout: 'proposal_id timeout_ms#',
  outcome_logged: IDS,
  side_effect_reported: 'proposal_id side_effect_type',
};

const SDK: Types = {
  adapter_registered: 'adapter_id?',
  adapter_disconnected: '',
  proposal_received: 'proposal_id action_type',
  proposal_enacted: IDS,
  proposal_expired: PROPOSAL,
  proposal_revoked: PROPOSAL,
  decision_made: 'proposal_id decision_id decision confidence?',
  decision_rejected: IDS,
  action_allowed: PROPOSAL,
  action_blocked: PROPOSAL,
  action_constrained: PROPOSAL,
  action_deferred: PROPOSAL,
  action_audited: PROPOSAL,
  errors: '',
  constraint_failed: PROPOSAL,
  cgf_unreachable: 'proposal_id fail_mode risk_tier',
  evaluate_timeout: PROPOSAL,
  outcome_logged: IDS,
  side_effect_reported: PROPOSAL,
};

const PLUGIN: Types = {
  adapter_registered: 'adapter_id',
  decision_made: 'proposal_id decision_id decision',
  tool_alias_applied: 'tool_name policy_tool_name',
  cgf_unreachable: 'stage',
  outcome_logged: 'proposal_id decision_id success?',
  errors: 'stage',
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
  const fields = hasType(vocabulary, type) ? TYPES[vocabulary][type]!.split(' ') : [];
  if (vocabulary === 'draft') {
    // What ran without a decision says so in a note instead; a failed enforcement has an error instead.
    if (type === 'action_executed' && !payload.has('note')) fields.push('execution_time_ms?');
    if (type === 'enforcement_finished' && !payload.has('error')) fields.push('success?');
  }
  return fields.flatMap((field) => {
    const [name, wanted] = [field.replace(/[#?]$/, ''), field.at(-1)];
    const inEnvelope = vocabulary === 'sdk' && (name === 'proposal_id' || name === 'decision_id');
    const value = valueAt(inEnvelope ? envelope : payload, name);
    if (field === '' || (wanted === '?' && value !== undefined)) return [];
    const isRight =
      wanted === '#' ? value instanceof SourceNumber : wanted !== '?' && typeof value === 'string';
    return isRight ? [] : [name];
  });
}

export const DECISIONS = ['ALLOW', 'CONSTRAIN', 'AUDIT', 'DEFER', 'BLOCK'] as const;
export type Decision = (typeof DECISIONS)[number];

/** Whether the text is one of the five. */
export function isDecision(text: string | undefined): text is Decision {
  return DECISIONS.includes(text as Decision);
}

/** What is to happen while nobody decides, from the least to the most careful. */
export const FAIL_MODES = ['fail_open', 'defer', 'fail_closed'] as const;
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

/** The members of a proposal that say what is meant, as far as they are there. */
export function intentIn(body: SourceObject): SourceObject {
  const members = ['action_type', 'action_params', 'context_refs', 'risk_tier'].flatMap(
    (name): [string, SourceValue][] => (body.has(name) ? [[name, body.get(name)!]] : []),
  );
  return new SourceObject(new Map(members));
}
