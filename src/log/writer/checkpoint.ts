/** Checkpoints of an open ledger (SPEC §3.4, §6): when one is due, and its content. */

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
import { type CompactRange, hashToBase64url, rangeRoot } from '../../format/tree/compact-range.js';
import type { NoteVerdict } from '../../rules/trust/checkpoint-judge.js';

const NANOSECONDS = 1_000_000_000n;

/** A checkpoint is due after so many records, or so long after the last one if there are any. */
export interface CheckpointSchedule {
  readonly records?: number;
  readonly milliseconds?: number;
}

interface CheckpointOptions {
  readonly origin: string;
  readonly principalId: string;
  readonly occurredAt: string;
  /** At least one. */
  readonly noteSigners: readonly Signer[];
  /** The genesis event's id, `sha-256:…`. */
  readonly ledgerId: string;
}

/**
 * The checkpoint of all records before the tip.
 * @throws TypeError without a record or a tree; NorthrootError `KEY_UNSUPPORTED` for a P-256 signer, `LEDGER_TAIL_INVALID` for misnumbered
 *   records
 */
export function makeCheckpoint(tip: ChainTip, options: CheckpointOptions): CheckpointEvent {
  const { origin, principalId, occurredAt, noteSigners, ledgerId } = options;
  if (tip.tree === undefined || tip.eventId === undefined) throw new TypeError('the tip keeps no tree');
  if (tip.tree.size !== tip.seq)
    throw new NorthrootError(
      'LEDGER_TAIL_INVALID',
      `the ledger has ${tip.tree.size} lines, and its last seq is ${tip.seq - 1}`,
      {
        hint: 'verify it: its findings say what is wrong; a checkpoint would not mend it',
      },
    );
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

function recordsSince({ seq, checkpoint }: ChainTip): number {
  return checkpoint === undefined ? seq : seq - checkpoint.seq - 1;
}

/**
 * Milliseconds until a checkpoint is due: 0 for now, Infinity if it takes further records.
 * @param since - When the ledger began
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
  const passed = Number(
    (parseTimestamp(now) - parseTimestamp(tip.checkpoint?.occurredAt ?? since)) / 1_000_000n,
  );
  // A clock that was set back does not put off checkpoints until it has caught up.
  return passed <= -milliseconds ? 0 : Math.max(0, milliseconds - passed);
}

/** @throws RangeError for an invalid schedule */
export function assertSchedule({ records = 1, milliseconds = 1 }: CheckpointSchedule): void {
  if (!Number.isSafeInteger(records) || records < 1)
    throw new RangeError('a checkpoint can be made every 1 record at the most often');
  if (!(milliseconds >= 1))
    throw new RangeError('a checkpoint can be made every millisecond at the most often');
}

/**
 * Checks that a given checkpoint covers the records before the tip.
 * @param tip - With a tree
 * @param judge - Judges its note's signatures
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
  if (size !== tip.seq)
    throw problem('CHECKPOINT_SIZE_MISMATCH', `expected tree_size ${tip.seq}, found ${size}`);
  const isOwn = tip.tree !== undefined && root.b64 === hashToBase64url(rangeRoot(tip.tree));
  if (!isOwn || last.b64 !== tip.eventId)
    throw problem('CHECKPOINT_ROOT_MISMATCH', 'the checkpoint is not one of the records before it');
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
 * Checks that a given attestation is of a checkpoint of the ledger. Note lines that do not verify do not count, and are not checked.
 * @param textHash - By a checkpoint's id, the SHA-256 of its note's text; `null` for a malformed note
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
  if (expected === undefined)
    throw problem(
      'CHECKPOINT_MISSING',
      `${toDigestText(id)} is not the id of an earlier checkpoint of the ledger`,
    );
  const decoded = decodeCheckpoint(Buffer.from(text), { mayRepeat: false });
  if (!decoded.ok) {
    const [wanted, found] = [printable(decoded.fault.expected), printable(decoded.fault.actual)];
    throw problem('CHECKPOINT_NOTE_MALFORMED', `the note is malformed: expected ${wanted}, found ${found}`);
  }
  if (hashNoteOf(text) !== expected)
    throw problem('CHECKPOINT_NOTE_MALFORMED', 'the note has another text than that of its checkpoint');
}

/** The SHA-256 of a note's text; `null` for a malformed note. */
function hashNoteOf(note: string): string | null {
  const decoded = decodeCheckpoint(Buffer.from(note));
  return decoded.ok ? sha256Base64url(Buffer.from(decoded.value.text)) : null;
}

export interface NextLink {
  /** The next record's. */
  readonly seq: number;
  /** base64url leaf hash of the last line, or the empty tree's. */
  readonly prev: string;
}

export interface ChainTip extends NextLink {
  /** base64url. */
  readonly eventId: string | undefined;
  /** Over all lines; it grows with them. */
  readonly tree: CompactRange;
  readonly checkpoint: { readonly seq: number; readonly occurredAt: string } | undefined;
}
