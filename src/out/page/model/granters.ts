/** Who granted what: by the keys that signed, in the order of their first record. */

import { printable } from '../../../base/bytes/printable.js';
import type { JsonObject } from '../../../base/json/value.js';
import { isPrincipalId } from '../../../base/value/principal.js';
import { nameOfKey } from '../../../rules/report/accounts.js';
import { readEventId } from '../../../rules/verify/grant-above.js';
import type { VerifyState } from '../../../rules/verify/state.js';
import type { VerifiedRecord } from '../../../rules/verify/verified-record.js';
import { signersOf } from '../../export/table/rows.js';
import { object } from '../../text/json.js';
import type { Granter, Kind } from './protocol.js';

const MAX_GRANTERS = 20;

interface Counts {
  readonly signers: string[];
  grants: number;
  delegated: number;
  actions: number;
  readonly principals: Set<string>;
  readonly ordinal: number;
}

export class Granters {
  readonly #bySigners = new Map<string, Counts>();

  /** Counts a grant or an action that was allowed. */
  count(record: VerifiedRecord, kind: Kind, event: JsonObject): void {
    const { examined, verdict } = record;
    if (examined?.wellFormed !== true || verdict === 'invalid' || examined.type !== 'authorization') return;
    if (examined.event().decision === 'deny') return;
    const isUnder = readEventId(object(event['authorization'])['grant_event_id']) !== undefined;
    // What is allowed under a grant counts for the signers of the grant.
    if (kind === 'grant') this.#note(isUnder ? 'delegated' : 'grants', record);
    else if (!isUnder) this.#note('actions', record);
  }

  #note(what: 'grants' | 'delegated' | 'actions', record: VerifiedRecord): void {
    const { ordinal, examined, state } = record;
    const keyids = signersOf(record);
    const key = keyids.join();
    let granter = this.#bySigners.get(key);
    if (granter === undefined) {
      if (this.#bySigners.size > MAX_GRANTERS) return;
      const signers = keyids.map((keyid) => nameKey(state, keyid));
      granter = { signers, grants: 0, delegated: 0, actions: 0, principals: new Set(), ordinal };
      this.#bySigners.set(key, granter);
    }
    granter[what] += 1;
    if (granter.principals.size < MAX_GRANTERS)
      granter.principals.add(printable(examined?.principalId ?? ''));
  }

  list(): Granter[] {
    return [...this.#bySigners.values()]
      .slice(0, MAX_GRANTERS)
      .map((granter) => ({ ...granter, principals: [...granter.principals] }));
  }
}

/** What a key is called: its name, or its owner, or the beginning of its id. */
export function nameKey(state: VerifyState, keyid: string): string {
  const short = `${keyid.slice(0, 12)}…`;
  return printable(nameOfKey(state, keyid) ?? ownerName(state, keyid, short) ?? short);
}

/** A key without a name belongs to the one principal that it signs for. */
function ownerName({ keyring }: VerifyState, keyid: string, short: string): string | undefined {
  const { principals = [] } = keyring.find(keyid)?.key ?? {};
  const [owner = ''] = principals;
  return principals.length === 1 && isPrincipalId(owner) ? `key ${short} of ${owner}` : undefined;
}
