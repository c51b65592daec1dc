/** What the adapter signs is byte for byte what Clasper's own code was seen to accept. */

import { createPrivateKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parsePrivateKey } from '../../../src/format/key/private-key.js';
import { createSigner } from '../../../src/format/signature/signer.js';
import { type PayloadType, signEnvelope } from '../../../src/hosts/clasper/live/sign.js';
import type { JsonObject } from '../../../src/base/json/value.js';
import { hasRecordings, recordedText } from '../recorded.js';

interface Vector {
  readonly name: string;
  readonly peer_result: string;
  readonly envelope: Record<string, string> & { readonly payload: JsonObject };
}

describe.skipIf(!hasRecordings)('envelopes', () => {
  const { key, cases } = (
    hasRecordings ? JSON.parse(recordedText('clasper/signed-envelope-vectors.json')) : { cases: [] }
  ) as { readonly key: { readonly seed_hex: string }; readonly cases: readonly Vector[] };

  it('are those that were accepted', () => {
    const der = Buffer.from(`302e020100300506032b657004220420${key.seed_hex}`, 'hex');
    const pem = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({
      format: 'pem',
      type: 'pkcs8',
    });
    const signer = createSigner(parsePrivateKey(pem));
    const accepted = cases.filter(
      ({ peer_result: result, envelope: { signature } }) =>
        result === 'ok' && /^[\w-]{86}$/.test(signature ?? ''),
    );
    expect(accepted.length).toBeGreaterThan(1);
    for (const { envelope } of accepted) {
      const { adapter_id: adapterId, adapter_version: adapterVersion, issued_at: issuedAt } = envelope;
      const { execution_id: executionId, trace_id: traceId, payload_type: type } = envelope;
      const ids = { adapterId, adapterVersion, executionId, traceId } as Parameters<typeof signEnvelope>[1];
      expect(signEnvelope(signer, ids, type as PayloadType, envelope.payload, issuedAt)).toEqual(envelope);
    }
  });
});
