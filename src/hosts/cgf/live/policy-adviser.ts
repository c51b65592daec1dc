/** A policy bundle of CGF as an adviser of the gate: it says allow, constrain, audit, defer or block; the grants decide last. */

import { encodeBase64url, tryDecodeHex } from '../../../base/bytes/encoding.js';
import { NorthrootError } from '../../../base/error.js';
import { decodeSourceJson } from '../../../base/json/source-json.js';
import type { JsonObject, JsonValue } from '../../../base/json/value.js';
import { digestFromBase64url } from '../../../base/value/digest.js';
import type { Adviser, AdviserAnswer } from '../../../gate/advisers/adviser.js';
import { codeOf } from '../../shared/names.js';
import { numberAt, plainJson, textAt } from '../../shared/values.js';
import {
  evaluatePolicy,
  type PolicyBundle,
  policyInput,
  type PolicyRule,
  readPolicyBundle,
} from '../policy.js';
import { SearchBudget } from '../regex.js';
import { type Decision, isDecision } from '../vocabulary.js';
import { constrainedParams, type Proposal } from './proposal.js';

/** What a bundle says of a proposal. */
export interface Verdict {
  readonly decision: Decision;
  /** Of a rule, as the host's own server makes it of its id. */
  readonly code: string;
  readonly rule: string | undefined;
  readonly confidence: number;
  readonly version: string | undefined;
  readonly constraint: Constraint | undefined;
}

export interface Constraint {
  readonly type: string;
  readonly params: JsonObject;
}

/** The host's own, where no rule matches. */
const DEFAULT_CONFIDENCE = 0.85;
const NO_RULE = 'POLICY_MATCH';
const UNDECIDED = 'POLICY_NOT_DECIDED';

/** @throws NorthrootError `POLICY_INVALID` */
export function parsePolicy(bytes: Uint8Array): PolicyBundle {
  const decoded = decodeSourceJson(bytes);
  const bundle = decoded.ok ? readPolicyBundle(decoded.value) : undefined;
  const isWhole = bundle?.rules.every(({ decision }) => isDecision(decision)) === true;
  if (bundle === undefined || !isWhole)
    throw invalid('it is no policy bundle of CGF: an object with rules, each with an id and a decision');
  const { statedHash, computedHash } = bundle;
  if (statedHash !== undefined && statedHash !== computedHash)
    throw invalid(`its bundle_hash is not that of its content: expected ${computedHash}`);
  return bundle;
}

function invalid(message: string): NorthrootError {
  return new NorthrootError('POLICY_INVALID', `the policy: ${message}`);
}

/** What a bundle decides. What it cannot decide is blocked. */
export function judge(bundle: PolicyBundle, { body, signals }: Proposal): Verdict {
  const budget = new SearchBudget();
  const result = evaluatePolicy(bundle, policyInput(body, signals), budget);
  const { version } = bundle;
  if (!result.decided) {
    const { by } = result;
    return { decision: 'BLOCK', code: UNDECIDED, rule: by, confidence: 1, version, constraint: undefined };
  }
  const { rule } = result;
  return {
    decision: (rule?.decision ?? 'ALLOW') as Decision,
    code: rule === undefined ? NO_RULE : codeOf(rule.id),
    rule: rule?.id,
    confidence: confidenceOf(rule),
    version,
    constraint: rule === undefined ? undefined : constraintOf(rule, body),
  };
}

/** By the rule's id alone, for a decision that was made before. */
export function confidenceOf(rule: PolicyRule | undefined): number {
  const confidence = Number(rule?.confidence ?? DEFAULT_CONFIDENCE);
  return confidence >= 0 && confidence <= 1 ? confidence : DEFAULT_CONFIDENCE;
}

/** A constraint depends on the rule and the proposal alone, so that the same proposal gets the same one. */
function constraintOf(rule: PolicyRule, body: Proposal['body']): Constraint | undefined {
  if (rule.decision !== 'CONSTRAIN') return undefined;
  const params = { ...(plainJson(rule.constraintParams ?? null) as JsonObject | null) };
  if (params['target_namespace'] === '_quarantine_')
    params['target_namespace'] = `_quarantine_${plainTime(numberAt(body, 'timestamp'))}`;
  if (params['source_namespace'] === 'default')
    params['source_namespace'] = textAt(body, 'action_params', 'namespace') ?? 'default';
  return { type: rule.constraintType ?? 'unknown', params };
}

/** Digits alone, without an exponent or a sign. */
function plainTime(text = '0'): string {
  return /^\d{1,20}(?:\.\d{1,20})?$/.test(text) ? text : String(Math.trunc(Math.abs(Number(text)) % 1e15));
}

/**
 * The verdict as an adviser's answer.
 * @param isPlain - Whether adapters know ALLOW and BLOCK alone: what would bind them to more is denied
 */
export function verdictAdviser(
  bundle: PolicyBundle,
  verdict: Verdict,
  params: JsonValue,
  isPlain: boolean,
): Adviser {
  const bytes = tryDecodeHex(bundle.computedHash) as Uint8Array;
  return {
    name: 'cgf',
    policyDigest: digestFromBase64url(encodeBase64url(bytes)),
    advise: () => answerOf(verdict, params, isPlain),
  };
}

function answerOf(
  { decision, code, constraint }: Verdict,
  params: JsonValue,
  isPlain: boolean,
): AdviserAnswer {
  const denial: AdviserAnswer = { effect: 'deny', code, reason: `the policy says ${decision}` };
  if (decision === 'BLOCK' || (isPlain && decision !== 'ALLOW')) return denial;
  if (decision === 'DEFER') return { effect: 'ask', code };
  if (constraint === undefined) return { effect: 'permit', code };
  const { type, params: bound } = constraint;
  return { effect: 'rewrite', code, params: constrainedParams(params, { type, params: bound }) };
}
