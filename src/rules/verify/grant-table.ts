/** The grants of a ledger by id, by number, and by principal. */

import type { Grant } from '../bounds/grant.js';

export interface GrantTable {
  readonly size: number;
  /** @param id - base64url */
  get(id: string): Grant | undefined;
  /** By number, counted from 0. */
  at(index: number): Grant | undefined;
  /** Adds the next one. Its `index` MUST be `size`. */
  add(id: string, grant: Grant): void;
  /** MUST be called after a change of a grant in place. */
  touch(grant: Grant): void;
  /** The allowed grants of a principal, in ledger order. */
  allowedTo(principalId: string): Iterable<Grant>;
  /** All, in ledger order. */
  values(): Iterable<Grant>;
}

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
    // Grants in memory are changed in place.
  }

  *allowedTo(principalId: string): Generator<Grant, void, void> {
    for (const grant of this.#list)
      if (grant.decision === 'allow' && grant.principalId === principalId) yield grant;
  }

  values(): readonly Grant[] {
    return this.#list;
  }
}
