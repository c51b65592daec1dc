/**
 * The last checkpoint of a ledger, with its attestations' signatures (SPEC §3.4, §6). Unverified; a record with an unreadable note is
 * skipped.
 */

import { printable } from '../../base/bytes/printable.js';
import { decodeLatin1, encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { type Checkpoint, decodeCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import { formatNote, formatSignatureLine, MAX_NOTE_SIGNATURES } from '../../format/note/signed-note.js';
import { type ExaminedLine, examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { readLines } from '../../rules/source/read-lines.js';
import type { VerifyState } from '../../rules/verify/state.js';

export interface FoundCheckpoint {
  /** With the signature lines of its record and attestations, each once, at most 100. */
  readonly note: string;
  readonly checkpoint: Checkpoint;
  /** `sha-256:…` */
  readonly eventId: string;
  /** Of the checkpoint's record. */
  readonly seq: number;
  /** How many records attest it. */
  readonly attestations: number;
  /** All records, without blank and torn lines. */
  readonly records: number;
}

export type TrackedCheckpoint = Omit<FoundCheckpoint, 'records' | 'checkpoint'>;

interface Found {
  readonly signed: SignedCheckpoint;
  readonly eventId: string;
  readonly seq: number;
  readonly attestations: number;
}

/** Canonical text; inside a string the quotes would be escaped. */
const CHECKPOINT_TYPE = '"event_type":"checkpoint"';
const ATTESTATION_TYPE = '"event_type":"attestation"';

/** False only if the line is neither a checkpoint nor an attestation. */
export function mayBeCheckpoint(line: Uint8Array): boolean {
  const text = decodeLatin1(line);
  return text.includes(CHECKPOINT_TYPE) || text.includes(ATTESTATION_TYPE);
}

export class CheckpointTracker {
  #last: Found | undefined;

  /** @param found - From {@link CheckpointTracker.found}, to resume */
  constructor(found?: TrackedCheckpoint) {
    if (found === undefined) return;
    const decoded = decodeCheckpoint(encodeUtf8(found.note));
    if (!decoded.ok) throw new TypeError('a checkpoint that was found is malformed');
    const { seq, attestations } = found;
    this.#last = { signed: decoded.value, eventId: fromDigestText(found.eventId), seq, attestations };
  }

  /** @returns Whether the last checkpoint changed */
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
    this.#last = {
      ...last,
      signed: mergeSignatures(last.signed, signed),
      attestations: last.attestations + 1,
    };
    return true;
  }

  found(): TrackedCheckpoint | undefined {
    if (this.#last === undefined) return undefined;
    const { signed, eventId, seq, attestations } = this.#last;
    return { note: formatNote(signed), eventId: toDigestText(eventId), seq, attestations };
  }

  get checkpoint(): Checkpoint | undefined {
    return this.#last?.signed.checkpoint;
  }
}

/** The last checkpoint of a ledger. @throws NorthrootError when the source cannot be read; the signal's reason */
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

/** The first note with the signatures of both, each line once, at most 100. */
export function mergeSignatures(a: SignedCheckpoint, b: SignedCheckpoint): SignedCheckpoint {
  const lines = new Map([...a.signatures, ...b.signatures].map((each) => [formatSignatureLine(each), each]));
  return { ...a, signatures: [...lines.values()].slice(0, MAX_NOTE_SIGNATURES) };
}

/** @throws NorthrootError `ORIGIN_MISMATCH`, `TRUNCATED` if the checkpoint is of another or a longer ledger */
export function assertReaches(
  { origin: own, records }: VerifyState,
  { origin, size }: Pick<Checkpoint, 'origin' | 'size'>,
): void {
  if (own !== undefined && origin !== own)
    throw new NorthrootError(
      'ORIGIN_MISMATCH',
      `the checkpoint is of ${printable(origin)}, and the ledger is ${printable(own)}`,
    );
  if (size > records)
    throw new NorthrootError(
      'TRUNCATED',
      `the checkpoint covers ${size} records, and the ledger has only ${records}`,
    );
}

export function forked(size: number): NorthrootError {
  return new NorthrootError(
    'FORKED',
    `the first ${size} records of the ledger are not those that the checkpoint covers`,
  );
}
