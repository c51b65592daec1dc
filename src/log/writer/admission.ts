/**
 * Admission: refuses records that would not verify, by the rules on signatures, keys, checkpoints and links (SPEC §5, §6, §7) that
 * verification applies afterwards.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { toDigestText } from '../../base/value/digest.js';
import type { Finding } from '../../format/finding/finding.js';
import type { PublicKey } from '../../format/key/public-key.js';
import { decodeWireKey } from '../../format/key/wire-key.js';
import type { SignedCheckpoint } from '../../format/note/checkpoint.js';
import { MAX_ML_DSA_NAME_BYTES } from '../../format/note/note-key.js';
import type { NoteSignature } from '../../format/note/signed-note.js';
import type { SignatureEntry, WellFormedLine } from '../../format/record/examine-line.js';
import type { Key, KeyEvent } from '../../format/schema/generated/types.js';
import { eventMessage, isValidSignature } from '../../format/signature/event-signature.js';
import {
  CheckpointRequirements,
  judgeCheckpointNote,
  type NoteVerdict,
} from '../../rules/trust/checkpoint-judge.js';
import {
  findCheckpointKeyProblem,
  findEntitlementProblem,
  findValidityProblem,
} from '../../rules/trust/keyring.js';
import { judgingInstant, mustBeSigned } from '../../rules/trust/record-signing.js';
import { ruleFor } from '../../rules/verify/signatures.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { assertAttests, assertFits } from './checkpoint.js';
import type { RunningVerification } from './running-verification.js';

/** A writer applies the ledger's own rules, not policies. */
const NO_REQUIREMENTS = new CheckpointRequirements(undefined, undefined);

/** Judges new records by the running verification's keys, clock, grants and checkpoints. */
export class AdmissionRules {
  readonly #running: RunningVerification;

  /** @param running - Has a genesis; read at each call */
  constructor(running: RunningVerification) {
    this.#running = running;
  }

