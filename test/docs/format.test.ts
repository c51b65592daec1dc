/** docs/spec/format.md and the members in docs/spec/verification.md against the schemas, and the sections that comments cite. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CODE_PAGES } from '../../src/api/index.js';
import { schemaDocument } from '../../src/format/schema/documents.js';
import { headings, lists, readText, root, type Table } from './markdown.js';

interface Schema {
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly pattern?: string;
}

const format = readText('docs/spec/format.md');
const verification = readText('docs/spec/verification.md');

/** The schema at `file.json` or `file.json#/path`. */
function schemaAt(reference: string): Schema {
  const [file = '', path = ''] = reference.split('#');
  let node: unknown = schemaDocument(file.replace('.json', ''));
  for (const step of path.split('/').slice(1)) node = (node as Record<string, unknown>)[step];
  if (typeof node !== 'object' || node === null) throw new Error(`no schema ${reference}`);
  return node;
}

/** The lists with a schema: `A + B` is schema A without the members of B. An item names members; `name`? is an optional one. */
function schemaLists(document: string): { reference: string; rows: Table }[] {
  return lists(document).flatMap(({ before, rows }) => {
    const reference = /^<!-- schema: (.+) -->$/.exec(before)?.[1];
    return reference === undefined ? [] : [{ reference, rows }];
  });
}

const cases = [...schemaLists(format), ...schemaLists(verification)].map(
  ({ reference, rows }) => [reference, rows] as const,
);

describe('lists of members', () => {
  it.each(cases)('of %s have the members of the schema', (reference, rows) => {
    const [own = '', base] = reference.split(' + ');
    const schema = schemaAt(own);
    const left = new Set(base === undefined ? [] : Object.keys(schemaAt(base).properties ?? {}));
    const documented = rows.flatMap(([names = '']) =>
      [...names.matchAll(/`([^`]+)`(\??)/g)].map(([, member, optional]) => [member, optional === '']),
    );
    const actual = Object.keys(schema.properties ?? {})
      .filter((member) => !left.has(member))
      .map((member) => [member, schema.required?.includes(member) === true]);
    expect(new Map(documented as [string, boolean][])).toEqual(new Map(actual as [string, boolean][]));
  });

  it('cover every event type, record, key, policy, report and finding', () => {
    const documented = cases.map(([reference]) => reference.split(' + ')[0]);
    const documents = readdirSync(join(root, 'schemas')).filter((name) => /\.json$/.test(name));
    // The values have lists of their own; any-event.json has no members, it chooses among the others. What is not part of the
    // format has documents of its own: docs/guide/report.md, docs/spec/bundle.md, docs/reference/import.md,
    // docs/guide/reconcile.md, docs/guide/gate.md, docs/guide/fleet.md.
    const others = [
      'common.json',
      'any-event.json',
      'activity-report.json',
      'bundle-result.json',
      'fleet-report.json',
      'import-report.json',
      'prices.json',
      'reconcile-report.json',
      'reconcile-expectation.json',
      'simulation-report.json',
    ];
    expect(documents.filter((name) => !others.includes(name) && !documented.includes(name))).toEqual([]);
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

  it('that docs/spec/beyond-schemas.json cites are there', () => {
    const { rules } = JSON.parse(readText('docs/spec/beyond-schemas.json')) as {
      rules: { section: string }[];
    };
    const cited = rules.flatMap(({ section }) => [...section.matchAll(/§(\d+(?:\.\d+)?)/g)]);
    expect(cited.length).toBeGreaterThanOrEqual(rules.length);
    expect(cited.map(([, section = '']) => section).filter((section) => !sections.has(section))).toEqual([]);
  });

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
    expect(rules).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
    for (const { section } of Object.values(CODE_PAGES) as { section: string }[]) {
      for (const [, number = ''] of section.matchAll(/§(\d+(?:\.\d+)?)/g)) expect(sections).toContain(number);
      const rule = /rule (\d+)/.exec(section)?.[1];
      if (rule !== undefined) expect(rules).toContain(Number(rule));
    }
  });
});
