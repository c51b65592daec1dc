/** Whose an event is, for sums and selections: an adjustment belongs to the execution that it corrects, whoever signed it. */

import { suggest } from '../../base/bytes/did-you-mean.js';
import { fromDigestText } from '../../base/value/digest.js';
import { isPrincipalId, matchesPrincipalPattern } from '../../base/value/principal.js';
import { isToolName, matchesToolPattern } from '../../base/value/tool.js';
import { grantsOf, type RecordSelection, type SelectableEvent } from '../../rules/selection.js';
import { IdIndex } from '../../rules/verify/id-index.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { isFirstOfItsId } from './counted.js';

/** Distinct combinations of principal, tool, model and provider; later ones are unknown. */
const MAX_PARTIES = 100_000;

export interface Party {
  readonly principalId: string | undefined;
  readonly toolName?: string | undefined;
  readonly modelId?: string | undefined;
  readonly provider?: string | undefined;
}

export interface Subject extends SelectableEvent, Party {
  readonly principalId: string | undefined;
  readonly toolName: string | undefined;
}

/** Remembers executions, about 45 bytes each, for adjustments that name them. */
export class Subjects {
  readonly #ids = new IdIndex();
  #partyOf = new Uint32Array(1024);
  readonly #parties: Party[] = [];
  readonly #numbers = new Map<string, number>();

  /** MUST be called once for every record, in order, selected or not. */
  take(record: VerifiedRecord): Subject {
    const { examined, state, findings } = record;
    const { occurredAt, principalId, toolName, eventId } = examined ?? {};
    const grantIds = grantsOf(record);
    const own = { occurredAt, principalId, toolName, eventId, grantIds };
    if (examined?.wellFormed !== true) return own;
    if (examined.type === 'execution') {
      const { model_id: modelId, provider, source } = examined.event();
      const party = { principalId, toolName, modelId, provider: provider ?? source?.system };
      if (isFirstOfItsId(record)) this.#remember(examined.eventId, party);
      return { ...own, ...party };
    }
    if (examined.type !== 'adjustment') return own;
    const { execution_event_id: execution, source } = examined.event();
    const isLinked = findings.every(({ code }) => code !== 'EXECUTION_NOT_UNDER_GRANT');
    const corrected = execution === undefined || !isLinked ? undefined : this.#find(execution.b64);
    const [nearest] = grantIds;
    const grant = nearest === undefined ? undefined : state.links.grants.get(fromDigestText(nearest));
    const party = corrected ?? { principalId: grant?.principalId ?? principalId };
    return { ...own, ...party, toolName: party.toolName, provider: party.provider ?? source?.system };
  }

  #remember(id: string, party: Party): void {
    const { principalId, toolName, modelId, provider } = party;
    const key = JSON.stringify([principalId, toolName, modelId, provider]);
    let number = this.#numbers.get(key);
    if (number === undefined) {
      if (this.#parties.length >= MAX_PARTIES) return;
      number = this.#parties.push(party) - 1;
      this.#numbers.set(key, number);
    }
    if (this.#ids.find(id) !== -1) return;
    const ordinal = this.#ids.add(id);
    if (ordinal >= this.#partyOf.length) {
      const grown = new Uint32Array(this.#partyOf.length * 2);
      grown.set(this.#partyOf);
      this.#partyOf = grown;
    }
    this.#partyOf[ordinal] = number;
  }

  #find(id: string): Party | undefined {
    const ordinal = this.#ids.find(id);
    return ordinal === -1 ? undefined : this.#parties[this.#partyOf[ordinal] as number];
  }
}

/** A pattern without a match in the whole ledger. */
export interface UnmatchedName {
  readonly of: 'principal' | 'tool';
  readonly pattern: string;
  /** Similar names of the ledger first, at most five. */
  readonly known: readonly string[];
}

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
