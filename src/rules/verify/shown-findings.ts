/** The findings of a verification that are listed and reported as they are found. */

import {
  type Finding,
  type FindingContext,
  type FindingRank,
  rankOf,
  RANKS,
  withoutFolded,
} from '../../format/finding/finding.js';
import type { FoldedFinding } from './line-result.js';
import type { VerifyOptions } from './verify-options.js';

/** Findings by rank, a limited number of each: enough to list the worst, or the first. */
export class FindingList {
  readonly #byRank = new Map<FindingRank, Finding[]>(RANKS.map((rank) => [rank, []]));
  readonly #inOrder: Finding[] = [];
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(findings: readonly Finding[]): void {
    for (const finding of findings) {
      const list = this.#byRank.get(rankOf(finding)) as Finding[];
      if (list.length >= this.#limit) continue;
      list.push(finding);
      this.#inOrder.push(finding);
    }
  }

  /** In the order in which they were added. */
  inOrder(): Finding[] {
    return this.#inOrder;
  }

  /** The worst, worst first. */
  worst(): Finding[] {
    return RANKS.flatMap((rank) => this.#byRank.get(rank) as Finding[]).slice(0, this.#limit);
  }
}

/** The findings that `show` selects and `acknowledge` leaves. */
export class ShownFindings {
  readonly #list: FindingList;
  readonly #show: VerifyOptions['show'];
  readonly #acknowledge: (finding: Finding) => boolean;
  readonly #onFinding: VerifyOptions['onFinding'];
  /** The first shown finding of each fold, by the finding not shown that it folded under: bounded by the causes remembered. */
  readonly #standIns = new Map<Finding, Finding>();
  /** Folded findings whose root is not known yet, by its context: at most one for each. */
  readonly #waiting = new Map<FindingContext, Finding>();

  constructor(limit: number, { show, acknowledge = () => false, onFinding }: VerifyOptions) {
    this.#list = new FindingList(limit);
    this.#show = show;
    this.#acknowledge = acknowledge;
    this.#onFinding = onFinding;
  }

  /** Adds the findings of a saved state: `roots` are reported as in one pass, before anything folds under them. */
  addSaved(findings: readonly Finding[], roots: ReadonlySet<Finding>): void {
    for (const finding of this.#add(findings))
      this.#onFinding?.(roots.has(finding) ? withoutFolded(finding) : finding);
  }

  /** Adds findings, and those that waited for one of them. */
  add(findings: readonly Finding[]): void {
    this.#report(findings);
    if (this.#waiting.size === 0) return;
    for (const { context, code, related } of findings) {
      const finding = this.#waiting.get(context);
      if (finding === undefined) continue;
      this.#waiting.delete(context);
      this.#report([{ ...finding, code, ...(related === undefined ? {} : { related }) }]);
    }
  }

  /** Adds a folded finding that is shown where its root is not. */
  addFolded({ finding, root, waits = false }: FoldedFinding): void {
    const show = this.#show;
    if (show === undefined || show(root) || !show(finding)) return;
    const first = waits ? this.#waiting.get(root.context) : this.#standIns.get(root);
    if (first !== undefined) {
      first.folded = (first.folded ?? 0) + 1;
    } else if (waits) {
      this.#waiting.set(root.context, finding);
    } else {
      this.#standIns.set(root, finding);
      this.#report([finding]);
    }
  }

  /** The worst, worst first. */
  worst(): Finding[] {
    return this.#list.worst();
  }

  #report(findings: readonly Finding[]): void {
    for (const finding of this.#add(findings)) this.#onFinding?.(finding);
  }

  #add(findings: readonly Finding[]): Finding[] {
    const show = this.#show;
    const chosen = findings.filter(
      (finding) => !this.#acknowledge(finding) && (show === undefined || show(finding)),
    );
    this.#list.add(chosen);
    return chosen;
  }
}
