/** Watches that nothing which was acknowledged is lost: what this writer acknowledged itself, its position file, and a witness. */

import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import type { StoredEnd } from '../store/ledger-store.js';
import { FileWitness } from './file-witness.js';
import { BEFORE_FIRST, type Head, isSameEnd } from './head.js';
import { stands } from './lines.js';
import type { Session } from './session.js';
import type { PositionWitness } from './witness.js';

export interface VigilOptions {
  readonly positionFile?: string;
  readonly witness?: PositionWitness;
}

export class Vigil {
  readonly #name: string;
  readonly #witnesses: readonly PositionWitness[];
  readonly #shared: PositionWitness | undefined;
  readonly #own: PositionWitness | undefined;
  #acknowledged: StoredEnd | undefined;

  constructor(name: string, own: PositionWitness | undefined, witness: PositionWitness | undefined) {
    this.#name = name;
    this.#own = own;
    this.#shared = witness;
    this.#witnesses = [witness, own].filter((each) => each !== undefined);
  }

  /** What this writer acknowledged last. */
  get acknowledged(): StoredEnd | undefined {
    return this.#acknowledged;
  }

  /**
   * Asks whether all that was acknowledged stands.
   * @throws NorthrootError `LEDGER_ROLLED_BACK`, `POSITION_WITNESS_MISSING`; as the witness does
   */
  async assertStands(session: Session, head: Head): Promise<void> {
    const known = await Promise.all(this.#witnesses.map((witness) => this.#known(witness, head)));
    for (const end of [this.#acknowledged, ...known])
      if (end !== undefined && !(await stands(session, head, end))) throw rolledBack(this.#name, end.size);
  }

  /**
   * Tells the witnesses of an end before it is acknowledged. One that knows of a further end must know one that stands.
   * @param base - An end that stands for certain, upon which this one was made
   * @param has - Whether the ledger has a position now
   * @throws NorthrootError `LEDGER_ROLLED_BACK`, `POSITION_WITNESS_MISSING`; as the witness does
   */
  async acknowledge(
    { size, tip }: StoredEnd,
    base: StoredEnd,
    has: (end: StoredEnd) => Promise<boolean>,
  ): Promise<void> {
    const end = { size, tip };
    for (const witness of this.#witnesses) {
      for (let isDone = false; !isDone;) {
        const known = await witness.read();
        if (known !== undefined && known.size >= size) {
          if (!(isSameEnd(known, end) || (known.size > size && (await has(known)) && (await has(end)))))
            throw rolledBack(this.#name, known.size);
          break;
        }
        if (known === undefined) this.#assertBegins(witness, base);
        const isSound = known === undefined || isSameEnd(known, base) || (await has(known));
        if (!isSound) throw rolledBack(this.#name, known.size);
        isDone = await witness.advance(known, end);
      }
    }
    this.#acknowledged = end;
  }

  async close(): Promise<void> {
    await this.#own?.close?.();
  }

  async #known(witness: PositionWitness, head: Head): Promise<StoredEnd | undefined> {
    const known = await witness.read();
    if (known !== undefined) return known;
    this.#assertBegins(witness, head);
    // Where it cannot be kept, nothing is to be recorded first.
    await witness.advance(undefined, BEFORE_FIRST);
    return undefined;
  }

  /** A writer may begin to keep its own position at any time; the one of all writers begins with the ledger. */
  #assertBegins(witness: PositionWitness, end: StoredEnd): void {
    if (witness !== this.#shared || end.size === 0) return;
    throw new NorthrootError(
      'POSITION_WITNESS_MISSING',
      `${this.#name} has ${end.size} records, and its witness of positions has none: it is missing, or not the one that was told of them`,
      defined({ hint: witness.hintToBegin?.({ size: end.size, tip: end.tip }) }),
    );
  }
}

export function vigilOf(name: string, { positionFile, witness }: VigilOptions): Vigil {
  return new Vigil(name, positionFile === undefined ? undefined : new FileWitness(positionFile), witness);
}

export function rolledBack(name: string, size: number): NorthrootError {
  return new NorthrootError(
    'LEDGER_ROLLED_BACK',
    `${name} does not have the ${size} records that were acknowledged any more`,
    {
      hint: 'stop all writers, and restore the ledger from a server or a copy that has them; where it was put back on purpose, remove the position that says so; one that is of another ledger is to be kept elsewhere',
    },
  );
}
