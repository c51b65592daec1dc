/** The examples of the guides are run as they are, each guide in a folder of its own. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readText, root } from './markdown.js';
import { blocksOf, isRun, runBlocks, stepsOf } from './walk-kit.js';

/** Guides of which every block of commands and code is run. */
const RUN = [
  'approve.md',
  'audit.md',
  'black-box-agents.md',
  'budget.md',
  'cgf.md',
  'ci.md',
  'clasper.md',
  'coding-agents.md',
  'fleet.md',
  'gate.md',
  'guard.md',
  'import.md',
  'kernel-tools.md',
  'mcp.md',
  'models.md',
  'move-a-ledger.md',
  'openclaw.md',
  'passkeys.md',
  'prices.md',
  'publish.md',
  'receipts.md',
  'rotate-a-key.md',
  'verify.md',
].map((name) => `docs/guide/${name}`);

/** References with examples, likewise, of any length. */
const REFERENCES = ['docs/reference/import.md'];

/** A guide with a server has a test of its own: witness.test.ts. */
const others = readdirSync(join(root, 'docs/guide'))
  .map((name) => `docs/guide/${name}`)
  .filter((path) => path.endsWith('.md') && !RUN.includes(path))
  .filter((path) => !blocksOf(readText(path)).some(({ kind }) => kind === 'sh serve'))
  .filter((path) => blocksOf(readText(path)).some(isRun));

describe.each([...RUN, ...REFERENCES])('%s', (path) => {
  const blocks = blocksOf(readText(path));

  it('has only blocks that are run, or that say that they are not', () => {
    const programs = blocks.filter(({ kind }) => /^(?:sh|console|js|ts|json)\b/.test(kind));
    const left = programs.filter((block) => !isRun(block)).map(({ kind }) => kind);
    expect(left.filter((kind) => kind !== 'sh skip')).toEqual([]);
    expect(stepsOf(blocks)).not.toEqual([]);
  });

  it('its commands do and print what it says', () => {
    expect(runBlocks(blocks)).toEqual(stepsOf(blocks));
  });
});

it.each(RUN)('%s has at most 500 words', (path) => {
  const prose = readText(path).replace(/^```.*?^```$/gms, '');
  expect(prose.split(/\s+/).length).toBeLessThanOrEqual(500);
});

it.each(others)('the commands of %s do and print what it says', (path) => {
  const blocks = blocksOf(readText(path));
  expect(runBlocks(blocks)).toEqual(stepsOf(blocks));
});

it('an example that does not hold is found', () => {
  const failing = blocksOf(
    '```sh walk\nfalse\ntrue   # exit 1\n```\n```console\n$ echo a\nb\n$ echo c\nc\n```\n',
  );
  expect(runBlocks(failing)).toEqual([
    { command: 'false', status: 1, output: '' },
    { command: 'true', status: 0, output: '' },
    { command: 'echo a', status: 0, output: 'a\n' },
    { command: 'echo c', status: 0, output: 'c\n' },
  ]);
  expect(stepsOf(failing).map(({ status }) => status)).toEqual([0, 1, 0, 0]);
});
