/** The keys that verify a proof: those of a trust policy, and keys that the user gives. The rules are `rules/trust/checkpoint-judge.ts`. */

import type { Fault } from '../base/fault.js';
import type { OptionTypes } from '../base/options.js';
import { compareTimestamps } from '../base/value/timestamp.js';
import type { AnyTypeOfEvent } from '../format/event/typed-event.js';
import { detectForm } from '../format/key/detect-form.js';
import { readKeyText } from '../format/key/key-form.js';
import { parsePublicKey, type PublicKey } from '../format/key/public-key.js';
import { isKeyName } from '../format/key/vkey.js';
import type { SignedCheckpoint } from '../format/note/checkpoint.js';
import { makeNoteKey, type NoteKey, parseNoteKey } from '../format/note/note-key.js';
import type { TrustPolicy, Webauthn } from '../format/schema/generated/types.js';
import type { SignatureBackend, VerificationKey } from '../format/signature/backend.js';
import { defaultBackend } from '../format/signature/default-backend.js';
import { importPasskey, type PasskeyVerification } from '../format/signature/passkey.js';
import { admitsKey, type SigningRule, signingRuleFor } from '../rules/trust/authority.js';
import {
  CheckpointRequirements,
  checkpointRoleOf,
  type CheckpointSigner,
  isSignedByLog,
  judgeCheckpointNote,
  type KnownNoteKey,
  listVkeys,
  type ValidNoteSignature,
} from '../rules/trust/checkpoint-judge.js';
import {
  type EntitlementProblem,
  findCheckpointKeyProblem,
  findEntitlementProblem,
  findValidityProblem,
  Keyring,
  type RingKey,
} from '../rules/trust/keyring.js';
import { mustBeSigned } from '../rules/trust/record-signing.js';
import type { WitnessPolicy } from '../rules/trust/witness-policy.js';

export type ProofKey =
  /** The key of a log of any origin, or of a signer of events. With `webauthn`, as `parsePasskey` gives it: a passkey, of approvals alone. */
  | { readonly kind: 'public-key'; readonly key: PublicKey; readonly webauthn?: Webauthn | undefined }
  /**
   * A vkey. Type 0x01: the log whose origin is the key's name, or a signer of events. Type 0x04: a witness. Type 0x06: the log whose
   * origin is the key's name, a witness of other logs.
   */
  | { readonly kind: 'note-key'; readonly key: NoteKey };

/** What a proof is verified with. Without a key every intact proof is undecided. */
export interface ProofTrust {
  /** Pins the origins, the keys with their roles, and what must have signed. */
  readonly policy?: TrustPolicy | undefined;
  readonly keys?: readonly ProofKey[] | undefined;
  /** Further logs and witnesses, and the quorum that must have cosigned every checkpoint. */
  readonly witnessPolicy?: WitnessPolicy | undefined;
  /** Default: the platform's. */
  readonly backend?: SignatureBackend | undefined;
}

export const PROOF_TRUST: OptionTypes<ProofTrust> = {
  policy: 'object',
  keys: 'array',
  witnessPolicy: 'object',
  backend: 'object',
};

/** A reason why a proof is invalid or undecided. */
export interface ProofProblem extends Fault {
  readonly kind: 'invalid' | 'undecided';
}

/** Who validly signed a checkpoint. */
export interface CheckpointSigners {
  /** vkeys of the log's keys, each once. */
  readonly log: readonly string[];
  /** Cosignatures, each with its time in seconds since 1970; of each witness the latest. */
  readonly witnesses: readonly { readonly vkey: string; readonly timestamp: number }[];
  /** How many signatures are by unknown keys. */
  readonly unverified: number;
}

interface EventKey {
  readonly verification: VerificationKey;
  /** Why it may not sign this event. */
  readonly problem: EntitlementProblem | undefined;
  readonly passkey: PasskeyVerification | undefined;
}

/**
 * A key in any form that public keys have; a vkey keeps its name and type.
 *
 * @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED`, `KEY_IS_PRIVATE`
 */
export function parseProofKey(input: string | Uint8Array): ProofKey {
  const key = parsePublicKey(input);
  const isVkey = isText(input) && detectForm(readKeyText(input)) === 'vkey';
  if (isVkey) return { kind: 'note-key', key: parseNoteKey(readKeyText(input)) };
  return { kind: 'public-key', key };
}

interface ReceiptSignature {
  readonly origin: string | undefined;
  readonly verify: (key: VerificationKey) => boolean;
  readonly names: ((key: PublicKey) => boolean) | undefined;
  readonly instant: string | undefined;
}

