/** Collects cosignatures of a checkpoint from witnesses, and appends them as an attestation (SPEC §3.4, §6). */

import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { digestFromBase64url, fromDigestText } from '../../base/value/digest.js';
import { parseCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import type { NoteKey } from '../../format/note/note-key.js';
import {
  formatNote,
  formatSignatureLine,
  MAX_NOTE_SIGNATURES,
  type NoteSignature,
} from '../../format/note/signed-note.js';
import type { AttestationEvent } from '../../format/schema/generated/types.js';
import { consistencyRanges } from '../../format/tree/proof.js';
import type { LedgerView } from '../../log/read/ledger-view.js';
import type { Appended, CheckpointResult, Ledger } from '../../log/writer/ledger.js';
import { indexBasis, ledgerBasis, type ProofBasis } from '../proof-basis.js';
import { collectCosignatures, type Collected, verifyCosignatures } from './witness-client.js';

export interface AttestOptions {
  /** The submission prefixes of the witnesses. */
  readonly urls: readonly string[];
  /** Keys of known witnesses, beside those that the ledger declares. Only lines that one of either verifies are appended. */
  readonly keys?: readonly NoteKey[] | undefined;
  /** The ledger, for consistency proofs: of its index if it has one, else it is read. */
  readonly view: LedgerView;
  /** For each witness, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** The principal of the attestation. Default: the maker of the ledger. */
  readonly principalId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with {@link AttestResult.note} once the attestation is on disk, while the ledger is open. */
  readonly onAttested?: ((note: string, ledger: Ledger) => Promise<void> | void) | undefined;
  readonly onProgress?: ((result: Collected) => void) | undefined;
  readonly fetch?: typeof fetch | undefined;
}

export interface AttestResult {
  /** The answers, in the order of the URLs. */
  readonly answers: readonly Collected[];
  /** The appended lines, each verified by a given or declared key. */
  readonly cosignatures: readonly NoteSignature[];
  /** Those verified only by a key that the ledger declares. */
  readonly declared: readonly NoteSignature[];
  /** Lines left out: unknown, invalid, in the log's own name, or too many for a note. */
  readonly refused: readonly NoteSignature[];
  /** Lines left out because their key is unknown. */
  readonly unknown: readonly NoteSignature[];
  readonly attestation: Appended | undefined;
  /** The checkpoint's note with the cosignatures. */
  readonly note: string;
}

/** Opens the ledger to append, calls `use`, and closes it. */
export type WithLedger = <T>(use: (ledger: Ledger) => Promise<T>) => Promise<T>;

const DEFAULT_TIMEOUT_MS = 10_000;
/** A record has 65,535 bytes; the other members and the signatures take up to 5,000. */
const MAX_ATTESTED_BYTES = 60_000;

/**
 * Collects cosignatures of a checkpoint and appends them. The ledger is opened only after the witnesses have answered.
 *
 * @throws as {@link Ledger.append}; errors of a witness are in its answer
 */
export async function attestCheckpoint(
  withLedger: WithLedger,
  checkpoint: CheckpointResult,
  options: AttestOptions,
): Promise<AttestResult> {
  const {
    urls,
    keys = [],
    view,
    principalId,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    signal,
    onProgress,
    onAttested,
    fetch,
  } = options;
  const own = parseCheckpoint(Buffer.from(checkpoint.note));
  const answers = await collectCosignatures({
    note: checkpoint.note,
    urls,
    timeoutMs,
    proofFor: proverOf(view, checkpoint.treeSize, signal),
    ...defined({ signal, onProgress, fetch }),
  });
  if (answers.every(({ lines }) => lines.length === 0)) {
    const none = { cosignatures: [], declared: [], refused: [], unknown: [] };
    return { answers, ...none, attestation: undefined, note: checkpoint.note };
  }
  return withLedger(async (ledger) => {
    const { given, declared, refused, unknown } = await sortLines(ledger, own, answers, keys);
    const room = MAX_NOTE_SIGNATURES - own.signatures.length;
    const all = unique([...given, ...declared]);
    const cosignatures = all.slice(0, room);
    const result = {
      answers,
      cosignatures,
      declared: cosignatures.filter((line) => declared.includes(line)),
      refused: [...refused, ...all.slice(room)],
      unknown,
    };
    if (cosignatures.length === 0) return { ...result, attestation: undefined, note: checkpoint.note };
    const { text } = own;
    let attestation: Appended | undefined;
    for (const signatures of splitForRecords(text, cosignatures))
      attestation = await ledger.append({
        event: {
          event_type: 'attestation',
          checkpoint_event_id: digestFromBase64url(fromDigestText(checkpoint.eventId)),
          note: formatNote({ text, signatures }),
          principal_id: principalId ?? ledger.principalId,
        } satisfies Partial<AttestationEvent>,
      });
    const note = formatNote({ text, signatures: [...own.signatures, ...cosignatures] });
    await onAttested?.(note, ledger);
    return { ...result, attestation, note };
  });
}

interface SortedLines {
  readonly given: NoteSignature[];
  readonly declared: NoteSignature[];
  readonly refused: NoteSignature[];
  readonly unknown: NoteSignature[];
}

/** A line counts if a known key verifies it, and no given or declared key refutes it. */
async function sortLines(
  ledger: Ledger,
  own: SignedCheckpoint,
  answers: readonly Collected[],
  keys: readonly NoteKey[],
): Promise<SortedLines> {
  const sorted: SortedLines = { given: [], declared: [], refused: [], unknown: [] };
  for (const { lines } of answers) {
    const { valid, invalid } = verifyCosignatures(own.text, lines, keys);
    const validLines = new Set(valid.map(({ signature }) => signature));
    for (const line of lines) {
      const check = await ledger.checkCosignature(own, line);
      const isRefused = check === 'invalid' || invalid.includes(line) || line.name === own.checkpoint.origin;
      if (!isRefused && validLines.has(line)) sorted.given.push(line);
      else if (!isRefused && check === 'valid') sorted.declared.push(line);
      else {
        sorted.refused.push(line);
        if (!isRefused) sorted.unknown.push(line);
      }
    }
  }
  return sorted;
}

/** Makes consistency proofs of a tree, one after the other, and of each size once: most witnesses have seen the same tree. */
function proverOf(
  view: LedgerView,
  size2: number,
  signal: AbortSignal | undefined,
): (size1: number) => Promise<readonly string[]> {
  const made = new Map<number, Promise<readonly string[]>>();
  let last: Promise<unknown> = Promise.resolve();
  return (size1) => {
    const known = made.get(size1);
    if (known !== undefined) return known;
    const prove = async (basis: ProofBasis): Promise<readonly string[]> => {
      const { size, roots } = await basis.hashTree([size2], consistencyRanges(size1, size2));
      if (roots !== undefined) return roots;
      throw new NorthrootError('TRUNCATED', `the checkpoint covers ${size2} records, the ledger has ${size}`);
    };
    const proof = last.then(() =>
      view.askRecords(
        ({ records }) => prove(indexBasis(records)),
        (open) => prove(ledgerBasis(open, signal)),
      ),
    );
    last = proof.catch(() => undefined);
    made.set(size1, proof);
    return proof;
  };
}

/** Splits lines into attestations: a record has room for some 18 cosignatures of ML-DSA-44. */
function splitForRecords(text: string, lines: readonly NoteSignature[]): NoteSignature[][] {
  const notes: NoteSignature[][] = [];
  let room = 0;
  for (const line of lines) {
    const size = Buffer.byteLength(JSON.stringify(formatSignatureLine(line)));
    if (size > room || notes.length === 0) {
      notes.push([]);
      room = MAX_ATTESTED_BYTES - Buffer.byteLength(JSON.stringify(text));
    }
    notes.at(-1)?.push(line);
    room -= size;
  }
  return notes;
}

function unique(lines: readonly NoteSignature[]): NoteSignature[] {
  return [...new Map(lines.map((line) => [formatSignatureLine(line), line])).values()];
}
