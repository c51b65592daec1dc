/** Judges one answer of an implementation. */

import { isRight, readLedger, sha256 } from './check-ledger.js';
import { findDifference, findReportDifference } from './compare.js';
import { printable } from './printable.js';

const COSIGNATURE = 0x04;
const SIGNATURE_BYTES = 64;

/**
 * What is wrong with a result, or undefined.
 * @param expect - Expanded: `report`, `events`, `last` and `cosigned` are judged apart, all else is compared
 */
export function findFault({ report, ledger, cosigned, ...expect }, result) {
  if (typeof result !== 'object' || result === null || Array.isArray(result))
    return 'the result is no object';
  return (
    findDifference(expect, result) ??
    (report === undefined ? undefined : findReportDifference(report, result.report)) ??
    (ledger === undefined ? undefined : findLedgerFault(ledger, result.bytes)) ??
    (cosigned === undefined ? undefined : findCosignatureFault(cosigned, result.body))
  );
}

/** `events`: those after the given ones, in order; `counts`: how many of them match each pattern. */
function findLedgerFault({ begins, events, counts }, bytes) {
  if (typeof bytes !== 'string') return '/bytes: expected bytes';
  const given = Buffer.from(bytes, 'base64');
  const before = Buffer.from(begins ?? '', 'base64');
  if (!given.subarray(0, before.length).equals(before))
    return 'the records that were given are no longer there';
  const read = readLedger(given);
  if (read.fault !== undefined) return `the ledger is wrong: ${read.fault}`;
  const start = before.toString().split('\n').length - 1;
  const added = read.events.slice(start);
  if (events !== undefined) return findDifference(events, added, '/ledger');
  for (const { count, of } of counts ?? []) {
    const matching = added.filter((event) => findDifference(of, event) === undefined).length;
    if (matching !== count)
      return `the ledger has ${matching} new events as ${printable(of)}, expected ${count}`;
  }
  return undefined;
}

/** A body of cosignature lines (C2SP tlog-cosignature, Ed25519) of this key over this text, at this time. */
function findCosignatureFault({ name, key, text, time }, body) {
  const lines = Buffer.from(typeof body === 'string' ? body : '', 'base64').toString();
  const id = sha256(
    Buffer.concat([
      Buffer.from(`${name}\n`),
      Buffer.of(COSIGNATURE),
      Buffer.from(key.split(':')[1], 'base64url'),
    ]),
  ).subarray(0, 4);
  for (const line of lines.split('\n')) {
    const [dash, by, data, more] = line.split(' ');
    if (dash !== '—' || by !== name || data === undefined || more !== undefined) continue;
    const bytes = Buffer.from(data, 'base64');
    if (bytes.length !== 4 + 8 + SIGNATURE_BYTES || !bytes.subarray(0, 4).equals(id)) continue;
    const stamp = bytes.readBigUInt64BE(4);
    const message = Buffer.from(`cosignature/v1\ntime ${stamp}\n${Buffer.from(text, 'base64').toString()}`);
    if (stamp === BigInt(time) && isRight(key, message, bytes.subarray(12).toString('base64url')))
      return undefined;
  }
  return '/body: no cosignature of this witness that is right, at this time';
}
