import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isUnit, MAX_METERS, meters } from '../../src/base/value/meter.js';
import {
  isPrincipalId,
  isPrincipalPattern,
  matchesPrincipalPattern,
} from '../../src/base/value/principal.js';
import { isRateUnit, tryParseRateUnit } from '../../src/base/value/rate.js';
import {
  coversToolPattern,
  escapeToolName,
  isToolName,
  isToolPattern,
  matchesToolPattern,
} from '../../src/base/value/tool.js';

describe('principals', () => {
  it.each([
    'human:a',
    'service:ci',
    'agent:a1',
    'org:example.com',
    'agent:A._:@/+~-9',
    `human:${'a'.repeat(255)}`,
  ])('%.20s is one', (text) => {
    expect(isPrincipalId(text)).toBe(true);
    expect(isPrincipalPattern(text)).toBe(true);
  });

  it.each([
    '',
    'human',
    'human:',
    'robot:a',
    'Human:a',
    'human:-a',
    'human:a b',
    'human:a*',
    'human:é',
    'human:a\n',
    `human:${'a'.repeat(256)}`,
  ])('%j is none', (text) => {
    expect(isPrincipalId(text)).toBe(false);
  });

  it('have patterns: any prefix of one and a star', () => {
    for (const id of ['human:bob', 'service:a/b', 'agent:a-1', 'org:x']) {
      for (let i = 0; i <= id.length; i++) {
        const pattern = `${id.slice(0, i)}*`;
        expect([pattern, isPrincipalPattern(pattern)]).toEqual([pattern, true]);
        expect([pattern, matchesPrincipalPattern(pattern, id)]).toEqual([pattern, i < id.length]);
      }
    }
    for (const text of [
      '',
      '**',
      'x*',
      'human*',
      'human-*',
      'human:*a',
      'human:-*',
      'robot:*',
      'agent*',
      '*a',
      'human:a**',
    ]) {
      // `human*` and `agent*` are prefixes of a PrincipalID without its colon.
      expect([text, isPrincipalPattern(text)]).toEqual([text, text === 'human*' || text === 'agent*']);
    }
    expect(matchesPrincipalPattern('agent:a', 'agent:a')).toBe(true);
    expect(matchesPrincipalPattern('agent:a', 'agent:ab')).toBe(false);
    expect(matchesPrincipalPattern('agent:*', 'human:a')).toBe(false);
  });
});

