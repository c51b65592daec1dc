/** The package as npm makes it of what is built, installed with its dependencies and nothing else. */

import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const MAX_BYTES = 2_000_000;

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}
interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

const { dependencies, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

describe('the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-package-'));
  const modules = join(folder, 'node_modules');
  let packed: Packed;

  function run(
    program: string,
    ...args: string[]
  ): { readonly status: number | null; readonly stdout: string } {
    const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: 'utf8' });
    if (status !== 0) console.error(`${program} ${args.join(' ')}:\n${stderr}`);
    return { status, stdout };
  }
  const northroot = (...args: string[]): ReturnType<typeof run> =>
    run(process.execPath, join(modules, 'northroot/bin/northroot.js'), ...args);

  beforeAll(() => {
    const { stdout } = run('npm', 'pack', root, '--json', '--ignore-scripts', '--pack-destination', folder);
    [packed] = JSON.parse(stdout) as [Packed];
    mkdirSync(join(modules, 'northroot'), { recursive: true });
    run('tar', '-xzf', packed.filename, '-C', 'node_modules/northroot', '--strip-components=1');
    for (const name of Object.keys(dependencies)) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(root, 'node_modules', name), join(modules, name));
    }
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('has at most 2 MB', () => {
    expect(packed.size).toBeLessThanOrEqual(MAX_BYTES);
  });

  it('has what package.json exports, and nothing that only this repository uses', () => {
    const paths = packed.files.map(({ path }) => path);
    const targets = Object.values(exports)
      .flatMap((each) => (typeof each === 'string' ? [each] : [each.types, each.default]))
      .filter((path) => !path.includes('*'));
    expect(targets.filter((path) => !paths.includes(path.slice('./'.length)))).toEqual([]);
    expect(paths.filter((path) => /internals|\.code$/.test(path))).toEqual([]);
  });

  it('can be imported, each entry point', () => {
    const names = Object.entries(exports).flatMap(([name, target]) => {
      if (typeof target === 'string') return [];
      if (!name.includes('*')) return [name];
      const [before = '', after = ''] = target.default.split('*');
      return packed.files
        .map(({ path }) => `./${path}`)
        .filter((path) => path.startsWith(before) && path.endsWith(after))
        .map((path) => name.replace('*', path.slice(before.length, -after.length)));
    });
    expect(names.length).toBeGreaterThan(20);
    // Kits import what they are for, which only who uses them has.
    const kits = ['./ai', './langchain', './openai-agents', './claude-agent', './mcp', './otel'];
    const specifiers = names
      .filter((name) => !kits.includes(name))
      .map((name) => `northroot${name.slice(1)}`);
    writeFileSync(
      join(folder, 'import.js'),
      specifiers.map((name) => `await import(${JSON.stringify(name)});\n`).join(''),
    );
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    expect(run(process.execPath, 'import.js').status).toBe(0);
  });

  it('writes, verifies and exports a ledger', () => {
    expect(northroot('--version').stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    writeFileSync(join(folder, 'event.json'), '{"event_type":"x.test"}');
    for (const args of [
      ['init', 'ledger.jsonl', '--origin', 'example.com/package'],
      ['append', 'ledger.jsonl', '--principal', 'service:test', 'event.json'],
      ['checkpoint', 'ledger.jsonl'],
      ['verify', 'ledger.jsonl'],
      ['verify', '--threads', '2', 'ledger.jsonl'],
      ['export', 'ledger.jsonl', '--bundle', 'ledger.nrb', '--event', '1'],
      ['verify', 'ledger.nrb'],
      ['export', 'ledger.jsonl', '--html', 'page.html'],
      ['help'],
    ]) {
      expect([args.join(' '), northroot(...args).status]).toEqual([args.join(' '), 0]);
    }
    expect(readdirSync(folder)).toContain('page.html');
  });
});
