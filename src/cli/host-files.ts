/** Files of other systems, as `import`, `check` and `reconcile` take them. */

import type { Command } from 'commander';
import { kindOfPath, listFiles, printable, type HostFile } from '../index.js';
import { CommandError } from './command-error.js';
import type { Context } from './context.js';
import { readInput, STDIN } from './input.js';
import { collect, instant } from './options.js';

/** The most that one file may have, in bytes: all of it is read before anything is judged. */
const MAX_HOST_FILE_BYTES = 512 * 1024 * 1024;

/** What {@link addHostReading} gives. */
export interface HostReadingOptions {
  readonly aid: readonly string[];
  readonly occurredAt?: string;
}

/** A file that is no traffic but helps to judge it, by its name. */
export interface Aid {
  readonly name: string;
  readonly path: string;
}

/** Adds `--aid` and `--occurred-at`. */
export function addHostReading(command: Command): Command {
  return command
    .option(
      '--aid <name=path>',
      'a file that is no traffic but helps to judge it, such as policy-bundle=policy.json; may be given again',
      collect,
      [],
    )
    .option(
      '--occurred-at <time>',
      'for items that state no time, and that no item with one comes before',
      instant,
    );
}

/** @throws NorthrootError `USAGE` */
export function toAid(text: string): Aid {
  const [, name, path] = /^([a-z0-9-]+)=(.+)$/s.exec(text) ?? [];
  if (name !== undefined && path !== undefined && path !== STDIN) return { name, path };
  throw new CommandError('USAGE', `${printable(text)} is not the name of an aid and its path`, {
    hint: 'such as policy-bundle=policy.json',
  });
}

/** The files themselves, in place of a folder the files in it. */
export async function filesAt(path: string): Promise<readonly string[]> {
  return path === STDIN || (await kindOfPath(path)) !== 'folder' ? [path] : listFiles(path);
}

/** @throws NorthrootError `USAGE` where standard input stands more than once */
export function assertStdinOnce(paths: readonly string[]): void {
  if (paths.filter((path) => path === STDIN).length > 1) {
    throw new CommandError('USAGE', 'standard input can be read once only');
  }
}

export async function readHostFile(context: Context, path: string): Promise<HostFile> {
  return {
    name: path === STDIN ? 'stdin' : path,
    bytes: await readInput(path, context, MAX_HOST_FILE_BYTES),
  };
}
