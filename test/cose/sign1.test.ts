/** COSE_Sign1: the working group's examples, and what they leave out. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { encodeCbor, parseCbor } from '../../src/base/cbor/codec.js';
import { TaggedCbor, type CborKey, type CborValue } from '../../src/base/cbor/value.js';
import { COSE_HEADER, decodeCoseSign1, signCoseSign1, verifyCoseSign1 } from '../../src/format/cose/sign1.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { makePublicKey, type PublicKey } from '../../src/format/key/public-key.js';
import { defaultBackend } from '../../src/format/signature/default-backend.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { valueOf } from '../value-of.js';

interface Example {
  readonly title: string;
  readonly fail?: boolean;
  readonly input: {
    readonly sign0?: {
      readonly key: Readonly<Record<string, string>>;
      readonly external?: string;
    };
  };
  readonly output: { readonly cbor: string };
}

const FOLDER = fileURLToPath(new URL('../../../shared/vectors/cose-examples/', import.meta.url));
const examples = existsSync(FOLDER)
  ? ['eddsa-examples', 'sign1-tests']
      .flatMap((folder) => readdirSync(`${FOLDER}${folder}`).map((file) => `${folder}/${file}`))
      .map((file) => [file, JSON.parse(readFileSync(`${FOLDER}${file}`, 'utf8')) as Example] as const)
      .filter(([, { input }]) => input.sign0 !== undefined)
  : [];

/** Valid upstream, and refused here: its algorithm is not among the protected headers. */
const STRICTER = new Set(['sign1-tests/sign-pass-01.json']);

function keyOf({ kty, crv, x = '', y = '', x_hex: hex = '' }: Readonly<Record<string, string>>): PublicKey {
  if (kty === 'OKP' && crv === 'Ed25519') return makePublicKey('ed25519', Buffer.from(hex, 'hex'));
  const point = Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
  return makePublicKey('p256', point);
}

function accepts(bytes: Uint8Array, key: PublicKey, externalAad = new Uint8Array()): boolean {
  const decoded = decodeCoseSign1(bytes);
  return decoded.ok && verifyCoseSign1(decoded.value, defaultBackend.importKey(key), { externalAad });
}

describe.skipIf(examples.length === 0)("the working group's examples", () => {
  it.each(examples.filter(([, { input }]) => input.sign0?.key['crv'] !== 'Ed448'))(
    '%s has the verdict that it says',
    (file, { fail = false, input: { sign0 }, output }) => {
      const { key = {}, external = '' } = sign0 ?? {};
      const accepted = accepts(Buffer.from(output.cbor, 'hex'), keyOf(key), Buffer.from(external, 'hex'));
      expect(accepted).toBe(!fail && !STRICTER.has(file));
    },
  );

  it('of curves that are not known are refused', () => {
    const others = examples.filter(([, { input }]) => input.sign0?.key['crv'] === 'Ed448');
    const own = makePublicKey('ed25519', createSigner(generatePrivateKey()).publicKey.bytes);
    for (const [, { output }] of others) expect(accepts(Buffer.from(output.cbor, 'hex'), own)).toBe(false);
  });

  it('are some of each kind', () => {
    expect(examples.filter(([, { fail }]) => fail === true).length).toBeGreaterThan(4);
    expect(examples.filter(([, { fail }]) => fail !== true).length).toBeGreaterThan(3);
  });
});

const payload = Buffer.from('what is signed');

