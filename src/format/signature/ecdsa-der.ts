/**
 * ECDSA signatures of P-256 in their two forms: r‖s of 64 bytes, which records have (IEEE P1363), and DER (RFC 3279), which other
 * tools have. Both name the same numbers, and nothing else: only the one DER of a signature is read.
 */

import { equalBytes } from '../../base/bytes/compare.js';

const NUMBER_BYTES = 32;
const SEQUENCE = 0x30;
const INTEGER = 0x02;

/** The DER of r‖s; `undefined` when there are not 64 bytes. */
export function tryEncodeEcdsaDer(signature: Uint8Array): Uint8Array | undefined {
  if (signature.length !== 2 * NUMBER_BYTES) return undefined;
  const body = [signature.subarray(0, NUMBER_BYTES), signature.subarray(NUMBER_BYTES)].flatMap(encodeInteger);
  return Uint8Array.of(SEQUENCE, body.length, ...body);
}

/** r‖s of a DER signature; `undefined` for anything but the DER of two numbers of at most 256 bits. */
export function tryDecodeEcdsaDer(der: Uint8Array): Uint8Array | undefined {
  if (der[0] !== SEQUENCE || der[1] !== der.length - 2) return undefined;
  const signature = new Uint8Array(2 * NUMBER_BYTES);
  let at = 2;
  for (const end of [NUMBER_BYTES, 2 * NUMBER_BYTES]) {
    const length = der[at + 1];
    if (der[at] !== INTEGER || length === undefined || length === 0) return undefined;
    const number = der.subarray(at + 2, at + 2 + length);
    if (number.length !== length) return undefined;
    const bytes = number[0] === 0 && length > 1 ? number.subarray(1) : number;
    if (bytes.length > NUMBER_BYTES) return undefined;
    signature.set(bytes, end - bytes.length);
    at += 2 + length;
  }
  // What was read is only then the one way to write it when it is written like that.
  const canonical = tryEncodeEcdsaDer(signature);
  return canonical !== undefined && equalBytes(canonical, der) ? signature : undefined;
}

/** A number of at least 0: without leading zeroes, but for one where the first bit would be taken for a sign. */
function encodeInteger(number: Uint8Array): number[] {
  const first = number.findIndex((byte) => byte !== 0);
  const bytes = first === -1 ? [0] : [...number.subarray(first)];
  if ((bytes[0] as number) >= 0x80) bytes.unshift(0);
  return [INTEGER, bytes.length, ...bytes];
}
