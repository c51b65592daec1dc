/**
 * How the command line is loaded: the commands that are run most from a script of their own, with the code that V8 made of it before only
 * where that is as good as the script.
 */

import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GROUPS as FEW } from '../../src/cli/frequent.js';
import { GROUPS as ALL } from '../../src/cli/main.js';
import { OTHERS } from '../../src/cli/other-commands.js';
import { type Groups, makeProgram } from '../../src/cli/program.js';
import { CLI } from './runner.js';

interface Loader {
  readonly FREQUENT: readonly string[];
  readonly SCRIPT: URL;
  readonly CODE: URL;
  readonly compile: (script?: URL, code?: URL) => { readonly isPrepared: boolean };
}
const { FREQUENT, SCRIPT, CODE, compile } = (await import(
  new URL('../../bin/load.js', import.meta.url).href
)) as Loader;

const PACKAGE = new URL('../../package.json', import.meta.url);

/** Whether the code is taken, after `change` of it. */
function isTaken(change: (code: string, script: string) => void): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-start-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [script, code] = [join(folder, 'script.cjs'), join(folder, 'script.code')];
  copyFileSync(SCRIPT, script);
  copyFileSync(CODE, code);
  chmodSync(script, 0o644);
  chmodSync(code, 0o644);
  change(code, script);
  return compile(pathToFileURL(script), pathToFileURL(code)).isPrepared;
}

describe('the code beside the script', () => {
  it('is taken as it was made', () => {
    expect(isTaken(() => undefined)).toBe(true);
  });

  it.each<[string, (code: string, script: string) => void]>([
    ['everybody may write', (code) => chmodSync(code, 0o646)],
    ['a group may write that may not write the script', (code) => chmodSync(code, 0o664)],
    ['is not there', (code) => rmSync(code)],
    ['was cut off', (code) => writeFileSync(code, readFileSync(code).subarray(0, 100_000))],
    ['is empty', (code) => writeFileSync(code, '')],
    [
      'was changed',
      (code) => {
        const bytes = readFileSync(code);
        bytes[1_000] = bytes[1_000] ^ 1;
        writeFileSync(code, bytes);
      },
    ],
    [
      'was made of another script',
      (_, script) => writeFileSync(script, readFileSync(script, 'latin1').replace('northroot', 'morthroot')),
    ],
  ])('is not run where it %s', (_, change) => {
    expect(isTaken(change)).toBe(false);
  });
});

const helpOf = (groups: Groups): ReadonlyMap<string, string> =>
  new Map(
    makeProgram(groups, () => Promise.resolve()).commands.map((command) => [
      command.name(),
      [command, ...command.commands].map((each) => each.helpInformation()).join('\n'),
    ]),
  );
const all = helpOf(ALL);

describe('the commands that are run most', () => {
  const few = helpOf(FEW);

  it('are those for which the loader takes the script', () => {
    expect([...few.keys()].sort()).toEqual([...FREQUENT].sort());
  });

  it.each(FREQUENT)('%s is the same in the script as in the whole program', (name) => {
    expect(few.get(name)).toBe(all.get(name));
  });
});

describe('the other commands', () => {
  it('are those that the script does not have, but for the one that knows all', () => {
    expect([...Object.keys(OTHERS), ...FREQUENT, 'completion'].sort()).toEqual([...all.keys()].sort());
  });

  it.each(Object.entries(OTHERS))('%s is the same by itself', async (name, load) => {
    expect([...helpOf({ 'Commands:': await load() })]).toEqual([[name, all.get(name)]]);
  });
});

describe('an older Node', () => {
  const least = (JSON.parse(readFileSync(PACKAGE, 'utf8')) as { engines: { node: string } }).engines.node;
  /** `northroot --version` in a Node that says it has this version. */
  const runIn = (version: string): { status: number | null; stderr: string } => {
    const versions = `{ ...process.versions, node: '${version}' }`;
    const preload = `Object.defineProperty(process, 'versions', { value: ${versions} })`;
    const args = ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, CLI, '--version'];
    return spawnSync(process.execPath, args, { encoding: 'utf8' });
  };

  it('is told from a fault, and says nothing about a ledger', () => {
    const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(least)?.map(Number) ?? [];
    expect(runIn(`${major}.${minor}.0`)).toMatchObject({ status: 0, stderr: '' });
    expect(runIn(`${major + 1}.0.0`)).toMatchObject({ status: 0, stderr: '' });
    for (const old of [`${major}.${minor - 1}.9`, `${major - 1}.99.0`])
      expect(runIn(old)).toMatchObject({
        status: 2,
        stderr: expect.stringMatching(/^error: NODE_TOO_OLD: /),
      });
  });
});
