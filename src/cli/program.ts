/**
 * A command line of given commands: flags in, the library's functions called, words out. Exit status as SPEC §8: 0 ok, 1 invalid, 3 violation,
 * 2 could not decide.
 */

import { constants } from 'node:os';
import { Command, CommanderError, Help, Option, type ParseOptionsResult } from 'commander';
import { suggest } from '../base/bytes/did-you-mean.js';
import { printable, withoutPasswords } from '../base/bytes/printable.js';
import { NorthrootError } from '../base/error.js';
import { VERSION } from '../base/version.js';
import { placeName } from '../log/fs/place.js';
import { CommandError } from './command-error.js';
import type { Context, Outcome, Run } from './context.js';
import { addExamples } from './examples.js';
import { exitStatusFor } from './exit-status.js';
import { watchHeap } from './heap-guard.js';
import { Terminal } from './terminal.js';

/** A shell adds this to the number of the signal that ended a program. */
const SIGNALLED = 128;

/**
 * How long after a signal a command may still wait, such as for a reader of its output, in milliseconds. What it does in between is no
 * waiting, however slowly it comes to it where the machine does much else.
 */
const GRACE_MS = 1_000;
/** How often is looked within that time. */
const LOOKS = 2;
/** What a process that waits takes of the processors between two looks at most, in microseconds: a look takes one tenth of it. */
const WAITING_US = 10_000;

/** The heading of what says something about northroot itself. */
export const REFERENCE = 'Values and reference:';

/** Adds a command, or several of one subject. */
type Add = (program: Command, run: Run) => void;

/** Commands under the headings that the help shows. */
export type Groups = Readonly<Record<string, readonly Add[]>>;

/** What was done before the program was loaded. */
export interface Given {
  /** What was read of standard input, all of it. */
  readonly input?: Uint8Array;
}

/**
 * Runs a command.
 *
 * @param groups - The commands that there are
 * @param args - The arguments after the program's name.
 * @returns The exit status.
 */
