import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { encodeBase58, tryDecodeBase58 } from '../../src/format/key/base58.js';
import { generatePrivateKey, formatPrivateKey } from '../../src/format/key/private-key.js';
import {
  checkPublicKey,
  formatPublicKey,
  formatPublicKeyAs,
  keyThumbprint,
  makePublicKey,
  parsePublicKey,
  tryParseWirePublicKey,
  type PublicKey,
  type PublicKeyForm,
} from '../../src/format/key/public-key.js';
import { readVkey, vkeyId } from '../../src/format/key/vkey.js';
import { codeOf, ed25519Key, p256Key, seedPem } from './key-samples.js';

const VECTORS = new URL('../../../shared/vectors/', import.meta.url);

const ed = ed25519Key(Buffer.alloc(32, 1)).publicKey;
const ec = p256Key(Buffer.alloc(32, 1)).publicKey;
const FORMS: readonly PublicKeyForm[] = ['wire', 'pem', 'openssh', 'vkey', 'did', 'jwk'];

const formsOf = (key: PublicKey) => FORMS.filter((form) => form !== 'vkey' || key.alg === 'ed25519');
const hex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'));
const parseCode = (input: string | Uint8Array) => codeOf(() => parsePublicKey(input));

describe('makePublicKey', () => {
  test('holds a copy of the bytes, and the thumbprint', () => {
    const bytes = new Uint8Array(ed.bytes);
    const key = makePublicKey('ed25519', bytes);
    bytes.fill(0);
    expect(key).toEqual(ed);
    expect(key.keyid).toBe(keyThumbprint(ed));
  });

  test.each([
    ['ed25519', 31],
    ['ed25519', 33],
    ['ed25519', 65],
    ['p256', 32],
    ['p256', 33],
    ['p256', 64],
  ] as const)('refuses %s of %i bytes', (alg, length) => {
    expect(() => makePublicKey(alg, new Uint8Array(length))).toThrow(RangeError);
  });

  test('refuses what is neither an algorithm nor bytes', () => {
    expect(() => makePublicKey('rsa' as never, new Uint8Array(32))).toThrow(TypeError);
    expect(() => makePublicKey('toString' as never, new Uint8Array(32))).toThrow(TypeError);
    expect(() => makePublicKey('ed25519', 'x'.repeat(32) as never)).toThrow(TypeError);
  });
});

describe('keyThumbprint', () => {
  test('is that of RFC 8037 A.3 for its key', () => {
    const key = parsePublicKey(
      '{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}',
    );
    expect(key.keyid).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
  });

  test('is that of RFC 9449 §6.1 for its P-256 key', () => {
    const x = 'l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs';
    const y = '9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA';
    expect(parsePublicKey(JSON.stringify({ kty: 'EC', x, y, crv: 'P-256' })).keyid).toBe(
      '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I',
    );
  });
});

