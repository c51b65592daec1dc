/** Links within the documents lead somewhere. */

import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { anchorOf, headings, readText, root } from './markdown.js';

const DOCUMENTS = [
  'docs/spec/format.md',
  'docs/spec/verification.md',
  'docs/spec/codes.md',
  'docs/spec/proofs.md',
  'docs/spec/bundle.md',
  'docs/guide/witness.md',
  'docs/report.md',
  'docs/ci.md',
  'docs/spec/ed25519-verdicts.md',
  'ARCHITECTURE.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
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
