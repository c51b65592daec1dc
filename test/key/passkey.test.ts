/** Registrations of passkeys: what is read of them, and what is refused. */

import { describe, expect, it } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { looksLikePasskey, parsePasskey } from '../../src/format/key/passkey.js';
import { checkKey } from '../../src/format/schema/check.js';
import { makeKeyEntry } from '../../src/rules/trust/key-entry.js';
import { Authenticator, type AuthenticatorOptions } from './authenticator.js';

const extension = Buffer.from('a16b6372656450726f7465637402', 'hex');

function codeOf(text: string): string {
  try {
    parsePasskey(text);
  } catch (error) {
    if (error instanceof NorthrootError) return error.code;
    throw error;
  }
  return 'ok';
}

describe('a registration', () => {
  it.each([
    ['ES256', 'p256'],
    ['EdDSA', 'ed25519'],
  ] as const)('of %s gives a key of %s, and its pins', (alg, expected) => {
    const { publicKey, webauthn } = parsePasskey(new Authenticator({ alg }).register());
    expect(publicKey.alg).toBe(expected);
    expect(webauthn).toEqual({
      rp_id: 'example.com',
      origins: ['https://approve.example.com'],
      credential_id: Buffer.alloc(32, 7).toString('base64url'),
    });
    expect(checkKey(makeKeyEntry(publicKey, { webauthn }))).toEqual([]);
  });

  it.each([
    ['https://approve.example.com', 'approve.example.com', 'approve.example.com'],
    ['https://a.b.example.com:8443', 'b.example.com', 'b.example.com'],
    ['http://localhost:8788', 'localhost', 'localhost'],
  ])('at %s may be for %s', (origin, rpId, expected) => {
    const { webauthn } = parsePasskey(new Authenticator({ origin, rpId }).register());
    expect(webauthn).toMatchObject({ rp_id: expected, origins: [origin] });
  });

  it('without user verification is pinned so', () => {
    const { webauthn } = parsePasskey(new Authenticator({ flags: 0x41 }).register());
    expect(webauthn.user_verification).toBe('optional');
  });

  it('may have extensions after its key, where it says so', () => {
    expect(codeOf(new Authenticator({ flags: 0xc5, rest: extension }).register())).toBe('ok');
  });

  const refused: [string, AuthenticatorOptions, string?][] = [
    ['bytes after its key that are no extensions', { rest: extension }, 'KEY_UNSUPPORTED'],
    ['nobody present', { flags: 0x44 }],
    ['no key', { flags: 0x05 }],
    ['an RP id of one label', { rpId: 'com' }],
    ['an RP id elsewhere', { rpId: 'evil.example' }],
    ['an RP id below', { rpId: 'x.approve.example.com' }],
    ['an assertion’s client data', { clientData: { type: 'webauthn.get' } }],
    ['a page around it', { clientData: { crossOrigin: true } }],
    ['an origin with a path', { clientData: { origin: 'https://approve.example.com/' } }],
    ['no origin', { clientData: { origin: 7 } }],
    ['an empty credential id', { idLength: 0 }],
    ['a credential id that is cut off', { idLength: 9_000 }],
    ['a point that is not on the curve', { coseKey: offCurve() }],
    [
      'a key of RS256',
      { coseKey: Buffer.from('a401030339010020430102032143010001', 'hex') },
      'KEY_UNSUPPORTED',
    ],
    ['a key that is cut off', { coseKey: new Authenticator().coseKey.subarray(0, 70) }, 'KEY_UNSUPPORTED'],
  ];

  it.each(refused)('with %s is refused', (_, options, code = 'KEY_MALFORMED') => {
    expect(codeOf(new Authenticator(options).register())).toBe(code);
  });

  it.each(['{}', '[]', '{"response":7}', '{"response":{"clientDataJSON":"e30"}}', 'x', '{"a":1,"a":1}'])(
    'that is %s is refused',
    (text) => {
      expect(codeOf(text)).toBe('KEY_MALFORMED');
    },
  );

  it('is told from a JWK', () => {
    expect(looksLikePasskey(new Authenticator().register())).toBe(true);
    expect(looksLikePasskey('{"kty":"OKP","crv":"Ed25519","x":"AA"}')).toBe(false);
    expect(looksLikePasskey('ed25519:AA')).toBe(false);
  });
});

function offCurve(): Buffer {
  const key = Buffer.from(new Authenticator().coseKey);
  key[key.length - 1] = (key[key.length - 1] ?? 0) ^ 1;
  return key;
}
