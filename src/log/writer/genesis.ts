/** The first record of a new ledger (SPEC §3.3): its origin, what must be signed, and its first keys. */

import { randomBytes } from 'node:crypto';
import { buildGenesis } from '../../format/event/build.js';
import { formatPublicKey, type PublicKey } from '../../format/key/public-key.js';
import type { GenesisEvent, Key, Predecessor } from '../../format/schema/generated/types.js';

/** What a new ledger declares. Everything has a default. */
export interface GenesisOptions {
  /** The log's unique name: a URL without a scheme, such as `example.com/agents/prod`. Default: `localhost/` and a random name. */
  readonly origin?: string;
  /** Whether every record must be signed. Default `required` when there are keys. */
  readonly signatures?: 'required' | 'optional';
  /** Whether the ledger promises checkpoints. Default `optional`. */
  readonly checkpoints?: 'required' | 'optional';
  /** Whether every event must say that it is for this ledger. Default `required`. */
  readonly binding?: 'required' | 'optional';
  /** The keys declared. Default: the signer's, with every role but witness, for every principal. */
  readonly keys?: readonly Key[];
  /** The ledger that this one goes on from, as `describePredecessor` says it. */
  readonly continues?: Predecessor;
  /** Who makes the ledger. Default `service:ledger`. */
  readonly principalId?: string;
}

/** An origin that nobody else has. */
export function makeOrigin(): string {
  return `localhost/ledger-${randomBytes(8).toString('hex')}`;
}

/** The key entry for a ledger's own key: it may sign everything for everybody, but not bear witness to itself. */
export function ownKeyEntry(publicKey: PublicKey): Key {
  return {
    keyid: publicKey.keyid,
    principals: ['*'],
    public_key: formatPublicKey(publicKey),
    roles: ['event', 'authority', 'checkpoint', 'admin'],
  };
}

/**
 * The genesis event of a new ledger.
 *
 * @throws EventError when an option has not the form that SPEC §3.3 gives it.
 */
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
