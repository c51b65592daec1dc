/**
 * Verifies signatures of events in batches. Ed25519 signatures by recurring keys take about a seventh of the platform's time: a table of
 * multiples of A makes [S]B − [k]A a sum without doublings, computed for four signatures at once, with one inversion for a whole batch.
 * It is the cofactorless equation of SPEC §5 behind the same pre-checks, so the verdict is the same.
 *
 * As a guard, the backend verifies again each signature that is refused, the first that a new table accepts, and a random sample of all
 * others. A difference is an internal error, never a verdict. The backend alone verifies other algorithms, rare keys, and everything on
 * hosts without WebAssembly.
 *
 * Nothing here runs in constant time: signatures, keys and events are public.
 */

import type { VerificationKey } from '../../format/signature/backend.js';
import { checkEd25519Signature } from '../../format/signature/ed25519.js';
import { eventMessage } from '../../format/signature/event-signature.js';
import {
  CAPACITY,
  Ed25519Tables,
  LARGE,
  LARGEST,
  MAX_BYTES,
  MEDIUM,
  SMALL,
  type Table,
  type Windows,
} from './ed25519-tables.js';

export interface BatchVerifierOptions {
  /** The maximum memory of all tables, in bytes. Default: 64 MiB. Below 2 MiB there are none. */
  readonly tableBytes?: number | undefined;
  /** About one in so many accepted signatures is verified again. Default: 1,024; 1 is each. */
  readonly sample?: number | undefined;
  /** Uses of a key before it gets a table. Default: 2, when the table pays; 0 is at once. */
  readonly uses?: number | undefined;
  /** How many signatures are to come, as far as is known: few keys get their share's table at once. Default: 0. */
  readonly expected?: number | undefined;
}

const DEFAULT_TABLE_BYTES = 64 * 1024 * 1024;
const DEFAULT_SAMPLE = 1_024;
const DEFAULT_USES = 2;
/** Compiling the WebAssembly pays after so many times the uses after which a table pays. */
const TABLES_AFTER = 32;

/** What is to come is shared out among the keys of one batch, if they are no more than these: a guess costs each a table. */
const MAX_EXPECTED_KEYS = 4;

/** No verdict yet. */
const OPEN = 2;

/** A pending signature. Objects are used again. */
interface Pending {
  key: VerificationKey;
  /** An event's, or the message itself. */
  bytes: Uint8Array;
  isEvent: boolean;
  signature: Uint8Array;
}

/** The maximum of pending signatures. */
export const MAX_WAITING = CAPACITY;
const NO_BYTES = new Uint8Array();

/**
 * Verifies signatures of events in batches.
 *
 * @example
 * const verifier = new BatchVerifier();
 * for (const { key, eventBytes, signature } of signatures) verifier.add(key, eventBytes, signature);
 * verifier.flush(); // 1 for each that is valid, 0 for the others
 */
export class BatchVerifier {
  readonly #tableBytes: number;
  readonly #sample: number;
  readonly #minUses: number;
  #expected: number;
  /** Used again for each batch. */
  readonly #pending: Pending[] = [];
  #waiting = 0;
  /** Emptied by each flush, which returns a copy. */
  #verdicts = new Uint8Array(CAPACITY);
  #decided = 0;
  #seen = 0;
  #byTables = 0;
  /** Undefined until they pay; `null` where they are not available. */
  #tables: Ed25519Tables | undefined | null = undefined;
  #failure: Error | undefined = undefined;

  /** @throws RangeError when `tableBytes` is not from 0 to 2^31, `sample` less than 1, or `uses` less than 0 */
  constructor(options: BatchVerifierOptions = {}) {
    const { tableBytes = DEFAULT_TABLE_BYTES, sample = DEFAULT_SAMPLE, uses = DEFAULT_USES } = options;
    this.#expected = options.expected ?? 0;
    if (!(tableBytes >= 0 && tableBytes <= 2 ** 31))
      throw new RangeError('expected tableBytes from 0 to 2^31');
    if (!(sample >= 1)) throw new RangeError('expected a sample of at least 1');
    if (!(uses >= 0)) throw new RangeError('expected uses of at least 0');
    this.#tableBytes = tableBytes;
    this.#minUses = uses;
    this.#sample = sample;
  }

  /**
   * Adds a signature. @returns The index of its verdict in the next {@link flush}.
   *
   * @param eventBytes - The event's canonical bytes, ids included. Neither they nor `signature` may change until the flush.
   * @throws Error as {@link flush} does
   */
  add(key: VerificationKey, eventBytes: Uint8Array, signature: Uint8Array): number {
    return this.#add(key, eventBytes, true, signature);
  }

  /** The same for a signature of a message that is no event. */
  addMessage(key: VerificationKey, message: Uint8Array, signature: Uint8Array): number {
    return this.#add(key, message, false, signature);
  }

  get decidedByTables(): number {
    return this.#byTables;
  }

