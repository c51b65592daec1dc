/** Verifying a ledger, beside what a verifier cannot do without: hashing it, parsing it, checking its signatures. */

import { spawnSync } from 'node:child_process';
import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import canonicalize from 'canonicalize';
import { makeProof, verifyLedger, writeTiles } from '../dist/api/index.js';
import { openLedgerSource } from '../dist/api/internals.js';

/** Verifies, and fails where the ledger is not as it should be: a verifier that gives up early is fast. */
export async function verifyWhole(path) {
  const { verdict, findings_total: findings } = await verifyLedger(path);
  if (verdict !== 'ok' || findings > 0)
    throw new Error(`the ledger is ${verdict}, with ${findings} findings`);
}

/** The tasks for {@link measureInTurns}; the first is the one to compare with. */
export function verifyTasks({ signedPath, unsignedPath, sealedPath, records, sealedRecords }) {
  const lines = readFileSync(signedPath, 'utf8').trimEnd().split('\n');
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const message = Buffer.from(lines[1]);
  const signature = sign(null, message, privateKey);
  const key = createPublicKey(publicKey.export({ type: 'spki', format: 'pem' }));
  const { size: bytes } = statSync(signedPath);
  const whole = { records, bytes };
  return [
    { name: 'northroot verify', ...whole, run: () => verifyWhole(signedPath) },
    {
      name: 'northroot verify, unsigned ledger',
      records,
      bytes: statSync(unsignedPath).size,
      run: () => verifyWhole(unsignedPath),
    },
    {
      name: 'northroot verify, sealed every 100 records',
      records: sealedRecords,
      bytes: statSync(sealedPath).size,
      run: () => verifyWhole(sealedPath),
    },
    {
      name: 'northroot prove of a record in it',
      records: sealedRecords,
      bytes: statSync(sealedPath).size,
      run: () => makeProof(() => openLedgerSource(sealedPath), String(Math.floor(sealedRecords / 2))),
    },
    {
      name: 'northroot tiles of it, from scratch',
      records: sealedRecords,
      bytes: statSync(sealedPath).size,
      run: async () => {
        const tiles = `${sealedPath}.tiles`;
        rmSync(tiles, { recursive: true, force: true });
        await writeTiles(() => openLedgerSource(sealedPath), tiles);
      },
    },
    {
      name: 'as many node:crypto verifies, key kept',
      ...whole,
      run: () => {
        for (let i = 0; i < records; i += 1) verify(null, message, key, signature);
      },
    },
    {
      name: 'JSON.parse, canonicalize, compare',
      ...whole,
      run: () => lines.every((line) => canonicalize(JSON.parse(line)) === line),
    },
    { name: 'JSON.parse of the lines', ...whole, run: () => lines.forEach((line) => JSON.parse(line)) },
    { name: 'sha256sum of the file', ...whole, run: () => spawnSync('sha256sum', [signedPath]) },
    {
      name: 'SHA-256 of the file, node:crypto',
      ...whole,
      run: () => createHash('sha256').update(readFileSync(signedPath)).digest(),
    },
  ];
}

/** The peak memory, in MiB, of a process that does nothing but verify, and of one that only loads the verifier. */
export function measureMemory(path) {
  const script = fileURLToPath(new URL('memory.js', import.meta.url));
  const peak = (args) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return Math.round(Number(stdout));
  };
  return { verifying_mib: peak([path]), idle_mib: peak([]) };
}
