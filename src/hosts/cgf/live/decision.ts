/** A decision as CGF's server answers it: nested as the server does, or flat as the draft has it. Whatever is not right is refused. */

import type { SourceObject, SourceValue } from '../../../base/json/source-json.js';
import { listAt, numberAt, objectAt, textAt } from '../../shared/values.js';
import { type Constraint, constraintIn } from '../cases.js';
import { AUDIT_LEVELS, type Decision, isDecision } from '../vocabulary.js';

export interface LiveDecision {
  readonly decision: Decision;
  readonly id: string;
  readonly confidence: number;
  readonly justification: string;
  readonly reasonCode: string | undefined;
  readonly policyVersion: string | undefined;
  readonly rules: readonly string[];
  readonly constraint: (Constraint & { readonly allowedTools: readonly string[] | undefined }) | undefined;
  readonly auditLevel: string | undefined;
  readonly auditHooks: readonly string[];
  readonly excised: readonly string[];
}

/** Why an answer is none: a Code. */
export type DecisionFault = 'MALFORMED' | 'OTHER_PROPOSAL';

const ID = /^[\x21-\x7e]{1,128}$/;
const MAX_TEXT = 1_000;
const MAX_RULES = 32;
const WRONG = Symbol('of another type, or too long');

/** Reads the answer to a proposal. */
export function readDecision(answer: SourceObject, proposalId: string): LiveDecision | DecisionFault {
  const nested = objectAt(answer, 'decision');
  const body = nested ?? answer;
  const about = body.get('proposal_id');
  // The draft's flat answer names no proposal.
  if (about === undefined ? nested !== undefined : typeof about !== 'string') return 'MALFORMED';
  if (about !== undefined && about !== proposalId) return 'OTHER_PROPOSAL';
  const decision = textAt(body, 'decision');
  const id = textAt(body, 'decision_id');
  const confidence = Number(numberAt(body, 'confidence') ?? Number.NaN);
  if (!isDecision(decision) || id === undefined || !ID.test(id)) return 'MALFORMED';
  if (!(confidence >= 0 && confidence <= 1)) return 'MALFORMED';
  const texts = ['justification', 'reason_code', 'policy_version', 'audit_level'].map((name) =>
    optionalText(body.get(name)),
  );
  const rules = optionalTexts(body.get('matched_rule_ids'));
  const auditHooks = optionalTexts(body.get('audit_hooks'));
  const excised = optionalTexts(body.get('excised_features'));
  if (texts.includes(WRONG) || rules === undefined || auditHooks === undefined || excised === undefined)
    return 'MALFORMED';
  const [justification, reasonCode, policyVersion, auditLevel] = texts as (string | undefined)[];
  if (auditLevel !== undefined && !AUDIT_LEVELS.includes(auditLevel)) return 'MALFORMED';
  const constraint = constraintIn(body);
  const allowedTools = listAt(body, 'constraint', 'allowed_tools');
  return {
    ...{ decision, id, confidence, justification: justification ?? '', reasonCode, policyVersion },
    ...{ rules, auditLevel, auditHooks, excised },
    constraint: constraint && {
      ...constraint,
      allowedTools: allowedTools?.filter((name) => typeof name === 'string'),
    },
  };
}

function optionalText(value: SourceValue | undefined): string | typeof WRONG | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  return typeof value === 'string' && value.length <= MAX_TEXT ? value : WRONG;
}

function optionalTexts(value: SourceValue | undefined): readonly string[] | undefined {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_RULES) return undefined;
  const texts = (value as readonly SourceValue[]).filter((each) => typeof each === 'string');
  return texts.length === value.length ? texts : undefined;
}
