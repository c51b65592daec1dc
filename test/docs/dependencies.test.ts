/** The order of folders in ARCHITECTURE.md is the order of dependencies, read from the imports themselves. */

import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { codeOf, readText, root, tablesOf } from './markdown.js';

interface Import {
  readonly from: string;
  /** A path from src, or a package. */
  readonly to: string;
  readonly isType: boolean;
}

function filesIn(folder: string): string[] {
  return readdirSync(join(root, 'src', folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return path.endsWith('.ts') ? [path] : [];
  });
}

const STATEMENT =
  /^(?:import|export)\s(type\s)?[^'"`;]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm;

function importsOf(file: string): Import[] {
  return [...readText(join('src', file)).matchAll(STATEMENT)].map((match) => {
    const specifier = match[2] ?? match[3] ?? match[4] ?? '';
    const to = specifier.startsWith('.')
      ? normalize(join(dirname(file), specifier)).replace(/\.js$/, '.ts')
      : specifier;
    return { from: file, to, isType: match[1] !== undefined };
  });
}

const files = filesIn('.');
const imports = files.flatMap(importsOf);
const isOwn = ({ to }: Import): boolean => files.includes(to);

/** A file's folder under src as ARCHITECTURE.md names it, or the file itself at the top. */
function placeOf(path: string): string {
  const [first = ''] = path.split('/');
  return path.includes('/') ? `${first}/` : first;
}

const order = (tablesOf(readText('ARCHITECTURE.md'), 'Folders')[0] ?? []).map(([place = '']) =>
  codeOf(place),
);

/** Every file of src that running `file` loads. */
function loadedBy(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const each of importsOf(file)) if (!each.isType && isOwn(each)) loadedBy(each.to, seen);
  return seen;
}

/** What package.json lets users import. */
const TARGETS = Object.values(
  (JSON.parse(readText('package.json')) as { exports: Record<string, string | { default: string }> }).exports,
).flatMap((target) =>
  typeof target === 'string' ? [] : [target.default.replace(/^\.\/dist\//, '').replace(/\.js$/, '.ts')],
);
const PUBLIC = TARGETS.filter((target) => !target.includes('*'));

describe('imports', () => {
  it('are found, and each leads to a file that is there', () => {
    expect(imports.length).toBeGreaterThan(200);
    const unread = imports.filter((each) => !isOwn(each) && each.to.endsWith('.ts'));
    expect(unread).toEqual([]);
  });

  it('every place in src is in the list, and every one in the list is there', () => {
    expect(new Set(order)).toEqual(new Set(files.map(placeOf)));
    expect(order.filter((place) => !existsSync(join(root, 'src', place ?? '')))).toEqual([]);
  });

  it('go only to places before', () => {
    const wrong = imports.filter(
      (each) => isOwn(each) && order.indexOf(placeOf(each.to)) > order.indexOf(placeOf(each.from)),
    );
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it.each([
    ['fs/', /^(?:node:)?fs(?:\/|$)/],
    ['cli/', /^commander$/],
  ])('only src/%s imports %s', (place, name) => {
    const importers = imports
      .filter((each) => !isOwn(each) && name.test(each.to))
      .map(({ from }) => placeOf(from));
    expect(new Set(importers)).toEqual(new Set([place]));
  });

  it('of the command line lead to the public API and to nothing else', () => {
    const ofCli = imports.filter((each) => placeOf(each.from) === 'cli/' && isOwn(each));
    const inner = ofCli.filter(({ to }) => placeOf(to) !== 'cli/' && !PUBLIC.includes(to));
    expect(ofCli.length).toBeGreaterThan(100);
    expect(inner.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('of the public API take whole entry points, each of which package.json names', () => {
    const entries = importsOf('index.ts').filter(({ to }) => !to.includes('/') && PUBLIC.includes(to));
    expect(new Set([...entries.map(({ to }) => to), 'index.ts'])).toEqual(new Set(PUBLIC));
  });

  it('each host is an entry point of its own', () => {
    expect(TARGETS).toContain('hosts/*/index.ts');
    const folders = readdirSync(new URL('../../src/hosts/', import.meta.url), { withFileTypes: true });
    const hosts = folders.filter((entry) => entry.isDirectory() && entry.name !== 'forms');
    expect(hosts.length).toBeGreaterThan(0);
    for (const { name } of hosts) {
      expect(importsOf('hosts/registry.ts').map(({ to }) => to)).toContain(`hosts/${name}/index.ts`);
    }
  });

  it('the step function loads nothing that touches the outside', () => {
    const loaded = [...loadedBy('verify/verify-line.ts')];
    expect(loaded.length).toBeGreaterThan(30);
    const outside = loaded.filter((file) => ['fs/', 'writer/', 'cli/', 'report/'].includes(placeOf(file)));
    expect(outside).toEqual([]);
    const packages = loaded.flatMap(importsOf).filter((each) => !isOwn(each) && !each.isType);
    expect(new Set(packages.map(({ to }) => to))).toEqual(
      new Set(['#platform', '@noble/ed25519', '@noble/post-quantum/ml-dsa.js', 'canonicalize']),
    );
  });
});
