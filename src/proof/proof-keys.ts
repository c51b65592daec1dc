/**
 * The keys that a proof is verified with: those of a trust policy, or keys that the user gives. Which of them may sign what is
 * decided here, so that proofs of both kinds judge alike.
 */

import type { JsonObject } from '../json/value.js';
import { signingRuleFor } from '../trust/authority.js';
import { detectForm } from '../key/detect-form.js';
import { readKeyText } from '../key/key-form.js';
import { parsePublicKey, type PublicKey } from '../key/public-key.js';
import { isKeyName } from '../key/vkey.js';
import type { SignedCheckpoint } from '../note/checkpoint.js';
import { judgeNote } from '../note/judge-note.js';
import {
  canBeLogKey,
  canBeWitnessKey,
  formatNoteKey,
  makeNoteKey,
  parseNoteKey,
  type NoteKey,
} from '../note/note-key.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import type { VerificationKey, Verifier } from '../signature/verifier.js';
import {
  Keyring,
  findCheckpointKeyProblem,
  findEntitlementProblem,
  findValidityProblem,
  type EntitlementProblem,
  type RingKey,
} from '../trust/keyring.js';
import {
  describeQuorum,
  meetsQuorum,
  namesLogs,
  witnessPolicyKeys,
  type WitnessPolicy,
  type WitnessPolicyKeys,
} from '../trust/witness-policy.js';
import { compareTimestamps } from '../value/timestamp.js';

/** A key that the user gives for verifying proofs. */
export type ProofKey =
  /** A log's key, whatever its origin; and a key of those who sign events. */
  | { readonly kind: 'public-key'; readonly key: PublicKey }
  /**
   * A vkey: of type 0x01 that of the log whose origin is its name, and a key of those who sign events; of type 0x04 a witness's; of
   * type 0x06 that of the log whose origin is its name, of another log a witness's.
   */
  | { readonly kind: 'note-key'; readonly key: NoteKey };

/** What a proof is verified with. Without any key no proof is ever more than undecided. */
export interface ProofTrust {
  /** Pins the origins, the keys with their roles, and what must have signed. */
  readonly policy?: TrustPolicy;
  readonly keys?: readonly ProofKey[];
  /** Names further logs and witnesses, and the quorum of them that must have cosigned every checkpoint. */
  readonly witnessPolicy?: WitnessPolicy;
  /** The signature backend; node:crypto unless given. */
  readonly verifier?: Verifier;
}

/** Something that speaks against a proof, or that keeps it from being decided. */
export interface ProofProblem {
  readonly code: string;
  /** Whether the proof is broken, or nothing can be said of it. */
  readonly kind: 'invalid' | 'undecided';
  readonly expected: string;
  readonly actual: string;
}

/** Whose signatures on a checkpoint are right. */
export interface CheckpointSigners {
  /** vkeys of the log's keys, each once. */
  readonly log: readonly string[];
  /** Cosignatures, each with its time in seconds since 1970; of each witness the latest. */
  readonly witnesses: readonly { readonly vkey: string; readonly timestamp: number }[];
  /** How many signatures are by unknown keys. */
  readonly unverified: number;
}

/** An event signature's key, and what else it must fit. */
export interface EventKey {
  readonly verification: VerificationKey;
  /** Why it may not sign this event. */
  readonly problem: EntitlementProblem | undefined;
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

/** The keys of one verification. */
export class ProofKeyring {
  readonly #policy: TrustPolicy | undefined;
  readonly #witnessPolicy: WitnessPolicy | undefined;
  readonly #witnessKeys: WitnessPolicyKeys;
  readonly #ring: Keyring;
  readonly #given: readonly { readonly key: ProofKey; readonly verification: VerificationKey }[];

