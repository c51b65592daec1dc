/** What proofs are made from: a ledger that is read from its beginning, or the index of one that is asked. */

import { appendLeaf, emptyRange, rangeRoot } from '../format/tree/compact-range.js';
import { type LeafRange, RangeHasher } from '../format/tree/proof.js';
import { IndexGap } from '../log/cache/entry-store.js';
import type { RecordReader } from '../log/cache/record-reader.js';
import { findCheckpoint, type FoundCheckpoint } from '../log/read/find-checkpoint.js';
import { findRecord, type ReadRecord } from '../log/read/read-records.js';
import { hashLine, type OpenLedger, readLines } from '../rules/source/read-lines.js';

/** Roots as binary strings. */
export interface HashedTree {
  /** How many leaves were counted: at least as many as the largest size that was asked for, or all that there are. */
  readonly size: number;
  /** The roots of the trees that were asked for, as far as there are as many leaves. */
  readonly trees: readonly string[];
  /** The roots of the ranges; undefined where there are not as many leaves. */
  readonly roots: readonly string[] | undefined;
}

/** See the head of this file. */
export interface ProofBasis {
  /** @throws NorthrootError as the function of this name does. */
  findRecord(wanted: string): Promise<Pick<ReadRecord, 'file' | 'line' | 'seq' | 'eventId' | 'bytes'>>;
  findCheckpoint(): Promise<Pick<FoundCheckpoint, 'note' | 'seq'> | undefined>;
  /**
   * The roots of the trees of these sizes, ascending, and of ranges that lie in the largest.
   *
   * @param ranges - As `inclusionRanges` or `consistencyRanges` gives them.
   */
  hashTree(sizes: readonly number[], ranges: readonly LeafRange[]): Promise<HashedTree>;
}

/** A ledger that is opened for each question. */
export function ledgerBasis(open: OpenLedger, signal?: AbortSignal): ProofBasis {
  return {
    findRecord: async (wanted) => findRecord(await open(), wanted, signal),
    findCheckpoint: async () => findCheckpoint(await open(), { signal }),
    hashTree: async (sizes, ranges) => {
      const hasher = new RangeHasher(ranges);
      const tree = emptyRange();
      const last = sizes.at(-1) ?? 0;
      const trees = sizes.filter((size) => size === 0).map(() => rangeRoot(tree));
      if (last > 0) {
        for await (const { line, takesPlace } of readLines(await open(), { signal })) {
          if (!takesPlace) continue;
          const hash = hashLine(line);
          hasher.push(hash);
          appendLeaf(tree, hash);
          if (sizes.includes(tree.size)) trees.push(rangeRoot(tree));
          if (tree.size === last) break;
        }
      }
      return { size: tree.size, trees, roots: tree.size < last ? undefined : hasher.roots() };
    },
  };
}

/** The index of a ledger. What it does not know is an IndexGap. */
export function indexBasis(records: RecordReader): ProofBasis {
  return {
    findRecord: async (wanted) => {
      const record = await records.find(wanted);
      if (record === undefined) throw new IndexGap();
      return record;
    },
    findCheckpoint: () => {
      if (!records.isRegular) throw new IndexGap();
      return Promise.resolve(records.checkpoint);
    },
    hashTree: (sizes, ranges) => {
      const { size } = records;
      const rootOf = (end: number): string =>
        end === 0 ? rangeRoot(emptyRange()) : records.rootOf({ start: 0, end });
      const isWhole = (sizes.at(-1) ?? 0) <= size;
      return Promise.resolve({
        size,
        trees: sizes.filter((each) => each <= size).map(rootOf),
        roots: isWhole ? ranges.map((range) => records.rootOf(range)) : undefined,
      });
    },
  };
}
