/** The manual page (troff, man(7)), made from the commands themselves: what `--help` says of each, in one document. */

import type { Command, Option } from 'commander';
import { VERSION } from '../base/version.js';
import { EXAMPLES, leavesOf } from './examples.js';

/** The page of the whole program. */
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
    ...definitions([
      ['0', 'ok'],
      ['1', 'invalid: evidence is broken or missing, or an event was refused'],
      ['2', 'could not decide: usage, files, keys, nothing to verify, an internal error'],
      ['3', 'violation: the evidence is intact, and a bound was broken; or a decision to deny'],
    ]),
    '.SH ENVIRONMENT',
    ...definitions([
      ['NORTHROOT_KEY', 'the file of the private key to sign with, where --key is not given'],
      ['NO_COLOR', 'where it is set and not empty, nothing is coloured'],
    ]),
    '.SH FILES',
    ...definitions([
      ['LEDGER.key', "the ledger's own private key, as init makes it"],
      ['LEDGER.checkpoint', 'the note of its last checkpoint'],
      ['LEDGER.torn-OFFSET', 'what a crash left of a record at its end, saved when it was cut off'],
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

function optionLines(option: Option): string[] {
  const { flags, description, argChoices } = option;
  const defaultValue: unknown = option.defaultValue;
  const choices = argChoices === undefined ? [] : [`one of ${argChoices.join(', ')}`];
  const isShown = typeof defaultValue === 'string' || typeof defaultValue === 'number';
  const standard = isShown && defaultValue !== '' ? [`default ${defaultValue}`] : [];
  const extra = [...choices, ...standard].join('; ');
  return [
    '.TP',
    `\\fB${escape(flags)}\\fR`,
    escape(extra === '' ? description : `${description} (${extra})`),
  ];
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
