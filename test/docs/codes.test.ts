/** docs/spec/codes.md is generated from the catalogue: `UPDATE=1 npx vitest run test/docs/codes.test.ts`. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'oxfmt';
import { expect, it } from 'vitest';
import { CODE_PAGES, type FindingCode } from '../../src/api/index.js';
import { readText, root } from './markdown.js';

const PATH = 'docs/spec/codes.md';

interface Page {
  readonly class: string;
  readonly severity: string;
}

const pages = Object.entries(CODE_PAGES as Readonly<Record<string, Page>>) as [FindingCode, Page][];

/** All weights, worst first. */
const WEIGHTS = ['invalid', 'info or invalid', 'violation', 'warning', 'info'];

/** The effect of a finding of the code on the verdict. */
function weight({ class: findingClass, severity }: Page): string {
  if (findingClass === 'none') return severity;
  return severity === 'error' ? findingClass : `${severity} or ${findingClass}`;
}

/** The codes of each weight, in the order of the catalogue. */
function render(): string {
  const items = WEIGHTS.map((each) => {
    const codes = pages.filter(([, page]) => weight(page) === each).map(([code]) => `\`${code}\``);
    return `- ${each}: ${codes.join(', ')}\n`;
  });
  return `# Codes

The codes of findings, by weight. A code MUST NOT change its meaning within a major version. [verification.md](verification.md) says when each is given, and where its weight is another. Generated from \`src/format/finding/catalog.ts\`; \`northroot explain CODE\` prints section, meaning, usual cause and remedy.

${items.join('')}`;
}

it('docs/spec/codes.md matches the catalogue', async () => {
  const path = join(root, PATH);
  expect(pages.filter(([, page]) => !WEIGHTS.includes(weight(page)))).toEqual([]);
  const { code: text } = await format(path, render());
  if (process.env['UPDATE'] === '1') writeFileSync(path, text);
  expect(readText(PATH)).toBe(text);
});
