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

function render(): string {
  const items = pages.map(
    ([code, page]) => `- \`${code}\` (${weight(page)}; ${link(page.section)}): ${page.title}`,
  );
  return `# Codes

The codes of findings, in the order of the catalogue. [verification.md](verification.md) says when each is given, where it points, and what it folds by. A code MUST NOT change its meaning within a major version. An \`invalid\` or \`violation\` is an error unless verification.md says otherwise. In brackets are weight and sections. Generated from \`src/format/finding/catalog.ts\`, which also has meanings, usual causes and remedies: \`northroot explain CODE\` prints them.

${items.join('\n')}
`;
}

it('docs/spec/codes.md matches the catalogue', async () => {
  const path = join(root, PATH);
  const { code: text } = await format(path, render());
  if (process.env['UPDATE'] === '1') writeFileSync(path, text);
  expect(readText(PATH)).toBe(text);
});
