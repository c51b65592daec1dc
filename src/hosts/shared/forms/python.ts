/**
 * JSON as Python's `json.dumps` writes it, from JSON text: the canonical forms of CGF. Numbers are what `json.loads` makes of their text (an
 * integer of any length, or a double) and are written as `repr` writes those; every character outside ASCII is `\uXXXX`.
 */

import { encodeHex } from '../../../base/bytes/encoding.js';
import { sha256 } from '../../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import { compareCodePoints } from './cac.js';

/** The forms that CGF takes digests over, by the names that findings and `x.cgf.digests` give them. */
export const PYTHON_FORMS = {
  /** `json.dumps(value, sort_keys=True, separators=(',', ':'))` */
  'py-json-sorted-compact-ascii': { sorted: true, spaced: false },
  /** `json.dumps(value, sort_keys=True)` */
  'py-json-sorted-spaced-ascii': { sorted: true, spaced: true },
  /** `json.dumps(value)` */
  'py-json-unsorted-spaced-ascii': { sorted: false, spaced: true },
} as const;

export type PythonForm = keyof typeof PYTHON_FORMS;

/** The text, ASCII only. Linear in the value's text. */
export function pythonJson(value: SourceValue, form: PythonForm): string {
  const { sorted, spaced } = PYTHON_FORMS[form];
  const comma = spaced ? ', ' : ',';
  const colon = spaced ? ': ' : ':';
  const write = (each: SourceValue): string => {
    if (each === null) return 'null';
    if (typeof each === 'boolean') return each ? 'true' : 'false';
    if (typeof each === 'string') return pythonString(each);
    if (each instanceof SourceNumber) return pythonNumber(each.text);
    if (each instanceof SourceObject) {
      const members = each.entries();
      if (sorted) members.sort(([a], [b]) => compareCodePoints(a, b));
      return `{${members.map(([name, member]) => `${pythonString(name)}${colon}${write(member)}`).join(comma)}}`;
    }
    return `[${each.map(write).join(comma)}]`;
  };
  return write(value);
}

/** SHA-256 of the text, 64 hexadecimal digits in lower case. CGF cuts some of its digests to the first 32 or 16. */
export function pythonSha256(value: SourceValue, form: PythonForm): string {
  return encodeHex(sha256(encodeUtf8(pythonJson(value, form))));
}

/** What `json.dumps(json.loads(text))` gives for a number of JSON. */
export function pythonNumber(text: string): string {
  if (isPythonInt(text)) return text === '-0' ? '0' : text;
  return pythonFloat(Number(text));
}

/** Whether `json.loads` makes an `int` of the number's text; it makes a `float` of others. */
export function isPythonInt(text: string): boolean {
  return !/[.eE]/.test(text);
}

/** `repr` of a double: the shortest digits that give it back, with an exponent below 1e-4 and from 1e16. */
export function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value < 0 ? '-Infinity' : 'Infinity';
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const [mantissa = '', power = '0'] = Math.abs(value).toExponential().split('e');
  const sign = value < 0 ? '-' : '';
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    const digits = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${digits}`;
  }
  const digits = mantissa.replace('.', '');
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

function pythonString(text: string): string {
  const escaped = text.replace(
    /["\\\u0000-\u001f]|[^\u0000-\u007e]/g,
    (unit) => ESCAPES[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `"${escaped}"`;
}
