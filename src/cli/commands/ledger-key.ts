/**
 * Which key signs: the one named, the one from the environment, or the one kept beside the ledger. A new ledger gets one
 * of its own.
 */

import { dirname } from 'node:path';
import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { isPrincipalId } from '../../base/value/principal.js';
import { EventError } from '../../format/event/validate.js';
import { formatPrivateKey, generatePrivateKey } from '../../format/key/private-key.js';
import type { Key } from '../../format/schema/generated/types.js';
import { createSigner, type Signer } from '../../format/signature/signer.js';
import {
  isSameFile,
  isWritableFolder,
  kindOfPath,
  nodeFileSystem,
  removeFile,
  writeNewFile,
} from '../../log/fs/file-system.js';
import { MAKE_FOLDER } from '../../log/fs/io-error.js';
import { besidePath, isStoreUrl, stateFolder } from '../../log/fs/place.js';
import { findTrackingWorkTree } from '../../log/fs/work-tree.js';
import type { Durability } from '../../log/store/ledger-store.js';
import { Ledger, type LedgerOptions } from '../../log/writer/ledger.js';
import { isEmptyLedger } from '../../log/writer/genesis.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context } from '../context.js';
import { readSigner } from '../input.js';
import { repeatable, seconds, somewhere } from '../options.js';
import type { Terminal } from '../terminal.js';
import { type IndexChoice, INDEX, NO_INDEX } from '../view.js';
import { describeNotice } from './notices.js';

/** Where a ledger's own key is kept: beside it, out of a folder of segments. */
export function keyPathOf(ledger: string): string {
  return besidePath(ledger, '.key');
}

/** Where the note of a ledger's last checkpoint is published: beside it, out of a folder of segments. */
export function notePathOf(ledger: string): string {
  return besidePath(ledger, '.checkpoint');
}

export const KEY = [
  '--key <file>',
  'private key to sign with (default: NORTHROOT_KEY, then LEDGER.key)',
] as const;

export const LOCK_TIMEOUT = [
  '--lock-timeout <seconds>',
  'how long to wait for another writer',
  seconds,
  10,
] as const;

/** `--durability`, of commands that write. */
export function durabilityOption(): Option {
  return new Option(
    '--durability <mode>',
    'refuse a place that keeps less: local, or replicated to another machine before a record is acknowledged (default: local)',
  ).choices(['local', 'replicated']);
}

export const POSITION_WITNESS = [
  '--position-witness <path>',
  'for a ledger in a database: where all its writers keep what was acknowledged, outside of it: a file, a folder (ending in /) with a file for each ledger, or postgres://USER@HOST/DATABASE#NAME elsewhere',
  somewhere,
] as const;

export interface PlaceChoice {
  readonly key?: string | readonly string[];
  /** False with `--no-position`. */
  readonly position?: string | false;
  readonly positionWitness?: string;
  readonly durability?: Durability;
}

/** Adds the options of {@link PlaceChoice} but its key. */
export function withPlace(command: Command): Command {
  return command
    .option(
      '--position <file>',
      'where to keep the last acknowledged position, to detect a rollback: a file, or a folder of such files (default: the folder of a named key, else LEDGER.position)',
      somewhere,
    )
    .option('--no-position', 'keep no position: a rollback of the ledger is not detected')
    .option(...POSITION_WITNESS)
    .addOption(durabilityOption());
}

/** Adds the options of {@link WritingChoice}. */
export function withWriting(command: Command): Command {
  return withPlace(command.option(...LOCK_TIMEOUT))
    .option(...INDEX)
    .option(...NO_INDEX);
}

/** The options of a command that appends signed events to a ledger. */
export interface SigningChoice extends WritingChoice {
  readonly key?: string;
}

/** Adds the options of {@link SigningChoice}. */
export function withSigning(command: Command): Command {
  return withWriting(command.option(...KEY));
}

/** The options of a command that decides by the grants of a ledger. */
export interface DecidingChoice extends SigningChoice {
  readonly trust?: string;
  readonly honourImported?: string[];
}

/** Adds the options of {@link DecidingChoice}. */
export function withDeciding(command: Command): Command {
  return withSigning(
    command.option('--trust <file>', 'verify the ledger with this trust policy first'),
  ).addOption(
    repeatable(
      '--honour-imported <system>',
      'count grants, actions and credits imported from this system; without it they allow nothing',
    ),
  );
}

/** How a command opens a ledger to decide: a ledger that was rolled back is refused. */
export async function decidingOptions(
  terminal: Terminal,
  path: string,
  signer: Signer | undefined,
  choice: SigningChoice,
): Promise<WritingOptions> {
  await prepareStateFolder(path);
  const position = choice.position ?? (await positionBesideKey(path, choice.key)) ?? true;
  return writingOptions(terminal, path, signer, { ...choice, position });
}