describe('forms', () => {
  test('are what the specifications show', () => {
    expect(formatPublicKey(ed)).toBe('ed25519:iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w');
    expect(formatPublicKeyAs(ed, 'openssh', 'me@host')).toMatch(
      /^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43} me@host$/,
    );
    expect(formatPublicKeyAs(ec, 'openssh')).toMatch(
      /^ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAI\S+$/,
    );
    expect(formatPublicKeyAs(ed, 'did')).toMatch(/^did:key:z6Mk/);
    expect(formatPublicKeyAs(ec, 'did')).toMatch(/^did:key:zDn/);
    expect(formatPublicKeyAs(ed, 'jwk')).toBe(
      '{"crv":"Ed25519","kty":"OKP","x":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w"}',
    );
    for (const key of [ed, ec]) {
      const pem = formatPublicKeyAs(key, 'pem');
      expect(createPublicKey(pem).export({ format: 'pem', type: 'spki' })).toBe(pem);
    }
  });

  test('round trip for any key, with any white space around', () => {
    const space = fc.constantFrom('', '\n', ' ', '\r\n', '\t ');
    const key = fc
      .constantFrom('ed25519' as const, 'p256' as const)
      .map((alg) => generatePrivateKey(alg).publicKey);
    fc.assert(
      fc.property(key, space, space, (k, before, after) => {
        for (const form of formsOf(k)) {
          const text = before + formatPublicKeyAs(k, form, 'example.com/log') + after;
          expect(parsePublicKey(text)).toEqual(k);
          expect(parsePublicKey(Buffer.from(text))).toEqual(k);
        }
      }),
      { numRuns: 25 },
    );
  });

  test('are read with CRLF line ends and without a last line end', () => {
    const pem = formatPublicKeyAs(ed, 'pem');
    expect(parsePublicKey(pem.replaceAll('\n', '\r\n'))).toEqual(ed);
    expect(parsePublicKey(pem.trimEnd())).toEqual(ed);
  });

  test('need a name only for a vkey, and one that fits', () => {
    expect(() => formatPublicKeyAs(ed, 'vkey')).toThrow(TypeError);
    for (const name of ['', 'a b', 'a+b', 'a\u00a0b', 'a\u2028b', 'a\x01b', '\ud800']) {
      expect(() => formatPublicKeyAs(ed, 'vkey', name)).toThrow(RangeError);
    }
    expect(() => formatPublicKeyAs(ed, 'openssh', 'two\nlines')).toThrow(RangeError);
    expect(() => formatPublicKeyAs(ed, 'der' as never)).toThrow(TypeError);
    expect(codeOf(() => formatPublicKeyAs(ec, 'vkey', 'name'))).toBe('KEY_UNSUPPORTED');
  });
});

describe('parsePublicKey: raw', () => {
  test.each([ed, ec])('reads base64url, base64, hex and the bytes themselves', (key) => {
    const buffer = Buffer.from(key.bytes);
    for (const encoding of ['base64url', 'base64', 'hex'] as const) {
      expect(parsePublicKey(buffer.toString(encoding))).toEqual(key);
    }
    expect(parsePublicKey(buffer.toString('hex').toUpperCase())).toEqual(key);
    expect(parsePublicKey(new Uint8Array(buffer))).toEqual(key);
  });

  test('takes no base64 for a vkey, however many "+" it has', () => {
    const key = Array.from({ length: 255 }, (_, i) => ed25519Key(Buffer.alloc(32, i)).publicKey).find(
      ({ bytes }) => /\+.*\+/.test(Buffer.from(bytes).toString('base64')),
    )!;
    expect(parsePublicKey(Buffer.from(key.bytes).toString('base64'))).toEqual(key);
  });

  test('refuses encodings that are not canonical', () => {
    const base64url = Buffer.from(ed.bytes).toString('base64url');
    expect(parseCode(base64url.slice(0, -1) + 'd')).toBe('KEY_MALFORMED');
    expect(parseCode(`${base64url}=`.replace('-', '+') + '=')).toBe('KEY_MALFORMED');
    expect(parseCode(base64url.slice(1))).toBe('KEY_MALFORMED');
    expect(parseCode(Buffer.from(ed.bytes).toString('hex').slice(2))).toBe('KEY_MALFORMED');
  });

  test('takes no text of 32 bytes for a key', () => {
    for (let i = 0; i < 64; i++) {
      expect(parseCode(Buffer.from(`a password of 32 characters - ${i + 10}`))).toBe('KEY_MALFORMED');
    }
  });
});

