/**
 * man/northroot.1 and docs/reference/commands.md are made from the commands: `UPDATE=1 npx vitest run
 * test/docs/man-page.test.ts` writes them.
 */

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { format } from 'oxfmt';
import { expect, it } from 'vitest';
import { EXAMPLES, leavesOf } from '../../src/cli/examples.js';
import { EXPORT_KINDS } from '../../src/cli/exports/kinds.js';
import { GROUPS } from '../../src/cli/main.js';
import { makeProgram } from '../../src/cli/program.js';
import { hasProgram } from '../cli/runner.js';
import { renderCommandReference, renderManPage } from './manual.js';

const PATH = 'man/northroot.1';
const program = makeProgram(GROUPS, () => Promise.resolve());
const page = renderManPage(program);

it('is what the commands say', () => {
  if (process.env['UPDATE'] === '1') {
    mkdirSync('man', { recursive: true });
    writeFileSync(PATH, page);
  }
  expect(readFileSync(PATH, 'utf8')).toBe(page);
});

it('docs/reference/commands.md is what the commands say', async () => {
  const path = 'docs/reference/commands.md';
  const { code: reference } = await format('commands.md', renderCommandReference(program));
  if (process.env['UPDATE'] === '1') writeFileSync(path, reference);
  expect(readFileSync(path, 'utf8')).toBe(reference);
  for (const { words } of leavesOf(program)) expect(reference).toContain(` \`${words}\``);
});

it('has every command and option', () => {
  for (const { words, command } of leavesOf(program)) {
    expect(page).toContain(`.SS ${words.replaceAll('-', '\\-')}`);
    for (const { flags } of command.options) expect(page).toContain(flags.replaceAll('-', '\\-'));
  }
});

it('has only requests of man(7)', () => {
  const requests = page.split('\n').filter((line) => line.startsWith('.'));
  expect(requests.filter((line) => !/^\.(?:\\"|TH|SH|SS|TP|PP|B|nf|fi)\b|^\.\\"/.test(line))).toEqual([]);
});

it.skipIf(!hasProgram('groff'))('is taken by groff without a warning', () => {
  const { status, stderr } = spawnSync('groff', ['-man', '-Tutf8', '-ww', PATH], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
});

it('every command has examples, of options that it takes', () => {
  const leaves = leavesOf(program);
  expect(Object.keys(EXAMPLES).sort()).toEqual(leaves.map(({ words }) => words).sort());
  for (const { words, command } of leaves) {
    const known = [...command.options, ...program.options].flatMap(({ long, short }) => [long, short]);
    for (const example of EXAMPLES[words] ?? []) {
      const at = example.indexOf(`northroot ${words}`);
      expect([example, at >= 0]).toEqual([example, true]);
      // What is after -- or a pipe is another command.
      const [own = ''] = example.slice(at).split(/ -- | \| /);
      for (const [, flag] of own.matchAll(/ (--?[a-z][a-z0-9-]*)/g))
        expect([example, known.includes(flag)]).toEqual([example, true]);
    }
  }
});

it('every kind of export has an example, and every option that only one has', () => {
  const examples = (EXAMPLES['export'] ?? []).join('\n');
  const flags = EXPORT_KINDS.flatMap(({ flags, further = [] }) => [flags, ...further.map(([own]) => own)]);
  const without = flags.filter((each) => !examples.includes(` ${each.split(' ')[0]} `));
  expect(without).toEqual([
    '--created-at <time>',
    '--time-verified <time>',
    '--verifier-id <uri>',
    '--resource-uri <uri>',
  ]);
});

it('no default is shown as the program keeps it', () => {
  for (const { command } of leavesOf(program)) {
    expect(command.helpInformation()).not.toMatch(/default: (?:\[|\{|"")/);
  }
});
