/** Finds one record by what people have of it: its number, its id, or the beginning of its id. */

import { encodeHex, tryDecodeBase64url } from '../bytes/encoding.js';
import { printable } from '../bytes/printable.js';
import { checkString } from '../options.js';
import { NorthrootError } from '../error.js';
import type { LedgerSource } from '../fs/source.js';
import { tryParseDigest, fromDigestText, toDigestText } from '../value/digest.js';
import { readRecords, type ReadRecord } from './read-records.js';

/**
 * The one record that is meant; of a record that was copied as it is, the first.
 *
 * @param wanted - A seq such as `17`, an id (`sha-256:…`, base64url or hex), or a prefix of one.
 * @param signal - Aborting ends the search with its reason.
 * @throws NorthrootError `RECORD_NOT_FOUND`, `RECORD_AMBIGUOUS`, `USAGE`, and as the source does.
 */
export async function findRecord(
  source: LedgerSource,
  wanted: string,
  signal?: AbortSignal,
): Promise<ReadRecord> {
  checkString('findRecord', 'the record', wanted);
  const matches = matchRecord(wanted);
  const found: ReadRecord[] = [];
  for await (const record of readRecords(source, { signal })) {
    const [first] = found;
    if (!matches(record) || (first?.seq === record.seq && first.eventId === record.eventId)) continue;
    found.push(record);
    if (found.length > 1) break;
  }
  const [record, other] = found;
  if (record === undefined) {
    const [where = ''] = source.paths;
    throw new NorthrootError('RECORD_NOT_FOUND', `no record ${printable(wanted)} in ${printable(where)}`, {
      hint: 'northroot log lists the records',
    });
  }
  if (other !== undefined) throw ambiguous(wanted, record, other);
  return record;
}

/** The error where two records are meant; the first two of the ledger. */
export function ambiguous(
  wanted: string,
  record: Pick<ReadRecord, 'seq' | 'eventId'>,
  other: Pick<ReadRecord, 'seq' | 'eventId'>,
): NorthrootError {
  return new NorthrootError('RECORD_AMBIGUOUS', `${printable(wanted)} names more than one record`, {
    hint:
      record.eventId === other.eventId
        ? `the ledger has the event twice: give the seq, ${record.seq} or ${other.seq}`
        : `give more of the id: ${record.eventId} or ${other.eventId}`,
  });
}

/**
 * Whether a record is meant: a decimal number is a seq; anything else is an id, or the beginning of one, in either of its
 * spellings.
 *
 * @throws NorthrootError `USAGE` when it can be neither.
 */
export function matchRecord(wanted: string): (record: Pick<ReadRecord, 'seq' | 'eventId'>) => boolean {
  const parsed = parseWanted(wanted);
  if ('seq' in parsed) return ({ seq }) => seq === parsed.seq;
  if ('eventId' in parsed) return ({ eventId }) => eventId === parsed.eventId;
  const { prefix, hex } = parsed;
  return ({ eventId }) => {
    const b64 = fromDigestText(eventId);
    if (b64.startsWith(prefix)) return true;
    return hex !== undefined && encodeHex(tryDecodeBase64url(b64)!).startsWith(hex);
  };
}

/** What people have of a record: its number, its whole id (`sha-256:…`), or the beginning of that in base64url and perhaps in hex. */
export type Wanted =
  | { readonly seq: number }
  | { readonly eventId: string }
  | { readonly prefix: string; readonly hex: string | undefined };

/** @throws NorthrootError `USAGE` when it is none of these. */
export function parseWanted(wanted: string): Wanted {
  if (/^\d{1,16}$/.test(wanted)) return { seq: Number(wanted) };
  const digest = tryParseDigest(wanted);
  if (digest !== undefined) return { eventId: `sha-256:${digest.b64}` };
  const prefix = wanted.replace(/^sha-256:/, '');
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(prefix)) {
    throw new NorthrootError('USAGE', `${printable(wanted)} is neither a seq nor an event id`, {
      hint: 'such as 17, sha-256:6QJw61M4h8…, or the first characters of an id',
    });
  }
  return { prefix, hex: /^[0-9a-fA-F]+$/.test(prefix) ? prefix.toLowerCase() : undefined };
}
