/**
 * Rows of apm2's two ledgers as JSON. `events` (the core's): event_hash = BLAKE3(prev_hash ‖ payload), 32 zero bytes before the first.
 * `ledger_events` (the daemon's): the payload is cac-json with `prev_hash` in it, and event_hash = SHA-256 over every column, in
 * hexadecimal. After a freeze the daemon writes such payloads into the first table. Neither table's columns are all bound by its hash.
 */

import { blake3 } from '@noble/hashes/blake3.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { encodeHex } from '../../base/bytes/encoding.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { SourceObject } from '../../base/json/source-json.js';
import { cacBytes, decodeCacSource } from '../shared/forms/cac.js';
import { textAt } from '../shared/values.js';
import { anyBytesOf, Fields, hashOf } from './events.js';
import { verifyEd25519 } from './receipt.js';

/** `prev_hash` of the first row of `ledger_events`. */
export const GENESIS = 'genesis';

const HASH_DOMAIN = 'apm2-ledger-event-hash-v1';
const ZERO_HASH = '0'.repeat(64);
/** The core refuses larger ones. */
export const MAX_ROW_PAYLOAD_BYTES = 16 * 1024 * 1024;

export interface LedgerRow {
  readonly table: 'core' | 'daemon';
  readonly id: string;
  readonly eventType: string;
  readonly workId: string;
  readonly actorId: string;
  readonly timestampNs: string;
  readonly payload: Uint8Array;
  /** Undefined where the payload is not JSON: the core keeps protobuf too. */
  readonly content: SourceObject | undefined;
  readonly signature: Uint8Array | undefined;
  /** `genesis`, or 64 hexadecimal digits; undefined where the row states none. */
  readonly prevHash: string | undefined;
  readonly eventHash: string | undefined;
  /** What the row says its signature is for. */
  readonly domain: string | undefined;
  readonly sequence: bigint | undefined;
}

/** The row that an object is; undefined where it is none. */
export function ledgerRowOf(value: SourceObject): LedgerRow | undefined {
  const fields = new Fields([value]);
  const eventType = fields.text('event_type');
  const hasHash = ['event_hash', 'prev_hash', 'previous_hash'].some((name) => value.has(name));
  const isCore = value.has('seq_id') || (value.has('seq') && !value.has('event_id'));
  const payload = payloadOf(value);
  if (eventType === undefined || payload === undefined || !(hasHash || isCore)) return undefined;
  const table = isCore || !value.has('event_id') ? 'core' : 'daemon';
  const prev = value.get('prev_hash') ?? value.get('previous_hash');
  const sequence = fields.count('seq_id') ?? fields.count('seq');
  const decoded = decodeCacSource(payload);
  return {
    table,
    id: fields.text('event_id') ?? sequence ?? hashOf(value.get('event_hash')) ?? '',
    eventType,
    workId: textAt(value, 'work_id') ?? '',
    actorId: textAt(value, 'actor_id') ?? '',
    timestampNs: fields.count('timestamp_ns') ?? '0',
    payload,
    content: decoded.ok && decoded.value instanceof SourceObject ? decoded.value : undefined,
    signature: anyBytesOf(value.get('signature') ?? value.get('signature_hex')),
    prevHash:
      prev === undefined || prev === null || prev === GENESIS || hashOf(prev) === ZERO_HASH
        ? GENESIS
        : hashOf(prev),
    eventHash: hashOf(value.get('event_hash')),
    domain: fields.text('domain_prefix'),
    sequence: sequence === undefined ? undefined : BigInt(sequence),
  };
}

/** The payload's bytes: a text is taken as it is where it is JSON, and else as hexadecimal or base64. */
function payloadOf(value: SourceObject): Uint8Array | undefined {
  const text = value.get('payload_utf8') ?? value.get('payload_json') ?? value.get('payload');
  if (text === undefined) return anyBytesOf(value.get('payload_hex') ?? value.get('payload_b64'));
  if (text instanceof SourceObject) {
    const canonical = cacBytes(text);
    return canonical.ok ? canonical.value : undefined;
  }
  if (typeof text !== 'string') return anyBytesOf(text);
  return /^\s*[{[]/.test(text) ? encodeUtf8(text) : (anyBytesOf(text) ?? encodeUtf8(text));
}

/** The hash that a row ought to have, in hexadecimal. */
export function ledgerRowHash(row: LedgerRow): string {
  const prev = row.prevHash ?? GENESIS;
  if (row.table === 'core') {
    const before = prev === GENESIS ? new Uint8Array(32) : anyBytesOf(prev)!;
    return encodeHex(blake3(concatBytes([before, row.payload])));
  }
  const time = new Uint8Array(8);
  new DataView(time.buffer).setBigUint64(0, BigInt.asUintN(64, BigInt(row.timestampNs)), true);
  const texts = [HASH_DOMAIN, prev, row.id, row.eventType, row.workId, row.actorId];
  const signature = row.signature ?? new Uint8Array(0);
  return encodeHex(sha256(concatBytes([encodeUtf8(texts.join('')), time, row.payload, signature])));
}

/** What may stand before the payload in what the signature of such an event is over: the type's own, or that of a session or an episode. */
export function domainsOf(eventType: string): readonly string[] {
  const name = eventType.toLowerCase().replace(/[^a-z0-9]+/g, '_');
  return [
    `apm2.event.${name}:`,
    'apm2.event.session_event:',
    'apm2.event.episode:',
    `${name.toUpperCase()}:`,
  ];
}

/** Whether one of `keys` made a row's signature, and by which of the ways there are. */
export function verifyRowSignature(row: LedgerRow, keys: Iterable<string>): 'ok' | 'invalid' {
  const { signature, payload } = row;
  if (signature?.length !== 64) return 'invalid';
  const domains = row.domain === undefined ? domainsOf(row.eventType) : [row.domain];
  const messages = domains.map((domain) => concatBytes([encodeUtf8(domain), payload]));
  const hash = anyBytesOf(row.eventHash);
  if (row.table === 'core' && hash !== undefined) messages.push(hash);
  for (const key of keys)
    if (messages.some((message) => verifyEd25519(key, message, signature) === true)) return 'ok';
  return 'invalid';
}
