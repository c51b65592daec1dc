import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isUnit, MAX_METERS, meters } from '../../src/value/meter.js';
import { isPrincipalId, isPrincipalPattern, matchesPrincipalPattern } from '../../src/value/principal.js';
import { coversToolPattern, isToolName, isToolPattern, matchesToolPattern } from '../../src/value/tool.js';

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
  it.each(['a', '_', '9', 'fs.read', 'mcp__server__tool', 'a/b:c-d.e', 'fs.', 'a'.repeat(128)])(
    '%.20s is a name and a pattern',
    (text) => {
      expect(isToolName(text)).toBe(true);
      expect(isToolPattern(text)).toBe(true);
      expect(isToolPattern(`${text}*`)).toBe(true);
    },
  );

  it.each(['', '.a', '-a', '/a', 'a b', 'a*b', '**', 'a**', '.*', 'é', 'a\n', 'a'.repeat(129)])(
    '%j is neither',
    (text) => {
      expect(isToolName(text)).toBe(false);
      expect(isToolPattern(text)).toBe(false);
    },
  );

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

describe('meters', () => {
  it('have units', () => {
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
