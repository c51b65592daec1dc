/**
 * Values of a state as text: JSON, with one-member objects for what JSON does not have. The names of the ledger's files are written
 * as they are within the ledger, so that an index serves whatever path leads to it.
 */

import { IndexFault } from './entry-store.js';

/** How a ledger's files are named in its index. */
export interface FileNames {
  /** Of a path as verification names the file. */
  toIndex(path: string): string;
  fromIndex(name: string): string;
}

const INTEGER = /^-?\d{1,4096}$/;
const RATIONAL = /^(-?\d{1,4096})\/(\d{1,4096})$/;

/** A value as text; members that are undefined are left out. */
export function encodeValue(value: unknown, names: FileNames): string {
  // A replacer would be asked of every member, at several times the cost.
  return JSON.stringify(toPlain(value, '', names));
}

function toPlain(value: unknown, key: string, names: FileNames): unknown {
  if (typeof value === 'string') return key === 'file' ? names.toIndex(value) : value;
  if (typeof value === 'bigint') return { $i: String(value) };
  if (typeof value !== 'object' || value === null) return value;
  const list = (items: Iterable<unknown>): unknown[] => Array.from(items, (item) => toPlain(item, '', names));
  if (Array.isArray(value)) return list(value);
  if (value instanceof Map) return { $m: list(value as ReadonlyMap<unknown, unknown>) };
  if (value instanceof Set) return { $s: list(value as ReadonlySet<unknown>) };
  if (isRational(value)) return { $r: `${value.n}/${value.d}` };
  const plain: Record<string, unknown> = {};
  for (const name of Object.keys(value))
    plain[name] = toPlain((value as Readonly<Record<string, unknown>>)[name], name, names);
  return plain;
}

/** @throws IndexFault when the text is none that {@link encodeValue} gives */
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
