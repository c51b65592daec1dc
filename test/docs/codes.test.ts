/** docs/spec/codes.md is generated from the catalogue: `UPDATE=1 npx vitest run test/docs/codes.test.ts`. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'oxfmt';
import { expect, it } from 'vitest';
import { CODE_PAGES, type FindingCode } from '../../src/api/index.js';
import { anchorOf, headings, readText, root } from './markdown.js';

const PATH = 'docs/spec/codes.md';

interface Page {
  readonly title: string;
  readonly class: string;
  readonly severity: string;
  readonly section: string;
  readonly meaning: string;
  readonly cause: string;
  readonly remedy: string;
}

const pages = Object.entries(CODE_PAGES as Readonly<Record<string, Page>>) as [FindingCode, Page][];

const anchors = new Map(
  ['format', 'verification'].flatMap((name) =>
    headings(readText(`docs/spec/${name}.md`)).flatMap((heading) => {
      const number = /^(\d+(?:\.\d+)?)[. ]/.exec(heading)?.[1];
      return number === undefined ? [] : [[number, `${name}.md#${anchorOf(heading)}`] as const];
    }),
  ),
);

function link(section: string): string {
  return section.replace(/§(\d+(?:\.\d+)?)/g, (text, number: string) => {
    const anchor = anchors.get(number);
    if (anchor === undefined) throw new Error(`no section ${text}`);
    return `[${text}](${anchor})`;
  });
}

/** The effect of a finding of the code on the verdict. */
function weight({ class: findingClass, severity }: Page): string {
  if (findingClass === 'none') return severity;
  return severity === 'error' ? findingClass : `${severity} or ${findingClass}`;
}

/** Where verification.md gives each code: the sections whose numbered lists have it, in their order. */
const places = new Map<string, string[]>();
let section = '';
for (const line of readText('docs/spec/verification.md').split('\n')) {
  section = /^#+ (.+)$/.exec(line)?.[1] ?? section;
  const [, item = ''] = /^\d+\. (`[A-Z].*)$/.exec(line) ?? [];
  const [head = ''] = item.split(/: | → /);
  for (const [, code = ''] of head.matchAll(/`([A-Z_0-9]{4,})`/g)) {
    const found = places.get(code) ?? [];
    const given = `[${section}](verification.md#${anchorOf(section)})`;
    if (!found.includes(given)) places.set(code, [...found, given]);
  }
}

function render(): string {
  const sections = pages.map(
    ([code, page]) => `## ${code}

${page.title[0]?.toUpperCase()}${page.title.slice(1)} (${weight(page)}; ${link(page.section)}). ${page.meaning}

**Cause:** ${page.cause} **Remedy:** ${page.remedy}

**Given by:** ${(places.get(code) ?? []).join(', ')}.
`,
  );
  return `# Codes

The codes of findings, in the order of the catalogue. [verification.md](verification.md) says when each is given, where it points, and what it folds by. A code MUST NOT change its meaning within a major version. An \`invalid\` or \`violation\` is an error unless verification.md says otherwise. Generated from \`src/format/finding/catalog.ts\`.

${sections.join('\n')}`;
}

it('docs/spec/codes.md matches the catalogue', async () => {
  const path = join(root, PATH);
  const { code: text } = await format(path, render());
  if (process.env['UPDATE'] === '1') writeFileSync(path, text);
  expect(readText(PATH)).toBe(text);
});
