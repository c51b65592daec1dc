/** The platform elsewhere, such as in browsers: ECMAScript, the Encoding Standard and the noble libraries. */

import { p256 } from '@noble/curves/nist.js';
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js';

import { importNobleEd25519 } from './noble-ed25519.js';
import type { Equation, Hasher, WorkerThread } from './platform.js';
import { ED25519_SPKI_PREFIX, P256_COMPRESSED_SPKI_PREFIX, P256_SPKI_PREFIX, type SpkiKey } from './spki.js';

export const HOST = 'web';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export function allocateBytes(length: number): Uint8Array {
  return new Uint8Array(length);
}

export function allocateScratch(length: number): Uint8Array {
  return new Uint8Array(length);
}

export function viewBytes(buffer: ArrayBufferLike, offset: number, length: number): Uint8Array {
  return new Uint8Array(buffer, offset, length);
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

export function encodeUtf8(text: string): Uint8Array {
  return encoder.encode(text);
}

export function decodeUtf8(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return decoder.decode(bytes.subarray(start, end));
}

export function encodeLatin1(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  writeLatin1(bytes, text, 0);
  return bytes;
}

/** Every engine takes this many arguments in one call. */
const MAX_ARGUMENTS = 8_192;

export function decodeLatin1(bytes: Uint8Array, start = 0, end = bytes.length): string {
  let text = '';
  for (let at = start; at < end; at += MAX_ARGUMENTS)
    text += String.fromCharCode(...bytes.subarray(at, Math.min(at + MAX_ARGUMENTS, end)));
  return text;
}

export function writeLatin1(target: Uint8Array, text: string, at: number): void {
  const length = Math.min(text.length, target.length - at);
  for (let i = 0; i < length; i++) target[at + i] = text.charCodeAt(i);
}

const COMMON = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const BASE64 = `${COMMON}+/`;
const BASE64URL = `${COMMON}-_`;

export function encodeBase64(bytes: Uint8Array): string {
  const text = encodeSixBits(bytes, BASE64);
  return text + '='.repeat((4 - (text.length % 4)) % 4);
}

export function encodeBase64url(bytes: Uint8Array): string {
  return encodeSixBits(bytes, BASE64URL);
}

function encodeSixBits(bytes: Uint8Array, alphabet: string): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const word = (bytes[at]! << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    const count = Math.min(bytes.length - at, 3) + 1;
    for (let i = 0; i < count; i++) text += alphabet[(word >> (18 - 6 * i)) & 0x3f]!;
  }
  return text;
}

export function tryDecodeBase64(text: string): Uint8Array | undefined {
  const bytes = decodeSixBits(text.replace(/={1,2}$/, ''), BASE64_VALUES);
  return bytes !== undefined && encodeBase64(bytes) === text ? bytes : undefined;
}

export function tryDecodeBase64url(text: string): Uint8Array | undefined {
  const bytes = decodeSixBits(text, BASE64URL_VALUES);
  return bytes !== undefined && encodeBase64url(bytes) === text ? bytes : undefined;
}

const BASE64_VALUES = valuesOf(BASE64);
const BASE64URL_VALUES = valuesOf(BASE64URL);

/** By code unit; 64 for characters outside the alphabet. */
function valuesOf(alphabet: string): Uint8Array {
  const values = new Uint8Array(128).fill(64);
  for (let value = 0; value < alphabet.length; value++) values[alphabet.charCodeAt(value)] = value;
  return values;
}

/** Ignores the bits that fill no byte. */
function decodeSixBits(text: string, values: Uint8Array): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let word = 0;
  let bits = 0;
  let at = 0;
  for (let i = 0; i < text.length; i++) {
    const value = values[text.charCodeAt(i)] ?? 64;
    if (value === 64) return undefined;
    word = ((word << 6) | value) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[at++] = word >> bits;
  }
  return bytes;
}

export function encodeHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}

