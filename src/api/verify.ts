/**
 * `northroot/verify`: what verifies, and nothing else. Records, rules, reports, proofs, notes and public keys, from bytes alone: no
 * files, no network, no private keys, nothing of Node. A bundler makes a browser's script of it. Everything here is exported by
 * `northroot` too.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';
export type { Fault, FileFault, Result, ValueFault } from '../base/fault.js';
export { VERSION } from '../base/version.js';

// Canonical JSON (SPEC §1)
export { canonicalBytes, canonicalText } from '../base/json/canonicalize.js';
export {
  diagnoseCanonical,
  parseCanonical,
  type JsonFault,
  type JsonFaultCode,
} from '../base/json/diagnose.js';
export { type JsonObject, type JsonValue } from '../base/json/value.js';

// Values (SPEC §2)
export { examinePart, openParts, type PartInput, type PartOptions } from '#fast/step';

export { formatDigest, parseDigest, sha256Digest, type Digest } from '../base/value/digest.js';
export { compareQuantities, formatQuantity, quantity, type Quantity } from '../base/value/quantity.js';

// Events (SPEC §3)
export { eventId, payloadDigest } from '../format/event/identity.js';
export { EventError, assertEvent, validateEvent, type EventFaultCode } from '../format/event/validate.js';
export { type ShapeCode } from '../format/schema/check.js';
export type * from '../format/schema/generated/types.js';

// Keys and signatures (SPEC §5, §7)
export { type KeyAlgorithm } from '../format/key/key-form.js';
export { formatPublicKey, parsePublicKey, type PublicKey } from '../format/key/public-key.js';
export {
  PAYLOAD_TYPE,
  fromDsseEnvelope,
  preAuthEncoding,
  toDsseEnvelope,
  type DsseEnvelope,
  type EventSignature,
  type FindAlgorithm,
  type SignedEvent,
} from '../format/signature/dsse.js';
export { type VerificationKey, type SignatureBackend } from '../format/signature/backend.js';
export { parseTrustPolicy } from '../rules/trust/trust-policy.js';

// The ledger file (SPEC §4)
export {
  type ExaminedLine,
  type Layout,
  type LineFacts,
  type SignatureEntry,
  type WellFormedLine,
} from '../format/record/examine-line.js';
export { type EventTypes, type TypeName } from '../format/event/typed-event.js';
export { LineSplitter, MAX_LINE_BYTES, type RawLine } from '../format/record/line-splitter.js';

// Verification and its report (SPEC §8, §9)
export { CODE_PAGES, type CodePage, type FindingCode } from '../format/finding/catalog.js';
export type { Finding, Place, RelatedRecord } from '../format/finding/finding.js';
export type { FindingClass, Severity } from '../format/finding/catalog.js';
export { describeFinding, hintFor } from '../format/finding/words.js';
export { type Anchor, type AnchorOutcome, type AnchorRelation } from '../rules/verify/anchors.js';
export { finishVerification, type Ending, type EndOptions } from '../rules/verify/ending.js';
export {
  runVerification,
  type VerificationResult,
  type VerifyOptions,
} from '../rules/verify/run-verification.js';
export type { FoldedFinding, SignatureOutcome } from '../rules/verify/line-result.js';
export { startVerification, type TrustMode, type VerifyState } from '../rules/verify/state.js';
export type { EventVerdict } from '../rules/verify/line-result.js';
export type { LedgerSource, Segment, SourceGrowth, TileFaultCode } from '../rules/source/ledger-source.js';
export { type VerifiedRecord } from '../rules/verify/verified-record.js';
export { verifyLine } from '../rules/verify/verify-line.js';
export type { LineResult, SegmentName } from '../rules/verify/line-result.js';
export {
  buildReport,
  toFindingJson,
  type LazyReport,
  type ReadableList,
  type Report,
} from '../rules/report/report.js';
export type { Guide } from '../out/text/guide.js';
export { renderFinding, renderReport } from '../out/text/report.js';
export { type Paint } from '../out/text/paint.js';
export {
  verifyChunks,
  type ByteBlob,
  type ByteStream,
  type LedgerBytes,
  type VerifyChunksOptions,
} from '../rules/report/verify-chunks.js';

// Proofs (SPEC §6)

export {
  parseProofKey,
  type CheckpointSigners,
  type ProofKey,
  type ProofProblem,
  type ProofTrust,
} from '../proof/proof-keys.js';

export { parseTlogProof, type TlogProof } from '../proof/tlog-proof.js';
export { verifyConsistencyProof, type ConsistencyResult } from '../proof/verify-consistency.js';

export { verifyReceipt, type ReceiptResult } from '../proof/verify-receipt.js';
export {
  verifyProof,
  type ProofEntry,
  type ProofEventSignature,
  type ProofGap,
  type ProofOutcome,
  type ProofResult,
  type ProofVerdict,
  type StatedTree,
  type VerifyProofOptions,
} from '../proof/verify-proof.js';

// Signed notes, checkpoints and their keys (C2SP signed-note, tlog-checkpoint, tlog-cosignature)
export {
  formatCheckpoint,
  parseCheckpoint,
  type Checkpoint,
  type SignedCheckpoint,
} from '../format/note/checkpoint.js';
export { verifyNoteSignatures, type NoteVerification, type NoteSigner } from '../format/note/verify-note.js';
export { formatNoteKey, parseNoteKey, type NoteKey } from '../format/note/note-key.js';
export { parseNote, type NoteSignature, type SignedNote } from '../format/note/signed-note.js';

// Witness policies (C2SP tlog-policy)
export {
  parseWitnessPolicy,
  type PolicyGroup,
  type PolicyLog,
  type PolicyWitness,
  type SkippedPolicyKey,
  type WitnessPolicy,
} from '../rules/trust/witness-policy.js';

// Bundles: records with what proves them, in one file

export {
  decodeBundle,
  type Bundle,
  type BundleDecoded,
  type BundledRecord,
  type BundleFile,
  type Stretch,
} from '../proof/bundle/bundle-file.js';

export { verifyBundle, type VerifyBundleOptions } from '../proof/bundle/verify-bundle.js';
