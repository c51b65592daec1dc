/**
 * Finds the checkpoint that a ledger was sealed with last, with the signatures that attestations add to it (SPEC §3.4, §6).
 * Whether the checkpoint is right, and who signed it, is for others: a record whose note cannot be read is passed over.
 */

import { decodeLatin1, encodeUtf8 } from '../bytes/text.js';
import type { LedgerSource } from '../fs/source.js';
import type { JsonObject } from '../json/value.js';
import { examineLine } from '../ledger/examine-line.js';
import { MAX_LINE_BYTES } from '../ledger/line-splitter.js';
import { readLines, type LedgerLine } from '../ledger/read-lines.js';
import { readCheckpoint, type Checkpoint, type SignedCheckpoint } from '../note/checkpoint.js';
import { MAX_NOTE_SIGNATURES, formatNote, formatSignatureLine } from '../note/signed-note.js';

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

interface Found {
  readonly signed: SignedCheckpoint;
  readonly eventId: string;
  readonly seq: number;
  readonly attestations: number;
}

/** How canonical text begins the type of the two events that matter; inside a string its quotes would be escaped. */
const CHECKPOINT_TYPE = '"event_type":"checkpoint"';
const ATTESTATION_TYPE = '"event_type":"attestation"';

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
  let last: Found | undefined;

  const take = ({ line: { bytes, length }, ordinal, takesPlace }: LedgerLine): void => {
    if (!takesPlace) return;
    records += 1;
    if (length > MAX_LINE_BYTES) return;
    const text = decodeLatin1(bytes);
    if (!text.includes(CHECKPOINT_TYPE) && !text.includes(ATTESTATION_TYPE)) return;
    const { event, eventId, seq = ordinal, issues } = examineLine(bytes, undefined);
    if (event === undefined || eventId === undefined || issues.length > 0) return;
    const signed = checkpointOf(event);
    if (signed === undefined) return;
    if (event['event_type'] === 'checkpoint') last = { signed, eventId, seq, attestations: 0 };
    else if (last !== undefined && attests(event, last.eventId) && signed.text === last.signed.text) {
      const signatures = mergeSignatures(last.signed, signed);
      last = { ...last, signed: { ...last.signed, signatures }, attestations: last.attestations + 1 };
    }
  };
  for await (const line of readLines(source, { signal })) take(line);
  if (last === undefined) return undefined;
  const { signed, eventId, seq, attestations } = last;
  return {
    note: formatNote(signed),
    checkpoint: signed.checkpoint,
    eventId: `sha-256:${eventId}`,
    seq,
    attestations,
    records,
  };
}

/** The checkpoint in the event's note, when the event is of a type that has one and the note can be read. */
function checkpointOf({ event_type: type, note }: JsonObject): SignedCheckpoint | undefined {
  if ((type !== 'checkpoint' && type !== 'attestation') || typeof note !== 'string') return undefined;
  const signed = readCheckpoint(encodeUtf8(note));
  return 'expected' in signed ? undefined : signed;
}

function attests({ checkpoint_event_id: id }: JsonObject, eventId: string): boolean {
  return (id as JsonObject)['b64'] === eventId;
}

/** The signatures of both, each once, as many as a note can have. */
function mergeSignatures(a: SignedCheckpoint, b: SignedCheckpoint): SignedCheckpoint['signatures'] {
  const lines = new Map([...a.signatures, ...b.signatures].map((each) => [formatSignatureLine(each), each]));
  return [...lines.values()].slice(0, MAX_NOTE_SIGNATURES);
}
