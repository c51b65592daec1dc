/**
 * Rule 17 of SPEC §8: a ledger sets amounts aside, and another one spends them under a grant that names this slice. Comparisons only: where
 * the two sides come from is in `rules/verify/slices.ts` and `rules/verify/parents.ts`.
 */

import { canonicalBytes } from '../../base/json/canonicalize.js';
import { formatDigest, sha256Digest, toDigestText } from '../../base/value/digest.js';
import { formatRational } from '../../base/value/format-rational.js';
import { compareRationals, type Rational, ZERO } from '../../base/value/rational.js';
import { orderTimestamps } from '../../base/value/timestamp.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import type { Amounts, Grant } from './grant.js';

/** What the parent ledger says of a slice: an allowed action that was begun. */
export interface Slice {
  /** `sha-256:…` */
  readonly eventId: string;
  readonly principalId: string;
  /** The digest of its parameters, as text. */
  readonly params: string;
  readonly reservation: Amounts;
  /** The units that its grant, or one above it, caps. */
  readonly cappedUnits: ReadonlySet<string>;
  readonly expiresAt: string | undefined;
}

/** What the parent ledger says was used of a slice. */
export interface Settlement {
  /** Of its execution, `sha-256:…`. */
  readonly eventId: string;
  readonly used: Amounts;
  /** The SHA-256 of the note up to which that was counted, as text; undefined where it states none. */
  readonly note: string | undefined;
}

/** How a grant that spends a slice stands at one place of its ledger. */
export interface SliceUse {
  /** Whether it is revoked, and what it allowed before is stopped. */
  readonly isStopped: boolean;
  /** Allowed actions under it that were neither executed nor released. */
  readonly openActions: number;
  /** Executions under it that were started and are not recorded. */
  readonly openStarts: number;
  /** What counts as used under it, by unit; 0 too. */
  readonly used: Amounts;
}

/** The parameters of a slice for a ledger. @param ledgerId - `sha-256:…` */
export function sliceParams(ledgerId: string): { readonly ledger_id: string } {
  return { ledger_id: ledgerId };
}

/** The digest of {@link sliceParams}, as text. */
export function sliceParamsDigest(ledgerId: string): string {
  return formatDigest(sha256Digest(canonicalBytes(sliceParams(ledgerId))));
}

const GRANT = '/authorization';
const BOUNDS = `${GRANT}/bounds`;
/** The member by which a grant names its slice. */
export const SLICE_POINTER = `${GRANT}/slice/event_id`;

export type SpendingGrant = Pick<Grant, 'principalId' | 'expiresAt'> & {
  readonly accounts: ReadonlyMap<string, { readonly cap: Rational }>;
};

/**
 * Holds a grant against the slice that it names.
 *
 * @param ledgerId - The ledger of the grant, base64url; undefined for none.
 */
export function judgeSlice(grant: SpendingGrant, slice: Slice, ledgerId: string | undefined): RuleFinding[] {
  const findings: RuleFinding[] = [];
  const id = ledgerId === undefined ? undefined : toDigestText(ledgerId);
  if (id === undefined || sliceParamsDigest(id) !== slice.params)
    findings.push({
      code: 'SLICE_MISMATCH',
      pointer: SLICE_POINTER,
      expected: `a slice for this ledger, ${id ?? 'which has no id'}`,
      actual: `${slice.eventId}, with the parameters ${slice.params}`,
    });
  if (grant.principalId !== slice.principalId)
    findings.push({
      code: 'SLICE_MISMATCH',
      pointer: '/principal_id',
      expected: `${slice.principalId}, to whom the slice ${slice.eventId} was allowed`,
      actual: grant.principalId,
    });
  checkCaps(grant, slice, findings);
  checkExpiry(grant, slice, findings);
  return findings;
}

