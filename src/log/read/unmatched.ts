/** Selected names that the ledger never uses: most often typing errors. */

import { suggest } from '../../base/bytes/did-you-mean.js';
import { isPrincipalId, matchesPrincipalPattern } from '../../base/value/principal.js';
import { isToolName, matchesToolPattern } from '../../base/value/tool.js';
import type { RecordSelection, SelectableEvent } from '../../rules/selection.js';

/** A pattern without a match in the whole ledger. */
export interface UnmatchedName {
  readonly of: 'principal' | 'tool';
  readonly pattern: string;
  /** Similar names of the ledger first, at most five. */
  readonly known: readonly string[];
}

/** Names remembered of each kind. */
const MAX_NAMES = 1_000;
const MAX_KNOWN = 5;

/** Takes every record's subject, and lists patterns without a match. */
export class NamesAskedFor {
  readonly #asked: {
    readonly of: UnmatchedName['of'];
    readonly pattern: string;
    readonly names: Set<string>;
    isMet: boolean;
  }[];

  constructor({ principal, tool }: RecordSelection) {
    const asked = [
      ['principal', principal],
      ['tool', tool],
    ] as const;
    this.#asked = asked.flatMap(([of, pattern]) =>
      pattern === undefined ? [] : [{ of, pattern, names: new Set<string>(), isMet: false }],
    );
  }

  take({ principalId, toolName }: Pick<SelectableEvent, 'principalId' | 'toolName'>): void {
    for (const asked of this.#asked) {
      if (asked.isMet) continue;
      const { of, pattern, names } = asked;
      const name = of === 'principal' ? principalId : toolName;
      if (name === undefined) continue;
      const [matches, isName] =
        of === 'principal' ? [matchesPrincipalPattern, isPrincipalId] : [matchesToolPattern, isToolName];
      asked.isMet = matches(pattern, name);
      if (names.size < MAX_NAMES && isName(name)) names.add(name);
    }
  }

  list(): UnmatchedName[] {
    return this.#asked.flatMap(({ of, pattern, names, isMet }) => {
      if (isMet) return [];
      const all = [...names].sort();
      const near = suggest(pattern, all);
      const known = [...near, ...all.filter((name) => !near.includes(name))].slice(0, MAX_KNOWN);
      return [{ of, pattern, known }];
    });
  }
}
