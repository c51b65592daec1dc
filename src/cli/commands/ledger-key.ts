/**
 * Which key signs: the one named, the one from the environment, or the one kept beside the ledger. A new ledger gets one
 * of its own.
 */

import {
  createSigner,
  EventError,
  formatPrivateKey,
  generatePrivateKey,
  isUnbegun,
  kindOfPath,
  NorthrootError,
  printable,
  removeFile,
  writeNewFile,
  type Ledger,
  type Signer,
} from '../../index.js';
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
export async function findNamedSigner(
  terminal: Terminal,
  key: string | undefined,
): Promise<Signer | undefined> {
  const named = key ?? (process.env['NORTHROOT_KEY'] || undefined);
  return named === undefined ? undefined : readSigner(terminal, named);
}

/** The signer of the ledger's own key; undefined when it has none beside it. */
export async function findOwnSigner(terminal: Terminal, ledger: string): Promise<Signer | undefined> {
  const path = keyPathOf(ledger);
  if ((await kindOfPath(path)) !== 'missing') return readSigner(terminal, path);
  terminal.missingKey = path;
  return undefined;
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
  if (!(await isUnbegun(path))) return open(await findOwnSigner(terminal, path));
  return (await openWithNewKey(terminal, path, open)).ledger;
}

/**
 * Makes a key for a new ledger, which nobody but the owner may read, and opens the ledger with it. A key whose ledger
 * could not be made is taken away again. One that is there already is used: an attempt that was killed may have left it, or
 * another process makes the same ledger.
 *
 * @throws NorthrootError as `open` does, and where the key that is there cannot be read.
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
    const signer = await readSigner(terminal, keyPath);
    const ledger = await open(signer);
    terminal.say(`signs with the key ${printable(keyPath)}, which was there`);
    return { ledger, signer };
  }
  try {
    const signer = createSigner(key);
    const ledger = await open(signer);
    terminal.say(`made its key ${printable(keyPath)}: keep it secret, and keep a copy`);
    return { ledger, signer };
  } catch (error) {
    // Where something is there by now, another process may be making the ledger with this key.
    if ((await kindOfPath(path)) === 'missing') {
      await removeFile(keyPath).catch(() => undefined);
    }
    throw error;
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
