/** The order of rooms in ARCHITECTURE.md is the order of dependencies, read from the imports themselves. */

import { readdirSync } from 'node:fs';
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

/** The source of a built file. */
function sourceOf(target: string): string {
  return target.replace(/^\.\/dist\//, '').replace(/\.js$/, '.ts');
}

const files = filesIn('.');
const imports = files.flatMap(importsOf);
const isOwn = ({ to }: Import): boolean => files.includes(to);

/** The room of a file, as ARCHITECTURE.md names it. */
function roomOf(path: string): string {
  return `${path.split('/')[0]}/`;
}

const order = (tablesOf(readText('ARCHITECTURE.md'), 'Rooms')[0] ?? []).map(([room = '']) => codeOf(room));

/** What package.json calls `#fast/…`, and what takes its place in a build without it. */
const SEAMS: Readonly<Record<string, { fast: string; slow: string }>> = Object.fromEntries(
  Object.entries(
    (JSON.parse(readText('package.json')) as { imports: Record<string, Record<string, string>> }).imports,
  )
    .filter(([name]) => name.startsWith('#fast/'))
    .map(([name, { default: fast = '', 'without-fast': slow = '' }]) => [
      name,
      { fast: sourceOf(fast), slow: sourceOf(slow) },
    ]),
);

/** Files that import each other, types included, by the first of each circle. */
function circlesOf(): string[][] {
  const below = new Map(
    files.map((file) => [
      file,
      importsOf(file)
        .filter(isOwn)
        .map(({ to }) => to),
    ]),
  );
  const reached = new Map<string, Set<string>>();
  for (const file of files) {
    const seen = new Set<string>();
    const rest = [...(below.get(file) ?? [])];
    for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
      if (seen.has(next)) continue;
      seen.add(next);
      rest.push(...(below.get(next) ?? []));
    }
    reached.set(file, seen);
  }
  const inCircle = files.filter((file) => reached.get(file)?.has(file) === true);
  return inCircle.map((file) => inCircle.filter((each) => reached.get(file)?.has(each) === true));
}

/** Every file of src that running `file` loads. */
function loadedBy(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const each of importsOf(file)) {
    const to = SEAMS[each.to]?.fast ?? each.to;
    if (!each.isType && files.includes(to)) loadedBy(to, seen);
  }
  return seen;
}

/** What package.json lets users import. */
const TARGETS = Object.values(
  (JSON.parse(readText('package.json')) as { exports: Record<string, string | { default: string }> }).exports,
).flatMap((target) => (typeof target === 'string' ? [] : [sourceOf(target.default)]));
const PUBLIC = TARGETS.filter((target) => !target.includes('*'));

