/** The kinds of ledgers that are measured: what stands at their beginning, and what follows by the million. */

import { meters, sha256Digest } from '../../dist/api/index.js';
import { actionDraft, executionDraft, grantDraft, idOf } from '../ledger.js';
import { slotDigest, slotTime } from './event-template.js';

/** Actions of one block come before the executions of it, so that some hundreds are open at a time. */
export const BLOCK = 1_000;
const START = Date.parse('2026-01-01T00:00:00Z');
export const at = (second) => new Date(START + second * 1000).toISOString();

/**
 * `signed`: whether each record is. `keys`: how many keys sign in rotation, beside the ledger's own. `grants`: drafts of the grants that
 * stand first, each given the id of the one before it. `lines`: what follows, under the last of them.
 */
export const KINDS = {
  /** Half actions, half their executions, each signed by one key. */
  signed: { signed: true, keys: 0, grants: [grantDraft], lines: 'pairs' },
  /** The same, sealed by signed checkpoints and with no other signatures. */
  sealed: { signed: false, keys: 0, grants: [grantDraft], lines: 'pairs' },
  /** As `signed`, by a thousand keys in rotation. */
  keys: { signed: true, keys: 1_000, grants: [grantDraft], lines: 'pairs' },
  /** As `sealed`, under the last of three grants one below the other, which cap each action too. */
  linked: { signed: false, keys: 0, grants: delegatedGrants(), lines: 'pairs' },
  /** The lines of `linked`, but for the types of their events, by which no rule holds. */
  extension: { signed: false, keys: 0, grants: delegatedGrants(), lines: 'pairs', prefix: 'x.' },
  /** Actions that are never executed. */
  open: { signed: false, keys: 0, grants: [grantDraft], lines: 'actions' },
  /** Executions under a grant with two rates; one has a window that none of a million leaves. */
  limited: { signed: false, keys: 0, grants: [limitedGrantDraft], lines: 'executions' },
};

function limitedGrantDraft() {
  const draft = grantDraft();
  const bounds = {
    ...draft.authorization.bounds,
    rate_limits: meters({ 'calls.per_min': 10n ** 6n, 'usd.per_30d': 10n ** 9n }),
  };
  return { ...draft, authorization: { kind: 'grant', bounds } };
}

function delegatedGrants() {
  const most = meters({ calls: 1n, 'time.ms': 1_000n, usd: '1', 'tokens.input': 10_000n });
  return [0, 1, 2].map((depth) => (parentId) => {
    const draft = grantDraft();
    const bounds = { ...draft.authorization.bounds, action_caps: most };
    return {
      ...draft,
      context_digest: sha256Digest(Buffer.from(`grant ${depth}`)),
      authorization: {
        kind: 'grant',
        bounds,
        ...(parentId !== undefined && { grant_event_id: idOf(parentId) }),
      },
    };
  });
}

/** The drafts of the lines of a kind, with the slots that their templates need. */
export function lineDrafts(grantId, prefix = '') {
  const [context, auth] = [slotDigest('context'), slotDigest('auth')];
  const [occurredAt, startedAt, endedAt] = [slotTime(51), slotTime(52), slotTime(53)];
  const typed = (draft) => ({ ...draft, event_type: `${prefix}${draft.event_type}` });
  const times = { occurred_at: occurredAt, started_at: startedAt, ended_at: endedAt };
  const slots = { [occurredAt]: 'occurredAt', [startedAt]: 'startedAt', [endedAt]: 'endedAt' };
  const underGrant = { ...executionDraft(grantId, 0, 0), ...times, context_digest: context };
  return {
    action: {
      draft: typed({ ...actionDraft(grantId, 0), occurred_at: occurredAt, context_digest: context }),
      slots: { [occurredAt]: 'occurredAt', [context.b64]: 'context' },
    },
    execution: {
      draft: typed({ ...executionDraft(grantId, 0, 0), ...times, auth_event_id: auth }),
      slots: { ...slots, [auth.b64]: 'auth' },
    },
    underGrant: { draft: typed(underGrant), slots: { ...slots, [context.b64]: 'context' } },
  };
}

/** The digest of something that no other event is about. */
export const contextOf = (index) => sha256Digest(Buffer.from(String(index))).b64;
