/** ML-DSA-44 keys in their forms (RFC 9881, SPEC §7), and what is no key of theirs. */

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { expandMlDsa44 } from '../../src/format/key/ml-dsa-44.js';
import { formatPrivateKey, generatePrivateKey, parsePrivateKey } from '../../src/format/key/private-key.js';
import {
  checkPublicKey,
  formatPublicKey,
  formatPublicKeyAs,
  makePublicKey,
  parsePublicKey,
  tryParseWirePublicKey,
} from '../../src/format/key/public-key.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { codeOf } from './key-samples.js';

const pem = (label: string, der: Uint8Array): string =>
  `-----BEGIN ${label}-----\n${Buffer.from(der).toString('base64').replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`;
const hex = (text: string): Buffer => Buffer.from(text, 'hex');

const seed = Buffer.alloc(32, 7);
const { secretKey, publicKey: raw } = expandMlDsa44(seed);
const SEED = pem('PRIVATE KEY', Buffer.concat([hex('3034020100300b060960864801650304031104228020'), seed]));
const both = (expanded: Uint8Array): string =>
  pem(
    'PRIVATE KEY',
    Buffer.concat([
      hex('30820a3e020100300b060960864801650304031104820a2a30820a260420'),
      seed,
      hex('04820a00'),
      expanded,
    ]),
  );
const { publicKey } = parsePrivateKey(SEED);

describe('a private key', () => {
  test('is PKCS#8 with the seed', () => {
    expect(publicKey.bytes).toEqual(new Uint8Array(raw));
    expect(formatPrivateKey(parsePrivateKey(SEED), 'pem')).toBe(SEED);
    const made = generatePrivateKey('ml-dsa-44');
    expect(parsePrivateKey(formatPrivateKey(made, 'pem'))).toEqual(made);
    expect(made.publicKey.keyid).not.toBe(publicKey.keyid);
  });

  test('is read with the expanded key beside the seed, when that belongs to it', () => {
    expect(parsePrivateKey(both(secretKey)).publicKey).toEqual(publicKey);
    const other = Uint8Array.from(secretKey);
    other[2000] ^= 1;
    expect(codeOf(() => parsePrivateKey(both(other)))).toBe('KEY_MALFORMED');
  });

  test('without a seed cannot be used', () => {
    const prefix = hex('30820a18020100300b060960864801650304031104820a0404820a00');
    const expanded = pem('PRIVATE KEY', Buffer.concat([prefix, secretKey]));
    expect(codeOf(() => parsePrivateKey(expanded))).toBe('KEY_UNSUPPORTED');
  });

  test('signs what its public half verifies', () => {
    const signer = createSigner(parsePrivateKey(SEED));
    expect(signer.sign(Buffer.from('text'))).toHaveLength(2420);
    expect(signer.publicKey).toEqual(publicKey);
    expect(
      codeOf(() =>
        createSigner({ ...parsePrivateKey(SEED), publicKey: generatePrivateKey('ml-dsa-44').publicKey }),
      ),
    ).toBe('KEY_MALFORMED');
  });

  test('is no JWK here', () => {
    expect(codeOf(() => formatPrivateKey(parsePrivateKey(SEED), 'jwk'))).toBe('KEY_UNSUPPORTED');
  });

  test('with a byte changed is another key, or none', () => {
    const der = Buffer.from(SEED.split('\n').slice(1, -2).join(''), 'base64');
    for (let at = 0; at < der.length; at += 1) {
      const changed = Buffer.from(der);
      changed[at] ^= 1;
      const code = codeOf(() => {
        expect(parsePrivateKey(pem('PRIVATE KEY', changed)).publicKey.keyid).not.toBe(publicKey.keyid);
      });
      if (at >= der.length - 32) expect(code, `byte ${at}`).toBe('ok');
      else expect(code, `byte ${at}`).toMatch(/^KEY_/);
    }
  });
});

