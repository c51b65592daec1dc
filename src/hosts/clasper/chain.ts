/** Clasper's audit chain: one for each tenant, each entry naming the hash of the one before it. */

import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { stableHash } from '../shared/forms/stable.js';
import { numberAt, objectAt, textAt, valueAt } from '../shared/values.js';

export interface ChainEntry {
  readonly tenant: string;
  readonly seq: bigint;
  readonly previous: string | null;
  readonly hash: string;
  readonly type: string;
  readonly data: SourceObject;
  readonly createdAt: string;
  readonly isRight: boolean;
  readonly computed: string;
}

/** Whether it is meant to be an entry of a chain. */
export function isChainEntry(value: SourceValue): boolean {
  return value instanceof SourceObject && value.has('eventHash') && value.has('seq');
}

/** Reads an entry; undefined where a member is missing or of another type. */
export function readChainEntry(value: SourceObject): ChainEntry | undefined {
  const tenant = textAt(value, 'tenantId');
  const seqText = numberAt(value, 'seq') ?? '';
  const previous = valueAt(value, 'prevEventHash') ?? null;
  const hash = textAt(value, 'eventHash');
  const type = textAt(value, 'eventType');
  const data = objectAt(value, 'eventData');
  const createdAt = textAt(value, 'createdAt');
  if (!/^\d{1,20}$/.test(seqText) || (previous !== null && typeof previous !== 'string')) return undefined;
  if ([tenant, hash, type, data, createdAt].includes(undefined)) return undefined;
  const computed = stableHash(
    new SourceObject(
      new Map<string, SourceValue>([
        ['tenant_id', tenant!],
        ['seq', new SourceNumber(seqText)],
        ['prev_event_hash', previous],
        ['event_type', type!],
        ['event_data', data!],
        ['created_at', createdAt!],
      ]),
    ),
  );
  return {
    tenant: tenant!,
    seq: BigInt(seqText),
    previous,
    hash: hash!,
    type: type!,
    data: data!,
    createdAt: createdAt!,
    isRight: computed === hash,
    computed,
  };
}

/** What is wrong between an entry and the one before it in its file. */
export type ChainFaultKind = 'start' | 'gap' | 'order' | 'previous' | 'hash';

/** Checks an entry against the one before it, `undefined` for the first. */
export function checkChainEntry(
  entry: ChainEntry,
  before: ChainEntry | undefined,
): readonly ChainFaultKind[] {
  const faults: ChainFaultKind[] = [];
  if (before === undefined) {
    if (entry.seq !== 1n || entry.previous !== null) faults.push('start');
  } else {
    if (entry.seq > before.seq + 1n) faults.push('gap');
    if (entry.seq <= before.seq) faults.push('order');
    // After a gap the entry that is named is not there.
    if (entry.seq <= before.seq + 1n && entry.previous !== before.hash) faults.push('previous');
  }
  if (!entry.isRight) faults.push('hash');
  return faults;
}
