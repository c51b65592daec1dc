/** The signature vector sets that others wrote, read in place; each absent (`undefined`) where their folder is. */

import { existsSync, readFileSync } from 'node:fs';

import type { KeyAlgorithm } from '../../src/format/key/key-form.js';

/** One case, by the number that its set gives it, with the set's own verdict if it has one. */
export interface SignatureCase {
  readonly number: number;
  readonly key: Uint8Array;
  readonly message: Uint8Array;
  readonly signature: Uint8Array;
  readonly expected?: boolean;
}

export interface VectorSet {
  readonly alg: KeyAlgorithm;
  readonly read: () => readonly SignatureCase[] | undefined;
}

interface WycheproofFile {
  readonly testGroups: readonly {
    readonly publicKey: { readonly pk?: string; readonly uncompressed?: string };
    readonly tests: readonly { tcId: number; msg: string; sig: string; result: string }[];
  }[];
}

const VECTORS = new URL('../../../shared/vectors/', import.meta.url);

export const VECTOR_SETS: Readonly<Record<string, VectorSet>> = {
  'wycheproof-ed25519': { alg: 'ed25519', read: () => wycheproof('ed25519_test.json') },
  'wycheproof-es256-p1363': { alg: 'p256', read: () => wycheproof('ecdsa_secp256r1_sha256_p1363_test.json') },
  'cctv-ed25519': {
    alg: 'ed25519',
    read: () =>
      load<{ number: number; key: string; sig: string; msg: string }[]>(
        'cctv-ed25519/ed25519/ed25519vectors.json',
      )?.map(({ number, key, sig, msg }) => ({
        number,
        key: hex(key),
        message: Buffer.from(msg),
        signature: hex(sig),
      })),
  },
  'ed25519-speccheck': {
    alg: 'ed25519',
    read: () =>
      load<{ message: string; pub_key: string; signature: string }[]>('ed25519-speccheck/cases.json')?.map(
        ({ message, pub_key: key, signature }, number) => ({
          number,
          key: hex(key),
          message: hex(message),
          signature: hex(signature),
        }),
      ),
  },
};

function wycheproof(name: string): SignatureCase[] | undefined {
  return load<WycheproofFile>(`wycheproof/testvectors_v1/${name}`)?.testGroups.flatMap(
    ({ publicKey, tests }) =>
      tests.map(({ tcId, msg, sig, result }) => ({
        number: tcId,
        key: hex(publicKey.pk ?? publicKey.uncompressed ?? ''),
        message: hex(msg),
        signature: hex(sig),
        expected: result === 'valid',
      })),
  );
}

function load<T>(path: string): T | undefined {
  const file = new URL(path, VECTORS);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as T) : undefined;
}

function hex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'));
}
