/** The hygiene report (SPEC §1): what ingesting outside JSON found. It has the shape of an event's `hygiene` member. */

import { CANONICAL_PROFILE_ID } from './profile.js';

/** From best to worst; a report has the worst status it met. */
const STATUSES = ['Ok', 'Lossy', 'Ambiguous', 'Invalid'] as const;

/**
 * `Ok`: exactly the text's value. `Lossy`: the value was changed as the warnings say. `Ambiguous`: the text has more than one
 * reading. `Invalid`: it has none that can be hashed.
 */
export type HygieneStatus = (typeof STATUSES)[number];

export interface HygieneReport {
  readonly status: HygieneStatus;
  /** Codes, sorted, each once. */
  readonly warnings: string[];
  /** Occurrences of each of `warnings`. */
  readonly metrics: Record<string, number>;
  readonly profile_id: typeof CANONICAL_PROFILE_ID;
}

export class HygieneCounter {
  readonly #counts = new Map<string, number>();
  #worst = 0;

  /** Counts an occurrence of `code`; the status becomes at least as bad as `status`. Returns the code's count. */
  add(code: string, status: HygieneStatus): number {
    const count = (this.#counts.get(code) ?? 0) + 1;
    this.#counts.set(code, count);
    this.#worst = Math.max(this.#worst, STATUSES.indexOf(status));
    return count;
  }

  report(): HygieneReport {
    const warnings = [...this.#counts.keys()].sort();
    return {
      status: STATUSES[this.#worst]!,
      warnings,
      metrics: Object.fromEntries(warnings.map((code) => [code, this.#counts.get(code)!])),
      profile_id: CANONICAL_PROFILE_ID,
    };
  }
}
