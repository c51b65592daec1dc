/** Where each event of the ledger stands, by its id: what links between events are resolved against. */

import { IdIndex } from '../ledger/id-index.js';

/** An event's position. `seq` is the record's own, or its ordinal where it has none. */
export interface EventPosition {
  readonly file: string;
  readonly line: number;
  readonly seq: number;
}

/** Ids of 43 characters of base64url to positions, in typed arrays: about 60 bytes an event. */
export class EventIndex {
  readonly #ids = new IdIndex();
  #lines = new Float64Array(1024);
  #seqs = new Float64Array(1024);
  #files = new Uint32Array(1024);
  readonly #names: string[] = [];

  get size(): number {
    return this.#ids.size;
  }

  find(id: string): EventPosition | undefined {
    const ordinal = this.#ids.find(id);
    if (ordinal === -1) return undefined;
    return {
      file: this.#names[this.#files[ordinal] as number] as string,
      line: this.#lines[ordinal] as number,
      seq: this.#seqs[ordinal] as number,
    };
  }

  /** Adds an event that {@link EventIndex.find} does not find. Files come in order. */
  add(id: string, position: EventPosition): void {
    const ordinal = this.#ids.add(id);
    if (ordinal === this.#lines.length) this.#grow();
    if (this.#names.at(-1) !== position.file) this.#names.push(position.file);
    this.#files[ordinal] = this.#names.length - 1;
    this.#lines[ordinal] = position.line;
    this.#seqs[ordinal] = position.seq;
  }

  #grow(): void {
    const capacity = this.#lines.length * 2;
    const lines = new Float64Array(capacity);
    const seqs = new Float64Array(capacity);
    const files = new Uint32Array(capacity);
    lines.set(this.#lines);
    seqs.set(this.#seqs);
    files.set(this.#files);
    this.#lines = lines;
    this.#seqs = seqs;
    this.#files = files;
  }
}
