/** Both backends, and tables, give the frozen verdict on every case of every vector set, and the list in the docs is that one. */

import { readFileSync } from 'node:fs';

import { describe, expect, test } from 'vitest';

import { makePublicKey } from '../../src/format/key/public-key.js';
import { nobleBackend } from './noble-backend.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import type { VerificationKey } from '../../src/format/signature/backend.js';
import { tablesBackend } from './tables-backend.js';
import { VECTOR_SETS } from './vector-sets.js';

type Frozen = Readonly<Record<string, { readonly cases: number; readonly accepted: readonly number[] }>>;

const frozen = JSON.parse(readFileSync(new URL('ed25519-verdicts.json', import.meta.url), 'utf8')) as Frozen;
const docs = readFileSync(new URL('../../docs/spec/ed25519-verdicts.md', import.meta.url), 'utf8');

/** `1–3, 7` for 1, 2, 3 and 7. */
function formatRanges(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last?.[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(', ') || 'none';
}

describe('the frozen verdict list', () => {
  test('covers the sets that are tested', () => {
    expect(Object.keys(frozen).sort()).toEqual(Object.keys(VECTOR_SETS).sort());
  });

  test.each(Object.entries(frozen))('of %s is what the docs say', (name, { cases, accepted }) => {
    expect(accepted).toEqual([...accepted].sort((a, b) => a - b));
    const row = docs.split('\n').find((line) => line.includes(`\`${name}\``));
    const cells = row?.split('|').map((cell) => cell.trim());
    expect(cells?.slice(2, 5)).toEqual([`${cases}`, `${accepted.length}`, formatRanges(accepted)]);
  });
});

describe.each(Object.entries(VECTOR_SETS))('%s', (name, { alg, read }) => {
  const cases = read();

  test.skipIf(cases === undefined).each([nodeBackend, nobleBackend, tablesBackend])(
    'has the frozen verdicts by $name',
    (backend) => {
      const keys = new Map<string, VerificationKey>();
      const accepted: number[] = [];
      for (const { number, key: bytes, message, signature, expected } of cases!) {
        const id = Buffer.from(bytes).toString('hex');
        const key = keys.get(id) ?? backend.importKey(makePublicKey(alg, bytes));
        keys.set(id, key);
        const verdict = key.verify(message, signature);
        if (verdict) accepted.push(number);
        if (expected !== undefined) expect([number, verdict]).toEqual([number, expected]);
      }
      expect({ cases: cases!.length, accepted: accepted.sort((a, b) => a - b) }).toEqual(frozen[name]);
    },
  );
});
