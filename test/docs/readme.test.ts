/** The README's commands and its example are run as they stand, in its order, in one folder. */

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const readme = readFileSync(join(root, 'README.md'), 'utf8');

interface Block {
  readonly kind: string;
  readonly text: string;
}

const blocks: Block[] = [...readme.matchAll(/^```([^\n]+)\n(.*?)^```$/gms)].map((match) => ({
  kind: match[1],
  text: match[2],
}));

/** The commands of the walk with the exit status that the README gives them, 0 unless said. */
const commands = blocks
  .filter(({ kind }) => kind === 'sh walk')
  .flatMap(({ text }) => text.trim().split('\n'))
  .map((line) => ({ line, status: Number(/# exit (\d)$/.exec(line)?.[1] ?? 0) }));

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'northroot-readme-'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin', 'northroot'), `#!/bin/sh\nexec node ${root}bin/northroot.js "$@"\n`);
  chmodSync(join(folder, 'bin', 'northroot'), 0o755);
  for (const { kind, text } of blocks) {
    const [, file] = /^js (\S+\.mjs)$/.exec(kind) ?? [];
    if (file !== undefined) writeFileSync(join(folder, file), text);
  }
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules', 'northroot'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string, args: readonly string[], cwd: string) {
  const path = `${join(folder, 'bin')}:${process.env['PATH']}`;
  return spawnSync(command, args, { cwd, encoding: 'utf8', env: { ...process.env, PATH: path } });
}

describe('README', () => {
  it('has the blocks that are run here', () => {
    expect(commands.length).toBeGreaterThanOrEqual(10);
    expect(blocks.map(({ kind }) => kind).filter((kind) => kind !== 'sh walk')).toEqual([
      'sh',
      'sh skip',
      'console',
      'js forge.mjs',
      'js example',
    ]);
  });

  it('its walk does what it says, command by command', () => {
    const script = commands
      .map(({ line }) => `{ ${line.replace(/#.*/, '')}\n} > out 2>&1; echo "$?"`)
      .join('\n');
    const { stdout } = run('bash', ['-c', script], folder);
    expect(stdout.trim().split('\n').map(Number)).toEqual(commands.map(({ status }) => status));
  });

  it('its main command verifies a ledger of the package', () => {
    const [main] = blocks.filter(({ kind }) => kind === 'sh');
    const [, command] = /^npm ci && npx (.*)$/m.exec(main?.text ?? '') ?? [];
    const { status, stdout } = run('bash', ['-c', command], root);
    expect(stdout).toMatch(/^ok /);
    expect(status).toBe(0);
  });

  it('shows real output', () => {
    const [console] = blocks.filter(({ kind }) => kind === 'console');
    const [, command = '', output] = /^\$ (northroot [^\n]*)\n(.*)$/s.exec(console?.text ?? '') ?? [];
    const { status, stdout } = run('bash', ['-c', command], root);
    expect(stdout).toBe(output);
    expect(status).toBe(3);
  });

  it('its example runs, and runs again', () => {
    const [example] = blocks.filter(({ kind }) => kind === 'js example');
    writeFileSync(join(folder, 'example.mjs'), example?.text ?? '');
    for (const left of ['4.97', '4.94']) {
      const { stdout, stderr } = run('node', ['example.mjs'], folder);
      expect(stderr).toBe('');
      expect(stdout).toBe(`hello ${left} ok\n`);
    }
  });

  it('is of a package that runs no script when it is installed', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
    const installing = [
      'preinstall',
      'install',
      'postinstall',
      'prepublish',
      'preprepare',
      'prepare',
      'postprepare',
    ];
    expect(Object.keys(scripts).filter((name) => installing.includes(name))).toEqual([]);
  });

  it('its test command is what CI runs', () => {
    const [test] = blocks.filter(({ kind }) => kind === 'sh skip');
    expect(readFileSync(join(root, '.ci', 'run'), 'utf8')).toContain(test?.text);
  });
});
