/** Bounds that decide live, but are no findings of verification: unsound grants, overdrafts, running executions. */

import { printable } from '../../base/bytes/printable.js';
import { formatRational } from '../../base/value/format-rational.js';
import type { MeterVector } from '../../base/value/meter.js';
import { formatQuantity, type Quantity } from '../../base/value/quantity.js';
import { addRationals, compareRationals, subtractRationals } from '../../base/value/rational.js';
import { formatInstant, parseTimestamp } from '../../base/value/timestamp.js';
import { readAmounts } from '../../format/event/outline.js';
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
import type { ExecutionFacts } from '../../rules/bounds/judge.js';

export type DenialCode = FindingCode | 'GRANT_UNSOUND' | 'IMPORTED_AUTHORITY' | 'APPROVAL_REQUIRED';

export interface Denial extends Omit<RuleFinding, 'code'> {
  readonly code: DenialCode;
}

export interface DecidingBound {
  readonly code: string;
  /** The bound's grant, `sha-256:…`, if any. */
  readonly grantId: string | undefined;
  /** A unit, a rate such as `usd.per_5h`, or `concurrency`. */
  readonly unit?: string;
  readonly limit?: Quantity;
  /** Used, reserved and running. */
  readonly used?: Quantity;
  /** limit − used; negative if the bound was broken before. */
  readonly left?: Quantity;
}

/** SPEC §8 rule 12: an unsound grant, or one below it, allows nothing. */
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

/** SPEC §8, "Imported authority": authority imported from other systems counts only for systems in `honoured`. */
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

/** Units used and reserved beyond their cap, requested or not. */
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

/** The bound of a denial. @param grantId - Its grant, unless the denial names one */
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

/** In words; undefined where the bound is no amount. */
export function describeLeft({ unit, limit, left, grantId }: DecidingBound): string | undefined {
  if (unit === undefined || limit === undefined || left === undefined) return undefined;
  const under = grantId === undefined ? '' : ` under ${grantId}`;
  return `${formatQuantity(left)} of ${formatQuantity(limit)} ${unit} left${under}`;
}

export function grantOf(authorization: Action | Grant): Grant | undefined {
  return 'toolName' in authorization ? authorization.grant : authorization;
}

/** No end can be stated after this nanosecond. */
const LAST_INSTANT = parseTimestamp('9999-12-31T23:59:59.999999999Z');

/**
 * An execution that begins `now` (SPEC §2), uses `meterUsed`, and takes the least time possible.
 * @param actionSeq - Of its action; undefined under a grant
 */
export function dryRun(
  toolName: string,
  now: string,
  meterUsed: MeterVector,
  actionSeq: number | undefined,
): ExecutionFacts {
  const start = parseTimestamp(now);
  return {
    toolName,
    occurredAt: now,
    startedAt: now,
    endedAt: start === LAST_INSTANT ? now : formatInstant(start + 1n),
    used: readAmounts(meterUsed),
    hasOutputRef: false,
    resources: [],
    isRelease: false,
    actionSeq,
    start: undefined,
  };
}
