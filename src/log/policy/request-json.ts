/** Requests for approval as JSON: of `approvals --format json`, and of the service. */

import { encodeBase64 } from '../../base/bytes/encoding.js';
import { defined } from '../../base/defined.js';
import { decimalsOf } from '../../rules/report/accounts.js';
import { readableContent } from '../contents/readable-content.js';
import type { PendingApproval } from './approve.js';
import type { RequestContent, RequestView } from './explain-request.js';

/** What the list and the view of one request have in common. */
function membersOf({
  need,
  ...request
}: Omit<PendingApproval, 'status' | 'approvals'> & { readonly status: string }): object {
  return {
    event_id: request.eventId,
    seq: request.seq,
    status: request.status,
    principal_id: request.principalId,
    occurred_at: request.occurredAt,
    tool_name: request.toolName,
    tool_params_digest: request.paramsDigest,
    meter_reservation: request.reservation,
    grant_event_id: request.grantId,
    need:
      need === undefined
        ? null
        : { grant_event_id: need.grantId, approvers: need.approvers, count: need.count },
  };
}

/** A request of the list. */
export function pendingJson(request: PendingApproval): object {
  return {
    ...membersOf(request),
    approvals: request.approvals.map(({ eventId, principalId }) => ({
      event_id: eventId,
      principal_id: principalId,
    })),
  };
}

/** One request, with its parameters and all that its approver has to know. */
export function requestJson(request: RequestView): object {
  const { content, rules, approvals: given, rejected, grants, answer, wouldAllow } = request;
  return {
    ...membersOf(request),
    decision_code: request.decisionCode,
    tool_params: contentJson(content),
    rules: rules.map((rule) => ({
      grant_event_id: rule.grantId,
      tools: rule.tools,
      ...defined({ above: rule.above }),
      approvers: rule.approvers,
      count: rule.count,
      ...defined({ max_age_s: rule.maxAgeSeconds }),
      approval_event_ids: rule.approvalIds,
    })),
    approvals: given.map((each) => ({
      event_id: each.eventId,
      seq: each.seq,
      principal_id: each.principalId,
      occurred_at: each.occurredAt,
      ...defined({ expires_at: each.expiresAt, meter_limit: each.limit }),
      signers: each.signers,
      counts: each.counts,
    })),
    ...defined({ expires_at: request.expiresAt }),
    rejected:
      rejected === undefined ? null : { event_id: rejected.eventId, principal_id: rejected.principalId },
    grants: grants.map((grant) => ({
      event_id: grant.eventId,
      seq: grant.seq,
      principal_id: grant.principalId,
      ...defined({ expires_at: grant.expiresAt, withdrawn: grant.withdrawn }),
      meters: grant.balances,
      decimals: decimalsOf(grant.balances),
    })),
    answer: {
      decision: answer.decision,
      decision_code: answer.decisionCode,
      ...defined({ reason: answer.reason }),
    },
    would_allow: { meter_limit: wouldAllow.limit, until: wouldAllow.until ?? null },
  };
}

function contentJson(content: RequestContent): object {
  const { status, file = null } = content;
  if (content.status === 'unreadable') return { status, file, error_code: content.error.code };
  if (content.status !== 'attached') return { status, file };
  const readable = readableContent(content.bytes);
  return {
    status,
    file,
    size_bytes: content.bytes.length,
    ...('json' in readable
      ? { value: readable.json }
      : 'text' in readable
        ? { text: readable.text }
        : { base64: encodeBase64(readable.bytes) }),
  };
}