describe('imports', () => {
  it('are found, and each leads to a file that is there', () => {
    expect(imports.length).toBeGreaterThan(200);
    const unread = imports.filter((each) => !isOwn(each) && each.to.endsWith('.ts'));
    expect(unread).toEqual([]);
  });

  it('every room of src is in the list, and every one in the list is there', () => {
    expect(new Set(order)).toEqual(new Set(files.map(roomOf)));
    expect(readdirSync(join(root, 'src')).map((name) => `${name}/`)).toHaveLength(order.length);
  });

  it('go only to rooms before', () => {
    const wrong = imports.filter(
      (each) => isOwn(each) && order.indexOf(roomOf(each.to)) > order.indexOf(roomOf(each.from)),
    );
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('form no circle of files', () => {
    expect(circlesOf()).toEqual([]);
  });

  it('reach fast/ through its seams alone, each of which has a slow twin outside of it', () => {
    const into = imports.filter((each) => roomOf(each.to) === 'fast/' && roomOf(each.from) !== 'fast/');
    expect(into).toEqual([]);
    const asked = imports.filter(({ to }) => to.startsWith('#fast/'));
    expect(new Set(asked.map(({ to }) => to))).toEqual(new Set(Object.keys(SEAMS)));
    expect(asked.filter(({ from }) => roomOf(from) === 'fast/')).toEqual([]);
    for (const { fast, slow } of Object.values(SEAMS)) {
      expect(roomOf(fast)).toBe('fast/');
      expect(files).toContain(slow);
      expect(roomOf(slow)).not.toBe('fast/');
    }
  });

  it.each([
    ['log/fs/', /^(?:node:)?fs(?:\/|$)/],
    ['cli/', /^commander$/],
  ])('only src/%s imports %s', (place, name) => {
    const importers = imports.filter((each) => !isOwn(each) && name.test(each.to)).map(({ from }) => from);
    expect(importers.length).toBeGreaterThan(0);
    expect(importers.filter((from) => !from.startsWith(place))).toEqual([]);
  });

  it('only tests, and nothing of src, import the entry points', () => {
    const entries = imports.filter((each) => isOwn(each) && roomOf(each.to) === 'api/');
    expect(entries.filter(({ from }) => roomOf(from) !== 'api/')).toEqual([]);
  });

  it('of the main entry point take all the others but hosts and kits, and package.json names each', () => {
    const entries = importsOf('api/index.ts').filter(({ to }) => PUBLIC.includes(to));
    expect(new Set([...entries.map(({ to }) => to), 'api/index.ts', 'api/hosts.ts'])).toEqual(
      new Set(PUBLIC.filter((target) => !target.startsWith('gate/sdk/'))),
    );
  });

  it('each kit is an entry point of its own, an optional peer, and is imported by nothing', () => {
    const kits = PUBLIC.filter((target) => target.startsWith('gate/sdk/'));
    expect(kits).toHaveLength(6);
    expect(imports.filter(({ to }) => kits.includes(to)).map(({ from }) => from)).toEqual([]);
    const foreign = [...kits.flatMap((kit) => [...loadedBy(kit)])]
      .flatMap(importsOf)
      .filter((each) => !isOwn(each));
    const { peerDependencies, peerDependenciesMeta } = JSON.parse(readText('package.json')) as Record<
      'peerDependencies' | 'peerDependenciesMeta',
      Record<string, unknown>
    >;
    expect(foreign.filter(({ to }) => Object.hasOwn(peerDependencies, to))).toEqual([]);
    expect(Object.keys(peerDependenciesMeta)).toEqual(Object.keys(peerDependencies));
  });

  it('each host is an entry point of its own', () => {
    expect(TARGETS).toContain('hosts/*/index.ts');
    const folders = readdirSync(new URL('../../src/hosts/', import.meta.url), { withFileTypes: true });
    const hosts = folders.filter((entry) => entry.isDirectory() && entry.name !== 'shared');
    expect(hosts.length).toBeGreaterThan(0);
    const registered = importsOf('hosts/shared/registry.ts').map(({ to }) => to);
    for (const { name } of hosts) {
      const index = `hosts/${name}/index.ts`;
      // The codec alone is registered where `index.ts` has more.
      const own = [index, `hosts/${name}/${name}.ts`].filter((file) => registered.includes(file));
      expect(own, name).toHaveLength(1);
      expect([index, ...importsOf(index).map(({ to }) => to)]).toContain(own[0]);
    }
  });

  it('the step function loads nothing that touches the outside', () => {
    const loaded = [...loadedBy('rules/verify/verify-line.ts')];
    expect(loaded.length).toBeGreaterThan(30);
    const outside = loaded.filter((file) => ['log/', 'out/', 'cli/'].includes(roomOf(file)));
    expect(outside).toEqual([]);
    const packages = loaded.flatMap(importsOf).filter((each) => !isOwn(each) && !each.isType);
    expect(new Set(packages.map(({ to }) => to))).toEqual(
      new Set(['#fast/line', '#platform', '@noble/ed25519', '@noble/post-quantum/ml-dsa.js', 'canonicalize']),
    );
  });
});
