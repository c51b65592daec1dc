import { generateKeyPairSync } from 'node:crypto';

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { curveOf } from '../../src/format/key/key-form.js';
import {
  formatPrivateKey,
  generatePrivateKey,
  parsePrivateKey,
  type PrivateKey,
} from '../../src/format/key/private-key.js';
import { checkPublicKey, formatPublicKey, formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { codeOf, ed25519Key, openSshPem, p256Key, seedPem, type OpenSshOptions } from './key-samples.js';

const SEED = Buffer.alloc(32, 1);
const ed = ed25519Key(SEED);
const ec = p256Key(SEED);
const other = {
  ed25519: ed25519Key(Buffer.alloc(32, 2)).publicKey.bytes,
  p256: p256Key(Buffer.alloc(32, 2)).publicKey.bytes,
};

const parseCode = (input: string | Uint8Array) => codeOf(() => parsePrivateKey(input));
const pem = (der: Uint8Array, label = 'PRIVATE KEY') =>
  `-----BEGIN ${label}-----\n${Buffer.from(der).toString('base64')}\n-----END ${label}-----\n`;

describe('generatePrivateKey', () => {
  test.each(['ed25519', 'p256'] as const)('makes usable keys of %s, each another', (alg) => {
    const keys = [generatePrivateKey(alg), generatePrivateKey(alg)];
    for (const { publicKey } of keys) expect([publicKey.alg, checkPublicKey(publicKey)]).toEqual([alg, 'ok']);
    expect(keys[0].publicKey.keyid).not.toBe(keys[1].publicKey.keyid);
  });

  test('makes Ed25519 unless asked otherwise', () => {
    expect(generatePrivateKey().publicKey.alg).toBe('ed25519');
    expect(() => generatePrivateKey('rsa' as never)).toThrow(TypeError);
  });
});

describe('forms', () => {
  test('round trip for any key', () => {
    const key = fc.constantFrom('ed25519' as const, 'p256' as const).map((alg) => generatePrivateKey(alg));
    fc.assert(
      fc.property(key, (k) => {
        for (const form of ['pem', 'jwk'] as const) {
          expect(parsePrivateKey(formatPrivateKey(k, form))).toEqual(k);
          expect(parsePrivateKey(Buffer.from(`\n${formatPrivateKey(k, form)}\r\n`))).toEqual(k);
        }
      }),
      { numRuns: 25 },
    );
  });

  test('give the public key of RFC 8032 §7.1 test 1', () => {
    const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex');
    expect(Buffer.from(ed25519Key(seed).publicKey.bytes).toString('hex')).toBe(
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    );
  });

  test('must be known to be written', () => {
    expect(() => formatPrivateKey(ed, 'openssh' as never)).toThrow(TypeError);
  });
});

describe('parsePrivateKey: PEM', () => {
  const claim = (key: PrivateKey, bytes: Uint8Array) => {
    const der = Buffer.from(key.pkcs8);
    der.set(bytes, der.length - bytes.length);
    return der;
  };
  const version2 = (pub: Uint8Array) =>
    Buffer.concat([
      Buffer.from('3051020101300506032b657004220420', 'hex'),
      SEED,
      Buffer.from('812100', 'hex'),
      pub,
    ]);

  test('reads PKCS#8 of version 2, and P-256 without its public half', () => {
    expect(parsePrivateKey(pem(version2(ed.publicKey.bytes)))).toEqual(ed);
    const bare = Buffer.concat([
      Buffer.from('3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420', 'hex'),
      SEED,
    ]);
    expect(parsePrivateKey(pem(bare))).toEqual(ec);
  });

  test('refuses a public half that is not its own', () => {
    expect(parseCode(pem(version2(other.ed25519)))).toBe('KEY_MALFORMED');
    expect(parseCode(pem(claim(ec, other.p256)))).toBe('KEY_MALFORMED');
    expect(parseCode(pem(claim(ec, ec.publicKey.bytes)))).toBe('ok');
  });

  test('refuses bytes after the key, and a cut key', () => {
    for (const { pkcs8 } of [ed, ec]) {
      expect(parseCode(pem(Buffer.concat([pkcs8, Buffer.of(0)])))).toBe('KEY_MALFORMED');
      expect(parseCode(pem(pkcs8.subarray(0, -1)))).toBe('KEY_MALFORMED');
    }
  });

  test('refuses scalars outside of the group', () => {
    const order = Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex');
    for (const scalar of [Buffer.alloc(32), order, Buffer.alloc(32, 0xff)]) {
      const der = Buffer.from(ec.pkcs8);
      scalar.copy(der, 36);
      expect(parseCode(pem(der))).toBe('KEY_MALFORMED');
    }
  });

  test('tells encrypted keys', () => {
    const secret = { cipher: 'aes-256-cbc', passphrase: 'x', format: 'pem' } as const;
    const { privateKey } = generateKeyPairSync('ed25519');
    expect(parseCode(privateKey.export({ ...secret, type: 'pkcs8' }))).toBe('KEY_ENCRYPTED');
    const { privateKey: sec1 } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    expect(parseCode(sec1.export({ ...secret, type: 'sec1' }))).toBe('KEY_ENCRYPTED');
  });

  test('tells other labels and algorithms', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    expect(parseCode(privateKey.export({ format: 'pem', type: 'sec1' }))).toBe('KEY_UNSUPPORTED');
    const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
    expect(parseCode(rsa.export({ format: 'pem', type: 'pkcs1' }))).toBe('KEY_UNSUPPORTED');
    expect(parseCode(rsa.export({ format: 'pem', type: 'pkcs8' }))).toBe('KEY_UNSUPPORTED');
    const curve = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey;
    expect(parseCode(curve.export({ format: 'pem', type: 'pkcs8' }))).toBe('KEY_UNSUPPORTED');
    const exchange = generateKeyPairSync('x25519').privateKey;
    expect(parseCode(exchange.export({ format: 'pem', type: 'pkcs8' }))).toBe('KEY_UNSUPPORTED');
    expect(parseCode(pem(ed.pkcs8, 'FILE'))).toBe('KEY_MALFORMED');
  });
});

