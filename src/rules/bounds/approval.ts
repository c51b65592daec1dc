/** Rule 15 of SPEC §8: somebody's word on one call, before it is allowed. */

import { formatRational } from '../../base/value/format-rational.js';
import { coversPrincipal, type PrincipalSet } from '../../base/value/principal-set.js';
import { compareRationals, type Rational, subtractRationals, ZERO } from '../../base/value/rational.js';
import { orderTimestamps, parseTimestamp } from '../../base/value/timestamp.js';
import type { UnitAmounts } from '../../format/event/outline.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import type { Action, Amounts, ApprovalRule, Approved, EventPlace, Grant } from './grant.js';
import { matchesTool } from './tool-set.js';

/** An approval whose record is not invalid and that approves. */
export interface Approval {
  readonly place: EventPlace;
  readonly principalId: string;
  readonly occurredAt: string;
  readonly grant: number;
  readonly toolName: string;
  /** The parameters' digest as text. */
  readonly params: string;
  readonly limit: Amounts | undefined;
  readonly expiresAt: string | undefined;
  /** Keyids whose signatures of its record count. */
  readonly signers: readonly string[];
  /** The foreign system that it was taken over from. */
  readonly system: string | undefined;
  /** The action that used it up, `sha-256:…`. */
  readonly usedBy: string | undefined;
}

export interface ApprovalSigner {
  readonly keyid: string;
  readonly isAuthority: boolean;
  readonly principals: PrincipalSet;
}

/** {@link Approved} with the approvals themselves. */
export interface ApprovedBy extends Omit<Approved, 'ids'> {
  readonly approvals: readonly Approval[];
  readonly signersOf: (approval: Approval) => readonly ApprovalSigner[];
}

/** Whether an approval is for a call under these grants, nearest first. */
export function isFor(
  approval: Pick<Approval, 'grant' | 'toolName' | 'params'>,
  { toolName, params }: Pick<Action, 'toolName' | 'params'>,
  chain: readonly Grant[],
): boolean {
  return (
    approval.toolName === toolName &&
    approval.params === params &&
    chain.some(({ index }) => index === approval.grant)
  );
}

/** Whether an allowed action needs the approvals of a rule: unless it reserves no more of each unit than the rule lets pass. */
export function asksToAct(
  { tools, above }: ApprovalRule,
  { toolName, reservation }: Pick<Action, 'toolName' | 'reservation'>,
): boolean {
  if (!matchesTool(tools, toolName)) return false;
  if (above === undefined) return true;
  for (const [unit, amount] of above) {
    const reserved = reservation.get(unit);
    if (reserved === undefined || compareRationals(reserved, amount) > 0) return true;
  }
  return false;
}

/** Whether an execution needs the approvals of a rule: where it used more of a unit than the rule lets pass. */
export function asksToUse({ tools, above }: ApprovalRule, toolName: string, used: UnitAmounts): boolean {
  if (!matchesTool(tools, toolName)) return false;
  if (above === undefined) return true;
  return used.some(({ unit, amount }) => {
    const most = above.get(unit);
    return most !== undefined && compareRationals(amount, most) > 0;
  });
}

/** Finds the first rule of a chain that asks and whose approvals are missing. */
export function checkApprovals(
  chain: readonly Grant[],
  asks: (rule: ApprovalRule) => boolean,
  approved: ApprovedBy | undefined,
  pointer: string,
  findings: RuleFinding[],
): void {
  let candidates: readonly Candidate[] | undefined;
  for (const [depth, grant] of chain.entries()) {
    for (const rule of grant.approvals) {
      if (!asks(rule)) continue;
      candidates ??= listCandidates(chain, approved);
      const { principals, keys } = countApprovals(rule, depth, candidates, approved);
      if (principals >= rule.count && keys >= rule.count) continue;
      const whose = `${rule.words} under ${grant.place.eventId}`;
      findings.push({
        code: 'APPROVAL_MISSING',
        pointer,
        expected: rule.count === 1 ? `an approval by ${whose}` : `approvals by ${rule.count} of ${whose}`,
        actual: principals < rule.count ? String(principals) : `${principals}, signed with ${keys} keys`,
        related: [grant.place],
      });
      return;
    }
  }
}