  #add(key: VerificationKey, bytes: Uint8Array, isEvent: boolean, signature: Uint8Array): number {
    const place = this.#decided + this.#waiting;
    const pending = (this.#pending[this.#waiting] ??= { key, bytes, isEvent, signature });
    pending.key = key;
    pending.bytes = bytes;
    pending.isEvent = isEvent;
    pending.signature = signature;
    this.#waiting += 1;
    if (this.#waiting === MAX_WAITING) this.#decide();
    return place;
  }

  /**
   * The verdicts of all signatures since the last flush, in order: 1 valid, 0 invalid.
   *
   * @throws Error when two ways of computing a verdict differ, and at each later call
   */
  flush(): Uint8Array {
    this.#decide();
    const verdicts = this.#verdicts.slice(0, this.#decided);
    this.#decided = 0;
    return verdicts;
  }

  #decide(): void {
    if (this.#failure !== undefined) throw this.#failure;
    const pending = this.#pending;
    const count = this.#waiting;
    const first = this.#decided;
    this.#waiting = 0;
    this.#decided += count;
    if (this.#decided > this.#verdicts.length) {
      const more = new Uint8Array(2 * this.#decided);
      more.set(this.#verdicts);
      this.#verdicts = more;
    }
    const verdicts = this.#verdicts.subarray(first, this.#decided).fill(OPEN);
    try {
      this.#decideByTables(pending, count, verdicts);
      for (let place = 0; place < count; place += 1) {
        const each = pending[place] as Pending;
        if (verdicts[place] === OPEN) verdicts[place] = Number(verifyAlone(each));
        // The caller's bytes are not kept alive.
        each.bytes = NO_BYTES;
        each.signature = NO_BYTES;
      }
    } catch (error) {
      this.#failure = error as Error;
      this.#tables?.fail();
      throw error;
    }
  }

  #decideByTables(pending: readonly Pending[], count: number, verdicts: Uint8Array): void {
    const groups = this.#groupByKey(pending, count, verdicts);
    const tables = this.#findTables();
    if (tables === null) return;
    const uses = Array.from(groups, ([key, places]) => ({ key: tables.keyOf(key.publicKey.bytes), places }));
    if (uses.length === 0) return;
    const all = uses.reduce((sum, { places }) => sum + places.length, 0);
    const expected = uses.length > MAX_EXPECTED_KEYS ? 0 : this.#expected / all;
    this.#expected = 0;
    for (const { key, places } of uses) tables.use(key, places.length, expected * places.length);
    // Ordered by key, for the CPU's caches. Tables of different windows are not mixed.
    for (const windows of [LARGEST, LARGE, MEDIUM, SMALL]) {
      const chosen = uses.flatMap(({ key: { table }, places }) =>
        table?.windows === windows ? [{ table, places }] : [],
      );
      if (chosen.length > 0) this.#sumUp(tables, windows, chosen, pending, verdicts);
    }
  }

  #findTables(): Ed25519Tables | null {
    if (this.#tables?.hasFailed === true) this.#tables = null;
    if (this.#tables !== undefined) return this.#tables;
    const shared = Ed25519Tables.tryShare(this.#tableBytes, this.#minUses);
    if (shared !== undefined) return (this.#tables = shared);
    if (this.#seen < TABLES_AFTER * this.#minUses) return null;
    return (this.#tables = Ed25519Tables.tryCreate(this.#tableBytes, this.#minUses) ?? null);
  }

  /** The indexes of the signatures that tables may serve. Refuses those that fail the pre-checks. */
  #groupByKey(
    pending: readonly Pending[],
    count: number,
    verdicts: Uint8Array,
  ): Map<VerificationKey, number[]> {
    const groups = new Map<VerificationKey, number[]>();
    for (let place = 0; place < count; place++) {
      const { key, bytes, signature } = pending[place] as Pending;
      if (key.publicKey.alg !== 'ed25519') continue;
      if (!key.usable || checkEd25519Signature(signature) !== 'ok') {
        verdicts[place] = 0;
        continue;
      }
      if (bytes.length > MAX_BYTES) continue;
      const places = groups.get(key);
      if (places === undefined) groups.set(key, [place]);
      else places.push(place);
      this.#seen += 1;
    }
    return groups;
  }

  #sumUp(
    tables: Ed25519Tables,
    windows: Windows,
    groups: readonly { readonly table: Table; readonly places: readonly number[] }[],
    pending: readonly Pending[],
    verdicts: Uint8Array,
  ): void {
    let count = 0;
    for (const { table, places } of groups) {
      for (const place of places) {
        const { signature, bytes, isEvent } = pending[place] as Pending;
        tables.load(count++, table, signature, bytes, isEvent);
      }
    }
    const accepted = tables.verify(count, windows);
    this.#byTables += count;
    let index = 0;
    for (const { table, places } of groups) {
      for (const place of places) {
        const verdict = accepted[index++] === 1;
        if (!verdict || table.isNew || Math.random() * this.#sample < 1) {
          const each = pending[place] as Pending;
          if (verifyAlone(each) !== verdict)
            throw new Error(`two computations of a signature by ${each.key.publicKey.keyid} differ`);
          table.isNew = false;
        }
        verdicts[place] = Number(verdict);
      }
    }
  }
}

function verifyAlone({ key, bytes, isEvent, signature }: Pending): boolean {
  return key.verify(isEvent ? eventMessage(bytes) : bytes, signature);
}
