/**
 * Which signatures on a checkpoint's note count, and whether they are enough (SPEC §6, §7): for the checkpoints of a ledger, those that the
 * user holds, those that are appended, and proofs.
 */

import type { Fault } from '../../base/fault.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import type { SignedCheckpoint } from '../../format/note/checkpoint.js';
import {
  canBeLogKey,
  canBeWitnessKey,
  formatNoteKey,
  isSignedBy,
  type NoteKey,
  verifyNoteSignature,
} from '../../format/note/note-key.js';
import type { NoteSignature } from '../../format/note/signed-note.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import type { SignatureBackend } from '../../format/signature/backend.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import type { EntitlementProblem, Keyring, RingKey } from './keyring.js';
import {
  describeQuorum,
  meetsQuorum,
  namesLogs,
  type WitnessPolicy,
  witnessPolicyKeys,
  type WitnessPolicyKeys,
} from './witness-policy.js';

export type CheckpointRole = 'log' | 'witness';

/** Where a key comes from: a policy of the user, an option of the user, or only the ledger. */
type KeySource = 'trust-policy' | 'witness-policy' | 'given' | 'ledger';

/** A signer whose signature on a checkpoint counts. Plain data. */
export interface CheckpointSigner {
  readonly role: CheckpointRole;
  readonly source: KeySource;
  readonly keyid: string;
  /** The name under which it signed: the log's origin, or the witness's own. */
  readonly name: string;
}

/** The signers that count, each once. A key may have several sources. */
export type CheckpointSigners = readonly CheckpointSigner[];

/** A key that may have signed a note. */
export interface KnownNoteKey {
  readonly key: NoteKey;
  readonly role: CheckpointRole;
  readonly source: KeySource;
}

/** A valid signature, to check whether its key is entitled. */
export interface ValidNoteSignature extends KnownNoteKey {
  /** The key's entry in the keyring; undefined for a key that only the user names. */
  readonly entry: RingKey | undefined;
  /** Seconds since 1970; null without a time. Logs may state one too, so it does not show the role. */
  readonly timestamp: number | null;
}

export interface NoteVerdict {
  readonly signers: CheckpointSigners;
  readonly counted: readonly ValidNoteSignature[];
  /**
   * Signatures that do not verify, then valid ones by keys that were not entitled: one for each key and code. Warnings where harmless.
   * The caller adds pointers.
   */
  readonly problems: readonly RuleFinding[];
  /** How many signature lines are by unknown keys. */
  readonly unknown: number;
}

/** Options of {@link judgeCheckpointNote}. */
interface NoteJudgeOptions {
  readonly keyring: Keyring;
  readonly requirements: CheckpointRequirements;
  /** Keys that the user names, beside the policies. */
  readonly given?: readonly KnownNoteKey[];
  /** Why a key may not make its valid signature, or `undefined` when it may. */
  readonly findProblem: (signature: ValidNoteSignature) => EntitlementProblem | undefined;
}

/**
 * Judges the signatures of a checkpoint's note. Lines by unknown keys are ignored, and so are cosignatures with the time 0 or by a key
 * that is pinned for the log.
 */
