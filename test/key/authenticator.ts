/** An authenticator and its browser, in software: registrations and assertions as the JSON of WebAuthn. */

import { createHash, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import { encodeCbor } from '../../src/base/cbor/codec.js';

export interface AuthenticatorOptions {
  readonly alg?: 'ES256' | 'EdDSA';
  readonly origin?: string;
  readonly rpId?: string;
  readonly flags?: number;
  /** After the key, or instead of it. */
  readonly rest?: Buffer;
  readonly clientData?: object;
  readonly coseKey?: Buffer;
  readonly idLength?: number;
}

export interface AssertionOptions {
  readonly origin?: string;
  readonly flags?: number;
  readonly clientData?: object;
}

const UP_UV = 0x05;
const UP_UV_AT = 0x45;

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest();

export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #key: KeyObject;
  readonly #jwk: JsonWebKey;
  readonly id = Buffer.alloc(32, 7);

  constructor(options: AuthenticatorOptions = {}) {
    this.#options = options;
    const pair =
      options.alg === 'EdDSA'
        ? generateKeyPairSync('ed25519')
        : generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#key = pair.privateKey;
    this.#jwk = pair.publicKey.export({ format: 'jwk' });
  }

  get rpId(): string {
    return this.#options.rpId ?? 'example.com';
  }

  get origin(): string {
    return this.#options.origin ?? 'https://approve.example.com';
  }

  get coseKey(): Buffer {
    const [x = Buffer.alloc(0), y] = [this.#jwk.x, this.#jwk.y].map(
      (text) => text && Buffer.from(text, 'base64url'),
    ) as Buffer[];
    return y === undefined
      ? Buffer.concat([Buffer.from('a4010103272006215820', 'hex'), x])
      : Buffer.concat([Buffer.from('a5010203262001215820', 'hex'), x, Buffer.from('225820', 'hex'), y]);
  }

  /** `JSON.stringify` of what `navigator.credentials.create` gives. */
  register(): string {
    const { flags = UP_UV_AT, rest = Buffer.alloc(0), coseKey = this.coseKey, clientData } = this.#options;
    const length = Buffer.alloc(2);
    length.writeUInt16BE(this.#options.idLength ?? this.id.length);
    const attested = Buffer.concat([Buffer.alloc(16), length, this.id, coseKey]);
    const authData = Buffer.concat([sha256(this.rpId), Buffer.of(flags, 0, 0, 0, 0), attested, rest]);
    const attestation = encodeCbor(
      new Map<string, never>([
        ['fmt', 'none' as never],
        ['attStmt', new Map() as never],
        ['authData', new Uint8Array(authData) as never],
      ]),
    );
    const data = { type: 'webauthn.create', challenge: 'AAAA', origin: this.origin, crossOrigin: false };
    const response = {
      clientDataJSON: Buffer.from(JSON.stringify({ ...data, ...clientData })).toString('base64url'),
      attestationObject: Buffer.from(attestation).toString('base64url'),
    };
    return JSON.stringify({ id: this.id.toString('base64url'), type: 'public-key', response });
  }

  /** `toJSON()` of what `navigator.credentials.get` gives. */
  assert(challenge: string, options: AssertionOptions = {}): { response: Record<string, string> } {
    const { origin = this.origin, flags = UP_UV, clientData: more } = options;
    const data = { type: 'webauthn.get', challenge, origin, crossOrigin: false, ...more };
    const clientData = Buffer.from(JSON.stringify(data));
    const authenticatorData = Buffer.concat([sha256(this.rpId), Buffer.of(flags, 0, 0, 0, 9)]);
    const message = Buffer.concat([authenticatorData, sha256(clientData)]);
    const signature = sign(this.#options.alg === 'EdDSA' ? null : 'sha256', message, this.#key);
    const parts = { authenticatorData, clientDataJSON: clientData, signature };
    const response = Object.fromEntries(
      Object.entries(parts).map(([name, bytes]) => [name, bytes.toString('base64url')]),
    );
    return { response };
  }
}