/** What the slice reserves or its grants cap is capped; and nothing is capped higher than what the slice reserves. */
function checkCaps({ accounts }: SpendingGrant, slice: Slice, findings: RuleFinding[]): void {
  const { reservation, cappedUnits, eventId } = slice;
  const units = new Set([...reservation.keys(), ...cappedUnits]);
  for (const unit of units) {
    if (accounts.has(unit)) continue;
    const most = formatRational(reservation.get(unit) ?? ZERO);
    findings.push({
      code: 'SLICE_EXCEEDED',
      pointer: `${BOUNDS}/meter_caps`,
      expected: `${unit} capped at ${most} or less, as the slice ${eventId}`,
      actual: 'no cap',
    });
  }
  let index = 0;
  for (const [unit, { cap }] of accounts) {
    const pointer = `${BOUNDS}/meter_caps/${index++}/amount`;
    const most = reservation.get(unit) ?? ZERO;
    if (compareRationals(cap, most) <= 0) continue;
    findings.push({
      code: 'SLICE_EXCEEDED',
      pointer,
      expected: `${unit} at most ${formatRational(most)}, as the slice ${eventId} reserves`,
      actual: formatRational(cap),
    });
  }
}

function checkExpiry({ expiresAt }: SpendingGrant, slice: Slice, findings: RuleFinding[]): void {
  if (slice.expiresAt === undefined) return;
  if (expiresAt !== undefined && orderTimestamps(expiresAt, slice.expiresAt) <= 0) return;
  findings.push({
    code: 'SLICE_EXCEEDED',
    pointer: `${BOUNDS}/expires_at`,
    expected: `${slice.expiresAt} or earlier, when the slice ${slice.eventId} expires`,
    actual: expiresAt ?? 'absent',
  });
}

/**
 * Why a slice cannot be settled at a place where its grant stands so: it may still be spent.
 *
 * @returns In the words of a finding; undefined where it can be.
 */
export function findUnclosed(use: SliceUse): Pick<RuleFinding, 'expected' | 'actual'> | undefined {
  if (!use.isStopped)
    return {
      expected: 'the grant of the slice revoked there, and what it allowed stopped',
      actual: 'a grant in force, or whose actions may finish',
    };
  const { openActions, openStarts } = use;
  if (openActions === 0 && openStarts === 0) return undefined;
  return {
    expected: 'nothing open there under the grant of the slice',
    actual: `open actions: ${openActions}, open starts: ${openStarts}`,
  };
}

/** Compares what the parent states as used with what counts as used. @returns The units that differ, an absent one being 0. */
export function findOtherUse(stated: Amounts, used: Amounts): string[] {
  const units = new Set([...used.keys(), ...stated.keys()]);
  return [...units].filter(
    (unit) => compareRationals(stated.get(unit) ?? ZERO, used.get(unit) ?? ZERO) !== 0,
  );
}

/**
 * Holds a settlement against the ledger that it settles.
 *
 * @param use - How the grant stood at the checkpoint that the settlement names; undefined where that checkpoint is not there.
 */
export function judgeSettlement(settlement: Settlement, use: SliceUse | undefined): RuleFinding[] {
  const { eventId, used, note } = settlement;
  const mismatch = (expected: string, actual: string): RuleFinding => ({
    code: 'SLICE_MISMATCH',
    pointer: SLICE_POINTER,
    expected,
    actual,
  });
  if (use === undefined) {
    const what = note === undefined ? 'which names none' : `whose note has the digest ${note}`;
    return [
      mismatch(`the checkpoint up to which ${eventId} settled the slice, ${what}`, 'none that is valid'),
    ];
  }
  const unclosed = findUnclosed(use);
  const first =
    unclosed === undefined
      ? []
      : [
          mismatch(
            `${unclosed.expected}, at the checkpoint by which ${eventId} settled it`,
            unclosed.actual ?? '',
          ),
        ];
  return [
    ...first,
    ...findOtherUse(used, use.used).map((unit) =>
      mismatch(
        `${unit} used ${formatRational(used.get(unit) ?? ZERO)}, as ${eventId} settled it`,
        formatRational(use.used.get(unit) ?? ZERO),
      ),
    ),
  ];
}
