/** Files that are one JSON text over several lines, where lines of JSON are read. */

import { expect, it } from 'vitest';
import { apm2 } from '../../src/hosts/apm2/index.js';
import { cgf } from '../../src/hosts/cgf/index.js';
import { claudeCode } from '../../src/hosts/claude-code/index.js';
import { openclaw } from '../../src/hosts/openclaw/index.js';
import type { Host } from '../../src/hosts/shared/host.js';
import { linesOf, sample } from './samples.js';

const hooks = linesOf(sample('claude-code', 'hooks.jsonl'));

function readText(host: Host, text: string) {
  const file = { name: 'a.json', bytes: Buffer.from(text) };
  return { ...host.read([file]), isRecognised: host.recognises(file) };
}

it('reads an array, or one value, as the items that its lines would be', () => {
  const lines = readText(claudeCode, hooks.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const array = readText(claudeCode, JSON.stringify(hooks, undefined, 2));
  expect(array.isRecognised).toBe(true);
  expect(array.claims.map(({ id }) => id)).toEqual(lines.claims.map(({ id }) => id));
  expect(array.items[1]?.at).toEqual({ file: 'a.json', pointer: '/1' });
  const one = readText(claudeCode, JSON.stringify(hooks[0], undefined, 2));
  expect([
    one.isRecognised,
    one.items.length,
    one.findings.map(({ code }) => code).includes('NOT_JSON'),
  ]).toEqual([true, 1, false]);
});

it.each([claudeCode, cgf, openclaw, apm2])(
  '$name: says once of a file that is neither lines nor one text',
  (host) => {
    const whole = hooks.map((line) => `${JSON.stringify(line, undefined, 2)}\n`).join('');
    for (const text of [whole, JSON.stringify(hooks, undefined, 2).slice(0, -5), '[\n{"a":1},\n{"a":2}\n']) {
      const { findings, items } = readText(host, text);
      expect(findings.map(({ code, at }) => [code, at])).toEqual([['NOT_LINES', { file: 'a.json' }]]);
      expect(items).toMatchObject([{ fate: 'dropped', reason: 'NOT_LINES' }]);
    }
  },
);

it('reads a log whose first line is torn line by line', () => {
  const [first, ...rest] = hooks.map((line) => JSON.stringify(line));
  for (const torn of ['{', first.slice(0, 40), ` ${first.slice(0, 40)}`]) {
    const { findings, items } = readText(claudeCode, [torn, ...rest, ''].join('\n'));
    expect(findings.filter(({ rule }) => rule === 'INPUT')).toMatchObject([{ at: { line: 1 } }]);
    expect(items).toHaveLength(hooks.length);
  }
});
