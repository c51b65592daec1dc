/** Output paths: unwritable paths, and those that a command reads, are refused before long work. */

import { basename, dirname, resolve } from 'node:path';
import type { ByteSink } from '../base/bytes/byte-sink.js';
import { printable } from '../base/bytes/printable.js';
import { writeThrough } from '../log/fs/file-sink.js';
import { isSameFile, kindOfPath } from '../log/fs/file-system.js';
import { MAKE_FOLDER } from '../log/fs/io-error.js';
import { besidePath, isStoreUrl } from '../log/fs/place.js';
import { CommandError, usageError } from './command-error.js';
import { STDIN } from './input.js';
import type { Terminal } from './terminal.js';

/** `-` is standard output. */
export const STDOUT = '-';

/** Suffixes of the files beside a ledger. */
const BESIDE = ['.key', '.checkpoint', '.index'] as const;

/** Deeper than any file system allows. */
const MAX_DEPTH = 1_024;

/** An output: a file, or files in a folder. */
export interface Target {
  /** A file may be `-`. */
  readonly path: string;
  readonly kind: 'file' | 'folder';
}

/** A ledger and the files beside it, which no output may replace. */
export function filesOf(ledger: string): string[] {
  if (isStoreUrl(ledger)) return BESIDE.map((end) => besidePath(ledger, end));
  return ledger === STDIN ? [] : [ledger, ...BESIDE.map((end) => `${ledger}${end}`)];
}

/** Writes a file atomically, or to standard output for `-`. */
export function writeTarget<T>(
  terminal: Terminal,
  path: string,
  fill: (sink: ByteSink) => Promise<T>,
): Promise<T> {
  return path === STDOUT ? fill({ write: (piece) => terminal.write(piece) }) : writeThrough(path, fill);
}

/**
 * @param inputs - Paths that the command reads.
 * @throws NorthrootError `USAGE` for a target that is read, is in a folder that is read, is named twice or is not of its kind;
 *   `FILE_NOT_FOUND` where the folder of a file is missing.
 */
export async function assertTargets(
  targets: readonly Target[],
  inputs: readonly (string | undefined)[],
): Promise<void> {
  const read = inputs.filter((path) => path !== undefined).filter((path) => path !== STDIN);
  const made = targets.filter(({ kind }) => kind === 'folder').map(({ path }) => resolve(path));
  for (const [index, { path, kind }] of targets.entries()) {
    if (path === '') throw usageError('the path of an output is empty');
    for (const other of targets.slice(0, index)) {
      if (kind === 'folder' && other.kind === 'folder') continue;
      if (!(await isSamePlace(path, other.path))) continue;
      throw usageError(`${printable(path)} is named by two outputs`);
    }
    if (kind === 'file' && path === STDOUT) continue;
    if (kind === 'file' && !made.includes(dirname(resolve(path)))) await assertFolderOf(path);
    const found = await kindOfPath(path);
    if (found !== kind && found !== 'missing')
      throw usageError(
        `cannot write ${printable(path)}: it is not a ${kind}`,
        kind === 'file'
          ? 'what is written replaces the file that has its name'
          : 'name a folder, or a new one',
      );
    for (const input of read) {
      const isIn = kind === 'file' && (await isWithin(dirname(path), input));
      // A missing input may be made by this command.
      if (!isIn && !(await isSameFile(path, input)) && !(await isSamePlace(path, input))) continue;
      const beside = BESIDE.find((end) => input.endsWith(end) && read.includes(input.slice(0, -end.length)));
      const of = isIn
        ? `it would stand in ${printable(input)}`
        : beside === undefined
          ? 'it is read by this command'
          : `it is the place of what belongs to the ledger ${printable(input.slice(0, -beside.length))}`;
      throw usageError(`cannot write ${printable(path)}: ${of}`);
    }
  }
}

/** Refuses a file of a writer's that would take the place of its ledger or of the key. @throws as {@link assertTargets} */
export async function assertApart(file: string | undefined, ledger: string): Promise<void> {
  if (file === undefined) return;
  const others = isStoreUrl(ledger) ? [] : [ledger];
  await assertTargets([{ path: file, kind: 'file' }], [...others, besidePath(ledger, '.key')]);
}

/** Whether two paths name the same entry of a folder, existing or not. */
async function isSamePlace(a: string, b: string): Promise<boolean> {
  if (a === STDOUT || b === STDOUT) return a === b;
  const [first, second] = [resolve(a), resolve(b)];
  if (first === second) return true;
  return basename(first) === basename(second) && isSameFile(dirname(first), dirname(second));
}

/** Whether a folder, which may be missing, is `other` or within it. */
async function isWithin(folder: string, other: string): Promise<boolean> {
  let at = folder;
  // A missing folder is where its name says.
  while ((await kindOfPath(at)) === 'missing' && at !== dirname(at)) at = dirname(at);
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    if (await isSameFile(at, other)) return true;
    // Not `dirname`: the target of a link may be elsewhere.
    const above = `${at}/..`;
    if (await isSameFile(at, above)) return false;
    at = above;
  }
  return false;
}

/** Refuses a path without a folder before long work. */
export async function assertFolderOf(path: string): Promise<void> {
  const folder = dirname(path);
  if ((await kindOfPath(folder)) === 'folder') return;
  throw new CommandError(
    'FILE_NOT_FOUND',
    `cannot write ${printable(path)}: there is no folder ${printable(folder)}`,
    { hint: MAKE_FOLDER },
  );
}
