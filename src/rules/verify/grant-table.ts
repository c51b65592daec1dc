/** Every grant of a ledger, by its id, by its number, and by whose it is. */

import type { Grant } from '../bounds/grant.js';

/** See the head of this file. */
export interface GrantTable {
  readonly size: number;
  /** @param id - base64url */
  get(id: string): Grant | undefined;
  /** The grant of a number: how many came before it. */
  at(index: number): Grant | undefined;
  /** Adds the next one, whose `index` is `size`. */
  add(id: string, grant: Grant): void;
  /** To be called with each grant whose accounts, limits or standing were changed. */
  touch(grant: Grant): void;
  /** Those that allow a principal something, in ledger order. */
  allowedTo(principalId: string): Iterable<Grant>;
  /** All, in ledger order. */
  values(): Iterable<Grant>;
}

/** Grants in memory. */
export class Grants implements GrantTable {
  readonly #byId = new Map<string, Grant>();
  readonly #list: Grant[] = [];

  get size(): number {
    return this.#list.length;
  }

  get(id: string): Grant | undefined {
    return this.#byId.get(id);
  }

  at(index: number): Grant | undefined {
    return this.#list[index];
  }

  add(id: string, grant: Grant): void {
    this.#byId.set(id, grant);
    this.#list.push(grant);
  }

  touch(): void {
    // They are what they are.
  }

  *allowedTo(principalId: string): Generator<Grant, void, void> {
    for (const grant of this.#list)
      if (grant.decision === 'allow' && grant.principalId === principalId) yield grant;
  }

  values(): readonly Grant[] {
    return this.#list;
  }
}
