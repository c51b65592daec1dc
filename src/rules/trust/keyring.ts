/**
 * The keys of a ledger, and what each may sign (SPEC §7), for verifying and appending.
 */

import type { Fault, ValueFault } from '../../base/fault.js';
import { coversPrincipal, makePrincipalSet, type PrincipalSet } from '../../base/value/principal-set.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { RelatedRecord } from '../../format/finding/finding.js';
import type { PublicKey } from '../../format/key/public-key.js';
import { isKeyName } from '../../format/key/vkey.js';
import { decodeWireKey } from '../../format/key/wire-key.js';
import { makeNoteKey, type NoteKey } from '../../format/note/note-key.js';
import type { NoteSignature } from '../../format/note/signed-note.js';
import type { Key } from '../../format/schema/generated/types.js';
import type { SignatureBackend, VerificationKey } from '../../format/signature/backend.js';
import { importPasskey, type PasskeyVerification } from '../../format/signature/passkey.js';
import { admitsKey, type Entitlement, type Role, type SigningRule } from './authority.js';

/** The principal patterns of a key. There may be thousands: they are prepared and formatted once. */
interface KeyPatterns {
  readonly set: PrincipalSet;
  /** All of them, as text for findings. */
  readonly words: string;
}

/** A key with its backend's prepared form. */
export interface RingKey {
  readonly key: Key;
  readonly publicKey: PublicKey;
  readonly verification: VerificationKey;
  readonly passkey: PasskeyVerification | undefined;
  readonly patterns: KeyPatterns;
  /** Keyids of the signers that added it; undefined for a key of genesis or of a policy. */
  readonly addedBy: readonly string[] | undefined;
  readonly addedAt: RelatedRecord | undefined;
  readonly revokedBy: KeyRevocation | undefined;
}

/** The record that revoked a key, with its content. */
export interface KeyRevocation extends RelatedRecord {
  /** Keyids of its signers. */
  readonly signers?: readonly string[];
  /** At most 512 characters of the reason. */
  readonly reason?: string;
}

/** A key of the ring as a signer of notes: checkpoints under the log's name, or cosignatures under its own. */
interface RingNoteKey extends NoteKey {
  readonly keyid: string;
  /** The role: for ML-DSA-44 the type does not show it. */
  readonly as: 'log' | 'witness';
}

/** Why a key is not entitled to a signature. */
export interface EntitlementProblem extends Fault<
  'KEY_NOT_FOR_PRINCIPAL' | 'KEY_NOT_FOR_ROLE' | 'KEY_NOT_VALID_HERE'
> {
  readonly related?: readonly RelatedRecord[];
}

/** A key entry, the record that added it with its signers, and the record that revoked it. */
export interface SavedKey {
  readonly key: Key;
  /** Undefined for a key of genesis or of a policy. */
  readonly addedBy: readonly string[] | undefined;
  readonly addedAt: RelatedRecord | undefined;
  readonly revokedBy: KeyRevocation | undefined;
}

/** A key as a signer of notes, by name and key ID. */
export interface NoteLine {
  readonly keyid: string;
  readonly as: RingNoteKey['as'];
}

/** Saved keys, each read on request. */
export interface KeySource {
  readonly size: number;
  readonly hasAuthority: boolean;
  get(keyid: string): SavedKey | undefined;
  /** The keyid of the key with this number. */
  at(index: number): string;
  /** The number of a key that it has. */
  indexOf(keyid: string): number;
  /** The lines of `origin` alone are known. */
  readonly origin: string | undefined;
  findLine(line: string): NoteLine | undefined;
}

/** A key that was added or revoked since the last save. */
interface ChangedKey {
  /** How many were added before it. */
  readonly index: number;
  readonly saved: SavedKey;
}

/** The keys known at one position of a ledger, by keyid. */
export class Keyring {
  readonly #keys = new Map<string, RingKey>();
  readonly #backend: SignatureBackend;
  readonly #source: KeySource | undefined;
  readonly #changed = new Map<string, number>();
  /** Whether every key of the source was read. */
  #isWhole: boolean;
  #size: number;
  #hasAuthority: boolean;
  #noteKeys: { readonly origin: string; readonly byLine: Map<string, RingNoteKey> } | undefined;
  #passkeys: string[] | undefined;

  /** @param source - The saved keys to begin with. */
  constructor(backend: SignatureBackend, source?: KeySource) {
    this.#backend = backend;
    this.#source = source;
    this.#isWhole = source === undefined;
    this.#size = source?.size ?? 0;
    this.#hasAuthority = source?.hasAuthority ?? false;
  }

