/** What verifying a signed ledger spends its time on: each part alone, over the same lines, with the verifier's own code. */

import { readFileSync } from 'node:fs';
import { LineSplitter, parsePublicKey } from '../dist/api/index.js';
import {
  appendLeaf,
  checkEvent,
  checkRecord,
  emptyRange,
  findMember,
  hashEvent,
  IdIndex,
  leafHash,
  MemberMarks,
  nodeBackend,
  PAYLOAD_TYPE,
  preAuthEncoding,
  scanCanonical,
} from '../dist/api/internals.js';

const BATCH = 1_000;

/** Seconds by part, for one pass over the ledger at `path`. Lines are taken in batches, as parsed they would fill the memory. */
export function measureParts(path) {
  const bytes = readFileSync(path);
  const seconds = {};
  const timed = (part, run) => {
    const start = performance.now();
    const result = run();
    seconds[part] = (seconds[part] ?? 0) + (performance.now() - start) / 1000;
    return result;
  };
  const lines = timed('splitting into lines', () => {
    const splitter = new LineSplitter();
    return Array.from(splitter.push(bytes), (line) => line.bytes);
  });
  const marks = new MemberMarks();
  const tree = emptyRange();
  const ids = new IdIndex();
  const [key] = JSON.parse(Buffer.from(lines[0]).toString()).event.keys;
  const verificationKey = nodeBackend.importKey(parsePublicKey(key.public_key));
  for (let from = 0; from < lines.length; from += BATCH) {
    const batch = lines.slice(from, from + BATCH);
    timed('scanning for canonical form', () => {
      for (const line of batch) scanCanonical(line, 0, line.length, marks);
    });
    const records = timed('JSON.parse', () => batch.map((line) => JSON.parse(line.toString('utf8'))));
    timed('shape and values', () => {
      for (const record of records)
        if (checkRecord(record).length + checkEvent(record.event).length > 0) fail();
    });
    for (const line of batch) {
      scanCanonical(line, 0, line.length, marks);
      timed('hashing: both ids', () => hashEvent(line, marks, findMember(line, marks, 'event'), 2));
    }
    const leaves = timed('hashing: leaves', () => batch.map((line) => leafHash(line)));
    timed('hashing: the tree over them', () => {
      for (const leaf of leaves) appendLeaf(tree, leaf);
    });
    timed('index of ids', () => {
      for (const { event } of records) if (ids.find(event.event_id.b64) === -1) ids.add(event.event_id.b64);
    });
    timed('signatures', () => {
      for (const [index, line] of batch.entries()) {
        const { signatures, event } = records[index];
        // `{"event":` is 9 bytes, and `,"` or `}` follows: the event's own text is as long as its canonical one.
        const length = Buffer.byteLength(JSON.stringify(event));
        const message = preAuthEncoding(PAYLOAD_TYPE, line.subarray(9, 9 + length));
        if (!verificationKey.verify(message, Buffer.from(signatures[0].sig, 'base64url'))) fail();
      }
    });
  }
  return seconds;
}

function fail() {
  throw new Error('the ledger is not valid');
}
