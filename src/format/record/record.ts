/** Formats records, the lines of a ledger (SPEC §4). `examine-line.ts` reads them. */

import { allocateScratch } from '../../base/bytes/concat.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { canonicalText } from '../../base/json/canonicalize.js';
import type { SignatureEntry } from './examine-line.js';

/** The bytes before the event. */
export const HEAD = encodeUtf8('{"event":');

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

/** The record's canonical line, with its `\n`. The event's text is copied unchanged: what was signed is what is written. */
export function formatRecord(parts: RecordParts): Uint8Array {
  const { eventText, ...around } = parts;
  return formatRecordAround(encodeUtf8(eventText), around);
}

/** The offset of the event in its line. */
export const EVENT_START = HEAD.length;

/** {@link formatRecord} around the event's bytes. */
export function formatRecordAround(
  event: Uint8Array,
  { meta, prev, seq, signatures }: Omit<RecordParts, 'eventText'>,
): Uint8Array {
  // `meta` may hold more than ASCII.
  const rest = encodeUtf8(formatTail({ meta, prev, seq, signatures }));
  const line = allocateScratch(HEAD.length + event.length + rest.length);
  line.set(HEAD);
  line.set(event, HEAD.length);
  line.set(rest, HEAD.length + event.length);
  return line;
}

/** The text after the event. */
export function formatTail({ meta, prev, seq, signatures }: Omit<RecordParts, 'eventText'>): string {
  const metaMember = meta === undefined ? '' : `"meta":${canonicalText(meta)},`;
  return `,${metaMember}"prev":{"alg":"sha-256","b64":"${prev}"},"seq":${seq},"signatures":${formatSignatures(signatures)}}\n`;
}

/** Base64url needs no escapes. */
const PLAIN = /^[A-Za-z0-9_-]*$/;

function formatSignatures(signatures: readonly SignatureEntry[]): string {
  const [only] = signatures;
  if (only === undefined) return '[]';
  if (signatures.length === 1 && PLAIN.test(only.keyid) && PLAIN.test(only.sig))
    return `[{"keyid":"${only.keyid}","sig":"${only.sig}"}]`;
  return canonicalText(signatures.map(({ keyid, sig }) => ({ keyid, sig })));
}