describe.each(['ed25519', 'p256'] as const)('a message signed with %s', (alg) => {
  const signer = createSigner(generatePrivateKey(alg));
  const key = defaultBackend.importKey(signer.publicKey);
  const kid = Buffer.from(signer.publicKey.keyid);
  const protectedHeaders = new Map<CborKey, CborValue>([[COSE_HEADER.kid, new Uint8Array(kid)]]);

  it('is verified, with what it holds', () => {
    const bytes = signCoseSign1(payload, signer, { protectedHeaders });
    const message = valueOf(decodeCoseSign1(bytes));
    expect(verifyCoseSign1(message, key)).toBe(true);
    expect(Buffer.from(message.payload as Uint8Array).equals(payload)).toBe(true);
    expect(message.protectedHeaders.get(COSE_HEADER.kid)).toEqual(new Uint8Array(kid));
  });

  it('is not, with any byte of it changed', () => {
    const bytes = signCoseSign1(payload, signer, { protectedHeaders });
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Uint8Array.from(bytes);
      changed[at] = changed[at] ^ 0x01;
      expect(accepts(changed, signer.publicKey), `byte ${at}`).toBe(false);
    }
  });

  it('is verified with a detached payload, and no other', () => {
    const message = valueOf(decodeCoseSign1(signCoseSign1(payload, signer, { detached: true })));
    expect(message.payload).toBeUndefined();
    expect(verifyCoseSign1(message, key, { payload })).toBe(true);
    expect(verifyCoseSign1(message, key, { payload: Buffer.from('another') })).toBe(false);
    expect(() => verifyCoseSign1(message, key)).toThrow(RangeError);
  });

  it('binds external data', () => {
    const message = valueOf(decodeCoseSign1(signCoseSign1(payload, signer, { externalAad: payload })));
    expect(verifyCoseSign1(message, key, { externalAad: payload })).toBe(true);
    expect(verifyCoseSign1(message, key)).toBe(false);
  });

  it("is not by another algorithm's key", () => {
    const other = createSigner(generatePrivateKey(alg === 'p256' ? 'ed25519' : 'p256'));
    expect(accepts(signCoseSign1(payload, signer), other.publicKey)).toBe(false);
  });
});

describe('decodeCoseSign1', () => {
  const signer = createSigner(generatePrivateKey());
  const message = (protectedHeaders: CborValue, unprotected: CborValue = new Map(), tag = 18): Uint8Array => {
    const bytes = protectedHeaders instanceof Uint8Array ? protectedHeaders : encodeCbor(protectedHeaders);
    return encodeCbor(new TaggedCbor(tag, [bytes, unprotected, payload, new Uint8Array(64)]));
  };
  const headers = (...entries: (readonly [CborKey, CborValue])[]): CborValue => new Map(entries);

  it.each([
    ['no algorithm', message(headers())],
    ['no protected headers', message(new Uint8Array(), headers([1, -8]))],
    ['an algorithm that is a text', message(headers([1, 'EdDSA']))],
    ['an algorithm in both maps', message(headers([1, -8]), headers([1, -8]))],
    ['a header in both maps', message(headers([1, -8], [4, 'a']), headers([4, 'a']))],
    ['something critical that is not known', message(headers([1, -8], [2, [99]], [99, 1]))],
    ['something critical that is not there', message(headers([1, -8], [2, [4]]))],
    ['an empty list of what is critical', message(headers([1, -8], [2, []]))],
    ['what is critical among the others', message(headers([1, -8]), headers([2, [1]]))],
    ['protected headers that are no map', message([1, -8])],
    ['protected headers that are not deterministic', message(Buffer.from('a1011807', 'hex'))],
    ['protected headers with something after them', message(Buffer.from('a1012700', 'hex'))],
    ['another tag', message(headers([1, -8]), headers(), 998)],
    ['five parts', encodeCbor([new Uint8Array(), new Map(), payload, payload, payload])],
    ['a payload that is a text', encodeCbor([encodeCbor(headers([1, -8])), new Map(), 'x', payload])],
    ['something after it', Buffer.concat([signCoseSign1(payload, signer), Buffer.of(0)])],
  ])('refuses %s', (_, bytes) => {
    expect(decodeCoseSign1(bytes)).toHaveProperty('fault.code', 'COSE_MALFORMED');
  });

  it('takes critical headers that are understood', () => {
    const bytes = message(headers([1, -8], [2, [99]], [99, 1]));
    expect(decodeCoseSign1(bytes, new Set([99]))).toHaveProperty('value.alg', -8);
  });

  it('takes one without its tag', () => {
    const tagged = parseCbor(signCoseSign1(payload, signer), new Set([18])) as TaggedCbor;
    expect(accepts(encodeCbor(tagged.value), signer.publicKey)).toBe(true);
  });
});

it('signCoseSign1 refuses what says the algorithm twice, and keys that sign no COSE', () => {
  const signer = createSigner(generatePrivateKey());
  const protectedHeaders = new Map([[COSE_HEADER.alg, -7]]);
  expect(() => signCoseSign1(payload, signer, { protectedHeaders })).toThrow(RangeError);
  expect(() => signCoseSign1(payload, createSigner(generatePrivateKey('ml-dsa-44')))).toThrow(RangeError);
});
