/**
 * Which key signs: the one named, the one from the environment, or the one kept beside the ledger. A new ledger gets one
 * of its own.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../bytes/printable.js';
import { NorthrootError } from '../../error.js';
import { EventError } from '../../event/validate.js';
import { nodeFileSystem, writeNewFile } from '../../fs/file-system.js';
import { formatPrivateKey, generatePrivateKey } from '../../key/private-key.js';
import { createSigner, type Signer } from '../../signature/signer.js';
import type { Ledger } from '../../writer/ledger.js';
import { readSigner } from '../input.js';
import type { Terminal } from '../terminal.js';

/** Where a ledger's own key is kept: beside it, out of a folder of segments. */
export function keyPathOf(ledger: string): string {
  return `${ledger.replace(/\/+$/, '')}.key`;
}

/** Where the note of a ledger's last checkpoint is published: beside it, out of a folder of segments. */
export function notePathOf(ledger: string): string {
  return `${ledger.replace(/\/+$/, '')}.checkpoint`;
}

/** The signer that `--key` or NORTHROOT_KEY names; undefined when there is neither. */
export async function findNamedSigner(key: string | undefined): Promise<Signer | undefined> {
  const named = key ?? (process.env['NORTHROOT_KEY'] || undefined);
  return named === undefined ? undefined : readSigner(named);
}

/** The signer of the ledger's own key; undefined when it has none beside it. */
export async function findOwnSigner(ledger: string): Promise<Signer | undefined> {
  const path = keyPathOf(ledger);
  if ((await nodeFileSystem.kindOf(path)) === 'missing') return undefined;
  // Another process may have made the file and be about to write the key into it.
  for (let attempt = 0; attempt < 20 && (await isMissing(path)); attempt += 1) await sleep(50);
  return readSigner(path);
}

/**
 * Opens a ledger with its own key; where neither is there, both are made. Of several processes that begin the same ledger
 * at once one makes the key, and all use it.
 */
export async function openWithOwnKey(
  terminal: Terminal,
  path: string,
  open: (signer: Signer | undefined) => Promise<Ledger>,
): Promise<Ledger> {
  if ((await isMissing(path)) && (await nodeFileSystem.kindOf(keyPathOf(path))) === 'missing') {
    try {
      return (await openWithNewKey(terminal, path, open)).ledger;
    } catch (error) {
      if (!(error instanceof NorthrootError && error.code === 'KEY_EXISTS')) throw error;
    }
  }
  return open(await findOwnSigner(path));
}

/**
 * Makes a key for a new ledger, which nobody but the owner may read, and opens the ledger with it. A key whose ledger
 * could not be made is taken away again: it would only stand in the way of the next attempt.
 *
 * @throws NorthrootError `KEY_EXISTS` when there is such a key already, and as `open` does.
 */
export async function openWithNewKey(
  terminal: Terminal,
  path: string,
  open: (signer: Signer) => Promise<Ledger>,
): Promise<{ ledger: Ledger; signer: Signer }> {
  const key = generatePrivateKey();
  const keyPath = keyPathOf(path);
  try {
    await writeNewFile(keyPath, Buffer.from(formatPrivateKey(key, 'pem')), 0o600);
  } catch (error) {
    if (!(error instanceof NorthrootError && error.code === 'FILE_EXISTS')) throw error;
    throw new NorthrootError('KEY_EXISTS', `${printable(keyPath)} exists already`, {
      hint: `use it with --key ${printable(keyPath)}, or move it away`,
      cause: error,
    });
  }
  try {
    const signer = createSigner(key);
    const ledger = await open(signer);
    terminal.say(`made its key ${printable(keyPath)}: keep it secret, and keep a copy`);
    return { ledger, signer };
  } catch (error) {
    if (await isMissing(path)) await nodeFileSystem.remove(keyPath).catch(() => undefined);
    throw error;
  }
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

/** Options that make no genesis are a wrong use of the command: no evidence was judged. */
export function asUsageError(error: unknown): unknown {
  if (!(error instanceof EventError)) return error;
  const [{ pointer, expected, actual } = { pointer: '', expected: '', actual: '' }] = error.issues;
  return new NorthrootError('USAGE', `--${pointer.slice(1)}: expected ${expected}, found ${actual}`, {
    cause: error,
  });
}

async function sizeOf(path: string): Promise<number> {
  const file = await nodeFileSystem.open(path, 'read');
  try {
    return await file.size();
  } finally {
    await file.close();
  }
}
