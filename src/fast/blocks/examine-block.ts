/**
 * The facts of a block that depend on no other: where each line ends, its leaf hash, which of its signatures are valid, the Merkle nodes
 * over the lines, and how its records relate. This is most of the work of a verification, and needs no order, so that other threads
 * can do it. The facts are numbers, a few for each line.
 */

import type { LentNumbers } from '../../base/bytes/lent-scratch.js';
import { NorthrootError } from '../../base/error.js';
import { type ExaminedLine, examineFully } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { SignatureBackend, VerificationKey } from '../../format/signature/backend.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import {
  closingQuote,
  eventOf,
  isFastPathOn,
  keyidOf,
  signatureAt,
  signatureCountOf,
} from '../scan/scanned-line.js';
import { ROW_WIDTH, SEQ_LOW } from '../scan/scan.js';
import { SEQ_BASE } from '../scan/tables.js';
import { type DeclaredKey, keysDeclaredBy, KnownKeys } from './known-keys.js';
import { scannerFor } from './line-scanner.js';
import { SignatureQueue } from './signature-queue.js';
import { NOT_COMPUTED, VALID } from './verdicts.js';

const HASH_BYTES = 32;
/** Of a usual signed record. */
const SIGNED_RECORD_BYTES = 1_536;
/** How many lines on the slow path are kept examined: a block may have 100,000 lines of two bytes. */
const MAX_EXAMINED = 2_048;
/** A shorter line has no signature and declares no key. */
const MIN_SIGNED_BYTES = 24;

/** The facts of a block's lines. Plain data, so that threads can transfer it. */
export interface BlockFacts {
  readonly lines: number;
  /** Where each line ends: its `\n`, or the block's end. */
  readonly ends: Int32Array;
  /** The RFC 6962 leaf hash of each line; zeros for a blank one. */
  readonly leaves: Uint8Array;
  /**
   * Nodes of the Merkle tree; empty where not computed. The root of the perfect subtree over the lines [i, i + 2^k), k > 0, is hash
   * i + 2^(k-1), for each i where `ordinal` + i is a multiple of 2^k. Every line is a leaf then.
   */
  readonly nodes: Uint8Array;
  /** The number of leaves before the block, modulo 2^30, by the `seq` of its records. */
  readonly ordinal: number;
  /** The row of each scannable record in `rows` (`scan.ts`); -1 for any other line. */
  readonly rowAt: Int32Array;
  /** Offsets of the members of scannable records (`row.ts`). Their ids and digests are right. */
  readonly rows: Int32Array;
  /** Where the verdicts of each line begin, and where the last ones end. */
  readonly verdictsAt: Int32Array;
  /** One for each signature, in order (`verdicts.ts`). */
  readonly verdicts: Uint8Array;
  readonly declared: readonly DeclaredKey[];
}

/** The same with the first lines on the slow path as examined, for use in the same thread. */
export interface ExaminedBlock extends BlockFacts {
  readonly examined: ReadonlyMap<number, ExaminedLine>;
}

export interface Examiner {
  readonly keys: KnownKeys;
  readonly signatures: SignatureQueue;
  /** Where rows are written, for who is done with a block before the next; otherwise each block's are an array of their own. */
  readonly rows?: LentNumbers;
}

/**
 * @param backend - Tables and batches are used with the default one only.
 * @param threads - See {@link SignatureQueue}.
 * @param bytes - How many are to be examined, if it is known.
 */
export function makeExaminer(
  backend: SignatureBackend,
  declared: readonly DeclaredKey[] = [],
  threads = 1,
  bytes = 0,
): Examiner {
  const keys = new KnownKeys(backend);
  keys.add(declared);
  const signatures = new SignatureQueue(
    backend.name === defaultBackend.name,
    threads,
    bytes / SIGNED_RECORD_BYTES,
  );
  return { keys, signatures };
}

/** Which facts of the lines are requested: their hashes, or all. */
export type Depth = 'hashes' | 'all';

/**
 * Examines the lines of a block.
 *
 * @param bytes - See `Block.bytes`. MUST NOT change while `examined` is in use.
 * @param given - Verdicts of another run. A sample of those that say VALID is computed again, and all others.
 * @throws NorthrootError `PART_WRONG` where `given` does not fit these lines, or is wrong.
 */
