/** By how much a bound was exceeded, and which grant's it is, in words and links instead of digests and pointers. */

import { printable } from '../../../../base/bytes/printable.js';
import type { FindingJson, ReportJson } from '../../../../format/schema/generated/types.js';
import { type Child, h, listOf } from '../dom.js';
import { recordLink } from '../icons.js';

const MAX_TEXT = 200;

/** Names of the keys whose signatures of a record count. */
export type SignersOf = (seq: number) => readonly string[];

/** The words around the limit. */
const OVER: Readonly<Record<string, readonly [before: string, after: string]>> = {
  METER_CAP_EXCEEDED: ['over the cap of', 'in'],
  RESERVATION_OVER_CAP: ['reserved over the cap of', 'in'],
  ACTION_CAP_EXCEEDED: ['over the', 'that one action may use under'],
  RATE_LIMIT_EXCEEDED: ['over the rate of', 'in'],
};

/** Parses the words of the bounds rules: `usd at most 0.5 …`, `…: 0.05 over`. Undefined for other findings. */
export function excessWords(finding: FindingJson, signersOf: SignersOf): Child | undefined {
  const { code, expected = '', actual = '', related = [] } = finding;
  const words = OVER[code];
  const [, unit = '', limit = ''] = /^(\S+) at most (\S+) /.exec(expected) ?? [];
  const [, over = ''] = /(\S+) over$/.exec(actual) ?? [];
  const seq = related[0]?.seq ?? null;
  if (words === undefined || unit === '' || over === '' || seq === null) return undefined;
  const signers = signersOf(seq);
  const [before, after] = words;
  return [
    h('strong', `${printable(over, MAX_TEXT)} ${printable(unit, MAX_TEXT)}`),
    ` ${before} ${printable(limit, MAX_TEXT)} ${after} `,
    recordLink(seq, `grant #${seq}`),
    signers.length > 0 && `, signed by ${listOf(signers, 3)}`,
  ];
}

/** The principal and tool of a finding: `agent:a3, fs.write`. */
export function whoseWords({ principal_id: principal, tool_name: tool }: FindingJson): string {
  return [principal, tool]
    .filter((part) => part !== undefined)
    .map((part) => printable(part, MAX_TEXT))
    .join(', ');
}

/** By a report, which knows who signed each grant. */
export function signersIn({ grants, trust }: Pick<ReportJson, 'grants' | 'trust'>): SignersOf {
  const names = new Map(trust.signers.map(({ keyid, name }) => [keyid, name]));
  const bySeq = new Map(grants.map(({ seq, signers }) => [seq, signers]));
  return (seq) =>
    (bySeq.get(seq) ?? []).map((keyid) => printable(names.get(keyid) ?? `${keyid.slice(0, 12)}…`, MAX_TEXT));
}
