/**
 * OpenSSH keys: the one-line public form (RFC 4253 §6.6, RFC 5656 §3.1, RFC 8709 §4), `type base64 comment`, and the unencrypted
 * private form (OpenSSH's PROTOCOL.key). Options of authorized_keys, certificates and hardware ("sk-") keys are refused.
 */

import { equalBytes } from '../../base/bytes/compare.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { encodeBase64, tryDecodeBase64 } from '../../base/bytes/encoding.js';
import { decodeLatin1, encodeLatin1 } from '../../base/bytes/text.js';
import {
  curveOf,
  ED25519_LENGTH,
  keyError,
  malformed,
  P256_LENGTH,
  type RawPrivateKey,
  type RawPublicKey,
  SECRET_LENGTH,
} from './key-form.js';

export const OPENSSH_PRIVATE_LABEL = 'OPENSSH PRIVATE KEY';

const TYPE = { ed25519: 'ssh-ed25519', p256: 'ecdsa-sha2-nistp256' } as const;
const CURVE = 'nistp256';
const MAGIC = 'openssh-key-v1\0';

/** @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED` */
export function readOpenSshPublic(text: string): RawPublicKey {
  if (/[\r\n]/.test(text)) throw malformed('one OpenSSH key', 'several lines');
  const [type = '', base64 = ''] = text.split(/[ \t]+/, 2);
  assertKnownType(type);
  const blob = tryDecodeBase64(base64);
  const key = blob && readPublicBlob(new Reader(blob));
  if (key === undefined || TYPE[curveOf(key.alg, 'OpenSSH')] !== type)
    throw malformed(`an OpenSSH key of type ${type}`, 'other bytes');
  return key;
}

/**
 * The public key as one line without its newline.
 *
 * @throws RangeError if `comment` has a control character
 * @throws NorthrootError `KEY_UNSUPPORTED` for ml-dsa-44
 */
export function formatOpenSshPublic(key: RawPublicKey, comment = ''): string {
  if (/\p{Cc}/u.test(comment)) throw new RangeError('expected a comment without control characters');
  const alg = curveOf(key.alg, 'OpenSSH');
  const parts: Uint8Array[] = [encodeLatin1(TYPE[alg])];
  if (alg === 'p256') parts.push(encodeLatin1(CURVE));
  parts.push(key.bytes);
  const blob = concatBytes(parts.flatMap((part) => [uint32(part.length), part]));
  return `${TYPE[alg]} ${encodeBase64(blob)}${comment === '' ? '' : ` ${comment}`}`;
}

/**
 * The content of an `OPENSSH PRIVATE KEY` block.
 *
 * @throws NorthrootError `KEY_MALFORMED`, `KEY_ENCRYPTED`, `KEY_UNSUPPORTED`
 */
export function readOpenSshPrivate(bytes: Uint8Array): RawPrivateKey {
  const file = new Reader(bytes);
  if (decodeLatin1(file.raw(MAGIC.length) ?? new Uint8Array()) !== MAGIC)
    throw malformed('an OpenSSH private key', 'other bytes');
  const cipher = file.text();
  const kdf = file.text();
  const kdfOptions = file.string();
  if (cipher !== undefined && cipher !== 'none')
    throw keyError(
      'KEY_ENCRYPTED',
      'expected an OpenSSH private key without a passphrase, found one with',
      "take the passphrase off a copy of it: ssh-keygen -p -N '' -f COPY",
    );
  const count = file.uint32();
  const blob = file.string();
  const section = file.string();
  if (
    kdf !== 'none' ||
    kdfOptions?.length !== 0 ||
    count !== 1 ||
    blob === undefined ||
    section === undefined ||
    !file.atEnd
  )
    throw malformed('an OpenSSH private key file with one key', 'other bytes');
  const inner = new Reader(section);
  const check = inner.uint32();
  if (check === undefined || check !== inner.uint32())
    throw malformed('two equal check numbers in the key', 'others');
  const type = inner.text() ?? '';
  assertKnownType(type);
  const key = type === TYPE.ed25519 ? readEd25519Private(inner) : readP256Private(inner);
  const comment = inner.string();
  const padding = inner.rest();
  if (key === undefined || comment === undefined || padding.some((byte, i) => byte !== i + 1))
    throw malformed(`an OpenSSH private key of type ${type}`, 'other bytes');
  const outer = readPublicBlob(new Reader(blob));
  if (outer?.alg !== key.alg || !equalBytes(outer.bytes, key.claimedPublic))
    throw malformed('the same public key in both places of the file', 'two');
  return key;
}

