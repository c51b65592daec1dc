/** Properties: the scanner, its slow twin and a naive reading of the rules agree on whatever is near a canonical text. */

import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeUtf8 } from '../../src/base/bytes/text.js';
import { canonicalBytes, canonicalText } from '../../src/base/json/canonicalize.js';
import { diagnoseCanonical } from '../../src/base/json/diagnose.js';
import { ingestJson } from '../../src/base/json/ingest.js';
import { MemberMarks, scanCanonical } from '../../src/base/json/scan.js';
import type { JsonValue } from '../../src/base/json/value.js';
import { canonicalValue } from './arbitrary.js';
import { isNaivelyCanonical, naiveText } from './oracle.js';
import { times } from '../slow.js';

const RUNS = times(800, 100_000);
const MUTATIONS_PER_RUN = 10;

/** What is put into texts: whole tokens, near misses, and bytes that break UTF-8. */
const PIECES = [
  ...[
    '"',
    '\\',
    ',',
    ':',
    '[',
    ']',
    '{',
    '}',
    ' ',
    '\n',
    '0',
    '-',
    '-0',
    '.',
    'e',
    'E+',
    '1',
    '00',
    'null',
    'true',
  ],
  ...[
    '"":0,',
    ',"":0',
    '"a":1,',
    '\\"',
    '\\\\',
    '\\/',
    '\\b',
    '\\u0008',
    '\\u000b',
    '\\u000B',
    '\\u001f',
    '\\u0041',
  ],
  ...[
    '\\ud83d',
    '\\ude00',
    '\\ud83d\\ude00',
    '\x7f',
    '\u0001',
    'é',
    '😀',
    '\ue000',
    '\ufeff',
    '[]',
    '{}',
    '1e+21',
    '1.5',
  ],
].map((piece) => Buffer.from(piece));
PIECES.push(
  ...[[0xed, 0xa0, 0x80], [0xc0, 0x80], [0xff], [0x80], [0xf4, 0x90, 0x80, 0x80]].map((bytes) =>
    Buffer.from(bytes),
  ),
);

const mutation = fc.record({
  kind: fc.constantFrom('flip', 'byte', 'insert', 'delete', 'copy', 'repeat', 'none'),
  at: fc.nat(),
  to: fc.nat(),
  length: fc.integer({ min: 1, max: 6 }),
  byte: fc.nat(255),
});
type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

function mutate(bytes: Buffer, { kind, at, to, length, byte }: Mutation): Buffer {
  const from = at % (bytes.length + 1);
  const changed = Buffer.from(bytes);
  switch (kind) {
    case 'flip':
      if (from < bytes.length) changed[from] ^= 1 << (byte % 8);
      return changed;
    case 'byte':
      if (from < bytes.length) changed[from] = byte;
      return changed;
    case 'insert':
      return Buffer.concat([bytes.subarray(0, from), PIECES[to % PIECES.length], bytes.subarray(from)]);
    case 'delete':
      return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + length)]);
    case 'copy': {
      const target = to % (bytes.length + 1);
      return Buffer.concat([
        bytes.subarray(0, target),
        bytes.subarray(from, from + length),
        bytes.subarray(target),
      ]);
    }
    case 'repeat': {
      const keys = [...bytes.toString('latin1').matchAll(/"(?:[^"\\]|\\.)*":/g)];
      const key = keys[at % Math.max(keys.length, 1)];
      if (key === undefined) return changed;
      return Buffer.concat([
        bytes.subarray(0, key.index),
        Buffer.from(`${key[0]}0,`, 'latin1'),
        bytes.subarray(key.index),
      ]);
    }
    default:
      return changed;
  }
}

