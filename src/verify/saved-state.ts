/**
 * A verification's state as bytes: it can be saved after any line and taken up again, in another process, with the rest of the
 * ledger. What is saved is the verifier's own and is believed: read only states that you saved yourself. A line of text says
 * which northroot saved it, and has the digest of what follows, so that damage is noticed:
 *
 *     northroot-state 0.1.0 sha-256:<base64url>\n<structured clone>
 */

import { deserialize, serialize } from 'node:v8';
import { printable } from '../bytes/printable.js';
import { sha256Base64url } from '../bytes/sha256.js';
import { NorthrootError } from '../error.js';
import type { Finding } from '../finding/finding.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import type { Verifier } from '../signature/verifier.js';
import { CheckpointRequirements } from '../trust/checkpoint-judge.js';
import { Keyring, type SavedKey } from '../trust/keyring.js';
import { EventIndex, type EventIndexData } from './event-index.js';
import { VERSION } from '../version.js';
import type { VerifyState } from './state.js';

const HEADER = /^northroot-state (\S{1,64}) sha-256:([A-Za-z0-9_-]{43})$/;
const MAX_HEADER_LENGTH = 160;
const NEWLINE = 0x0a;

interface Saved extends Omit<VerifyState, 'policy' | 'keyring' | 'requirements' | 'events'> {
  readonly policy: TrustPolicy | undefined;
  readonly keys: readonly SavedKey[];
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
  const { keyring, events, requirements, ...plain } = state;
  void requirements;
  const saved: Saved = {
    ...plain,
    keys: keyring.save(),
    events: events.save(),
    kept: findings,
  };
  const body = serialize(saved);
  const header = `northroot-state ${VERSION} sha-256:${sha256Base64url(body)}\n`;
  return new Uint8Array(Buffer.concat([Buffer.from(header, 'latin1'), body]));
}

/**
 * The verification that {@link saveVerification} saved.
 *
 * @throws NorthrootError `STATE_INVALID` when the bytes are no such state, or a damaged one; `STATE_OUTDATED` when another
 *   version of northroot saved it: what was found by its rules is not what this one would find.
 */
export function restoreVerification(bytes: Uint8Array, verifier: Verifier = nodeVerifier): SavedVerification {
  const end = bytes.subarray(0, MAX_HEADER_LENGTH).indexOf(NEWLINE);
  const header = HEADER.exec(Buffer.from(bytes.subarray(0, Math.max(end, 0))).toString('latin1'));
  const body = bytes.subarray(end + 1);
  if (header === null || header[2] !== sha256Base64url(body)) throw invalid(undefined);
  const [, version = ''] = header;
  if (version !== VERSION) {
    throw new NorthrootError('STATE_OUTDATED', `the saved state is of northroot ${printable(version)}`, {
      hint: 'verify from the beginning',
    });
  }
  try {
    return revive(deserialize(body) as Saved, verifier);
  } catch (cause) {
    throw invalid(cause);
  }
}

function revive({ keys, events, kept, ...plain }: Saved, verifier: Verifier): SavedVerification {
  const keyring = new Keyring(verifier);
  keyring.restore(keys);
  const requirements = new CheckpointRequirements(plain.policy, plain.witnessPolicy, verifier);
  return { state: { ...plain, keyring, requirements, events: new EventIndex(events) }, findings: kept };
}

function invalid(cause: unknown): NorthrootError {
  return new NorthrootError('STATE_INVALID', 'the saved state is none, or is damaged', {
    cause,
    hint: 'remove it, and verify from the beginning',
  });
}
