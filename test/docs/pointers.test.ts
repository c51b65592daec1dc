/** Where docs/spec/verification.md says that findings point and fold, against the findings of the fixtures. */

import { describe, expect, it } from 'vitest';
import { readText } from './markdown.js';

interface Entry {
  readonly codes: readonly string[];
  /** Undefined where the entry says it in words. */
  readonly pointers: readonly string[] | undefined;
  readonly folds: boolean;
}

const document = readText('docs/spec/verification.md').split('\n### Folding')[0] ?? '';
const lines = document.split('\n');

/** The pointers that a text names, `N` for any number; undefined for words. */
function pointersOf(text: string): string[] | undefined {
  if (/^none\b/.test(text)) return ['none'];
  const named = [...text.matchAll(/`((?:G|…)?\/[^`]*|"")`/g)].map(([, pointer = '']) =>
    pointer === '""' ? '' : pointer.replace(/^G\//, '/event/authorization/').replace(/^…/, '/event/keys/N'),
  );
  return named.length === 0 ? undefined : named;
}

/** Pointers of links: each entry "the link, below" says where its own points. */
const links = lines.flatMap(
  (line) => pointersOf(/^\d+\. the link, below → (.*)$/.exec(line)?.[1] ?? '') ?? [],
);

/** The entries of all lists; "the same" and "as 13" are those of an entry before. */
function entries(): Entry[] {
  const found: Entry[] = [];
  let list: Entry[] = [];
  let isLink = false;
  let isNote = false;
  for (const line of lines) {
    const [, number, item = ''] = /^(\d+)\. (.*)$/.exec(line) ?? [];
    if (number === undefined) {
      if (/(?:A link to a grant|An execution's link):$/.test(line)) isLink = true;
      else if (/^#|:$/.test(line)) isLink = false;
      if (line !== '') isNote = line.endsWith('note without pointer:');
      continue;
    }
    if (number === '1') list = [];
    const [condition = '', where] = item.split(' → ', 2);
    const head = condition.split(': ')[0] ?? '';
    const codes = [...head.matchAll(/`([A-Z_0-9]{4,})`/g)].map(([, code = '']) => code);
    const as = /^as (\d+)/.exec(where ?? '')?.[1];
    const before = as === undefined ? list.at(-1) : list[Number(as) - 1];
    const isAsBefore = as !== undefined || /^the same\b/.test(where ?? '');
    const more = pointersOf(where ?? '') ?? [];
    const said = where === undefined ? ['none'] : pointersOf(item.slice(condition.length + 3));
    const own = isAsBefore ? [...(before?.pointers ?? []), ...more] : said;
    const entry = {
      codes,
      pointers: isLink ? links : isNote ? [...(own ?? []), 'none'] : own,
      folds: isLink || /\bfolds?\b/.test(where ?? ''),
    };
    list.push(entry);
    if (/^`[A-Z]/.test(item)) found.push(entry);
  }
  return found;
}

const all = entries();
const { cases } = JSON.parse(readText('fixtures/expected.json')) as {
  cases: { ledger: string; findings: { code: string; pointer?: string; folded?: number }[] }[];
};
const findings = cases.flatMap(({ ledger, findings: list }) =>
  list.map((finding) => ({ ledger, ...finding })),
);

function matches(pattern: string, pointer: string | undefined): boolean {
  if (pattern === 'none') return pointer === undefined;
  const source = pattern
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('/N', '/[0-9]+')
    .replace(/…$/, '.+')
    // Bare events have no `/event`.
    .replace(/^\/event/, '(?:/event)?');
  return pointer !== undefined && new RegExp(`^${source}$`).test(pointer);
}

describe('the lists of docs/spec/verification.md', () => {
  it('say where the findings of the fixtures point', () => {
    let compared = 0;
    const wrong = findings.filter(({ code, pointer }) => {
      const of = all.filter(({ codes }) => codes.includes(code));
      if (of.some(({ pointers }) => pointers === undefined)) return false;
      compared += 1;
      return !of.some(({ pointers }) => pointers?.some((each) => matches(each, pointer)));
    });
    expect(wrong).toEqual([]);
    expect(compared).toBeGreaterThan(500);
  });

  it('say that those fold which do', () => {
    const folded = findings.filter(({ folded = 0 }) => folded > 0);
    expect(folded.length).toBeGreaterThan(10);
    const wrong = folded.filter(({ code }) => !all.some(({ codes, folds }) => folds && codes.includes(code)));
    expect(wrong.map(({ ledger, code }) => `${code} of ${ledger}`)).toEqual([]);
  });
});
