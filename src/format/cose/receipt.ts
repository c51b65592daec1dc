/**
 * COSE receipts of inclusion (RFC 9942) for `RFC9162_SHA256`, the tree of RFC 6962: a COSE_Sign1 with the tree's root as its detached
 * payload, and an inclusion path in the unprotected headers. A verifier computes the root from the leaf, so that it never checks
 * a signature of another root. This is the format only: nothing is verified here.
 *
 *     18([
 *       << { alg, kid: the key's id, CWT claims: { iss: the origin }, vds: 1 } >>,
 *       { vdp: { -1: [ << [tree size, leaf index, [hash, …]] >> ] } },
 *       null,
 *       signature
 *     ])
 */

import { equalBytes } from '../../base/bytes/compare.js';
import { decodeLatin1, encodeLatin1, encodeUtf8 } from '../../base/bytes/text.js';
import { decodeCbor, encodeCbor } from '../../base/cbor/codec.js';
import type { CborKey, CborMap, CborValue } from '../../base/cbor/value.js';
import { fail, type Fault, type Result, succeed } from '../../base/fault.js';
import type { PublicKey } from '../key/public-key.js';
import type { Signer } from '../signature/signer.js';
import { COSE_HEADER, type CoseSign1, decodeCoseSign1, signCoseSign1 } from './sign1.js';

/** Header labels (RFC 9597, RFC 9942). */
const HEADER = { cwtClaims: 15, vds: 395, vdp: 396 } as const;
/** The issuer among the claims (RFC 8392). */
const CLAIM_ISS = 1;
/** RFC 9942: the tree of RFC 9162, equal to that of RFC 6962, with SHA-256. */
const RFC9162_SHA256 = 1;
/** The label in `vdp`. */
const INCLUSION_PROOFS = -1;

const UNDERSTOOD: ReadonlySet<CborKey> = new Set([HEADER.cwtClaims, HEADER.vds]);

const MAX_RECEIPT_BYTES = 64 * 1024;
/** The height of the largest tree. */
const MAX_PATH_HASHES = 63;
const HASH_BYTES = 32;
const MAX_ISSUER_CHARACTERS = 1_024;

interface Receipt {
  readonly message: CoseSign1;
  /** The log's name: the issuer among the claims, if any. */
  readonly issuer: string | undefined;
  readonly size: number;
  /** The leaf's index, from 0. */
  readonly index: number;
  /** From the leaf's sibling up: binary strings of 32 characters, at most 63. */
  readonly hashes: readonly string[];
}

interface ReceiptParts {
  readonly issuer: string;
  readonly size: number;
  readonly index: number;
  readonly hashes: readonly string[];
  /** The signed root: a binary string of 32 characters. */
  readonly root: string;
}

/** Signs the root of a tree, with the inclusion path of a leaf. @throws RangeError for an ML-DSA-44 key */
export function formatReceipt(
  { issuer, size, index, hashes, root }: ReceiptParts,
  signer: Signer,
): Uint8Array {
  const proof = encodeCbor([size, index, hashes.map((hash) => encodeLatin1(hash))]);
  return signCoseSign1(encodeLatin1(root), signer, {
    protectedHeaders: new Map<CborKey, CborValue>([
      [COSE_HEADER.kid, encodeUtf8(signer.publicKey.keyid)],
      [HEADER.cwtClaims, new Map([[CLAIM_ISS, issuer]])],
      [HEADER.vds, RFC9162_SHA256],
    ]),
    unprotectedHeaders: new Map([[HEADER.vdp, new Map([[INCLUSION_PROOFS, [proof]]])]]),
    detached: true,
  });
}

