/** What each grant's accounts held after each record that changed them: for burn-downs, and for what was left before and after. */

import type { Rational } from '../../../base/value/rational.js';
import type { Grant } from '../../../rules/bounds/grant.js';

/** The most amounts that are kept; later ones are known only at the end. */
const MAX_HISTORY = 2_000_000;

export interface Held {
  readonly used: Rational;
  readonly reserved: Rational;
}

interface Step {
  readonly ordinal: number;
  readonly held: readonly Held[];
}

export interface GrantHistory {
  readonly grant: Grant;
  readonly ordinal: number;
  readonly units: readonly string[];
  readonly caps: readonly Rational[];
  readonly steps: readonly Step[];
}

export class AccountHistory {
  readonly #grants = new Map<string, GrantHistory & { readonly steps: Step[] }>();
  #kept = 0;
  /** The first record after the history ended. */
  endsAt: number | undefined;

  /** Begins the history of a grant, which has just been added. */
  open(id: string, grant: Grant, ordinal: number): void {
    if (this.#grants.has(id)) return;
    const units = [...grant.accounts.keys()];
    const caps = [...grant.accounts.values()].map(({ cap }) => cap);
    this.#grants.set(id, { grant, ordinal, units, caps, steps: [] });
    this.note(id, ordinal);
  }

  /** MUST be called after each record under a grant. */
  note(id: string, ordinal: number): void {
    const history = this.#grants.get(id);
    if (history === undefined) return;
    const last = history.steps.at(-1)?.held;
    const held: Held[] = [];
    let isChanged = last === undefined;
    for (const { used, reserved } of history.grant.accounts.values()) {
      const before = last?.[held.length];
      isChanged ||= before?.used !== used || before.reserved !== reserved;
      held.push({ used, reserved });
    }
    if (!isChanged) return;
    this.#kept += held.length;
    if (this.#kept > MAX_HISTORY) {
      this.endsAt ??= ordinal;
      return;
    }
    history.steps.push({ ordinal, held });
  }

  get(id: string): GrantHistory | undefined {
    return this.#grants.get(id);
  }

  /** What a grant held just before and just after a place; undefined where that is not kept. */
  around(
    id: string,
    ordinal: number,
  ): { readonly before: readonly Held[]; readonly after: readonly Held[] } | undefined {
    const history = this.#grants.get(id);
    if (history === undefined || (this.endsAt !== undefined && ordinal >= this.endsAt)) return undefined;
    const { steps } = history;
    let low = 0;
    let high = steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((steps[middle] as Step).ordinal <= ordinal) low = middle + 1;
      else high = middle;
    }
    const after = steps[low - 1];
    if (after === undefined) return undefined;
    const before = after.ordinal === ordinal ? (steps[low - 2] ?? after) : after;
    return { before: before.held, after: after.held };
  }
}