  constructor({ policy, keys = [], witnessPolicy, verifier = nodeVerifier }: ProofTrust) {
    this.#policy = policy;
    this.#witnessPolicy = witnessPolicy;
    this.#witnessKeys =
      witnessPolicy === undefined ? { logs: [], witnesses: [] } : witnessPolicyKeys(witnessPolicy, verifier);
    this.#ring = new Keyring(verifier);
    for (const key of policy?.keys ?? []) this.#ring.add(key);
    this.#given = keys.map((key) => ({
      key,
      verification: key.kind === 'note-key' ? key.key.verification : verifier.importKey(key.key),
    }));
  }

  /** Whether the policy demands that every event is signed. */
  get requiresEventSignatures(): boolean {
    return this.#policy?.require?.event_signatures === 'required';
  }

  /**
   * Judges the signatures of a checkpoint. Those by unknown keys count for nothing; one that is wrong and names a known key
   * spoils the whole (https://c2sp.org/signed-note).
   *
   * @param instant - The earliest time at which it can have been made: that of an event that it covers, where one is known.
   */
  judgeCheckpoint(
    { checkpoint, text, signatures }: SignedCheckpoint,
    instant?: string,
  ): { readonly signers: CheckpointSigners; readonly problems: readonly ProofProblem[] } {
    const { origin } = checkpoint;
    const problems: ProofProblem[] = [];
    const origins = this.#policy?.origins;
    if (origins !== undefined && !origins.includes(origin)) {
      problems.push(invalid('ORIGIN_MISMATCH', origins.join(' or '), origin));
    }
    const { right, wrong, unknown } = judgeNote({ text, signatures }, this.#noteKeys(origin));
    for (const { key } of wrong) {
      problems.push(
        invalid('CHECKPOINT_SIGNATURE_INVALID', `a signature by ${formatNoteKey(key)}`, 'another'),
      );
    }
    const log = new Set<string>();
    const witnesses = new Map<string, number>();
    const pinnedWitnesses = new Set<string>();
    const doubts: ProofProblem[] = [];
    for (const { key, timestamp } of right) {
      const vkey = formatNoteKey(key);
      const isLog = key.as === 'log' || timestamp === null;
      const problem = key.entry && findNoteProblem(key.entry, isLog ? null : timestamp, instant);
      if (problem !== undefined) {
        if (isLog) doubts.push(invalid(problem.code, problem.expected, problem.actual));
        continue;
      }
      if (isLog) {
        log.add(vkey);
        continue;
      }
      witnesses.set(vkey, Math.max(timestamp, witnesses.get(vkey) ?? 0));
      if (key.entry !== undefined) pinnedWitnesses.add(vkey);
    }
    if (log.size === 0 && wrong.length === 0) {
      const expected = `a signature by a known key of ${origin}`;
      const actual = `${unknown.length} by unknown keys`;
      const none: ProofProblem = { code: 'KEY_UNKNOWN', kind: 'undecided', expected, actual };
      problems.push(...(doubts.length > 0 ? doubts : [none]));
    }
    const { checkpoint_quorum: quorum = 1, witness_threshold: threshold = 0 } = this.#policy?.require ?? {};
    if (log.size > 0 && log.size < quorum) {
      problems.push(invalid('CHECKPOINT_SIGNATURE_INVALID', `signatures by ${quorum} keys`, `${log.size}`));
    }
    if (pinnedWitnesses.size < threshold) {
      const actual = String(pinnedWitnesses.size);
      problems.push(invalid('WITNESS_QUORUM', `cosignatures by ${threshold} witnesses`, actual));
    }
    problems.push(...this.#checkWitnessPolicy(origin, log, new Set(witnesses.keys())));
    const signers = {
      log: [...log],
      witnesses: [...witnesses].map(([vkey, timestamp]) => ({ vkey, timestamp })),
      unverified: unknown.length,
    };
    return { signers, problems };
  }

  /** Whether a log and the witnesses that the witness policy asks for are among the signers, which are given as vkeys. */
  #checkWitnessPolicy(
    origin: string,
    log: ReadonlySet<string>,
    witnesses: ReadonlySet<string>,
  ): ProofProblem[] {
    const policy = this.#witnessPolicy;
    if (policy === undefined) return [];
    const problems: ProofProblem[] = [];
    // When no known key signed at all, that is told already.
    if (log.size > 0 && namesLogs(policy) && !policy.logs.some(({ vkey }) => log.has(vkey))) {
      const expected = `a signature by a log of the witness policy with the origin ${origin}`;
      problems.push({ code: 'KEY_UNKNOWN', kind: 'undecided', expected, actual: 'none' });
    }
    const cosigned = new Set(
      policy.witnesses.filter(({ vkey }) => witnesses.has(vkey)).map(({ name }) => name),
    );
    if (!meetsQuorum(policy, (name) => cosigned.has(name))) {
      const expected = `cosignatures by ${describeQuorum(policy)}`;
      problems.push(invalid('WITNESS_QUORUM', expected, [...cosigned].join(', ') || 'none'));
    }
    return problems;
  }

  /** The key of an event's signature; `undefined` when it is not known. */
  findEventKey(
    keyid: string,
    event: { readonly event_type: string; readonly principal_id: string; readonly occurred_at: string },
  ): EventKey | undefined {
    const given = this.#given.find(({ key, verification }) => {
      const isCosigner = key.kind === 'note-key' && key.key.type !== 'ed25519';
      return !isCosigner && verification.publicKey.keyid === keyid;
    });
    if (given !== undefined) return { verification: given.verification, problem: undefined };
    const entry = this.#ring.find(keyid);
    if (entry === undefined) return undefined;
    const rule = signingRuleFor(event as unknown as JsonObject, { hasAuthority: this.#ring.hasAuthority });
    const problem = findEntitlementProblem(entry, rule, event.occurred_at);
    return { verification: entry.verification, problem };
  }

  /** The keys that may have signed a checkpoint of `origin`; the policy's come first, as it says most of them. */
  #noteKeys(origin: string): TrustedNoteKey[] {
    const keys: TrustedNoteKey[] = [];
    for (const key of this.#ring.noteKeys(origin)) keys.push({ ...key, entry: this.#ring.find(key.keyid) });
    const entry = undefined;
    for (const { key, verification } of this.#given) {
      if (key.kind === 'note-key') {
        const as = canBeLogKey(key.key) && key.key.name === origin ? 'log' : 'witness';
        if (as === 'log' || canBeWitnessKey(key.key)) keys.push({ ...key.key, as, entry });
      } else if (key.key.alg !== 'p256' && isKeyName(origin)) {
        keys.push({ ...makeNoteKey(origin, key.key, key.key.alg, verification), as: 'log', entry });
      }
    }
    const { logs, witnesses } = this.#witnessKeys;
    for (const key of logs) if (key.name === origin) keys.push({ ...key, as: 'log', entry });
    for (const key of witnesses) keys.push({ ...key, as: 'witness', entry });
    return keys;
  }
}