describe('parsePrivateKey: OpenSSH', () => {
  const ssh = (key: PrivateKey, options: OpenSshOptions = {}) =>
    parseCode(openSshPem(curveOf(key.publicKey.alg, 'OpenSSH'), SEED, key.publicKey.bytes, options));

  test('reads Ed25519 and P-256, with scalars of any size', () => {
    expect(parsePrivateKey(openSshPem('ed25519', SEED, ed.publicKey.bytes))).toEqual(ed);
    const scalars = [SEED, Buffer.alloc(32, 0x80), Buffer.concat([Buffer.alloc(2), Buffer.alloc(30, 0x91)])];
    for (const scalar of [...scalars, Buffer.concat([Buffer.alloc(31), Buffer.of(3)])]) {
      const key = p256Key(scalar);
      expect(parsePrivateKey(openSshPem('p256', scalar, key.publicKey.bytes))).toEqual(key);
    }
  });

  test('tells encrypted keys', () => {
    const encrypted = { cipher: 'aes256-ctr', kdf: 'bcrypt', kdfOptions: Buffer.alloc(24) };
    expect(ssh(ed, encrypted)).toBe('KEY_ENCRYPTED');
    expect(ssh(ec, encrypted)).toBe('KEY_ENCRYPTED');
  });

  test('refuses public halves that do not belong to the secret, or differ', () => {
    for (const key of [ed, ec]) {
      const bytes = other[curveOf(key.publicKey.alg, 'OpenSSH')];
      expect(ssh(key, { outerPublic: bytes })).toBe('KEY_MALFORMED');
      expect(ssh(key, { innerPublic: bytes })).toBe('KEY_MALFORMED');
      expect(ssh(key, { outerPublic: bytes, innerPublic: bytes })).toBe('KEY_MALFORMED');
      expect(ssh(key, { innerPublic: key.publicKey.bytes.subarray(1) })).toBe('KEY_MALFORMED');
    }
    expect(ssh(ed, { secondPublic: other.ed25519 })).toBe('KEY_MALFORMED');
  });

  test.each<[string, OpenSshOptions]>([
    ['another magic', { magic: 'openssh-key-v2\0' }],
    ['a kdf without a cipher', { kdf: 'bcrypt' }],
    ['kdf options without a kdf', { kdfOptions: Buffer.alloc(1) }],
    ['no key', { count: 0 }],
    ['two keys', { count: 2 }],
    ['unequal check numbers', { checks: [1, 2] }],
    ['wrong padding', { padding: Uint8Array.of(1, 2, 4) }],
    ['bytes at the end', { trailing: Buffer.alloc(1) }],
  ])('refuses %s', (_, options) => {
    expect(ssh(ed, options)).toBe('KEY_MALFORMED');
    expect(ssh(ec, options)).toBe('KEY_MALFORMED');
  });

  test('refuses scalars that are not a shortest non-negative mpint, and other curves', () => {
    for (const scalar of [
      Buffer.concat([Buffer.of(0), SEED]),
      Buffer.alloc(32, 0x80),
      Buffer.alloc(0),
      Buffer.alloc(34, 1),
    ]) {
      expect(ssh(ec, { scalar })).toBe('KEY_MALFORMED');
    }
    expect(ssh(ec, { curve: 'nistp384' })).toBe('KEY_MALFORMED');
  });

  test('refuses every cut of the file', () => {
    const whole = Buffer.from(
      openSshPem('ed25519', SEED, ed.publicKey.bytes).replace(/-----.*-----|\n/g, ''),
      'base64',
    );
    expect(parseCode(pem(whole, 'OPENSSH PRIVATE KEY'))).toBe('ok');
    for (let length = 0; length < whole.length; length++) {
      expect(parseCode(pem(whole.subarray(0, length), 'OPENSSH PRIVATE KEY'))).not.toBe('ok');
    }
  });
});

