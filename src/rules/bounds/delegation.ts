/** Rule 9 of SPEC §8: a delegated grant lies within its parent. */

import { formatRational } from '../../base/value/format-rational.js';
import { compareRationals, type Rational } from '../../base/value/rational.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import { type Amounts, type Grant, grantChain, MAX_GRANT_DEPTH, OUTPUT_MODES } from './grant.js';
import { checkOrigin } from './judgement.js';
import { coversPattern } from './tool-set.js';
import { checkWithdrawn } from './withdrawal.js';

/** Judges an allowed delegated grant against its parent: rules 3 and 13, then rules 9 and 16. */
export function judgeDelegation(grant: Grant, patterns: readonly string[], parent: Grant): RuleFinding[] {
  const findings: RuleFinding[] = [];
  checkOrigin(grant, parent, findings);
  const exceed: Exceed = (pointer, expected, actual) => {
    findings.push({
      code: 'DELEGATION_EXCEEDED',
      pointer,
      expected: `${expected}, as its parent`,
      actual,
      related: [parent.place],
    });
  };
  checkDepth(grant, parent, exceed, findings);
  checkTools(patterns, parent, exceed);
  checkAmounts('meter_caps', '', capsOf(grant), capsOf(parent), exceed);
  checkAmounts('action_caps', ' an action', grant.actionCaps, parent.actionCaps, exceed);
  checkValidity(grant, parent, exceed);
  checkRates(grant, parent, exceed);
  checkConcurrency(grant, parent, exceed);
  checkOutputMode(grant, parent, exceed);
  checkResources(grant, parent, findings);
  checkWithdrawn(grantChain(parent), findings);
  return findings;
}

const BOUNDS = '/authorization/bounds';

/** Adds a finding at a member of the grant. */
type Exceed = (pointer: string, expected: string, actual: string) => void;

function checkDepth(grant: Grant, parent: Grant, exceed: Exceed, findings: RuleFinding[]): void {
  const pointer = '/authorization/grant_event_id';
  if (grant.depth > MAX_GRANT_DEPTH)
    exceed(pointer, `at most ${MAX_GRANT_DEPTH} grants deep`, `${grant.depth} grants deep`);
  for (const [index, { maxDelegationDepth: depth, place }] of grantChain(parent).entries()) {
    const below = index + 1;
    if (depth === undefined || below <= depth) continue;
    findings.push({
      code: 'DELEGATION_EXCEEDED',
      pointer,
      expected: `at most ${depth} delegated grants one under the other below ${place.eventId}`,
      actual: `the ${below}. one`,
      related: [place],
    });
    return;
  }
}

function checkTools(patterns: readonly string[], parent: Grant, exceed: Exceed): void {
  const uncovered = patterns.findIndex((pattern) => !coversPattern(parent.tools, pattern));
  if (uncovered === -1) return;
  const pointer = `${BOUNDS}/allowed_tools/${uncovered}`;
  exceed(pointer, 'tools that one pattern of the parent covers', patterns[uncovered] as string);
}

/** Each unit that the parent caps has a cap, at most as high. */
function checkAmounts(member: string, per: string, own: Amounts, caps: Amounts, exceed: Exceed): void {
  for (const [unit, cap] of caps) {
    const mine = own.get(unit);
    if (isWithin(mine, cap)) continue;
    const expected = `${unit} capped at ${formatRational(cap)}${per} or less`;
    exceed(`${BOUNDS}/${member}`, expected, amountOr(mine, 'no cap'));
  }
}

function capsOf({ accounts }: Grant): Amounts {
  return new Map([...accounts].map(([unit, { cap }]) => [unit, cap]));
}

function checkValidity(grant: Grant, parent: Grant, exceed: Exceed): void {
  const { notBefore, expiresAt } = grant;
  if (
    parent.notBefore !== undefined &&
    (notBefore === undefined || compareTimestamps(notBefore, parent.notBefore) < 0)
  )
    exceed(`${BOUNDS}/not_before`, `${parent.notBefore} or later`, notBefore ?? 'no not_before');
  if (
    parent.expiresAt !== undefined &&
    (expiresAt === undefined || compareTimestamps(expiresAt, parent.expiresAt) > 0)
  )
    exceed(`${BOUNDS}/expires_at`, `${parent.expiresAt} or earlier`, expiresAt ?? 'no expiry');
}

function checkRates(grant: Grant, parent: Grant, exceed: Exceed): void {
  for (const { unit, meter, window, limit } of parent.rates) {
    const own = grant.rates.find((rate) => rate.meter === meter && rate.window === window)?.limit;
    if (isWithin(own, limit)) continue;
    const expected = `${unit} at most ${formatRational(limit)}`;
    exceed(`${BOUNDS}/rate_limits`, expected, amountOr(own, 'no limit'));
  }
}

function checkConcurrency(grant: Grant, parent: Grant, exceed: Exceed): void {
  if (parent.concurrency === undefined) return;
  const own = grant.concurrency?.limit;
  const { limit } = parent.concurrency;
  if (isWithin(own, limit)) return;
  exceed(`${BOUNDS}/concurrency_limit`, `at most ${formatRational(limit)}`, amountOr(own, 'no limit'));
}

function checkOutputMode({ outputMode }: Grant, parent: Grant, exceed: Exceed): void {
  if (parent.outputMode === undefined) return;
  const strictness = OUTPUT_MODES.indexOf(parent.outputMode);
  if (outputMode !== undefined && OUTPUT_MODES.indexOf(outputMode) <= strictness) return;
  exceed(`${BOUNDS}/output_mode`, `${parent.outputMode} or stricter`, outputMode ?? 'no mode');
}

function checkResources(grant: Grant, parent: Grant, findings: RuleFinding[]): void {
  // Only a non-empty list is compared.
  if (parent.resources === undefined || parent.resources.size === 0) return;
  for (const resource of grant.resources ?? []) {
    if (parent.resources.has(resource)) continue;
    findings.push({
      code: 'RESOURCE_NOT_GRANTED',
      pointer: `${BOUNDS}/resources`,
      expected: 'a resource of its parent',
      actual: resource,
      related: [parent.place],
    });
    return;
  }
}

function isWithin(own: Rational | undefined, limit: Rational): boolean {
  return own !== undefined && compareRationals(own, limit) <= 0;
}

function amountOr(amount: Rational | undefined, otherwise: string): string {
  return amount === undefined ? otherwise : formatRational(amount);
}
