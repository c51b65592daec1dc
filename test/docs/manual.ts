/**
 * The command line, rendered from the definitions of its commands: whole as a manual page (troff, man(7)), and as an index in
 * Markdown.
 */

import type { Command, Option } from 'commander';
import { VERSION } from '../../src/base/version.js';
import { EXAMPLES, leavesOf } from '../../src/cli/examples.js';

const EXIT_STATUSES = [
  ['0', 'ok'],
  ['1', 'invalid: evidence is broken or missing, or an event was refused'],
  ['2', 'could not decide: usage, files, keys, nothing to verify, an internal error'],
  ['3', 'violation: the evidence is intact, and a bound was broken; or a decision to deny'],
] as const;

const ENVIRONMENT = [
  ['NORTHROOT_KEY', 'the file of the private key to sign with, where --key is not given'],
  ['NO_COLOR', 'where it is set and not empty, nothing is coloured'],
] as const;

const FILES = [
  ['LEDGER.key', "the ledger's own private key, as init makes it"],
  ['LEDGER.checkpoint', 'the note of its last checkpoint'],
  [
    'LEDGER.position',
    'the last acknowledged position, by which writers detect a rollback; beside a named key as ID.position',
  ],
  ['LEDGER.index', 'the index of a large ledger: a cache'],
  ['LEDGER.contents', 'parameters and other contents, by digest, where they are kept'],
  ['LEDGER.sock', 'the socket of northroot serve'],
  ['LEDGER.torn-OFFSET', 'what a crash left of a record at its end, saved when it was cut off'],
] as const;

/** The manual page of the whole program. */
export function renderManPage(program: Command): string {
  const help = program.createHelp();
  const lines = [
    '.\\" Made from the commands: UPDATE=1 npx vitest run test/docs/man-page.test.ts',
    `.TH NORTHROOT 1 "" "northroot ${VERSION}" "User Commands"`,
    '.SH NAME',
    'northroot \\- a verifiable event ledger, and its offline verifier',
    '.SH SYNOPSIS',
    '.B northroot',
    '[\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]',
    '.SH DESCRIPTION',
    escape(program.description()),
    '.SH OPTIONS',
    ...program.options.flatMap(optionLines),
    '.SH COMMANDS',
    ...leavesOf(program).flatMap(({ words, command }) => {
      const usage = help.commandUsage(command).replace(/^northroot /, '');
      const notes = notesOf(command);
      return [
        `.SS ${escape(usage.startsWith(words) ? usage : `${words} ${usage}`)}`,
        escape(command.description()),
        ...command.registeredArguments.flatMap((argument) => [
          '.TP',
          `\\fI${escape(argument.name())}\\fR`,
          escape(argument.description),
        ]),
        ...command.options.flatMap(optionLines),
        ...(notes === ''
          ? []
          : ['.PP', ...notes.split('\n').map((line) => (line === '' ? '.PP' : escape(line)))]),
        ...examplesOf(words),
      ];
    }),
    '.SH EXIT STATUS',
    ...definitions(EXIT_STATUSES),
    '.SH ENVIRONMENT',
    ...definitions(ENVIRONMENT),
    '.SH FILES',
    ...definitions(FILES),
  ];
  return `${lines.join('\n')}\n`;
}

/**
 * An index in Markdown: the names of the commands. What each does is in the help and the manual page.
 *
 * @param program - The program, with all its commands.
 * @returns The document, with a line feed at its end.
 */
export function renderCommandReference(program: Command): string {
  const leaves = leavesOf(program);
  const groupOf = (command: Command): string =>
    (command.parent === program ? command : command.parent)?.helpGroup() ?? '';
  const groups = new Set(leaves.map(({ command }) => groupOf(command)));
  const namesIn = (heading: string): string =>
    leaves
      .filter(({ command }) => groupOf(command) === heading)
      .map(({ words }) => `\`${words}\``)
      .join(', ');
  return [
    '# Commands',
    '',
    '<!-- Made from the commands: UPDATE=1 npx vitest run test/docs/man-page.test.ts -->',
    '',
    '`northroot --help` says what each is for, `northroot COMMAND --help` and `man northroot` also its options, with examples. The README has the [exit statuses](../../README.md#what-is-checked-and-what-is-not).',
    '',
    ...[...groups].map((heading) => `- ${heading} ${namesIn(heading)}`),
    '',
    '## Environment and files',
    '',
    ...[...ENVIRONMENT, ...FILES].map(([name, text]) => `- \`${name}\`: ${text}`),
    '',
  ].join('\n');
}

function optionLines(option: Option): string[] {
  return ['.TP', `\\fB${escape(option.flags)}\\fR`, escape(optionText(option))];
}

function optionText({ description, argChoices, defaultValue }: Option): string {
  const value: unknown = defaultValue;
  const choices = argChoices === undefined ? [] : [`one of ${argChoices.join(', ')}`];
  const isShown = typeof value === 'string' || typeof value === 'number';
  const standard = isShown && value !== '' ? [`default ${value}`] : [];
  const extra = [...choices, ...standard].join('; ');
  return extra === '' ? description : `${description} (${extra})`;
}

/** What the help says after the options, but for the examples. */
function notesOf(command: Command): string {
  let text = '';
  // Commands are event emitters; their types do not say so.
  (command as unknown as NodeJS.EventEmitter).emit('afterHelp', {
    error: false,
    command,
    write: (part: string) => (text += part),
  });
  return (text.split('\nExamples:\n')[0] ?? '').trim();
}

function examplesOf(words: string): string[] {
  const examples = EXAMPLES[words] ?? [];
  return examples.length === 0 ? [] : ['.PP', 'Examples:', '.PP', '.nf', ...examples.map(escape), '.fi'];
}

function definitions(list: readonly (readonly [string, string])[]): string[] {
  return list.flatMap(([term, text]) => ['.TP', `\\fB${escape(term)}\\fR`, escape(text)]);
}

/** A line that begins with a dot or a quote would be a request; a hyphen alone may be shown as another character. */
function escape(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(
      /[^\n -~]/gu,
      (character) => `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
    )
    .replace(/^([.'])/, '\\&$1');
}
