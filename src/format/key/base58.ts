/** Base58 with Bitcoin's alphabet ("base58btc"), for did:key. Quadratic in the length, which is therefore bounded. */

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** Enough for 46 bytes; a did:key of the algorithms read here has 34 or 35. */
const MAX_BASE58_LENGTH = 64;

/** @throws RangeError for more than 46 bytes */
export function encodeBase58(bytes: Uint8Array): string {
  if (bytes.length > 46) throw new RangeError(`expected at most 46 bytes, found ${bytes.length}`);
  let value = 0n;
  for (const byte of bytes) value = value * 256n + BigInt(byte);
  let text = '';
  for (; value > 0n; value /= 58n) text = ALPHABET.charAt(Number(value % 58n)) + text;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return '1'.repeat(zeros === -1 ? bytes.length : zeros) + text;
}

/** `undefined` for other characters and for more than 64. */
export function tryDecodeBase58(text: string): Uint8Array | undefined {
  if (text.length > MAX_BASE58_LENGTH) return undefined;
  let value = 0n;
  for (const char of text) {
    const digit = ALPHABET.indexOf(char);
    if (digit === -1) return undefined;
    value = value * 58n + BigInt(digit);
  }
  const bytes: number[] = [];
  for (; value > 0n; value /= 256n) bytes.unshift(Number(value % 256n));
  for (let i = 0; text[i] === '1'; i++) bytes.unshift(0);
  return Uint8Array.from(bytes);
}
