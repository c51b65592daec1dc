/**
 * What the rows of a block have in common: for each, an earlier one that has the same principal, tool, link, keyid or unit, so that
 * whoever goes through them in order cuts out each text once. And the bytes of the ids of each.
 */

import { decodeDigestAt } from '../bytes/base64url-at.js';
import { hasSameBytes } from '../bytes/compare.js';
import { keyidAt, REMEMBERED, slotOf } from '../ledger/quick-line.js';
import * as row from '../ledger/quick-row.js';
import { B64_LENGTH } from '../ledger/quick-tables.js';

const { ROW_WIDTH } = row;

/** As {@link EarlierRows.add}, of the only row of its block. */
export function fillOnlyRow(bytes: Uint8Array, rows: Int32Array, rowBytes: Uint8Array): void {
  decodeIds(bytes, rows, rowBytes, 0);
  const same = [row.SAME_PRINCIPAL, row.SAME_TOOL, row.SAME_LINK, row.SAME_KEYID];
  for (const place of same) rows[place] = 0;
  for (let i = 0; i < row.ROW_AMOUNTS; i += 1) {
    rows[row.AMOUNTS + i * row.AMOUNT_WIDTH + row.SAME_UNIT] = i;
  }
}

/** The rows that were seen of one block. */
export class EarlierRows {
  readonly #principals = new SeenTexts();
  readonly #tools = new SeenTexts();
  readonly #links = new SeenTexts();
  readonly #keyids = new SeenTexts();
  readonly #units = new SeenTexts();

  /** Forgets what was seen. */
  begin(): void {
    this.#principals.clear();
    this.#tools.clear();
    this.#links.clear();
    this.#keyids.clear();
    this.#units.clear();
  }

  /** Fills what is not of the scan into row `at`, but for flags. Rows come in order. */
  add(bytes: Uint8Array, rows: Int32Array, rowBytes: Uint8Array, at: number): void {
    const base = at * ROW_WIDTH;
    decodeIds(bytes, rows, rowBytes, base);
    const principal = rows[base + row.PRINCIPAL]!;
    const principalEnd = rows[base + row.PRINCIPAL + 1]!;
    rows[base + row.SAME_PRINCIPAL] = this.#principals.see(bytes, principal, principalEnd, at);
    const tool = rows[base + row.TOOL]!;
    if (tool !== 0) rows[base + row.SAME_TOOL] = this.#tools.see(bytes, tool, rows[base + row.TOOL + 1]!, at);
    const link = rows[base + row.LINK]!;
    if (link !== 0) rows[base + row.SAME_LINK] = this.#links.see(bytes, link, link + B64_LENGTH, at);
    const amounts = Math.min(rows[base + row.METER_COUNT]!, row.ROW_AMOUNTS);
    for (let i = 0; i < amounts; i += 1) {
      const amount = base + row.AMOUNTS + i * row.AMOUNT_WIDTH;
      const unit = rows[amount + row.UNIT]!;
      const unitEnd = rows[amount + row.UNIT + 1]!;
      rows[amount + row.SAME_UNIT] = this.#units.see(bytes, unit, unitEnd, at * row.ROW_AMOUNTS + i);
    }
    if (rows[base + row.SIGNATURE_COUNT] === 0) return;
    const keyid = keyidAt(bytes, rows, base, 0);
    rows[base + row.SAME_KEYID] = this.#keyids.see(bytes, keyid, keyid + B64_LENGTH, at);
  }
}

function decodeIds(bytes: Uint8Array, rows: Int32Array, rowBytes: Uint8Array, base: number): void {
  decodeDigestAt(bytes, rows[base + row.EVENT_ID]!, rowBytes, 4 * (base + row.ID_WORDS));
  const link = rows[base + row.LINK]!;
  if (link !== 0) decodeDigestAt(bytes, link, rowBytes, 4 * (base + row.LINK_WORDS));
}

/** Texts that were seen, and by which number: their row's, or that of a meter. */
class SeenTexts {
  /** The number + 1, or 0. */
  readonly #numbers = new Int32Array(REMEMBERED);
  readonly #starts = new Int32Array(REMEMBERED);
  readonly #ends = new Int32Array(REMEMBERED);

  clear(): void {
    this.#numbers.fill(0);
  }

  /** The number of the same text where that is remembered, else `number`. */
  see(bytes: Uint8Array, start: number, end: number, number: number): number {
    const slot = slotOf(bytes, start, end);
    const seen = this.#numbers[slot]!;
    const seenStart = this.#starts[slot]!;
    const length = end - start;
    const isSame =
      this.#ends[slot]! - seenStart === length && hasSameBytes(bytes, start, bytes, seenStart, length);
    if (seen !== 0 && isSame) return seen - 1;
    this.#numbers[slot] = number + 1;
    this.#starts[slot] = start;
    this.#ends[slot] = end;
    return number;
  }
}
