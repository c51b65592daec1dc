/** What verification reads: the files of a ledger in order, wherever they are. */

import type { LedgerPrefix, PrefixHasher } from '../../base/bytes/ledger-prefix.js';
import type { FileFault } from '../../base/fault.js';
import type { ScratchFile } from './scratch-file.js';

/** One file of a ledger. */
export interface Segment {
  /** Its name in findings. */
  readonly file: string;
  /** The `seq` that its name promises, in a folder of segments. */
  readonly firstSeq: number | undefined;
  /** Its bytes in order; each chunk may be overwritten when the next is asked for. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Whole lines of one segment of which it is known already which of their signatures are valid. */
export interface GivenLines {
  readonly segment: Segment;
  readonly bytes: Uint8Array;
  /** One for each signature of the lines that can be read, in their order, as `examineBlock` gives them. */
  readonly verdicts: Uint8Array;
}

/** A line that is too long to be kept: only its length and hash are. */
export interface GivenLongLine {
  readonly segment: Segment;
  /** In bytes, without its `\n`. */
  readonly length: number;
  readonly terminated: boolean;
  /** Its RFC 6962 leaf hash, a binary string. */
  readonly leaf: string;
}

/** What can be wrong with a file of a tile tree, apart from the records in it. */
export type TileFaultCode = 'TILE_MISSING' | 'TILE_MISMATCH' | 'TILE_UNEXPECTED';

/** Where reading ended in a ledger that is being written. */
export interface SourceGrowth {
  readonly file: string;
  /** Of the first byte that was not read. */
  readonly byteOffset: number;
}

/** What follows a prefix of a ledger. */
export interface LedgerRest {
  /** The file in which the prefix ends, from there on, and those after it. */
  readonly segments: AsyncIterable<Segment>;
  /** Has hashed the prefix. */
  readonly hasher: PrefixHasher;
  /** To be called when `segments` is not needed any more, wherever reading it ended. */
  readonly close: () => Promise<void>;
}

/** A ledger to be read. */
export interface LedgerSource {
  /** The paths given, for the report. */
  readonly paths: readonly string[];
  /** Size in bytes when reading began, where known. */
  readonly size: number | undefined;
  readonly segments: AsyncIterable<Segment>;
  /**
   * What follows a prefix, where the ledger begins with that, byte for byte; undefined where it does not, and `segments` gives
   * everything as before. Absent where nothing can be read twice. Whoever gives other `segments` than those of a source leaves it out.
   *
   * @param threads - At most so many hash it; default 1, the caller's own.
   */
  readonly readAfter?: (
    prefix: LedgerPrefix,
    signal?: AbortSignal,
    threads?: number,
  ) => Promise<LedgerRest | undefined>;
  /** All lines, with what others found out about them; where it is given, it is read in place of `segments`. */
  readonly given?: AsyncIterable<GivenLines | GivenLongLine>;
  /** Makes a temporary file for what verification does not keep in memory; without it, it keeps all. */
  readonly openScratch?: () => ScratchFile;
  /** The signed note of the checkpoint that the ledger is published with, and its file: what is there must be what it states. */
  readonly published?: { readonly name: string; readonly note: Uint8Array };
  /** Where reading ended in a ledger that has grown since, when `segments` was read to its end; undefined when it has not. */
  readonly findGrowth?: () => Promise<SourceGrowth | undefined>;
  /** What else is wrong with the files, when `segments` was read to its end: the first of them, and how many there are. */
  readonly findFaults?: () => Promise<{
    readonly faults: readonly FileFault<TileFaultCode>[];
    readonly total: number;
  }>;
}

/** The beginning of a line. */
export interface LedgerPlace {
  /** Of its first byte in the ledger. */
  readonly bytes: number;
  /** How many lines before it take a place. */
  readonly ordinal: number;
  /** In its file, from 1 on. */
  readonly line: number;
  /** Of its first byte in its file. */
  readonly offset: number;
}
