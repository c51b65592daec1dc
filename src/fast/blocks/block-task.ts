/** A block that was read, and what becomes of it: another thread examines it, or this one. */

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

/** See the head of this file. */
export class BlockTask {
  readonly block: Block;
  /** Where the block lies. */
  readonly room: SharedArrayBuffer;
  readonly #depth: Depth;
  #outcome: { readonly facts: BlockFacts | ExaminedBlock } | { readonly failure: unknown } | undefined;
  #answer: Promise<void> | undefined;

  constructor(block: Block, room: SharedArrayBuffer, depth: Depth) {
    this.block = block;
    this.room = room;
    this.#depth = depth;
  }

  /** Whether somebody examines it, or has. */
  get isTaken(): boolean {
    return this.isDone || this.#answer !== undefined;
  }

  get isDone(): boolean {
    return this.#outcome !== undefined;
  }

  /** Gives it to another thread. @returns When that has answered; it is not rejected. */
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
      // It is told of when the turn of the block comes.
      this.#outcome = { failure };
      return [];
    }
  }

  /** Waits for the thread that it was given to. */
  async wait(): Promise<void> {
    await this.#answer;
  }

  /**
   * What was found out; to be asked when it is done.
   *
   * @throws What examining it has thrown.
   */
  facts(): BlockFacts | ExaminedBlock {
    if (this.#outcome === undefined) throw new RangeError('the block was not examined yet');
    if ('failure' in this.#outcome) throw this.#outcome.failure;
    return this.#outcome.facts;
  }
}
