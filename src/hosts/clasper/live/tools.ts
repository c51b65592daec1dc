/** Tools: each call is decided under its execution's grant, and its token names the decision. */

import { randomUUID } from 'node:crypto';
import type { SourceObject } from '../../../base/json/source-json.js';
import type { JsonObject } from '../../../base/json/value.js';
import { stableHash } from '../../shared/forms/stable.js';
import { toolOf } from '../../shared/names.js';
import { objectAt, plainJson, textAt } from '../../shared/values.js';
import { EXECUTION_TOOL } from '../scope.js';
import { assertOf } from './adapters.js';
import { isAllow, isAsk } from './executions.js';
import { signJwt } from './jwt.js';
import {
  type Asked,
  costKeyOf,
  EMPTY,
  noteDecision,
  ownExecution,
  readJson,
  recordDenial,
  secondsOf,
  ttlOf,
} from './office.js';
import { checkFields, invalidPayload } from './refusal.js';

/** How long a tool's token can be used, in seconds. */
export const TOOL_TOKEN_SECONDS = 30;

/** Answers `POST /api/governance/tool/authorize`. */
export async function authorizeTool(asked: Asked, body: SourceObject): Promise<object> {
  checkFields(body, {
    execution_id: 'id',
    adapter_id: 'text',
    tool: 'id',
    requested_scope: 'object?',
    tenant_id: 'text?',
    workspace_id: 'text?',
  });
  const { adapter, gate, book, settings, facts } = asked;
  assertOf(body, adapter, false);
  const [executionId, tool] = [textAt(body, 'execution_id') ?? '', textAt(body, 'tool') ?? ''];
  const scope = objectAt(body, 'requested_scope') ?? EMPTY;
  const params = plainJson(scope) as JsonObject | undefined;
  if (params === undefined)
    throw invalidPayload({ requested_scope: 'Expected values that can be held exactly' });
  const known = ownExecution(asked, executionId);
  const grant = book.grant(known?.grantId ?? '');
  const { open } =
    known === undefined ? {} : await gate.ledger.findCall(adapter.principal, costKeyOf(executionId));
  const isOwn = toolOf(tool) === EXECUTION_TOOL;
  // The execution may have been asked for by another token, for more.
  const isStated = adapter.capabilities.some((each) => isWithin(toolOf(tool), toolOf(each)));
  if (grant === undefined || open === undefined || isOwn || !isStated) {
    const [code, reason] = isOwn
      ? ['TOOL_NOT_ALLOWED', 'it stands for executions']
      : grant === undefined
        ? ['EXECUTION_NOT_ALLOWED', 'the execution was not allowed']
        : open === undefined
          ? ['EXECUTION_ENDED', 'the execution has reported its cost']
          : ['CAPABILITY_NOT_ALLOWED', 'the token has not the capability'];
    await recordDenial(asked, params, code, reason, { tool: toolOf(tool) });
    return { decision: 'deny', reason: 'policy_denied', policy_id: code.toLowerCase() };
  }
  const jti = randomUUID();
  const decision = await gate.decide({
    ref: jti,
    session: executionId,
    principal: adapter.principal,
    grantId: grant.id,
    tool: toolOf(tool),
    params,
    ttlMs: ttlOf(asked, grant.expiresAt),
    coverage: 'hook',
  });
  noteDecision(facts, adapter, decision, toolOf(tool));
  if (!isAllow(decision)) {
    const isPending = isAsk(decision);
    return {
      decision: 'deny',
      reason: isPending ? 'approval_required' : 'policy_denied',
      policy_id: grant.parentId,
      ...(isPending ? { request_id: decision.authorization } : {}),
    };
  }
  const granted = decision.effect === 'rewrite' ? (decision.params as JsonObject) : params;
  const hash = decision.effect === 'rewrite' ? stableHash(readJson(granted)) : stableHash(scope);
  const issued = secondsOf(gate.ledger.now());
  const claims = {
    typ: 'tool_auth',
    tenant_id: adapter.tenant,
    workspace_id: adapter.workspace,
    adapter_id: adapter.adapterId,
    execution_id: executionId,
    tool,
    scope: granted,
    scope_hash: hash,
    iat: issued,
    exp: issued + TOOL_TOKEN_SECONDS,
    jti,
  };
  return {
    decision: 'allow',
    tool_token: signJwt(claims, settings.secrets.tool),
    expires_at: new Date(claims.exp * 1000).toISOString(),
    granted_scope: granted,
    policy: {
      decision: 'allow',
      matched_policies: [grant.parentId],
      decision_trace: [],
      explanation: 'within the grant',
    },
  };
}

/** Whether a tool has a capability's name, or lies below it. */
function isWithin(tool: string, capability: string): boolean {
  return tool === capability || tool.startsWith(`${capability}.`);
}
