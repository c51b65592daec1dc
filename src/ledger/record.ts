/** Records: the lines of a ledger (SPEC §4), made from their parts. Reading them is `examine-line.ts`. */

import { encodeUtf8 } from '../bytes/text.js';
import { canonicalText } from '../json/canonicalize.js';
import type { SignatureEntry } from './examine-line.js';

/** The parts of a record. */
export interface RecordParts {
  /** The event's canonical text, ids included. */
  readonly eventText: string;
  /** Operational metadata, outside every digest of the event. */
  readonly meta?: Readonly<Record<string, string>> | undefined;
  /** base64url leaf hash of the line before. */
  readonly prev: string;
  readonly seq: number;
  readonly signatures: readonly SignatureEntry[];
}

/** The record's canonical line, with its `\n`. The event's text is used as it is: what was signed is what is written. */
export function formatRecord(parts: RecordParts): Uint8Array {
  const { eventText, meta, prev, seq, signatures } = parts;
  const metaMember = meta === undefined ? '' : `"meta":${canonicalText(meta)},`;
  const prevMember = `"prev":{"alg":"sha-256","b64":"${prev}"}`;
  const entries = canonicalText(signatures.map(({ keyid, sig }) => ({ keyid, sig })));
  return encodeUtf8(
    `{"event":${eventText},${metaMember}${prevMember},"seq":${seq},"signatures":${entries}}\n`,
  );
}