/**
 * What a command asks of the place that it writes to. Of a database each writer keeps what it acknowledged: what it recorded may have been
 * acted upon, whoever decided.
 * @throws NorthrootError `USAGE` for a witness of files
 */
export async function placeOptions(
  path: string,
  choice: Omit<PlaceChoice, 'position'> & { readonly position?: string | boolean },
): Promise<PlaceOptions> {
  const { key, positionWitness, durability } = choice;
  const isDatabase = isStoreUrl(path);
  if (positionWitness !== undefined && !isDatabase)
    throw usageError(
      `--position-witness: ${printable(path)} is no ledger in a database`,
      'keep its position: --position',
    );
  const own = typeof key === 'string' || key === undefined ? key : key[0];
  const position =
    choice.position ?? (isDatabase ? ((await positionBesideKey(path, own)) ?? true) : undefined);
  return defined({ position, positionWitness, durability });
}

/** The choice for one of several ledgers, of which at least one is in a database: a witness is for those. @throws NorthrootError `USAGE` */
export function forOneOf<T extends PlaceChoice>(paths: readonly string[], path: string, choice: T): T {
  if (isStoreUrl(path) || !paths.some(isStoreUrl)) return choice;
  return { ...choice, positionWitness: undefined };
}

/** Makes that folder where it can; what then needs it says so. */
export async function prepareStateFolder(ledger: string): Promise<void> {
  await makeStateFolder(ledger).catch(() => undefined);
}

/** Makes the folder of what belongs to a ledger in a database, for this user only. @throws NorthrootError as the file system does */
async function makeStateFolder(ledger: string): Promise<void> {
  if (isStoreUrl(ledger)) await nodeFileSystem.makeFolder(stateFolder(), 0o700);
}

/** Whether a place has no ledger. @throws NorthrootError as the file system or the database does */
export async function isMissing(ledger: string): Promise<boolean> {
  return isStoreUrl(ledger) ? isEmptyLedger(ledger) : (await kindOfPath(ledger)) === 'missing';
}

/** The error for a ledger that is missing. @param make - What makes it; nothing does before its folder is there. */
export async function noLedger(ledger: string, make: string): Promise<CommandError> {
  const hasFolder = isStoreUrl(ledger) || (await kindOfPath(dirname(ledger))) === 'folder';
  return new CommandError('FILE_NOT_FOUND', `there is no ledger ${printable(ledger)}`, {
    hint: hasFolder ? make : MAKE_FOLDER,
  });
}

/** The folder of a key other than the ledger's own: restoring a backup of the ledger does not roll it back. Undefined if not writable. */
async function positionBesideKey(ledger: string, key: string | undefined): Promise<string | undefined> {
  const named = keyNamed(key);
  if (named === undefined || (await isSameFile(named, keyPathOf(ledger)))) return undefined;
  const folder = named.slice(0, named.lastIndexOf('/') + 1) || './';
  return (await isWritableFolder(folder)) ? folder : undefined;
}

