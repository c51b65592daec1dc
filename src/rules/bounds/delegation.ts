/** Rule 9 of SPEC §8: a delegated grant lies within the grant that it comes from. */

import { formatRational } from '../../base/value/format-rational.js';
import { compareRationals, type Rational } from '../../base/value/rational.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import { type Grant, grantChain, MAX_GRANT_DEPTH, OUTPUT_MODES } from './grant.js';
import { checkOrigin } from './judgement.js';
import { coversPattern } from './tool-set.js';

/** Judges an allowed delegated grant against its parent: rules 3 and 13, then rule 9. */
export function judgeDelegation(grant: Grant, patterns: readonly string[], parent: Grant): RuleFinding[] {
  const findings: RuleFinding[] = [];
  const related = [parent.place];
  checkOrigin(grant, parent, findings);
  const exceed = (pointer: string, expected: string, actual: string): void => {
    findings.push({
      code: 'DELEGATION_EXCEEDED',
      pointer,
      expected: `${expected}, as its parent`,
      actual,
      related,
    });
  };
  if (grant.depth > MAX_GRANT_DEPTH) {
    exceed(
      '/authorization/grant_event_id',
      `at most ${MAX_GRANT_DEPTH} grants deep`,
      `${grant.depth} grants deep`,
    );
  }
  let below = 0;
  for (const ancestor of grantChain(parent)) {
    below += 1;
    const { maxDelegationDepth: depth, place } = ancestor;
    if (depth === undefined || below <= depth) continue;
    findings.push({
      code: 'DELEGATION_EXCEEDED',
      pointer: '/authorization/grant_event_id',
      expected: `at most ${depth} delegated grants one under the other below ${place.eventId}`,
      actual: `the ${below}. one`,
      related: [place],
    });
    break;
  }
  const uncovered = patterns.findIndex((pattern) => !coversPattern(parent.tools, pattern));
  if (uncovered !== -1) {
    const pointer = `/authorization/bounds/allowed_tools/${uncovered}`;
    exceed(pointer, 'tools that one pattern of the parent covers', patterns[uncovered] as string);
  }
  for (const [unit, { cap }] of parent.accounts) {
    const own = grant.accounts.get(unit)?.cap;
    if (own !== undefined && compareRationals(own, cap) <= 0) continue;
    exceed(
      '/authorization/bounds/meter_caps',
      `${unit} capped at ${formatRational(cap)} or less`,
      amountOr(own, 'no cap'),
    );
  }
  for (const [unit, cap] of parent.actionCaps) {
    const own = grant.actionCaps.get(unit);
    if (own !== undefined && compareRationals(own, cap) <= 0) continue;
    exceed(
      '/authorization/bounds/action_caps',
      `${unit} capped at ${formatRational(cap)} an action or less`,
      amountOr(own, 'no cap'),
    );
  }
  if (parent.notBefore !== undefined) {
    if (grant.notBefore === undefined || compareTimestamps(grant.notBefore, parent.notBefore) < 0) {
      exceed(
        '/authorization/bounds/not_before',
        `${parent.notBefore} or later`,
        grant.notBefore ?? 'no not_before',
      );
    }
  }
  if (parent.expiresAt !== undefined) {
    if (grant.expiresAt === undefined || compareTimestamps(grant.expiresAt, parent.expiresAt) > 0) {
      exceed(
        '/authorization/bounds/expires_at',
        `${parent.expiresAt} or earlier`,
        grant.expiresAt ?? 'no expiry',
      );
    }
  }
  for (const { unit, meter, window, limit } of parent.rates) {
    const own = grant.rates.find((rate) => rate.meter === meter && rate.window === window)?.limit;
    if (own !== undefined && compareRationals(own, limit) <= 0) continue;
    exceed(
      '/authorization/bounds/rate_limits',
      `${unit} at most ${formatRational(limit)}`,
      amountOr(own, 'no limit'),
    );
  }
  if (parent.concurrency !== undefined) {
    const own = grant.concurrency?.limit;
    const { limit } = parent.concurrency;
    if (own === undefined || compareRationals(own, limit) > 0) {
      exceed(
        '/authorization/bounds/concurrency_limit',
        `at most ${formatRational(limit)}`,
        amountOr(own, 'no limit'),
      );
    }
  }
  if (parent.outputMode !== undefined) {
    const strictness = OUTPUT_MODES.indexOf(parent.outputMode);
    if (grant.outputMode === undefined || OUTPUT_MODES.indexOf(grant.outputMode) > strictness) {
      exceed(
        '/authorization/bounds/output_mode',
        `${parent.outputMode} or stricter`,
        grant.outputMode ?? 'no mode',
      );
    }
  }
  for (const resource of grant.resources ?? []) {
    if (parent.resources === undefined || parent.resources.size === 0) break;
    if (parent.resources.has(resource)) continue;
    const pointer = '/authorization/bounds/resources';
    findings.push({
      code: 'RESOURCE_NOT_GRANTED',
      pointer,
      expected: 'a resource of its parent',
      actual: resource,
      related,
    });
    break;
  }
  return findings;
}

function amountOr(amount: Rational | undefined, otherwise: string): string {
  return amount === undefined ? otherwise : formatRational(amount);
}