describe('tools', () => {
  it.each([
    ...['a', '_', '9', 'fs.read', 'mcp__server__tool', 'a/b:c-d.e', 'fs.', 'a'.repeat(128)],
    // What MCP servers and model providers call things.
    ...['.a', '-a', '/a', '~a', '=', '@scope/pkg#run', 'gpt-4o@2024-08-06', 'a+b', 'C~23'],
  ])('%.20s is a name and a pattern', (text) => {
    expect(isToolName(text)).toBe(true);
    expect(isToolPattern(text)).toBe(true);
    expect(isToolPattern(`${text}*`)).toBe(true);
  });

  it.each(['', 'a b', 'a*b', '**', 'a**', '*a', 'é', 'a\n', 'a\u0000', 'a,b', 'a(b)', 'a'.repeat(129)])(
    '%j is neither',
    (text) => {
      expect(isToolName(text)).toBe(false);
      expect(isToolPattern(text)).toBe(false);
      expect(isToolName(`${text}*`)).toBe(false);
    },
  );

  it('have patterns of a prefix and a star', () => {
    for (const text of ['*', '.*', '~7*', `${'a'.repeat(128)}*`]) {
      expect([text, isToolPattern(text), isToolName(text)]).toEqual([text, true, false]);
    }
    expect(isToolPattern(`${'a'.repeat(129)}*`)).toBe(false);
  });

  it('match by a star of one or more characters', () => {
    expect(matchesToolPattern('fs.*', 'fs.read')).toBe(true);
    expect(matchesToolPattern('fs.*', 'fs.')).toBe(false);
    expect(matchesToolPattern('fs.*', 'fsx')).toBe(false);
    expect(matchesToolPattern('*', 'a')).toBe(true);
    expect(matchesToolPattern('fs.read', 'fs.read')).toBe(true);
    expect(matchesToolPattern('fs.read', 'fs.readx')).toBe(false);
  });

  it.each([
    ['fs.*', 'fs.r*', true],
    ['fs.*', 'fs.read', true],
    ['fs.*', 'fs.*', true],
    ['fs.*', 'fs.', false],
    ['fs.r*', 'fs.*', false],
    ['fs.*', 'fs*', false],
    ['fs.*', '*', false],
    ['*', '*', true],
    ['*', 'fs.*', true],
    ['*', 'fs.', true],
    ['fs.read', 'fs.read', true],
    ['fs.read', 'fs.read*', false],
    ['fs.read', '*', false],
    ['fs.read*', 'fs.read', false],
    // No tool has a name of 129 characters: the child matches nothing.
    ['x', `${'a'.repeat(128)}*`, true],
    ['x', `${'a'.repeat(127)}*`, false],
  ])('%s covers %.20s: %s', (parent, child, expected) => {
    expect(coversToolPattern(parent, child)).toBe(expected);
  });

  it('cover what every match of the child shows', () => {
    // All names over two letters and a dot up to length 5 show any difference between patterns of up to 3 characters.
    const names = [''];
    for (let i = 0; names[i].length < 5; i++) for (const char of 'ab.') names.push(names[i] + char);
    const tools = names.filter(isToolName);
    const pattern = fc
      .tuple(fc.constantFrom(...names.filter((name) => name.length <= 3)), fc.constantFrom('', '*'))
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(pattern.filter(isToolPattern), pattern.filter(isToolPattern), (parent, child) => {
        const shown = tools.every(
          (tool) => !matchesToolPattern(child, tool) || matchesToolPattern(parent, tool),
        );
        expect(coversToolPattern(parent, child)).toBe(shown);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('names of foreign tools', () => {
  it.each([
    ['fs.read', 'fs.read'],
    ['@scope/pkg#run+=:-', '@scope/pkg#run+=:-'],
    ['a b', 'a~20b'],
    ['Bash(rm:*)', 'Bash~28rm:~2A~29'],
    ['~', '~7E'],
    ['a~20b', 'a~7E20b'],
    ['é', '~C3~A9'],
    ['e\u0301', 'e~CC~81'],
    ['😀', '~F0~9F~98~80'],
    ['\u0000\n', '~00~0A'],
    ['a'.repeat(128), 'a'.repeat(128)],
    [`${'a'.repeat(125)}~`, `${'a'.repeat(125)}~7E`],
    // One character more: the first 62, and the SHA-256 of the name itself.
    ['a'.repeat(129), `${'a'.repeat(62)}~~c12cb024a2e5551cca0e08fce8f1c5e314555cc3fef6329ee994a3db752166ae`],
    [`${'é'.repeat(22)}`, `${'~C3~A9'.repeat(10)}~C~~HASH`],
  ])('%.20j are escaped', (name, expected) => {
    expect(isToolName(escapeToolName(name))).toBe(true);
    if (!expected.endsWith('HASH')) expect(escapeToolName(name)).toBe(expected);
    else {
      const hash = createHash('sha256').update(name, 'utf8').digest('hex');
      expect(escapeToolName(name)).toBe(`${expected.slice(0, -4)}${hash}`);
    }
  });

  it('are told apart, and always become tool names', () => {
    const text = fc
      .array(fc.constantFrom('a', '~', '~7E', '~~', 'é', ' ', '20', 'x'.repeat(61), '😀'), {
        minLength: 1,
        maxLength: 30,
      })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(isToolName(escapeToolName(a))).toBe(true);
        expect(escapeToolName(a) === escapeToolName(b)).toBe(a === b);
        // Every name of the set without `~` stays as it is.
        if (isToolName(a) && !a.includes('~')) expect(escapeToolName(a)).toBe(a);
      }),
      { numRuns: 500 },
    );
  });

  it('are refused when they are none', () => {
    for (const name of ['', 'a\ud800', '\udc00a', '\udc00\ud800'])
      expect(() => escapeToolName(name)).toThrow(RangeError);
    for (const name of [undefined, null, 7, ['a']])
      expect(() => escapeToolName(name as unknown as string)).toThrow(TypeError);
  });
});

describe('rate units', () => {
  const SECOND = 1_000_000_000n;
  it.each([
    ['calls.per_sec', 'calls', 1n],
    ['usd.per_min', 'usd', 60n],
    ['usd.per_hour', 'usd', 3_600n],
    ['usd.per_day', 'usd', 86_400n],
    ['usd.per_week', 'usd', 604_800n],
    ['usd.per_1s', 'usd', 1n],
    ['usd.per_60m', 'usd', 3_600n],
    ['usd.per_5h', 'usd', 18_000n],
    ['tokens.output.per_30d', 'tokens.output', 2_592_000n],
    ['usd.per_9999d', 'usd', 863_913_600n],
    // A unit may itself look like a rate: the last part counts.
    ['usd.per_day.per_7d', 'usd.per_day', 604_800n],
    [`${'u'.repeat(64)}.per_sec`, 'u'.repeat(64), 1n],
  ])('%.30s limits a unit over a span of time', (text, meter, seconds) => {
    expect(isRateUnit(text)).toBe(true);
    expect(tryParseRateUnit(text)).toEqual({ meter, window: seconds * SECOND });
  });

  it.each([
    ...['', 'usd', 'usd.per_', '.per_sec', 'usd.per_month', 'usd.per_h', 'USD.per_sec', 'usd per_sec'],
    ...[
      'usd.per_0h',
      'usd.per_10000s',
      'usd.per_05h',
      'usd.per_5',
      'usd.per_5w',
      'usd.per_5H',
      'usd.per_-5h',
    ],
    ...['usd.per_5h\n', 'usd.per_5hh', 'usd.per_1.5h', `${'u'.repeat(65)}.per_sec`],
  ])('%j is none', (text) => {
    expect(isRateUnit(text)).toBe(false);
    expect(tryParseRateUnit(text)).toBeUndefined();
  });
});

describe('meters', () => {
  it('have units of the documented form only', () => {
    for (const text of ['usd', 'tokens.input', 'time.ms', 'a', `a${'b'.repeat(63)}`, 'a-_.9'])
      expect(isUnit(text)).toBe(true);
    for (const text of ['', 'USD', '9a', '.a', 'a b', 'é', 'a\n', `a${'b'.repeat(64)}`])
      expect(isUnit(text)).toBe(false);
  });

  it('are built sorted by unit', () => {
    expect(meters({ usd: '0.25', calls: 1n, 'time.ms': 12, third: { t: 'rat', n: '1', d: '3' } })).toEqual([
      { unit: 'calls', amount: { t: 'int', v: '1' } },
      { unit: 'third', amount: { t: 'rat', n: '1', d: '3' } },
      { unit: 'time.ms', amount: { t: 'int', v: '12' } },
      { unit: 'usd', amount: { t: 'dec', m: '25', s: 2 } },
    ]);
    expect(meters({})).toEqual([]);
    const units = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`u${i}`, 1]));
    expect(meters(units(MAX_METERS))).toHaveLength(MAX_METERS);
    expect(() => meters(units(MAX_METERS + 1))).toThrow(RangeError);
    expect(() => meters({ USD: 1 })).toThrow(RangeError);
    expect(() => meters({ usd: -1 })).toThrow(RangeError);
    expect(() => meters({ usd: 0.1 })).toThrow(RangeError);
  });
});