/** The file that `--key` or NORTHROOT_KEY names. */
export function keyNamed(key: string | undefined): string | undefined {
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

/** The principal that a signer's key is for, if it is only one: patterns name nobody. */
export function principalOfKey(keys: readonly Key[], signer: Signer | undefined): string | undefined {
  const key = keys.find(({ keyid }) => keyid === signer?.publicKey.keyid);
  const [principal, other] = key?.principals.filter(isPrincipalId) ?? [];
  return other === undefined ? principal : undefined;
}

/** The named signer, else that of the ledger's own key; undefined if there is neither. */
export async function findSigner(
  terminal: Terminal,
  ledger: string,
  key: string | undefined,
): Promise<Signer | undefined> {
  return (await findNamedSigner(terminal, key)) ?? (await findOwnSigner(terminal, ledger));
}

/** The options of a command that writes. `lockTimeout` is in seconds. */
export interface WritingChoice extends IndexChoice, PlaceChoice {
  readonly lockTimeout: number;
}

type PlaceOptions = Pick<LedgerOptions, 'position' | 'positionWitness' | 'durability'>;
type WritingOptions = PlaceOptions & Pick<LedgerOptions, 'lockTimeoutMs' | 'onNotice' | 'signer' | 'index'>;

/** How every command opens a ledger to write: notices go to standard error. */
export async function writingOptions(
  terminal: Terminal,
  path: string,
  signer: Signer | undefined,
  choice: Omit<WritingChoice, 'position'> & { readonly position?: string | boolean },
): Promise<WritingOptions> {
  const { lockTimeout, index } = choice;
  return {
    lockTimeoutMs: lockTimeout * 1000,
    ...(await placeOptions(path, choice)),
    ...defined({ index }),
    onNotice: (notice) => terminal.say(describeNotice(notice)),
    ...defined({ signer }),
  };
}

/** Opens an existing ledger with the signer of {@link findSigner}. */
export async function openSigned(
  context: Context,
  path: string,
  choice: SigningChoice,
  own: LedgerOptions = {},
): Promise<{ readonly ledger: Ledger; readonly signer: Signer | undefined }> {
  const { terminal, signal } = context;
  const signer = await findSigner(terminal, path, choice.key);
  const options = await decidingOptions(terminal, path, signer, choice);
  return { ledger: await Ledger.open(path, { ...options, signal, ...own }), signer };
}

/**
 * Opens a ledger to append to, or makes it if `options.create` says so: with the named key, unsigned, or with the ledger's own key. If
 * there is neither ledger nor key, both are made; of several processes that do so at once, one makes the key and all use it.
 *
 * @throws NorthrootError as `Ledger.open`; `USAGE` for options that make no genesis; `ORIGIN_MISMATCH`, with the ledger closed again
 */
export async function openOrCreate(
  { terminal, signal }: Context,
  path: string,
  choice: WritingChoice & { readonly key?: string; readonly unsigned?: boolean; readonly origin?: string },
  options: LedgerOptions,
): Promise<Ledger> {
  const { unsigned = false, key, origin } = choice;
  const open = async (signer: Signer | undefined): Promise<Ledger> => {
    try {
      const writing = await writingOptions(terminal, path, signer, choice);
      return await Ledger.open(path, { ...writing, signal, ...options });
    } catch (error) {
      throw asUsageError(error);
    }
  };
  const named = unsigned ? undefined : await findNamedSigner(terminal, key);
  const ledger =
    unsigned || named !== undefined ? await open(named) : await openWithOwnKey(terminal, path, open);
  if (origin === undefined || origin === ledger.origin) return ledger;
  await ledger.close();
  throw new CommandError(
    'ORIGIN_MISMATCH',
    `expected origin ${printable(origin)}, found ${printable(ledger.origin)}`,
    { exitStatus: 2, hint: 'check the path, or leave --origin out' },
  );
}

/** @throws NorthrootError `USAGE` */
export function assertOneSigning({
  key,
  unsigned,
}: {
  readonly key?: string | undefined;
  readonly unsigned?: boolean | undefined;
}): void {
  if (unsigned === true && key !== undefined) throw usageError('--key and --unsigned exclude each other');
}

async function openWithOwnKey(
  terminal: Terminal,
  path: string,
  open: (signer: Signer | undefined) => Promise<Ledger>,
): Promise<Ledger> {
  if (!(await isEmptyLedger(path))) return open(await findOwnSigner(terminal, path));
  return (await openWithNewKey(terminal, path, open)).ledger;
}

/**
 * Makes a key for a new ledger, readable by its owner only, and opens the ledger with it. If the ledger cannot be made, the key is
 * removed again. An existing key is used: a killed attempt may have left it, or another process is making the same ledger.
 *
 * @throws NorthrootError as `open`, and if an existing key cannot be read
 */
export async function openWithNewKey(
  terminal: Terminal,
  path: string,
  open: (signer: Signer) => Promise<Ledger>,
): Promise<{ ledger: Ledger; signer: Signer }> {
  const key = generatePrivateKey();
  const keyPath = keyPathOf(path);
  await makeStateFolder(path);
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
    // If the path exists now, another process may be making the ledger with this key.
    if (await isMissing(path).catch(() => false)) await removeFile(keyPath).catch(() => undefined);
    throw error;
  }
}

/** `git add .` would add the key. */
async function sayTracked(terminal: Terminal, keyPath: string): Promise<void> {
  const workTree = await findTrackingWorkTree(keyPath);
  if (workTree === undefined) return;
  terminal.say(
    `note: ${printable(keyPath)} is in the git work tree ${printable(workTree)} and not ignored: add *.key to .gitignore`,
  );
}

/** Options that make no valid genesis are misuse of the command: no evidence was judged. */
export function asUsageError(error: unknown): unknown {
  if (!(error instanceof EventError)) return error;
  const [{ pointer, expected, actual } = { pointer: '', expected: '', actual: '' }] = error.faults;
  return new CommandError('USAGE', `--${pointer.slice(1)}: expected ${expected}, found ${actual}`, {
    cause: error,
  });
}
