/** Receipts made and signed here, with keys of the tests, by what the formats' specifications say; no line of it is theirs. */

import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto';
import type { Host, HostFile, HostOptions, HostReading } from '../../../src/hosts/shared/host.js';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type JsonMembers = Record<string, Json>;

/** RFC 8785, of values that hold no lone surrogates. */
export function jcs(value: Json): string {
  if (Array.isArray(value)) return `[${value.map((each: Json) => jcs(each)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value as JsonMembers).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${jcs(member)}`).join(',')}}`;
}

export function sha256Hex(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export interface Signer {
  readonly key: KeyObject;
  /** 32 bytes. */
  readonly bytes: Buffer;
  readonly pem: string;
}

/** The key of a seed that is so many times one byte. */
export function signer(byte: number): Signer {
  const head = Buffer.from('302e020100300506032b657004220420', 'hex');
  const der = Buffer.concat([head, Buffer.alloc(32, byte)]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const pub = createPublicKey(key);
  const pem = pub.export({ format: 'pem', type: 'spki' }).toString();
  return { key, bytes: Buffer.from(pub.export({ format: 'jwk' }).x!, 'base64url'), pem };
}

export const ALICE = signer(1);
export const BOB = signer(2);
export const MALLORY = signer(3);

export function signText({ key }: Signer, text: string): string {
  return sign(null, Buffer.from(text), key).toString('base64url');
}

/** A file of one JSON text. */
export function jsonFile(value: unknown, name = 'receipts.json'): HostFile {
  return { name, bytes: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)) };
}

/** Reads receipts, with keys beside them. */
export function readReceipts(
  host: Host,
  value: unknown,
  { keys, ...options }: { readonly keys?: string } & Pick<HostOptions, 'unverified'> = {},
): HostReading {
  const aids = keys === undefined ? {} : { aids: { keys: jsonFile(keys, 'keys') } };
  return host.read([jsonFile(value)], { ...options, ...aids });
}

/** Codes of errors and violations. */
export function errorsOf({ findings }: Pick<HostReading, 'findings'>): string[] {
  return findings.filter(({ severity }) => severity === 'error').map(({ code }) => code);
}

/** How many receipts stand how: verified, by their own key, not verified, broken. */
export function standingsOf({ receipts }: HostReading): readonly number[] {
  const { verified = -1, ownKey = -1, unverified = -1, broken = -1 } = receipts ?? {};
  return [verified, ownKey, unverified, broken];
}
