/** The platform on Node: node:crypto and Buffer. */

import { createHash, createPublicKey, ECDH, hash, type Hash, type KeyObject, verify } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

import { fromDist } from '../dist.js';
import { asBuffer } from './buffer.js';
import type { Equation, Hasher, WorkerThread } from './platform.js';
import { ED25519_SPKI_PREFIX, P256_SPKI_PREFIX, type SpkiKey } from './spki.js';

export const HOST = 'node';

export function allocateBytes(length: number): Uint8Array {
  return Buffer.alloc(length);
}

export function allocateScratch(length: number): Uint8Array {
  return Buffer.allocUnsafe(length);
}

export function viewBytes(buffer: ArrayBufferLike, offset: number, length: number): Uint8Array {
  return Buffer.from(buffer as ArrayBuffer, offset, length);
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}

export function encodeUtf8(text: string): Uint8Array {
  return Buffer.from(text, 'utf8');
}

export function decodeUtf8(bytes: Uint8Array, start?: number, end?: number): string {
  return asBuffer(bytes).toString('utf8', start, end);
}

export function encodeLatin1(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

export function decodeLatin1(bytes: Uint8Array, start?: number, end?: number): string {
  return asBuffer(bytes).toString('latin1', start, end);
}

export function writeLatin1(target: Uint8Array, text: string, at: number): void {
  asBuffer(target).write(text, at, 'latin1');
}

export function encodeBase64(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('base64');
}

export function encodeBase64url(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('base64url');
}

export function encodeHex(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('hex');
}

export function tryDecodeBase64(text: string): Uint8Array | undefined {
  return decodeStrictly(text, 'base64');
}

export function tryDecodeBase64url(text: string): Uint8Array | undefined {
  return decodeStrictly(text, 'base64url');
}

export function tryDecodeHex(text: string): Uint8Array | undefined {
  return /^(?:[0-9a-fA-F]{2})*$/.test(text) ? new Uint8Array(Buffer.from(text, 'hex')) : undefined;
}

export function writeBase64url(target: Uint8Array, text: string): void {
  asBuffer(target).write(text, 'base64url');
}

/** Buffer alone accepts several spellings of the same bytes. */
function decodeStrictly(text: string, encoding: 'base64' | 'base64url'): Uint8Array | undefined {
  const bytes = Buffer.from(text, encoding);
  return bytes.toString(encoding) === text ? new Uint8Array(bytes) : undefined;
}

/** `crypto.hash` is fastest with text output. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(Buffer.from(hash('sha256', bytes, 'base64url'), 'base64url'));
}

export function sha256Base64url(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'base64url');
}

export function sha256Latin1(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'binary');
}

export function createSha256(): Hasher {
  return toHasher(createHash('sha256'));
}

function toHasher(running: Hash): Hasher {
  const hasher: Hasher = {
    update(bytes) {
      running.update(bytes);
      return hasher;
    },
    copy: () => toHasher(running.copy()),
    digestLatin1: () => running.digest('binary'),
  };
  return hasher;
}

export function writeSha512(target: Uint8Array, at: number, bytes: Uint8Array): void {
  asBuffer(target).write(hash('sha512', bytes, 'binary'), at, 'latin1');
}

/** OpenSSL compares the encoding of R' = [S]B − [k]A with R. The KeyObject is kept: making one costs nearly as much as verifying. */
export function importEd25519(publicKey: Uint8Array): Equation {
  const key = importSpki(Buffer.concat([ED25519_SPKI_PREFIX, publicKey]));
  return (message, signature) => verify(null, message, key, signature);
}

export function importP256(publicKey: Uint8Array): Equation {
  const key = importSpki(Buffer.concat([P256_SPKI_PREFIX, publicKey]));
  const options = { key, dsaEncoding: 'ieee-p1363' } as const;
  return (message, signature) => verify('sha256', message, options, signature);
}

export function convertP256Point(
  point: Uint8Array,
  form: 'compressed' | 'uncompressed',
): Uint8Array | undefined {
  // OpenSSL also accepts the point at infinity and a hybrid form.
  if (point[0] !== 2 && point[0] !== 3 && point[0] !== 4) return undefined;
  try {
    return new Uint8Array(ECDH.convertKey(point, 'prime256v1', undefined, undefined, form) as Buffer);
  } catch {
    return undefined;
  }
}

export function readSpki(der: Uint8Array): SpkiKey {
  let key: KeyObject;
  try {
    key = importSpki(asBuffer(der));
  } catch {
    return undefined;
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  const curve = details?.namedCurve;
  const isP256 = type === 'ec' && curve === 'prime256v1';
  if (type !== 'ed25519' && !isP256)
    return { other: type === 'ec' ? `ec ${curve ?? 'with parameters of its own'}` : (type ?? 'another') };
  // OpenSSL ignores trailing bytes.
  if (!key.export({ format: 'der', type: 'spki' }).equals(der)) return undefined;
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  const [first, second] = [Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')];
  if (type === 'ed25519') return { alg: 'ed25519', bytes: new Uint8Array(first) };
  return { alg: 'p256', bytes: Uint8Array.of(0x04, ...first, ...second) };
}

function importSpki(der: Buffer): KeyObject {
  return createPublicKey({ key: der, format: 'der', type: 'spki' });
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function countProcessors(): number {
  return availableParallelism();
}

/** One bundled file, see `cli/bundle.js`. Code that runs from its sources, as tests do, uses that of the last build. */
const WORKER = 'fast/blocks/worker.js';

/** A block's facts are short-lived: with more room V8 would keep tens of megabytes of garbage. */
const YOUNG_GENERATION_MB = 6;

export function startWorker(): WorkerThread | undefined {
  const worker = new Worker(fromDist(WORKER), {
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  // The caller that awaits an answer keeps the process alive; an idle thread MUST NOT.
  worker.unref();
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (listener) => worker.on('message', listener),
    onEnd: (listener) => {
      worker.on('error', listener);
      worker.on('exit', (code) => listener(new Error(`the thread ended with ${code}`)));
    },
    stop: async () => {
      await worker.terminate();
    },
  };
}
