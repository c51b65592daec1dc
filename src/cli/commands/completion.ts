/** `northroot completion`: a script that makes a shell complete commands and options, made from the commands themselves. */

import { Argument, type Command } from 'commander';
import type { Context, ExitStatus } from '../context.js';

type Shell = 'bash' | 'zsh' | 'fish';

export function addCompletion(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
  program
    .command('completion')
    .summary('write a completion script for a shell')
    .description(
      'Writes a completion script. bash: source <(northroot completion bash); zsh: the same; fish: northroot completion fish | source.',
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .action((shell: Shell) =>
      run(async ({ terminal }) => {
        await terminal.write(shell === 'fish' ? fishScript(program) : bashScript(program, shell));
        return 0;
      }),
    );
}

function optionsOf(command: Command): string[] {
  return [...command.options.map(({ long }) => long ?? ''), '--help'].filter((flag) => flag !== '');
}

function bashScript(program: Command, shell: 'bash' | 'zsh'): string {
  const commands = program.commands.map((command) => command.name());
  const cases = program.commands.map((command) => {
    const words = [...command.commands.map((sub) => sub.name()), ...optionsOf(command)];
    return `    ${command.name()}) words="${words.join(' ')}" ;;`;
  });
  return [
    ...(shell === 'zsh' ? ['autoload -U +X bashcompinit && bashcompinit'] : []),
    '_northroot() {',
    '  local word="${COMP_WORDS[COMP_CWORD]}" words',
    '  case "${COMP_WORDS[1]}" in',
    ...cases,
    `    *) words="${[...commands, ...optionsOf(program)].join(' ')}" ;;`,
    '  esac',
    `  if [ "$COMP_CWORD" -eq 1 ]; then words="${[...commands, ...optionsOf(program)].join(' ')}"; fi`,
    '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '}',
    'complete -o default -F _northroot northroot',
    '',
  ].join('\n');
}

function fishScript(program: Command): string {
  const lines = program.commands.flatMap((command) => {
    const within = `complete -c northroot -n "__fish_seen_subcommand_from ${command.name()}"`;
    return [
      `complete -c northroot -n __fish_use_subcommand -a ${command.name()} -d '${quote(command.summary())}'`,
      ...command.commands.map((sub) => `${within} -a ${sub.name()}`),
      ...command.options.map(
        ({ long, description }) => `${within} -l ${(long ?? '').slice(2)} -d '${quote(description)}'`,
      ),
    ];
  });
  return `${lines.join('\n')}\n`;
}

function quote(text: string): string {
  return text.replaceAll("'", "\\'");
}