export function examineBlock(
  bytes: Uint8Array,
  { keys, signatures, rows: room }: Examiner,
  depth: Depth,
  given?: Uint8Array,
): ExaminedBlock {
  const scanner = scannerFor(bytes.length);
  const ends = scanner.begin(bytes);
  const lines = ends.length;
  const leaves = new Uint8Array(lines * HASH_BYTES);
  const verdictsAt = new Int32Array(lines + 1);
  const verdicts: number[] = [];
  const declared: DeclaredKey[] = [];
  const examined = new Map<number, ExaminedLine>();
  const rowAt = new Int32Array(lines).fill(-1);
  const isFast = depth === 'all' && isFastPathOn();
  let fast = 0;
  /** Whether a line is no leaf. */
  let hasBlank = false;
  /** The key for the next verdict; undefined where a given one is used. */
  const keyOfNext = (keyid: string): VerificationKey | undefined => {
    // The others are the sample.
    const isBelieved = given?.[verdicts.length] === VALID && Math.random() * SAMPLE >= 1;
    const key = isBelieved ? undefined : keys.find(keyid);
    // Without the key, it is computed when the lines are verified in order.
    if (key === undefined) verdicts.push(isBelieved ? VALID : NOT_COMPUTED);
    return key;
  };
  let end = -1;
  for (let i = 0; i < lines; i += 1) {
    const start = end + 1;
    end = ends[i] as number;
    verdictsAt[i] = verdicts.length;
    if (end === start) {
      hasBlank = true;
      continue;
    }
    writeHash(leaves, i * HASH_BYTES, scanner.leafHash(start, end));
    if (depth !== 'all' || end - start > MAX_LINE_BYTES) continue;
    if (isFast && scanner.scan(start, end, fast)) {
      const { rows } = scanner;
      rowAt[i] = fast;
      const count = signatureCountOf(rows, fast);
      for (let index = 0; index < count; index += 1) {
        const key = keyOfNext(keyidOf(bytes, rows, fast, index));
        if (key === undefined) continue;
        const at = signatureAt(bytes, rows, fast, index);
        const event = eventOf(bytes, rows, fast);
        const end = closingQuote(bytes, at);
        verdicts.push(signatures.addAt(key, event, bytes, at, end, verdicts.length));
      }
      fast += 1;
      continue;
    }
    const isKept = examined.size < MAX_EXAMINED;
    if (!isKept && end - start < MIN_SIGNED_BYTES) continue;
    const line = bytes.subarray(start, end);
    const facts = examineFully(line, undefined);
    if (isKept) examined.set(i, facts);
    for (const key of keysDeclaredBy(facts)) {
      declared.push(key);
      keys.add([key]);
    }
    if (facts.signatures === undefined || facts.span === undefined) continue;
    const event = line.subarray(facts.span.start, facts.span.end);
    for (const { keyid, sig } of facts.signatures) {
      const key = keyOfNext(keyid);
      if (key !== undefined) verdicts.push(signatures.add(key, event, sig, verdicts.length));
    }
  }
  signatures.flush(verdicts);
  if (fast > 0) scanner.relate(rowAt, leaves);
  const rowNumbers = scanner.rows.subarray(0, fast * ROW_WIDTH);
  const rows = room?.copy(rowNumbers) ?? rowNumbers.slice();
  const first = rowAt.indexOf(0);
  const ordinal = first === -1 ? 0 : (rows[SEQ_LOW]! - first) & (SEQ_BASE - 1);
  const hasNodes = first !== -1 && !hasBlank;
  if (given !== undefined && depth === 'all') assertTrue(given, verdicts);
  verdictsAt[lines] = verdicts.length;
  return {
    lines,
    ends,
    leaves,
    nodes: hasNodes ? scanner.hashNodes(leaves, ordinal) : new Uint8Array(),
    ordinal,
    rowAt,
    rows,
    verdictsAt,
    verdicts: new Uint8Array(verdicts),
    declared,
    examined,
  };
}

/** Writes a hash, a binary string of 32 characters, for which a loop is faster than `writeLatin1`. */
function writeHash(target: Uint8Array, at: number, hash: string): void {
  for (let i = 0; i < HASH_BYTES; i += 1) target[at + i] = hash.charCodeAt(i);
}

/** One of how many given verdicts is computed again. */
const SAMPLE = 256;

function assertTrue(given: Uint8Array, verdicts: readonly number[]): void {
  if (given.length !== verdicts.length)
    throw partIsWrong(`has ${given.length} verdicts on ${verdicts.length} signatures`);
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
