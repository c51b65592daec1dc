/** Names of records: a seq, an id, or the beginning of an id in base64url or hex. */

import { encodeHex, tryDecodeBase64url } from '../bytes/encoding.js';
import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import { fromDigestText, toDigestText, tryParseDigest } from './digest.js';

interface NamedRecord {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
}

/** A predicate for the records that a name may mean. @throws NorthrootError `USAGE` as {@link parseRecordName}. */
export function matchRecord(wanted: string): (record: NamedRecord) => boolean {
  const name = parseRecordName(wanted);
  return (record) => isNamed(record, name);
}

export function isNamed({ seq, eventId }: NamedRecord, name: RecordName): boolean {
  if ('seq' in name) return seq === name.seq;
  if ('eventId' in name) return eventId === name.eventId;
  const b64 = fromDigestText(eventId);
  if (b64.startsWith(name.prefix)) return true;
  const { hex } = name;
  return hex !== undefined && encodeHex(tryDecodeBase64url(b64) ?? new Uint8Array()).startsWith(hex);
}

/** A seq; a whole id (`sha-256:…`); or the beginning of one, in base64url and perhaps in hex. */
export type RecordName =
  | { readonly seq: number }
  | { readonly eventId: string }
  | { readonly prefix: string; readonly hex: string | undefined };

/** Parses a record's name; a decimal number is a seq. @throws NorthrootError `USAGE` for other text. */
export function parseRecordName(wanted: string): RecordName {
  if (/^\d{1,16}$/.test(wanted)) return { seq: Number(wanted) };
  const digest = tryParseDigest(wanted);
  if (digest !== undefined) return { eventId: toDigestText(digest.b64) };
  const prefix = fromDigestText(wanted);
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(prefix))
    throw new NorthrootError('USAGE', `${printable(wanted)} is neither a seq nor an event id`, {
      hint: 'such as 17, sha-256:6QJw61M4h8…, or the first characters of an id',
    });
  return { prefix, hex: /^[0-9a-fA-F]+$/.test(prefix) ? prefix.toLowerCase() : undefined };
}
