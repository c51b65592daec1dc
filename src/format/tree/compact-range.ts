/**
 * The RFC 6962 Merkle tree over a ledger's lines in one pass: leaf hashes and the *compact range* [0, size), which gives the root at any
 * size and can be appended to. Hashes are 32-character binary strings, the form in which Node hashes fastest.
 */

import { allocateBytes } from '../../base/bytes/concat.js';
import { encodeBase64, encodeBase64url, tryDecodeBase64 } from '../../base/bytes/encoding.js';
import { sha256Latin1 } from '../../base/bytes/sha256.js';
import { decodeLatin1, encodeLatin1, writeLatin1 } from '../../base/bytes/text.js';

/** The roots of the perfect subtrees of a tree of `size` leaves, largest first. Plain data. */
export interface CompactRange {
  size: number;
  readonly hashes: string[];
}

const LEAF_PREFIX = 0x00;
const NODE_PREFIX = 0x01;
const HASH_SIZE = 32;

// In use only within a call.
const node = allocateBytes(1 + 2 * HASH_SIZE);
node[0] = NODE_PREFIX;

let leaf = allocateBytes(64 * 1024);
leaf[0] = LEAF_PREFIX;

/** SHA-256(0x00 ‖ `line`), RFC 6962 §2.1, as a binary string. `line` has no `\n`. */
export function leafHash(line: Uint8Array): string {
  if (line.length >= leaf.length) {
    leaf = allocateBytes(line.length + 1);
    leaf[0] = LEAF_PREFIX;
  }
  leaf.set(line, 1);
  return sha256Latin1(leaf.subarray(0, line.length + 1));
}

/** SHA-256(0x01 ‖ `left` ‖ `right`), RFC 6962 §2.1. */
export function nodeHash(left: string, right: string): string {
  writeLatin1(node, left, 1);
  writeLatin1(node, right, 1 + HASH_SIZE);
  return sha256Latin1(node);
}

export function emptyRange(): CompactRange {
  return { size: 0, hashes: [] };
}

/** Appends one leaf hash, in place. */
export function appendLeaf(range: CompactRange, leafHashOfLine: string): void {
  appendSubtree(range, 1, leafHashOfLine);
}

/** Appends a perfect subtree, in place. @param leaves - Its size, a power of two that MUST divide the range's size. */
export function appendSubtree(range: CompactRange, leaves: number, root: string): void {
  let last = root;
  for (let n = range.size / leaves; n % 2 === 1; n = (n - 1) / 2)
    last = nodeHash(range.hashes.pop() as string, last);
  range.hashes.push(last);
  range.size += leaves;
}

/** The tree's root as a binary string; for an empty tree SHA-256(""). */
export function rangeRoot(range: CompactRange): string {
  if (range.size === 0) return sha256Latin1(new Uint8Array());
  return range.hashes.reduceRight((right, left) => nodeHash(left, right));
}

/** The base64url text of a binary-string hash, as in records (SPEC §2). */
export function hashToBase64url(binary: string): string {
  return encodeBase64url(encodeLatin1(binary));
}

/** The base64 text of a binary-string hash, as in notes and proofs (C2SP). */
export function hashToBase64(binary: string): string {
  return encodeBase64(encodeLatin1(binary));
}

/** The hash of a canonical base64 text of 32 bytes; `undefined` for other text. */
export function tryHashFromBase64(text: string): string | undefined {
  const bytes = text.length === 44 ? tryDecodeBase64(text) : undefined;
  return bytes?.length === HASH_SIZE ? decodeLatin1(bytes) : undefined;
}
