/** Python's JSON and its `re.search`, held against Python itself where it is there, and against recorded digests. */

import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { pythonSearch } from '../../../src/hosts/cgf/regex.js';
import { compareCodePoints } from '../../../src/hosts/shared/forms/cac.js';
import {
  PYTHON_FORMS,
  pythonFloat,
  type PythonForm,
  pythonJson,
  pythonNumber,
} from '../../../src/hosts/shared/forms/python.js';
import { decodeSourceJson, type SourceValue } from '../../../src/base/json/source-json.js';
import fc from 'fast-check';

function source(text: string): SourceValue {
  const decoded = decodeSourceJson(Buffer.from(text));
  if (!decoded.ok) throw new Error(`${decoded.fault.code}: ${text}`);
  return decoded.value;
}

describe('pythonNumber', () => {
  it.each([
    ['1', '1'],
    ['-0', '0'],
    ['123456789012345678901234567890', '123456789012345678901234567890'],
    ['1.0', '1.0'],
    ['1e2', '100.0'],
    ['-0.0', '-0.0'],
    ['1e15', '1000000000000000.0'],
    ['1e16', '1e+16'],
    ['12345678901234567.0', '1.2345678901234568e+16'],
    ['0.0001', '0.0001'],
    ['0.00001', '1e-05'],
    ['0.000012345', '1.2345e-05'],
    ['1e-7', '1e-07'],
    ['1.5E+300', '1.5e+300'],
    ['5e-324', '5e-324'],
    ['40.06385803222656', '40.06385803222656'],
    ['0.10000000000000000001', '0.1'],
    ['1e999', 'Infinity'],
    ['-1e999', '-Infinity'],
  ])('writes %s as %s', (text, expected) => {
    expect(pythonNumber(text)).toBe(expected);
  });

  it('gives back every double', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(Object.is(Number(pythonFloat(value)), value)).toBe(true);
      }),
    );
  });
});

describe('pythonJson', () => {
  it('sorts keys by code point, not by UTF-16 code unit', () => {
    expect(
      pythonJson(source('{"\\ud83d\\ude00":1,"\\uffee":2,"10":3,"9":4}'), 'py-json-sorted-compact-ascii'),
    ).toBe('{"10":3,"9":4,"\\uffee":2,"\\ud83d\\ude00":1}');
    expect(compareCodePoints('\u{1F600}', '\uFFEE')).toBe(1);
    expect(compareCodePoints('a', 'ab')).toBe(-1);
  });

  it('escapes what is not ASCII, and controls, DEL among them, and no more', () => {
    expect(pythonJson('é"\\\u0001\n\u007f/😀', 'py-json-sorted-compact-ascii')).toBe(
      '"\\u00e9\\"\\\\\\u0001\\n\\u007f/\\ud83d\\ude00"',
    );
  });

  it('has spaces, and the order of the text, where the form says so', () => {
    const value = source('{"b":[1,{"a":null}],"a":true}');
    expect(pythonJson(value, 'py-json-unsorted-spaced-ascii')).toBe('{"b": [1, {"a": null}], "a": true}');
    expect(pythonJson(value, 'py-json-sorted-spaced-ascii')).toBe('{"a": true, "b": [1, {"a": null}]}');
    expect(pythonJson(value, 'py-json-sorted-compact-ascii')).toBe('{"a":true,"b":[1,{"a":null}]}');
  });
});

const PYTHON = `
import json, re, sys
given = json.load(sys.stdin)
texts = []
for text in given["texts"]:
    value = json.loads(text)
    texts.append([
        json.dumps(value, sort_keys=True, separators=(",", ":")),
        json.dumps(value, sort_keys=True),
        json.dumps(value),
    ])
found = []
for pattern, text in given["searches"]:
    try:
        found.append(bool(re.search(pattern, text)))
    except (re.error, OverflowError):
        found.append(None)
json.dump({"texts": texts, "found": found}, sys.stdout)
`;

const hasPython = spawnSync('python3', ['--version']).status === 0;

