/** Keys and error codes that the tests of keys and signatures share. */

import { createECDH } from 'node:crypto';

import { NorthrootError } from '../../src/base/error.js';
import { parsePrivateKey, type PrivateKey } from '../../src/format/key/private-key.js';

/** The code of the NorthrootError that `run` throws, `'ok'` when it throws nothing; other errors pass through. */
export function codeOf(run: () => unknown): string {
  try {
    run();
    return 'ok';
  } catch (error) {
    if (error instanceof NorthrootError) return error.code;
    throw error;
  }
}

/** PKCS#8 in PEM of an Ed25519 seed. */
export function seedPem(seed: Uint8Array): string {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  return `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`;
}

export function ed25519Key(seed: Uint8Array): PrivateKey {
  return parsePrivateKey(seedPem(seed));
}

/** The P-256 key with this scalar, by way of a JWK. */
export function p256Key(scalar: Uint8Array): PrivateKey {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(scalar);
  const point = ecdh.getPublicKey();
  const b64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url');
  return parsePrivateKey(
    JSON.stringify({
      kty: 'EC',
      crv: 'P-256',
      x: b64(point.subarray(1, 33)),
      y: b64(point.subarray(33)),
      d: b64(scalar),
    }),
  );
}

const SSH_TYPE = { ed25519: 'ssh-ed25519', p256: 'ecdsa-sha2-nistp256' } as const;

export interface OpenSshOptions {
  readonly cipher?: string;
  readonly kdf?: string;
  readonly kdfOptions?: Uint8Array;
  readonly count?: number;
  readonly checks?: readonly [number, number];
  readonly outerPublic?: Uint8Array;
  readonly innerPublic?: Uint8Array;
  readonly secondPublic?: Uint8Array;
  readonly scalar?: Uint8Array;
  readonly curve?: string;
  readonly padding?: Uint8Array;
  readonly trailing?: Uint8Array;
  readonly magic?: string;
}

/** An OpenSSH private key file, written from its description, with whatever is asked to be wrong in it. */
export function openSshPem(
  alg: 'ed25519' | 'p256',
  secret: Uint8Array,
  pub: Uint8Array,
  o: OpenSshOptions = {},
): string {
  const type = string(SSH_TYPE[alg]);
  const head = alg === 'p256' ? [type, string(o.curve ?? 'nistp256')] : [type];
  const digits = secret.subarray(secret.findIndex((byte) => byte !== 0));
  const scalar = digits[0] >= 0x80 ? Buffer.concat([Buffer.of(0), digits]) : digits;
  const inner = o.innerPublic ?? pub;
  const body = Buffer.concat([
    uint32(o.checks?.[0] ?? 7),
    uint32(o.checks?.[1] ?? 7),
    ...head,
    string(inner),
    alg === 'ed25519' ? string(Buffer.concat([secret, o.secondPublic ?? inner])) : string(o.scalar ?? scalar),
    string('a comment'),
  ]);
  const padding = o.padding ?? Uint8Array.from({ length: (8 - (body.length % 8)) % 8 }, (_, i) => i + 1);
  const file = Buffer.concat([
    Buffer.from(o.magic ?? 'openssh-key-v1\0'),
    string(o.cipher ?? 'none'),
    string(o.kdf ?? 'none'),
    string(o.kdfOptions ?? ''),
    uint32(o.count ?? 1),
    string(Buffer.concat([...head, string(o.outerPublic ?? pub)])),
    string(Buffer.concat([body, padding])),
    o.trailing ?? Buffer.alloc(0),
  ]);
  const lines = file.toString('base64').match(/.{1,70}/g)!;
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join('\n')}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

function string(value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint32(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
