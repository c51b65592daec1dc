/** Decisions of the gate as CGF's five, and as the server writes them. */

import type { JsonObject, JsonValue } from '../../../base/json/value.js';
import { fromDigestText } from '../../../base/value/digest.js';
import type { Decision } from '../vocabulary.js';

export const SCHEMA_VERSION = '0.3.0';

export interface Answer {
  readonly adapterId: string;
  readonly proposalId: string;
  readonly decisionId: string;
  readonly decision: Decision;
  readonly code: string;
  readonly rule: string | undefined;
  /** Of the policy that decided. */
  readonly version: string | undefined;
  readonly confidence: number;
  readonly constraint: { readonly type: string; readonly params: JsonObject } | undefined;
  readonly justification: string;
  /** In words, where they are known: what a repeated answer need not have. */
  readonly explanation: string | undefined;
  /** A Timestamp. */
  readonly at: string;
}

/** Of the grants, where no bundle decided. */
export const GRANTS_VERSION = 'northroot/grants/1';
const ID_LENGTH = 12;
const MAX_JUSTIFICATION = 200;

/** A decision's id is made of that of its record, so that it says the same after a restart: 72 bits of it. */
export function decisionIdOf(authorization: string): string {
  return `dec-${fromDigestText(authorization).slice(0, ID_LENGTH)}`;
}

/** By what is recorded alone. */
export function justificationOf({
  decision,
  code,
  rule,
}: Pick<Answer, 'decision' | 'code' | 'rule'>): string {
  const by = rule === undefined ? 'the grants' : `rule ${rule}`;
  const words: Readonly<Record<Decision, string>> = {
    ALLOW: rule === undefined ? 'within the grants' : `allowed by ${by}, within the grants`,
    CONSTRAIN: `constrained by ${by}`,
    AUDIT: `to be audited by ${by}`,
    DEFER: 'an approval is required',
    BLOCK: `denied: ${code}`,
  };
  return words[decision].slice(0, MAX_JUSTIFICATION);
}

/** As the server writes a decision. */
export function writeAnswer(answer: Answer): Readonly<Record<string, JsonValue>> {
  const { decisionId, proposalId, decision, confidence, justification, code, constraint, rule } = answer;
  return {
    schema_version: SCHEMA_VERSION,
    decision_id: decisionId,
    proposal_id: proposalId,
    decision,
    confidence,
    justification,
    reason_code: code,
    constraint: constraint === undefined ? null : { type: constraint.type, params: constraint.params },
    excised_features: null,
    policy_version: answer.version ?? GRANTS_VERSION,
    matched_rule_ids: rule === undefined ? [] : [rule],
    explanation_text: answer.explanation ?? justification,
  };
}

/** What stands in an answer that refuses to decide, for adapters that look at no status. */
export function blockedAnswer(proposalId: string, code: string): Readonly<Record<string, JsonValue>> {
  const justification = justificationOf({ decision: 'BLOCK', code, rule: undefined });
  return {
    schema_version: SCHEMA_VERSION,
    decision_id: 'dec-none',
    proposal_id: proposalId,
    decision: 'BLOCK',
    confidence: 1,
    justification,
    reason_code: code,
    constraint: null,
  };
}
