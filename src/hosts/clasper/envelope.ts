/** Clasper's signed envelope (v1): the host's own checks in the host's own order, and what it does not check. */

import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { parseTimestamp } from '../../base/value/timestamp.js';
import { stableBytes, stableHash } from '../shared/forms/stable.js';
import { objectAt, textAt, timeOfText, valueAt } from '../shared/values.js';
import { type TelemetryKey, verifiesText } from './keys.js';
import { escapePointer } from '../../base/json/pointer.js';

/** The host's own words for what is wrong, in the order in which it looks. */
type EnvelopeResult =
  | 'ok'
  | 'missing_key'
  | 'payload_hash_mismatch'
  | 'timestamp_skew'
  | 'invalid_signature'
  | 'unsupported_algorithm';

export interface EnvelopeCheck {
  /** What the host's verification of the signature says. */
  readonly result: EnvelopeResult;
  /** Whether it has the members of the host's schema; the host refuses it otherwise, whatever its signature. */
  readonly hasShape: boolean;
  /** `sha256:…` of the payload as it is. */
  readonly payloadHash: string;
  /** Pointers within the payload of members `__proto__`, which the hash, and so the signature, does not cover. */
  readonly unsigned: readonly string[];
  /** Ids that the envelope and its payload state differently; the host does not compare them. */
  readonly differing: readonly string[];
}

interface EnvelopeContext {
  /** The key of the adapter; without one the result is `missing_key`. */
  readonly key?: TelemetryKey | undefined;
  /** When the host got it, a Timestamp; without it only an unreadable `issued_at` is a skew. */
  readonly receivedAt?: string | undefined;
  /** Seconds; 300 where it is left out. */
  readonly maxSkewSeconds?: number | undefined;
}

const PAYLOAD_TYPES = new Set(['trace', 'audit', 'cost', 'metrics', 'violations']);
const SIGNED = [
  ...['adapter_id', 'adapter_version', 'envelope_version', 'execution_id', 'issued_at', 'payload_hash'],
  ...['payload_type', 'trace_id'],
];
const IDS = ['execution_id', 'trace_id', 'adapter_id'];
const DEFAULT_SKEW_SECONDS = 300;

/** Whether it is meant to be an envelope. */
export function isEnvelope(value: SourceValue | undefined): boolean {
  return (
    value instanceof SourceObject && ['payload', 'payload_hash', 'signature'].every((name) => value.has(name))
  );
}

/** What the signature is over. */
export function envelopeSigningInput(envelope: SourceObject): Uint8Array {
  return stableBytes(new SourceObject(new Map(envelope.entries().filter(([name]) => SIGNED.includes(name)))));
}

/** Checks an envelope as the host does, and beyond. Nothing in it makes it throw. */
export function checkEnvelope(envelope: SourceObject, context: EnvelopeContext = {}): EnvelopeCheck {
  const payload = valueAt(envelope, 'payload') ?? null;
  const payloadHash = stableHash(payload);
  return {
    result: resultOf(envelope, payloadHash, context),
    hasShape:
      textAt(envelope, 'envelope_version') === 'v1' &&
      [...SIGNED, 'signature'].every((name) => textAt(envelope, name) !== undefined) &&
      PAYLOAD_TYPES.has(textAt(envelope, 'payload_type') ?? '') &&
      objectAt(envelope, 'payload') !== undefined,
    payloadHash,
    unsigned: protoMembers(payload, '').slice(0, 16),
    differing: IDS.filter((name) => {
      const inside = textAt(payload, name);
      return inside !== undefined && inside !== textAt(envelope, name);
    }),
  };
}

function resultOf(
  envelope: SourceObject,
  payloadHash: string,
  { key, receivedAt, maxSkewSeconds = DEFAULT_SKEW_SECONDS }: EnvelopeContext,
): EnvelopeResult {
  const issuedText = textAt(envelope, 'issued_at') ?? '';
  const issuedAt = timeOfText(issuedText);
  if (key === undefined || isRevoked(key, issuedAt)) return 'missing_key';
  if (textAt(envelope, 'payload_hash') !== payloadHash) return 'payload_hash_mismatch';
  if (Number.isNaN(Date.parse(issuedText))) return 'timestamp_skew';
  if (issuedAt !== undefined && receivedAt !== undefined) {
    const skew = parseTimestamp(receivedAt) - parseTimestamp(issuedAt);
    if ((skew < 0n ? -skew : skew) > BigInt(Math.round(maxSkewSeconds * 1e9))) return 'timestamp_skew';
  }
  if (key.publicKey === undefined) return 'unsupported_algorithm';
  const signature = textAt(envelope, 'signature') ?? '';
  return verifiesText(key.publicKey, envelopeSigningInput(envelope), signature) ? 'ok' : 'invalid_signature';
}

/** A key that was revoked signs nothing that was issued from then on. */
function isRevoked({ revokedAt }: TelemetryKey, issuedAt: string | undefined): boolean {
  if (revokedAt === undefined) return false;
  if (revokedAt === 'always' || issuedAt === undefined) return true;
  return parseTimestamp(revokedAt) <= parseTimestamp(issuedAt);
}

/** At most as deep as JSON is read. */
function protoMembers(value: SourceValue, pointer: string): string[] {
  if (value instanceof SourceObject)
    return value.entries().flatMap(([name, member]) => {
      const at = `${pointer}/${escapePointer(name)}`;
      return name === '__proto__' ? [at] : protoMembers(member, at);
    });
  if (!Array.isArray(value)) return [];
  return (value as readonly SourceValue[]).flatMap((element, i) => protoMembers(element, `${pointer}/${i}`));
}
