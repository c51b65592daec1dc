/**
 * Which key signs: the one named, the one from the environment, or the one kept beside the ledger. A new ledger gets one
 * of its own.
 */

import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { EventError } from '../../format/event/validate.js';
import { formatPrivateKey, generatePrivateKey } from '../../format/key/private-key.js';
import { createSigner, type Signer } from '../../format/signature/signer.js';
import {
  isSameFile,
  isWritableFolder,
  kindOfPath,
  removeFile,
  writeNewFile,
} from '../../log/fs/file-system.js';
import { findTrackingWorkTree } from '../../log/fs/work-tree.js';
import { Ledger, type LedgerOptions } from '../../log/writer/ledger.js';
import { isEmptyLedger } from '../../log/writer/empty-ledger.js';
import { CommandError } from '../command-error.js';
import type { Context } from '../context.js';
import { readSigner } from '../input.js';
import type { Terminal } from '../terminal.js';
import type { IndexChoice } from '../view.js';
import { describeNotice } from './notices.js';

/** Where a ledger's own key is kept: beside it, out of a folder of segments. */
export function keyPathOf(ledger: string): string {
  return `${ledger.replace(/\/+$/, '')}.key`;
}

/** Where the note of a ledger's last checkpoint is published: beside it, out of a folder of segments. */
export function notePathOf(ledger: string): string {
  return `${ledger.replace(/\/+$/, '')}.checkpoint`;
}

/** The options of every command that decides, or lets others act. */
export const POSITION = [
  '--position <file>',
  'where to keep the last acknowledged position, which the ledger must still have: a file, or a folder of such files (default: the folder of a key that is named, else LEDGER.position)',
] as const;
export const NO_POSITION = [
  '--no-position',
  'keep none: a ledger that was put back to an earlier state is not noticed',
] as const;

/** What such a command was told of it. */
export interface PositionChoice {
  /** False with `--no-position`. */
  readonly position?: string | false;
}

/** Whose imported authority counts. */
export const HONOUR = [
  '--honour-imported <system>',
  'let grants, actions and credits count that were imported from this system (repeatable); without it nothing is allowed on them',
  (system: string, systems: string[] = []): string[] => [...systems, system],
] as const;

/** How a command opens a ledger that it decides upon: one that went back to an earlier state is refused. */
export async function decidingOptions(
  terminal: Terminal,
  path: string,
  signer: Signer | undefined,
  choice: WritingChoice & PositionChoice & { readonly key?: string },
): Promise<ReturnType<typeof writingOptions> & Pick<LedgerOptions, 'position'>> {
  const position = choice.position ?? (await positionBesideKey(path, choice.key)) ?? true;
  return { ...writingOptions(terminal, signer, choice), position };
}

/**
 * The folder of a key that is not the ledger's own: a backup of the ledger that is restored with all that is beside it does not bring
 * that back. Undefined where it cannot be written.
 */
async function positionBesideKey(ledger: string, key: string | undefined): Promise<string | undefined> {
  const named = keyNamed(key);
  if (named === undefined || (await isSameFile(named, keyPathOf(ledger)))) return undefined;
  const folder = named.slice(0, named.lastIndexOf('/') + 1) || './';
  return (await isWritableFolder(folder)) ? folder : undefined;
}

function keyNamed(key: string | undefined): string | undefined {
  return key ?? (process.env['NORTHROOT_KEY'] || undefined);
}

/** The signer that `--key` or NORTHROOT_KEY names; undefined when there is neither. */
export async function findNamedSigner(
  terminal: Terminal,
  key: string | undefined,
): Promise<Signer | undefined> {
  const named = keyNamed(key);
  return named === undefined ? undefined : readSigner(terminal, named);
}

/** The signer of the ledger's own key; undefined when it has none beside it. */
export async function findOwnSigner(terminal: Terminal, ledger: string): Promise<Signer | undefined> {
  const path = keyPathOf(ledger);
  if ((await kindOfPath(path)) !== 'missing') return readSigner(terminal, path);
  terminal.missingKey = path;
  return undefined;
}

/** The signer of a ledger that is there: the one that is named, or that of its own key; undefined when there is neither. */
export async function findSigner(
  terminal: Terminal,
  ledger: string,
  key: string | undefined,
): Promise<Signer | undefined> {
  return (await findNamedSigner(terminal, key)) ?? (await findOwnSigner(terminal, ledger));
}

/** What a command that writes to a ledger was told of it. `lockTimeout` is in seconds. */
export interface WritingChoice extends IndexChoice {
  readonly lockTimeout: number;
}

/** How every command opens a ledger that it writes to: its notices are said. */
export function writingOptions(
  terminal: Terminal,
  signer: Signer | undefined,
  { lockTimeout, index }: WritingChoice,
): Pick<LedgerOptions, 'lockTimeoutMs' | 'onNotice' | 'signer' | 'index'> {
  return {
    lockTimeoutMs: lockTimeout * 1000,
    index,
    onNotice: (notice) => terminal.say(describeNotice(notice)),
    ...defined({ signer }),
  };
}

/** Opens a ledger that is there with the signer of {@link findSigner}. */
export async function openSigned(
  context: Context,
  path: string,
  choice: WritingChoice & PositionChoice & { readonly key?: string },
): Promise<{ readonly ledger: Ledger; readonly signer: Signer | undefined }> {
  const { terminal, signal } = context;
  const signer = await findSigner(terminal, path, choice.key);
  const options = await decidingOptions(terminal, path, signer, choice);
  return { ledger: await Ledger.open(path, { ...options, signal }), signer };
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
  if (!(await isEmptyLedger(path))) return open(await findOwnSigner(terminal, path));
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
    await sayTracked(terminal, keyPath);
    return { ledger, signer };
  } catch (error) {
    // Where something is there by now, another process may be making the ledger with this key.
    if ((await kindOfPath(path)) === 'missing') {
      await removeFile(keyPath).catch(() => undefined);
    }
    throw error;
  }
}

/** Who adds all that is there to git adds the key, too. */
async function sayTracked(terminal: Terminal, keyPath: string): Promise<void> {
  const workTree = await findTrackingWorkTree(keyPath);
  if (workTree === undefined) return;
  terminal.say(
    `note: ${printable(keyPath)} stands in the git work tree ${printable(workTree)}, and no .gitignore there names it: add *.key to one`,
  );
}

/** Options that make no genesis are a wrong use of the command: no evidence was judged. */
export function asUsageError(error: unknown): unknown {
  if (!(error instanceof EventError)) return error;
  const [{ pointer, expected, actual } = { pointer: '', expected: '', actual: '' }] = error.faults;
  return new CommandError('USAGE', `--${pointer.slice(1)}: expected ${expected}, found ${actual}`, {
    cause: error,
  });
}

/**
 * The ledger, where it has the origin that was asked for.
 *
 * @throws NorthrootError `ORIGIN_MISMATCH`; the ledger is closed then.
 */
export async function assertOrigin(ledger: Ledger, origin: string | undefined): Promise<Ledger> {
  if (origin === undefined || origin === ledger.origin) return ledger;
  await ledger.close();
  throw new CommandError(
    'ORIGIN_MISMATCH',
    `expected origin ${printable(origin)}, found ${printable(ledger.origin)}`,
    { exitStatus: 2, hint: 'check the path, or leave --origin out' },
  );
}
