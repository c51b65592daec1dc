/** The first record of a ledger (SPEC §3.3): origin, signing rules and first keys. */

import { randomBytes } from 'node:crypto';
import { buildGenesis } from '../../format/event/build.js';
import { formatPublicKey, type PublicKey } from '../../format/key/public-key.js';
import type { GenesisEvent, Key, Predecessor } from '../../format/schema/generated/types.js';

export interface GenesisOptions {
  /** A unique URL without a scheme, such as `example.com/agents/prod`. Default: `localhost/` and a random name. */
  readonly origin?: string;
  /** Whether every record must be signed. Default: `required` if there are keys. */
  readonly signatures?: 'required' | 'optional';
  /** Whether the ledger promises checkpoints. Default `optional`. */
  readonly checkpoints?: 'required' | 'optional';
  /** Whether every event must name this ledger. Default `required`. */
  readonly binding?: 'required' | 'optional';
  /** Default: the signer's key, with every role but witness, for every principal. */
  readonly keys?: readonly Key[];
  /** The predecessor, from `describePredecessor`. */
  readonly continues?: Predecessor;
  /** Default `service:ledger`. */
  readonly principalId?: string;
}

export function makeOrigin(): string {
  return `localhost/ledger-${randomBytes(8).toString('hex')}`;
}

/** The entry for a ledger's own key: it signs everything, but MUST NOT witness itself. */
export function ownKeyEntry(publicKey: PublicKey): Key {
  return {
    keyid: publicKey.keyid,
    principals: ['*'],
    public_key: formatPublicKey(publicKey),
    roles: ['event', 'authority', 'checkpoint', 'admin'],
  };
}

/** @throws EventError for an option not of the form of SPEC §3.3 */
export function makeGenesis(
  options: GenesisOptions,
  signerKey: PublicKey | undefined,
  occurredAt: string,
): GenesisEvent {
  const keys = options.keys ?? (signerKey === undefined ? [] : [ownKeyEntry(signerKey)]);
  return buildGenesis({
    origin: options.origin ?? makeOrigin(),
    ledger_version: '1',
    signing: {
      events: options.signatures ?? (keys.length > 0 ? 'required' : 'optional'),
      checkpoints: options.checkpoints ?? 'optional',
      binding: options.binding ?? 'required',
    },
    keys: keys as GenesisEvent['keys'],
    ...(options.continues === undefined ? {} : { continues: options.continues }),
    principal_id: options.principalId ?? 'service:ledger',
    occurred_at: occurredAt,
  });
}