describe('a public key', () => {
  const wire = formatPublicKey(publicKey);

  test('is named by the SHA-256 of its text', () => {
    expect(wire).toMatch(/^ml-dsa-44:[A-Za-z0-9_-]{1750}$/);
    expect(publicKey.keyid).toBe(createHash('sha256').update(wire).digest('base64url'));
    expect(checkPublicKey(publicKey)).toBe('ok');
  });

  test('is read in its forms', () => {
    const forms = [
      wire,
      formatPublicKeyAs(publicKey, 'pem'),
      formatPublicKeyAs(publicKey, 'vkey', 'log'),
      Buffer.from(raw).toString('base64'),
      Buffer.from(raw).toString('base64url'),
      Buffer.from(raw).toString('hex'),
      raw,
    ];
    for (const form of forms) expect(parsePublicKey(form)).toEqual(publicKey);
    expect(formatPublicKeyAs(publicKey, 'pem')).toContain(
      `\n${Buffer.from(hex('30820532300b06096086480165030403110382052100')).toString('base64').slice(0, 28)}`,
    );
  });

  test.each(['openssh', 'did', 'jwk'] as const)('has no form %s', (form) => {
    expect(codeOf(() => formatPublicKeyAs(publicKey, form))).toBe('KEY_UNSUPPORTED');
  });

  test('is refused when it is longer, shorter or not canonical', () => {
    for (const text of [
      wire.slice(0, -1),
      `${wire}A`,
      wire.slice(0, -2),
      `${wire.slice(0, -1)}B`,
      wire.slice(1),
    ]) {
      expect(tryParseWirePublicKey(text)).toBe(undefined);
    }
    expect(() => makePublicKey('ml-dsa-44', raw.subarray(1))).toThrow(RangeError);
  });
});

describe('what is in no form that is read, is told', () => {
  const jwk = JSON.stringify({ kty: 'OKP', crv: 'Ed25519', x: Buffer.alloc(32, 1).toString('base64url') });
  const key = formatPublicKeyAs(generatePrivateKey().publicKey, 'pem');
  const hintOf = (
    input: string | Uint8Array,
    parse: (input: string | Uint8Array) => unknown,
  ): string | undefined => {
    try {
      parse(input);
      return 'ok';
    } catch (error) {
      return (error as { readonly hint?: string }).hint;
    }
  };

  test.each([
    ['a JWK with a member twice', jwk.replace('"x"', `"x":"${'A'.repeat(43)}","x"`), 'KEY_MALFORMED'],
    [
      'a JWK with a member twice, once escaped',
      jwk.replace('"x"', `"\\u0078":"${'A'.repeat(43)}","x"`),
      'KEY_MALFORMED',
    ],
    ['a JWK set', `{"keys":[${jwk}]}`, 'KEY_UNSUPPORTED'],
    ['an array of JWKs', `[${jwk}]`, 'KEY_UNSUPPORTED'],
    ['a padded JWK', jwk.replace(/"}$/, '="}'), 'KEY_MALFORMED'],
    ['RFC 4716', '---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----\n', 'KEY_UNSUPPORTED'],
    ['text before a PEM block', `Bag Attributes\n${key}`, 'KEY_MALFORMED'],
    ['text after a PEM block', `${key}and more\n`, 'KEY_MALFORMED'],
  ])('tells what %s is, and does not read it', (what, text, code) => {
    expect(codeOf(() => parsePublicKey(text))).toBe(code);
    if (!what.includes('twice')) expect(hintOf(text, parsePublicKey)).toMatch(/./);
  });

  test('a JWK in any layout, with other members, is read', () => {
    const { publicKey: own } = generatePrivateKey();
    const text = ` ${formatPublicKeyAs(own, 'jwk').replace('{', '{ "iat": 1.50,\n"kid": "k\\u0031", ')} `;
    expect(parsePublicKey(text)).toEqual(own);
  });

  test('DER is no form of a public key', () => {
    const der = Buffer.from(key.split('\n').slice(1, -2).join(''), 'base64');
    expect(codeOf(() => parsePublicKey(der))).toBe('KEY_MALFORMED');
    expect(hintOf(der, parsePublicKey)).toContain('openssl pkey -inform DER');
    expect(hintOf(parsePrivateKey(SEED).pkcs8, parsePrivateKey)).toContain('openssl pkey -inform DER');
  });

  test('the parameters of a curve', () => {
    const parameters = pem('EC PARAMETERS', hex('06082a8648ce3d030107'));
    const withKey = `${parameters}${pem('EC PRIVATE KEY', hex('3000'))}`;
    expect([codeOf(() => parsePrivateKey(parameters)), codeOf(() => parsePrivateKey(withKey))]).toEqual([
      'KEY_MALFORMED',
      'KEY_UNSUPPORTED',
    ]);
    expect(hintOf(withKey, parsePrivateKey)).toContain('openssl pkcs8');
    expect(hintOf(withKey, parsePublicKey)).toContain('-pubout');
    expect(hintOf(parameters, parsePrivateKey)).toMatch(/./);
  });
});
