/**
 * What differs between hosts: hashing, texts and bytes, the equations of signatures. `node.ts` and `web.ts` each export all of it;
 * the import `#platform` is the one that fits (package.json, `imports`), and both give the same results for every input.
 */

import type { SpkiKey } from './spki.js';

/** SHA-256 of bytes that come in parts. */
export interface Hasher {
  update(bytes: Uint8Array): Hasher;
  /** One of its own, which has seen the same bytes. */
  copy(): Hasher;
  /** The hash as 32 characters, U+0000 to U+00FF; to be called once. */
  digestLatin1(): string;
}

/** Whether `signature`, which passed the checks that need no arithmetic, is one of `message`. */
export type Equation = (message: Uint8Array, signature: Uint8Array) => boolean;

/** Another thread that examines blocks of lines: `fast/blocks/worker.ts` runs in it. */
export interface WorkerThread {
  /** Sends what can be cloned. */
  post(message: unknown): void;
  /** Is told of each answer. To be called once. */
  onMessage(listener: (message: unknown) => void): void;
  /** Is told when the thread ends by itself, and why. To be called once. */
  onEnd(listener: (cause: unknown) => void): void;
  stop(): Promise<void>;
}

/** What `#platform` exports. */
export interface Platform {
  readonly HOST: 'node' | 'web';

  /** Bytes of zero. What is kept to be read or written often should come from here: on Node it is a Buffer. */
  allocateBytes(length: number): Uint8Array;
  /** Bytes of anything, for what is written over whole and soon forgotten. */
  allocateScratch(length: number): Uint8Array;
  /** A part of a buffer, in which texts are found fastest. */
  viewBytes(buffer: ArrayBufferLike, offset: number, length: number): Uint8Array;
  concatBytes(parts: readonly Uint8Array[]): Uint8Array;
  equalBytes(a: Uint8Array, b: Uint8Array): boolean;

  /** Lone surrogates become U+FFFD. */
  encodeUtf8(text: string): Uint8Array;
  /** What is not UTF-8 becomes U+FFFD; a byte order mark stays. */
  decodeUtf8(bytes: Uint8Array, start?: number, end?: number): string;
  /** One byte of each code unit, its lower eight bits. */
  encodeLatin1(text: string): Uint8Array;
  decodeLatin1(bytes: Uint8Array, start?: number, end?: number): string;
  /** As much of `text` as fits behind `at`. */
  writeLatin1(target: Uint8Array, text: string, at: number): void;

  encodeBase64(bytes: Uint8Array): string;
  encodeBase64url(bytes: Uint8Array): string;
  encodeHex(bytes: Uint8Array): string;
  /** Only what `encodeBase64` writes; `undefined` for anything else. */
  tryDecodeBase64(text: string): Uint8Array | undefined;
  /** Only what `encodeBase64url` writes. */
  tryDecodeBase64url(text: string): Uint8Array | undefined;
  /** Of either case. */
  tryDecodeHex(text: string): Uint8Array | undefined;
  /** Writes what base64url that is known to be canonical and to fit stands for. */
  writeBase64url(target: Uint8Array, text: string): void;

  sha256(bytes: Uint8Array): Uint8Array;
  sha256Base64url(bytes: Uint8Array): string;
  /** 32 characters, U+0000 to U+00FF. */
  sha256Latin1(bytes: Uint8Array): string;
  createSha256(): Hasher;
  /** Writes the 64 bytes of a SHA-512; undefined where the host has none that is faster than WebAssembly. */
  readonly writeSha512: ((target: Uint8Array, at: number, bytes: Uint8Array) => void) | undefined;

  /** [S]B = R + [k]A, without cofactor, for a key and signatures that passed the checks of SPEC §5. */
  importEd25519(publicKey: Uint8Array): Equation;
  /** ECDSA with SHA-256 of r ‖ s, 64 bytes, for a key on the curve; low s is not demanded. */
  importP256(publicKey: Uint8Array): Equation;
  /** A point of P-256 in the other or the same SEC1 form; `undefined` for what is not one, in reduced coordinates. */
  convertP256Point(point: Uint8Array, form: 'compressed' | 'uncompressed'): Uint8Array | undefined;
  /** Ed25519 and P-256 keys. */
  readSpki(der: Uint8Array): SpkiKey;

  /** Resolves in a later turn of the event loop: messages of other threads, and what was read, are told before. */
  nextTurn(): Promise<void>;
  /** How many threads can run at the same time. */
  countProcessors(): number;
  /** Starts a thread; undefined where the host has none for this. */
  startWorker(): WorkerThread | undefined;
}