type ClaimedPrivateKey = RawPrivateKey & { readonly claimedPublic: Uint8Array };

/** string public, string (seed ‖ public). */
function readEd25519Private(reader: Reader): ClaimedPrivateKey | undefined {
  const claimed = reader.string();
  const both = reader.string();
  if (claimed?.length !== ED25519_LENGTH || both?.length !== SECRET_LENGTH + ED25519_LENGTH) return undefined;
  if (!equalBytes(both.subarray(SECRET_LENGTH), claimed)) return undefined;
  return {
    alg: 'ed25519',
    secret: new Uint8Array(both.subarray(0, SECRET_LENGTH)),
    claimedPublic: new Uint8Array(claimed),
  };
}

/** string curve, string point, mpint scalar. */
function readP256Private(reader: Reader): ClaimedPrivateKey | undefined {
  const curve = reader.text();
  const claimed = reader.string();
  const scalar = reader.mpint(SECRET_LENGTH);
  if (curve !== CURVE || claimed?.length !== P256_LENGTH || scalar === undefined) return undefined;
  return { alg: 'p256', secret: scalar, claimedPublic: new Uint8Array(claimed) };
}

function readPublicBlob(reader: Reader): RawPublicKey | undefined {
  const type = reader.text();
  const alg = type === TYPE.ed25519 ? 'ed25519' : type === TYPE.p256 ? 'p256' : undefined;
  if (alg === undefined || (alg === 'p256' && reader.text() !== CURVE)) return undefined;
  const key = reader.string();
  if (key?.length !== (alg === 'p256' ? P256_LENGTH : ED25519_LENGTH) || !reader.atEnd) return undefined;
  return { alg, bytes: new Uint8Array(key) };
}

function assertKnownType(type: string): void {
  if (type === TYPE.ed25519 || type === TYPE.p256) return;
  const found = /^[a-z0-9@.-]{1,64}$/.test(type) ? type : 'another';
  throw keyError(
    'KEY_UNSUPPORTED',
    `expected an OpenSSH key of type ${TYPE.ed25519} or ${TYPE.p256}, found ${found}`,
  );
}

function uint32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}

/** Reads SSH's data types (RFC 4251 §5) sequentially; `undefined` if the bytes are too short or malformed. */
class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = new Uint8Array(bytes);
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  raw(length: number): Uint8Array | undefined {
    if (length > this.#bytes.length - this.#at) return undefined;
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  rest(): Uint8Array {
    return this.#bytes.subarray(this.#at);
  }

  uint32(): number | undefined {
    const bytes = this.raw(4);
    return bytes && new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
  }

  string(): Uint8Array | undefined {
    const length = this.uint32();
    return length === undefined ? undefined : this.raw(length);
  }

  text(): string | undefined {
    const bytes = this.string();
    return bytes && decodeLatin1(bytes);
  }

  /** A non-negative mpint in its shortest form, as `length` bytes. */
  mpint(length: number): Uint8Array | undefined {
    const bytes = this.string();
    if (bytes === undefined || bytes.length === 0 || bytes[0]! >= 0x80) return undefined;
    const padded = bytes[0] === 0;
    if (padded && (bytes[1] ?? 0) < 0x80) return undefined;
    const digits = padded ? bytes.subarray(1) : bytes;
    if (digits.length > length) return undefined;
    const out = new Uint8Array(length);
    out.set(digits, length - digits.length);
    return out;
  }
}
