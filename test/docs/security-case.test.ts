/** Each promise of SECURITY.md and docs/reference/limits.md is in test/security-case.md, with what keeps it and what shows it; and all that is named there is there. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { INVARIANTS } from '../invariants.js';
import { headings, readText, root, sectionOf, tablesOf } from './markdown.js';

const security = `${readText('SECURITY.md')}\n${readText('docs/reference/limits.md')}`;
const securityCase = readText('test/security-case.md');

/** Sections that say what is not promised, or promise nothing. */
const LIMITS = [
  ...['Security', 'What `ok` does not prove', 'Reporting'],
  ...['Limits', 'Hooks of coding agents', 'Approvals'],
];
const promising = headings(security).filter((heading) => !LIMITS.includes(heading));

/** What a section promises: the first words of its items, or else the whole of it. */
function promisesOf(heading: string): string[] {
  const section = sectionOf(security, heading);
  const items = section.split('\n').filter((line) => line.startsWith('- '));
  if (items.length === 0) return [heading];
  return items.map((item) => {
    const lead = /^- \*\*(.+?)\.?\*\*/.exec(item)?.[1];
    if (lead === undefined) throw new Error(`begin with bold words, which name it: ${item}`);
    return lead;
  });
}

interface Row {
  readonly promise: string;
  readonly keptBy: string;
  readonly holds: string;
  readonly fails: string;
  readonly model: string;
  readonly restsOn: string;
}

const [table = []] = tablesOf(securityCase, 'Security case');
const rows = table.map(([promise = '', keptBy = '', holds = '', fails = '', model = '', restsOn = '']) => {
  const row: Row = { promise, keptBy, holds, fails, model, restsOn };
  return [promise, row] as const;
});

/** Paths in backticks, and what is quoted behind each. */
function namedIn(cell: string): { readonly path: string; readonly title: string | undefined }[] {
  return [...cell.matchAll(/`((?:src|test|fixtures|formal)\/[^`]+)`(?: "([^"]+)")?/g)].map(
    ([, path = '', title]) => ({ path, title }),
  );
}

/** The names in backticks that are no paths. */
function wordsIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, word = '']) => (word.includes('/') ? [] : [word]));
}

describe('each promise', () => {
  it('has its line, in their order, and nothing else has one', () => {
    expect(rows.map(([promise]) => promise)).toEqual(promising.flatMap(promisesOf));
  });

  it.each(rows)('%s: is kept by code that is there', (_, { keptBy }) => {
    const named = namedIn(keptBy);
    expect(named.length).toBeGreaterThan(0);
    for (const part of keptBy.split(';')) {
      const [{ path } = { path: '' }] = namedIn(part);
      expect(path).toMatch(/^src\//);
      const text = readText(path);
      for (const word of wordsIn(part))
        expect(text).toMatch(new RegExp(`\\b(?:function|class|const) ${word}\\b`));
    }
  });

  it.each(rows)(
    '%s: has a test that shows it, and one that shows it broken or a limit that is said',
    (_, row) => {
      expect(namedIn(row.holds).some(isEvidence)).toBe(true);
      if (!/^limit: ./.test(row.fails)) expect(namedIn(row.fails).some(isEvidence)).toBe(true);
    },
  );

  it.each(rows)('%s: has a model, or says that it has none', (_, { model }) => {
    const isModelled = namedIn(model).some(({ path }) =>
      /^(?:formal|test\/(?:exploration|simulation))\b/.test(path),
    );
    expect(isModelled || /^none\b/.test(model) || /`test\//.test(model)).toBe(true);
    for (const word of /invariants ([^;]*?)(?: in |$)/.exec(model)?.[1]?.matchAll(/`([^`]+)`/g) ?? [])
      expect(Object.keys(INVARIANTS)).toContain(word[1]);
  });

  it.each(rows)('%s: says what it rests on', (_, { restsOn }) => {
    expect(restsOn).not.toBe('');
  });
});

function isEvidence({ path, title }: { readonly path: string; readonly title: string | undefined }): boolean {
  return (
    path.startsWith('fixtures/') ||
    (path.startsWith('test/') && (title !== undefined || !path.endsWith('.ts')))
  );
}

/** All fixtures have their expected findings. */
const expected = readText('fixtures/expected.json');

it.each(
  namedIn(securityCase).map(({ path, title }) => [
    title === undefined ? path : `${path} "${title}"`,
    path,
    title,
  ]),
)('%s is there', (_, path = '', title) => {
  expect(existsSync(join(root, path))).toBe(true);
  if (path.startsWith('fixtures/')) expect(expected).toContain(path.replace('fixtures/', ''));
  // As its quotes may be of any kind, a title is looked for without what stands around it.
  if (title !== undefined) expect(readText(path)).toContain(title);
});

it('each fixture that is to hold has no errors, and each that is to fail has findings', () => {
  for (const [promise, { holds, fails }] of rows) {
    for (const { path } of namedIn(holds))
      expect([promise, path]).toEqual([promise, path.replace('fixtures/broken/', '')]);
    for (const { path } of namedIn(fails))
      expect([promise, path]).toEqual([promise, path.replace('fixtures/ledgers/', '')]);
  }
});