/** An approval against the chain of its action: positions in it, nearest 0; Infinity for none. */
interface Candidate {
  readonly approval: Approval;
  /** Of the grant that it names. */
  readonly named: number;
  /** Of the nearest grant whose principal gave it. */
  readonly own: number;
  /** Of each signer: the nearest grant whose principal its key covers; Infinity for a key with authority. */
  readonly signers: readonly { readonly keyid: string; readonly own: number }[];
}

function listCandidates(chain: readonly Grant[], approved: ApprovedBy | undefined): Candidate[] {
  const placeOf = (is: (grant: Grant) => boolean): number => {
    const at = chain.findIndex(is);
    return at === -1 ? Infinity : at;
  };
  return (approved?.approvals ?? []).map((approval) => ({
    approval,
    named: placeOf(({ index }) => index === approval.grant),
    own: placeOf(({ principalId }) => principalId === approval.principalId),
    signers: (approved?.hasAuthority === true ? approved.signersOf(approval) : []).map(
      ({ keyid, isAuthority, principals }) => ({
        keyid,
        own: isAuthority ? Infinity : placeOf(({ principalId }) => coversPrincipal(principals, principalId)),
      }),
    ),
  }));
}

/** What approvals are of a rule of the grant at `depth`, with the keys of their signers that count. */
function listApprovals(
  rule: ApprovalRule,
  depth: number,
  candidates: readonly Candidate[],
  approved: ApprovedBy | undefined,
): { readonly approval: Approval; readonly keyids: readonly string[] }[] {
  return candidates.flatMap(({ approval, named, own, signers }) => {
    if (approved === undefined || named > depth || own <= depth) return [];
    if (!coversPrincipal(rule.approvers, approval.principalId)) return [];
    if (!isCurrent(approval, rule, approved.instant)) return [];
    const keyids = signers.filter((signer) => signer.own > depth).map(({ keyid }) => keyid);
    return approved.hasAuthority && keyids.length === 0 ? [] : [{ approval, keyids }];
  });
}

/** The distinct principals, and keys of signers, of the approvals that are of a rule of the grant at `depth`. */
function countApprovals(
  rule: ApprovalRule,
  depth: number,
  candidates: readonly Candidate[],
  approved: ApprovedBy | undefined,
): { readonly principals: number; readonly keys: number } {
  const counting = listApprovals(rule, depth, candidates, approved);
  const principals = new Set(counting.map(({ approval }) => approval.principalId)).size;
  const keys = new Set(counting.flatMap(({ keyids }) => keyids)).size;
  return { principals, keys: approved?.hasAuthority === true ? keys : principals };
}

/** The approvals that are of a rule of the grant at `depth` in a chain. */
export function findApprovalsOf(
  chain: readonly Grant[],
  depth: number,
  rule: ApprovalRule,
  approved: ApprovedBy,
): Approval[] {
  return listApprovals(rule, depth, listCandidates(chain, approved), approved).map(
    ({ approval }) => approval,
  );
}

/** Whether an approval has not expired and is not too old, nor too far ahead. */
function isCurrent({ occurredAt, expiresAt }: Approval, { maxAge }: ApprovalRule, instant: string): boolean {
  if (expiresAt !== undefined && orderTimestamps(instant, expiresAt) >= 0) return false;
  if (maxAge === undefined) return true;
  const age = parseTimestamp(instant) - parseTimestamp(occurredAt);
  return age < maxAge && -age < maxAge;
}

/** An amount above what the approvals of the action allow. */
export function checkApproved(
  unit: string,
  amount: Rational,
  pointer: () => string,
  limits: Amounts | undefined,
  findings: RuleFinding[],
): void {
  const limit = limits?.get(unit);
  if (limit === undefined || compareRationals(amount, limit) <= 0) return;
  findings.push({
    code: 'APPROVAL_EXCEEDED',
    limit: { unit, limit, used: ZERO },
    pointer: pointer(),
    expected: `${unit} at most ${formatRational(limit)}, as approved`,
    actual: `${formatRational(amount)}, ${formatRational(subtractRationals(amount, limit))} over`,
  });
}

/** The least limit of some approvals, by unit. */
export function leastLimits(approvals: readonly Pick<Approval, 'limit'>[]): Amounts {
  const limits = new Map<string, Rational>();
  for (const { limit } of approvals) {
    for (const [unit, amount] of limit ?? []) {
      const least = limits.get(unit);
      if (least === undefined || compareRationals(amount, least) < 0) limits.set(unit, amount);
    }
  }
  return limits;
}
