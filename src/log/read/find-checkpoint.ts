/**
 * Finds the checkpoint that a ledger was sealed with last, with the signatures that attestations add to it (SPEC §3.4, §6).
 * Whether the checkpoint is right, and who signed it, is for others: a record whose note cannot be read is passed over.
 */

import { decodeLatin1, encodeUtf8 } from '../../base/bytes/text.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { type Checkpoint, decodeCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import { formatNote, formatSignatureLine, MAX_NOTE_SIGNATURES } from '../../format/note/signed-note.js';
import { type ExaminedLine, examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { readLines } from '../../rules/source/read-lines.js';

/** A checkpoint that a ledger holds. */
export interface FoundCheckpoint {
  /** The note with the signature lines of the checkpoint's record and of its attestations, each once, at most 100. */
  readonly note: string;
  readonly checkpoint: Checkpoint;
  /** The id of the checkpoint's event, `sha-256:…`. */
  readonly eventId: string;
  /** The number of the checkpoint's own record. */
  readonly seq: number;
  /** How many records are attestations of it. */
  readonly attestations: number;
  /** How many records the whole ledger has: its lines, without blank and torn ones. */
  readonly records: number;
}

/** The last checkpoint of the lines so far. */
export type TrackedCheckpoint = Omit<FoundCheckpoint, 'records' | 'checkpoint'>;

interface Found {
  readonly signed: SignedCheckpoint;
  readonly eventId: string;
  readonly seq: number;
  readonly attestations: number;
}

/** How canonical text begins the type of the two events that matter; inside a string its quotes would be escaped. */
const CHECKPOINT_TYPE = '"event_type":"checkpoint"';
const ATTESTATION_TYPE = '"event_type":"attestation"';

/** Whether a line may be a checkpoint or an attestation; false says that it is neither. */
export function mayBeCheckpoint(line: Uint8Array): boolean {
  const text = decodeLatin1(line);
  return text.includes(CHECKPOINT_TYPE) || text.includes(ATTESTATION_TYPE);
}

/** Keeps the last checkpoint of lines that are told of one after the other. */
export class CheckpointTracker {
  #last: Found | undefined;

  /** @param found - What {@link CheckpointTracker.found} gave of the lines before. */
  constructor(found?: TrackedCheckpoint) {
    if (found === undefined) return;
    const decoded = decodeCheckpoint(encodeUtf8(found.note));
    if (!decoded.ok) throw new TypeError('a checkpoint that was found is malformed');
    const { seq, attestations } = found;
    this.#last = { signed: decoded.value, eventId: fromDigestText(found.eventId), seq, attestations };
  }

  /** @returns Whether the line is the last checkpoint now, or adds to it. */
  take(line: ExaminedLine, ordinal: number): boolean {
    if (line.faults.length > 0 || (line.type !== 'checkpoint' && line.type !== 'attestation')) return false;
    const event = line.event();
    const decoded = decodeCheckpoint(encodeUtf8(event.note));
    if (!decoded.ok) return false;
    const signed = decoded.value;
    const last = this.#last;
    if (event.event_type === 'checkpoint') {
      const { eventId, seq = ordinal } = line;
      this.#last = { signed, eventId, seq, attestations: 0 };
      return true;
    }
    if (event.checkpoint_event_id.b64 !== last?.eventId || signed.text !== last.signed.text) return false;
    const signatures = mergeSignatures(last.signed, signed);
    this.#last = { ...last, signed: { ...last.signed, signatures }, attestations: last.attestations + 1 };
    return true;
  }

  found(): TrackedCheckpoint | undefined {
    if (this.#last === undefined) return undefined;
    const { signed, eventId, seq, attestations } = this.#last;
    return { note: formatNote(signed), eventId: toDigestText(eventId), seq, attestations };
  }

  /** What the note of {@link CheckpointTracker.found} says. */
  get checkpoint(): Checkpoint | undefined {
    return this.#last?.signed.checkpoint;
  }
}

/**
 * The last checkpoint of a ledger, or `undefined` where there is none.
 *
 * @throws NorthrootError when the source cannot be read; the signal's reason when that aborts.
 */
export async function findCheckpoint(
  source: LedgerSource,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<FoundCheckpoint | undefined> {
  let records = 0;
  const tracker = new CheckpointTracker();
  for await (const { line, ordinal, takesPlace } of readLines(source, { signal })) {
    if (!takesPlace) continue;
    records += 1;
    const { bytes, length } = line;
    if (length > MAX_LINE_BYTES || !mayBeCheckpoint(bytes)) continue;
    tracker.take(examineLine(bytes, undefined), ordinal);
  }
  const found = tracker.found();
  return found && { ...found, checkpoint: tracker.checkpoint as Checkpoint, records };
}

/** The signatures of both, each once, as many as a note can have. */
function mergeSignatures(a: SignedCheckpoint, b: SignedCheckpoint): SignedCheckpoint['signatures'] {
  const lines = new Map([...a.signatures, ...b.signatures].map((each) => [formatSignatureLine(each), each]));
  return [...lines.values()].slice(0, MAX_NOTE_SIGNATURES);
}