export async function runProgram(
  groups: Groups,
  args: readonly string[],
  { input }: Given = {},
): Promise<number> {
  const terminal = new Terminal();
  const interrupt = new AbortController();
  let interrupted = 0;
  let endsInItsTime = (): boolean => false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      interrupted ||= SIGNALLED + constants.signals[signal];
      interrupt.abort();
      // By the signal: an exit could wait for a thread, such as one that opens a pipe without a writer.
      afterWaiting(
        () => endsInItsTime(),
        () => {
          process.removeAllListeners(signal);
          process.kill(process.pid, signal);
        },
      );
    });
  }
  // Node ends such a program with 1, which would call the ledger invalid.
  process.once('uncaughtException', (error) => process.exit(failOn(error, terminal)));
  let exhausted: NorthrootError | undefined;
  const unwatch = watchHeap((error) => {
    exhausted = error;
    interrupt.abort(error);
  });
  let outcome = 0 as Outcome;

  const run = async (action: (context: Context) => Promise<Outcome>): Promise<void> => {
    terminal.quiet = program.opts<{ quiet?: boolean }>().quiet === true;
    outcome = await action({
      terminal,
      signal: interrupt.signal,
      input,
      endsInItsTime: (holds = () => true) => (endsInItsTime = holds),
    });
    terminal.finish();
  };
  const program = makeProgram(groups, run);
  program.hook('preAction', (_program, { registeredArguments: [first], args: [path] }) => {
    if (first?.name() === 'ledger') terminal.ledger = path;
  });

  try {
    await program.parseAsync(withKeyidLast(namePlaces(args)), { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (!interrupt.signal.aborted) return failOn(error, terminal);
  } finally {
    unwatch();
  }
  if (exhausted !== undefined) return failOn(exhausted, terminal);
  if (typeof outcome === 'object') return outcome.stopped;
  if (!interrupt.signal.aborted) return outcome;
  terminal.say('interrupted');
  return interrupted;
}

/** Calls `giveUp` once the process has done nothing for a grace period in which nothing was held. */
function afterWaiting(isHeld: () => boolean, giveUp: () => void): void {
  let before = process.cpuUsage();
  let looks = 0;
  const look = (): void => {
    const { user, system } = process.cpuUsage(before);
    before = process.cpuUsage();
    looks = user + system > WAITING_US || isHeld() ? 0 : looks + 1;
    if (looks === LOOKS) giveUp();
  };
  setInterval(look, GRACE_MS / LOOKS).unref();
}

/** Not all that begins with `postgres:` is a place: it may be a text, such as a reason. */
const WHOLE_URL = /^\s*postgres(?:ql)?:\/\//i;

/**
 * URLs of ledgers as they are shown, without password and options, with which this process connects all the same. What follows `--` is
 * another program's.
 * @throws NorthrootError `STORE_URL_INVALID`
 */
function namePlaces(args: readonly string[]): readonly string[] {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  return args.map((arg, at) => {
    const [, option = '', place = ''] = /^(--[a-z-]+=)?(.*)$/s.exec(arg) ?? [];
    return at < end && WHOLE_URL.test(place) ? `${option}${placeName(place)}` : arg;
  });
}

/**
 * A keyid may begin with `-`: then it, or eight characters of it or more, goes behind `--`, where there are only arguments. No option
 * looks like it: those of one dash are a letter, and none is as long as a keyid.
 */
function withKeyidLast(args: readonly string[]): readonly string[] {
  const isWhole = (arg: string): boolean => /^-[\w-]{42}$/.test(arg);
  const isPrefix = (arg: string, n: number): boolean =>
    /^-\w[\w-]{6,}$/.test(arg) && args[n - 1]?.startsWith('-') === false;
  const keyid = args.findIndex((arg, n) => isWhole(arg) || isPrefix(arg, n));
  if (keyid === -1 || !args.includes('revoke') || args.includes('--')) return args;
  return [...args.slice(0, keyid), ...args.slice(keyid + 1), '--', ...args.slice(keyid, keyid + 1)];
}

/** A command that names a misspelt option before the required one that it may have been meant for. */
class SpellCheckedCommand extends Command {
  override createCommand(name?: string): Command {
    return new SpellCheckedCommand(name);
  }

  override parseOptions(args: string[]): ParseOptionsResult {
    const parsed = super.parseOptions(args);
    const { unknown } = parsed;
    const [misspelt] = unknown;
    const isMissing = this.options.some(
      (option) => option.mandatory && this.getOptionValue(option.attributeName()) === undefined,
    );
    const asksForHelp = unknown.some((arg) => arg === '-h' || arg === '--help');
    if (misspelt === undefined || !isMissing || asksForHelp) return parsed;
    const known = this.options.flatMap(({ long }) => long ?? []);
    const [meant] = suggest(misspelt.replace(/=.*$/s, ''), known);
    const suggestion = meant === undefined ? '' : `\n(Did you mean ${meant}?)`;
    return this.error(`error: unknown option '${misspelt}'${suggestion}`, {
      code: 'commander.unknownOption',
    });
  }
}

/** The command line; `run` is given what a command is to do. */
export function makeProgram(groups: Groups, run: Run): Command {
  const program = new SpellCheckedCommand('northroot');
  program
    .description(
      'A verifiable event ledger: append events, and prove from the file alone what was allowed and what was done.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .option('-q, --quiet', 'suppress informational output')
    .helpOption('-h, --help', 'show this help')
    .commandsGroup(REFERENCE)
    .helpCommand('help [command]', 'show the help of a command')
    .exitOverride()
    .configureHelp({
      showGlobalOptions: true,
      // Not those of a command for its subcommands, which take none of them.
      visibleGlobalOptions: (command) => (command === program ? [] : [...program.options]),
      optionDescription: describeOption,
    })
    .configureOutput({
      outputError: (text, write) => {
        const [, problem = '', suggestion] = /^error: (.*?)(?:\n(\(Did you mean .*\)))?\n$/s.exec(text) ?? [];
        const said = suggestion ?? formatHint(problem);
        const lines = [
          `error: USAGE: ${countArguments(program, problem)}`,
          ...(said === undefined ? [] : [said]),
        ];
        write(lines.map((line) => `${printable(withoutPasswords(line), 2_000)}\n`).join(''));
      },
    })
    .addHelpText(
      'after',
      '\nExit status: 0 ok, 1 invalid, 3 violation, 2 could not decide (usage, files, keys).',
    );
  pointToHelp(program, 'northroot');
  for (const [heading, adders] of Object.entries(groups)) {
    program.commandsGroup(heading);
    for (const add of adders) add(program, run);
  }
  for (const command of program.commands) pointToHelp(command, `northroot ${command.name()}`);
  addExamples(program);
  return program;
}

/** Lists and objects as defaults are how the program keeps them, and say nothing to people. */
function describeOption(option: Option): string {
  const defaultValue: unknown = option.defaultValue;
  const isPlain = defaultValue === '' || (typeof defaultValue === 'object' && defaultValue !== null);
  const shown = isPlain
    ? Object.assign(new Option(option.flags), option, { defaultValue: undefined })
    : option;
  return new Help().optionDescription(shown);
}

/** Many programs have `--json` for `--format json`. */
function formatHint(problem: string): string | undefined {
  const [, format] = /^unknown option '--(json|ndjson|text)'$/.exec(problem) ?? [];
  return format === undefined ? undefined : `(Did you mean --format ${format}?)`;
}

/** Too many arguments, said with the names of those that are taken. */
function countArguments(program: Command, problem: string): string {
  const [, name, expected, found] =
    /^too many arguments for '([\w-]+)'\. Expected (\d+) arguments? but got (\d+)\.$/.exec(problem) ?? [];
  const [command, other] = program.commands
    .flatMap((each) => [each, ...each.commands])
    .filter((each) => each.name() === name && each.registeredArguments.length === Number(expected));
  if (command === undefined || other !== undefined) return problem;
  const taken = command.registeredArguments.map((each) => `<${each.name()}>`).join(' ');
  return `too many arguments: expected ${taken === '' ? 'none' : taken}, found ${found}`;
}

/** Adds a hint to errors of usage. */
function pointToHelp(command: Command, name: string): void {
  command.showHelpAfterError(`hint: ${name} --help says what is expected`);
  for (const sub of command.commands) pointToHelp(sub, `${name} ${sub.name()}`);
}

/** Says what went wrong; returns the exit status. */
function failOn(error: unknown, terminal: Terminal): 1 | 2 {
  if (error instanceof NorthrootError) {
    terminal.fail(error);
    return exitStatusFor(error);
  }
  terminal.fail(
    new CommandError('INTERNAL_ERROR', `northroot failed: ${String(error)}`, {
      cause: error,
      hint: 'this is a fault of northroot and says nothing about the ledger; please report it with what follows',
    }),
  );
  if (error instanceof Error) terminal.trace(error);
  return 2;
}