  get #state(): VerifyState {
    return this.#running.stateOfIds;
  }

  has({ eventId }: WellFormedLine): boolean {
    return this.#state.events.find(eventId) !== undefined;
  }

  /** @throws NorthrootError `PREV_EVENT_NOT_FOUND` */
  assertLinked({ previousId }: WellFormedLine): void {
    if (previousId === undefined || this.#state.events.find(previousId) !== undefined) return;
    const message = `prev_event_id ${toDigestText(previousId)} is not in the ledger`;
    throw new NorthrootError('PREV_EVENT_NOT_FOUND', message, {
      hint: 'append the event that it names first',
    });
  }

  /** Checks a given checkpoint or attestation against its place. @throws as `assertFits` and `assertAttests` */
  assertFits(line: WellFormedLine): void {
    if (line.type === 'checkpoint') {
      const { tip, genesis } = this.#running;
      const judge = (note: SignedCheckpoint): NoteVerdict => this.judgeNote(note, line.occurredAt);
      assertFits(tip, line.event(), genesis.origin, judge);
    }
    if (line.type === 'attestation')
      assertAttests(line.event(), (id) => {
        const checkpoint = this.#state.seals.known.get(id);
        return checkpoint && (checkpoint.textHash ?? null);
      });
  }

  /** Whether the event counts as signed by these signatures and one by `signer`. @throws NorthrootError with verification's code */
  check(
    line: WellFormedLine,
    eventBytes: Uint8Array,
    signatures: readonly SignatureEntry[],
    signer: PublicKey | undefined,
  ): void {
    const { keyring, signaturesRequired } = this.#state;
    const rule = ruleFor(this.#state, line);
    const { hasAuthority } = keyring;
    const { needsAuthority } = rule;
    const isKeyEvent = line.type === 'key';
    const required = mustBeSigned({ signaturesRequired, hasAuthority }, { isKeyEvent, needsAuthority });
    const instant = this.#instantOf(line.occurredAt);
    const keyids = [...signatures.map(({ keyid }) => keyid), ...(signer === undefined ? [] : [signer.keyid])];
    this.#assertValid(signatures, eventBytes);
    let doubt: NorthrootError | undefined;
    for (const keyid of keyids) {
      const known = keyring.find(keyid);
      const problem = known && findEntitlementProblem(known, rule, instant);
      if (known !== undefined && problem === undefined) return;
      if (problem !== undefined)
        doubt ??= refuse(problem.code, `key ${keyid}: expected ${problem.expected}, found ${problem.actual}`);
      else if (required) doubt ??= refuse('KEY_UNKNOWN', `key ${keyid} is not one that the ledger declares`);
    }
    if (keyids.length === 0 && required) {
      // A missing key is no evidence against a record.
      doubt = new NorthrootError(
        'SIGNATURE_MISSING',
        'the ledger requires every record to be signed, and there is no key',
        { hint: HINTS['SIGNATURE_MISSING'] },
      );
    }
    if (doubt !== undefined) throw doubt;
  }

  /** Whether a passkey signed. */
  isByPasskey(signatures: readonly SignatureEntry[]): boolean {
    return signatures.some(({ keyid }) => this.#state.keyring.find(keyid)?.passkey !== undefined);
  }

  /** Whether an event is bound to this ledger. @throws NorthrootError `LEDGER_MISMATCH`, `LEDGER_UNBOUND` */
  assertBound({ type, ledgerId: named }: WellFormedLine): void {
    const { ledgerId, bindingRequired } = this.#state;
    if (named === undefined) {
      if (!bindingRequired && type !== 'key') return;
      throw refuse(
        'LEDGER_UNBOUND',
        `the event does not say which ledger it is for: expected ledger_id ${ledgerId}`,
      );
    }
    if (named === ledgerId) return;
    throw refuse(
      'LEDGER_MISMATCH',
      `the event is for another ledger: expected ledger_id ${ledgerId}, found ${named}`,
    );
  }

  keys(): Key[] {
    const saved = this.#state.keyring.save();
    return saved.filter(({ revokedBy }) => revokedBy === undefined).map(({ key }) => key);
  }

  /** @throws NorthrootError `SCHEMA` for a known key, or an inconsistent entry */
  assertNewKey({ action, key }: KeyEvent): void {
    if (action !== 'add') return;
    const decoded = decodeWireKey(key);
    if (!decoded.ok) {
      const { code, pointer, expected, actual } = decoded.fault;
      throw refuse(code, `/key${pointer}: expected ${expected}, found ${actual}`);
    }
    if (this.#state.keyring.find(key.keyid) !== undefined)
      throw refuse(
        'SCHEMA',
        `/key/keyid: expected a key that the ledger does not have yet, found ${key.keyid}`,
      );
  }

  /**
   * Whether this key may sign checkpoints.
   * @throws NorthrootError `KEY_UNSUPPORTED`, `KEY_UNKNOWN`, `KEY_NOT_FOR_ROLE`, `KEY_NOT_VALID_HERE`
   */
  assertCheckpointKey(publicKey: PublicKey, instant: string): void {
    if (publicKey.alg === 'p256')
      throw new NorthrootError(
        'KEY_UNSUPPORTED',
        `checkpoints are signed with ed25519 and ml-dsa-44 keys, this is ${publicKey.alg}`,
        {
          hint: 'make one of these, and add it to the keys of the ledger',
        },
      );
    const { origin = '' } = this.#state;
    if (publicKey.alg === 'ml-dsa-44' && Buffer.byteLength(origin) > MAX_ML_DSA_NAME_BYTES)
      throw new NorthrootError(
        'KEY_UNSUPPORTED',
        `an ml-dsa-44 key signs for origins of at most ${MAX_ML_DSA_NAME_BYTES} bytes`,
        { hint: 'sign with an ed25519 key' },
      );
    const known = this.#state.keyring.find(publicKey.keyid);
    // Verifiers pin the key of a ledger that declares none.
    if (known === undefined && this.#state.keyring.size === 0) return;
    if (known === undefined)
      throw refuse('KEY_UNKNOWN', `key ${publicKey.keyid} is not one that the ledger declares`);
    const problem = findCheckpointKeyProblem(known, this.#instantOf(instant));
    if (problem === undefined) return;
    throw refuse(
      problem.code,
      `key ${publicKey.keyid}: expected ${problem.expected}, found ${problem.actual}`,
    );
  }

  /** Judges a note's signatures by the declared keys. */
  judgeNote(note: SignedCheckpoint, occurredAt: string): NoteVerdict {
    const instant = this.#instantOf(occurredAt);
    return judgeCheckpointNote(note, {
      keyring: this.#state.keyring,
      requirements: NO_REQUIREMENTS,
      findProblem: ({ entry, role }) =>
        entry &&
        (role === 'witness' ? findValidityProblem(entry, instant) : findCheckpointKeyProblem(entry, instant)),
    });
  }

  /**
   * Judges one line of a checkpoint's note: `valid` if it counts, `invalid` if it names a declared key but does not count, else `unknown`.
   */
  judgeCosignature(
    checkpoint: SignedCheckpoint,
    line: NoteSignature,
    now: string,
  ): 'valid' | 'invalid' | 'unknown' {
    const { counted, unknown } = this.judgeNote({ ...checkpoint, signatures: [line] }, now);
    if (unknown > 0) return 'unknown';
    return counted.length > 0 ? 'valid' : 'invalid';
  }

  #instantOf(occurredAt: string): string {
    return judgingInstant(this.#state.clock, occurredAt);
  }

  #assertValid(signatures: readonly SignatureEntry[], eventBytes: Uint8Array): void {
    if (signatures.length === 0) return;
    const message = eventMessage(eventBytes);
    for (const { keyid, sig } of signatures) {
      const known = this.#state.keyring.find(keyid);
      if (known === undefined || isValidSignature(message, sig, known.verification)) continue;
      throw refuse('SIGNATURE_INVALID', `the signature by ${keyid} is not one of this event`);
    }
  }
}

const HINTS: Readonly<Record<string, string>> = {
  SIGNATURE_MISSING: 'give a signer',
  KEY_UNKNOWN: 'sign with a key that the ledger declares',
  KEY_NOT_VALID_HERE: 'sign with another key',
};

function refuse(code: string, message: string): NorthrootError {
  return new NorthrootError(code, message, { hint: HINTS[code] });
}

/** A strict ledger refused an event; `code` is that of the first finding that would make it invalid. */
export class StrictError extends NorthrootError {
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[]) {
    const fault = findings.find((finding) => finding.class === 'invalid');
    const { expected, actual } = fault ?? {};
    const found = expected === undefined ? '' : `: expected ${expected}, found ${actual ?? 'none'}`;
    super(fault?.code ?? 'LEDGER_INVALID', `the event would make the ledger invalid${printable(found)}`, {
      hint: 'without strict it is recorded as it is',
    });
    this.name = 'StrictError';
    this.findings = findings;
  }
}
