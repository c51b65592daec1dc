/**
 * Repeated texts of a block's rows, each decoded once. The rows say which of them share a text (`fast/scan/relate.ts`).
 */

import { keyidAt, recallText } from '../scan/scanned-line.js';
import * as row from '../scan/row.js';
import { B64_LENGTH } from '../scan/tables.js';

type Cut = (bytes: Uint8Array, rows: Int32Array, base: number) => string;

/** The texts of the rows of one block at a time. */
export class BlockTexts {
  readonly principals = new RowTexts(row.SAME_PRINCIPAL, principalIn);
  readonly tools = new RowTexts(row.SAME_TOOL, toolIn);
  readonly links = new RowTexts(row.SAME_LINK, linkIn);
  /** Of first signatures. */
  readonly keyids = new RowTexts(row.SAME_KEYID, keyidIn);
  /** Of the meters in a row: `base` is the beginning of one. */
  readonly units = new RowTexts(row.SAME_UNIT, unitIn);

  /** Begins a block. @param count - Its number of rows. */
  begin(count: number): void {
    this.principals.begin(count);
    this.tools.begin(count);
    this.links.begin(count);
    this.keyids.begin(count);
    this.units.begin(count * row.ROW_AMOUNTS);
  }
}

class RowTexts {
  readonly #same: number;
  readonly #cut: Cut;
  /** By the first row, or meter, that has it. */
  readonly #texts: (string | undefined)[] = [];

  /** @param same - The member of a row that names the first one. */
  constructor(same: number, cut: Cut) {
    this.#same = same;
    this.#cut = cut;
  }

  begin(count: number): void {
    this.#texts.length = 0;
    for (let i = 0; i < count; i += 1) this.#texts.push(undefined);
  }

  /** @param base - The beginning of a row that has such a text. */
  at(bytes: Uint8Array, rows: Int32Array, base: number): string {
    const first = rows[base + this.#same]!;
    return (this.#texts[first] ??= this.#cut(bytes, rows, base));
  }
}

function principalIn(bytes: Uint8Array, rows: Int32Array, base: number): string {
  return recallText(bytes, rows[base + row.PRINCIPAL]!, rows[base + row.PRINCIPAL + 1]!);
}

function toolIn(bytes: Uint8Array, rows: Int32Array, base: number): string {
  return recallText(bytes, rows[base + row.TOOL]!, rows[base + row.TOOL + 1]!);
}

function linkIn(bytes: Uint8Array, rows: Int32Array, base: number): string {
  const at = rows[base + row.LINK]!;
  return recallText(bytes, at, at + B64_LENGTH);
}

function unitIn(bytes: Uint8Array, rows: Int32Array, base: number): string {
  return recallText(bytes, rows[base + row.UNIT]!, rows[base + row.UNIT + 1]!);
}

/** The keyid of signature `index`. */
export function keyidIn(bytes: Uint8Array, rows: Int32Array, base: number, index = 0): string {
  const at = keyidAt(bytes, rows, base, index);
  return recallText(bytes, at, at + B64_LENGTH);
}
