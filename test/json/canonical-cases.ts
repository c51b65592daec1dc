/** Texts that others' vectors leave out, with what SPEC §1 says of each. */

import type { JsonFaultCode } from '../../src/base/json/diagnose.js';

/** A text that is canonical, or the code, byte offset and pointer of why it is not. */
export type CanonicalCase = readonly [
  text: string | Uint8Array,
  refusal?: readonly [code: JsonFaultCode, offset: number, pointer: string],
];

export function nestedArrays(depth: number): string {
  return '['.repeat(depth) + ']'.repeat(depth);
}

export function nestedObjects(depth: number): string {
  return '{"a":'.repeat(depth - 1) + '{}' + '}'.repeat(depth - 1);
}

/** `parts` as bytes: numbers are bytes, strings are UTF-8. */
export function bytesOf(...parts: (string | number)[]): Uint8Array {
  return Buffer.concat(
    parts.map((part) => (typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part))),
  );
}

const ok = (text: string): CanonicalCase => [text];

export const CANONICAL_CASES: readonly CanonicalCase[] = [
  // Keys
  ok('{"":1,"1":2,"10":3,"2":4,"__proto__":{"a":1},"constructor":5,"toJSON":6}'),
  ok('{"a":1,"a ":2,"a!":3,"a\\"":4,"a#":5,"a\\\\":6,"aa":7}'),
  ok('{"\\u0000":1,"\\b":2,"\\t":3,"\\n":4,"\\u001f":5," ":6,"\x7f":7,"\x80":8}'),
  ok('{"😀":1,"\ue000":2,"\uffff":3}'),
  ok('{"e\u0301":"NFD","é":"NFC"}'),
  ['{"\ue000":1,"😀":2}', ['NOT_CANONICAL', 9, '/😀']],
  ['{"\uffff":1,"😀":2}', ['NOT_CANONICAL', 9, '/😀']],
  ['{"10":1,"2":2,"1":3}', ['NOT_CANONICAL', 14, '/1']],
  ['{"a":1,"":2}', ['NOT_CANONICAL', 7, '/']],
  ['{"a#":1,"a\\"":2}', ['NOT_CANONICAL', 8, '/a"']],
  ['{"__proto__":1,"__proto__":2}', ['DUPLICATE_KEY', 15, '/__proto__']],
  ['{"a":1,"a":1}', ['DUPLICATE_KEY', 7, '/a']],
  ['{"a":1,"\\u0061":2}', ['DUPLICATE_KEY', 7, '/a']],
  ['{"":1,"":2}', ['DUPLICATE_KEY', 6, '/']],
  ['[{"x":{"b":1,"a":2,"b":3}}]', ['DUPLICATE_KEY', 19, '/0/x/b']],
  ['{"a/b":{"m~n":[1, 2]}}', ['NOT_CANONICAL', 17, '/a~1b/m~0n/1']],
  [`{"${'k'.repeat(256)}":1 }`, ['NOT_CANONICAL', 261, '']],
  [`{"${'k'.repeat(256)}":-0}`, ['NUMBER_NOT_CANONICAL', 260, `/${'k'.repeat(256)}`]],
  [`{"${'k'.repeat(257)}":-0}`, ['NUMBER_NOT_CANONICAL', 261, `/${'k'.repeat(256)}…`]],

  // White space
  [' 1', ['NOT_CANONICAL', 0, '']],
  ['1\n', ['NOT_CANONICAL', 1, '']],
  ['{"a" :1}', ['NOT_CANONICAL', 4, '/a']],
  ['{"a":\t1}', ['NOT_CANONICAL', 5, '/a']],
  ['{ }', ['NOT_CANONICAL', 1, '']],
  ['[1\r,2]', ['NOT_CANONICAL', 2, '']],
  ['\u00a01', ['NOT_JSON', 0, '']],
  ['1\v', ['NOT_JSON', 1, '']],

  // Strings
  ok('"\\"\\\\/\x7f\u0080\u2028\u2029\ufeff\ufffe\uffff😀"'),
  ['"\\/"', ['NOT_CANONICAL', 1, '']],
  ['["a","\\u0041"]', ['NOT_CANONICAL', 6, '/1']],
  ['"\\u007f"', ['NOT_CANONICAL', 1, '']],
  ['"\\u2028"', ['NOT_CANONICAL', 1, '']],
  ['"\\ud83d\\ude00"', ['NOT_CANONICAL', 1, '']],
  ['"\\\\u0041"'],
  ['"\\\\\\u0041"', ['NOT_CANONICAL', 3, '']],
  ['"\\u00e9"', ['NOT_CANONICAL', 1, '']],
  ['"\\x"', ['NOT_JSON', 1, '']],
  ['"\\u00"', ['NOT_JSON', 1, '']],
  ['"\\U0041"', ['NOT_JSON', 1, '']],
  ['"\\', ['NOT_JSON', 1, '']],
  ['"a', ['NOT_JSON', 2, '']],
  ['"', ['NOT_JSON', 1, '']],
  ['{"a":"\n"}', ['NOT_JSON', 6, '/a']],

  // Lone surrogates
  ['"\\ud800"', ['LONE_SURROGATE', 1, '']],
  ['"\\udfff"', ['LONE_SURROGATE', 1, '']],
  ['"\\ude00\\ud83d"', ['LONE_SURROGATE', 1, '']],
  ['"\\ud83d\\ude00\\ud83d"', ['LONE_SURROGATE', 13, '']],
  ['"\\ud83d\\u0041"', ['LONE_SURROGATE', 1, '']],
  ['"\\ud83d\\\\ude00"', ['LONE_SURROGATE', 1, '']],
  ['{"\\ud800":1}', ['LONE_SURROGATE', 2, '/\ufffd']],
  [bytesOf('"', 0xed, 0xa0, 0x80, '"'), ['INVALID_UTF8', 1, '']],
  [bytesOf('"', 0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80, '"'), ['INVALID_UTF8', 1, '']],

  // UTF-8
  [bytesOf('{"a":["', 0xc0, 0x80, '"]}'), ['INVALID_UTF8', 7, '/a/0']],
  [bytesOf('"', 0xc1, 0xbf, '"'), ['INVALID_UTF8', 1, '']],
  [bytesOf('"', 0xe0, 0x9f, 0xbf, '"'), ['INVALID_UTF8', 1, '']],
  [bytesOf('"', 0xf0, 0x8f, 0xbf, 0xbf, '"'), ['INVALID_UTF8', 1, '']],
  [bytesOf('"', 0xf4, 0x90, 0x80, 0x80, '"'), ['INVALID_UTF8', 1, '']],
  [bytesOf('"', 0xf5, 0x80, 0x80, 0x80, '"'), ['INVALID_UTF8', 1, '']],
  [bytesOf('"é', 0x80, '"'), ['INVALID_UTF8', 3, '']],
  [bytesOf('"', 0xe2, 0x82), ['INVALID_UTF8', 1, '']],
  [bytesOf('{"a":1,"', 0xff, '":2}'), ['INVALID_UTF8', 8, '']],
  [bytesOf('[1,', 0xff), ['INVALID_UTF8', 3, '/1']],
  [bytesOf('not json ', 0xff), ['INVALID_UTF8', 9, '']],

  // Byte order mark
  ['\ufeff{}', ['BYTE_ORDER_MARK', 0, '']],
  ['\ufeff', ['BYTE_ORDER_MARK', 0, '']],
  ['\ufeffnot json', ['BYTE_ORDER_MARK', 0, '']],
  ['[\ufeff]', ['NOT_JSON', 1, '/0']],
  ['{}\ufeff', ['NOT_JSON', 2, '']],
  [bytesOf(0xff, 0xfe, '{', 0, '}', 0), ['INVALID_UTF8', 0, '']],

  // Numbers
  ok('[0,1,-1,10,123456789012345,1234567890123456,9007199254740991,-9007199254740991]'),
  ok('[0.1,-0.5,4.5,0.000001,1e-7,1.5e-7,1e+21,1e+30,-1e+30,5e-324,1.7976931348623157e+308]'),
  ok('[333333333.3333333,100000.5,-0.0000012345678901234567]'),
  ['-0', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['[1,-0.0]', ['NUMBER_NOT_CANONICAL', 3, '/1']],
  ['-0e1', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['9007199254740992', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['-9007199254740992', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['9007199254740993', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['100000000000000000000', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['1000000000000000000000', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['1e30', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['1E30', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['1E+30', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['1e+400', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['-1e+400', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['1e-400', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['1.0', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['4.50', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['0.0000001', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['333333333.33333329', ['NUMBER_NOT_CANONICAL', 0, '']],
  ['{"a":1.10}', ['NUMBER_NOT_CANONICAL', 5, '/a']],
  ['01', ['NOT_JSON', 1, '']],
  ['-', ['NOT_JSON', 1, '']],
  ['+1', ['NOT_JSON', 0, '']],
  ['.5', ['NOT_JSON', 0, '']],
  ['1.', ['NOT_JSON', 2, '']],
  ['1e', ['NOT_JSON', 2, '']],
  ['0x10', ['NOT_JSON', 1, '']],
  ['NaN', ['NOT_JSON', 0, '']],
  ['Infinity', ['NOT_JSON', 0, '']],

  // Literals and structure
  ok('null'),
  ok('true'),
  ok('false'),
  ok('""'),
  ok('[]'),
  ok('{}'),
  ok('[[],{},[{}],null,true,false,"",0]'),
  ['', ['NOT_JSON', 0, '']],
  [' ', ['NOT_JSON', 1, '']],
  ['nul', ['NOT_JSON', 0, '']],
  ['nulls', ['NOT_JSON', 4, '']],
  ['True', ['NOT_JSON', 0, '']],
  ['fals', ['NOT_JSON', 0, '']],
  ['1 2', ['NOT_JSON', 2, '']],
  ['{}{}', ['NOT_JSON', 2, '']],
  ['[1,]', ['NOT_JSON', 3, '/1']],
  ['[,1]', ['NOT_JSON', 1, '/0']],
  ['[1', ['NOT_JSON', 2, '']],
  ['[', ['NOT_JSON', 1, '/0']],
  [']', ['NOT_JSON', 0, '']],
  ['[}', ['NOT_JSON', 1, '/0']],
  ['{]', ['NOT_JSON', 1, '']],
  ['{"a":1,}', ['NOT_JSON', 7, '']],
  ['{"a"}', ['NOT_JSON', 4, '/a']],
  ['{"a":}', ['NOT_JSON', 5, '/a']],
  ['{"a":1', ['NOT_JSON', 6, '']],
  ['{a:1}', ['NOT_JSON', 1, '']],
  ["['a']", ['NOT_JSON', 1, '/0']],
  ['{}\0', ['NOT_JSON', 2, '']],

  // Nesting
  ok(nestedArrays(64)),
  ok(nestedObjects(64)),
  ok('[' + '{"a":['.repeat(31) + '1' + ']}'.repeat(31) + ']'),
  ok(`[${Array.from({ length: 100 }, () => nestedArrays(63)).join(',')}]`),
  [nestedArrays(65), ['NESTING_TOO_DEEP', 64, '/0'.repeat(64)]],
  [nestedObjects(65), ['NESTING_TOO_DEEP', 64 * 5, '/a'.repeat(64)]],
  ['['.repeat(65), ['NESTING_TOO_DEEP', 64, '/0'.repeat(64)]],
  ['['.repeat(64), ['NOT_JSON', 64, '/0'.repeat(64)]],

  // One code for a text with several faults: by precedence first, then by place
  [bytesOf('\ufeff{', 0xff), ['INVALID_UTF8', 4, '']],
  ['{"b":-0,"a" :1,"a":"\\ud800"', ['NOT_JSON', 27, '']],
  ['{"b":-0,"a" :1,"a":"\\ud800"}', ['DUPLICATE_KEY', 15, '/a']],
  ['{"b":-0,"a" :"\\ud800"}', ['LONE_SURROGATE', 14, '/a']],
  ['{"b":1 ,"a":-0,"c":1.0}', ['NUMBER_NOT_CANONICAL', 12, '/a']],
  ['{"b":1 ,"a":1}', ['NOT_CANONICAL', 6, '']],
  ['[-0,' + '['.repeat(64), ['NESTING_TOO_DEEP', 67, '/1' + '/0'.repeat(63)]],
];
