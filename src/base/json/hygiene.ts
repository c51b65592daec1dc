/** The hygiene report (SPEC §1): what canonicalising a text from outside came upon. Its shape is that of an event's `hygiene` member. */

import { CANONICAL_PROFILE_ID } from './profile.js';

/** From best to worst; the worst of what was met is a report's status. */
const STATUSES = ['Ok', 'Lossy', 'Ambiguous', 'Invalid'] as const;

/**
 * `Ok`: the value is exactly that of the text. `Lossy`: the value was changed in a way that the warnings name.
 * `Ambiguous`: the text can be read as more than one value. `Invalid`: as none that can be hashed.
 */
export type HygieneStatus = (typeof STATUSES)[number];

/** A hygiene report, in the form that it has on the wire. */
export interface HygieneReport {
  readonly status: HygieneStatus;
  /** Codes, sorted, each once. */
  readonly warnings: string[];
  /** How often each of `warnings` was met. */
  readonly metrics: Record<string, number>;
  readonly profile_id: typeof CANONICAL_PROFILE_ID;
}

/** Counts codes and makes a report of them. */
export class HygieneCounter {
  readonly #counts = new Map<string, number>();
  #worst = 0;

  /** Counts one occurrence of `code`, which makes the status at least as bad as `status`; returns its count. */
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
