/** A block to be examined, by another thread or this one. */

import type { Block } from './block-reader.js';
import {
  type BlockFacts,
  type Depth,
  examineBlock,
  type ExaminedBlock,
  type Examiner,
} from './examine-block.js';
import type { DeclaredKey } from './known-keys.js';
import type { WorkerPool } from './worker-pool.js';

export class BlockTask {
  readonly block: Block;
  readonly room: SharedArrayBuffer;
  readonly #depth: Depth;
  #outcome: { readonly facts: BlockFacts | ExaminedBlock } | { readonly failure: unknown } | undefined;
  #answer: Promise<void> | undefined;

  constructor(block: Block, room: SharedArrayBuffer, depth: Depth) {
    this.block = block;
    this.room = room;
    this.#depth = depth;
  }

  /** Whether a thread examines it, or has. */
  get isTaken(): boolean {
    return this.isDone || this.#answer !== undefined;
  }

  get isDone(): boolean {
    return this.#outcome !== undefined;
  }

  /** Gives it to another thread. @returns Settles with the answer; never rejects. */
  giveTo(pool: WorkerPool): Promise<void> {
    const { bytes, verdicts } = this.block;
    this.#answer = pool.examine(this.room, bytes.length, this.#depth, verdicts).then(
      (facts) => {
        this.#outcome = { facts };
      },
      (failure: unknown) => {
        this.#outcome = { failure };
      },
    );
    return this.#answer;
  }

  /** Examines it in this thread. @returns The keys that it declares. */
  examine(examiner: Examiner): readonly DeclaredKey[] {
    const { bytes, verdicts } = this.block;
    try {
      const facts = examineBlock(bytes, examiner, this.#depth, verdicts);
      this.#outcome = { facts };
      return facts.declared;
    } catch (failure) {
      // Thrown when the block is next in order.
      this.#outcome = { failure };
      return [];
    }
  }

  async wait(): Promise<void> {
    await this.#answer;
  }

  /**
   * The facts of the block. It MUST be done.
   *
   * @throws The error of examining it.
   */
  facts(): BlockFacts | ExaminedBlock {
    if (this.#outcome === undefined) throw new RangeError('the block was not examined yet');
    if ('failure' in this.#outcome) throw this.#outcome.failure;
    return this.#outcome.facts;
  }
}