describe('parsePrivateKey: JWK', () => {
  test('refuses halves that do not belong together, and a public one', () => {
    for (const key of [ed, ec]) {
      const jwk = JSON.parse(formatPrivateKey(key, 'jwk')) as Record<string, string>;
      const d = Buffer.alloc(32, 2).toString('base64url');
      expect(parseCode(JSON.stringify({ ...jwk, d }))).toBe('KEY_MALFORMED');
      expect(parseCode(JSON.stringify({ ...jwk, x: d }))).toBe('KEY_MALFORMED');
      expect(parseCode(JSON.stringify({ ...jwk, x: undefined }))).toBe('KEY_MALFORMED');
      expect(parseCode(JSON.stringify({ ...jwk, d: `${jwk['d']}AA` }))).toBe('KEY_MALFORMED');
      expect(parseCode(JSON.stringify({ ...jwk, d: 7 }))).toBe('KEY_MALFORMED');
      expect(parseCode(formatPublicKeyAs(key.publicKey, 'jwk'))).toBe('KEY_IS_PUBLIC');
    }
  });
});

describe('parsePrivateKey: C2SP signer', () => {
  const text = 'PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz';

  test("reads golang/mod's example", () => {
    expect(formatPublicKeyAs(parsePrivateKey(text).publicKey, 'vkey', 'PeterNeumann')).toBe(
      'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW',
    );
  });

  test('refuses every beginning, and every raised byte', () => {
    for (let end = 0; end < text.length; end++) expect(parseCode(text.slice(0, end))).not.toBe('ok');
    for (let i = 0; i < text.length; i++) {
      const bytes = Buffer.from(text);
      bytes[i] += 1;
      expect(parseCode(bytes)).not.toBe('ok');
    }
  });
});

describe('parsePrivateKey: in general', () => {
  test('tells public keys in every form', () => {
    for (const key of [ed, ec]) {
      for (const form of ['wire', 'pem', 'openssh', 'did', 'jwk'] as const) {
        expect(parseCode(formatPublicKeyAs(key.publicKey, form))).toBe('KEY_IS_PUBLIC');
      }
    }
    expect(parseCode(formatPublicKeyAs(ed.publicKey, 'vkey', 'name'))).toBe('KEY_IS_PUBLIC');
  });

  test('refuses nothing, too much and anything else', () => {
    expect(parseCode('')).toBe('KEY_MALFORMED');
    expect(parseCode(SEED)).toBe('KEY_MALFORMED');
    expect(parseCode(SEED.toString('hex'))).toBe('KEY_MALFORMED');
    expect(parseCode(seedPem(SEED) + '\n'.repeat(65_536))).toBe('KEY_MALFORMED');
    expect(parseCode(Buffer.alloc(64, 0xff))).toBe('KEY_MALFORMED');
    expect(() => parsePrivateKey(undefined as never)).toThrow(TypeError);
  });

  test('never repeats its input in an error', () => {
    const secret = 'c2VjcmV0IHNlY3JldA';
    for (const text of [
      secret,
      `{"d":"${secret}"`,
      `PRIVATE+KEY+${secret}`,
      `ssh-${secret} x`,
      pem(Buffer.from(secret), secret),
    ]) {
      try {
        parsePrivateKey(text);
        expect.unreachable();
      } catch (error) {
        const { message, hint, cause } = error as { message: string; hint?: string; cause?: Error };
        expect(`${message} ${hint ?? ''} ${cause?.message ?? ''}`).not.toContain(secret);
      }
    }
  });

  test('throws nothing but a NorthrootError for mangled keys, and never another key', () => {
    const texts = [
      ...[ed, ec].flatMap((key) => (['pem', 'jwk'] as const).map((form) => formatPrivateKey(key, form))),
      openSshPem('ed25519', SEED, ed.publicKey.bytes),
      openSshPem('p256', SEED, ec.publicKey.bytes),
    ];
    const keyids = [ed.publicKey.keyid, ec.publicKey.keyid];
    const mangled = fc
      .tuple(
        fc.constantFrom(...texts),
        fc.nat(400),
        fc.nat(2),
        fc.string({ maxLength: 2, unit: 'grapheme-ascii' }),
      )
      .map(([text, at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut));
    fc.assert(
      fc.property(mangled, (text) => {
        let key: PrivateKey | undefined;
        expect(codeOf(() => (key = parsePrivateKey(text)))).toMatch(/^(ok|KEY_[A-Z_]+)$/);
        // Ed25519 in PKCS#8 has nothing to check its seed by.
        if (key !== undefined && !text.includes('MC4CAQAw')) expect(keyids).toContain(key.publicKey.keyid);
      }),
      { numRuns: 400 },
    );
  });

  test('keeps the secret out of the public key', () => {
    expect(formatPublicKey(ed.publicKey)).not.toContain(SEED.toString('base64url').slice(0, 40));
    expect(Object.keys(ed.publicKey).sort()).toEqual(['alg', 'bytes', 'keyid']);
  });
});
