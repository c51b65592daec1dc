/** docs/format.md and the tables of docs/verification.md against the schemas, and the sections that comments cite. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CODE_PAGES, schemaDocument } from '../../src/api/index.js';
import { codeOf, headings, namedBlocks, readText, root, tables, type Table } from './markdown.js';

interface Schema {
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly pattern?: string;
}

const format = readText('docs/format.md');
const verification = readText('docs/verification.md');

/** The schema at `file.json` or `file.json#/path`. */
function schemaAt(reference: string): Schema {
  const [file = '', path = ''] = reference.split('#');
  let node: unknown = schemaDocument(file.replace('.json', ''));
  for (const step of path.split('/').slice(1)) node = (node as Record<string, unknown>)[step];
  if (typeof node !== 'object' || node === null) throw new Error(`no schema ${reference}`);
  return node;
}

/** The tables that say of which schema they are, and of which other members they leave out. */
function schemaTables(document: string): { reference: string; rows: Table }[] {
  return tables(document).flatMap(({ before, rows }) => {
    const reference = /^<!-- schema: (.+) -->$/.exec(before)?.[1];
    return reference === undefined ? [] : [{ reference, rows }];
  });
}

const cases = [...schemaTables(format), ...schemaTables(verification)].map(
  ({ reference, rows }) => [reference, rows] as const,
);

describe('tables of members', () => {
  it.each(cases)('of %s have the members of the schema', (reference, rows) => {
    const [own = '', base] = reference.split(' + ');
    const schema = schemaAt(own);
    const left = new Set(base === undefined ? [] : Object.keys(schemaAt(base).properties ?? {}));
    const documented = rows.map(([member = '', required = '']) => [codeOf(member), /^yes\b/.test(required)]);
    const actual = Object.keys(schema.properties ?? {})
      .filter((member) => !left.has(member))
      .map((member) => [member, schema.required?.includes(member) === true]);
    expect(new Map(documented as [string, boolean][])).toEqual(new Map(actual as [string, boolean][]));
  });

  it('cover every event type, record, key, policy, report and finding', () => {
    const documented = cases.map(([reference]) => reference.split(' + ')[0]);
    const documents = readdirSync(join(root, 'schemas')).filter((name) => /\.json$/.test(name));
    // The values have tables of their own; any-event.json has no members, it chooses among the others. What is not part of the
    // format has documents of its own: docs/guide/report.md, docs/bundle.md, docs/import.md, docs/guide/reconcile.md.
    const others = [
      'common.json',
      'any-event.json',
      'activity-report.json',
      'bundle-result.json',
      'import-report.json',
      'reconcile-report.json',
      'reconcile-expectation.json',
    ];
    expect(documents.filter((name) => !others.includes(name) && !documented.includes(name))).toEqual([]);
  });
});

describe('what no schema says', () => {
  it('is what docs/beyond-schemas.json lists', () => {
    const { rules } = JSON.parse(readText('docs/beyond-schemas.json')) as {
      rules: { rule: string; scope: string; codes: string[]; says: string }[];
    };
    const table = tables(format).find(({ before }) => before === '<!-- beyond-schemas -->');
    const expected = rules.map(({ rule, scope, codes, says }) => [
      `\`${rule}\``,
      scope,
      codes.map((code) => `\`${code}\``).join(', '),
      says,
    ]);
    expect(table?.rows).toEqual(expected);
  });
});

describe('patterns', () => {
  const patterns = (namedBlocks(format).get('patterns') ?? '').split('\n').map((line) => {
    const [name = '', pattern = ''] = line.split(/ +/, 2);
    return [name, pattern] as const;
  });

  it.each(patterns)('%s is the pattern of the schema', (name, pattern) => {
    const written = pattern.replace(/\\u([0-9a-f]{4})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    expect(schemaAt(`common.json#/$defs/${name}`).pattern).toBe(written);
  });

  it('are all there', () => {
    const defs = schemaAt('common.json#/$defs') as Record<string, Schema>;
    const withPattern = Object.keys(defs).filter((name) => defs[name]?.pattern !== undefined);
    // A canonical_profile_id is a profile_id with one value allowed.
    const expected = withPattern.filter((name) => name !== 'canonical_profile_id');
    expect(patterns.map(([name]) => name).sort()).toEqual(expected.sort());
  });
});

describe('sections', () => {
  const sections = new Set(
    [...headings(format), ...headings(verification)].flatMap(
      (heading) => /^(\d+(?:\.\d+)?)[. ]/.exec(heading)?.[1] ?? [],
    ),
  );

  function sourceFiles(folder: string): string[] {
    return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return entry.name === 'generated' ? [] : sourceFiles(path);
      return path.endsWith('.ts') ? [path] : [];
    });
  }

  it('that comments cite are there', () => {
    const cited = sourceFiles('src').flatMap((path) =>
      [...readText(path).matchAll(/SPEC §(\d+(?:\.\d+)?)/g)].map(([, section = '']) => section),
    );
    expect(cited.length).toBeGreaterThan(50);
    expect([...new Set(cited)].filter((section) => !sections.has(section))).toEqual([]);
  });

  it('and rules that comments and codes cite are numbered', () => {
    const rules = [
      ...(verification.split('### Rules\n')[1] ?? '').split('\n### ')[0].matchAll(/^(\d+)\. \*\*/gm),
    ].map(([, number]) => Number(number));
    expect(rules).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 18]);
    const sections = Object.values(CODE_PAGES).map(({ section }: { section: string }) => section);
    for (const section of sections) {
      const rule = /rule (\d+)/.exec(section)?.[1];
      if (rule !== undefined) expect(rules).toContain(Number(rule));
    }
  });
});
