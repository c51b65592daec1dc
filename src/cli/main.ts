/**
 * The command line: flags in, exported functions called, words out. Exit status as SPEC §8: 0 ok, 1 invalid, 3 violation,
 * 2 could not decide.
 */

import { Command, CommanderError } from 'commander';
import { NorthrootError } from '../error.js';
import { VERSION } from '../version.js';
import { addAppend } from './commands/append.js';
import { addCompletion } from './commands/completion.js';
import { addInit } from './commands/init.js';
import { addKey, addKeygen } from './commands/keygen.js';
import { addLog } from './commands/log.js';
import { addExplain, addSchema } from './commands/reference.js';
import { addRepair } from './commands/repair.js';
import { addShow } from './commands/show.js';
import { addCanonicalize, addDigest, addEventId } from './commands/values.js';
import { addVerify } from './commands/verify.js';
import type { Context, ExitStatus } from './context.js';
import { Terminal } from './terminal.js';

/** What a shell expects of a program that Ctrl-C ended. */
const INTERRUPTED = 130;

/**
 * Runs the CLI.
 *
 * @param args - The arguments after the program's name.
 * @returns The exit status.
 */
export async function main(args: readonly string[]): Promise<number> {
  const terminal = new Terminal();
  const interrupt = new AbortController();
  process.once('SIGINT', () => interrupt.abort());
  process.once('SIGTERM', () => interrupt.abort());
  let status: ExitStatus = 0;

  const program = new Command('northroot')
    .description(
      'A verifiable event ledger: append events, and prove from the file alone what was allowed and what was done.',
    )
    .version(VERSION)
    .option('-q, --quiet', 'no talk on standard error, only errors')
    .exitOverride()
    .showHelpAfterError('run with --help to see what is expected')
    .addHelpText(
      'after',
      '\nExit status: 0 ok, 1 invalid, 3 violation, 2 could not decide (usage, files, keys).',
    );
  const run = async (action: (context: Context) => Promise<ExitStatus>): Promise<void> => {
    terminal.quiet = program.opts<{ quiet?: boolean }>().quiet === true;
    status = await action({ terminal, signal: interrupt.signal });
  };
  for (const add of [
    addInit,
    addKeygen,
    addKey,
    addAppend,
    addVerify,
    addShow,
    addLog,
    addCanonicalize,
    addDigest,
    addEventId,
    addSchema,
    addExplain,
    addRepair,
    addCompletion,
  ]) {
    add(program, run);
  }

  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (interrupt.signal.aborted) return INTERRUPTED;
    if (error instanceof NorthrootError) {
      terminal.fail(error);
      return error.exitStatus;
    }
    const trace = error instanceof Error ? error.stack : undefined;
    terminal.fail(
      new NorthrootError('INTERNAL_ERROR', `northroot failed: ${trace ?? String(error)}`, {
        hint: 'this is a fault of northroot and says nothing about the ledger; please report it',
      }),
    );
    return 2;
  }
  return interrupt.signal.aborted ? INTERRUPTED : status;
}
