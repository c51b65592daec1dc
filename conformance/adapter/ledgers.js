/** What the classes that write share: files to write in, signers of secrets, refusals. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSigner, NorthrootError, parsePrivateKey } from '../../dist/api/format.js';

const PKCS8 = {
  ed25519: '302e020100300506032b657004220420',
  p256: '3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420',
  'ml-dsa-44': '3034020100300b060960864801650304031104228020',
};

export const bytesOf = (text) => Buffer.from(text, 'base64');
export const base64 = (bytes) => Buffer.from(bytes).toString('base64');

const signers = new Map();

/** Traces have few keys, and ask for them often. */
export function signerOf(secret) {
  const name = `${secret.alg} ${secret.seed}`;
  if (!signers.has(name)) signers.set(name, makeSigner(secret));
  return signers.get(name);
}

function makeSigner({ alg, seed }) {
  const der = Buffer.concat([Buffer.from(PKCS8[alg], 'hex'), bytesOf(seed)]);
  const text = der.toString('base64').replace(/.{1,64}/g, '$&\n');
  return createSigner(parsePrivateKey(`-----BEGIN PRIVATE KEY-----\n${text}-----END PRIVATE KEY-----\n`));
}

const folders = [];
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-conformance-'));
  folders.push(folder);
  return folder;
}

/** A ledger in a folder of its own. */
export function writeLedger({ bytes }) {
  const path = join(makeFolder(), 'ledger.jsonl');
  writeFileSync(path, bytesOf(bytes));
  return path;
}

/** The result, or the refusal that a fault of the request is. */
export async function orRefused(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NorthrootError) return { refused: error.code };
    throw error;
  }
}