export function judgeCheckpointNote(
  note: SignedCheckpoint,
  { keyring, requirements, given = [], findProblem }: NoteJudgeOptions,
): NoteVerdict {
  const { origin } = note.checkpoint;
  const known = [
    ...ringKeys(keyring, requirements, note),
    ...given,
    ...requirements.witnessPolicyKeys(origin, note.signatures),
  ];
  const countsForLog = (keyid: string): boolean =>
    requirements.pinsForLog(keyid, origin) ||
    given.some(({ key, role }) => role === 'log' && key.publicKey.keyid === keyid);
  const counted: ValidNoteSignature[] = [];
  const wrong = new Map<string, RuleFinding>();
  const doubts = new Map<string, RuleFinding>();
  let unknown = 0;
  for (const line of note.signatures) {
    const { isNamed, valid, invalid } = verifyLine(note.text, line, known);
    if (!isNamed) unknown += 1;
    for (const key of invalid) {
      const expected = `a signature of this text by ${key.name}+${key.keyId}`;
      const { keyid } = key.publicKey;
      if (!wrong.has(keyid))
        wrong.set(keyid, { code: 'CHECKPOINT_SIGNATURE_INVALID', expected, actual: 'another one' });
    }
    for (const each of valid) {
      const { keyid } = each.key.publicKey;
      if (each.role === 'witness' && (each.timestamp === 0 || countsForLog(keyid))) continue;
      const signature = { ...each, entry: keyring.find(keyid) };
      const problem = findProblem(signature);
      if (problem === undefined) counted.push(signature);
      else if (!doubts.has(`${keyid} ${problem.code}`)) doubts.set(`${keyid} ${problem.code}`, problem);
    }
  }
  const signers = toSigners(counted);
  const isSigned = isSignedByLog(signers);
  const problems = [...doubts.values()].map((doubt): RuleFinding =>
    isSigned ? { ...doubt, severity: 'warning' } : doubt,
  );
  return { signers, counted, problems: [...wrong.values(), ...problems], unknown };
}

/** Whether the log itself signed. */
export function isSignedByLog(signers: CheckpointSigners): boolean {
  return signers.some(({ role }) => role === 'log');
}

/** Whether the user pins or names the signer: it is then more than the ledger's own claim. */
export function isPinned({ source }: CheckpointSigner): boolean {
  return source !== 'ledger';
}

/** The union; `a` itself if `b` adds none. */
export function mergeSigners(a: CheckpointSigners, b: CheckpointSigners): CheckpointSigners {
  const names = new Set(a.map(nameOf));
  const news = b.filter((signer) => !names.has(nameOf(signer)));
  return news.length === 0 ? a : [...a, ...news];
}

/** Whether both are the same, in any order. */
export function sameSigners(a: CheckpointSigners, b: CheckpointSigners): boolean {
  return a.length === b.length && mergeSigners(a, b) === a;
}

/** Each key once per role, the log's first; as pinned if it is. */
export function listSigners(signers: CheckpointSigners): CheckpointSigner[] {
  const byKey = new Map<string, CheckpointSigner>();
  for (const signer of signers) {
    const key = `${signer.role} ${signer.keyid}`;
    const before = byKey.get(key);
    if (before === undefined || (!isPinned(before) && isPinned(signer))) byKey.set(key, signer);
  }
  const all = [...byKey.values()];
  return [...all.filter(({ role }) => role === 'log'), ...all.filter(({ role }) => role === 'witness')];
}

/** The role of a key with this name and type for the checkpoints of an origin; undefined for none. */
export function checkpointRoleOf(key: NoteKey, origin: string): CheckpointRole | undefined {
  if (canBeLogKey(key) && key.name === origin) return 'log';
  return canBeWitnessKey(key) ? 'witness' : undefined;
}

/** A requirement that a checkpoint does not meet. */
export type UnmetRequirement = Fault<'CHECKPOINT_MISSING' | 'WITNESS_QUORUM'>;

/** The keys that the user's policies pin for checkpoints, and their requirements. */
export class CheckpointRequirements {
  readonly #witnessPolicy: WitnessPolicy | undefined;
  readonly #witnessKeys: WitnessPolicyKeys;
  readonly #quorum: number;
  readonly #threshold: number;
  readonly #pinned: ReadonlySet<string>;
  readonly #pinnedForLog: ReadonlySet<string>;
  /** The keys of the witness policy, by name and key ID. */
  readonly #byLine = new Map<string, KnownNoteKey[]>();