export class ProofKeyring {
  readonly #policy: TrustPolicy | undefined;
  readonly #requirements: CheckpointRequirements;
  readonly #ring: Keyring;
  readonly #given: readonly {
    readonly key: ProofKey;
    readonly verification: VerificationKey;
    readonly passkey: PasskeyVerification | undefined;
  }[];

  constructor({ policy, keys = [], witnessPolicy, backend = defaultBackend }: ProofTrust) {
    this.#policy = policy;
    this.#requirements = new CheckpointRequirements(policy, witnessPolicy, backend);
    this.#ring = new Keyring(backend);
    for (const key of policy?.keys ?? []) this.#ring.add(key);
    this.#given = keys.map((key) => {
      const plain = key.kind === 'note-key' ? key.key.verification : backend.importKey(key.key);
      const pins = webauthnOf(key);
      const passkey = pins === undefined ? undefined : importPasskey(pins, plain);
      return { key, verification: passkey ?? plain, passkey };
    });
  }

  /** Whether the policy demands that every event is signed. */
  get requiresEventSignatures(): boolean {
    return this.#policy?.require?.event_signatures === 'required';
  }

  /**
   * Judges the signatures of a checkpoint by the rules of ledgers. Signatures by unknown keys do not count; an invalid signature that
   * names a known key makes the note invalid (https://c2sp.org/signed-note).
   *
   * @param instant - The earliest time at which it can have been made: that of an event that it covers, if known.
   */
  judgeCheckpoint(
    note: SignedCheckpoint,
    instant?: string,
  ): { readonly signers: CheckpointSigners; readonly problems: readonly ProofProblem[] } {
    const { origin } = note.checkpoint;
    const requirements = this.#requirements;
    const verdict = judgeCheckpointNote(note, {
      keyring: this.#ring,
      requirements,
      given: this.#givenNoteKeys(origin),
      findProblem: (signature) => findNoteProblem(signature, instant),
    });
    const problems = this.#judgeOrigin(origin);
    for (const { code, severity, expected = '', actual = '' } of verdict.problems)
      if (severity === undefined) problems.push(toProblem({ code, expected, actual }));
    if (!isSignedByLog(verdict.signers) && verdict.problems.length === 0) {
      const expected = `a signature by a known key of ${origin}`;
      const actual = `${verdict.unknown} by unknown keys`;
      problems.push({ code: 'KEY_UNKNOWN', kind: 'undecided', expected, actual });
    }
    problems.push(...this.#unmet(verdict.signers));
    return { signers: { ...listVkeys(verdict.counted), unverified: verdict.unknown }, problems };
  }

  /**
   * Judges the signature of a receipt, which is of a tree's root. Every possible key of the log is tried.
   *
   * @param verify - Whether the signature verifies under the key.
   * @param names - Whether the receipt names the key; undefined if it names none.
   * @param instant - As for {@link ProofKeyring.judgeCheckpoint}.
   */
  judgeReceipt({ origin, verify, names, instant }: ReceiptSignature): {
    readonly signers: readonly string[];
    readonly problems: readonly ProofProblem[];
  } {
    const problems = this.#judgeOrigin(origin);
    const known = this.#logKeys(origin);
    const signers: CheckpointSigner[] = [];
    const doubts: ProofProblem[] = [];
    for (const { verification, entry } of known) {
      if (!verify(verification)) continue;
      const source = entry === undefined ? 'given' : 'trust-policy';
      const problem = entry && findLogKeyProblem(entry, instant);
      if (problem !== undefined) doubts.push(toProblem(problem));
      else {
        const { keyid } = verification.publicKey;
        signers.push({ role: 'log', source, keyid, name: origin ?? '' });
      }
    }
    if (signers.length === 0) problems.push(...doubts);
    if (signers.length === 0 && doubts.length === 0) {
      const isNamed = known.some(({ verification }) => names?.(verification.publicKey) ?? true);
      const expected = `a signature by a known key of ${origin ?? 'the log'}`;
      problems.push(
        isNamed
          ? {
              code: 'PROOF_INVALID',
              kind: 'invalid',
              expected,
              actual: 'one of another root, or by another key',
            }
          : { code: 'KEY_UNKNOWN', kind: 'undecided', expected, actual: 'one by an unknown key' },
      );
    }
    problems.push(...this.#unmet(signers));
    return { signers: [...new Set(signers.map(({ keyid }) => keyid))], problems };
  }

  #judgeOrigin(origin: string | undefined): ProofProblem[] {
    const origins = this.#policy?.origins;
    if (origins === undefined || (origin !== undefined && origins.includes(origin))) return [];
    const fault = { code: 'ORIGIN_MISMATCH', expected: origins.join(' or '), actual: origin ?? 'none' };
    return [toProblem(fault)];
  }

  #unmet(signers: readonly CheckpointSigner[]): ProofProblem[] {
    return [
      this.#requirements.findMissingLogKeys(signers),
      this.#requirements.findMissingWitnesses(signers),
    ].flatMap((unmet) => (unmet === undefined ? [] : toProblem(unmet)));
  }

  /** Possible keys of the log, each with its entry in the trust policy. */
  #logKeys(origin: string | undefined): { verification: VerificationKey; entry: RingKey | undefined }[] {
    const given = this.#given.filter(
      ({ key }) =>
        (key.kind === 'public-key' && key.webauthn === undefined) ||
        (key.kind === 'note-key' &&
          key.key.type === 'ed25519' &&
          (origin === undefined || key.key.name === origin)),
    );
    const pinned = (this.#policy?.keys ?? []).flatMap(({ keyid }) => this.#ring.find(keyid) ?? []);
    return [
      ...given.map(({ verification }) => ({ verification, entry: undefined })),
      ...pinned.map((entry) => ({ verification: entry.verification, entry })),
    ];
  }

  /** The key of an event's signature; undefined if unknown. */
  findEventKey(keyid: string, event: AnyTypeOfEvent, occurredAt: string): EventKey | undefined {
    const given = this.#given.find(({ key, verification }) => {
      const isCosigner = key.kind === 'note-key' && key.key.type !== 'ed25519';
      return !isCosigner && verification.publicKey.keyid === keyid;
    });
    if (given !== undefined) {
      const { verification, passkey, key } = given;
      return { verification, passkey, problem: findRoleProblem(webauthnOf(key), this.#ruleFor(event)) };
    }
    const entry = this.#ring.find(keyid);
    if (entry === undefined) return undefined;
    const problem = findEntitlementProblem(entry, this.#ruleFor(event), occurredAt);
    return { verification: entry.verification, passkey: entry.passkey, problem };
  }

  /** Whether an event without a signature is invalid, by what the policy demands and by the keys that it pins. */
  mustBeSigned(event: AnyTypeOfEvent): boolean {
    const demand = {
      signaturesRequired: this.requiresEventSignatures,
      hasAuthority: this.#ring.hasAuthority,
    };
    const { needsAuthority } = this.#ruleFor(event);
    return mustBeSigned(demand, { isKeyEvent: event.event_type === 'key', needsAuthority });
  }

  #ruleFor(event: AnyTypeOfEvent): SigningRule {
    return signingRuleFor(event, { hasAuthority: this.#ring.hasAuthority });
  }

  /** The given keys that may have signed a checkpoint of `origin`. */
  #givenNoteKeys(origin: string): KnownNoteKey[] {
    const source = 'given';
    return this.#given.flatMap(({ key, verification }): KnownNoteKey[] => {
      if (key.kind === 'note-key') {
        const role = checkpointRoleOf(key.key, origin);
        return role === undefined ? [] : [{ key: key.key, role, source }];
      }
      const { alg } = key.key;
      if (alg === 'p256' || key.webauthn !== undefined || !isKeyName(origin)) return [];
      return [{ key: makeNoteKey(origin, key.key, alg, verification), role: 'log', source }];
    });
  }
}

