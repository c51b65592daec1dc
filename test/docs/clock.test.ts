/** Who decides and writes has time from one place, so that a test can make it pass. */

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const FOLDERS = ['src/log/writer/', 'src/log/agent/', 'src/log/policy/', 'src/log/read/', 'src/gate/'];
/** They wait for threads, files and databases of the machine, in whose time they live. */
const OF_THE_MACHINE = new Set(['src/log/writer/index-cache.ts', 'src/log/writer/signing-threads.ts']);
const DIRECT =
  /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|(?<![.\w])(?:set|clear)(?:Timeout|Interval)\(|timers\/promises/;

const files = FOLDERS.flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .map((name) => folder + name),
);

describe('the clock', () => {
  it.each(files.filter((file) => !OF_THE_MACHINE.has(file)))(
    'is asked through src/base/clock.ts in %s',
    (file) => {
      const lines = readFileSync(file, 'utf8').split('\n');
      expect(lines.filter((line) => DIRECT.test(line))).toEqual([]);
    },
  );

  it.each([...OF_THE_MACHINE])('is still read in %s', (file) => {
    expect(readFileSync(file, 'utf8')).toMatch(DIRECT);
  });
});
