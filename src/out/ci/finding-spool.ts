/** Findings that do not fit in memory: spilled as they are found, and read again in either order. */

import { type Finding, rankOf, RANKS } from '../../format/finding/finding.js';
import type { FindingJson } from '../../format/schema/generated/types.js';
import { toFindingJson } from '../../rules/report/report.js';
import type { VerificationResult } from '../../rules/verify/run-verification.js';

/** Where lines are spilled to, such as a `Spool`. */
interface LineStore {
  /** Appends a line, which MUST NOT have a newline. */
  add(line: string): void;
  /** All lines in order. May be read more than once. */
  lines(): AsyncIterable<string>;
}

/** Keeps at most so many findings of each rank, in memory that does not grow with them. */
export class FindingSpool {
  readonly #store: LineStore;
  readonly #limit: number;
  readonly #counts = [0, 0, 0, 0];

  /** @param limit - At most so many findings are given again. */
  constructor(store: LineStore, limit: number) {
    this.#store = store;
    this.#limit = limit;
  }

  /** Adds a finding (`onFinding` of `runVerification`). */
  readonly add = (finding: Finding): void => {
    const rank = RANKS.indexOf(rankOf(finding));
    const before = this.#counts[rank] as number;
    if (before >= this.#limit) return;
    this.#counts[rank] = before + 1;
    // The rank is the first character of the line.
    this.#store.add(`${rank}${JSON.stringify(toFindingJson(finding))}`);
  };

  /** In the order in which they were found. */
  async *inOrder(): AsyncGenerator<FindingJson, void, void> {
    let given = 0;
    for await (const line of this.#store.lines()) {
      if (given >= this.#limit) return;
      given += 1;
      yield JSON.parse(line.slice(1)) as FindingJson;
    }
  }

  /**
   * Worst first, with how many folded under each.
   *
   * @param result - What the verification ended with: only then is it known what folded.
   */
  async *worstFirst({ state }: VerificationResult): AsyncGenerator<FindingJson, void, void> {
    const folded = new Map<string, number>();
    for (const root of state.foldRoots.values())
      if (root.folded !== undefined) folded.set(keyOf(toFindingJson(root)), root.folded);
    let given = 0;
    for (const [rank, count] of this.#counts.entries()) {
      if (count === 0 || given >= this.#limit) continue;
      for await (const line of this.#store.lines()) {
        if (!line.startsWith(String(rank))) continue;
        if (given >= this.#limit) return;
        given += 1;
        const finding = JSON.parse(line.slice(1)) as FindingJson;
        const more = folded.size === 0 ? undefined : folded.get(keyOf(finding));
        yield more === undefined ? finding : { ...finding, folded: more };
      }
    }
  }
}

function keyOf({ code, severity, at }: FindingJson): string {
  return JSON.stringify([code, severity, at.file, at.byte_offset, at.pointer]);
}
