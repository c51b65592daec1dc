/**
 * Resumes a verification: after the verified prefix if its bytes are unchanged, else at the beginning, where the hashes of the lines show
 * whether the state fits the ledger.
 */

import { type LedgerPrefix, PrefixHasher } from '../../base/bytes/ledger-prefix.js';
import { NorthrootError } from '../../base/error.js';
import type { Finding } from '../../format/finding/finding.js';
import { appendLeaf, emptyRange, rangeRoot } from '../../format/tree/compact-range.js';
import type { LedgerPlace, LedgerSource, Segment } from '../source/ledger-source.js';
import { hashLine } from '../source/read-lines.js';
import type { AnchorWatch } from './anchors.js';
import { findStatedRoot } from './checkpoints.js';
import type { KnownLine } from './line-knowledge.js';
import type { VerifyState } from './state.js';

/** The bytes that a verification has read. */
export interface VerifiedPrefix extends LedgerPrefix {
  /** The ledger's roots at the checkpoints that the user held, binary strings by size. */
  readonly roots: ReadonlyMap<number, string>;
}

export interface SavedVerification {
  readonly state: VerifyState;
  /** The findings so far that do not depend on where the ledger ends. */
  readonly findings: readonly Finding[];
  /** See `VerificationResult.prefix`. Without it each line is hashed again. */
  readonly prefix?: VerifiedPrefix | undefined;
}

/** Skips the lines of a saved state, by their hashes. They MUST form the saved tree. */
export class SkippedLines {
  readonly #tree = emptyRange();
  readonly #root: string;
  readonly #anchors: AnchorWatch;
  #left: number;

  constructor({ lines, tree }: VerifyState, anchors: AnchorWatch) {
    this.#left = lines;
    this.#root = rangeRoot(tree);
    this.#anchors = anchors;
    anchors.observe(this.#tree);
  }

  /** Whether none is left. */
  get isDone(): boolean {
    return this.#left === 0;
  }

  /** The lines are not read again. */
  skipAll(): void {
    this.#left = 0;
  }

  /**
   * @returns Whether the line was skipped: false when none is left.
   * @throws NorthrootError `STATE_MISMATCH` at the last one, where the tree is another
   */
  skip({ line, takesPlace, known }: KnownLine): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    if (takesPlace) appendLeaf(this.#tree, known?.leaf ?? hashLine(line));
    this.#anchors.observe(this.#tree);
    if (this.#left === 0 && rangeRoot(this.#tree) !== this.#root) throw mismatch();
    return true;
  }

  /** @throws NorthrootError `STATE_MISMATCH` where the ledger has fewer lines */
  assertDone(): void {
    if (this.#left > 0) throw mismatch();
  }
}

export interface Beginning {
  readonly source: LedgerSource;
  /** Where the source begins in the ledger; undefined for its beginning. */
  readonly from: LedgerPlace | undefined;
  /** Hashes the bytes that are read, where requested. */
  readonly hasher: PrefixHasher | undefined;
  /** MUST be called at the end. */
  readonly close: () => Promise<void>;
}

interface BeginningOptions {
  readonly keepPrefix?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds where to begin.
 *
 * @param anchors - Skip the prefix if it is not read again.
 * @throws NorthrootError when the source cannot be read; the signal's reason when that aborts
 */
export async function beginReading(
  source: LedgerSource,
  { state, prefix }: { readonly state: VerifyState; readonly prefix?: VerifiedPrefix | undefined },
  anchors: AnchorWatch,
  { keepPrefix = false, signal }: BeginningOptions,
): Promise<Beginning> {
  const { tree, lines, records, bytes, end, seals } = state;
  const fits = prefix !== undefined && lines > 0 && (prefix.bytes === 0 || prefix.bytes === end.byteOffset);
  if (
    fits &&
    source.readAfter !== undefined &&
    anchors.skipTo(tree, (note) => prefix.roots.get(note.checkpoint.size) ?? findStatedRoot(seals, note))
  ) {
    const rest = await source.readAfter(prefix, signal);
    if (rest !== undefined) {
      const { hasher, close, segments } = rest;
      return {
        source: { ...source, segments: keepPrefix ? hashFiles(segments, hasher, true) : segments },
        from: { bytes, ordinal: records, line: prefix.bytes === 0 ? 1 : end.line, offset: prefix.bytes },
        hasher: keepPrefix ? hasher : undefined,
        close,
      };
    }
    anchors.restart();
  }
  const hasher = keepPrefix && source.given === undefined ? new PrefixHasher() : undefined;
  const segments = hasher === undefined ? source.segments : hashFiles(source.segments, hasher, false);
  return {
    source: hasher === undefined ? source : { ...source, segments },
    from: undefined,
    hasher,
    close: () => Promise.resolve(),
  };
}

/**
 * The same files, hashed as they are read.
 *
 * @param isBegun - Whether the first of them continues the file that was hashed last.
 */
async function* hashFiles(
  segments: AsyncIterable<Segment>,
  hasher: PrefixHasher,
  isBegun: boolean,
): AsyncGenerator<Segment, void, void> {
  let begin = !isBegun;
  for await (const segment of segments) {
    if (begin) hasher.beginFile();
    begin = true;
    yield { ...segment, chunks: hashChunks(segment.chunks, hasher) };
  }
}

async function* hashChunks(
  chunks: AsyncIterable<Uint8Array>,
  hasher: PrefixHasher,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const chunk of chunks) {
    hasher.update(chunk);
    yield chunk;
  }
}

function mismatch(): NorthrootError {
  return new NorthrootError('STATE_MISMATCH', 'the ledger is not the one that the saved state comes from', {
    hint: 'its earlier records were changed or cut off since, or it is another ledger: verify it from the beginning',
  });
}
