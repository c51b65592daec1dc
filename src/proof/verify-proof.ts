/**
 * Verifies a tlog-proof offline (https://c2sp.org/tlog-proof, SPEC §6): that a known log committed to an entry, which the file carries or the
 * caller gives. Pure: no files, no clock.
 *
 * Checks the file's form, the checkpoint's note, origin and signatures, and the inclusion proof; of an entry that is a record also the
 * record and the signatures of its event. All problems are reported, not only the first.
 */

import { tryDecodeBase64url } from '../base/bytes/encoding.js';
import { sha256Base64url } from '../base/bytes/sha256.js';
import { decodeLatin1, decodeUtf8 } from '../base/bytes/text.js';
import type { JsonObject } from '../base/json/value.js';
import { checkOptions } from '../base/options.js';
import { toDigestText } from '../base/value/digest.js';
import { type Checkpoint, decodeCheckpoint } from '../format/note/checkpoint.js';
import { type ExaminedLine, examineLine, type WellFormedLine } from '../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../format/record/line-splitter.js';
import { eventMessage, isValidSignature } from '../format/signature/event-signature.js';
import { hashToBase64url, leafHash } from '../format/tree/compact-range.js';
import { verifyInclusion } from '../format/tree/proof.js';
import {
  type CheckpointSigners,
  PROOF_TRUST,
  ProofKeyring,
  type ProofProblem,
  type ProofTrust,
  toProblem,
} from './proof-keys.js';
import { decodeTlogProof, type TlogProof } from './tlog-proof.js';

/** `ok`: proven. `invalid`: broken. `undecided`: neither. */
export type ProofVerdict = 'ok' | 'invalid' | 'undecided';

export interface StatedTree {
  readonly tree_size: number;
  /** `sha-256:…` */
  readonly root: string;
}

/** One signature of the event. `code` says why it is invalid, or does not count. */
export interface ProofEventSignature {
  readonly keyid: string;
  readonly result: 'valid' | 'invalid' | 'unverified';
  readonly code?: string;
}

/** What a verification of a proof leaves open. */
export interface ProofGap {
  readonly code: string;
  readonly message: string;
}

/** The common members of all results, in their wire form. */
export interface ProofOutcome {
  readonly verdict: ProofVerdict;
  /** 0 ok, 1 invalid, 2 undecided. */
  readonly exit_status: 0 | 1 | 2;
  readonly problems: readonly ProofProblem[];
  readonly not_checked: readonly ProofGap[];
}

export interface ProofEntry {
  /** `record`: a record of a ledger, well-formed or not. `bytes`: anything else. */
  readonly kind: 'record' | 'bytes';
  readonly size_bytes: number;
  /** `sha-256:…` of its bytes. */
  readonly digest: string;
}

/** The result in its wire form. Members of this type repeat what the file says, proven only if the verdict is `ok`. */
export interface ProofResult extends ProofOutcome {
  readonly origin: string | null;
  readonly index: number | null;
  readonly entry: ProofEntry | null;
  readonly tree: StatedTree | null;
  /** `sha-256:…` */
  readonly event_id: string | null;
  /** The event of a record; null for other entries. */
  readonly event: JsonObject | null;
  readonly event_signatures: readonly ProofEventSignature[];
  readonly checkpoint_signers: CheckpointSigners;
}

export const NO_SIGNERS: CheckpointSigners = { log: [], witnesses: [], unverified: 0 };

export const MAX_ENTRY_BYTES = 1024 * 1024;

export interface VerifyProofOptions {
  /**
   * The entry, for a proof that does not carry it: at most {@link MAX_ENTRY_BYTES}. A final newline is dropped if the proof only fits
   * without it.
   */
  readonly entry?: Uint8Array | undefined;
}

/**
 * Checks the arguments of a verification.
 *
 * @returns the given entry
 * @throws TypeError naming `where` for an option that is not known or of the wrong type
 * @throws RangeError when the given entry is larger than {@link MAX_ENTRY_BYTES}
 */
