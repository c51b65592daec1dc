/** The fast path of examining a line says what the full one says, or nothing: on every fixture, and on whatever is near a record. */

import { describe, expect, test } from 'vitest';
import { examineFully, examineLazily, examineLine } from '../../src/format/record/examine-line.js';
import { readScannedLine, useFastPath } from '../../src/fast/scan/scanned-line.js';
import { ROW_WIDTH, scanRecord } from '../../src/fast/scan/scan.js';
import { times } from '../slow.js';
import {
  WHOLE_EVENTS,
  changeBytes,
  changeRecord,
  eachPlaceChanged,
  fixtureLines,
  holdAgainst,
  lineOf,
  makeRandom,
  recordOf,
} from './scan-kit.js';

const SEED = Number(process.env['SEED'] ?? 20_261_122);

/** Of half a million lines. */
const TIMEOUT = 1_200_000;

describe('scannable records', () => {
  test.each(WHOLE_EVENTS.map((event) => [event['event_type'] as string, event] as const))(
    '%s with every member is one',
    (_, event) => {
      for (const meta of [undefined, { a: 'b', trace: 'ü\n' }]) {
        const line = lineOf(recordOf(event, true, meta && { meta }));
        expect(holdAgainst(line)).toBe(true);
        const quick = readScannedLine(line);
        expect(quick?.json()).toEqual(examineFully(line, 'records').json());
      }
    },
  );

  test('extensions are, however deep their members lie within each other', () => {
    const nested = (depth: number, isList: boolean): unknown =>
      depth === 0 ? 1 : isList ? [nested(depth - 1, true)] : { action: nested(depth - 1, false) };
    const event = WHOLE_EVENTS.find((each) => each['event_type'] === 'x.plain');
    for (const depth of [...Array(40).keys(), 60, 61, 62])
      for (const isList of [true, false]) {
        const value = nested(depth, isList);
        expect(holdAgainst(lineOf(recordOf({ ...event, list: value }, true))), `${depth}`).toBe(true);
        holdAgainst(lineOf(recordOf({ ...event, authorization: value }, true)));
      }
  });

  test('bases by unit are of amounts that the execution has', () => {
    const event = WHOLE_EVENTS.find((each) => each['event_type'] === 'execution');
    const usedOf = (count: number): object[] =>
      Array.from({ length: count }, (_, i) => ({ unit: `u${i}`, amount: { t: 'int', v: '1' } }));
    const isTaken = (count: number, bases: object): boolean =>
      holdAgainst(
        lineOf(recordOf({ ...event, meter_used: usedOf(count), meter_basis_by_unit: bases }, true)),
      );
    const every = Object.fromEntries(
      usedOf(64).map((_, i) => [`u${i}`, i % 2 === 0 ? 'billed' : 'estimated']),
    );
    expect(isTaken(64, every)).toBe(true);
    expect(isTaken(12, { u1: 'estimated', u10: 'billed' })).toBe(true);
    expect(isTaken(63, every)).toBe(false);
    expect(isTaken(0, { u0: 'billed' })).toBe(false);
    expect(isTaken(2, { u: 'billed' })).toBe(false);
    expect(isTaken(2, { u00: 'billed' })).toBe(false);
    expect(isTaken(2, { u0: 'guessed' })).toBe(false);
    // No unit, though it ends like a member of one.
    expect(isTaken(2, { 'a:,xu0': 'billed' })).toBe(false);
    expect(isTaken(2, { u0: 'billed', 'u0:billed,xu1': 'billed' })).toBe(false);
    expect(isTaken(2, { ['u'.repeat(65)]: 'billed' })).toBe(false);
    expect(isTaken(2, {})).toBe(false);
  });

  test('one that is wrong in its ids alone is examined fully', () => {
    const line = lineOf(recordOf(WHOLE_EVENTS[1], false));
    expect(scanRecord(line, 0, line.length, new Int32Array(ROW_WIDTH), 0)).toBe(true);
    expect(readScannedLine(line)).toBeUndefined();
    const { faults } = examineLine(line, undefined);
    expect(faults.map(({ code }) => code)).toEqual(['PAYLOAD_DIGEST_MISMATCH', 'EVENT_ID_MISMATCH']);
  });

  test('what they say outlives their bytes', () => {
    const line = lineOf(recordOf(WHOLE_EVENTS[0], true));
    const expected = examineFully(Buffer.from(line), 'records');
    const [plain, lazy] = [examineLine(line, undefined), examineLazily(line, undefined)];
    line.fill(0x58);
    expect(plain.json()).toEqual(expected.json());
    expect({ ...plain }).toEqual({ ...expected });
    expect(structuredClone(plain)).toEqual({ ...expected });
    expect(lazy.json()).toEqual(expected.json());
    expect(lazy.signatures).toEqual(expected.signatures);
  });

  test('bare events are not', () => {
    const event = recordOf(WHOLE_EVENTS[3], true)['event'] as Record<string, unknown>;
    expect(examineLine(lineOf(event), undefined).layout).toBe('bare');
    expect(examineLine(lineOf(recordOf(WHOLE_EVENTS[3], true)), 'bare').faults).not.toEqual([]);
  });

  test('the fast path can be left', () => {
    const line = lineOf(recordOf(WHOLE_EVENTS[3], true));
    useFastPath(false);
    expect(readScannedLine(line)).toBeUndefined();
    useFastPath(true);
    expect(readScannedLine(line)).toBeDefined();
  });
});

describe('the two ways agree', () => {
  const fixtures = fixtureLines();

  test('on every line of the fixtures', () => {
    expect(fixtures.filter(holdAgainst).length).toBeGreaterThan(fixtures.length / 4);
  });

  test(
    'on records with one value changed, wherever it stands',
    () => {
      for (const event of WHOLE_EVENTS)
        for (const record of eachPlaceChanged(recordOf(event, false), times(0, 1) === 1))
          holdAgainst(lineOf(record));
    },
    TIMEOUT,
  );

  test(
    'on records with members changed',
    () => {
      const random = makeRandom(SEED);
      let usual = 0;
      const count = times(6_000, 500_000);
      for (let n = 0; n < count; n += 1) {
        const event = WHOLE_EVENTS[n % WHOLE_EVENTS.length];
        const isAfter = random() < 0.5;
        const record = isAfter
          ? changeRecord(recordOf(event, false, n % 3 === 0 ? { meta: { a: 'b', c: '' } } : {}), random)
          : recordOf(changeRecord(event, random), random() < 0.3);
        if (holdAgainst(lineOf(record))) usual += 1;
      }
      expect(usual).toBeGreaterThan(count / 20);
    },
    TIMEOUT,
  );

  test(
    'on lines with bytes changed',
    () => {
      const random = makeRandom(SEED + 1);
      const lines = [
        ...WHOLE_EVENTS.map((event) => lineOf(recordOf(event, true, { meta: { a: 'b', c: 'ü' } }))),
        ...fixtures.filter(holdAgainst).filter(({ length }) => length < 8_000),
      ];
      let usual = 0;
      const count = times(6_000, 500_000);
      for (let n = 0; n < count; n += 1)
        if (holdAgainst(changeBytes(lines[n % lines.length], random))) usual += 1;
      expect(usual).toBeGreaterThan(count / 20);
    },
    TIMEOUT,
  );
});
