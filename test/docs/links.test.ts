/** Links within the documents lead somewhere. */

import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { anchorOf, headings, readText, root } from './markdown.js';

const DOCUMENTS = [
  'docs/format.md',
  'docs/verification.md',
  'docs/codes.md',
  'docs/witness.md',
  'docs/ci.md',
  'docs/ed25519-verdicts.md',
  'ARCHITECTURE.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...['guide', 'hosts', 'reference'].flatMap((folder) =>
    readdirSync(join(root, 'docs', folder)).map((name) => `docs/${folder}/${name}`),
  ),
];

it.each(DOCUMENTS)('every link of %s leads somewhere', (document) => {
  const text = readText(document).replace(/^```.*?^```$/gms, '');
  const links = [...text.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = '']) => target);
  const broken = links.filter((target) => {
    if (/^https:\/\//.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? document : normalize(join(dirname(document), path));
    if (!existsSync(join(root, file))) return true;
    return anchor !== undefined && !headings(readText(file)).map(anchorOf).includes(anchor);
  });
  expect(broken).toEqual([]);
});
