/** Where a ledger in PostgreSQL ends: its row in `head`. */

import type { StoredEnd } from '../store/ledger-store.js';
import { emptyRange, hashToBase64url, leafHash, rangeRoot } from '../../format/tree/compact-range.js';
import { malformed } from './postgres-error.js';
import type { Answer, Row, Session } from './session.js';

export interface Head extends StoredEnd {
  /** Undefined before the first line. */
  readonly id: number | undefined;
  /** In bytes: where the next line begins, as if all were in one file. */
  readonly endOffset: number;
}

export const EMPTY_TIP = hashToBase64url(rangeRoot(emptyRange()));
export const NO_LINES: Head = { id: undefined, size: 0, tip: EMPTY_TIP, endOffset: 0 };
/** Of a ledger without records. */
export const BEFORE_FIRST: StoredEnd = { size: 0, tip: EMPTY_TIP };
const TIP = /^[A-Za-z0-9_-]{43}$/;

/** Reads a ledger's head. The ledger's name holds letters, digits, `.`, `_` and `-` alone. */
export function headQuery(ledger: string): string {
  return `select id, size, tip, end_offset from northroot.head where name = '${ledger}'`;
}

/** @throws NorthrootError `STORE_MALFORMED` */
export function toHead({ rows }: Answer, name: string): Head {
  const [row] = rows;
  if (row === undefined) return NO_LINES;
  const [end, id, endOffset] = [toEnd(row), countOf(row, 'id'), countOf(row, 'end_offset')];
  if (end === undefined || id === undefined || endOffset === undefined || endOffset < end.size)
    throw malformed(name, 'its head is none');
  return { ...end, id, endOffset };
}

/** Undefined if a row has none. */
export function toEnd(row: Row): StoredEnd | undefined {
  const [size, tip] = [countOf(row, 'size'), row['tip']];
  return size !== undefined && size > 0 && typeof tip === 'string' && TIP.test(tip)
    ? { size, tip }
    : undefined;
}

export async function readHead(session: Session, ledger: string): Promise<Head> {
  return toHead(await session.ask(headQuery(ledger), []), session.name);
}

/** Undefined if it is no count. */
export function countOf(row: Row, column: string): number | undefined {
  const value = row[column];
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

export function isSameEnd(one: StoredEnd, other: StoredEnd): boolean {
  return one.size === other.size && one.tip === other.tip;
}

/** Of a line with its `\n`. */
export function tipOf(line: Uint8Array): string {
  return hashToBase64url(leafHash(line.subarray(0, -1)));
}
