/** A ledger whose approvals, rejects and revocations follow events that nothing else names. */

import { Overseen } from '../../fixtures/make/overseen.js';

/** Its lines: the action at seq 4 is approved, that at 8 is not any more, that at 12 is under a revoked grant. */
export function makeChained() {
  const s = new Overseen('chained', { tool: 'deploy.prod' });
  const rule = { tools: ['deploy.prod'], approvers: ['human:*'] };
  const root = s.grant({ approvals: [rule] });
  const before = () =>
    s.append({ event_type: 'x.test', n: s.line, occurred_at: s.now, principal_id: 'human:owner' });
  const follow = () => ({ prev_event_id: before() });
  const first = s.approve(root, follow());
  s.allow(root, { approvals: [first] });
  const second = s.approve(root);
  s.reject(root, follow());
  s.allow(root, { approvals: [second] });
  const third = s.approve(root);
  s.revoke(root, 'finish', follow());
  s.allow(root, { approvals: [third] });
  return s.ledger.lines;
}
