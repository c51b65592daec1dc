import { describe, expect, it } from 'vitest';
import { printable, withoutPasswords } from '../../src/base/bytes/printable.js';

describe('printable', () => {
  it('leaves ordinary text alone, whatever its script', () => {
    const text = 'Zoë: 50 % of "x" – 東京 😀 a::b #1 ## [x]';
    expect(printable(text)).toBe(text);
  });

  it.each([
    ['an escape sequence', '\u001b[2J', '\\u{1b}[2J'],
    ['a newline', 'a\nb', 'a\\u{a}b'],
    ['C1 controls', '\u009b1m', '\\u{9b}1m'],
    ['bidi overrides', '\u202ecod.exe', '\\u{202e}cod.exe'],
    ['bidi isolates', '\u2066x\u2069', '\\u{2066}x\\u{2069}'],
    ['zero width characters', 'a\u200bb\ufeffc', 'a\\u{200b}b\\u{feff}c'],
    ['characters that show nothing', 'a\u3164b\u034fc', 'a\\u{3164}b\\u{34f}c'],
    ['spaces that are not the space', 'a\u00a0b\u3000c', 'a\\u{a0}b\\u{3000}c'],
    ['line separators', 'a\u2028b', 'a\\u{2028}b'],
    ['a lone surrogate', 'a\ud800b', 'a\\u{d800}b'],
    ['private use', '\ue000', '\\u{e000}'],
    ['a log command', 'x ##[error]y', 'x \\u{23}#[error]y'],
  ])('escapes %s', (_name, text, expected) => {
    expect(printable(text)).toBe(expected);
  });

  it('cuts long text', () => {
    expect(printable('x'.repeat(300))).toBe(`${'x'.repeat(199)}…`);
    expect(printable('abcdef', 4)).toBe('abc…');
    expect(printable('abcd', 4)).toBe('abcd');
  });
});

describe('withoutPasswords', () => {
  it.each([
    ['postgres://u:p@h/d#x and https://u:p@h', 'postgres://u@h/d#x and https://u@h'],
    ["found 'https://u:p@ss/w?#@[h'", "found 'https://u@[h'"],
    ['x=s3://:p@h', 'x=s3://@h'],
    ['https://u@h:80/ and a:b@c', 'https://u@h:80/ and a:b@c'],
  ])('of %s leaves what names the place', (text, expected) => {
    expect(withoutPasswords(text)).toBe(expected);
  });
});
