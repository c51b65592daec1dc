/** Has witnesses cosign a ledger's checkpoint, and appends their cosignatures as an attestation (SPEC §3.4, §6). */

import { digestFromBase64url } from '../value/digest.js';
import { parseCheckpoint } from '../note/checkpoint.js';
import type { NoteKey } from '../note/note-key.js';
import { formatNote, type NoteSignature } from '../note/signed-note.js';
import { hashLine, readLeaves, type OpenLedger } from '../proof/leaves.js';
import type { AttestationEvent } from '../schema/generated/types.js';
import { consistencyRanges, RangeHasher } from '../tree/proof.js';
import type { Appended, Checkpointed, Ledger } from '../writer/ledger.js';
import { collectCosignatures, verifyCosignatures, type Collected } from './witness-client.js';

/** Whom to ask, and whom to believe. */
export interface AttestOptions {
  /** The submission prefixes of the witnesses. */
  readonly urls: readonly string[];
  /** Keys of known witnesses; without any, lines are taken as they come, and nobody has verified them. */
  readonly keys?: readonly NoteKey[];
  /** Opens the ledger for proofs that it extends what a witness saw before. */
  readonly open: OpenLedger;
  /** For each witness, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
  /** Who appends the attestation; the same as for other events of the ledger unless given. */
  readonly principalId?: string;
  readonly signal?: AbortSignal;
  readonly onProgress?: (result: Collected) => void;
  readonly fetch?: typeof fetch;
}

/** What came of it. */
export interface Attested {
  /** What each witness answered, in the order of the URLs. */
  readonly answers: readonly Collected[];
  /** The cosignatures that were appended. */
  readonly cosignatures: readonly NoteSignature[];
  /** Those that a known witness made, as far as keys were given. */
  readonly verified: readonly NoteSignature[];
  /** Lines that name a known witness and are wrong, or that nobody known made while keys were given: left out. */
  readonly refused: readonly NoteSignature[];
  /** Where the attestation stands; undefined when there was nothing to append. */
  readonly attestation: Appended | undefined;
  /** The checkpoint's note with the cosignatures. */
  readonly note: string;
}

const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * Collects cosignatures of a checkpoint that was just made, and appends them.
 *
 * @throws as {@link Ledger.append}; what goes wrong with a witness is in its answer.
 */
export async function attestCheckpoint(
  ledger: Ledger,
  checkpoint: Checkpointed,
  options: AttestOptions,
): Promise<Attested> {
  const {
    urls,
    keys = [],
    open,
    principalId,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    signal,
    onProgress,
    fetch,
  } = options;
  const own = parseCheckpoint(Buffer.from(checkpoint.note));
  const answers = await collectCosignatures({
    note: checkpoint.note,
    urls,
    timeoutMs,
    proofFor: (oldSize) => proveExtension(open, oldSize, checkpoint.treeSize, signal),
    ...(signal === undefined ? {} : { signal }),
    ...(onProgress === undefined ? {} : { onProgress }),
    ...(fetch === undefined ? {} : { fetch }),
  });
  const lines = answers.flatMap((answer) => answer.lines);
  const judged = verifyCosignatures(own.text, lines, keys);
  const verified = judged.right.map(({ signature }) => signature);
  const cosignatures = unique(keys.length === 0 ? lines : verified);
  const refused = keys.length === 0 ? [] : [...judged.wrong, ...judged.unknown];
  const result = { answers, cosignatures, verified, refused };
  if (cosignatures.length === 0) return { ...result, attestation: undefined, note: checkpoint.note };
  const { text } = own;
  const attestation = await ledger.append({
    event: {
      event_type: 'attestation',
      checkpoint_event_id: digestFromBase64url(checkpoint.eventId.slice('sha-256:'.length)),
      note: formatNote({ text, signatures: cosignatures }),
      ...(principalId === undefined ? {} : { principal_id: principalId }),
    } satisfies Partial<AttestationEvent>,
  });
  const note = formatNote({ text, signatures: [...own.signatures, ...cosignatures] });
  return { ...result, attestation, note };
}

/** The consistency proof from a size to that of the checkpoint, in one pass and logarithmic memory. */
async function proveExtension(
  open: OpenLedger,
  size1: number,
  size2: number,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const hasher = new RangeHasher(consistencyRanges(size1, size2));
  let left = size2;
  await readLeaves(
    await open(),
    (line) => {
      hasher.push(hashLine(line));
      left -= 1;
      return left > 0 && !hasher.isComplete;
    },
    signal,
  );
  return hasher.roots();
}

function unique(lines: readonly NoteSignature[]): NoteSignature[] {
  return [
    ...new Map(
      lines.map((line) => [
        `${line.name} ${line.keyId} ${Buffer.from(line.signature).toString('base64')}`,
        line,
      ]),
    ).values(),
  ];
}