  constructor(
    policy: TrustPolicy | undefined,
    witnessPolicy: WitnessPolicy | undefined,
    backend: SignatureBackend = defaultBackend,
  ) {
    const { checkpoint_quorum: quorum = 0, witness_threshold: threshold = 0 } = policy?.require ?? {};
    const keys = policy?.keys ?? [];
    this.#witnessPolicy = witnessPolicy;
    this.#witnessKeys =
      witnessPolicy === undefined ? { logs: [], witnesses: [] } : witnessPolicyKeys(witnessPolicy, backend);
    this.#quorum = quorum;
    this.#threshold = threshold;
    this.#pinned = new Set(keys.map(({ keyid }) => keyid));
    this.#pinnedForLog = new Set(
      keys.filter(({ roles }) => roles.includes('checkpoint')).map(({ keyid }) => keyid),
    );
    const { logs, witnesses } = this.#witnessKeys;
    for (const key of logs) this.#enter(key, 'log');
    for (const key of witnesses) this.#enter(key, 'witness');
  }

  #enter(key: NoteKey, role: CheckpointRole): void {
    const name = lineName(key);
    this.#byLine.set(name, [...(this.#byLine.get(name) ?? []), { key, role, source: 'witness-policy' }]);
  }

  sourceOf(keyid: string): KeySource {
    return this.#pinned.has(keyid) ? 'trust-policy' : 'ledger';
  }

  /** Whether a policy pins the key for the log of that origin. It is then no witness. */
  pinsForLog(keyid: string, origin: string): boolean {
    const { logs } = this.#witnessKeys;
    return (
      this.#pinnedForLog.has(keyid) ||
      logs.some(({ name, publicKey }) => name === origin && publicKey.keyid === keyid)
    );
  }

  /** The keys of the witness policy that these lines name. */
  witnessPolicyKeys(origin: string, lines: readonly NoteSignature[]): KnownNoteKey[] {
    const named = new Set(lines.flatMap((line) => this.#byLine.get(lineName(line)) ?? []));
    return [...named].filter(({ key, role }) => role === 'witness' || key.name === origin);
  }

  /** The missing signatures of the log: a quorum of pinned keys, one of the witness policy's logs. */
  findMissingLogKeys(signers: CheckpointSigners): UnmetRequirement | undefined {
    const logs = signers.filter(({ role }) => role === 'log');
    const count = new Set(logs.filter(isOfTrustPolicy).map(({ keyid }) => keyid)).size;
    const policy = this.#witnessPolicy;
    const hasLog =
      policy === undefined || !namesLogs(policy) || logs.some(({ source }) => source === 'witness-policy');
    if (count >= this.#quorum && hasLog) return undefined;
    const expected: string[] = [];
    const actual: string[] = [];
    if (count < this.#quorum) {
      expected.push(`signatures by ${this.#quorum} of the trust policy's keys with the role checkpoint`);
      actual.push(`${count}`);
    }
    if (!hasLog) {
      const skipped = (policy.skipped ?? []).flatMap(({ role, name }) => (role === 'log' ? [name] : []));
      const names = new Set([...this.#witnessKeys.logs.map(({ name }) => name), ...skipped]);
      expected.push(`a signature by a log of the witness policy, ${[...names].join(' or ')}`);
      actual.push('none');
    }
    return { code: 'CHECKPOINT_MISSING', expected: expected.join('; '), actual: actual.join('; ') };
  }

  findMissingWitnesses(signers: CheckpointSigners): UnmetRequirement | undefined {
    const witnesses = signers.filter(({ role }) => role === 'witness');
    // Several keys under one name are one witness.
    const count = new Set(witnesses.filter(isOfTrustPolicy).map(({ name }) => name)).size;
    const { policy, cosigned } = this.#cosignedOfPolicy(witnesses);
    const isMet = policy === undefined || meetsQuorum(policy, (name) => cosigned.includes(name));
    if (count >= this.#threshold && isMet) return undefined;
    const expected: string[] = [];
    const actual: string[] = [];
    if (count < this.#threshold) {
      expected.push(`cosignatures by ${this.#threshold} of the trust policy's witnesses`);
      actual.push(`${count}`);
    }
    if (!isMet) {
      expected.push(`cosignatures by ${describeQuorum(policy)}`);
      actual.push(cosigned.join(', ') || 'none');
    }
    return { code: 'WITNESS_QUORUM', expected: expected.join('; '), actual: actual.join('; ') };
  }

  /** The names, in the witness policy, of the witnesses that cosigned. */
  #cosignedOfPolicy(witnesses: CheckpointSigners): {
    readonly policy: WitnessPolicy | undefined;
    readonly cosigned: readonly string[];
  } {
    const policy = this.#witnessPolicy;
    const ofPolicy = witnesses.filter(({ source }) => source === 'witness-policy');
    const cosigned = (policy?.witnesses ?? []).filter((_, index) => {
      const key = this.#witnessKeys.witnesses[index] as NoteKey;
      return ofPolicy.some(({ keyid, name }) => keyid === key.publicKey.keyid && name === key.name);
    });
    return { policy, cosigned: cosigned.map(({ name }) => name) };
  }
}

/** How a signature line names its key. A name has no spaces. */
function lineName({ name, keyId }: Pick<NoteSignature, 'name' | 'keyId'>): string {
  return `${keyId} ${name}`;
}

function isOfTrustPolicy({ source }: CheckpointSigner): boolean {
  return source === 'trust-policy';
}

/** The keys of the ring that lines of the note name. */
function ringKeys(
  keyring: Keyring,
  requirements: CheckpointRequirements,
  { checkpoint: { origin }, signatures }: SignedCheckpoint,
): KnownNoteKey[] {
  const keys = keyring.findNoteKeys(origin, signatures);
  return keys.map((key) => ({ key, role: key.as, source: requirements.sourceOf(key.keyid) }));
}

/**
 * Finds which of the keys that a line names made it. Key IDs are short, so two keys may share one: the line is by the one that verifies it,
 * and invalid for each if none does.
 */
function verifyLine(
  text: string,
  line: NoteSignature,
  known: readonly KnownNoteKey[],
): {
  readonly isNamed: boolean;
  readonly valid: readonly (KnownNoteKey & { readonly timestamp: number | null })[];
  readonly invalid: readonly NoteKey[];
} {
  const named = known.filter(({ key }) => isSignedBy(line, key));
  const results = new Map<string, ReturnType<typeof verifyNoteSignature>>();
  for (const { key } of named) {
    const { keyid } = key.publicKey;
    if (!results.has(keyid)) results.set(keyid, verifyNoteSignature(text, line, key));
  }
  const valid = named.flatMap((each) => {
    const result = results.get(each.key.publicKey.keyid);
    return result === undefined ? [] : [{ ...each, timestamp: result.timestamp }];
  });
  return {
    isNamed: named.length > 0,
    valid,
    invalid: valid.length > 0 ? [] : named.map(({ key }) => key),
  };
}

function toSigners(counted: readonly ValidNoteSignature[]): CheckpointSigner[] {
  const signers = counted.map(({ key, role, source }) => ({
    role,
    source,
    keyid: key.publicKey.keyid,
    name: key.name,
  }));
  return [...new Map(signers.map((signer) => [nameOf(signer), signer])).values()];
}

function nameOf({ role, source, keyid, name }: CheckpointSigner): string {
  return `${role} ${source} ${keyid} ${name}`;
}

/** The vkeys of the signers that count: the log's, each once, and the witnesses', each with its latest time. */
export function listVkeys(counted: readonly ValidNoteSignature[]): {
  readonly log: string[];
  readonly witnesses: { vkey: string; timestamp: number }[];
} {
  const log = new Set<string>();
  const witnesses = new Map<string, number>();
  for (const { key, role, timestamp } of counted) {
    const vkey = formatNoteKey(key);
    if (role === 'log') log.add(vkey);
    else witnesses.set(vkey, Math.max(timestamp ?? 0, witnesses.get(vkey) ?? 0));
  }
  return {
    log: [...log],
    witnesses: [...witnesses].map(([vkey, timestamp]) => ({ vkey, timestamp })),
  };
}
