/** Checkpoints of a ledger that is being written (SPEC §3.4, §6): when one is due, and what it says. */

import { printable } from '../../base/bytes/printable.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { NorthrootError } from '../../base/error.js';
import { digestFromBase64url, toDigestText } from '../../base/value/digest.js';
import { parseTimestamp } from '../../base/value/timestamp.js';
import { buildCheckpoint } from '../../format/event/build.js';
import { decodeCheckpoint, formatCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import { signNote } from '../../format/note/note-key.js';
import { formatNote } from '../../format/note/signed-note.js';
import type { AttestationEvent, CheckpointEvent } from '../../format/schema/generated/types.js';
import type { Signer } from '../../format/signature/signer.js';
import { hashToBase64url, rangeRoot } from '../../format/tree/compact-range.js';
import type { NoteVerdict } from '../../rules/trust/checkpoint-judge.js';
import type { ChainTip } from './chain-tip.js';

const NANOSECONDS = 1_000_000_000n;

/** When a checkpoint is made: after so many records since the last one, or so long after it when there are any. */
export interface CheckpointSchedule {
  readonly records?: number;
  readonly milliseconds?: number;
}

/** What a checkpoint is made with. */
export interface CheckpointOptions {
  readonly origin: string;
  readonly principalId: string;
  readonly occurredAt: string;
  /** At least one: each signs the note. */
  readonly noteSigners: readonly Signer[];
  /** The event id of genesis, `sha-256:…`. */
  readonly ledgerId: string;
}

/**
 * The checkpoint of all records before the tip.
 *
 * @throws TypeError when the tip keeps no tree, or there is no record
 * @throws NorthrootError `KEY_UNSUPPORTED` when a signer's key is P-256; `LEDGER_TAIL_INVALID` when the records are not
 *   numbered as they stand
 */
export function makeCheckpoint(tip: ChainTip, options: CheckpointOptions): CheckpointEvent {
  const { origin, principalId, occurredAt, noteSigners, ledgerId } = options;
  if (tip.tree === undefined || tip.eventId === undefined) throw new TypeError('the tip keeps no tree');
  if (tip.tree.size !== tip.seq) {
    throw new NorthrootError(
      'LEDGER_TAIL_INVALID',
      `the ledger has ${tip.tree.size} lines, and its last seq is ${tip.seq - 1}`,
      {
        hint: 'verify it: its findings say what is wrong; a checkpoint would not mend it',
      },
    );
  }
  const root = rangeRoot(tip.tree);
  const seconds = Math.max(0, Number(parseTimestamp(occurredAt) / NANOSECONDS));
  const text = formatCheckpoint({ origin, size: tip.seq, root, extensions: [] });
  const draft = {
    principal_id: principalId,
    occurred_at: occurredAt,
    tree_size: tip.seq,
    root: { alg: 'sha-256', b64: hashToBase64url(root) },
    chain_tip_event_id: digestFromBase64url(tip.eventId),
    note: formatNote({
      text,
      signatures: noteSigners.map((signer) => signNote(text, origin, signer, seconds)),
    }),
  } as const;
  return buildCheckpoint(draft, { ledgerId });
}

/** How many records stand after the last checkpoint. */
function recordsSince({ seq, checkpoint }: ChainTip): number {
  return checkpoint === undefined ? seq : seq - checkpoint.seq - 1;
}

/**
 * How long until a checkpoint is due, in milliseconds: 0 when it is due now, Infinity when only further records make it so.
 *
 * @param since - When the ledger began, for one without a checkpoint.
 */
export function timeToCheckpoint(
  tip: ChainTip,
  { records = Infinity, milliseconds = Infinity }: CheckpointSchedule,
  since: string,
  now: string,
): number {
  const count = recordsSince(tip);
  if (count === 0) return Infinity;
  if (count >= records) return 0;
  const passed = parseTimestamp(now) - parseTimestamp(tip.checkpoint?.occurredAt ?? since);
  return Math.max(0, milliseconds - Number(passed / 1_000_000n));
}

/** Refuses a schedule that is none. @throws RangeError */
export function assertSchedule({ records = 1, milliseconds = 1 }: CheckpointSchedule): void {
  if (!Number.isSafeInteger(records) || records < 1) {
    throw new RangeError('a checkpoint can be made every 1 record at the most often');
  }
  if (!(milliseconds >= 1))
    throw new RangeError('a checkpoint can be made every millisecond at the most often');
}

/**
 * Refuses a checkpoint that somebody gives to be appended, when it is not one of what stands before the tip.
 *
 * @param tip - Keeps a tree.
 * @param judge - What the signatures of its note are worth.
 * @throws NorthrootError `CHECKPOINT_SIZE_MISMATCH`, `CHECKPOINT_ROOT_MISMATCH`, `CHECKPOINT_NOTE_MALFORMED`, `ORIGIN_MISMATCH`,
 *   `CHECKPOINT_SIGNATURE_INVALID`
 */
export function assertFits(
  tip: ChainTip,
  event: CheckpointEvent,
  origin: string,
  judge: (note: SignedCheckpoint) => NoteVerdict,
): void {
  const { tree_size: size, root, chain_tip_event_id: last } = event;
  const problem = (code: string, message: string): NorthrootError =>
    new NorthrootError(code, message, {
      hint: 'let the ledger make the checkpoint',
    });
  if (size !== tip.seq) {
    throw problem('CHECKPOINT_SIZE_MISMATCH', `expected tree_size ${tip.seq}, found ${size}`);
  }
  const isOwn = tip.tree !== undefined && root.b64 === hashToBase64url(rangeRoot(tip.tree));
  if (!isOwn || last.b64 !== tip.eventId) {
    throw problem('CHECKPOINT_ROOT_MISMATCH', 'the checkpoint is not one of the records before it');
  }
  const decoded = decodeCheckpoint(Buffer.from(event.note), { mayRepeat: false });
  const note = decoded.ok ? decoded.value : undefined;
  if (note?.checkpoint.size !== size || hashToBase64url(note.checkpoint.root) !== root.b64)
    throw problem('CHECKPOINT_NOTE_MALFORMED', 'the note does not state the tree that the checkpoint states');
  if (note.checkpoint.origin !== origin) {
    const [expected, found] = [printable(origin), printable(note.checkpoint.origin)];
    throw problem('ORIGIN_MISMATCH', `expected a note of ${expected}, found one of ${found}`);
  }
  const [fault] = judge(note).problems;
  if (fault !== undefined) {
    const { code, expected = '', actual = '' } = fault;
    throw problem(
      'CHECKPOINT_SIGNATURE_INVALID',
      `the note has a signature that does not count (${code}): expected ${printable(expected)}, found ${printable(actual)}`,
    );
  }
}

/**
 * Refuses an attestation that somebody gives to be appended, when it is not one of a checkpoint of the ledger. Which of its lines
 * count is no matter: one that does not verify counts for nothing, and the event as a whole is signed by whoever collected them.
 *
 * @param textHash - The SHA-256 of the text of a checkpoint's note, by the checkpoint's id; `null` for a note that is malformed.
 * @throws NorthrootError `CHECKPOINT_MISSING`, `CHECKPOINT_NOTE_MALFORMED`
 */
export function assertAttests(
  { checkpoint_event_id: { b64: id }, note: text }: AttestationEvent,
  textHash: (checkpointId: string) => string | null | undefined,
): void {
  const problem = (code: string, message: string): NorthrootError =>
    new NorthrootError(code, message, {
      hint: 'ask witnesses to cosign a checkpoint of the ledger',
    });
  const expected = textHash(id);
  if (expected === undefined) {
    throw problem(
      'CHECKPOINT_MISSING',
      `${toDigestText(id)} is not the id of an earlier checkpoint of the ledger`,
    );
  }
  const decoded = decodeCheckpoint(Buffer.from(text), { mayRepeat: false });
  if (!decoded.ok) {
    const [wanted, found] = [printable(decoded.fault.expected), printable(decoded.fault.actual)];
    throw problem('CHECKPOINT_NOTE_MALFORMED', `the note is malformed: expected ${wanted}, found ${found}`);
  }
  if (hashNoteOf(text) !== expected) {
    throw problem('CHECKPOINT_NOTE_MALFORMED', 'the note has another text than that of its checkpoint');
  }
}

/** The SHA-256 of a note's text, which may be long; `null` for a note that is malformed. */
function hashNoteOf(note: string): string | null {
  const decoded = decodeCheckpoint(Buffer.from(note));
  return decoded.ok ? sha256Base64url(Buffer.from(decoded.value.text)) : null;
}
