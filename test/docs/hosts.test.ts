/** Each host has a page for those who import, and beside its code the fields for those who change it. */

import { existsSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { CHECKERS, HOSTS } from '../../src/api/hosts.js';
import { readText, root } from './markdown.js';

const list = readText('docs/hosts/README.md');

/** The pages that the list names for a host. */
function pagesOf(name: string): string[] {
  return list
    .split('\n')
    .filter((line) => line.startsWith('- ['))
    .flatMap((line) => [...line.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)])
    .flatMap(([, names = '', path = '']) => (names.includes(`\`${name}\``) ? [`docs/hosts/${path}`] : []));
}

it.each(HOSTS.map(({ name }) => name))('%s is on one page, which leads to its fields', (name) => {
  const pages = pagesOf(name);
  expect(pages).toHaveLength(1);
  const text = readText(pages[0] ?? '');
  expect(text).toMatch(new RegExp(`\\b${name}\\b`));
  const [, fields = ''] = /\((\.\.\/\.\.\/src\/hosts\/[^)#]+README\.md)[)#]/.exec(text) ?? [];
  expect(fields).not.toBe('');
  expect(existsSync(join(root, normalize(join('docs/hosts', fields))))).toBe(true);
});

it.each(CHECKERS.map(({ name }) => name))('%s is in the list', (name) => {
  expect(list).toContain(`\`${name}\``);
});
