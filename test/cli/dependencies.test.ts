/** What an installation brings along: install scripts, and native code that is not there. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Workshop } from './runner.js';

interface Locked {
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly hasInstallScript?: boolean;
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

describe('what is installed with northroot', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> };
  const installed = Object.entries(packages).filter(
    ([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true,
  );

  it('has one install script, of a package that brings its binaries', () => {
    expect(installed.length).toBeGreaterThan(10);
    const scripted = installed.filter(([, { hasInstallScript }]) => hasInstallScript === true);
    expect(scripted.map(([path]) => path)).toEqual(['node_modules/classic-level']);
    expect(existsSync(join(root, 'node_modules/classic-level/prebuilds/linux-x64'))).toBe(true);
  });

  it('does not bring cbor-x, which is in dist with its license', () => {
    expect(installed.map(([path]) => path)).not.toContain('node_modules/cbor-x');
    const bundles = readdirSync(join(root, 'dist/lib')).map((name) => `dist/lib/${name}`);
    const copies = [...bundles, 'dist/cli/northroot.cjs']
      .map(read)
      .filter((text) => text.includes('cbor-x\n'));
    expect(copies.length).toBe(2);
    for (const text of copies) {
      expect(text).toContain('Permission is hereby granted');
      expect(text).not.toMatch(/(?:from|require\(|import\(?) ?["']cbor-/);
    }
  });
});

describe('where LevelDB cannot be loaded', () => {
  const { run, ledger } = prepare();

  it.each([['budget'], ['status'], ['show', '3'], ['why', '3']])(
    '%s answers as without an index',
    (...words) => {
      const [command = '', ...rest] = words;
      const answer = run([command, ledger, ...rest]);
      expect(answer).toEqual(run([command, ledger, ...rest, '--no-index']));
      expect(answer.stderr).not.toContain('INTERNAL_ERROR');
    },
  );

  it('append writes', () => {
    expect(run(['append', ledger, '--principal', 'service:a'], EVENT).status).toBe(0);
    expect(run(['verify', ledger]).status).toBe(0);
  });

  it('index says that it cannot', () => {
    const { status, stderr } = run(['index', ledger]);
    expect(status).toBe(2);
    expect(stderr).toContain('INDEX_UNUSABLE');
  });
});

const EVENT = '{"event_type":"x.test"}\n';

function prepare(): {
  readonly run: (args: readonly string[], input?: string) => ReturnType<Workshop['run']>;
  readonly ledger: string;
} {
  const workshop = new Workshop({ ownProcesses: true });
  const hook = fileURLToPath(new URL('children/without-level.cjs', import.meta.url));
  const env = { NODE_OPTIONS: `--require=${hook}` };
  const run = (args: readonly string[], input = ''): ReturnType<Workshop['run']> =>
    workshop.run(args, { input, env });
  run(['init', 'large.jsonl', '--origin', 'example.com/large', '--quiet']);
  // Large enough for an index.
  const events = Array.from({ length: 600 }, (_, n) => `{"event_type":"x.test","n":"${n}"}\n`).join('');
  run(['append', 'large.jsonl', '--principal', 'service:a', '--quiet'], events);
  return { run, ledger: 'large.jsonl' };
}