describe('parsePublicKey: vkey', () => {
  const vkey = formatPublicKeyAs(ed, 'vkey', 'example.com/log');

  test('gives its name too', () => {
    expect(readVkey(vkey)).toEqual({
      name: 'example.com/log',
      type: 'ed25519',
      key: { alg: 'ed25519', bytes: ed.bytes },
    });
  });

  test('refuses the hash of another name, upper case, other types and lengths', () => {
    expect(parseCode(vkey.replace('log', 'lob'))).toBe('KEY_MALFORMED');
    expect(parseCode(vkey.replace(/\+([0-9a-f]{8})\+/, (all) => all.toUpperCase()))).toBe('KEY_MALFORMED');
    expect(parseCode('rekor.sigstore.dev+12345678+AwEB')).toBe('KEY_UNSUPPORTED');
    expect(parseCode('rekor.sigstore.dev+12345678+AQEB')).toBe('KEY_MALFORMED');
    expect(parseCode('a b' + vkey)).toBe('KEY_MALFORMED');
  });

  test('refuses a longer or shorter key under its own hash', () => {
    for (const key of [Uint8Array.of(...ed.bytes, 0), ed.bytes.subarray(1)]) {
      const id = Buffer.from(vkeyId('name', key)).toString('hex');
      const text = `name+${id}+${Buffer.concat([Buffer.of(1), key]).toString('base64')}`;
      expect(codeOf(() => readVkey(text))).toBe('KEY_MALFORMED');
    }
  });

  const file = new URL('derived/signed-notes.json', VECTORS);
  test.skipIf(!existsSync(file))(
    'golang/mod: reads the good, refuses every substring and every raised byte',
    () => {
      const { notes, bad_vkeys: bad } = JSON.parse(readFileSync(file, 'utf8')) as {
        notes: { name: string; vkey: string }[];
        bad_vkeys: string[];
      };
      for (const { vkey: good } of notes) expect(parsePublicKey(good).alg).toBe('ed25519');
      for (const text of bad) expect(parseCode(text)).toMatch(/^KEY_(MALFORMED|UNSUPPORTED)$/);
      const good = notes.find(({ vkey: text }) => text.startsWith('PeterNeumann+'))!.vkey;
      for (let start = 0; start <= good.length; start++) {
        for (let end = start; end <= good.length; end++) {
          if (end - start < good.length) expect(parseCode(good.slice(start, end))).not.toBe('ok');
        }
      }
      for (let i = 0; i < good.length; i++) {
        const bytes = Buffer.from(good);
        bytes[i] += 1;
        expect(parseCode(bytes)).not.toBe('ok');
        expect(parseCode(bytes.toString('latin1'))).not.toBe('ok');
      }
    },
  );
});

describe('parsePublicKey: did:key', () => {
  test('reads the examples of its specification', () => {
    const key = parsePublicKey('did:key:z6MkpTHR8VNsBxYAAWHut2Geadd9jSwuBV8xRoAnwWsdvktH');
    expect(key.bytes).toEqual(tryDecodeBase58('B12NYF8RrR3h41TDCTJojY59usg3mbtbjnFs7Eud1Y6u'));
    const did = 'did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169';
    expect(formatPublicKeyAs(parsePublicKey(did), 'jwk')).toBe(
      '{"crv":"P-256","kty":"EC","x":"fyNYMN0976ci7xqiSdag3buk-ZCwgXU4kz9XNkBlNUI","y":"hW2ojTNfH7Jbi8--CJUo3OCbH3y5n91g-IMA9MLMbTU"}',
    );
    expect(parsePublicKey(`${did}#${did.slice(8)}`)).toEqual(parsePublicKey(did));
  });

  test('refuses other methods, bases, codecs, lengths and foreign fragments', () => {
    const did = (...bytes: number[]) => `did:key:z${encodeBase58(Uint8Array.from(bytes))}`;
    const good = formatPublicKeyAs(ed, 'did');
    expect(parseCode(good.replace('key', 'web'))).toBe('KEY_MALFORMED');
    expect(parseCode(good.replace('key:z', 'key:m'))).toBe('KEY_MALFORMED');
    expect(parseCode(good.replace('z6', 'z16'))).toBe('KEY_UNSUPPORTED');
    expect(parseCode(`${good}#1`)).toBe('KEY_MALFORMED');
    expect(parseCode('did:key:z')).toBe('KEY_MALFORMED');
    expect(parseCode(did(0xec, 0x01, ...ed.bytes))).toBe('KEY_UNSUPPORTED');
    expect(parseCode(did(0xed, 0x01, ...ed.bytes.subarray(1)))).toBe('KEY_MALFORMED');
    expect(parseCode(did(0x80, 0x24, ...ed.bytes))).toBe('KEY_MALFORMED');
    expect(parseCode(did(0x80, 0x24, 0x02, ...new Uint8Array(31), 1))).toBe('KEY_MALFORMED');
    expect(parseCode(`did:key:z${'z'.repeat(60_000)}`)).toBe('KEY_MALFORMED');
  });
});

