/** The commands that tell of the format itself: `schema`, `explain`. */

import type { Command } from 'commander';
import { didYouMean } from '../../base/bytes/did-you-mean.js';
import { printable } from '../../base/bytes/printable.js';
import { CODE_PAGES, isFindingCode } from '../../format/finding/catalog.js';
import { schemaDocument, schemaNames } from '../../format/schema/documents.js';
import { CommandError } from '../command-error.js';
import type { Run } from '../context.js';
import { remedyFor } from '../remedies.js';

export function addSchema(program: Command, run: Run): void {
  program
    .command('schema')
    .summary('write a JSON Schema')
    .description(
      'Writes the JSON Schema (2020-12) of an event type, record, key, trust policy or report. Without a name, lists the names.',
    )
    .argument('[name]', 'such as authorization or record')
    .action((name: string | undefined) =>
      run(async ({ terminal }) => {
        if (name === undefined) {
          await terminal.write(
            schemaNames()
              .map((known) => `${known}\n`)
              .join(''),
          );
          return 0;
        }
        if (!schemaNames().includes(name))
          throw new CommandError('SCHEMA_UNKNOWN', `there is no schema ${printable(name)}`, {
            hint: didYouMean(name, schemaNames()) ?? `one of ${schemaNames().join(', ')}`,
          });
        await terminal.write(`${JSON.stringify(schemaDocument(name), undefined, 2)}\n`);
        return 0;
      }),
    );
}

export function addExplain(program: Command, run: Run): void {
  program
    .command('explain')
    .summary('explain a code of a finding')
    .description(
      'Explains a code of verify: its meaning, its usual cause and what to do. Without a code, lists all codes.',
    )
    .argument('[code]', 'such as PREV_MISMATCH')
    .action((code: string | undefined) =>
      run(async ({ terminal }) => {
        await terminal.write(code === undefined ? listCodes() : explain(code));
        return 0;
      }),
    );
}

function listCodes(): string {
  return Object.entries(CODE_PAGES)
    .map(([code, { title }]) => `${code.padEnd(24)} ${title}\n`)
    .join('');
}

/** Codes may be typed as they come: prev-mismatch. */
function toCode(text: string): string {
  return text.toUpperCase().replaceAll('-', '_');
}

function explain(text: string): string {
  const code = toCode(text);
  if (!isFindingCode(code))
    throw new CommandError('CODE_UNKNOWN', `${printable(text)} is not the code of a finding`, {
      hint:
        didYouMean(code, Object.keys(CODE_PAGES)) ??
        'northroot explain lists those; reports of northroot import, check and reconcile say which rule each of their codes breaks, and errors of commands what to do',
    });
  const page = CODE_PAGES[code];
  const weight =
    page.class === 'none'
      ? page.severity
      : `${page.severity}, makes the record ${page.class === 'violation' ? 'a violation' : page.class}`;
  return `${code}: ${page.title}\n${weight}; rule: ${page.section} of the format\n\n${page.meaning}\n\nusual cause: ${page.cause}\nwhat to do: ${remedyFor(code)}\n`;
}
