/** The source of a verification: the files of a ledger in order. */

import type { LedgerPrefix, PrefixHasher } from '../../base/bytes/ledger-prefix.js';
import type { FileFault } from '../../base/fault.js';
import type { ScratchFile } from './scratch-file.js';

export interface Segment {
  /** Its name in findings. */
  readonly file: string;
  /** The `seq` that its name promises, in a folder of segments. */
  readonly firstSeq: number | undefined;
  /** Its bytes in order. A chunk is valid until the next is requested. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Whole lines of one segment, with verdicts of their signatures. */
export interface GivenLines {
  readonly segment: Segment;
  readonly bytes: Uint8Array;
  /** One for each signature of the readable lines, in order (`examineBlock`). */
  readonly verdicts: Uint8Array;
}

/** A line too long to be kept: only its length and hash are. */
export interface GivenLongLine {
  readonly segment: Segment;
  /** In bytes, without its `\n`. */
  readonly length: number;
  readonly terminated: boolean;
  /** Its RFC 6962 leaf hash, a binary string. */
  readonly leaf: string;
}

/** The faults of a tile tree's files, apart from its records. */
export type TileFaultCode = 'TILE_MISSING' | 'TILE_MISMATCH' | 'TILE_UNEXPECTED';

/** Where reading ended in a ledger that is being written. */
export interface SourceGrowth {
  readonly file: string;
  /** The first byte that was not read. */
  readonly byteOffset: number;
}

/** The rest of a ledger after a prefix. */
export interface LedgerRest {
  /** The file in which the prefix ends, from there on, and those after it. */
  readonly segments: AsyncIterable<Segment>;
  readonly hasher: PrefixHasher;
  /** MUST be called when `segments` is no longer needed. */
  readonly close: () => Promise<void>;
}

export interface LedgerSource {
  /** The paths given, for the report. */
  readonly paths: readonly string[];
  /** Size in bytes when reading began, where known. */
  readonly size: number | undefined;
  readonly segments: AsyncIterable<Segment>;
  /**
   * The rest after a prefix, if the ledger begins with it, byte for byte; undefined if not: `segments` is then unchanged. Absent where
   * the source can be read only once. A copy of a source with other `segments` MUST omit it.
   */
  readonly readAfter?: (prefix: LedgerPrefix, signal?: AbortSignal) => Promise<LedgerRest | undefined>;
  /** All lines, with verdicts from parts; read instead of `segments`. */
  readonly given?: AsyncIterable<GivenLines | GivenLongLine>;
  /** Makes a temporary file for spilled ids; without it, all ids stay in memory. */
  readonly openScratch?: () => ScratchFile;
  /** The signed note of the checkpoint that the ledger is published with, and its file. The ledger must match it. */
  readonly published?: { readonly name: string; readonly note: Uint8Array };
  /** After `segments`: where reading ended in a ledger that has grown since; undefined if it has not. */
  readonly findGrowth?: () => Promise<SourceGrowth | undefined>;
  /** After `segments`: faults of the files, the first of them, and how many there are. */
  readonly findFaults?: () => Promise<{
    readonly faults: readonly FileFault<TileFaultCode>[];
    readonly total: number;
  }>;
}

export interface LedgerPlace {
  readonly bytes: number;
  /** How many leaves are before it. */
  readonly ordinal: number;
  /** In its file, from 1 on. */
  readonly line: number;
  readonly offset: number;
}
