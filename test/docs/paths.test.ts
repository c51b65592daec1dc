/** Files and folders of the repository that the documents name are there. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readText, root } from './markdown.js';

const DOCUMENTS = [
  'README.md',
  'ARCHITECTURE.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  ...(readdirSync(join(root, 'docs'), { recursive: true }) as string[])
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** What is made by running, such as `dist/`, need not be there. */
const IGNORED = readText('.gitignore')
  .split('\n')
  .map((line) => line.replace(/^\/|\/$/g, ''))
  .filter((line) => line !== '');

const TOP = readdirSync(root, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !['.git', 'node_modules', 'dist'].includes(entry.name))
  .map(({ name }) => name);

/** Every file and folder of the repository; those in `src/` also without it, and without their room, as documents name them. */
const NAMES = [
  ...readdirSync(root),
  ...TOP.flatMap((top) =>
    (readdirSync(join(root, top), { recursive: true }) as string[]).map((name) => `${top}/${name}`),
  ),
].flatMap((name) => {
  const [top, room, ...rest] = name.split('/');
  if (top !== 'src' || room === undefined) return [name];
  return [name, [room, ...rest].join('/'), ...(rest.length === 0 ? [] : [rest.join('/')])];
});

const ROOMS = readdirSync(join(root, 'src'));
const FOLDERS = new Set([...TOP, ...ROOMS, ...ROOMS.flatMap((room) => readdirSync(join(root, 'src', room)))]);

/** What a document names in backticks that can only be a file or a folder of the repository. */
function pathsIn(text: string): string[] {
  const prose = text.replace(/^ *```.*?^ *```$/gms, '');
  const names = [...prose.matchAll(/`([^`\s]+)`/g)].map(([, name = '']) => name);
  return names.filter((name) => {
    const [first = ''] = name.split('/');
    if (!name.includes('/')) return /\.(?:ts|md)$/.test(name);
    return TOP.includes(first) || (FOLDERS.has(first) && /(?:\.(?:ts|js|md|json)|\/\*?)$/.test(name));
  });
}

/** `*`, and names in capitals such as `NAME`, stand for any; a name alone is that of a file in any folder. */
function exists(path: string): boolean {
  const name = path.replace(/\/$/, '');
  if (IGNORED.includes(name)) return true;
  const pattern = name
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/\*|(?<=\/)[A-Z]{2,}(?=\\\.json|\/)/g, '[^/]+');
  const matches = new RegExp(name.includes('/') ? `^${pattern}$` : `(?:^|/)${pattern}$`);
  return NAMES.some((each) => matches.test(each));
}

it.each(DOCUMENTS)('%s names files and folders that are there', (document) => {
  expect(pathsIn(readText(document)).filter((path) => !exists(path))).toEqual([]);
});

it('a path that is not there is found', () => {
  const text =
    'See `text/report.ts`, `report/text.ts`, `chain.ts`, `nowhere.ts`, `schemas/NAME.json` and `src/nowhere/`.';
  expect(pathsIn(text).filter((path) => !exists(path))).toEqual([
    'report/text.ts',
    'nowhere.ts',
    'src/nowhere/',
  ]);
});
