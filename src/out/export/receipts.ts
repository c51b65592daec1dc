/** COSE receipts (RFC 9942) of many records, all of one tree. */

import { equalBytes } from '../../base/bytes/compare.js';
import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { formatReceipt } from '../../format/cose/receipt.js';
import { type Checkpoint, parseCheckpoint } from '../../format/note/checkpoint.js';
import type { Signer } from '../../format/signature/signer.js';
import { NodeStore } from '../../format/tree/node-store.js';
import { inclusionRanges } from '../../format/tree/proof.js';
import { assertReaches, forked } from '../../log/read/find-checkpoint.js';
import type { LedgerInput } from '../../log/read/verify-ledger.js';
import {
  type ExportOptions,
  type ExportPass,
  PROVEN_OPTIONS,
  writeRecords,
} from '../../log/read/write-records.js';
import { assertReceiptKey, assertReceiptSigner } from '../../proof/make-receipt.js';
import { isSelected } from '../../rules/selection.js';
import type { VerifyState } from '../../rules/verify/state.js';

/** How the ledger is verified for receipts, and which records get one. */
export interface ReceiptsOptions extends Omit<ExportOptions, 'checkpoints'> {
  /** The log's key: ed25519 or p256. */
  readonly signer: Signer;
  /** The note of a held checkpoint: receipts are of its tree. Default: the last checkpoint that seals the ledger. */
  readonly checkpoint?: Uint8Array | undefined;
}

const OPTIONS: OptionTypes<ReceiptsOptions> = {
  ...PROVEN_OPTIONS,
  signer: 'object',
  checkpoint: 'bytes',
};

export interface RecordReceipt {
  readonly seq: number;
  /** A name for its file: `17.cose` of seq 17. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface ReceiptsExport extends ExportPass {
  readonly receipts: number;
  /** Selected records that are no well-formed records of that place: none is made of these. */
  readonly skipped: number;
  /** Selected records after the tree, of which nothing can be proven yet. */
  readonly beyond: number;
  readonly treeSize: number;
}

/**
 * Makes a COSE receipt of each selected record, in one pass over the ledger, which is verified whole. The receipts are given one after
 * the other when that has ended, and none where it fails. They are of one tree, that of the last checkpoint that is right and signed
 * by a known key: the log's key signs no root anew that it has not signed before, whatever is wrong with the ledger. As of
 * `makeReceipt`, a receipt does not carry the record.
 *
 * In memory are 64 bytes a record, and 8 more of each that is selected.
 *
 * @param take - Called with each receipt in ledger order; what it returns is waited for.
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; TypeError without a signer; NorthrootError `KEY_UNSUPPORTED` for
 *   an ml-dsa-44 key; `KEY_NOT_FOR_ROLE` for one that the ledger knows without the role checkpoint; `NOT_A_LEDGER` for bare events; `CHECKPOINT_MISSING` where no checkpoint seals the ledger; `NOTE_MALFORMED`,
 *   `TRUNCATED`, `FORKED` and `ORIGIN_MISMATCH` when the given checkpoint is none, or none of this ledger; what `take` rejects with
 */
export async function exportReceipts(
  ledger: LedgerInput,
  take: (receipt: RecordReceipt) => Promise<void> | undefined,
  options: ReceiptsOptions,
): Promise<ReceiptsExport> {
  checkOptions('exportReceipts', options, OPTIONS);
  const { signer, checkpoint: note, selection = {}, ...verify } = options;
  assertReceiptSigner('exportReceipts', signer);
  const given = note === undefined ? undefined : parseCheckpoint(note).checkpoint;
  const tree = new NodeStore();
  const places: number[] = [];
  let skipped = 0;
  const pass = await writeRecords('exportReceipts', ledger, verify, (record) => {
    const { ordinal, examined, state } = record;
    // The chain's next link is the hash of this line, also of one that is too long to be read.
    tree.push(decodeLatin1(tryDecodeBase64url(state.chain.prev) as Uint8Array));
    if (!isSelected(record, selection)) return undefined;
    if (examined?.wellFormed !== true || examined.seq !== ordinal) skipped += 1;
    else places.push(ordinal);
    return undefined;
  });
  const { origin, size, root } = findTree(pass.result.state, tree, given);
  assertReceiptKey(pass.result.state, signer);
  const once = signOnce(signer);
  let receipts = 0;
  for (const index of places) {
    if (index >= size) break;
    verify.signal?.throwIfAborted();
    const hashes = inclusionRanges(index, size).map((range) => tree.rootOf(range));
    const bytes = formatReceipt({ issuer: origin, size, index, hashes, root }, once);
    receipts += 1;
    const taken = take({ seq: index, name: `${index}.cose`, bytes });
    if (taken !== undefined) await taken;
  }
  const beyond = places.length - receipts;
  return { ...pass, selected: places.length + skipped, receipts, skipped, beyond, treeSize: size };
}

function findTree(
  state: VerifyState,
  tree: NodeStore,
  given: Checkpoint | undefined,
): Pick<Checkpoint, 'origin' | 'size' | 'root'> {
  if (state.layout === 'bare')
    throw new NorthrootError('NOT_A_LEDGER', 'bare events have no records around them to prove');
  if (given !== undefined) {
    assertReaches(state, given);
    if (given.size === 0 || tree.rootOf({ start: 0, end: given.size }) !== given.root)
      throw forked(given.size);
    return given;
  }
  const { origin, seals } = state;
  const size = (seals.sealing ?? seals.signed)?.treeSize ?? 0;
  if (size === 0 || origin === undefined)
    throw new NorthrootError('CHECKPOINT_MISSING', 'no checkpoint by a known key seals the ledger', {
      hint: 'make a checkpoint, or give the note of one that you hold',
    });
  return { origin, size, root: tree.rootOf({ start: 0, end: size }) };
}

/** Signs each message once: receipts of one tree sign the same root. */
function signOnce(signer: Signer): Signer {
  let last: { readonly message: Uint8Array; readonly signature: Uint8Array } | undefined;
  return {
    publicKey: signer.publicKey,
    sign: (message) => {
      if (last === undefined || !equalBytes(last.message, message))
        last = { message: Uint8Array.from(message), signature: signer.sign(message) };
      return last.signature;
    },
  };
}
