/** Files of other systems, as `import`, `check` and `reconcile` take them. */

import type { Command } from 'commander';
import { printable } from '../base/bytes/printable.js';
import type { HostFile } from '../hosts/shared/host.js';
import { kindOfPath } from '../log/fs/file-system.js';
import { listFiles } from '../log/fs/plain-file.js';
import { usageError } from './command-error.js';
import type { Context } from './context.js';
import { readInput, STDIN } from './input.js';
import { instant, repeatable, timeZone } from './options.js';

/** The largest file, in bytes: files are read whole. */
const MAX_HOST_FILE_BYTES = 512 * 1024 * 1024;

export interface HostReadingOptions {
  readonly aid: readonly string[];
  readonly occurredAt?: string;
  readonly timeZone?: string;
  readonly unverified?: boolean;
}

/** An auxiliary file, such as a policy bundle, by its name. */
export interface Aid {
  readonly name: string;
  readonly path: string;
}

/** Adds `--aid`, `--occurred-at`, `--time-zone` and `--unverified`. */
export function addHostReading(command: Command): Command {
  return command
    .addOption(
      repeatable('--aid <name=path>', 'an auxiliary file, such as policy-bundle=policy.json').default([]),
    )
    .option('--occurred-at <time>', 'the time of items without one, if none before them has one', instant)
    .option(
      '--time-zone <zone>',
      'the zone of times without an offset: UTC, +02:00 or a name such as Europe/Berlin; without it they are not read (litellm: UTC)',
      timeZone,
    )
    .option(
      '--unverified',
      'take receipts that could not be verified too, marked so (without it they are left out)',
    );
}

/** @throws NorthrootError `USAGE` for `--unverified` where no host has receipts */
export function assertReceipts(
  unverified: boolean | undefined,
  subjects: readonly { readonly name: string; readonly hasReceipts?: boolean }[],
): void {
  if (unverified !== true || subjects.some(({ hasReceipts }) => hasReceipts === true)) return;
  throw usageError(`--unverified: ${subjects.map(({ name }) => name).join(', ')} has no receipts`);
}

/** @throws NorthrootError `USAGE` */
export function toAid(text: string): Aid {
  const [, name, path] = /^([a-z0-9-]+)=(.+)$/s.exec(text) ?? [];
  if (name !== undefined && path !== undefined && path !== STDIN) return { name, path };
  throw usageError(
    `${printable(text)} is not the name of an aid and its path`,
    'such as policy-bundle=policy.json',
  );
}

/** The most skipped files that are named. */
const MAX_NAMED = 10;
const KINDS = { folder: 'a folder', link: 'a link', other: 'not a file' } as const;

/** The file, or the files of a folder; other entries of the folder are named on standard error. */
export async function filesAt({ terminal }: Context, path: string): Promise<readonly string[]> {
  if (path === STDIN || (await kindOfPath(path)) !== 'folder') return [path];
  const others: string[] = [];
  const files = await listFiles(path, (other, kind) => others.push(`${printable(other)} (${KINDS[kind]})`));
  const more = others.length - MAX_NAMED;
  if (others.length > 0) {
    const named = others.slice(0, MAX_NAMED).join(', ');
    terminal.say(`warning: left out ${named}${more > 0 ? ` and ${more} more` : ''}`);
  }
  return files;
}

/** Hints at `--time-zone` if times without an offset were skipped. */
export function hintAtTimeZone({ terminal }: Context, findings: readonly { readonly code: string }[]): void {
  if (!findings.some(({ code }) => code === 'TIME_ZONE_NOT_STATED')) return;
  terminal.say('hint: times without an offset were not read; give their zone with --time-zone');
}

export async function readHostFile(context: Context, path: string): Promise<HostFile> {
  return {
    name: path === STDIN ? 'stdin' : path,
    bytes: await readInput(path, context, MAX_HOST_FILE_BYTES),
  };
}