describe('base58', () => {
  test('gives the examples of draft-msporny-base58', () => {
    expect(encodeBase58(Buffer.from('Hello World!'))).toBe('2NEpo7TZRRrLZSi2U');
    expect(encodeBase58(hex('0000287fb4cd'))).toBe('11233QC4');
  });

  test('round trips, in either direction', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 46 }), (bytes) => {
        expect(tryDecodeBase58(encodeBase58(bytes))).toEqual(bytes);
      }),
    );
    const text = fc.string({
      maxLength: 62,
      unit: fc.constantFrom(...'123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'),
    });
    fc.assert(
      fc.property(text, (t) => {
        expect(encodeBase58(tryDecodeBase58(t)!)).toBe(t);
      }),
    );
  });

  test('is bounded, and refuses characters that it does not have', () => {
    expect(tryDecodeBase58('1'.repeat(64))).toHaveLength(64);
    expect(tryDecodeBase58('1'.repeat(65))).toBeUndefined();
    for (const char of ['0', 'O', 'I', 'l', ' ', '+', 'é'])
      expect(tryDecodeBase58(`a${char}`)).toBeUndefined();
    expect(() => encodeBase58(new Uint8Array(47))).toThrow(RangeError);
  });
});

describe('parsePublicKey: JWK', () => {
  const x = Buffer.from(ed.bytes).toString('base64url');
  const jwk = (members: object) => parseCode(JSON.stringify({ kty: 'OKP', crv: 'Ed25519', x, ...members }));

  test('takes members that do not matter, and the uses that fit', () => {
    expect(jwk({ kid: 'my key', use: 'sig', alg: 'EdDSA', key_ops: ['verify'] })).toBe('ok');
    expect(jwk({ alg: 'Ed25519' })).toBe('ok');
  });

  test('refuses others', () => {
    expect(jwk({ d: x })).toBe('KEY_IS_PRIVATE');
    expect(jwk({ use: 'enc' })).toBe('KEY_UNSUPPORTED');
    expect(jwk({ alg: 'ES256' })).toBe('KEY_UNSUPPORTED');
    expect(jwk({ crv: 'X25519' })).toBe('KEY_UNSUPPORTED');
    expect(jwk({ kty: 'EC', crv: 'P-384' })).toBe('KEY_UNSUPPORTED');
    expect(jwk({ kty: 'oct', k: 'AAAA' })).toBe('KEY_UNSUPPORTED');
    expect(jwk({ kty: undefined })).toBe('KEY_MALFORMED');
    expect(jwk({ x: `${x}=` })).toBe('KEY_MALFORMED');
    expect(jwk({ x: x.slice(0, 42) })).toBe('KEY_MALFORMED');
    expect(jwk({ x: 7 })).toBe('KEY_MALFORMED');
    expect(jwk({ kty: 'EC', crv: 'P-256', y: x })).toBe('KEY_MALFORMED');
    expect(jwk({ kty: 'EC', crv: 'P-256' })).toBe('KEY_MALFORMED');
    expect(parseCode(`{"keys":[${formatPublicKeyAs(ed, 'jwk')}]}`)).toBe('KEY_UNSUPPORTED');
    expect(parseCode('{"kty":"OKP"')).toBe('KEY_MALFORMED');
    expect(parseCode('{"a":'.repeat(10_000))).toBe('KEY_MALFORMED');
    expect(parseCode(`{"__proto__":${formatPublicKeyAs(ed, 'jwk')}}`)).toBe('KEY_MALFORMED');
  });
});

