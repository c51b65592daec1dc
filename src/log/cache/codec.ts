/**
 * State values as JSON text, with one-member objects for non-JSON types. File names are relative to the ledger, so an index serves any path
 * to it.
 */

import type { Rational } from '../../base/value/rational.js';
import { IndexFault } from './entry-store.js';

export interface FileNames {
  toIndex(path: string): string;
  fromIndex(name: string): string;
}

const INTEGER = /^-?\d{1,4096}$/;
const AMOUNT = /^(-?\d{1,4096})(?:\/(\d{1,4096}))?$/;
const RATIONAL = /^(-?\d{1,4096})\/(\d{1,4096})$/;

/** Undefined members are left out. */
export function encodeValue(value: unknown, names: FileNames): string {
  return textOf(value, '', names);
}

/** As JSON.stringify, without the copy that a replacer would need. */
function textOf(value: unknown, key: string, names: FileNames): string {
  switch (typeof value) {
    case 'string':
      return encodeText(key === 'file' ? names.toIndex(value) : value);
    case 'number':
      return Number.isFinite(value) ? String(value) : 'null';
    case 'boolean':
      return value ? 'true' : 'false';
    case 'bigint':
      return `{"$i":"${value}"}`;
    case 'object':
      return value === null ? 'null' : textOfObject(value, names);
    default:
      return 'null';
  }
}

function textOfObject(value: object, names: FileNames): string {
  if (Array.isArray(value)) return textOfList(value, names);
  if (value instanceof Map) return `{"$m":${textOfList(value as ReadonlyMap<unknown, unknown>, names)}}`;
  if (value instanceof Set) return `{"$s":${textOfList(value as ReadonlySet<unknown>, names)}}`;
  if (isRational(value)) return `{"$r":"${value.n}/${value.d}"}`;
  let text = '{';
  for (const name of Object.keys(value)) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    if (member === undefined) continue;
    if (text.length > 1) text += ',';
    text += `${encodeText(name)}:${textOf(member, name, names)}`;
  }
  return `${text}}`;
}

function textOfList(items: Iterable<unknown>, names: FileNames): string {
  let text = '[';
  for (const item of items) {
    if (text.length > 1) text += ',';
    text += textOf(item, '', names);
  }
  return `${text}]`;
}

/** `n` or `n/d`. */
export function encodeRational({ n, d }: Rational): string {
  return d === 1n ? String(n) : `${n}/${d}`;
}

/** Undefined for malformed text. */
export function tryDecodeRational(text: string): Rational | undefined {
  const [, n, d = '1'] = AMOUNT.exec(text) ?? [];
  return n === undefined ? undefined : { n: BigInt(n), d: BigInt(d) };
}

/** Printable ASCII without `"` and `\`, which JSON writes unescaped. */
const PLAIN = /^[ !#-[\]-~]*$/;

export function encodeText(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** @throws IndexFault unless {@link encodeValue} wrote the text */
export function decodeValue(text: string, names: FileNames): unknown {
  try {
    return JSON.parse(text, (key, each: unknown) => {
      if (key === 'file' && typeof each === 'string') return names.fromIndex(each);
      return typeof each === 'object' && each !== null
        ? revive(each as Readonly<Record<string, unknown>>)
        : each;
    });
  } catch (cause) {
    throw new IndexFault('an entry is malformed', { cause });
  }
}

function isRational(value: unknown): value is { readonly n: bigint; readonly d: bigint } {
  const { n, d } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return typeof n === 'bigint' && typeof d === 'bigint';
}

function revive(value: Readonly<Record<string, unknown>>): unknown {
  const { $i: integer, $r: rational, $m: map, $s: set } = value;
  if (typeof integer === 'string') return BigInt(check(INTEGER, integer)[0]);
  if (typeof rational === 'string') {
    const [, n = '', d = ''] = check(RATIONAL, rational);
    return { n: BigInt(n), d: BigInt(d) };
  }
  if (Array.isArray(map)) return new Map(map as [unknown, unknown][]);
  return Array.isArray(set) ? new Set(set) : value;
}

function check(pattern: RegExp, text: string): RegExpExecArray {
  const match = pattern.exec(text);
  if (match === null) throw new SyntaxError('not a number');
  return match;
}
