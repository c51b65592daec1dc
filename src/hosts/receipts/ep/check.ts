/**
 * Whether a document is an EP receipt, `EP-RECEIPT-v1`, and its signature and anchor hold: Ed25519 over the RFC 8785 form of its payload,
 * in which all numbers are safe integers, and a Merkle path of `EP-MERKLE-v2` from this payload to the root that the anchor states.
 */

import { concatBytes } from '../../../base/bytes/concat.js';
import { encodeHex, tryDecodeBase64url } from '../../../base/bytes/encoding.js';
import { printable } from '../../../base/bytes/printable.js';
import { sha256 } from '../../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import type { SourceObject, SourceValue } from '../../../base/json/source-json.js';
import { findNumber, jcsBytes, roundedAt } from '../../shared/forms/jcs.js';
import { listAt, objectAt, textAt, valueAt } from '../../shared/values.js';
import type { ValueFault } from '../../../base/fault.js';
import { fault } from '../shape.js';

/** What keeps a document from being a receipt that holds. */
export type EpFault = ValueFault<
  | 'VERSION_UNSUPPORTED'
  | 'PROOF_MISSING'
  | 'NUMBER_NOT_SAFE'
  | 'ALGORITHM_UNSUPPORTED'
  | 'SIGNATURE_ENCODING'
  | 'ANCHOR_LEGACY'
  | 'ANCHOR_INCOMPLETE'
  | 'ANCHOR_UNBOUND'
  | 'ANCHOR_MISMATCH'
>;

export const EP_VERSION = 'EP-RECEIPT-v1';
const MERKLE_ALGORITHM = 'EP-MERKLE-v2';
/** Steps of a path that the specification lets an anchor have. */
const MAX_STEPS = 20;
const SIGNATURE_LENGTH = 64;

/** A receipt of the right form: what its signature is over, and the signature. */
export interface EpProof {
  readonly payload: SourceObject;
  /** The RFC 8785 form of the payload. */
  readonly message: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/** What the signature of a document is over, or the fault that keeps it from being looked at. */
export function readEpProof(document: SourceObject): EpProof | EpFault {
  const version = valueAt(document, '@version');
  if (version !== EP_VERSION) return fault('VERSION_UNSUPPORTED', '/@version', EP_VERSION, shown(version));
  const payload = objectAt(document, 'payload');
  const value = textAt(document, 'signature', 'value');
  const algorithm = textAt(document, 'signature', 'algorithm');
  if (payload === undefined) return fault('PROOF_MISSING', '/payload', 'an object', 'none');
  if (value === undefined || value === '')
    return fault('PROOF_MISSING', '/signature/value', 'a signature', 'none');
  if (algorithm === undefined) return fault('PROOF_MISSING', '/signature/algorithm', 'an algorithm', 'none');
  // Two spellings are in use. The key alone decides what is computed.
  if (algorithm.toLowerCase() !== 'ed25519') {
    const actual = printable(algorithm, 40);
    return fault('ALGORITHM_UNSUPPORTED', '/signature/algorithm', 'Ed25519', actual);
  }
  const unsafe = findNumber(document, (text) => !Number.isSafeInteger(Number(text))) ?? roundedAt(document);
  if (unsafe !== undefined)
    return fault('NUMBER_NOT_SAFE', unsafe, 'a whole number that a double holds exactly', 'another');
  const signature = value.length > 128 ? undefined : tryDecodeBase64url(value);
  const message = jcsBytes(payload);
  if (signature?.length !== SIGNATURE_LENGTH || message === undefined)
    return fault('SIGNATURE_ENCODING', '/signature/value', '64 bytes in base64url', printable(value, 40));
  return { payload, message, signature };
}

/** Of an anchor: undefined where there is none, or where it holds. */
export function findAnchorFault(document: SourceObject, message: Uint8Array): EpFault | undefined {
  const anchor = valueAt(document, 'anchor');
  if (anchor === undefined || anchor === null) return undefined;
  const steps = listAt(anchor, 'merkle_proof');
  const leaf = textAt(anchor, 'leaf_hash');
  const root = textAt(anchor, 'merkle_root');
  if (steps === undefined || leaf === undefined || root === undefined)
    return fault('ANCHOR_INCOMPLETE', '/anchor', 'leaf_hash, merkle_proof and merkle_root', 'less');
  const algorithm = valueAt(anchor, 'alg');
  if (algorithm !== MERKLE_ALGORITHM)
    return fault('ANCHOR_LEGACY', '/anchor/alg', MERKLE_ALGORITHM, shown(algorithm));
  const own = encodeHex(sha256(concatBytes([Uint8Array.of(0), message])));
  if (leaf !== own) return fault('ANCHOR_UNBOUND', '/anchor/leaf_hash', own, printable(leaf, 80));
  if (steps.length > MAX_STEPS)
    return fault('ANCHOR_MISMATCH', '/anchor/merkle_proof', `at most ${MAX_STEPS} steps`, `${steps.length}`);
  let hash = leaf;
  for (const [index, step] of steps.entries()) {
    const sibling = textAt(step, 'hash');
    const position = textAt(step, 'position');
    if (sibling === undefined || (position !== 'left' && position !== 'right')) {
      const at = `/anchor/merkle_proof/${index}`;
      return fault('ANCHOR_MISMATCH', at, 'a hash, and left or right', 'another step');
    }
    hash = position === 'left' ? branchOf(sibling, hash) : branchOf(hash, sibling);
  }
  return hash === root
    ? undefined
    : fault('ANCHOR_MISMATCH', '/anchor/merkle_root', hash, printable(root, 80));
}

/** Hashes are hashed in their hexadecimal text. */
function branchOf(left: string, right: string): string {
  return encodeHex(sha256(concatBytes([Uint8Array.of(1), encodeUtf8(left), encodeUtf8(right)])));
}

function shown(value: SourceValue | undefined): string {
  if (value === undefined) return 'none';
  return typeof value === 'string' ? printable(value, 40) : 'no text';
}
