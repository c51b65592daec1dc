/**
 * Ed25519 verification by `BatchVerifier` against node:crypto's `verify` with its KeyObject kept, which is 1: how often as fast it is, on
 * bodies of 45 bytes and 1.5 KB, by one key and by 1,000 in turn. Short rounds of both alternate, and the best of each counts, so that
 * what else the machine does decides little.
 *
 *   npm run build && node bench/ed25519.js
 */

import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';

import {
  BatchVerifier,
  Ed25519Tables,
  eventMessage,
  KeyUse,
  LARGE,
  makePublicKey,
  nodeBackend,
  SMALL,
} from '../dist/api/internals.js';

const ROUNDS = 300;
/** Uses of each key before anything is measured. */
const WARM_UP = 64;
const BATCH = 256;
const MIB = 2 ** 20;

function makeKeys(count) {
  return Array.from({ length: count }, () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const bytes = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
    const verification = nodeBackend.importKey(makePublicKey('ed25519', bytes));
    return {
      publicKey: createPublicKey(publicKey.export({ format: 'pem', type: 'spki' })),
      privateKey,
      verification,
    };
  });
}

function makeSignatures(keys, bodyBytes, count) {
  return Array.from({ length: count }, (_, i) => {
    const key = keys[i % keys.length];
    const eventBytes = Buffer.alloc(bodyBytes, `${i} `);
    const message = eventMessage(eventBytes);
    return { ...key, eventBytes, message, signature: sign(null, message, key.privateKey) };
  });
}

function verifyBatch(verifier, signatures) {
  for (const { verification, eventBytes, signature } of signatures) {
    verifier.add(verification, eventBytes, signature);
  }
  if (verifier.flush().includes(0)) throw new Error('a signature was refused');
}

function verifyEach(signatures) {
  for (const { message, publicKey, signature } of signatures) {
    if (!verify(null, message, publicKey, signature)) throw new Error('a signature was refused');
  }
}

/** Microseconds for one of `count`. */
function time(count, run) {
  const start = performance.now();
  run();
  return ((performance.now() - start) * 1_000) / count;
}

function compare(keys, bodyBytes) {
  const verifier = new BatchVerifier();
  const signatures = makeSignatures(keys, bodyBytes, Math.max(keys.length, BATCH));
  const batches = [];
  for (let at = 0; at + BATCH <= signatures.length; at += BATCH)
    batches.push(signatures.slice(at, at + BATCH));
  for (let i = 0; i * BATCH < WARM_UP * keys.length; i++) verifyBatch(verifier, signatures);
  const best = { tables: Infinity, node: Infinity };
  for (let round = 0; round < ROUNDS; round++) {
    const batch = batches[round % batches.length];
    best.tables = Math.min(
      best.tables,
      time(BATCH, () => verifyBatch(verifier, batch)),
    );
    const few = batch.slice(0, 32);
    best.node = Math.min(
      best.node,
      time(few.length, () => verifyEach(few)),
    );
  }
  const ratio = best.node / best.tables;
  console.log(
    `${String(keys.length).padStart(5)} keys, ${String(bodyBytes).padStart(5)} bytes: ${ratio.toFixed(2)} × node:crypto` +
      ` (${best.tables.toFixed(1)} µs, ${best.node.toFixed(1)} µs)`,
  );
  return best.tables;
}

function buildTables() {
  const tables = Ed25519Tables.tryCreate(64 * MIB, 2);
  const before = tables.memory.length;
  const key = makeKeys(1)[0].verification.publicKey.bytes;
  for (const { windows, uses } of [
    { windows: SMALL, uses: 2 },
    { windows: LARGE, uses: 512 },
  ]) {
    let best = Infinity;
    for (let i = 0; i < 20; i++) {
      const use = new KeyUse(key);
      if (windows === LARGE) tables.use(use, 2);
      best = Math.min(
        best,
        time(1, () => tables.use(use, uses)),
      );
    }
    const bytes = windows.count * 2 ** (windows.width - 1) * 96;
    console.log(
      `table of ${windows.width}-bit windows: ${(bytes / 1024).toFixed(0)} KB, built in ${(best / 1_000).toFixed(2)} ms`,
    );
  }
  console.log(`without keys: ${(before / 1024).toFixed(0)} KB`);
}

const one = makeKeys(1);
const many = makeKeys(1_000);
for (const bodyBytes of [45, 1_500]) {
  const single = compare(one, bodyBytes);
  const rotating = compare(many, bodyBytes);
  console.log(`1,000 keys ÷ 1 key: ${(single / rotating).toFixed(2)}`);
}
buildTables();
