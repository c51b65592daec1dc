/** `northroot completion`: a script that makes a shell complete commands and options, made from the commands themselves. */

import { Argument, type Command, type Option } from 'commander';
import { CODE_PAGES } from '../../finding/catalog.js';
import { schemaNames } from '../../schema/documents.js';
import type { Context, ExitStatus } from '../context.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

export function addCompletion(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
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

/** A command's options; those of `key show` stand with `key`. */
function optionsOf(command: Command): Option[] {
  return [command, ...command.commands].flatMap(({ options }) => [...options]);
}

function flags(options: readonly Option[]): string[] {
  return [...options.map(({ long }) => long ?? ''), '--help'];
}

/** For bash, and for zsh by its emulation. A word with nothing to offer falls back to the names of files. */
function bashScript(program: Command, shell: 'bash' | 'zsh'): string {
  const values = (command: Command): string[] =>
    optionsOf(command)
      .filter(({ required }) => required)
      .map(
        ({ long, argChoices }) =>
          `    '${command.name()} ${long}') words='${argChoices?.join(' ') ?? ''}' ;;`,
      );
  const cases = program.commands.flatMap((command) => [
    ...values(command),
    `    '${command.name()} ${command.name()}') words='${[...firstWords(command), ...flags(optionsOf(command))].join(' ')}' ;;`,
    `    '${command.name()} '*) words='${flags(optionsOf(command)).join(' ')}' ;;`,
  ]);
  const commands = program.commands.map((command) => command.name());
  return [
    ...(shell === 'zsh' ? ['autoload -U +X bashcompinit && bashcompinit'] : []),
    '_northroot() {',
    '  local word="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command= words= i',
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    '    case "${COMP_WORDS[i]}" in -*) ;; *) command="${COMP_WORDS[i]}"; break ;; esac',
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
  const lines = program.commands.flatMap((command) => {
    const within = `complete -c northroot -n '__fish_seen_subcommand_from ${command.name()}'`;
    const words = firstWords(command);
    return [
      `complete -c northroot -n __fish_use_subcommand -a ${command.name()} -d ${quote(command.summary())}`,
      ...(words.length === 0 ? [] : [`${within} -a ${quote(words.join(' '))}`]),
      ...optionsOf(command).map(({ long = '', description, required, argChoices }) => {
        const choices = argChoices === undefined ? '' : ` -f -a ${quote(argChoices.join(' '))}`;
        return `${within} -l ${long.slice(2)}${required ? ' -r' : ''}${choices} -d ${quote(description)}`;
      }),
    ];
  });
  return `${lines.join('\n')}\n`;
}

/** Within fish's single quotes a backslash is special before a quote and before itself only. */
function quote(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