/** A note key, as whose it counts, and its entry in the trust policy if it has one. */
interface TrustedNoteKey extends NoteKey {
  readonly as: 'log' | 'witness';
  readonly entry: RingKey | undefined;
}

/**
 * Why a key of the trust policy may not have signed a checkpoint. A cosignature has a time. A log's signature has none: it was
 * made after the events that it covers, and not before its key was valid.
 */
function findNoteProblem(
  entry: RingKey,
  timestamp: number | null,
  instant: string | undefined,
): EntitlementProblem | undefined {
  if (timestamp !== null) return findValidityProblem(entry, toInstant(timestamp));
  const from = entry.key.valid_from;
  if (instant === undefined) return findCheckpointKeyProblem(entry, from ?? FIRST_INSTANT);
  const isLater = from !== undefined && compareTimestamps(from, instant) > 0;
  return findCheckpointKeyProblem(entry, isLater ? from : instant);
}

const FIRST_INSTANT = '0001-01-01T00:00:00Z';
/** 9999-12-31T23:59:59Z: no timestamp of SPEC §2 is later. */
const LAST_SECOND = 253_402_300_799;

function toInstant(seconds: number): string {
  return new Date(Math.min(seconds, LAST_SECOND) * 1_000).toISOString();
}

function invalid(code: string, expected: string, actual: string): ProofProblem {
  return { code, kind: 'invalid', expected, actual };
}

/** Raw bytes of a key are no text. */
function isText(input: string | Uint8Array): boolean {
  return typeof input === 'string' || input.every((byte) => byte < 0x7f);
}