function webauthnOf(key: ProofKey): Webauthn | undefined {
  return key.kind === 'public-key' ? key.webauthn : undefined;
}

/** Nothing is known of a given key's roles, but that a passkey signs approvals alone. */
function findRoleProblem(webauthn: Webauthn | undefined, rule: SigningRule): EntitlementProblem | undefined {
  if (admitsKey(webauthn === undefined ? {} : { webauthn }, rule)) return undefined;
  const expected = 'a key that signs more than approvals';
  return { code: 'KEY_NOT_FOR_ROLE', expected, actual: `a passkey of ${webauthn?.rp_id}` };
}

/**
 * Why a key of the trust policy may not have signed a checkpoint. A cosignature has a time. The signature of a log has no trusted time: it
 * is judged at the latest event that it is known to cover, and not before its key was valid.
 */
function findNoteProblem(
  { entry, role, source, timestamp }: ValidNoteSignature,
  instant: string | undefined,
): EntitlementProblem | undefined {
  if (entry === undefined || source !== 'trust-policy') return undefined;
  if (role === 'witness')
    return findValidityProblem(entry, new Date(Math.min(timestamp ?? 0, LAST_SECOND) * 1_000).toISOString());
  return findLogKeyProblem(entry, instant);
}

function findLogKeyProblem(entry: RingKey, instant: string | undefined): EntitlementProblem | undefined {
  const from = entry.key.valid_from;
  if (instant === undefined) return findCheckpointKeyProblem(entry, from ?? FIRST_INSTANT);
  const isLater = from !== undefined && compareTimestamps(from, instant) > 0;
  return findCheckpointKeyProblem(entry, isLater ? from : instant);
}

const FIRST_INSTANT = '0001-01-01T00:00:00Z';
/** 9999-12-31T23:59:59Z: no timestamp of SPEC §2 is later. */
const LAST_SECOND = 253_402_300_799;

/** A fault as a problem that makes a proof invalid. */
export function toProblem({ code, expected, actual }: Fault): ProofProblem {
  return { code, kind: 'invalid', expected, actual };
}

/** Raw bytes of a key are no text. */
function isText(input: string | Uint8Array): boolean {
  return typeof input === 'string' || input.every((byte) => byte < 0x7f);
}
