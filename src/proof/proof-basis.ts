/** The source of a proof: a ledger, read from its beginning, or its index. */

import { appendLeaf, emptyRange, rangeRoot } from '../format/tree/compact-range.js';
import { type LeafRange, RangeHasher } from '../format/tree/proof.js';
import { IndexGap } from '../log/cache/entry-store.js';
import type { RecordReader } from '../log/cache/record-reader.js';
import { findCheckpoint, type FoundCheckpoint } from '../log/read/find-checkpoint.js';
import { findRecord, type ReadRecord } from '../log/read/read-records.js';
import { hashLine, type OpenLedger, readLines } from '../rules/source/read-lines.js';

/** Roots are binary strings. */
interface HashedTree {
  /** How many leaves were counted: the largest requested size, or all that there are. */
  readonly size: number;
  /** The roots of the requested trees that are not larger than that. */
  readonly trees: readonly string[];
  /** The roots of the ranges; undefined if there are too few leaves. */
  readonly roots: readonly string[] | undefined;
}

export interface ProofBasis {
  /** @throws NorthrootError as the function of this name does. */
  findRecord(wanted: string): Promise<Pick<ReadRecord, 'file' | 'line' | 'seq' | 'eventId' | 'bytes'>>;
  findCheckpoint(): Promise<Pick<FoundCheckpoint, 'note' | 'seq'> | undefined>;
  /**
   * The roots of the trees of these sizes, ascending, and of ranges within the largest.
   *
   * @param ranges - As `inclusionRanges` or `consistencyRanges` gives them.
   */
  hashTree(sizes: readonly number[], ranges: readonly LeafRange[]): Promise<HashedTree>;
}

/** A ledger, which is opened for each call. */
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

/** The index of a ledger. @throws IndexGap for what it does not have */
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
