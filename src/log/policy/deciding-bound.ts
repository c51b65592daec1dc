/** What decides live and verification has no finding for: grants that are wrong themselves, what is overdrawn, what runs now. */

import { printable } from '../../base/bytes/printable.js';
import { formatRational } from '../../base/value/format-rational.js';
import { formatQuantity, type Quantity } from '../../base/value/quantity.js';
import { addRationals, compareRationals, subtractRationals } from '../../base/value/rational.js';
import type { FindingCode } from '../../format/finding/catalog.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import { sumQuantity } from '../../rules/bounds/balance.js';
import {
  type Action,
  findUnsound,
  type Grant,
  grantChain,
  OTHER_SYSTEMS,
  systemsOf,
} from '../../rules/bounds/grant.js';

/** A code that something is denied with. */
export type DenialCode = FindingCode | 'GRANT_UNSOUND' | 'IMPORTED_AUTHORITY';

/** Why something is denied: a rule that it would break. */
export interface Denial extends Omit<RuleFinding, 'code'> {
  readonly code: DenialCode;
}

/** The bound that decided, and what is left of it. */
export interface DecidingBound {
  readonly code: string;
  /** Whose bound it is, `sha-256:…`; undefined where there is no grant. */
  readonly grantId: string | undefined;
  /** Of a bound that is an amount: a unit, a rate such as `usd.per_5h`, or `concurrency`. */
  readonly unit?: string;
  readonly limit?: Quantity;
  /** What counts against it already: what was used, is reserved, and runs now. */
  readonly used?: Quantity;
  /** limit − used; negative where the bound was broken before. */
  readonly left?: Quantity;
}

/** SPEC §8 rule 12: nothing is allowed under a grant that is wrong itself, or hangs below one. */
export function judgeSoundness(grant: Grant): Denial[] {
  const unsound = findUnsound(grant);
  if (unsound === undefined) return [];
  const { place } = unsound;
  const actual = `${place.eventId}, whose own record is invalid or in violation`;
  return [
    {
      code: 'GRANT_UNSOUND',
      expected: 'a grant that verifies, and so do those above it',
      actual,
      related: [place],
    },
  ];
}

/**
 * SPEC §7, "Taken over": nothing is allowed on the word of another system's log, unless the owner of the ledger honours that system.
 *
 * @param honoured - The systems that are honoured.
 */
export function judgeImported(
  grant: Grant | undefined,
  action: Pick<Action, 'system'> | undefined,
  honoured: readonly string[] = [],
): Denial[] {
  const systems = systemsOf(grant, action).filter((system) => !honoured.includes(system));
  if (systems.length === 0) return [];
  return [
    {
      code: 'IMPORTED_AUTHORITY',
      expected: "authority of the ledger's own, or of a system that is honoured",
      actual: `authority taken over from ${systems.map(nameSystem).join(', ')}`,
      ...(grant === undefined ? {} : { related: [grant.place] }),
    },
  ];
}

function nameSystem(system: string): string {
  return system === OTHER_SYSTEMS ? 'others' : printable(system, 64);
}

/** Units of which more is used and reserved already than is capped, whether or not they are asked for. */
export function judgeOverdraft(grant: Grant): Denial[] {
  return [...grantChain(grant)].flatMap(({ accounts, place }) =>
    [...accounts].flatMap(([unit, { cap, used, reserved }]) => {
      const total = addRationals(used, reserved);
      if (compareRationals(total, cap) <= 0) return [];
      const over = formatRational(subtractRationals(total, cap));
      return {
        code: 'METER_CAP_EXCEEDED' as const,
        limit: { unit, limit: cap, used: total },
        expected: `${unit} at most ${formatRational(cap)} under ${place.eventId}`,
        actual: `${formatRational(total)} used and reserved already: ${over} over`,
        related: [place],
      };
    }),
  );
}

/**
 * The bound that a denial is about.
 *
 * @param grantId - Whose it is where the denial does not say so.
 */
export function boundOf({ code, limit, related }: Denial, grantId: string | undefined): DecidingBound {
  const owner = { code, grantId: related?.[0]?.eventId ?? grantId };
  if (limit === undefined) return owner;
  return {
    ...owner,
    unit: limit.unit,
    limit: sumQuantity(limit.limit),
    used: sumQuantity(limit.used),
    left: sumQuantity(subtractRationals(limit.limit, limit.used)),
  };
}

/** What is left of a bound, in words; undefined where it is no amount. */
export function describeLeft({ unit, limit, left, grantId }: DecidingBound): string | undefined {
  if (unit === undefined || limit === undefined || left === undefined) return undefined;
  const under = grantId === undefined ? '' : ` under ${grantId}`;
  return `${formatQuantity(left)} of ${formatQuantity(limit)} ${unit} left${under}`;
}

/** The grant that something is allowed under. */
export function grantOf(authorization: Action | Grant): Grant | undefined {
  return 'toolName' in authorization ? authorization.grant : authorization;
}
