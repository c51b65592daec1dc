/**
 * Verifies COSE receipts of inclusion (RFC 9942) offline: that a log committed to an entry. Pure: no files, no clock. As in RFC 9942 the
 * root is computed from the entry, then the signature is verified over that root.
 */

import { equalBytes } from '../base/bytes/compare.js';
import { encodeLatin1 } from '../base/bytes/text.js';
import { toDigestText } from '../base/value/digest.js';
import { decodeReceipt, namesReceiptKey } from '../format/cose/receipt.js';
import { COSE_HEADER, type CoseSign1, verifyCoseSign1 } from '../format/cose/sign1.js';
import type { VerificationKey } from '../format/signature/backend.js';
import { hashToBase64url, leafHash } from '../format/tree/compact-range.js';
import { inclusionRoot } from '../format/tree/proof.js';
import { ProofKeyring, type ProofProblem, type ProofTrust, toProblem } from './proof-keys.js';
import {
  checkProofCall,
  ENTRY_MISSING,
  examineEntry,
  judgeEntry,
  listAgeGap,
  listGaps,
  NEWLINE,
  NO_SIGNERS,
  NOTHING_KNOWN,
  type ProofGap,
  type ProofOutcome,
  type ProofResult,
  verdictOf,
  type VerifyProofOptions,
} from './verify-proof.js';

/**
 * The result in its wire form. Members of this type repeat what the receipt says, proven only if the verdict is `ok`; for the tree's size and
 * the index see `TREE_SIZE` in `not_checked`. The origin is the issuer, if stated; the root is computed from the entry.
 */
export interface ReceiptResult
  extends
    ProofOutcome,
    Pick<ProofResult, 'origin' | 'index' | 'entry' | 'tree' | 'event_id' | 'event' | 'event_signatures'> {
  readonly kind: 'cose-receipt';
  /** Keyids of the log's keys that signed the root. */
  readonly receipt_signers: readonly string[];
}

/** RFC 9942 signs the root only, not the size and the index that a receipt claims. */
const TREE_SIZE: ProofGap = {
  code: 'TREE_SIZE',
  message:
    "the receipt's signature covers the root of the tree, not its size: how long the log was is not proven",
};

/** Whether bytes begin like a COSE_Sign1, tagged, or as an untagged array of four; other proofs are text. */
export function isReceipt(bytes: Uint8Array): boolean {
  return bytes[0] === 0xd2 || bytes[0] === 0x84;
}

/**
 * Verifies a COSE receipt of any log: `RFC9162_SHA256`, deterministic CBOR, one inclusion proof, the payload detached or the root.
 *
 * @param bytes - The receipt. The result reports faults with the codes `PROOF_MALFORMED`, `ENTRY_MISSING` and
 *   `KEY_UNKNOWN` (undecided), `PROOF_INVALID`, `ORIGIN_MISMATCH`, `KEY_NOT_…`, `CHECKPOINT_MISSING`, `WITNESS_QUORUM`, and those of
 *   SPEC §8 for the record and its signatures.
 * @param trust - The result is `ok` only if a known key of the log signed.
 * @param options - The entry; without it the result is undecided.
 * @throws TypeError for an option that is not known or of the wrong type
 * @throws RangeError when the given entry is larger than {@link MAX_ENTRY_BYTES}
 */
export function verifyReceipt(
  bytes: Uint8Array,
  trust: ProofTrust,
  options: VerifyProofOptions = {},
): ReceiptResult {
  const given = checkProofCall('verifyReceipt', trust, options);
  const decoded = decodeReceipt(bytes);
  if (!decoded.ok) return conclude([toProblem(decoded.fault)], {});
  const { message, issuer, index, size, hashes } = decoded.value;
  const said = { origin: issuer ?? null, index };
  if (given === undefined) return conclude([ENTRY_MISSING], said);
  const keyring = new ProofKeyring(trust);
  const rootFrom = (entry: Uint8Array): string | undefined =>
    inclusionRoot({ index, size, leafHash: leafHash(entry), proof: hashes });
  const isSignedBy = (root: string, key: VerificationKey): boolean => verifiesRoot(message, key, root);

  const judge = (entry: Uint8Array): ReceiptResult => {
    const examined = examineEntry(entry, index);
    const { problems, instant } = examined;
    const known = { ...said, ...examined.known };
    const root = rootFrom(entry);
    if (root === undefined) {
      const expected = `a proof of entry ${index} in a tree of ${size}`;
      const misfit = toProblem({ code: 'PROOF_INVALID', expected, actual: 'one of another form' });
      return conclude([misfit, ...problems], known);
    }
    const judged = keyring.judgeReceipt({
      origin: issuer,
      verify: (key) => isSignedBy(root, key),
      names: hasKid(message) ? (key) => namesReceiptKey(message, key) : undefined,
      instant,
    });
    const signatures = judgeEntry(examined, keyring);
    return conclude([...judged.problems, ...problems], {
      ...known,
      tree: { tree_size: size, root: toDigestText(hashToBase64url(root)) },
      event_signatures: signatures,
      receipt_signers: judged.signers,
      not_checked: listGaps(examined, signatures, NO_SIGNERS, [TREE_SIZE, ...listAgeGap(trust)]),
    });
  };

  const result = judge(given);
  if (result.verdict === 'ok' || given.at(-1) !== NEWLINE) return result;
  // A final newline of the file is not part of the entry.
  const line = judge(given.subarray(0, -1));
  return line.receipt_signers.length > 0 || line.entry?.kind === 'record' ? line : result;
}

function hasKid({ protectedHeaders, unprotectedHeaders }: CoseSign1): boolean {
  return protectedHeaders.has(COSE_HEADER.kid) || unprotectedHeaders.has(COSE_HEADER.kid);
}

/** An attached payload must be the computed root. */
function verifiesRoot(message: CoseSign1, key: VerificationKey, root: string): boolean {
  const payload = encodeLatin1(root);
  if (message.payload === undefined) return verifyCoseSign1(message, key, { payload });
  return equalBytes(message.payload, payload) && verifyCoseSign1(message, key);
}

function conclude(problems: readonly ProofProblem[], known: Partial<ReceiptResult>): ReceiptResult {
  return {
    kind: 'cose-receipt',
    ...verdictOf(problems),
    problems,
    ...NOTHING_KNOWN,
    receipt_signers: [],
    ...known,
  };
}