describe('parsePublicKey: PEM', () => {
  const pem = formatPublicKeyAs(ed, 'pem');
  const wrap = (der: Uint8Array, label = 'PUBLIC KEY') =>
    `-----BEGIN ${label}-----\n${Buffer.from(der).toString('base64')}\n-----END ${label}-----\n`;
  const spki = createPublicKey(pem).export({ format: 'der', type: 'spki' });

  test('reads a compressed P-256 point', () => {
    const compressed = Buffer.from(ec.bytes.subarray(0, 33));
    compressed[0] = 2 + (ec.bytes[64] & 1);
    const der = Buffer.concat([hex('3039301306072a8648ce3d020106082a8648ce3d030107032200'), compressed]);
    expect(parsePublicKey(wrap(der))).toEqual(ec);
  });

  test('refuses private keys, certificates and unknown labels', () => {
    expect(parseCode(seedPem(Buffer.alloc(32, 1)))).toBe('KEY_IS_PRIVATE');
    expect(parseCode(wrap(spki, 'OPENSSH PRIVATE KEY'))).toBe('KEY_IS_PRIVATE');
    expect(parseCode(wrap(spki, 'ENCRYPTED PRIVATE KEY'))).toBe('KEY_IS_PRIVATE');
    expect(parseCode(wrap(spki, 'CERTIFICATE'))).toBe('KEY_UNSUPPORTED');
    expect(parseCode(wrap(spki, 'FILE'))).toBe('KEY_MALFORMED');
    const pkcs8 = createPrivateKey(seedPem(Buffer.alloc(32, 1))).export({ format: 'der', type: 'pkcs8' });
    expect(parseCode(wrap(pkcs8))).toBe('KEY_MALFORMED');
  });

  test('refuses what is more or less than one block', () => {
    expect(parseCode(pem + pem)).toBe('KEY_MALFORMED');
    expect(parseCode(`comment\n${pem}`)).toBe('KEY_MALFORMED');
    expect(parseCode(`${pem}comment`)).toBe('KEY_MALFORMED');
    expect(parseCode(pem.replace('END PUBLIC', 'END PRIVATE'))).toBe('KEY_MALFORMED');
    expect(parseCode(pem.replace('\n', ''))).toBe('KEY_MALFORMED');
    expect(parseCode(pem.replace('\n-----END', '-----END'))).toBe('KEY_MALFORMED');
    expect(parseCode('-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----')).toBe('KEY_MALFORMED');
    expect(parseCode('-----BEGIN PUBLIC KEY-----')).toBe('KEY_MALFORMED');
    expect(parseCode('-----BEGIN ')).toBe('KEY_MALFORMED');
    expect(parseCode(wrap(Buffer.concat([spki, Buffer.of(0)])))).toBe('KEY_MALFORMED');
    expect(parseCode(wrap(spki.subarray(0, -1)))).toBe('KEY_MALFORMED');
  });

  test.each(['rsa', 'x25519', 'ed448', 'secp384r1'])('refuses %s', (type) => {
    const { publicKey } =
      type === 'rsa'
        ? generateKeyPairSync('rsa', { modulusLength: 1024 })
        : type === 'secp384r1'
          ? generateKeyPairSync('ec', { namedCurve: type })
          : type === 'ed448'
            ? generateKeyPairSync('ed448')
            : generateKeyPairSync('x25519');
    expect(parseCode(publicKey.export({ format: 'pem', type: 'spki' }))).toBe('KEY_UNSUPPORTED');
  });
});

describe('parsePublicKey: OpenSSH', () => {
  const line = formatPublicKeyAs(ed, 'openssh');
  const ecLine = formatPublicKeyAs(ec, 'openssh');

  test('reads any comment', () => {
    expect(parsePublicKey(`${line}  a comment: with = signs`)).toEqual(ed);
    expect(parsePublicKey(line.replace(' ', '\t'))).toEqual(ed);
  });

  test('refuses other types, mixed types and damaged lines', () => {
    expect(parseCode('ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ==')).toBe('KEY_UNSUPPORTED');
    expect(parseCode(line.replace('ssh-ed25519', 'sk-ssh-ed25519@openssh.com'))).toBe('KEY_UNSUPPORTED');
    expect(parseCode(line.replace('ssh-ed25519', 'ssh-ed25519-cert-v01@openssh.com'))).toBe(
      'KEY_UNSUPPORTED',
    );
    expect(parseCode(line.replace('ssh-ed25519', 'ecdsa-sha2-nistp256'))).toBe('KEY_MALFORMED');
    expect(parseCode(ecLine.replace('ecdsa-sha2-nistp256', 'ssh-ed25519'))).toBe('KEY_MALFORMED');
    expect(parseCode(ecLine.replace('ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384'))).toBe('KEY_UNSUPPORTED');
    expect(parseCode(`${line}\n${line}`)).toBe('KEY_MALFORMED');
    expect(parseCode(line.slice(0, -4))).toBe('KEY_MALFORMED');
    expect(parseCode(`${line}AAAA`)).toBe('KEY_MALFORMED');
    expect(parseCode('ssh-ed25519 ')).toBe('KEY_MALFORMED');
    expect(parseCode('ssh-ed25519 AAAA')).toBe('KEY_MALFORMED');
  });
});