  get size(): number {
    return this.#size;
  }

  /** The keys that were added or revoked since the ring was made, or since the last call. */
  takeChanges(): ChangedKey[] {
    const changed = [...this.#changed].map(([keyid, index]) => ({
      index,
      saved: toSaved(this.#keys.get(keyid) as RingKey),
    }));
    this.#changed.clear();
    return changed;
  }

  /**
   * Adds a well-formed key entry. @returns The problem, where it contradicts itself or the ring. Its pointer is from the entry.
   *
   * @param addedBy - Keyids of the signers that added it; none for a key of genesis or of a policy.
   * @param addedAt - The record that adds it.
   */
  add(key: Key, addedBy?: readonly string[], addedAt?: RelatedRecord): ValueFault<'SCHEMA'> | undefined {
    const decoded = decodeWireKey(key);
    if (!decoded.ok) return decoded.fault;
    const known = this.find(key.keyid);
    if (known !== undefined) {
      const actual = `${key.keyid} again${known.revokedBy === undefined ? '' : ', which was revoked'}`;
      return { code: 'SCHEMA', pointer: '/keyid', expected: 'each key once', actual };
    }
    const ringKey = this.#enter({ key, addedBy, addedAt, revokedBy: undefined }, decoded.value);
    if (this.#source !== undefined) this.#changed.set(key.keyid, this.#size);
    this.#size += 1;
    if (key.roles.includes('authority')) this.#hasAuthority = true;
    if (key.webauthn !== undefined) this.#passkeys?.push(key.keyid);
    if (this.#noteKeys !== undefined) enterNoteKeys(this.#noteKeys.byLine, this.#noteKeys.origin, ringKey);
    return undefined;
  }

  /** Whether some key of the ring has, or had before it was revoked, the role `authority` (SPEC §7). */
  get hasAuthority(): boolean {
    return this.#hasAuthority;
  }

  /** Revokes a key from here on. The first revocation counts. @returns False for an unknown key. */
  revoke(keyid: string, by: KeyRevocation): boolean {
    const known = this.find(keyid);
    if (known === undefined) return false;
    if (known.revokedBy !== undefined) return true;
    this.#keys.set(keyid, { ...known, revokedBy: by });
    if (this.#source !== undefined && !this.#changed.has(keyid))
      this.#changed.set(keyid, this.#source.indexOf(keyid));
    return true;
  }

  /** The entries as plain data, in order. */
  save(): SavedKey[] {
    return [...this.#listSaved()];
  }

  /** Adds entries from {@link Keyring.save}. */
  restore(saved: readonly SavedKey[]): void {
    for (const { key, addedBy, addedAt, revokedBy } of saved) {
      this.add(key, addedBy, addedAt);
      if (revokedBy !== undefined) this.revoke(key.keyid, revokedBy);
    }
  }

  /** The revoked keys, in the order in which they were added. */
  revoked(): SavedKey[] {
    return [...this.#listSaved()].filter(({ revokedBy }) => revokedBy !== undefined);
  }

  /** Keyids of the passkeys, revoked ones too, in order. All keys are read for the first call alone. */
  passkeys(): readonly string[] {
    this.#passkeys ??= [...this.#listSaved()].flatMap(({ key: { keyid, webauthn } }) =>
      webauthn ? keyid : [],
    );
    return this.#passkeys;
  }

  /** Keyids of given keys, and of keys added by one that is in this set and not revoked. */
  keysWithUnrevokedLineage(): Set<string> {
    const found = new Set<string>();
    const stands = (keyid: string): boolean => found.has(keyid);
    // A key is added after the one that adds it.
    for (const { key, addedBy, revokedBy } of this.#listSaved())
      if (revokedBy === undefined && (addedBy === undefined || addedBy.some(stands))) found.add(key.keyid);
    return found;
  }

  find(keyid: string): RingKey | undefined {
    const known = this.#keys.get(keyid);
    if (known !== undefined || this.#isWhole) return known;
    const saved = this.#source?.get(keyid);
    return saved && this.#restore(saved);
  }

  /**
   * The Ed25519 and ML-DSA-44 keys as signers of the checkpoints of `origin`, whatever their roles; and those with the role `witness` and
   * a name as cosigners under that name. For ML-DSA-44 both have the same key ID if the name is the origin: the key is then the log's,
   * unless it is only a witness.
   */
  noteKeys(origin: string): RingNoteKey[] {
    this.#readAll();
    return [...this.#noteKeysByLine(origin).values()];
  }

  /** The keys of {@link Keyring.noteKeys} that signature lines name. Fast for many keys. */
  findNoteKeys(origin: string, lines: readonly NoteSignature[]): RingNoteKey[] {
    if (!this.#isWhole && this.#source?.origin !== origin) this.#readAll();
    const byLine = this.#noteKeysByLine(origin);
    const found = lines.flatMap(({ name, keyId }) => {
      const line = lineName(name, keyId);
      return this.#restoreLine(line, origin) ?? byLine.get(line) ?? [];
    });
    return [...new Set(found)];
  }

  /** A line of the source's, which names its key before any that was added since. */
  #restoreLine(line: string, origin: string): RingNoteKey | undefined {
    const saved = this.#isWhole ? undefined : this.#source?.findLine(line);
    const ringKey = saved && this.find(saved.keyid);
    if (saved === undefined || ringKey === undefined) return undefined;
    return listNoteKeys(origin, ringKey).find(
      (each) => each.as === saved.as && lineName(each.name, each.keyId) === line,
    );
  }

  #enter(saved: SavedKey, publicKey: PublicKey): RingKey {
    const { principals, webauthn } = saved.key;
    const patterns = { set: makePrincipalSet(principals), words: principals.join(' or ') };
    const plain = this.#backend.importKey(publicKey);
    const passkey = webauthn === undefined ? undefined : importPasskey(webauthn, plain);
    const ringKey = { ...saved, publicKey, verification: passkey ?? plain, passkey, patterns };
    this.#keys.set(saved.key.keyid, ringKey);
    return ringKey;
  }

  #restore(saved: SavedKey): RingKey {
    const decoded = decodeWireKey(saved.key);
    if (!decoded.ok) throw new TypeError('a saved key is not usable');
    return this.#enter(saved, decoded.value);
  }

  /** In order. Without their prepared keys, which would be slow for many. */
  *#listSaved(): Generator<SavedKey, void, void> {
    const listed = new Set<string>();
    const { size } = (this.#isWhole ? undefined : this.#source) ?? { size: 0 };
    for (let index = 0; index < size; index += 1) {
      const keyid = this.#source?.at(index) as string;
      const known = this.#keys.get(keyid);
      const saved = known === undefined ? this.#source?.get(keyid) : toSaved(known);
      if (saved === undefined) continue;
      listed.add(keyid);
      yield saved;
    }
    for (const [keyid, known] of this.#keys) if (!listed.has(keyid)) yield toSaved(known);
  }

  #readAll(): void {
    if (this.#isWhole) return;
    const source = this.#source as KeySource;
    const since = [...this.#keys];
    const before = Array.from({ length: source.size }, (_, index) => this.find(source.at(index)));
    this.#keys.clear();
    for (const ringKey of before) if (ringKey !== undefined) this.#keys.set(ringKey.key.keyid, ringKey);
    for (const [keyid, ringKey] of since) this.#keys.set(keyid, ringKey);
    this.#isWhole = true;
    this.#noteKeys = undefined;
  }

  #noteKeysByLine(origin: string): ReadonlyMap<string, RingNoteKey> {
    if (this.#noteKeys?.origin !== origin) {
      this.#noteKeys = { origin, byLine: new Map() };
      for (const ringKey of this.#keys.values()) enterNoteKeys(this.#noteKeys.byLine, origin, ringKey);
    }
    return this.#noteKeys.byLine;
  }
}

function enterNoteKeys(byLine: Map<string, RingNoteKey>, origin: string, ringKey: RingKey): void {
  for (const noteKey of listNoteKeys(origin, ringKey)) {
    const line = lineName(noteKey.name, noteKey.keyId);
    if (!byLine.has(line)) byLine.set(line, noteKey);
  }
}

/** The names of a key as a signer of the notes of `origin`. */
export function listNoteLines(origin: string, ringKey: RingKey): (NoteLine & { readonly line: string })[] {
  return listNoteKeys(origin, ringKey).map(({ name, keyId, keyid, as }) => ({
    line: lineName(name, keyId),
    keyid,
    as,
  }));
}

function toSaved({ key, addedBy, addedAt, revokedBy }: RingKey): SavedKey {
  return { key, addedBy, addedAt, revokedBy };
}

function listNoteKeys(origin: string, ringKey: RingKey): RingNoteKey[] {
  const { key, publicKey, verification } = ringKey;
  const { alg } = publicKey;
  if (alg === 'p256' || key.webauthn !== undefined) return [];
  const { keyid, name, roles } = key;
  const noteKeys: RingNoteKey[] = [];
  const enter = (noteKey: NoteKey, as: 'log' | 'witness'): void => {
    noteKeys.push({ ...noteKey, keyid, as });
  };
  const isWitness = roles.includes('witness') && name !== undefined && isKeyName(name);
  const isOnlyWitness = isWitness && name === origin && alg === 'ml-dsa-44' && !roles.includes('checkpoint');
  if (isKeyName(origin) && !isOnlyWitness) enter(makeNoteKey(origin, publicKey, alg, verification), 'log');
  if (isWitness) {
    const type = alg === 'ml-dsa-44' ? 'ml-dsa-44' : 'cosignature';
    enter(makeNoteKey(name, publicKey, type, verification), 'witness');
  }
  return noteKeys;
}

/** How a signature line names its key. A name has no spaces. */
function lineName(name: string, keyId: string): string {
  return `${keyId} ${name}`;
}

/**
 * Why a key may not sign an event at its position, or `undefined` when it may.
 *
 * @param rule - From `signingRuleFor`.
 * @param instant - From `judgingInstant`.
 */
export function findEntitlementProblem(
  ringKey: RingKey,
  rule: SigningRule,
  instant: string,
): EntitlementProblem | undefined {
  const { anyOf } = rule;
  const { key, patterns } = ringKey;
  if (!admitsKey(key, rule)) {
    const expected = 'a key that signs more than approvals';
    return { code: 'KEY_NOT_FOR_ROLE', expected, actual: `a passkey of ${key.webauthn?.rp_id}` };
  }
  if (anyOf.some((each) => isEntitled(ringKey, each))) return findValidityProblem(ringKey, instant);
  const problem = findRoleProblem(ringKey, [...new Set(anyOf.map(({ role }) => role))]);
  if (problem !== undefined) return problem;
  const open = anyOf.find(({ role }) => key.roles.includes(role));
  return {
    code: 'KEY_NOT_FOR_PRINCIPAL',
    expected: patterns.words,
    actual: open?.principals.find((principal) => !coversPrincipal(patterns.set, principal)) ?? '',
  };
}

function isEntitled({ key, patterns }: RingKey, { role, principals }: Entitlement): boolean {
  return key.roles.includes(role) && principals.every((each) => coversPrincipal(patterns.set, each));
}

/** The roles by which an entitled key signs an event. */
export function listRolesUsed(ringKey: RingKey, { anyOf }: SigningRule): Role[] {
  const roles: Role[] = [];
  for (const each of anyOf)
    if (!roles.includes(each.role) && isEntitled(ringKey, each)) roles.push(each.role);
  return roles;
}

/** Why a key may not sign a checkpoint's note at a position, or `undefined` when it may. */
export function findCheckpointKeyProblem(ringKey: RingKey, instant: string): EntitlementProblem | undefined {
  return findRoleProblem(ringKey, ['checkpoint']) ?? findValidityProblem(ringKey, instant);
}

/** Why a key is not valid at a position, or `undefined` when it is. */
export function findValidityProblem(ringKey: RingKey, instant: string): EntitlementProblem | undefined {
  const { key } = ringKey;
  const code = 'KEY_NOT_VALID_HERE';
  const revocation = findRevocationProblem(ringKey, Infinity);
  if (revocation !== undefined) return revocation;
  if (key.valid_from !== undefined && compareTimestamps(instant, key.valid_from) < 0)
    return { code, expected: `not before ${key.valid_from}`, actual: instant };
  if (key.valid_until !== undefined && compareTimestamps(instant, key.valid_until) >= 0)
    return { code, expected: `before ${key.valid_until}`, actual: instant };
  return undefined;
}

/** Why a key may not sign for the first `size` records: one of them revoked it. */
export function findRevocationProblem(
  { key, revokedBy }: RingKey,
  size: number,
): EntitlementProblem | undefined {
  if (revokedBy === undefined || revokedBy.seq >= size) return undefined;
  const expected = `a signature before the key was revoked at seq ${revokedBy.seq}`;
  return {
    code: 'KEY_NOT_VALID_HERE',
    expected,
    actual: `one by ${key.keyid} after it`,
    related: [revokedBy],
  };
}

/** Why a key may not sign where one of these roles is required. */
export function findRoleProblem({ key }: RingKey, roles: readonly Role[]): EntitlementProblem | undefined {
  if (key.roles.some((role) => roles.includes(role))) return undefined;
  return { code: 'KEY_NOT_FOR_ROLE', expected: roles.join(' or '), actual: key.roles.join(', ') };
}
