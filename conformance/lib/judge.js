/** Judges one answer of an implementation. */

import { findUnlawful, findWrongSettlement, findWrongSlice } from './check-decisions.js';
import { isRight, readLedger, sha256 } from './check-ledger.js';
import { findDifference, findReportDifference } from './compare.js';
import { isRightMlDsa44 } from './ml-dsa-44.js';
import { printable } from './printable.js';

/** The types of cosignature lines, and how many bytes a signature has. */
const COSIGNATURES = { ed25519: [0x04, 64], 'ml-dsa-44': [0x06, 2_420] };

/** The most records that a trace can be the cause of. */
const MAX_ADDED = 1_000;

/**
 * What is wrong with a result, or undefined.
 * @param expect - Expanded: `report`, `ledgers` and `cosigned` are judged apart, all else is compared
 * @param answers - What the trace was answered so far
 */
export function findFault({ report, ledgers, cosigned, ...expect }, result, answers) {
  if (typeof result !== 'object' || result === null || Array.isArray(result))
    return 'the result is no object';
  return (
    findDifference(expect, result) ??
    (report === undefined ? undefined : findReportDifference(report, result.report)) ??
    (ledgers === undefined ? undefined : findLedgersFault(ledgers, result.ledgers, answers)) ??
    (cosigned === undefined ? undefined : findCosignatureFault(cosigned, result.body))
  );
}

/** Those of a trace, by the handle that each was opened under. */
function findLedgersFault(expected, given, answers) {
  const read = new Map();
  for (const [handle, { begins }] of Object.entries(expected)) {
    const isThere = typeof given === 'object' && given !== null && Object.hasOwn(given, handle);
    const ledger = readTraced(begins, isThere ? given[handle] : undefined);
    if (ledger.fault !== undefined) return `/ledgers/${handle}: ${ledger.fault}`;
    read.set(handle, ledger);
  }
  for (const [handle, { counts = [] }] of Object.entries(expected)) {
    const { from, ...ledger } = read.get(handle);
    const { events } = ledger;
    const others = [...read].filter(([name]) => name !== handle).map(([, other]) => other.events);
    const words =
      answers.findFault(handle, ledger, from) ??
      findUnlawful(events, from) ??
      findWrongSlice(events, from, others) ??
      findWrongSettlement(events, from, others) ??
      findMiscount(counts, events.slice(from));
    if (words !== undefined) return `/ledgers/${handle}: the ledger is wrong: ${printable(words)}`;
  }
  return undefined;
}

/** The events of a ledger with their signers, and the place of the first that is not of those that it was opened with; or what is wrong with it. */
function readTraced(begins, bytes) {
  if (typeof bytes !== 'string') return { fault: 'expected bytes' };
  const given = Buffer.from(bytes, 'base64');
  const before = Buffer.from(begins, 'base64');
  if (!given.subarray(0, before.length).equals(before))
    return { fault: 'the records that were given are no longer there' };
  const linesOf = (text) => text.toString().split('\n').length - 1;
  const from = linesOf(before);
  if (linesOf(given) > from + MAX_ADDED) return { fault: `more than ${MAX_ADDED} new records` };
  const { fault, ...ledger } = readLedger(given);
  return fault === undefined ? { ...ledger, from } : { fault: `the ledger is wrong: ${fault}` };
}

function findMiscount(counts, added) {
  for (const { count, of } of counts) {
    const matching = added.filter((event) => findDifference(of, event) === undefined).length;
    if (matching !== count) return `${matching} new events as ${printable(of)}, expected ${count}`;
  }
  return undefined;
}

/** A body of cosignature lines (C2SP tlog-cosignature) of which one is by this key over this text, at this time, and no other by it. */
function findCosignatureFault({ name, key, text, time }, body) {
  const lines = Buffer.from(typeof body === 'string' ? body : '', 'base64').toString();
  const [alg, raw] = key.split(':');
  const [type, length] = COSIGNATURES[alg];
  const bytesOfKey = Buffer.from(raw, 'base64url');
  const id = sha256(Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(type), bytesOfKey])).subarray(0, 4);
  if (!lines.endsWith('\n')) return '/body: no lines';
  let isFound = false;
  for (const line of lines.slice(0, -1).split('\n')) {
    const [dash, by, data, more] = line.split(' ');
    if (dash !== '—' || data === undefined || more !== undefined) return '/body: a line of another form';
    const bytes = Buffer.from(data, 'base64');
    if (bytes.toString('base64') !== data) return '/body: a line of another form';
    if (by !== name || !bytes.subarray(0, 4).equals(id)) continue;
    if (bytes.length !== 4 + 8 + length) return '/body: a cosignature of another length';
    const stamp = bytes.readBigUInt64BE(4);
    const signature = bytes.subarray(12);
    const isValid =
      alg === 'ed25519'
        ? isRight(key, cosignatureMessage(text, stamp), signature.toString('base64url'))
        : isRightMlDsa44(bytesOfKey, subtreeMessage(name, text, bytes.subarray(4, 12)), signature);
    if (!isValid) return '/body: a wrong cosignature of this witness';
    if (stamp !== BigInt(time)) return `/body: a cosignature of the time ${stamp}, expected ${time}`;
    isFound = true;
  }
  return isFound ? undefined : '/body: no cosignature of this witness';
}

function cosignatureMessage(text, stamp) {
  return Buffer.from(`cosignature/v1\ntime ${stamp}\n${Buffer.from(text, 'base64').toString()}`);
}

/** What ML-DSA-44 signs: the tree of the checkpoint from its start. */
function subtreeMessage(name, text, stamp) {
  const [origin, size, root] = Buffer.from(text, 'base64').toString().split('\n');
  const named = (value) => Buffer.concat([Buffer.of(Buffer.byteLength(value)), Buffer.from(value)]);
  const ends = Buffer.alloc(16);
  ends.writeBigUInt64BE(BigInt(size), 8);
  return Buffer.concat([
    Buffer.from('subtree/v1\n\0'),
    ...[named(name), stamp, named(origin), ends, Buffer.from(root, 'base64')],
  ]);
}