/** Decodes a receipt of at most 64 KiB with one inclusion proof. */
export function decodeReceipt(bytes: Uint8Array): Result<Receipt, Fault<'PROOF_MALFORMED'>> {
  if (bytes.length > MAX_RECEIPT_BYTES)
    return malformed(`a receipt of at most ${MAX_RECEIPT_BYTES} bytes`, `${bytes.length} bytes`);
  const decoded = decodeCoseSign1(bytes, UNDERSTOOD);
  if (!decoded.ok) {
    const { expected, actual, offset } = decoded.fault;
    return malformed(expected, offset === undefined ? actual : `${actual} at byte ${offset}`);
  }
  const message = decoded.value;
  const { protectedHeaders, unprotectedHeaders } = message;
  const vds = protectedHeaders.get(HEADER.vds);
  if (vds !== RFC9162_SHA256) {
    const actual = vds === undefined ? 'none' : 'another';
    return malformed('the verifiable data structure 1 (RFC9162_SHA256) among the protected headers', actual);
  }
  const claims = protectedHeaders.get(HEADER.cwtClaims);
  if (claims !== undefined && !isMap(claims)) return malformed('a map of claims', 'another item');
  const issuer = claims?.get(CLAIM_ISS);
  if (issuer !== undefined && (typeof issuer !== 'string' || issuer.length > MAX_ISSUER_CHARACTERS))
    return malformed(`an issuer as text of at most ${MAX_ISSUER_CHARACTERS} characters`, 'another item');
  const proofs = unprotectedHeaders.get(HEADER.vdp);
  const inclusion = isMap(proofs) ? proofs.get(INCLUSION_PROOFS) : undefined;
  if (!isArray(inclusion)) return malformed('inclusion proofs among the unprotected headers', 'none');
  const [proof, ...further] = inclusion;
  if (!(proof instanceof Uint8Array) || further.length > 0)
    return malformed('one inclusion proof, as bytes', `${inclusion.length} items`);
  const path = decodePath(proof);
  return path.ok ? succeed({ message, issuer, ...path.value }) : path;
}

/** Whether a receipt names this key, or none. */
export function namesReceiptKey(
  { protectedHeaders, unprotectedHeaders }: CoseSign1,
  key: PublicKey,
): boolean {
  const kid = protectedHeaders.get(COSE_HEADER.kid) ?? unprotectedHeaders.get(COSE_HEADER.kid);
  return kid === undefined || (kid instanceof Uint8Array && equalBytes(kid, encodeUtf8(key.keyid)));
}

function decodePath(
  proof: Uint8Array,
): Result<Pick<Receipt, 'size' | 'index' | 'hashes'>, Fault<'PROOF_MALFORMED'>> {
  const decoded = decodeCbor(proof);
  if (!decoded.ok) {
    const { expected, actual, offset } = decoded.fault;
    return malformed(`${expected} in the inclusion proof`, `${actual} at byte ${offset} of it`);
  }
  const parts = isArray(decoded.value) ? decoded.value : [];
  const [size, index, path] = parts;
  if (parts.length !== 3 || !isCount(size) || !isCount(index) || !isArray(path))
    return malformed('a tree size, a leaf index and hashes in the inclusion proof', 'other items');
  if (path.length > MAX_PATH_HASHES) return malformed(`at most ${MAX_PATH_HASHES} hashes`, `${path.length}`);
  const hashes: string[] = [];
  for (const hash of path) {
    if (!(hash instanceof Uint8Array) || hash.length !== HASH_BYTES)
      return malformed(`hashes of ${HASH_BYTES} bytes in the inclusion proof`, 'another item');
    hashes.push(decodeLatin1(hash));
  }
  return succeed({ size, index, hashes });
}

function malformed(
  expected: string,
  actual: string,
): { readonly ok: false; readonly fault: Fault<'PROOF_MALFORMED'> } {
  return fail({ code: 'PROOF_MALFORMED', expected, actual });
}

function isCount(value: CborValue | undefined): value is number {
  return typeof value === 'number' && value >= 0;
}

function isMap(value: CborValue | undefined): value is CborMap {
  return value instanceof Map;
}

function isArray(value: CborValue | undefined): value is readonly CborValue[] {
  return Array.isArray(value);
}
