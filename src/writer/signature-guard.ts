/**
 * Keeps a writer from writing what would not verify: the ledger's own rules on signatures (SPEC §5, §7), asked before a
 * record is written and answered by the same code that judges it afterwards.
 */

import { tryDecodeBase64url } from '../bytes/encoding.js';
import { NorthrootError } from '../error.js';
import type { AnyEvent } from '../event/build.js';
import type { PublicKey } from '../key/public-key.js';
import type { SignatureEntry } from '../ledger/examine-line.js';
import type { RelatedRecord } from '../finding/finding.js';
import type { JsonObject } from '../json/value.js';
import { readWireKey } from '../key/wire-key.js';
import { MAX_ML_DSA_NAME_BYTES, verifyNoteSignature } from '../note/note-key.js';
import type { NoteSignature } from '../note/signed-note.js';
import type { GenesisEvent, Key, KeyEvent } from '../schema/generated/types.js';
import { PAYLOAD_TYPE, preAuthEncoding } from '../signature/dsse.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import { signingRuleFor } from '../trust/authority.js';
import {
  findCheckpointKeyProblem,
  findEntitlementProblem,
  findValidityProblem,
  Keyring,
  type RingKey,
  type SavedKey,
} from '../trust/keyring.js';
import { compareTimestamps } from '../value/timestamp.js';

/** What a guard knows beyond genesis: to be gone back to. */
export interface GuardState {
  readonly keys: readonly SavedKey[];
  readonly clock: string;
}

export class SignatureGuard {
  readonly #origin: string;
  #keyring = new Keyring(nodeVerifier);
  readonly #required: boolean;
  #clock: string;

  /** @throws NorthrootError `KEY_MALFORMED` when a key entry of genesis contradicts itself. */
  constructor(genesis: GenesisEvent) {
    this.#origin = genesis.origin;
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
    const { hasAuthority } = this.#keyring;
    const rule = signingRuleFor(event as JsonObject, { hasAuthority });
    const required = this.#required || event.event_type === 'key' || (hasAuthority && rule.needsAuthority);
    const instant = this.#instantOf(event.occurred_at);
    const keyids = [...signatures.map(({ keyid }) => keyid), ...(signer === undefined ? [] : [signer.keyid])];
    for (const entry of signatures) this.#assertRight(entry, eventBytes);
    let doubt: NorthrootError | undefined;
    for (const keyid of keyids) {
      const known = this.#keyring.find(keyid);
      const problem = known && findEntitlementProblem(known, rule, instant);
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

  /**
   * Applies a key event that was checked: from here on its key counts, or does so no more. A key that is known already stays
   * as it is.
   */
  applyKeyEvent({ action, key }: KeyEvent, place: RelatedRecord): void {
    if (action === 'revoke') this.#keyring.revoke(key.keyid, place);
    else this.#keyring.add(key);
  }

  /** The keys that are not revoked. */
  keys(): Key[] {
    const saved = this.#keyring.save();
    return saved.filter(({ revokedBy }) => revokedBy === undefined).map(({ key }) => key);
  }

  /** @throws NorthrootError `SCHEMA` when a key event adds a key that is known, or contradicts itself. */
  assertNews({ action, key }: KeyEvent): void {
    if (action !== 'add') return;
    const read = readWireKey(key);
    if ('pointer' in read)
      throw refuse('SCHEMA', `/key${read.pointer}: expected ${read.expected}, found ${read.actual}`);
    if (this.#keyring.find(key.keyid) !== undefined) {
      throw refuse(
        'SCHEMA',
        `/key/keyid: expected a key that the ledger does not have yet, found ${key.keyid}`,
      );
    }
  }

  /**
   * Whether a note signed with this key would seal anything.
   *
   * @throws NorthrootError `KEY_UNSUPPORTED`, `KEY_UNKNOWN`, `KEY_NOT_FOR_ROLE`, `KEY_NOT_VALID_HERE`
   */
  assertCheckpointKey(publicKey: PublicKey, instant: string): void {
    if (publicKey.alg === 'p256') {
      throw new NorthrootError(
        'KEY_UNSUPPORTED',
        `checkpoints are signed with ed25519 and ml-dsa-44 keys, this is ${publicKey.alg}`,
        {
          hint: 'make one with northroot keygen, and let the ledger know it with northroot key add',
        },
      );
    }
    if (publicKey.alg === 'ml-dsa-44' && Buffer.byteLength(this.#origin) > MAX_ML_DSA_NAME_BYTES) {
      throw new NorthrootError(
        'KEY_UNSUPPORTED',
        `an ml-dsa-44 key signs for origins of at most ${MAX_ML_DSA_NAME_BYTES} bytes`,
        { hint: 'sign with an ed25519 key' },
      );
    }
    const known = this.#keyring.find(publicKey.keyid);
    // Whoever verifies a ledger that declares no keys has to pin the key.
    if (known === undefined && this.#keyring.size === 0) return;
    if (known === undefined)
      throw refuse('KEY_UNKNOWN', `key ${publicKey.keyid} is not one that the ledger declares`);
    const problem = findCheckpointKeyProblem(known, this.#instantOf(instant));
    if (problem === undefined) return;
    throw refuse(
      problem.code,
      `key ${publicKey.keyid}: expected ${problem.expected}, found ${problem.actual}`,
    );
  }

  /**
   * Whether a signature line of a checkpoint's note would count: false where verifying would find fault with it, undefined
   * where the ledger has never known a key that it names.
   *
   * @param text - The note's text, of this ledger's origin.
   */
  judgeNoteLine(text: string, line: NoteSignature, instant: string): boolean | undefined {
    const keys = this.#keyring.findNoteKeys(this.#origin, [line]);
    if (keys.length === 0) return undefined;
    const at = this.#instantOf(instant);
    return keys.every((key) => {
      const known = this.#keyring.find(key.keyid) as RingKey;
      const problem =
        key.as === 'witness' ? findValidityProblem(known, at) : findCheckpointKeyProblem(known, at);
      return problem === undefined && verifyNoteSignature(text, line, key) !== undefined;
    });
  }

  /** The state to go back to, should what is taken up next be refused. */
  save(): GuardState {
    return { keys: this.#keyring.save(), clock: this.#clock };
  }

  restore({ keys, clock }: GuardState): void {
    this.#keyring = new Keyring(nodeVerifier);
    this.#keyring.restore(keys);
    this.#clock = clock;
  }

  /** Moves the clock by which keys are judged on to that of a checkpoint; it never goes back. */
  advanceClock(occurredAt: string): void {
    if (compareTimestamps(occurredAt, this.#clock) > 0) this.#clock = occurredAt;
  }

  /** At which a key's validity is judged: an event that is dated back does not revive an expired key. */
  #instantOf(occurredAt: string): string {
    return compareTimestamps(this.#clock, occurredAt) > 0 ? this.#clock : occurredAt;
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
  KEY_UNKNOWN: 'sign with a key that the ledger declares',
  KEY_NOT_VALID_HERE: 'sign with another key: --key',
};

function refuse(code: string, message: string): NorthrootError {
  return new NorthrootError(code, message, {
    exitStatus: 1,
    hint: HINTS[code] ?? `northroot explain ${code}`,
  });
}
