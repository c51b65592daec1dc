/**
 * What can be said of the lines of a block without knowing any other: where each ends, its leaf hash, and which of its signatures are
 * valid. It is the part of verification that takes most of the time and needs no order, so that other threads can do it. What it gives
 * is numbers, a few for each line.
 */

import { examineFully, type ExaminedLine } from '../ledger/examine-line.js';
import { eventOf, keyidOf, scanUsual, signatureCountOf, signatureOf } from '../ledger/quick-line.js';
import { isChained, writeHash } from '../ledger/quick-identity.js';
import { FLAGS, IS_CHAINED, ROW_WIDTH } from '../ledger/quick-scan.js';
import { MAX_LINE_BYTES } from '../ledger/line-splitter.js';
import type { SignatureBackend } from '../signature/backend.js';
import { defaultBackend } from '../signature/default-backend.js';
import { leafHash } from '../tree/compact-range.js';
import { NorthrootError } from '../error.js';
import { KnownKeys, keysDeclaredBy, type DeclaredKey } from './known-keys.js';
import { SignatureQueue } from './signature-queue.js';
import { NOT_COMPUTED, VALID } from './verdicts.js';

const HASH_BYTES = 32;
const NEWLINE = 0x0a;

/** What is known of the lines of a block. Plain data, which another thread can hand over. */
export interface BlockFacts {
  readonly lines: number;
  /** Where each line ends in the block: its `\n`, or the block's end. */
  readonly ends: Int32Array;
  /** The RFC 6962 leaf hash of each line; of a blank one zeros. */
  readonly leaves: Uint8Array;
  /** The row of each usual record among `rows` (`quick-scan.ts`), and -1 for every other line. */
  readonly rowAt: Int32Array;
  /** What is where in the usual records: places in the block. Their ids and digests are true; see also `IS_CHAINED`. */
  readonly rows: Int32Array;
  /** The event's id of each usual record, 32 bytes for each line; of every other line zeros. */
  readonly ids: Uint8Array;
  /** Where the verdicts of each line begin; one number more than there are lines. */
  readonly verdictsAt: Int32Array;
  /** See `verdicts.ts`, for each signature, in their order. */
  readonly verdicts: Uint8Array;
  /** Keys that lines of the block declare and that were not known before. */
  readonly declared: readonly DeclaredKey[];
}

/** The same, with the lines that are not usual records as they were examined, for whoever goes on in the same thread. */
export interface ExaminedBlock extends BlockFacts {
  readonly examined: ReadonlyMap<number, ExaminedLine>;
}

/** What one thread examines blocks with. */
export interface Examiner {
  readonly keys: KnownKeys;
  readonly signatures: SignatureQueue;
}

/** @param backend - The default one alone is spared what its tables can do. */
export function makeExaminer(backend: SignatureBackend, declared: readonly DeclaredKey[] = []): Examiner {
  const keys = new KnownKeys(backend);
  keys.add(declared);
  return { keys, signatures: new SignatureQueue(backend.name === defaultBackend.name) };
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
  { keys, signatures }: Examiner,
  depth: Depth,
  given?: Uint8Array,
): ExaminedBlock {
  const ends = findLineEnds(bytes);
  const lines = ends.length;
  const leaves = new Uint8Array(lines * HASH_BYTES);
  const ids = new Uint8Array(lines * HASH_BYTES);
  const verdictsAt = new Int32Array(lines + 1);
  const verdicts: number[] = [];
  const declared: DeclaredKey[] = [];
  const examined = new Map<number, ExaminedLine>();
  const rowAt = new Int32Array(lines).fill(-1);
  let rows = new Int32Array(64 * ROW_WIDTH);
  let usual = 0;
  /** @param event - The event's bytes, in the block. */
  const verify = (keyid: string, sig: () => string, event: Uint8Array): void => {
    // So many of the verdicts that others came to are believed, and the rest is a sample.
    const isBelieved = given?.[verdicts.length] === VALID && Math.random() * SAMPLE >= 1;
    const key = isBelieved ? undefined : keys.find(keyid);
    if (key !== undefined) verdicts.push(signatures.add(key, event, sig(), verdicts.length));
    // Where the key is not known here, whoever orders the lines computes it.
    else verdicts.push(isBelieved ? VALID : NOT_COMPUTED);
  };
  let start = 0;
  for (let i = 0; i < lines; i += 1) {
    const begin = start;
    const end = ends[i] as number;
    const line = bytes.subarray(start, end);
    start = end + 1;
    verdictsAt[i] = verdicts.length;
    const isReadable = depth === 'all' && line.length > 0 && line.length <= MAX_LINE_BYTES;
    if (line.length > 0) writeHash(leaves, i * HASH_BYTES, leafHash(line));
    if (!isReadable) continue;
    if ((usual + 1) * ROW_WIDTH > rows.length) rows = grown(rows);
    if (scanUsual(bytes, begin, end, rows, usual, ids, i * HASH_BYTES)) {
      rowAt[i] = usual;
      const followsUsual = i > 0 && rowAt[i - 1] !== -1;
      if (followsUsual && isChained(bytes, rows, usual, leaves, (i - 1) * HASH_BYTES)) {
        rows[usual * ROW_WIDTH + FLAGS]! |= IS_CHAINED;
      }
      const count = signatureCountOf(rows, usual);
      const event = count === 0 ? line : eventOf(bytes, rows, usual);
      for (let index = 0; index < count; index += 1) {
        const keyid = keyidOf(bytes, rows, usual, index);
        verify(keyid, () => signatureOf(bytes, rows, usual, index), event);
      }
      usual += 1;
      continue;
    }
    ids.fill(0, i * HASH_BYTES, (i + 1) * HASH_BYTES);
    const facts = examineFully(line, undefined);
    examined.set(i, facts);
    for (const key of keysDeclaredBy(facts)) {
      declared.push(key);
      keys.add([key]);
    }
    if (facts.signatures === undefined || facts.span === undefined) continue;
    const event = line.subarray(facts.span.start, facts.span.end);
    for (const { keyid, sig } of facts.signatures) verify(keyid, () => sig, event);
  }
  for (const { place, verdict } of signatures.flush()) verdicts[place] = verdict;
  if (given !== undefined && depth === 'all') assertTrue(given, verdicts);
  verdictsAt[lines] = verdicts.length;
  return {
    lines,
    ends,
    leaves,
    rowAt,
    rows: rows.slice(0, usual * ROW_WIDTH),
    ids,
    verdictsAt,
    verdicts: Uint8Array.from(verdicts),
    declared,
    examined,
  };
}

/** One of so many verdicts that others came to is computed again. */
const SAMPLE = 256;

function assertTrue(given: Uint8Array, verdicts: readonly number[]): void {
  if (given.length !== verdicts.length) {
    throw partIsWrong(`has ${given.length} verdicts on ${verdicts.length} signatures`);
  }
  for (const [index, verdict] of verdicts.entries()) {
    const said = given[index];
    if (said === NOT_COMPUTED || verdict === NOT_COMPUTED || said === verdict) continue;
    throw partIsWrong(`says ${said === VALID ? 'valid' : 'invalid'} of a signature that is not`);
  }
}

function partIsWrong(what: string): NorthrootError {
  return new NorthrootError('PART_WRONG', `a part of the verification ${what}`, {
    hint: 'it was changed, or made of another ledger: make it again',
  });
}

function grown(rows: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(rows.length * 2);
  larger.set(rows);
  return larger;
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
