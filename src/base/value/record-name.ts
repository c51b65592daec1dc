/** What people have of a record: its number, its id, or the beginning of its id in either of its spellings. */

import { encodeHex, tryDecodeBase64url } from '../bytes/encoding.js';
import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import { fromDigestText, toDigestText, tryParseDigest } from './digest.js';

/** A record as far as it is named. */
export interface NamedRecord {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
}

/**
 * Whether a record is meant: a decimal number is a seq; anything else is an id, or the beginning of one, in either of its
 * spellings.
 *
 * @throws NorthrootError `USAGE` when it can be neither.
 */
export function matchRecord(wanted: string): (record: NamedRecord) => boolean {
  const name = parseRecordName(wanted);
  return (record) => isNamed(record, name);
}

/** Whether a name may mean a record. */
export function isNamed({ seq, eventId }: NamedRecord, name: RecordName): boolean {
  if ('seq' in name) return seq === name.seq;
  if ('eventId' in name) return eventId === name.eventId;
  const b64 = fromDigestText(eventId);
  if (b64.startsWith(name.prefix)) return true;
  const { hex } = name;
  return hex !== undefined && encodeHex(tryDecodeBase64url(b64) ?? new Uint8Array()).startsWith(hex);
}

/** What people have of a record: its number, its whole id (`sha-256:…`), or the beginning of that in base64url and perhaps in hex. */
export type RecordName =
  | { readonly seq: number }
  | { readonly eventId: string }
  | { readonly prefix: string; readonly hex: string | undefined };

/** @throws NorthrootError `USAGE` when it is none of these. */
export function parseRecordName(wanted: string): RecordName {
  if (/^\d{1,16}$/.test(wanted)) return { seq: Number(wanted) };
  const digest = tryParseDigest(wanted);
  if (digest !== undefined) return { eventId: toDigestText(digest.b64) };
  const prefix = fromDigestText(wanted);
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(prefix)) {
    throw new NorthrootError('USAGE', `${printable(wanted)} is neither a seq nor an event id`, {
      hint: 'such as 17, sha-256:6QJw61M4h8…, or the first characters of an id',
    });
  }
  return { prefix, hex: /^[0-9a-fA-F]+$/.test(prefix) ? prefix.toLowerCase() : undefined };
}
