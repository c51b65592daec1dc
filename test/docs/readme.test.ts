/** The README's commands are run as they are, in its order, in one folder. */

import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { readText, root } from './markdown.js';
import { blocksOf, runBlocks, stepsOf } from './walk-kit.js';

const readme = readText('README.md');
const blocks = blocksOf(readme);

describe('README', () => {
  it('has the blocks that are run here', () => {
    expect(stepsOf(blocks).length).toBeGreaterThanOrEqual(10);
    expect(blocks.map(({ kind }) => kind).filter((kind) => kind !== 'sh walk')).toEqual([
      'console',
      'sh',
      'sh skip',
    ]);
  });

  it('its commands do and print what it says', () => {
    expect(runBlocks(blocks)).toEqual(stepsOf(blocks));
  });

  it('its main command verifies a ledger of the package', () => {
    const [main] = blocks.filter(({ kind }) => kind === 'sh');
    const [, command = ''] = /^npm ci && npx northroot (.*)$/m.exec(main?.text ?? '') ?? [];
    const script = `exec node bin/northroot.js ${command}`;
    const { status, stdout } = spawnSync('bash', ['-c', script], { cwd: root, encoding: 'utf8' });
    expect(stdout).toMatch(/^ok /);
    expect(status).toBe(0);
  });

  it('is of a package that runs no script when it is installed', () => {
    const { scripts } = JSON.parse(readText('package.json')) as { scripts: object };
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
    expect(readText('.ci/run')).toContain(test?.text);
  });

  it('says of each runtime dependency why it is there', () => {
    const { dependencies } = JSON.parse(readText('package.json')) as { dependencies: object };
    const named = [...readme.matchAll(/^\| `([\w@/-]+)` +\| \w/gm)].map(([, name]) => name);
    expect(named.toSorted()).toEqual(Object.keys(dependencies).toSorted());
  });

  it('is at most 10 kB', () => {
    expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(10_000);
  });
});
