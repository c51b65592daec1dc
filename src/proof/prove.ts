/** Proofs from a {@link LedgerView}: from its index if it has one, else from the ledger. They are identical. */

import type { LedgerView } from '../log/read/ledger-view.js';
import {
  type MadeConsistencyProof,
  type MadeProof,
  makeConsistencyProof,
  makeProof,
  type ProofOptions,
  type RecordProofOptions,
} from './make-proof.js';
import { assertReceiptKey, makeReceipt, type ReceiptOptions } from './make-receipt.js';
import { indexBasis } from './proof-basis.js';

/**
 * Proves that a record is in the ledger.
 *
 * @param wanted - A seq such as `17`, an id (`sha-256:…`, base64url or hex), or a prefix of one.
 * @throws NorthrootError as `makeProof`.
 */
export function proveRecord(
  view: LedgerView,
  wanted: string,
  options: RecordProofOptions = {},
): Promise<MadeProof> {
  return view.askRecords(
    ({ records }) => makeProof(indexBasis(records), wanted, options),
    (open) => makeProof(open, wanted, options),
  );
}

/** Proves the same as a COSE receipt, signed by the log's key. @throws NorthrootError as `makeReceipt`. */
export function proveRecordByReceipt(
  view: LedgerView,
  wanted: string,
  options: ReceiptOptions,
): Promise<MadeProof> {
  return view.askRecords(
    async ({ view: { state }, records }) => {
      const made = await makeReceipt(indexBasis(records), wanted, options);
      assertReceiptKey(state, options.signer);
      return made;
    },
    (open) => makeReceipt(open, wanted, options),
  );
}

/** Proves that the ledger extends an older checkpoint. @throws NorthrootError as `makeConsistencyProof`. */
export function proveConsistency(
  view: LedgerView,
  oldNote: Uint8Array,
  options: ProofOptions = {},
): Promise<MadeConsistencyProof> {
  return view.askRecords(
    ({ records }) => makeConsistencyProof(indexBasis(records), oldNote, options),
    (open) => makeConsistencyProof(open, oldNote, options),
  );
}
