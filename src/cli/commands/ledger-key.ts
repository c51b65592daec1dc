/** Which key signs: the one named, the one from the environment, or the one kept beside the ledger by `init`. */

import { printable } from '../../bytes/printable.js';
import { NorthrootError } from '../../error.js';
import { nodeFileSystem, writeNewFile } from '../../fs/file-system.js';
import { formatPrivateKey, generatePrivateKey } from '../../key/private-key.js';
import { createSigner, type Signer } from '../../signature/signer.js';
import { readSigner } from '../input.js';

/** Where `init` keeps a ledger's own key: beside it, out of a folder of segments. */
export function keyPathOf(ledger: string): string {
  return `${ledger.replace(/\/+$/, '')}.key`;
}

/** The signer that `--key`, NORTHROOT_KEY or the ledger's own key file gives; undefined when there is none of them. */
export async function findSigner(ledger: string, key: string | undefined): Promise<Signer | undefined> {
  const named = key ?? (process.env['NORTHROOT_KEY'] || undefined);
  if (named !== undefined) return readSigner(named);
  const own = keyPathOf(ledger);
  return (await nodeFileSystem.kindOf(own)) === 'file' ? readSigner(own) : undefined;
}

/** Makes a key for a new ledger; nobody but the owner may read it. */
export async function makeLedgerKey(ledger: string): Promise<{ signer: Signer; path: string }> {
  const key = generatePrivateKey();
  const path = keyPathOf(ledger);
  try {
    await writeNewFile(path, Buffer.from(formatPrivateKey(key, 'pem')), 0o600);
  } catch (error) {
    if (!(error instanceof NorthrootError && error.code === 'FILE_EXISTS')) throw error;
    throw new NorthrootError('KEY_EXISTS', `${printable(path)} exists already`, {
      hint: `use it with --key ${printable(path)}, or move it away`,
      cause: error,
    });
  }
  return { signer: createSigner(key), path };
}

/** Whether a path has no ledger yet: nothing is there, or an empty file or folder. */
export async function isMissing(path: string): Promise<boolean> {
  switch (await nodeFileSystem.kindOf(path)) {
    case 'missing':
      return true;
    case 'folder':
      return (await nodeFileSystem.list(path)).length === 0;
    case 'file':
      return (await sizeOf(path)) === 0;
    case 'other':
      return false;
  }
}

async function sizeOf(path: string): Promise<number> {
  const file = await nodeFileSystem.open(path, 'read');
  try {
    return await file.size();
  } finally {
    await file.close();
  }
}
