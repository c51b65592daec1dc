/** The options of a kernel's tools, of commands that act for an agent. */

import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { defined } from '../../base/defined.js';
import type { KernelTools, KernelToolsOptions } from '../../gate/kernel/kernel-tool.js';
import { isStoreUrl } from '../../log/fs/place.js';
import { findProgram } from '../../log/fs/program.js';
import { contentsPath } from '../../log/contents/content-folder.js';
import { usageError } from '../command-error.js';
import { byteSize, repeatable, spanMs } from '../options.js';
import { keyNamed, keyPathOf } from './ledger-key.js';

export interface KernelChoice {
  readonly workspace?: string;
  readonly readOnly?: boolean;
  readonly program?: string[];
  readonly host?: string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly isolation?: KernelTools['isolation'];
  readonly callTimeout?: number;
  readonly maxOutput?: number;
}

/** Adds the options of {@link KernelChoice}. @param when - What they go with, such as `with --serve-tools: ` */
export function withKernel(command: Command, when = ''): Command {
  return command
    .option(
      '--workspace <folder>',
      `${when}the one folder that files are read and written in, and programs run in`,
    )
    .option('--read-only', `${when}write no files`)
    .addOption(
      repeatable(
        '--program <file>',
        `${when}a program that may be run: a path, or the name of one of the system`,
      ),
    )
    .addOption(
      repeatable(
        '--host <name>',
        `${when}a host that may be fetched from: example.com, '*.example.com', http://127.0.0.1:8080`,
      ),
    )
    .addOption(
      new Option(
        '--env <name=value>',
        `${when}a variable that programs get; they get PATH, LANG and these (repeatable)`,
      ).argParser(readVariable),
    )
    .addOption(
      new Option(
        '--isolation <mode>',
        `${when}how programs are isolated: netns takes the network away, container leaves only the workspace to write`,
      ).choices(['none', 'netns', 'container']),
    )
    .option('--call-timeout <span>', `${when}how long one call may take, such as 2m (default: 60s)`, spanMs)
    .option('--max-output <size>', `${when}the most that one call gives back (default: 256KiB)`, byteSize);
}

/** Whether any of them is given. */
export function findKernelOption(choice: KernelChoice): string | undefined {
  const given = Object.entries({
    workspace: choice.workspace,
    'read-only': choice.readOnly,
    program: choice.program,
    host: choice.host,
    env: choice.env,
    isolation: choice.isolation,
    'call-timeout': choice.callTimeout,
    'max-output': choice.maxOutput,
  });
  return given.find(([, value]) => value !== undefined)?.[0];
}

/** What of a ledger, and which further files, an agent is to have no part in. @param secrets - Such as keys */
export function keptOut(ledger: string, secrets: readonly (string | undefined)[]): string[] {
  const paths = [
    isStoreUrl(ledger) ? undefined : ledger,
    contentsPath(ledger),
    keyPathOf(ledger),
    keyNamed(undefined),
    ...secrets,
  ];
  return paths.filter((each) => each !== undefined);
}

/**
 * Opens the tools that the options say, with all of a ledger kept out of their root.
 * @param secrets - Further files that must not lie within it, such as keys
 * @throws CommandError for what the options cannot be
 */
export async function openKernel(
  choice: KernelChoice,
  ledger: string,
  secrets: readonly (string | undefined)[],
): Promise<KernelTools> {
  const { openKernelTools } = await import('../../gate/kernel/kernel-tools.js');
  const { DEFAULT_ENV } = await import('../../gate/kernel/exec-tool.js');
  const options: KernelToolsOptions = {
    keepOut: keptOut(ledger, secrets),
    ...defined({
      root: choice.workspace,
      programs: choice.program && (await Promise.all(choice.program.map(findPath))),
      hosts: choice.host,
      env: choice.env && { ...DEFAULT_ENV, ...choice.env },
      isolation: choice.isolation,
      timeoutMs: choice.callTimeout,
      maxOutputBytes: choice.maxOutput,
    }),
    ...(choice.readOnly === true ? { write: false } : {}),
  };
  try {
    return await openKernelTools(options);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    throw usageError(toOptions(error.message));
  }
}

/** A name alone is one of the system's programs. */
async function findPath(program: string): Promise<string> {
  const found = program.includes('/') ? undefined : await findProgram(program);
  return found ?? resolve(program);
}

/** The names of the library as those of options. */
function toOptions(message: string): string {
  return message
    .replace(/^openKernelTools: /, '')
    .replace(/^programs and isolation need a root/, '--program and --isolation need --workspace,')
    .replace(/^programs/, '--program')
    .replace(/^hosts/, '--host')
    .replace(/^timeoutMs/, '--call-timeout, in milliseconds')
    .replace(/^maxOutputBytes/, '--max-output');
}

function readVariable(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=([^\0]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError('Expected NAME=VALUE, such as LANG=C.');
  return { ...before, [name]: value };
}
