/**
 * The chain's part of the fast step (steps 4, 5 and 10): whether a record is the next one, and the tree that it joins. Offsets point
 * into the bytes of a block, so they are valid until {@link FastChain.flush}.
 */

import { isDigestAt } from '../base/bytes/base64url-at.js';
import { hasSameBytes, isTextAt } from '../base/bytes/compare.js';
import { encodeBase64url } from '../base/bytes/encoding.js';
import { decodeLatin1, encodeLatin1 } from '../base/bytes/text.js';
import { appendSubtree } from '../format/tree/compact-range.js';
import type { VerifyState } from '../rules/verify/state.js';
import type { BlockFacts } from './blocks/examine-block.js';
import type { FastLine } from './blocks/read-blocks.js';
import { orderTimes } from './row-times.js';
import * as row from './scan/row.js';
import { B64_LENGTH, SEQ_BASE } from './scan/tables.js';

const HASH_BYTES = 32;
const NO_BYTES = new Uint8Array();

export class FastChain {
  readonly #state: VerifyState;
  /** Whether a record was applied since the last flush: the fields below then describe the last one. */
  #isAhead = false;
  /** Its leaf hash. */
  #leaves: Uint8Array = NO_BYTES;
  #leafAt = 0;
  /** Its event id. */
  #tipBytes: Uint8Array = NO_BYTES;
  #tipAt = 0;
  /** The latest `occurred_at`, and whether it is that of the last record. */
  #latest: Uint8Array = NO_BYTES;
  #latestAt = 0;
  #latestEnd = 0;
  #isTipLatest = false;
  /** The block of the last record, and its lines that are not in the tree yet: `[from, to)`. */
  #block: BlockFacts | undefined;
  #leavesFrom = 0;
  #leavesTo = 0;

  constructor(state: VerifyState) {
    this.#state = state;
  }

  /** The size of the tree, with the leaves that {@link FastChain.flush} adds. */
  get treeSize(): number {
    return this.#state.tree.size + this.#leavesTo - this.#leavesFrom;
  }

  /** Whether the record is bound to the ledger and next in the chain, and no checkpoint is due. */
  isNext(bytes: Uint8Array, rows: Int32Array, base: number): boolean {
    const { chain, ledgerId, policy, records, seals, bindingRequired } = this.#state;
    if (rows[base + row.SEQ_HIGH]! * SEQ_BASE + rows[base + row.SEQ_LOW]! !== chain.seq) return false;
    const sealed = seals.signed?.treeSize ?? -1;
    if (sealed === records) return false;
    const limit = policy?.require?.checkpoint_max_records;
    if (limit !== undefined && records - sealed > limit) return false;
    // The record before was applied, so the members that this one shares with it are right.
    if (this.#isAhead && (rows[base + row.FLAGS]! & row.IS_CHAINED) !== 0) return true;
    const prev = rows[base + row.PREV]!;
    const isChained = this.#isAhead
      ? isDigestAt(bytes, prev, this.#leaves, this.#leafAt)
      : isTextAt(bytes, prev, chain.prev);
    if (!isChained) return false;
    const bound = rows[base + row.LEDGER_ID]!;
    return bound === 0 ? !bindingRequired : ledgerId !== undefined && isTextAt(bytes, bound, ledgerId);
  }

  /** Whether an id is that of the event before. */
  isTip(bytes: Uint8Array, id: number): boolean {
    return this.#isAhead && hasSameBytes(bytes, id, this.#tipBytes, this.#tipAt, B64_LENGTH);
  }

  /** Whether the event is earlier than one before it. */
  isLate(bytes: Uint8Array, rows: Int32Array, base: number): boolean {
    if (this.#isAhead) {
      if (this.#isTipLatest && (rows[base + row.FLAGS]! & row.IS_IN_ORDER) !== 0) return false;
    } else {
      this.#latest = encodeLatin1(this.#state.links.latest ?? '');
      this.#latestAt = 0;
      this.#latestEnd = this.#latest.length;
    }
    const at = rows[base + row.OCCURRED_AT]!;
    const end = rows[base + row.OCCURRED_AT + 1]!;
    if (this.#latestEnd === this.#latestAt) return false;
    return orderTimes(bytes, at, end, this.#latest, this.#latestAt, this.#latestEnd) < 0;
  }

  /** Moves the state behind the record. */
  advance(line: FastLine, base: number, isLate: boolean): void {
    const { bytes, index, length, facts, segment } = line;
    const { rows } = facts;
    const state = this.#state;
    const { chain, end } = state;
    state.lines += 1;
    state.bytes += length + 1;
    state.records += 1;
    end.file = segment.file;
    end.line = line.number + 1;
    end.byteOffset = line.offset + length + 1;
    chain.otherSeq = chain.seq + 1;
    chain.seq += 1;
    this.#leaves = facts.leaves;
    this.#leafAt = index * HASH_BYTES;
    if (this.#block !== facts) this.#growTree();
    if (this.#leavesTo === this.#leavesFrom) {
      this.#block = facts;
      this.#leavesFrom = index;
    }
    this.#leavesTo = index + 1;
    this.#isTipLatest = !isLate;
    if (!isLate) {
      this.#latest = bytes;
      this.#latestAt = rows[base + row.OCCURRED_AT]!;
      this.#latestEnd = rows[base + row.OCCURRED_AT + 1]!;
    }
    this.#tipBytes = bytes;
    this.#tipAt = rows[base + row.EVENT_ID]!;
    this.#isAhead = true;
  }

  /** Writes the tree, the tip and the latest time to the state. */
  flush(): void {
    if (!this.#isAhead) return;
    this.#isAhead = false;
    this.#growTree();
    const state = this.#state;
    state.chain.prev = encodeBase64url(this.#leaves.subarray(this.#leafAt, this.#leafAt + HASH_BYTES));
    state.tipEventId = decodeLatin1(this.#tipBytes, this.#tipAt, this.#tipAt + B64_LENGTH);
    state.links.latest = decodeLatin1(this.#latest, this.#latestAt, this.#latestEnd);
  }

  /** Adds the leaves that wait, by the largest known subtrees. */
  #growTree(): void {
    if (this.#block === undefined) return;
    const { tree } = this.#state;
    const { leaves, nodes, ordinal } = this.#block;
    const to = this.#leavesTo;
    for (let from = this.#leavesFrom; from < to;) {
      const mostLeaves = nodes.length === 0 ? 1 : to - from;
      let count = 1;
      while (
        2 * count <= mostLeaves &&
        ((ordinal + from) & (2 * count - 1)) === 0 &&
        tree.size % (2 * count) === 0
      )
        count *= 2;
      const [hashes, at] = count === 1 ? [leaves, from] : [nodes, from + count / 2];
      const root = decodeLatin1(hashes, at * HASH_BYTES, (at + 1) * HASH_BYTES);
      appendSubtree(tree, count, root);
      from += count;
    }
    this.#leavesFrom = to;
  }
}
