/** CONTRIBUTING.md answers a newcomer's questions in at most two hops, and its lists name what is there. */

import { describe, expect, it } from 'vitest';
import { readText, sectionOf, tablesOf } from './markdown.js';

const contributing = readText('CONTRIBUTING.md');
const [rows = []] = tablesOf(contributing, 'Where is it?');

/** Each hop of a question: a file, and a name to search for in it. */
const hops = rows.flatMap(([question = '', ...cells]) =>
  cells
    .filter((cell) => cell !== '')
    .map((cell) => {
      const [, file = '', name = ''] = /`([\w./-]+)` `([^`]+)`$/.exec(cell) ?? [];
      return [question, file, name] as const;
    }),
);

describe('where is it?', () => {
  it('has ten questions with at most two hops', () => {
    expect(rows).toHaveLength(10);
    for (const [, first, ...more] of rows) {
      expect(first).not.toBe('');
      expect(more.length).toBeLessThanOrEqual(1);
    }
  });

  it.each(hops)('%s %s has %s', (_question, file, name) => {
    expect(readText(file)).toContain(name);
  });
});

describe('the lists of what to touch', () => {
  it.each(['finding', 'rule', 'event type', 'host', 'export', 'store', 'command'])('add: %s', (what) => {
    const article = /^[aeiou]/.test(what) ? 'an' : 'a';
    const text = sectionOf(contributing, `Add ${article} ${what}`);
    const steps = [...text.matchAll(/^\d+\. (.*)$/gm)].map(([, step = '']) => step);
    expect(steps.length).toBeGreaterThanOrEqual(3);
    // In a step, names are those of the file that it begins with.
    for (const step of steps) {
      const [, file = '', rest = ''] = /^`([\w./-]+\.ts)`:(.*)$/.exec(step) ?? [];
      if (file === '' || file.includes('NAME')) continue;
      const names = [...rest.matchAll(/`([a-z]+[A-Z]\w*|[A-Z][A-Z_]+)`/g)].map(([, name = '']) => name);
      for (const name of names) expect(readText(file)).toContain(name);
    }
  });
});
