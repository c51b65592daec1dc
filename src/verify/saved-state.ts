/**
 * A verification's state as bytes: it can be saved after any line and taken up again, in another process, with the rest of the
 * ledger. What is saved is the verifier's own and is believed: read only states that you saved yourself.
 */

import { deserialize, serialize } from 'node:v8';
import { NorthrootError } from '../error.js';
import type { Finding } from '../finding/finding.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import type { Verifier } from '../signature/verifier.js';
import { EventIndex, type EventIndexData } from './event-index.js';
import { startVerification, type VerifyState } from './state.js';

const FORMAT = 'northroot-state-1';

interface Saved extends Omit<VerifyState, 'policy' | 'keyring' | 'events'> {
  readonly format: typeof FORMAT;
  readonly policy: TrustPolicy | undefined;
  readonly keys: Parameters<VerifyState['keyring']['add']>[0][];
  readonly events: EventIndexData;
  readonly kept: readonly Finding[];
}

/** A verification that can be gone on with. */
export interface SavedVerification {
  readonly state: VerifyState;
  /** The findings so far that do not depend on where the ledger ends. */
  readonly findings: readonly Finding[];
}

/** A verification as bytes: the state after any line, and the findings up to it. */
export function saveVerification({ state, findings }: SavedVerification): Uint8Array {
  const { keyring, events, ...plain } = state;
  const saved: Saved = {
    ...plain,
    format: FORMAT,
    keys: keyring.list(),
    events: events.save(),
    kept: findings,
  };
  return new Uint8Array(serialize(saved));
}

/**
 * The verification that {@link saveVerification} saved.
 *
 * @throws NorthrootError `STATE_INVALID` when the bytes are no such state.
 */
export function restoreVerification(bytes: Uint8Array, verifier: Verifier = nodeVerifier): SavedVerification {
  let saved: Saved;
  try {
    saved = deserialize(bytes) as Saved;
  } catch (cause) {
    throw invalid(cause);
  }
  if (saved?.format !== FORMAT) throw invalid(undefined);
  const { keys, events, kept, ...plain } = saved;
  const { keyring } = startVerification(undefined, verifier);
  for (const key of keys) keyring.add(key);
  return { state: { ...plain, keyring, events: new EventIndex(events) }, findings: kept };
}

function invalid(cause: unknown): NorthrootError {
  return new NorthrootError('STATE_INVALID', 'the saved state cannot be read', {
    cause,
    hint: 'verify from the beginning',
  });
}
