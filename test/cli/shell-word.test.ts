/** Commands that messages show can be given to a shell as they are. */

import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { shellWord } from '../../src/cli/shell-word.js';

/** The words that a shell makes of a text. */
function wordsOf(text: string): string[] {
  return execFileSync('sh', ['-c', `for word in ${text}; do printf '%s\\0' "$word"; done`], {
    encoding: 'utf8',
  })
    .split('\0')
    .slice(0, -1);
}

it.each([
  'ledger.jsonl',
  'a b/ledger é.jsonl',
  "it's.jsonl",
  '$HOME/`id`.jsonl',
  '~/l.jsonl',
  '#l.jsonl',
  '*',
  'postgres://app@db.example/ledgers?x=1&y=2#demo',
])('%s is one word', (path) => {
  expect(wordsOf(shellWord(path))).toEqual([path]);
});

it('is no option where a path begins with a dash', () => {
  expect(wordsOf(shellWord('-l.jsonl'))).toEqual(['./-l.jsonl']);
});

it('shows what cannot be printed as messages show it', () => {
  expect(shellWord('a\u202eb')).toBe('a\\u{202e}b');
});
