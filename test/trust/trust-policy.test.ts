/** Trust policies: what is refused, where and why; substrings and every changed byte of one. */

import { describe, expect, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { formatPublicKey } from '../../src/format/key/public-key.js';
import type { Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import { draftTrustPolicy, fingerprintsOf } from '../../src/rules/trust/draft-policy.js';
import { parseTrustPolicy } from '../../src/rules/trust/trust-policy.js';
import { buildGenesis } from '../../src/format/event/build.js';
import { ed25519Key, p256Key } from '../key/key-samples.js';
import { isSampledPart } from '../slow.js';

const { publicKey } = ed25519Key(Buffer.alloc(32, 9));
const other = p256Key(Buffer.alloc(32, 9)).publicKey;
const entry = (more: Partial<Key> = {}): Key => ({
  keyid: publicKey.keyid,
  public_key: formatPublicKey(publicKey),
  roles: ['event', 'checkpoint'],
  principals: ['agent:*'],
  ...more,
});
const policyOf = (more: Partial<TrustPolicy> = {}): TrustPolicy => ({
  trust_version: '1',
  origins: ['example.com/a'],
  keys: [entry()],
  ...more,
});
const bytesOf = (policy: object): Buffer => Buffer.from(JSON.stringify(policy));

/** Where a policy is refused; undefined when it is not. */
function refusal(bytes: Uint8Array): string | undefined {
  try {
    parseTrustPolicy(bytes);
    return undefined;
  } catch (error) {
    if (!(error instanceof NorthrootError)) throw error;
    expect(error.code).toBe('TRUST_POLICY_INVALID');
    return /not valid at (\S+): expected /.exec(error.message)?.[1];
  }
}

describe('what a policy may demand', () => {
  const witness = entry({ roles: ['witness'], name: 'w.example/1' });

  test.each<[string, Partial<TrustPolicy>]>([
    ['nothing', {}],
    [
      'each kind of demand',
      {
        keys: [witness],
        require: {
          event_signatures: 'required',
          checkpoints: 'required',
          checkpoint_max_records: 1,
          checkpoint_max_age_seconds: 1,
          witness_threshold: 1,
          max_unsealed_records: 0,
        },
      },
    ],
  ])('may be %s: such a policy is read as it was written', (_name, more) => {
    const policy = policyOf(more);
    expect(parseTrustPolicy(bytesOf(policy))).toEqual(policy);
  });

  test.each<[string, object, string]>([
    [
      'more witnesses than it pins',
      { keys: [witness], require: { witness_threshold: 2 } },
      '/require/witness_threshold',
    ],
    [
      'more keys of the log than there can be',
      { require: { checkpoint_quorum: 2 } },
      '/require/checkpoint_quorum',
    ],
    [
      'more keys of the log than it pins, whatever an admin may add',
      { keys: [entry({ roles: ['checkpoint', 'admin'] })], require: { checkpoint_quorum: 2 } },
      '/require/checkpoint_quorum',
    ],
    ['a witness without a name', { keys: [entry({ roles: ['witness'] })] }, '/keys/0/name'],
    [
      'a witness that no note can name',
      { keys: [entry({ roles: ['witness'], name: 'w one' })] },
      '/keys/0/name',
    ],
    [
      'a witness of P-256',
      {
        keys: [{ ...witness, keyid: other.keyid, public_key: formatPublicKey(other) }],
      },
      '/keys/0/public_key',
    ],
    ['a quorum of none', { require: { checkpoint_quorum: 0 } }, '/require/checkpoint_quorum'],
    ['a quorum of a half', { require: { checkpoint_quorum: 1.5 } }, '/require/checkpoint_quorum'],
    ['an age of 0', { require: { checkpoint_max_age_seconds: 0 } }, '/require/checkpoint_max_age_seconds'],
    ['a tail below none', { require: { max_unsealed_records: -1 } }, '/require/max_unsealed_records'],
    [
      'a tail beyond exact numbers',
      { require: { max_unsealed_records: 2 ** 53 } },
      '/require/max_unsealed_records',
    ],
    [
      'an interval in words',
      { require: { checkpoint_max_records: '10' } },
      '/require/checkpoint_max_records',
    ],
    ['what is not known', { require: { checkpoint_max_age: 1 } }, '/require/checkpoint_max_age'],
  ])('not %s', (_name, more, pointer) => {
    expect(refusal(bytesOf({ ...policyOf(), ...more }))).toBe(pointer);
  });
});

describe('bad bytes', () => {
  const text = bytesOf({ trust_version: '1', keys: [entry({ principals: ['*'], roles: ['event'] })] });

  test('no substring is a policy', () => {
    for (let start = 0; start < text.length; start += 1) {
      for (let end = start + 1; end <= text.length; end += 1) {
        if (end - start === text.length || !isSampledPart(start, end, text.length)) continue;
        expect(() => parseTrustPolicy(text.subarray(start, end))).toThrow(NorthrootError);
      }
    }
  });

  test('a changed byte is refused, or says something else', () => {
    const original = parseTrustPolicy(text);
    let accepted = 0;
    for (let index = 0; index < text.length; index += 1) {
      for (let bit = 1; bit < 256; bit *= 2) {
        const changed = Buffer.from(text);
        changed[index] = text.readUInt8(index) ^ bit;
        try {
          expect(parseTrustPolicy(changed)).not.toEqual(original);
          accepted += 1;
        } catch (error) {
          if (!(error instanceof NorthrootError)) throw error;
        }
      }
    }
    // No byte of this one can be changed into another policy: keys are named by their digest.
    expect(accepted).toBe(0);
  });
});

describe('a policy drafted from a ledger', () => {
  const genesis = buildGenesis({
    origin: 'example.com/a',
    ledger_version: '1',
    signing: { events: 'required', checkpoints: 'optional' },
    keys: [entry()],
    principal_id: 'service:ledger',
    occurred_at: '2026-01-01T00:00:00Z',
  });

  test('pins what genesis declares', () => {
    const policy = draftTrustPolicy(genesis);
    expect(parseTrustPolicy(bytesOf(policy))).toEqual({
      ...policyOf(),
      require: { event_signatures: 'required', checkpoints: 'optional' },
    });
  });

  test('has fingerprints in the forms in which people compare keys', () => {
    expect(fingerprintsOf(entry(), 'example.com/a')).toMatchObject({
      keyid: publicKey.keyid,
      openssh: expect.stringMatching(/^SHA256:[A-Za-z0-9+/]{43}$/) as string,
      vkey: expect.stringMatching(/^example\.com\/a\+[0-9a-f]{8}\+A/) as string,
    });
    const cosigner = entry({ roles: ['witness'], name: 'w.example' });
    expect(fingerprintsOf(cosigner, 'example.com/a')?.vkey).toMatch(/^w\.example\+[0-9a-f]{8}\+B/);
    expect(fingerprintsOf(entry({ roles: ['event'] }), 'example.com/a')?.vkey).toBeUndefined();
    expect(fingerprintsOf(entry({ keyid: other.keyid }), undefined)).toBeUndefined();
  });
});
