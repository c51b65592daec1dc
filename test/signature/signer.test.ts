import { existsSync, readFileSync } from 'node:fs';

import canonicalize from 'canonicalize';
import { describe, expect, test } from 'vitest';

import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { makePublicKey } from '../../src/format/key/public-key.js';
import { PAYLOAD_TYPE, preAuthEncoding } from '../../src/format/signature/dsse.js';
import { nobleBackend } from './noble-backend.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { createSigner, signEvent } from '../../src/format/signature/signer.js';
import { codeOf, ed25519Key } from '../key/key-samples.js';

const EVENT = Buffer.from('{"event_type":"x.test"}');

describe('signEvent', () => {
  test.each(['ed25519', 'p256'] as const)(
    'signs the PAE of an event with a %s key, and names the key',
    (alg) => {
      const signer = createSigner(generatePrivateKey(alg));
      const { keyid, sig } = signEvent(EVENT, signer);
      expect(keyid).toBe(signer.publicKey.keyid);
      expect(sig).toMatch(/^[A-Za-z0-9_-]{86}$/);
      for (const backend of [nodeBackend, nobleBackend]) {
        const key = backend.importKey(signer.publicKey);
        expect(key.verify(preAuthEncoding(PAYLOAD_TYPE, EVENT), Buffer.from(sig, 'base64url'))).toBe(true);
        expect(key.verify(EVENT, Buffer.from(sig, 'base64url'))).toBe(false);
      }
    },
  );

  test('gives the same Ed25519 signature each time', () => {
    const signer = createSigner(ed25519Key(Buffer.alloc(32, 1)));
    expect(signEvent(EVENT, signer)).toEqual(signEvent(EVENT, signer));
  });

  const file = new URL('../../../shared/vectors/ledgers/good-basic.jsonl', import.meta.url);
  test.skipIf(!existsSync(file))('gives the signatures that another program gave its events', () => {
    const signer = createSigner(ed25519Key(Buffer.alloc(32, 1)));
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    for (const line of lines) {
      const { event, signatures } = JSON.parse(line) as { event: unknown; signatures: unknown[] };
      expect([signEvent(Buffer.from(canonicalize(event)!), signer)]).toEqual(signatures);
    }
  });
});

describe('createSigner', () => {
  const key = generatePrivateKey();

  test('refuses a public half that is not its own', () => {
    const other = generatePrivateKey();
    const small = makePublicKey('ed25519', new Uint8Array(32));
    for (const publicKey of [other.publicKey, small, { ...key.publicKey, keyid: other.publicKey.keyid }]) {
      expect(codeOf(() => createSigner({ publicKey, pkcs8: key.pkcs8 }))).toBe('KEY_MALFORMED');
    }
  });

  test('refuses what is no private key', () => {
    expect(codeOf(() => createSigner({ ...key, pkcs8: new Uint8Array(48) }))).toBe('KEY_MALFORMED');
  });
});
