/** Signed envelopes against the host's own verdicts, and the stable form that they are signed in. */

import { generateKeyPairSync, sign as cryptoSign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readChainEntry } from '../../../src/hosts/clasper/chain.js';
import { checkEnvelope, envelopeSigningInput } from '../../../src/hosts/clasper/envelope.js';
import { readTelemetryKey, type TelemetryKey } from '../../../src/hosts/clasper/keys.js';
import { stableHash, stableText } from '../../../src/hosts/shared/forms/stable.js';
import { SourceObject } from '../../../src/base/json/source-json.js';
import { hasRecordings, recordedText } from '../recorded.js';
import { bundleTexts, parse, parseObject, PUBLIC_JWK } from './kit.js';

const VECTORS = 'clasper/signed-envelope-vectors.json';

function keyOf(alg: string, jwk: string, revokedAt = 'null'): TelemetryKey {
  return readTelemetryKey(
    parseObject(`{"adapter_id":"openclaw","alg":"${alg}","public_jwk":${jwk},"revoked_at":${revokedAt}}`),
  )!;
}

const KEY = keyOf('ed25519', PUBLIC_JWK);

describe.skipIf(!hasRecordings)('each vector of the host', () => {
  const { cases, raw_text_cases: raw } = hasRecordings
    ? (JSON.parse(recordedText(VECTORS)) as {
        cases: {
          name: string;
          envelope: object;
          signing_input: string;
          peer_schema_ok: boolean;
          peer_result: string;
        }[];
        raw_text_cases: { name: string; raw: string; peer_result: string }[];
      })
    : { cases: [], raw_text_cases: [] };

  it.each(cases)('$name', ({ envelope, signing_input, peer_schema_ok, peer_result }) => {
    const object = parseObject(JSON.stringify(envelope));
    const check = checkEnvelope(object, { key: KEY });
    expect(check.result).toBe(peer_result);
    expect(check.hasShape).toBe(peer_schema_ok);
    expect(new TextDecoder().decode(envelopeSigningInput(object))).toBe(signing_input);
    const isOther = JSON.stringify(envelope).includes('exec_OTHER');
    expect(check.differing).toEqual(isOther ? ['execution_id'] : []);
  });

  it.each(raw)('$name', ({ raw: text, peer_result }) => {
    const check = checkEnvelope(parseObject(text), { key: KEY });
    expect(check.result).toBe(peer_result);
    // Beyond the host: it does not see the member, whoever reads the payload may.
    expect(check.unsigned).toEqual(['/__proto__']);
  });

  it('the order of the checks: key, hash, time, signature, algorithm', () => {
    const broken = parseObject(
      JSON.stringify({ ...cases[0].envelope, payload_hash: 'x', issued_at: 'yesterday', signature: 'x' }),
    );
    const at = (change: object, key?: TelemetryKey) =>
      checkEnvelope(
        parseObject(JSON.stringify({ ...(JSON.parse(stableText(broken)) as object), ...change })),
        { key },
      ).result;
    const { payload_hash, issued_at } = cases[0].envelope as Record<string, string>;
    expect(at({})).toBe('missing_key');
    expect(at({}, KEY)).toBe('payload_hash_mismatch');
    expect(at({ payload_hash }, KEY)).toBe('timestamp_skew');
    expect(at({ payload_hash, issued_at }, KEY)).toBe('invalid_signature');
    expect(at({ payload_hash, issued_at }, keyOf('ES256', PUBLIC_JWK))).toBe('unsupported_algorithm');
  });

  it('a skew of more than five minutes either way, where it is known when the host got it', () => {
    const object = parseObject(JSON.stringify(cases[0].envelope));
    const at = (receivedAt: string) => checkEnvelope(object, { key: KEY, receivedAt }).result;
    expect(at('2026-02-06T14:17:33Z')).toBe('ok');
    expect(at('2026-02-06T14:17:33.001Z')).toBe('timestamp_skew');
    expect(at('2026-02-06T14:07:32.999Z')).toBe('timestamp_skew');
  });

  it('ES256: DER is a signature, r and s alone are none, and any other name of an algorithm means it', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = JSON.stringify(publicKey.export({ format: 'jwk' }));
    const envelope = parseObject(JSON.stringify(cases[0].envelope));
    const input = envelopeSigningInput(envelope);
    const resultOf = (signature: Buffer, alg: string) =>
      checkEnvelope(
        new SourceObject(new Map([...envelope.entries(), ['signature', signature.toString('base64')]])),
        { key: keyOf(alg, jwk) },
      ).result;
    const der = cryptoSign('sha256', input, privateKey);
    const raw = cryptoSign('sha256', input, { key: privateKey, dsaEncoding: 'ieee-p1363' });
    expect(resultOf(der, 'ES256')).toBe('ok');
    expect(resultOf(der, 'whatever')).toBe('ok');
    expect(resultOf(raw, 'ES256')).toBe('invalid_signature');
    expect(resultOf(der, 'ed25519')).toBe('unsupported_algorithm');
  });

  it('a key that was revoked: not from then on', () => {
    const object = parseObject(JSON.stringify(cases[0].envelope));
    const at = (time: string) => checkEnvelope(object, { key: keyOf('ed25519', PUBLIC_JWK, time) }).result;
    expect(at('"2026-02-06T14:12:33Z"')).toBe('missing_key');
    expect(at('"2026-02-06T14:12:34Z"')).toBe('ok');
    expect(at('"some day"')).toBe('missing_key');
  });

  it('all 23 entries of the recorded chain have the hash that they state', () => {
    const lines = bundleTexts().get('audit_chain.jsonl')!.trimEnd().split('\n');
    expect(lines.map((line) => readChainEntry(parseObject(line))?.isRight)).toEqual(Array(23).fill(true));
  });
});

describe('the stable form', () => {
  it.each([
    ['{"b":1,"a":2}', '{"a":2,"b":1}'],
    ['{"10":1,"9":2,"z":3,"-1":4,"01":5}', '{"9":2,"10":1,"-1":4,"01":5,"z":3}'],
    ['{"4294967294":1,"4294967295":2,"5":3}', '{"5":3,"4294967294":1,"4294967295":2}'],
    ['{"__proto__":{"a":1},"b":[{"__proto__":1}]}', '{"b":[{}]}'],
    ['"\\ud800 \\udc00\\ud800"', '"\\ud800 \\udc00\\ud800"'],
    ['[1e21,1E-7,-0,100000000000000000001,0.1]', '[1e+21,1e-7,0,100000000000000000000,0.1]'],
    ['[1e400,-1e400]', '[null,null]'],
    ['"\\u0001\\/é😀"', '"\\u0001/é😀"'],
  ])('of %s is %s', (text, form) => {
    expect(stableText(parse(text))).toBe(form);
  });

  it('is what JavaScript writes', () => {
    const stabilize = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(stabilize);
      if (typeof value !== 'object' || value === null) return value;
      const sorted: Record<string, unknown> = {};
      for (const key of Object.keys(value).sort())
        sorted[key] = stabilize((value as Record<string, unknown>)[key]);
      return sorted;
    };
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = JSON.stringify(value);
        expect(stableText(parse(text))).toBe(JSON.stringify(stabilize(JSON.parse(text))));
      }),
      { numRuns: 300 },
    );
  });

  it('is hashed as lower-case hexadecimal digits', () => {
    expect(stableHash(parse('{}'))).toBe(
      'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
    );
  });
});
