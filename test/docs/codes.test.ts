/** docs/spec/codes.md is written from the catalogue and the command line's remedies: `UPDATE=1 npx vitest run test/docs/codes.test.ts` writes it anew. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, it } from 'vitest';
import { remedyFor } from '../../src/cli/remedies.js';
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

/** What a finding of the code does to the verdict. */
function weight({ class: findingClass, severity }: Page): string {
  return findingClass === 'none' ? severity : `${severity}, ${findingClass}`;
}

function render(): string {
  const index = pages.map(
    ([code, page]) => `| [${code}](#${anchorOf(code)}) | ${page.title} | ${weight(page)} |`,
  );
  const sections = pages.map(
    ([code, page]) => `## ${code}

${page.title[0]?.toUpperCase()}${page.title.slice(1)}. (${weight(page)}; ${link(page.section)})

${page.meaning}

- Usual cause: ${page.cause}
- What to do: ${remedyFor(code)}
`,
  );
  return `# Codes

Every code that a finding can have: what it means, what usually causes it, what to do. When exactly each is given, and where it points, is in [verification.md](verification.md#codes). A code never changes its meaning within a major version. \`northroot explain CODE\` says the same.

This file is generated from \`src/format/finding/catalog.ts\` and \`src/cli/remedies.ts\`.

| code | what was found | weight |
| --- | --- | --- |
${index.join('\n')}

${sections.join('\n')}`;
}

it('docs/spec/codes.md is what `northroot explain` says', async () => {
  const path = join(root, PATH);
  const text = await format(render(), { ...(await resolveConfig(path)), filepath: path });
  if (process.env['UPDATE'] === '1') writeFileSync(path, text);
  expect(readText(PATH)).toBe(text);
});
