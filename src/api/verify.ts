/**
 * `northroot/verify`: verification from bytes alone. Records, rules, reports, proofs, notes and public keys: no files, no network,
 * no private keys, nothing of Node, so that it can be bundled for a browser. `northroot` exports all of this too.
 */

export { VERSION } from '../base/version.js';
export * from './core.js';
export * from './verify-proofs.js';

// Verification and its report (SPEC §8, §9)
export { CODE_PAGES, type CodePage, type FindingCode } from '../format/finding/catalog.js';
export type { Finding, Place, RelatedRecord } from '../format/finding/finding.js';
export type { FindingClass, Severity } from '../format/finding/catalog.js';
export { describeFinding } from '../format/finding/words.js';
export {
  type Anchor,
  type AnchorOutcome,
  type AnchorRelation,
  type EarlierAnchor,
} from '../rules/verify/anchors.js';
export { finishVerification, type Ending, type EndOptions } from '../rules/verify/ending.js';
export {
  runVerification,
  verifyParent,
  type VerificationResult,
  type VerifiedParent,
  type VerifyOptions,
} from '../rules/verify/run-verification.js';

// Slices (SPEC §8 rule 17)
export type { SliceUse } from '../rules/bounds/slice.js';
export { type ParentLedger } from '../rules/verify/parents.js';
export { sliceUseOf } from '../rules/verify/slice-use.js';
export type { FoldedFinding, SignatureOutcome } from '../rules/verify/line-result.js';
export { startVerification, type TrustMode, type VerifyState } from '../rules/verify/state.js';
export type { EventVerdict } from '../rules/verify/line-result.js';
export type { LedgerSource, Segment, SourceGrowth, TileFaultCode } from '../rules/source/ledger-source.js';
export type { FurtherResult, RecordCheck } from '../rules/verify/record-check.js';
export { type VerifiedRecord } from '../rules/verify/verified-record.js';
export { verifyLine } from '../rules/verify/verify-line.js';
export type { LineResult, SegmentName } from '../rules/verify/line-result.js';
export { buildReport, type LazyReport, type ReadableList, type Report } from '../rules/report/report.js';
export type { Guide } from '../out/text/guide.js';
export { renderReport } from '../out/text/report.js';
export { type Paint } from '../out/text/guide.js';
export {
  verifyChunks,
  type ByteBlob,
  type ByteStream,
  type LedgerBytes,
  type VerifyChunksOptions,
} from '../rules/report/verify-chunks.js';

// Witness policies (C2SP tlog-policy)
export {
  parseWitnessPolicy,
  type PolicyGroup,
  type PolicyLog,
  type PolicyWitness,
  type SkippedPolicyKey,
  type WitnessPolicy,
} from '../rules/trust/witness-policy.js';

// Bundles: records and their proofs, in one file
export {
  type Bundle,
  type BundledRecord,
  type BundleFile,
  type Stretch,
} from '../proof/bundle/bundle-file.js';
export { verifyBundle, type VerifyBundleOptions } from '../proof/bundle/verify-bundle.js';