export function tryDecodeHex(text: string): Uint8Array | undefined {
  if (!/^(?:[0-9a-fA-F]{2})*$/.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

export function writeBase64url(target: Uint8Array, text: string): void {
  target.set(decodeSixBits(text, BASE64URL_VALUES) ?? []);
}

export function sha256(bytes: Uint8Array): Uint8Array {
  return nobleSha256(bytes);
}

export function sha256Base64url(bytes: Uint8Array): string {
  return encodeBase64url(nobleSha256(bytes));
}

export function sha256Latin1(bytes: Uint8Array): string {
  return decodeLatin1(nobleSha256(bytes));
}

export function createSha256(): Hasher {
  return toHasher(nobleSha256.create());
}

function toHasher(running: ReturnType<typeof nobleSha256.create>): Hasher {
  const hasher: Hasher = {
    update(bytes) {
      running.update(bytes);
      return hasher;
    },
    copy: () => toHasher(running.clone()),
    digestLatin1: () => decodeLatin1(running.digest()),
  };
  return hasher;
}

/** JavaScript's is slower than WebAssembly. */
export const writeSha512 = undefined;

export function importEd25519(publicKey: Uint8Array): Equation {
  return importNobleEd25519(publicKey);
}

export function importP256(publicKey: Uint8Array): Equation {
  return (message, signature) => p256.verify(signature, message, publicKey, { lowS: false });
}

export function convertP256Point(
  point: Uint8Array,
  form: 'compressed' | 'uncompressed',
): Uint8Array | undefined {
  try {
    return p256.Point.fromBytes(point).toBytes(form === 'compressed');
  } catch {
    return undefined;
  }
}

export function readSpki(der: Uint8Array): SpkiKey {
  const ed25519 = after(der, ED25519_SPKI_PREFIX, 32);
  if (ed25519 !== undefined) return { alg: 'ed25519', bytes: ed25519 };
  const point = after(der, P256_SPKI_PREFIX, 65) ?? after(der, P256_COMPRESSED_SPKI_PREFIX, 33);
  if (point !== undefined) {
    const bytes = convertP256Point(point, 'uncompressed');
    return bytes && { alg: 'p256', bytes };
  }
  return isOtherSpki(der) ? { other: 'another' } : undefined;
}

/** The `length` bytes that follow `prefix`. */
function after(der: Uint8Array, prefix: Uint8Array, length: number): Uint8Array | undefined {
  if (der.length !== prefix.length + length) return undefined;
  return equalBytes(der.subarray(0, prefix.length), prefix)
    ? new Uint8Array(der.subarray(prefix.length))
    : undefined;
}

const SEQUENCE = 0x30;
const OBJECT_IDENTIFIER = 0x06;
const BIT_STRING = 0x03;
/** The algorithm identifiers of Ed25519, and of elliptic curves with P-256, in hex. */
const ED25519_IDENTIFIER = '2b6570';
const P256_IDENTIFIERS = '2a8648ce3d020106082a8648ce3d030107';

/** Whether these are SPKI of an algorithm other than the two supported ones. */
function isOtherSpki(der: Uint8Array): boolean {
  const whole = readDer(der, SEQUENCE);
  const algorithm = whole && readDer(whole.content, SEQUENCE);
  const identifier = algorithm && readDer(algorithm.content, OBJECT_IDENTIFIER);
  if (whole?.rest.length !== 0 || identifier === undefined) return false;
  if (readDer(algorithm!.rest, BIT_STRING)?.rest.length !== 0) return false;
  const name = encodeHex(algorithm!.content.subarray(2));
  return name !== ED25519_IDENTIFIER && name !== P256_IDENTIFIERS;
}

/** One DER value, and the bytes after it. */
function readDer(
  bytes: Uint8Array,
  tag: number,
): { readonly content: Uint8Array; readonly rest: Uint8Array } | undefined {
  if (bytes[0] !== tag) return undefined;
  const first = bytes[1] ?? 0x80;
  const octets = first < 0x80 ? 0 : first & 0x7f;
  if (first >= 0x80 && (octets === 0 || octets > 3)) return undefined;
  let length = octets === 0 ? first : 0;
  for (let i = 0; i < octets; i++) length = length * 256 + (bytes[2 + i] ?? 0);
  const start = 2 + octets;
  if (start + length > bytes.length) return undefined;
  return { content: bytes.subarray(start, start + length), rest: bytes.subarray(start + length) };
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/** A page already verifies in one worker. */
export function countProcessors(): number {
  return 1;
}

export function startWorker(): WorkerThread | undefined {
  return undefined;
}
