/** How the texts of reports write rows and numbers. */

import { printable } from '../../base/bytes/printable.js';
import { parseTimestamp } from '../../base/value/timestamp.js';
import type { ActivityTotals, BundleResult } from '../../format/schema/generated/types.js';
import type { ChangedRecord } from '../../rules/report/causes.js';
import type { LazyReport } from '../../rules/report/report.js';

export function row(name: string, text: string): string {
  return `  ${name.padEnd(11)} ${text}`;
}

/** `1 record`, `2,000 records`. */
export function count(n: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(n)} ${n === 1 ? noun : plural}`;
}

/** `3 valid, 1 invalid`: what there is any of. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const present = Object.entries(counts).filter(([, n]) => n > 0);
  return present.map(([name, n]) => `${grouped(n)} ${printable(name)}`).join(', ') || 'none';
}

const SPANS = [
  [86_400n, 'd'],
  [3_600n, 'h'],
  [60n, 'min'],
  [1n, 's'],
] as const;
const SECOND = 1_000_000_000n;

/** How long ago a timestamp was, such as `3 h ago`; the timestamp itself where that is to come. */
export function spanText(from: string, to: string): string {
  const passed = (parseTimestamp(to) - parseTimestamp(from)) / SECOND;
  const [length, name] = SPANS.find(([seconds]) => passed >= seconds) ?? [1n, 's'];
  return passed < 0n ? `at ${from}` : `${passed / length} ${name} ago`;
}

const EFFECTS = new Map([
  ['revoke', 'revoked'],
  ['suspend', 'suspended'],
  ['resume', 'resumed'],
]);

/** What a revocation did; other text unchanged. */
export function effectWord(effect: string): string {
  return EFFECTS.get(effect) ?? effect;
}

/** What a revocation says of the actions that were allowed before it. */
export function inFlightText(inFlight: string | undefined): string {
  switch (inFlight) {
    case 'stop':
      return ', allowed actions stop';
    case 'finish':
      return ', allowed actions may finish';
    default:
      return '';
  }
}

/** What a bundle was selected by; empty for all records. */
export function selectionText(selection: BundleResult['selection']): string {
  const { since, until, principal, tool, grant_event_id: grant, event_ids: events } = selection;
  return [
    principal === undefined ? '' : `principal ${printable(principal)}`,
    tool === undefined ? '' : `tool ${printable(tool)}`,
    grant === undefined ? '' : `grant ${printable(grant)} and what is under it`,
    since === undefined ? '' : `since ${printable(since)}`,
    until === undefined ? '' : `until ${printable(until)}`,
    events === undefined ? '' : count(events.length, 'named event'),
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** The number of findings to report: all, or with a baseline the new ones. */
export function toTell({ baseline, findings_total: total }: LazyReport): number {
  return baseline?.new ?? total;
}

export function describeChange({ own, consequences }: ChangedRecord): string {
  const follow =
    consequences === 0
      ? ''
      : `, ${grouped(consequences)} more ${consequences === 1 ? 'follows' : 'follow'} from it`;
  return `was changed first: ${count(own, 'finding')} on it${follow}`;
}

/** With thousands separators, the same in every locale. */
export function grouped(n: number): string {
  return groupDigits(String(n));
}

/** An exact number with thousands separators in its whole part; other text unchanged. */
export function groupDigits(number: string): string {
  const [whole = '', ...rest] = number.split('.');
  if (!/^-?\d{4,}$/.test(whole)) return number;
  return [whole.replace(/\B(?=(?:\d{3})+$)/g, ','), ...rest].join('.');
}

export function ranOf({ executions: { success, failure, unknown } }: ActivityTotals): number {
  return success + failure + unknown;
}

/** How many requests were denied. */
export function deniedOf({ grants, actions }: ActivityTotals): number {
  return grants.denied + actions.denied;
}

/** The largest checkpoint with a relation to the ledger. One of the empty tree says nothing of any ledger. */
export function longestAnchor<A extends { readonly relation: string; readonly tree_size: number }>(
  anchors: readonly A[],
  relation: A['relation'],
): A | undefined {
  return anchors
    .filter((anchor) => anchor.relation === relation && anchor.tree_size > 0)
    .reduce<A | undefined>(
      (longest, anchor) => (anchor.tree_size > (longest?.tree_size ?? 0) ? anchor : longest),
      undefined,
    );
}
