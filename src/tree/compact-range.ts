/**
 * The RFC 6962 Merkle tree over a ledger's lines, as far as one pass needs it: leaf hashes and the *compact range*
 * [0, size), which is enough to give the root at any size and to go on appending. Proofs are made in `proof.ts`.
 *
 * Hashes are kept as 32-character binary strings, because that is the form in which Node hashes fastest.
 */

import { hash } from 'node:crypto';
import { asBuffer, tryDecodeBase64 } from '../bytes/encoding.js';

/** The roots of the perfect subtrees that make up a tree of `size` leaves, largest first. Plain data: it can be saved. */
export interface CompactRange {
  size: number;
  readonly hashes: string[];
}

const LEAF_PREFIX = 0x00;
const NODE_PREFIX = 0x01;
const HASH_SIZE = 32;

const node = Buffer.alloc(1 + 2 * HASH_SIZE);
node[0] = NODE_PREFIX;

let leaf = Buffer.alloc(64 * 1024);
leaf[0] = LEAF_PREFIX;

/** SHA-256(0x00 ‖ `line`), RFC 6962 §2.1, as a binary string. `line` has no `\n`. */
export function leafHash(line: Uint8Array): string {
  if (line.length >= leaf.length) {
    leaf = Buffer.alloc(line.length + 1);
    leaf[0] = LEAF_PREFIX;
  }
  leaf.set(line, 1);
  return hash('sha256', leaf.subarray(0, line.length + 1), 'binary');
}

/** SHA-256(0x01 ‖ `left` ‖ `right`), RFC 6962 §2.1. */
export function nodeHash(left: string, right: string): string {
  node.write(left, 1, HASH_SIZE, 'latin1');
  node.write(right, 1 + HASH_SIZE, HASH_SIZE, 'latin1');
  return hash('sha256', node, 'binary');
}

/** A range over no leaves. */
export function emptyRange(): CompactRange {
  return { size: 0, hashes: [] };
}

/** Adds one leaf hash at the end of the range, in place. */
export function appendLeaf(range: CompactRange, leafHashOfLine: string): void {
  let last = leafHashOfLine;
  for (let n = range.size; n % 2 === 1; n = (n - 1) / 2) last = nodeHash(range.hashes.pop() as string, last);
  range.hashes.push(last);
  range.size += 1;
}

/** The tree's root as a binary string; for an empty tree SHA-256(""). */
export function rangeRoot(range: CompactRange): string {
  if (range.size === 0) return hash('sha256', '', 'binary');
  return range.hashes.reduceRight((right, left) => nodeHash(left, right));
}

/** The base64url text of a binary-string hash, the form it has in records (SPEC §2). */
export function hashToBase64url(binary: string): string {
  return Buffer.from(binary, 'latin1').toString('base64url');
}

/** The base64 text of a binary-string hash, the form it has in notes and proofs (C2SP). */
export function hashToBase64(binary: string): string {
  return Buffer.from(binary, 'latin1').toString('base64');
}

/** The binary-string hash of its canonical base64 text; `undefined` for anything but that of 32 bytes. */
export function tryHashFromBase64(text: string): string | undefined {
  const bytes = text.length === 44 ? tryDecodeBase64(text) : undefined;
  return bytes?.length === HASH_SIZE ? asBuffer(bytes).toString('latin1') : undefined;
}
