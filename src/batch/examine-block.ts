/**
 * What can be said of the lines of a block without knowing any other: where each ends, its leaf hash, and which of its signatures are
 * valid. It is the part of verification that takes most of the time and needs no order, so that other threads can do it. What it gives
 * is numbers, a few for each line.
 */

import { examineLine, type ExaminedLine, type SignatureEntry } from '../ledger/examine-line.js';
import { MAX_LINE_BYTES } from '../ledger/line-splitter.js';
import { eventMessage, isValidSignature } from '../signature/event-signature.js';
import { leafHash } from '../tree/compact-range.js';
import { writeLatin1 } from '../bytes/text.js';
import { NorthrootError } from '../error.js';
import { keysDeclaredBy, type DeclaredKey, type KnownKeys } from './known-keys.js';

/** What became of a signature: it was not computed, as its key was not known there, or the equation says so. */
export const NOT_COMPUTED = 0;
export const INVALID = 1;
export const VALID = 2;

const HASH_BYTES = 32;
const NEWLINE = 0x0a;

/** What is known of the lines of a block. Plain data, which another thread can hand over. */
export interface BlockFacts {
  readonly lines: number;
  /** Where each line ends in the block: its `\n`, or the block's end. */
  readonly ends: Int32Array;
  /** The RFC 6962 leaf hash of each line; of a blank one zeros. */
  readonly leaves: Uint8Array;
  /** Where the verdicts of each line begin; one number more than there are lines. */
  readonly verdictsAt: Int32Array;
  /** {@link NOT_COMPUTED}, {@link INVALID} or {@link VALID} for each signature, in their order. */
  readonly verdicts: Uint8Array;
  /** Keys that lines of the block declare and that were not known before. */
  readonly declared: readonly DeclaredKey[];
}

/** The same, with the lines as they were examined, for whoever goes on in the same thread. */
export interface ExaminedBlock extends BlockFacts {
  readonly examined: readonly (ExaminedLine | undefined)[];
}

/** How much of the lines is asked for: their hashes alone, or all that can be said of them. */
export type Depth = 'hashes' | 'all';

/**
 * Examines the lines of a block.
 *
 * @param bytes - See `Block.bytes`; unchanged as long as `examined` may be asked.
 * @param given - Verdicts that others came to: those that say VALID are believed but for a sample, all others are computed.
 * @throws NorthrootError `PART_WRONG` where `given` is not about these lines, or not true.
 */
export function examineBlock(
  bytes: Uint8Array,
  keys: KnownKeys,
  depth: Depth,
  given?: Uint8Array,
): ExaminedBlock {
  const ends = findLineEnds(bytes);
  const lines = ends.length;
  const leaves = new Uint8Array(lines * HASH_BYTES);
  const verdictsAt = new Int32Array(lines + 1);
  const verdicts: number[] = [];
  const declared: DeclaredKey[] = [];
  const examined: (ExaminedLine | undefined)[] = [];
  let start = 0;
  for (let i = 0; i < lines; i += 1) {
    const end = ends[i] as number;
    const line = bytes.subarray(start, end);
    start = end + 1;
    verdictsAt[i] = verdicts.length;
    const isReadable = depth === 'all' && line.length > 0 && line.length <= MAX_LINE_BYTES;
    if (line.length > 0) writeLatin1(leaves, leafHash(line), i * HASH_BYTES);
    const facts = isReadable ? examineLine(line, undefined) : undefined;
    examined.push(facts);
    if (facts === undefined) continue;
    for (const key of keysDeclaredBy(facts)) {
      declared.push(key);
      keys.add([key]);
    }
    if (facts.signatures === undefined || facts.span === undefined || facts.signatures.length === 0) continue;
    const { start: from, end: to } = facts.span;
    let made: Uint8Array | undefined;
    const message = (): Uint8Array => (made ??= eventMessage(line.subarray(from, to)));
    for (const signature of facts.signatures) {
      verdicts.push(verdictOn(signature, message, keys, given?.[verdicts.length]));
    }
  }
  if (given !== undefined && depth === 'all' && given.length !== verdicts.length) {
    throw partIsWrong(`has ${given.length} verdicts on ${verdicts.length} signatures`);
  }
  verdictsAt[lines] = verdicts.length;
  return { lines, ends, leaves, verdictsAt, verdicts: Uint8Array.from(verdicts), declared, examined };
}

/** One of so many verdicts that others came to is computed again. */
const SAMPLE = 256;

function verdictOn(
  { keyid, sig }: SignatureEntry,
  message: () => Uint8Array,
  keys: KnownKeys,
  given: number | undefined,
): number {
  if (given === VALID && Math.random() * SAMPLE >= 1) return VALID;
  const key = keys.find(keyid);
  if (key === undefined) return given === VALID ? VALID : NOT_COMPUTED;
  const verdict = isValidSignature(message(), sig, key) ? VALID : INVALID;
  if (given !== undefined && given !== NOT_COMPUTED && given !== verdict) {
    throw partIsWrong(`says ${given === VALID ? 'valid' : 'invalid'} of a signature that is not`);
  }
  return verdict;
}

function partIsWrong(what: string): NorthrootError {
  return new NorthrootError('PART_WRONG', `a part of the verification ${what}`, {
    hint: 'it was changed, or made of another ledger: make it again',
  });
}

function findLineEnds(bytes: Uint8Array): Int32Array {
  let ends = new Int32Array(1024);
  let count = 0;
  for (let start = 0; start < bytes.length; count += 1) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline === -1 ? bytes.length : newline;
    if (count === ends.length) {
      const larger = new Int32Array(count * 2);
      larger.set(ends);
      ends = larger;
    }
    ends[count] = end;
    start = end + 1;
  }
  return ends.slice(0, count);
}
