/**
 * What differs between hosts: hashing, text encodings, the equations of signatures. `node.ts` and `web.ts` each export all of it, and
 * MUST give the same results for every input; `#platform` is the one that fits (package.json, `imports`).
 */

import type { SpkiKey } from './spki.js';

/** Incremental SHA-256. */
export interface Hasher {
  update(bytes: Uint8Array): Hasher;
  /** An independent hasher of the same bytes. */
  copy(): Hasher;
  /** The hash as 32 characters, U+0000 to U+00FF. MUST be called once only. */
  digestLatin1(): string;
}

/** Whether `signature`, which passed the checks that need no arithmetic, is valid for `message`. */
export type Equation = (message: Uint8Array, signature: Uint8Array) => boolean;

/** A thread that runs `fast/blocks/worker.ts`. Each listener MUST be set once only. */
export interface WorkerThread {
  post(message: unknown): void;
  onMessage(listener: (message: unknown) => void): void;
  onEnd(listener: (cause: unknown) => void): void;
  stop(): Promise<void>;
}

export interface Platform {
  readonly HOST: 'node' | 'web';

  /** Zeroed bytes. Long-lived buffers SHOULD come from here: on Node it is a Buffer. */
  allocateBytes(length: number): Uint8Array;
  /** Uninitialised bytes, for short-lived values that are overwritten whole. */
  allocateScratch(length: number): Uint8Array;
  /** A view in which texts are decoded fastest. */
  viewBytes(buffer: ArrayBufferLike, offset: number, length: number): Uint8Array;
  equalBytes(a: Uint8Array, b: Uint8Array): boolean;

  /** Lone surrogates become U+FFFD. */
  encodeUtf8(text: string): Uint8Array;
  /** Invalid UTF-8 becomes U+FFFD; a byte order mark is kept. */
  decodeUtf8(bytes: Uint8Array, start?: number, end?: number): string;
  /** The lower eight bits of each code unit. */
  encodeLatin1(text: string): Uint8Array;
  decodeLatin1(bytes: Uint8Array, start?: number, end?: number): string;
  /** Writes as much of `text` as fits from `at` on. */
  writeLatin1(target: Uint8Array, text: string, at: number): void;

  encodeBase64(bytes: Uint8Array): string;
  encodeBase64url(bytes: Uint8Array): string;
  encodeHex(bytes: Uint8Array): string;
  /** Accepts only what `encodeBase64` writes. */
  tryDecodeBase64(text: string): Uint8Array | undefined;
  /** Accepts only what `encodeBase64url` writes. */
  tryDecodeBase64url(text: string): Uint8Array | undefined;
  /** Accepts either case. */
  tryDecodeHex(text: string): Uint8Array | undefined;
  /** Decodes base64url that MUST be canonical and fit. */
  writeBase64url(target: Uint8Array, text: string): void;

  sha256(bytes: Uint8Array): Uint8Array;
  sha256Base64url(bytes: Uint8Array): string;
  /** 32 characters, U+0000 to U+00FF. */
  sha256Latin1(bytes: Uint8Array): string;
  createSha256(): Hasher;
  /** Writes the 64 bytes of a SHA-512; undefined if the host has none faster than WebAssembly. */
  readonly writeSha512: ((target: Uint8Array, at: number, bytes: Uint8Array) => void) | undefined;

  /** The cofactorless [S]B = R + [k]A, for a key and signatures that passed the checks of SPEC §5. */
  importEd25519(publicKey: Uint8Array): Equation;
  /** ECDSA with SHA-256 of r ‖ s, 64 bytes, for a key on the curve; low s is not required. */
  importP256(publicKey: Uint8Array): Equation;
  /** A P-256 point in a SEC1 form; `undefined` for other bytes, unreduced coordinates included. */
  convertP256Point(point: Uint8Array, form: 'compressed' | 'uncompressed'): Uint8Array | undefined;
  /** Ed25519 and P-256 keys. */
  readSpki(der: Uint8Array): SpkiKey;

  /** Resolves in a later turn of the event loop, after pending messages and I/O. */
  nextTurn(): Promise<void>;
  /** The number of threads that can run in parallel. */
  countProcessors(): number;
  /** Starts a thread; undefined if the host has none for this. */
  startWorker(): WorkerThread | undefined;
}
