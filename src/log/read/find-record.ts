/** Finds one record by seq, id or prefix. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { checkString } from '../../base/options.js';
import { matchRecord } from '../../base/value/record-name.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { type ReadRecord, readRecords } from './read-records.js';

/**
 * The record; the first of identical copies.
 * @param wanted - A seq such as `17`, an id (`sha-256:…`, base64url or hex), or a prefix
 * @throws NorthrootError `RECORD_NOT_FOUND`, `RECORD_AMBIGUOUS`, `USAGE`, and as the source does; the signal's reason
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
    throw new NorthrootError('RECORD_NOT_FOUND', `no record ${printable(wanted)} in ${printable(where)}`);
  }
  if (other !== undefined) throw ambiguous(wanted, record, other);
  return record;
}

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