describe('parsePublicKey: in general', () => {
  test('refuses nothing, too much, and bytes that are no text', () => {
    expect(parseCode('')).toBe('KEY_MALFORMED');
    expect(parseCode(' \n')).toBe('KEY_MALFORMED');
    expect(parseCode(new Uint8Array())).toBe('KEY_MALFORMED');
    expect(parseCode(formatPublicKey(ed) + ' '.repeat(65_536))).toBe('KEY_MALFORMED');
    expect(parseCode(formatPublicKey(ed) + ' '.repeat(65_536 - 51))).toBe('ok');
    expect(parseCode(Buffer.from(formatPublicKey(ed), 'utf16le'))).toBe('KEY_MALFORMED');
    expect(parseCode(`\ufeff${formatPublicKey(ed)}`)).toBe('KEY_MALFORMED');
    expect(parseCode(hex('ff'.repeat(31)))).toBe('KEY_MALFORMED');
    expect(() => parsePublicKey(7 as never)).toThrow(TypeError);
  });

  test('refuses a signer of signed notes', () => {
    expect(parseCode('PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz')).toBe(
      'KEY_IS_PRIVATE',
    );
  });

  test('refuses keys by which no signature is valid, in every form', () => {
    const small = { alg: 'ed25519' as const, bytes: hex('01' + '00'.repeat(31)), keyid: '' };
    for (const form of formsOf(small)) {
      expect(parseCode(formatPublicKeyAs(small, form, 'example.com/log'))).toBe('KEY_MALFORMED');
    }
    expect(parseCode(small.bytes)).toBe('KEY_MALFORMED');
    const off = makePublicKey(
      'p256',
      Uint8Array.of(4, ...ec.bytes.subarray(1, 33), ...ec.bytes.subarray(1, 33)),
    );
    expect(checkPublicKey(off)).toBe('not_on_curve');
    for (const form of ['wire', 'pem', 'openssh', 'jwk'] as const) {
      expect(parseCode(formatPublicKeyAs(off, form))).toBe('KEY_MALFORMED');
    }
  });

  test('throws nothing but a NorthrootError for any text or bytes', () => {
    const texts = [
      ...formsOf(ed).map((form) => formatPublicKeyAs(ed, form, 'n')),
      formatPrivateKey(generatePrivateKey(), 'pem'),
    ];
    const mangled = fc
      .tuple(fc.constantFrom(...texts), fc.nat(200), fc.nat(3), fc.string({ maxLength: 3, unit: 'binary' }))
      .map(([text, at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut));
    fc.assert(
      fc.property(
        fc.oneof(mangled, fc.string({ unit: 'binary' }), fc.uint8Array({ maxLength: 80 })),
        (input) => {
          expect(parseCode(input)).toMatch(/^(ok|KEY_[A-Z_]+)$/);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('tryParseWirePublicKey', () => {
  test('reads exactly what formatPublicKey writes', () => {
    for (const key of [ed, ec]) {
      const text = formatPublicKey(key);
      expect(tryParseWirePublicKey(text)).toEqual(key);
      for (const bad of [
        `${text} `,
        `${text}=`,
        ` ${text}`,
        text.slice(0, -1),
        `${text}A`,
        text.toUpperCase(),
        `${text}\n`,
      ]) {
        expect(tryParseWirePublicKey(bad)).toBeUndefined();
      }
    }
    expect(tryParseWirePublicKey(formatPublicKey(ed).replace('ed25519', 'p256'))).toBeUndefined();
    expect(tryParseWirePublicKey(formatPublicKey(ec).replace('p256', 'ed25519'))).toBeUndefined();
    expect(tryParseWirePublicKey(formatPublicKey(ed).replace(/.$/, 'd'))).toBeUndefined();
  });
});
