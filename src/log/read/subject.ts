/** Whose an event is, for sums and selections: an adjustment belongs to the execution that it corrects, whoever signed it. */

import { fromDigestText } from '../../base/value/digest.js';
import { grantsOf, type SelectableEvent } from '../../rules/selection.js';
import { IdIndex } from '../../rules/verify/id-index.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { isFirstOfItsId } from './counted.js';

/** Distinct combinations of principal, tool, model and provider; later ones are unknown. */
export const MAX_PARTIES = 100_000;

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
