/** Reads the project's documents as far as the tests need it: code blocks, tables, headings, links. */

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

export function readText(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** The paths of all documents: those at the top, all in `docs/`, and what stands beside the code. */
export const documents: readonly string[] = [
  ...readdirSync(root),
  ...['bench/README.md', 'test/security-case.md'],
  ...['docs', 'src'].flatMap((folder) =>
    (readdirSync(join(root, folder), { recursive: true }) as string[]).map((name) => `${folder}/${name}`),
  ),
].filter((path) => path.endsWith('.md'));

/** The contents of the blocks that begin with "```text NAME", without their last newline. */
export function namedBlocks(text: string): Map<string, string> {
  return new Map(
    [...text.matchAll(/^```text ([^\n]+)\n(.*?)\n```$/gms)].map(([, name = '', content = '']) => [
      name,
      content,
    ]),
  );
}

/** A table as rows of cells, without its head. */
export type Table = string[][];

/** Every table of a text with the line before it that is not blank. */
function tables(text: string): { before: string; rows: Table }[] {
  const found: { before: string; rows: Table }[] = [];
  let before = '';
  let rows: Table | undefined;
  for (const line of [...text.split('\n'), '']) {
    if (line.startsWith('|')) {
      if (rows === undefined) found.push({ before, rows: (rows = []) });
      rows.push(
        line
          .slice(1, -1)
          .split(/(?<!\\)\|/)
          .map((cell) => cell.trim()),
      );
    } else {
      rows = undefined;
      if (line !== '') before = line;
    }
  }
  return found.map(({ before, rows: [, , ...body] }) => ({ before, rows: body }));
}

/** The tables in the section with this heading, its subsections left out. */
export function tablesOf(text: string, heading: string): Table[] {
  return tables(sectionOf(text, heading)).map(({ rows }) => rows);
}

/** Every list of a text whose items are `- name: text`, as such rows, with the line before it that is not blank. */
export function lists(text: string): { before: string; rows: Table }[] {
  const found: { before: string; rows: Table }[] = [];
  let before = '';
  let rows: Table | undefined;
  for (const line of text.split('\n')) {
    const [, name, rest = ''] = /^- (.+?)(?:: (.*))?$/.exec(line) ?? [];
    if (name !== undefined) {
      if (rows === undefined) found.push({ before, rows: (rows = []) });
      rows.push([name, rest]);
    } else if (line !== '' && !line.startsWith('  ')) {
      rows = undefined;
      before = line;
    }
  }
  return found;
}

/** The lists in the section with this heading, its subsections left out. */
export function listsOf(text: string, heading: string): Table[] {
  return lists(sectionOf(text, heading)).map(({ rows }) => rows);
}

/** The text from a heading to the next. */
export function sectionOf(text: string, heading: string): string {
  const lines = text.split('\n');
  const from = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
  if (from === -1) throw new Error(`no heading ${heading}`);
  const length = lines.slice(from + 1).findIndex((line) => /^#+ /.test(line));
  return lines.slice(from + 1, length === -1 ? undefined : from + 1 + length).join('\n');
}

/** A cell's text in backticks, or undefined when the cell does not begin so. */
export function codeOf(cell: string): string | undefined {
  return /^`([^`]+)`/.exec(cell)?.[1];
}

/** The headings of a document, outside code blocks. */
export function headings(text: string): string[] {
  const prose = text.replace(/^```.*?^```$/gms, '');
  return [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
}

/** The anchor that a heading gets. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');
}
