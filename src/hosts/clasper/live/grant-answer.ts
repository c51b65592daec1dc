/** What Clasper answers to a request for an execution, and the grant that it makes. */

import { sha256Digest, type Digest } from '../../../base/value/digest.js';
import type { SourceObject, SourceValue } from '../../../base/json/source-json.js';
import { type Quantity, compareQuantities } from '../../../base/value/quantity.js';
import { parseTimestamp } from '../../../base/value/timestamp.js';
import type { Bounds, Check } from '../../../format/schema/generated/types.js';
import { notStated } from '../../shared/claims.js';
import { foreignCode } from '../../shared/live/foreign-code.js';
import { factText, sourceIdOf } from '../../shared/names.js';
import {
  amountOf,
  jcsDigest,
  listAt,
  numberAt,
  objectAt,
  textAt,
  timeOfText,
  valueAt,
} from '../../shared/values.js';
import { Capabilities, readScope, type Scope, textsAt } from '../scope.js';
import type { Answer } from './exchange.js';

const SYSTEM = 'clasper';
const ZERO: Quantity = { t: 'int', v: '0' };

export interface Asked {
  readonly executionId: string;
  readonly capabilities: readonly string[];
  /** Tools that need no more than those capabilities, by other names. */
  readonly tools: readonly string[];
  /** What a cost of 0 means, which the host writes where no budget is set. */
  readonly zeroCost: 'refuse' | 'unlimited';
}

/** A scope that can be held to: within what was asked for, with an end that is to come. */
export interface GrantedScope {
  readonly scope: Scope;
  readonly bounds: Bounds;
  /** As the answer states it, for what is reported. */
  readonly stated: { readonly capabilities: string[]; readonly max_steps: number; readonly max_cost: number };
}

export type RequestAnswer =
  | { readonly kind: 'allow'; readonly granted: GrantedScope }
  | { readonly kind: 'deny'; readonly code: string }
  | { readonly kind: 'pending'; readonly decisionId: string; readonly expiresAt: string | undefined };

/** Where an answer contradicts itself, names another execution or cannot be held to. */
export const INVALID = 'CLASPER_INVALID_RESPONSE';

/** Reads the answer to a request. */
export function readRequestAnswer(answer: Answer, asked: Asked): RequestAnswer {
  if (answer.kind === 'none')
    return { kind: 'deny', code: answer.why === 'PEER_ANSWER_INVALID' ? INVALID : 'CLASPER_UNREACHABLE' };
  const { status, body } = answer;
  if (status === 401 || status === 403) return { kind: 'deny', code: refusalOf(textAt(body, 'error')) };
  if (status !== 200 || body === undefined) return { kind: 'deny', code: INVALID };
  if (textAt(body, 'execution_id') !== asked.executionId) return { kind: 'deny', code: INVALID };
  const allowed = valueAt(body, 'allowed');
  const word = textAt(body, 'decision');
  if (allowed === true && (word === undefined || word === 'allow')) {
    const granted = readGranted(objectAt(body, 'granted_scope'), asked);
    return typeof granted === 'string' ? { kind: 'deny', code: granted } : { kind: 'allow', granted };
  }
  if (allowed === true) return { kind: 'deny', code: INVALID };
  const decisionId = textAt(body, 'decision_id');
  if (word === 'pending') {
    if (decisionId === undefined || !ID.test(decisionId)) return { kind: 'deny', code: INVALID };
    return { kind: 'pending', decisionId, expiresAt: timeOfText(textAt(body, 'expires_at')) };
  }
  const reason = textAt(body, 'blocked_reason') ?? '';
  return { kind: 'deny', code: reason === '' ? 'DENIED' : foreignCode('CLASPER', reason) };
}

/** Ids go into paths. */
const ID = /^[A-Za-z0-9._:-]{1,128}$/;

function refusalOf(error: string | undefined): string {
  if (error === 'Capability not allowed') return 'CAPABILITY_NOT_ALLOWED';
  return error === 'Adapter scope mismatch' ? 'ADAPTER_SCOPE_MISMATCH' : 'FORBIDDEN';
}

/** A granted scope, cut to what was asked for; why it is none, as a Code. */
export function readGranted(
  stated: SourceObject | undefined,
  { capabilities, tools, zeroCost }: Asked,
): GrantedScope | string {
  if (stated === undefined || listAt(stated, 'capabilities') === undefined) return INVALID;
  const given = textsAt(stated, 'capabilities').filter((name) => capabilities.includes(name));
  const [steps, cost] = ['max_steps', 'max_cost'].map((name) => numberAt(stated, name));
  const maxSteps = amountOf(steps);
  const maxCost = amountOf(cost);
  const expiresAt = timeOfText(textAt(stated, 'expires_at'));
  if (maxSteps?.t !== 'int' || maxCost === undefined || expiresAt === undefined) return INVALID;
  if (parseTimestamp(expiresAt) <= parseTimestamp(new Date().toISOString())) return 'GRANT_EXPIRED';
  if (given.length === 0) return 'CAPABILITY_NOT_ALLOWED';
  const isZero = compareQuantities(maxCost, ZERO) === 0;
  if (isZero && zeroCost === 'refuse') return 'MAX_COST_ZERO';
  const scope: Scope = { ...readScope(stated, tools), capabilities: new Set(given), expiresAt };
  const known = new Capabilities();
  known.note(given);
  const bounds = known.boundsOf(scope);
  if (bounds === undefined) return INVALID;
  return {
    ...{ scope, bounds },
    stated: { capabilities: given, max_steps: Number(steps), max_cost: Number(cost) },
  };
}

/** A grant, or a refusal of one, as it is recorded. */
export interface GrantDraft {
  readonly principalId: string;
  readonly decision: 'allow' | 'deny';
  readonly code: string;
  readonly intent: SourceValue | undefined;
  /** The answer that it rests on; undefined where there is none. */
  readonly answer: Answer;
  /** Names it among what Clasper decided. */
  readonly sourceId: string;
  readonly bounds?: Bounds | undefined;
  readonly checks?: readonly Check[] | undefined;
  /** The grant that it is delegated from. */
  readonly parent?: Digest | undefined;
}

/** The digest of a request's intent. */
export function intentOf(intent: SourceValue | undefined): Digest {
  return jcsDigest(intent) ?? notStated(SYSTEM, 'intent');
}

/** The event of a grant, under the names that an import of the same answer gives it. */
export function draftClasperGrant(draft: GrantDraft): object {
  const { principalId, decision, code, intent, answer, sourceId, bounds, checks = [], parent } = draft;
  const body = answer.kind === 'answered' ? answer.body : undefined;
  const [first] = textsAt(body, 'matched_policies');
  const hasList = listAt(body, 'matched_policies') !== undefined;
  const policy = first ?? (hasList ? 'clasper:no-match' : 'clasper:not-stated');
  return {
    event_type: 'authorization',
    principal_id: principalId,
    intents: { intent_digest: { ...intentOf(intent) } },
    policy_id: policy === '' ? 'clasper:not-stated' : factText(policy),
    policy_digest: { ...(jcsDigest(valueAt(body, 'decision_trace')) ?? notStated(SYSTEM, 'policy')) },
    decision,
    decision_code: code,
    ...(checks.length === 0 ? {} : { checks }),
    ...(answer.kind === 'none'
      ? {}
      : { source: { system: SYSTEM, id: sourceIdOf(sourceId), digest: { ...sha256Digest(answer.bytes) } } }),
    authorization: {
      kind: 'grant',
      bounds: bounds ?? {},
      ...(parent === undefined ? {} : { grant_event_id: { ...parent } }),
    },
  };
}