export function checkProofCall(
  where: string,
  trust: ProofTrust,
  options: VerifyProofOptions,
): Uint8Array | undefined {
  checkOptions(where, options, { entry: 'bytes' });
  checkOptions(`${where}: trust`, trust, PROOF_TRUST);
  const { entry } = options;
  if (entry !== undefined && entry.length > MAX_ENTRY_BYTES)
    throw new RangeError(`expected an entry of at most ${MAX_ENTRY_BYTES} bytes`);
  return entry;
}

/**
 * Verifies a tlog-proof file of any log. If the entry is not a record (`entry.kind`, `NOT_A_RECORD` in `not_checked`), the result proves
 * only that the log has these bytes.
 *
 * @param bytes - The file. The result reports faults with the codes `PROOF_MALFORMED`, `NOTE_MALFORMED`,
 *   `ORIGIN_MISMATCH`, `CHECKPOINT_SIGNATURE_INVALID`, `CHECKPOINT_MISSING`, `KEY_UNKNOWN`, `KEY_NOT_…`, `WITNESS_QUORUM`,
 *   `ENTRY_MISSING` (undecided), `PROOF_INVALID`, and those of SPEC §8 for the record and its signatures.
 * @param trust - The result is `ok` only if a known key of the log signed.
 * @throws TypeError for an option that is not known or of the wrong type
 * @throws RangeError when the given entry is larger than {@link MAX_ENTRY_BYTES}
 * @example
 * verifyProof(await readFile('event.tlog-proof'), { keys: [parseProofKey('example.com/log+530d903a+Aeky…')] }).verdict;
 */
export function verifyProof(
  bytes: Uint8Array,
  trust: ProofTrust,
  options: VerifyProofOptions = {},
): ProofResult {
  const given = checkProofCall('verifyProof', trust, options);
  const decoded = decodeTlogProof(bytes);
  if (!decoded.ok) return conclude([toProblem(decoded.fault)], {});
  const proof = decoded.value;
  const { index } = proof;
  const signed = decodeCheckpoint(proof.note);
  const entry =
    given === undefined
      ? proof.extra
      : chooseEntry(proof, given, signed.ok ? signed.value.checkpoint : undefined);
  const keyring = new ProofKeyring(trust);
  const examined = entry && examineEntry(entry, index);
  const { problems = [], instant } = examined ?? {};
  const known = { index, ...examined?.known };
  if (!signed.ok) return conclude([toProblem(signed.fault), ...problems], known);
  const { checkpoint } = signed.value;
  const judged = keyring.judgeCheckpoint(signed.value, instant);
  const signatures = examined === undefined ? [] : judgeEntry(examined, keyring);
  const inclusion = entry === undefined ? [ENTRY_MISSING] : checkInclusion(proof, entry, checkpoint);
  return conclude([...judged.problems, ...inclusion, ...problems], {
    ...known,
    origin: checkpoint.origin,
    tree: { tree_size: checkpoint.size, root: toDigestText(hashToBase64url(checkpoint.root)) },
    event_signatures: signatures,
    checkpoint_signers: judged.signers,
    not_checked: listGaps(examined, signatures, judged.signers, listAgeGap(trust)),
  });
}

export const ENTRY_MISSING: ProofProblem = {
  code: 'ENTRY_MISSING',
  kind: 'undecided',
  expected: 'the entry, as extra data of the proof or beside it',
  actual: 'none',
};

const NOT_A_RECORD: ProofGap = {
  code: 'NOT_A_RECORD',
  message:
    'the entry is not a record as ledgers here have them: only that the log has these bytes was verified',
};

/** A final newline of the file is not part of the entry, if the proof fits without it. */
function chooseEntry(proof: TlogProof, given: Uint8Array, checkpoint: Checkpoint | undefined): Uint8Array {
  if (checkpoint === undefined || given.at(-1) !== NEWLINE) return given;
  const line = given.subarray(0, -1);
  return checkInclusion(proof, line, checkpoint).length === 0 ? line : given;
}

export const NEWLINE = 0x0a;

/** Whether to judge an entry as a record: it has the members of one, or is unreadable and begins like one. Broken records count. */
function claimsToBeRecord(entry: Uint8Array): boolean {
  if (entry.length > MAX_LINE_BYTES) return startsAsRecord(entry);
  let value: unknown;
  try {
    value = JSON.parse(decodeUtf8(entry));
  } catch {
    return startsAsRecord(entry);
  }
  return (
    typeof value === 'object' &&
    value !== null &&
    'event' in value &&
    ['prev', 'seq', 'signatures'].some((member) => member in value)
  );
}