describe('on mutated canonical texts', () => {
  test('scan, diagnosis and the naive reading agree', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(
        canonicalValue,
        fc.array(mutation, { minLength: MUTATIONS_PER_RUN, maxLength: MUTATIONS_PER_RUN }),
        (value, mutations) => {
          const original = Buffer.from(canonicalBytes(value));
          let chained: Buffer = original;
          for (const [index, step] of mutations.entries()) {
            // Most texts are one step away from a canonical one, some are several.
            chained = mutate(index % 3 === 2 ? chained : original, step);
            const canonical = isNaivelyCanonical(chained);
            const scanned = scanCanonical(chained, 0, chained.length);
            const issue = diagnoseCanonical(chained);
            expect([scanned === -1, issue === undefined]).toEqual([canonical, canonical]);

            const inside = Buffer.concat([Buffer.from('"['), chained, Buffer.from('"0')]);
            const shifted = scanCanonical(inside, 2, 2 + chained.length);
            expect(shifted).toBe(scanned === -1 ? -1 : scanned + 2);
            expect(diagnoseCanonical(inside, 2, 2 + chained.length)).toEqual(
              issue === undefined ? undefined : { ...issue, offset: issue.offset + 2 },
            );
            const outcome = issue?.code ?? 'canonical';
            seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
          }
        },
      ),
      { numRuns: RUNS },
    );
    // The property would say nothing if mutation led to one outcome only.
    for (const code of [
      'canonical',
      'INVALID_UTF8',
      'NOT_JSON',
      'DUPLICATE_KEY',
      'NUMBER_NOT_CANONICAL',
      'NOT_CANONICAL',
    ]) {
      expect(seen.get(code) ?? 0, code).toBeGreaterThan(RUNS / 100);
    }
    expect([...seen.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(
      RUNS * MUTATIONS_PER_RUN,
    );
  });

  test('ingestion reads what JSON.parse reads, or says why not', () => {
    fc.assert(
      fc.property(canonicalValue, mutation, (value, step) => {
        const bytes = mutate(Buffer.from(canonicalBytes(value)), step);
        const { value: ingested, report } = ingestJson(bytes, { numbers: 'double' });
        const issue = diagnoseCanonical(bytes);
        if (ingested === undefined) {
          expect(issue).toBeDefined();
          expect(['Ambiguous', 'Invalid']).toContain(report.status);
          return;
        }
        expect(isDeepStrictEqual(ingested, JSON.parse(bytes.toString()))).toBe(true);
        expect(diagnoseCanonical(canonicalBytes(ingested))).toBeUndefined();
        if (issue === undefined) expect(report.status).toBe('Ok');
      }),
      { numRuns: RUNS },
    );
  });
});

describe('on values', () => {
  test('canonical bytes scan, parse back to the value and are what the naive reading writes', () => {
    fc.assert(
      fc.property(canonicalValue, (value) => {
        const bytes = canonicalBytes(value);
        expect(scanCanonical(bytes, 0, bytes.length)).toBe(-1);
        expect(isDeepStrictEqual(JSON.parse(decodeUtf8(bytes)), value)).toBe(true);
        expect(canonicalText(value)).toBe(naiveText(value));
        expect(ingestJson(bytes)).toMatchObject({
          report: { status: 'Ok', warnings: [], metrics: {} },
          issues: [],
        });
        expect(isDeepStrictEqual(ingestJson(bytes).value, value)).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });

  test('any JSON value has canonical bytes or is refused for what it has', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const expected = naiveText(value as JsonValue);
        if (expected === undefined) {
          expect(() => canonicalBytes(value)).toThrow();
          return;
        }
        const bytes = canonicalBytes(value);
        expect(Buffer.from(bytes).toString()).toBe(expected);
        expect(scanCanonical(bytes, 0, bytes.length)).toBe(-1);
        expect(isDeepStrictEqual(JSON.parse(decodeUtf8(bytes)), JSON.parse(JSON.stringify(value)))).toBe(
          true,
        );
      }),
      { numRuns: RUNS },
    );
  });

  test('the order of members does not matter', () => {
    fc.assert(
      fc.property(canonicalValue, (value) => {
        const indented = Buffer.from(JSON.stringify(reversed(value), null, 1));
        expect(canonicalText(ingestJson(indented).value)).toBe(canonicalText(value));
      }),
      { numRuns: RUNS },
    );
  });

  test('marks are the places of members', () => {
    const marks = new MemberMarks();
    fc.assert(
      fc.property(canonicalValue, (value) => {
        const bytes = Buffer.from(canonicalBytes(value));
        expect(scanCanonical(bytes, 0, bytes.length, marks)).toBe(-1);
        const found = Array.from({ length: marks.count }, (_, row) => {
          const [depth, keyStart, keyEnd, valueStart, valueEnd] = marks.rows.subarray(row * 5, row * 5 + 5);
          expect(bytes.toString('latin1', keyEnd, valueStart)).toBe(':');
          return [
            depth,
            bytes.toString('utf8', keyStart, keyEnd),
            bytes.toString('utf8', valueStart, valueEnd),
          ];
        });
        expect(found).toEqual(membersOf(value, 1));
      }),
      { numRuns: RUNS },
    );
  });
});

function membersOf(value: JsonValue, depth: number): unknown[] {
  if (depth > 2 || value === null || typeof value !== 'object') return [];
  if (Array.isArray(value)) return value.flatMap((element) => membersOf(element, depth + 1));
  return Object.keys(value)
    .sort()
    .flatMap((key) => [[depth, naiveText(key), naiveText(value[key])], ...membersOf(value[key], depth + 1)]);
}

/** The same value, made in another order. */
function reversed(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== 'object') return value;
  const copy: Record<string, JsonValue> = {};
  for (const key of Object.keys(value).reverse()) {
    Object.defineProperty(copy, key, {
      value: reversed(value[key]),
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return copy;
}