/** Patterns of what the policies of the host are made of, and of what stands in the way. */
const pattern = fc
  .array(
    fc.constantFrom(
      ...[
        'a',
        'b',
        '_',
        '-',
        '.',
        '^',
        '$',
        '|',
        '(',
        ')',
        '(?:',
        '[ab]',
        '[^a_]',
        '[a-c-]',
        '[]a]',
        '\\d',
        '\\w',
        '\\W',
        '\\s',
      ],
      ...[
        '\\.',
        '\\\\',
        '\\b',
        '\\B',
        '\\A',
        '\\Z',
        '*',
        '+',
        '?',
        '*?',
        '{2}',
        '{1,3}',
        '{,2}',
        '{',
        '}',
        '{a}',
        ']',
        '(?P<n>',
        '\\n',
        '\\x61',
      ],
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));
const subject = fc
  .array(fc.constantFrom('a', 'b', 'c', '_', '-', '.', ' ', '\n', '1', 'é', '\\', '{'), { maxLength: 6 })
  .map((parts) => parts.join(''));
/** Numbers as other writers spell them. */
const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.bigInt().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value.toExponential()),
);

describe.skipIf(!hasPython)('Python', () => {
  it('writes the same JSON, and finds the same', () => {
    const texts = fc
      .sample(
        fc.tuple(
          fc.jsonValue(),
          fc.dictionary(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }), { maxKeys: 4 }),
          fc.array(number, { maxLength: 4 }),
        ),
        { numRuns: 150, seed: 11 },
      )
      .map(
        ([value, dictionary, numbers]) => `[${JSON.stringify([value, dictionary])},[${numbers.join(',')}]]`,
      );
    const searches = fc.sample(fc.tuple(pattern, subject), { numRuns: 2000, seed: 11 });
    const { stdout, stderr } = spawnSync('python3', ['-W', 'ignore', '-c', PYTHON], {
      input: JSON.stringify({ texts, searches }),
      encoding: 'utf8',
      maxBuffer: 2 ** 27,
    });
    expect(stderr).toBe('');
    const answer = JSON.parse(stdout) as { texts: string[][]; found: (boolean | null)[] };
    const forms = Object.keys(PYTHON_FORMS) as PythonForm[];
    for (const [i, text] of texts.entries())
      expect(forms.map((form) => pythonJson(source(text), form))).toEqual(answer.texts[i]);
    const decided = searches.map(([regex, text], i) => ({
      regex,
      text,
      ours: pythonSearch(regex, text),
      theirs: answer.found[i],
    }));
    // What is not decided is never wrong; what Python refuses is not decided.
    expect(decided.filter(({ ours, theirs }) => ours !== undefined && ours !== theirs)).toEqual([]);
    expect(decided.filter(({ ours }) => ours !== undefined).length).toBeGreaterThan(500);
  });
});

describe('pythonSearch', () => {
  it.each([
    ['^(read|get|search|query|list|cat|ls)_.*$', 'read_file', true],
    ['^(read|get|search|query|list|cat|ls)_.*$', 'ls', false],
    ['(^|.*[\\\\/])memory[\\\\/].+\\.md$', 'notes/memory/2026-02-24.md', true],
    ['(^|.*[\\\\/])memory[\\\\/].+\\.md$', 'notes/memory.md', false],
    ['a$', 'a\n', true],
    ['', '', true],
  ])('%s in %j: %s', (regex, text, expected) => {
    expect(pythonSearch(regex, text)).toBe(expected);
  });

  it.each([
    '(?=a)',
    '(?i)a',
    '(a)\\1',
    '(?<!a)b',
    'a++',
    '(?>a)',
    '[',
    '(',
    'a{2,1}',
    'a{9999}',
    `${'('.repeat(100)}`,
    'a'.repeat(2000),
  ])('does not decide %s', (regex) => {
    expect(pythonSearch(regex, 'aab')).toBeUndefined();
  });

  it('takes no longer for patterns that backtrack', () => {
    const text = `${'a'.repeat(400)}!`;
    for (const regex of ['^(a+)+$', '^(a|a)*$', '^(a|aa)+$', '(.*)*b', '^((a*)*)*$', '(x+x+)+y'])
      expect(pythonSearch(regex, text)).toBe(false);
    expect(pythonSearch('((((a{30}){30}){30}){30})', text)).toBeUndefined();
    expect(pythonSearch('((((){999}){999}){999})', text)).toBeUndefined();
  });
});
