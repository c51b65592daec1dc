/** RFC 8032 §7.1, tests 1, 2, 3 and SHA(abc): what is signed, and what is accepted. */

import { describe, expect, test } from 'vitest';

import { nobleBackend } from './noble-backend.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { ed25519Key } from '../key/key-samples.js';
import { tablesBackend } from './tables-backend.js';

const VECTORS = [
  {
    name: 'TEST 1',
    seed: '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    message: '',
    signature:
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  },
  {
    name: 'TEST 2',
    seed: '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    message: '72',
    signature:
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  },
  {
    name: 'TEST 3',
    seed: 'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    message: 'af82',
    signature:
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  },
  {
    name: 'TEST SHA(abc)',
    seed: '833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42',
    message:
      'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f',
    signature:
      'dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704',
  },
];

describe.each(VECTORS)('RFC 8032 $name', ({ seed, message, signature }) => {
  const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'hex'));
  const signer = createSigner(ed25519Key(bytes(seed)));

  test('is what a signer makes', () => {
    expect(signer.sign(bytes(message))).toEqual(bytes(signature));
  });

  test.each([nodeBackend, nobleBackend, tablesBackend])('is valid for $name', (backend) => {
    const key = backend.importKey(signer.publicKey);
    expect(key).toMatchObject({ usable: true, publicKey: signer.publicKey });
    expect(key.verify(bytes(message), bytes(signature))).toBe(true);
  });
});
