/**
 * Keeps a writer from writing what would not verify: the ledger's own rules on signatures (SPEC §5, §7), asked before a
 * record is written and answered by the same code that judges it afterwards.
 */

import { tryDecodeBase64url } from '../bytes/encoding.js';
import { NorthrootError } from '../error.js';
import type { AnyEvent } from '../event/build.js';
import type { PublicKey } from '../key/public-key.js';
import type { SignatureEntry } from '../ledger/examine-line.js';
import type { GenesisEvent } from '../schema/generated/types.js';
import { PAYLOAD_TYPE, preAuthEncoding } from '../signature/dsse.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import { Keyring, findEntitlementProblem } from '../trust/keyring.js';
import { compareTimestamps } from '../value/timestamp.js';

export class SignatureGuard {
  readonly #keyring = new Keyring(nodeVerifier);
  readonly #required: boolean;
  #clock: string;

  /** @throws NorthrootError `KEY_MALFORMED` when a key entry of genesis contradicts itself. */
  constructor(genesis: GenesisEvent) {
    this.#required = genesis.signing.events === 'required';
    this.#clock = genesis.occurred_at;
    for (const key of genesis.keys) {
      const problem = this.#keyring.add(key);
      if (problem === undefined) continue;
      const { pointer, expected, actual } = problem;
      throw new NorthrootError(
        'KEY_MALFORMED',
        `genesis key ${pointer}: expected ${expected}, found ${actual}`,
      );
    }
  }

  /**
   * Whether a record of this event with these signatures, and one more by `signer`, would count as signed.
   *
   * @throws NorthrootError with the code that verification would give, exit status 1.
   */
  check(
    event: AnyEvent,
    eventBytes: Uint8Array,
    signatures: readonly SignatureEntry[],
    signer: PublicKey | undefined,
  ): void {
    const required = this.#required || event.event_type === 'key';
    const instant = compareTimestamps(this.#clock, event.occurred_at) > 0 ? this.#clock : event.occurred_at;
    const keyids = [...signatures.map(({ keyid }) => keyid), ...(signer === undefined ? [] : [signer.keyid])];
    for (const entry of signatures) this.#assertRight(entry, eventBytes);
    let doubt: NorthrootError | undefined;
    for (const keyid of keyids) {
      const known = this.#keyring.find(keyid);
      const problem = known && findEntitlementProblem(known.key, event, instant);
      if (known !== undefined && problem === undefined) return;
      if (problem !== undefined) {
        doubt ??= refuse(problem.code, `key ${keyid}: expected ${problem.expected}, found ${problem.actual}`);
      } else if (required) {
        doubt ??= refuse('KEY_UNKNOWN', `key ${keyid} is not one that the ledger declares`);
      }
    }
    if (keyids.length === 0 && required) {
      doubt = refuse(
        'SIGNATURE_MISSING',
        'the ledger requires every record to be signed, and there is no key',
      );
    }
    if (doubt !== undefined) throw doubt;
  }

  /** Moves the clock by which keys are judged on to that of a checkpoint; it never goes back. */
  advanceClock(occurredAt: string): void {
    if (compareTimestamps(occurredAt, this.#clock) > 0) this.#clock = occurredAt;
  }

  #assertRight(entry: SignatureEntry, eventBytes: Uint8Array): void {
    const known = this.#keyring.find(entry.keyid);
    const signature = tryDecodeBase64url(entry.sig);
    const message = preAuthEncoding(PAYLOAD_TYPE, eventBytes);
    if (known === undefined || (signature !== undefined && known.verification.verify(message, signature)))
      return;
    throw refuse('SIGNATURE_INVALID', `the signature by ${entry.keyid} is not one of this event`);
  }
}

const HINTS: Readonly<Record<string, string>> = {
  SIGNATURE_MISSING: 'give the key with --key',
  KEY_UNKNOWN: 'sign with a key that genesis declares',
};

function refuse(code: string, message: string): NorthrootError {
  return new NorthrootError(code, message, {
    exitStatus: 1,
    hint: HINTS[code] ?? `northroot explain ${code}`,
  });
}