const RECORD_START = '{"event":{';

function startsAsRecord(entry: Uint8Array): boolean {
  return decodeLatin1(entry.subarray(0, RECORD_START.length)) === RECORD_START;
}

export function verdictOf(problems: readonly ProofProblem[]): {
  readonly verdict: ProofVerdict;
  readonly exit_status: 0 | 1 | 2;
} {
  if (problems.some(({ kind }) => kind === 'invalid')) return { verdict: 'invalid', exit_status: 1 };
  return problems.length > 0 ? { verdict: 'undecided', exit_status: 2 } : { verdict: 'ok', exit_status: 0 };
}

export const NO_WITNESS: ProofGap = {
  code: 'WITNESSES',
  message: 'no known witness cosigned the checkpoint: the log could show others another history',
};

/** A note has no date of its own. */
export function listAgeGap({ policy }: ProofTrust): ProofGap[] {
  if (policy?.require?.checkpoint_max_age_seconds === undefined) return [];
  return [
    {
      code: 'CHECKPOINT_AGE',
      message: 'how old the checkpoint is, which your trust policy bounds: its note has no date',
    },
  ];
}

/** What results say of an entry before anything is known of it. */
export const NOTHING_KNOWN = {
  not_checked: [],
  origin: null,
  index: null,
  entry: null,
  tree: null,
  event_id: null,
  event: null,
  event_signatures: [],
} as const;

function conclude(problems: readonly ProofProblem[], known: Partial<ProofResult>): ProofResult {
  return {
    ...verdictOf(problems),
    problems,
    ...NOTHING_KNOWN,
    checkpoint_signers: NO_SIGNERS,
    ...known,
  };
}

function checkInclusion(
  { index, hashes }: TlogProof,
  line: Uint8Array,
  { size, root }: { readonly size: number; readonly root: string },
): ProofProblem[] {
  if (verifyInclusion({ index, size, leafHash: leafHash(line), root, proof: hashes })) return [];
  const expected = `a proof of entry ${index} in the tree of ${size} with the root of the checkpoint`;
  return [{ code: 'PROOF_INVALID', kind: 'invalid', expected, actual: 'another' }];
}

/** An entry by itself, without its signatures. */
export interface ExaminedEntry {
  readonly entry: Uint8Array;
  readonly isRecord: boolean;
  /** Undefined for other entries, and for a record that is too long. */
  readonly record: ExaminedLine | undefined;
  readonly known: Pick<ProofResult, 'entry' | 'event' | 'event_id'>;
  /** When the event of a well-formed record occurred. */
  readonly instant: string | undefined;
  readonly problems: ProofProblem[];
}

export function examineEntry(entry: Uint8Array, index: number): ExaminedEntry {
  const problems: ProofProblem[] = [];
  const isRecord = claimsToBeRecord(entry);
  const record = isRecord ? examineRecord(entry, index, problems) : undefined;
  return {
    entry,
    isRecord,
    record,
    known: {
      entry: {
        kind: isRecord ? 'record' : 'bytes',
        size_bytes: entry.length,
        digest: toDigestText(sha256Base64url(entry)),
      },
      event: record?.json() ?? null,
      event_id: record?.eventId === undefined ? null : toDigestText(record.eventId),
    },
    instant: record?.wellFormed === true ? record.occurredAt : undefined,
    problems,
  };
}

/** Reports the faults of a record; undefined if it is too long. */
function examineRecord(line: Uint8Array, index: number, problems: ProofProblem[]): ExaminedLine | undefined {
  if (line.length > MAX_LINE_BYTES) {
    const expected = `a record of at most ${MAX_LINE_BYTES} bytes`;
    problems.push(toProblem({ code: 'LINE_TOO_LONG', expected, actual: `${line.length}` }));
    return undefined;
  }
  const record = examineLine(line, 'records');
  for (const { code, pointer, expected, actual } of record.faults) {
    const where = pointer === '' ? '' : ` at ${pointer}`;
    problems.push(toProblem({ code, expected: `${expected}${where}`, actual }));
  }
  if (record.seq !== undefined && record.seq !== index)
    problems.push(toProblem({ code: 'SEQ_GAP', expected: `seq ${index}`, actual: `seq ${record.seq}` }));
  return record;
}

