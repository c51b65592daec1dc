/** `northroot completion`: a script that makes a shell complete commands and options, made from the commands themselves. */

import { Argument, type Command, type Option } from 'commander';
import { CODE_PAGES } from '../../format/finding/catalog.js';
import { schemaNames } from '../../format/schema/documents.js';
import type { Run } from '../context.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

export function addCompletion(program: Command, run: Run): void {
  program
    .command('completion')
    .summary('write a completion script for a shell')
    .description(
      'Writes a completion script. bash and zsh: source <(northroot completion bash), or zsh; fish: northroot completion fish | source.',
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action((shell: Shell) =>
      run(async ({ terminal }) => {
        await terminal.write(shell === 'fish' ? fishScript(program) : bashScript(program, shell));
        return 0;
      }),
    );
}

/** What may stand right after a command's name, beside options and files. */
function firstWords(command: Command): readonly string[] {
  switch (command.name()) {
    case 'schema':
      return schemaNames();
    case 'explain':
      return Object.keys(CODE_PAGES);
    case 'completion':
      return SHELLS;
    default:
      return command.commands.map((sub) => sub.name());
  }
}

/** A command as it is typed after `northroot`, with its subcommands: `key`, `key add`, …. */
interface Path {
  readonly words: string;
  readonly command: Command;
}

/** All commands, those with two words first. */
function pathsOf(program: Command): Path[] {
  const paths = program.commands.map((command) => ({ words: command.name(), command }));
  const within = paths.flatMap(({ words, command }) =>
    command.commands.map((sub) => ({ words: `${words} ${sub.name()}`, command: sub })),
  );
  return [...within, ...paths];
}

function groupsOf(program: Command): string[] {
  return program.commands.filter(({ commands }) => commands.length > 0).map((command) => command.name());
}

function flags(options: readonly Option[]): string[] {
  return [...options.map(({ long }) => long ?? ''), '--help'];
}

/** For bash, and for zsh by its emulation. A word with nothing to offer falls back to the names of files. */
function bashScript(program: Command, shell: 'bash' | 'zsh'): string {
  const cases = pathsOf(program).flatMap(({ words, command }) => {
    const own = flags(command.options).join(' ');
    const values = command.options
      .filter(({ required }) => required)
      .map(({ long, argChoices }) => `    '${words} ${long}') words='${argChoices?.join(' ') ?? ''}' ;;`);
    const first = [...firstWords(command), own].join(' ');
    const last = command.name();
    return [...values, `    '${words} ${last}') words='${first}' ;;`, `    '${words} '*) words='${own}' ;;`];
  });
  const commands = program.commands.map((command) => command.name());
  return [
    ...(shell === 'zsh' ? ['autoload -U +X bashcompinit && bashcompinit'] : []),
    '_northroot() {',
    '  local word="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command= words= i',
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    '    case "${COMP_WORDS[i]}" in -*) continue ;; esac',
    '    command="${command:+$command }${COMP_WORDS[i]}"',
    `    case "$command" in ${groupsOf(program).join('|')}) ;; *) break ;; esac`,
    '  done',
    '  case "$command $previous" in',
    ...cases,
    `    ' '*) words='${[...commands, ...flags(program.options)].join(' ')}' ;;`,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '}',
    'complete -o default -F _northroot northroot',
    '',
  ].join('\n');
}

function fishScript(program: Command): string {
  const head = [
    'function __northroot_in',
    '  set -l command',
    '  for word in (commandline -opc)[2..-1]',
    "    string match -q -- '-*' $word; and continue",
    '    set -a command $word',
    `    contains -- "$command" ${groupsOf(program).join(' ')}; or break`,
    '  end',
    '  test "$command" = "$argv[1]"',
    'end',
  ];
  const top = program.commands.map(
    (command) =>
      `complete -c northroot -n "__northroot_in ''" -a ${command.name()} -d ${quote(command.summary())}`,
  );
  const lines = pathsOf(program).flatMap(({ words, command }) => {
    const within = `complete -c northroot -n "__northroot_in '${words}'"`;
    const first = firstWords(command);
    return [
      ...(first.length === 0 ? [] : [`${within} -a ${quote(first.join(' '))}`]),
      ...command.options.map(({ long = '', description, required, argChoices }) => {
        const choices = argChoices === undefined ? '' : ` -f -a ${quote(argChoices.join(' '))}`;
        return `${within} -l ${long.slice(2)}${required ? ' -r' : ''}${choices} -d ${quote(description)}`;
      }),
    ];
  });
  return `${[...head, ...top, ...lines].join('\n')}\n`;
}

/** Within fish's single quotes a backslash is special before a quote and before itself only. */
function quote(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
