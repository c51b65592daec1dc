import { decodeLatin1, writeLatin1 } from '../../base/bytes/text.js';
import { nodeHash } from './compact-range.js';
import { largestPowerBelow, type LeafRange } from './proof.js';

const HASH_SIZE = 32;

/** A whole RFC 6962 tree in memory, for proofs of many leaves: every perfect subtree's root, in 64 bytes per leaf. */
export class NodeStore {
  /** The roots of the perfect subtrees of 2^i leaves, from left to right. */
  readonly #levels: HashList[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(leafHash: string): void {
    let last = leafHash;
    let place = this.#size;
    this.#size += 1;
    for (let level = 0; ; level += 1) {
      const list = (this.#levels[level] ??= new HashList());
      list.push(last);
      if (place % 2 === 0) return;
      last = nodeHash(list.at(place - 1), last);
      place = (place - 1) / 2;
    }
  }

  /** The root of the first leaves, or of a subtree of a proof. @throws RangeError for an empty range, or one beyond the last leaf */
  rootOf({ start, end }: LeafRange): string {
    const count = end - start;
    if (start < 0 || count < 1 || end > this.#size) throw new RangeError('expected leaves of the tree');
    const level = Math.log2(count);
    if (Number.isInteger(level) && start % count === 0)
      return (this.#levels[level] as HashList).at(start / count);
    const middle = start + largestPowerBelow(count);
    return nodeHash(this.rootOf({ start, end: middle }), this.rootOf({ start: middle, end }));
  }
}

/** Hashes in one buffer that doubles. */
class HashList {
  #bytes = new Uint8Array(HASH_SIZE);
  #count = 0;

  push(hash: string): void {
    const at = this.#count * HASH_SIZE;
    if (at === this.#bytes.length) {
      const larger = new Uint8Array(2 * at);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    writeLatin1(this.#bytes, hash, at);
    this.#count += 1;
  }

  at(index: number): string {
    return decodeLatin1(this.#bytes, index * HASH_SIZE, (index + 1) * HASH_SIZE);
  }
}