/** Judges the signatures of an entry's event by the rules of ledgers, and adds their problems. */
export function judgeEntry(examined: ExaminedEntry, keyring: ProofKeyring): ProofEventSignature[] {
  const { entry, isRecord, record, problems } = examined;
  if (!isRecord && keyring.requiresEventSignatures) {
    const expected = 'a record with a signature of its event by a key of the trust policy';
    problems.push(toProblem({ code: 'SIGNATURE_MISSING', expected, actual: 'an entry that is no record' }));
  }
  return record?.wellFormed === true ? judgeEvent(record, entry, keyring, problems) : [];
}

/** Base64url of 64 bytes. */
const MAX_SIGNATURE_LENGTH = 86;

function judgeEvent(
  record: WellFormedLine,
  line: Uint8Array,
  keyring: ProofKeyring,
  problems: ProofProblem[],
): ProofEventSignature[] {
  const { span, signatures = [], occurredAt } = record;
  const event = record.event();
  const message = eventMessage(line.subarray(span.start, span.end));
  const doubts: ProofProblem[] = [];
  const judged = signatures.map(({ keyid, sig }): ProofEventSignature => {
    const key = keyring.findEventKey(keyid, event, occurredAt);
    if (key === undefined) return { keyid, result: 'unverified' };
    if (!isValidSignature(message, sig, key.verification)) {
      const code = 'SIGNATURE_INVALID';
      const isAssertion = key.passkey === undefined && sig.length > MAX_SIGNATURE_LENGTH;
      const fault = key.passkey?.explain(message, tryDecodeBase64url(sig) ?? new Uint8Array());
      const expected = `a signature by ${keyid}`;
      const actual = isAssertion ? 'an assertion of a passkey, for which a plain key is given' : sig;
      problems.push(toProblem({ code, expected, actual, ...fault }));
      return { keyid, result: 'invalid', code };
    }
    if (key.problem === undefined) return { keyid, result: 'valid' };
    doubts.push(toProblem(key.problem));
    return { keyid, result: 'invalid', code: key.problem.code };
  });
  // A signature by a key that is not entitled is harmless beside one that counts.
  if (judged.some(({ result }) => result === 'valid')) return judged;
  problems.push(...doubts);
  const isUnsigned = judged.length === 0;
  const demands = isUnsigned ? keyring.mustBeSigned(event) : keyring.requiresEventSignatures;
  if (demands && judged.every(({ result }) => result === 'unverified')) {
    const code = isUnsigned ? 'SIGNATURE_MISSING' : 'KEY_UNKNOWN';
    const expected = 'a signature of the event by a key of the trust policy';
    problems.push(toProblem({ code, expected, actual: `${judged.length} by unknown keys` }));
  }
  return judged;
}

/** What a proof leaves open. @param others - What its format and the policy add */
export function listGaps(
  examined: ExaminedEntry | undefined,
  signatures: readonly ProofEventSignature[],
  signers: CheckpointSigners,
  others: readonly ProofGap[],
): ProofGap[] {
  const gaps = [...(examined?.isRecord === false ? [NOT_A_RECORD] : []), ...others];
  const unverified = signatures.filter(({ result }) => result === 'unverified').length;
  if (unverified > 0) {
    const message = `signatures of the event by unknown keys, which could not be checked: ${unverified}`;
    gaps.push({ code: 'SIGNATURES_UNVERIFIED', message });
  }
  if (examined?.record !== undefined && signatures.length === 0)
    gaps.push({
      code: 'SIGNATURES_MISSING',
      message: 'the event has no signature: only the log vouches for it',
    });
  if (signers.witnesses.length === 0) gaps.push(NO_WITNESS);
  gaps.push({
    code: 'LEDGER',
    message:
      'nothing is said of other records: whether the event kept its bounds, or whether a key, a grant or an approval was taken back, only the ledger tells',
  });
  return gaps;
}
