/** Makes what an adapter signs: envelopes, and the chain of a trace's steps. */

import { encodeBase64url } from '../../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { decodeSourceJson, SourceObject } from '../../../base/json/source-json.js';
import type { JsonObject, JsonValue } from '../../../base/json/value.js';
import { formatPublicKeyAs } from '../../../format/key/public-key.js';
import { tryEncodeEcdsaDer } from '../../../format/signature/ecdsa-der.js';
import type { Signer } from '../../../format/signature/signer.js';
import { stableHash } from '../../shared/forms/stable.js';
import { envelopeSigningInput } from '../envelope.js';
import { stepHash } from '../steps.js';

export type PayloadType = 'trace' | 'audit' | 'cost' | 'metrics' | 'violations';

export interface EnvelopeIds {
  readonly adapterId: string;
  readonly adapterVersion: string;
  readonly executionId: string;
  readonly traceId: string;
}

/** The value as it is hashed. @throws TypeError unless it is plain JSON */
export function toSource(value: JsonObject): SourceObject {
  const decoded = decodeSourceJson(encodeUtf8(JSON.stringify(value)), { loneSurrogates: true });
  if (!decoded.ok || !(decoded.value instanceof SourceObject)) throw new TypeError('expected plain JSON');
  return decoded.value;
}

/**
 * A payload in a signed envelope (v1): Ed25519, or ES256 in DER, by the signer's key.
 * @param issuedAt - RFC 3339
 * @throws TypeError for another kind of key
 */
export function signEnvelope(
  signer: Signer,
  { adapterId, adapterVersion, executionId, traceId }: EnvelopeIds,
  type: PayloadType,
  payload: JsonObject,
  issuedAt: string,
): JsonObject {
  const unsigned = {
    envelope_version: 'v1',
    adapter_id: adapterId,
    adapter_version: adapterVersion,
    issued_at: issuedAt,
    execution_id: executionId,
    trace_id: traceId,
    payload_type: type,
    payload_hash: stableHash(toSource(payload)),
  };
  const signature = signText(signer, envelopeSigningInput(toSource(unsigned)));
  return { ...unsigned, payload, signature };
}

function signText(signer: Signer, message: Uint8Array): string {
  const { alg } = signer.publicKey;
  const raw = signer.sign(message);
  const signature = alg === 'p256' ? tryEncodeEcdsaDer(raw) : raw;
  if ((alg !== 'p256' && alg !== 'ed25519') || signature === undefined)
    throw new TypeError('expected a signer with an ed25519 or p256 key');
  return encodeBase64url(signature);
}

/** The key as Clasper registers it. */
export function keyMembers({ publicKey }: Signer): {
  readonly key_alg: string;
  readonly public_jwk: JsonValue;
} {
  return {
    key_alg: publicKey.alg === 'p256' ? 'ES256' : 'ed25519',
    public_jwk: JSON.parse(formatPublicKeyAs(publicKey, 'jwk')) as JsonValue,
  };
}

/** Steps with their ids and hashes, each naming the one before it. */
export function chainSteps(steps: readonly JsonObject[]): JsonObject[] {
  let before: string | null = null;
  return steps.map((step, index) => {
    const chained: JsonObject = { ...step, step_id: `step-${index + 1}`, prev_step_hash: before };
    const hash = stepHash(toSource(chained), true);
    before = hash;
    return { ...chained, step_hash: hash };
  });
}
