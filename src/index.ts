/**
 * northroot: a verifiable event ledger and its offline verifier. Everything that the command line does, it does through
 * what is exported here.
 */

export { NorthrootError, type NorthrootErrorOptions } from './error.js';
export { VERSION } from './version.js';

// Words: outside text made fit for a terminal, and the nearest of what is known
export { printable } from './bytes/printable.js';
export { didYouMean } from './bytes/did-you-mean.js';

// Small files, which appear whole or not at all
export {
  isOpenToOthers,
  kindOfPath,
  readFileChunks,
  readSmallFile,
  removeFile,
  replaceFile,
  writeNewFile,
  type PathKind,
  type ReplaceOptions,
} from './fs/file-system.js';

// Canonical JSON (SPEC §1)
export { canonicalBytes, canonicalText } from './json/canonicalize.js';
export { diagnoseCanonical, parseCanonical, type JsonIssue, type JsonIssueCode } from './json/diagnose.js';
export { type HygieneReport, type HygieneStatus } from './json/hygiene.js';
export {
  ingestJson,
  type IngestCode,
  type Ingested,
  type IngestIssue,
  type NumberMode,
} from './json/ingest.js';
export { JsonTextSplitter, placeInText, type JsonText, type TextPlace } from './json/split-texts.js';
export { CANONICAL_PROFILE_ID } from './json/profile.js';
export { type JsonObject, type JsonValue } from './json/value.js';

// Values (SPEC §2)
export {
  digestFromBase64url,
  formatDigest,
  isDigest,
  parseDigest,
  sha256Digest,
  tryParseDigest,
  type Digest,
} from './value/digest.js';
export {
  MAX_METERS,
  isUnit,
  meters,
  readAmounts,
  type AmountProblem,
  type AmountsByUnit,
  type Meter,
  type MeterVector,
} from './value/meter.js';
export { isPrincipalId, isPrincipalPattern, matchesPrincipalPattern } from './value/principal.js';
export {
  compareQuantities,
  formatQuantity,
  fromRational,
  isNegativeQuantity,
  quantity,
  quantityFromNumberText,
  quantityProblem,
  toRational,
  type Quantity,
} from './value/quantity.js';
export {
  MAX_DENOMINATOR_DIGITS,
  addRationals,
  compareRationals,
  exceedsDenominatorLimit,
  reduceRational,
  subtractRationals,
  type Rational,
} from './value/rational.js';
export { isRateUnit, tryParseRateUnit, type RateUnit } from './value/rate.js';
export { compareTimestamps, formatInstant, isTimestamp, parseTimestamp } from './value/timestamp.js';
export { resolvePastTime, resolveTime, tryReadTime } from './value/when.js';
export {
  coversToolPattern,
  escapeToolName,
  isToolName,
  isToolPattern,
  matchesToolPattern,
} from './value/tool.js';

// Events (SPEC §3)
export {
  buildAdjustment,
  buildAttestation,
  buildAuthorization,
  buildCheckpoint,
  buildEvent,
  buildExecution,
  buildGenesis,
  buildKeyEvent,
  type AnyEvent,
  type Draft,
  type EventDefaults,
} from './event/build.js';
export { EVENT_ID_PREFIX, eventId, payloadDigest } from './event/identity.js';
export { resolveReferences } from './event/references.js';
export { EventError, assertEvent, validateEvent, type EventIssue } from './event/validate.js';
export { schemaDocument, schemaNames } from './schema/documents.js';
export { checkKey, checkReport, checkTrustPolicy, type ShapeCode, type ShapeIssue } from './schema/check.js';
export type * from './schema/generated/types.js';

// Keys and signatures (SPEC §5, §7)
export { MAX_KEY_BYTES, type KeyAlgorithm } from './key/key-form.js';
export {
  formatPrivateKey,
  generatePrivateKey,
  parsePrivateKey,
  type PrivateKey,
  type PrivateKeyForm,
} from './key/private-key.js';
export {
  checkPublicKey,
  formatPublicKey,
  formatPublicKeyAs,
  makePublicKey,
  parsePublicKey,
  type PublicKey,
  type PublicKeyFault,
  type PublicKeyForm,
} from './key/public-key.js';
export { isKeyName } from './key/vkey.js';
export { readWireKey, type WireKeyIssue } from './key/wire-key.js';
export {
  PAYLOAD_TYPE,
  fromDsseEnvelope,
  preAuthEncoding,
  toDsseEnvelope,
  type DsseEnvelope,
  type EventSignature,
  type FindAlgorithm,
  type SignedEvent,
} from './signature/dsse.js';
export { nobleVerifier } from './signature/noble-verifier.js';
export { nodeVerifier } from './signature/node-verifier.js';
export { createSigner, signEvent, type Signer } from './signature/signer.js';
export { type VerificationKey, type Verifier } from './signature/verifier.js';
export {
  findEntitledKeys,
  makeKeyEntry,
  type KeyEntryOptions,
  type SigningContext,
} from './trust/key-entry.js';
export { type Role } from './trust/authority.js';
export {
  draftTrustPolicy,
  fingerprintsOf,
  type DraftOptions,
  type Fingerprints,
} from './trust/draft-policy.js';
export { type KeyRevocation, type SavedKey as LedgerKey } from './trust/keyring.js';
export { MAX_TRUST_POLICY_BYTES, parseTrustPolicy } from './trust/trust-policy.js';

// The ledger file (SPEC §4)
export {
  MAX_META_BYTES,
  type ExaminedLine,
  type Layout,
  type LineFacts,
  type LineIssue,
  type SignatureEntry,
  type WellFormedLine,
} from './ledger/examine-line.js';
export { type EventTypes, type TypeName } from './event/typed-event.js';
export { LineSplitter, MAX_LINE_BYTES, type RawLine } from './ledger/line-splitter.js';
export { formatRecord, type RecordParts } from './ledger/record.js';
export {
  openLedgerSource,
  streamSource,
  type LedgerSource,
  type Segment,
  type SourceFault,
  type SourceGrowth,
  type SourceOptions,
} from './fs/source.js';
export { refuseOtherFiles } from './fs/other-file.js';
export { followLedger, type FollowOptions } from './fs/follow.js';
export { makeOrigin, ownKeyEntry, type GenesisOptions } from './writer/genesis.js';
export {
  Ledger,
  type Appended,
  type Checkpointed,
  type Entry,
  type LedgerOptions,
  type Notice,
} from './writer/ledger.js';
export { type CheckpointSchedule } from './writer/checkpoint.js';
export { isUnbegun } from './writer/unbegun.js';
export { repairLedger, type Repair } from './writer/repair.js';
export { type OtherRecord } from './writer/running-verification.js';
export { type MissedRecords, type WatchOptions, type WatchedRecords } from './writer/watch.js';
export { type SignatureDepth, type StateCache, type StateView } from './writer/state-cache.js';
export {
  type AcquireOptions,
  type LedgerStore,
  type NextPlace,
  type SavedTail,
  type Stored,
  type StoredEnd,
  type StorePosition,
  type Turn,
} from './store/ledger-store.js';
export { FileStore, type FileStoreOptions } from './store/file-store.js';
export { MemoryStore, type MemoryStoreOptions } from './store/memory-store.js';

// Verification and its report (SPEC §8, §9)
export { CODE_PAGES, isFindingCode, type CodePage, type FindingCode } from './finding/catalog.js';
export {
  type Finding,
  type FindingClass,
  type Place,
  type RelatedRecord,
  type Severity,
} from './finding/finding.js';
export { describeFinding, hintFor } from './finding/words.js';
export {
  GrantEvaluator,
  type AuthorizationDecision,
  type AuthorizationRequest,
  type PolicyCheck,
  type PolicyEvaluator,
} from './policy/evaluator.js';
export { describeLeft, type DecidingBound } from './policy/deciding-bound.js';
export {
  authorizeAction,
  readState,
  type ActionRequest,
  type AuthorizeOptions,
  type RecordedDecision,
} from './policy/authorize.js';
export { draftAdjustment, type AdjustmentOptions } from './policy/draft-adjustment.js';
export { digestIntent, draftGrant, type GrantOptions } from './policy/draft-grant.js';
export { OptionsError, type OptionProblem } from './policy/option-problems.js';
export {
  ABANDONED,
  draftExecution,
  draftSettlement,
  findPermission,
  findSpent,
  raiseMeters,
  startExecution,
  type ExecutionOutcome,
  type ExecutionRequest,
  type Permission,
  type SpentBound,
  type StartRequest,
  type StartedExecution,
} from './policy/record.js';
export { type Budget } from './agent/budget.js';
export { DeniedError, UnrecordedExecutionError, type GuardedOutcome } from './agent/errors.js';
export { type GuardContext, type GuardOptions, type GuardedFunction } from './agent/guard.js';
export {
  LiveLedger,
  withLiveLedger,
  type AbandonOptions,
  type CloseOptions,
  type DoneExecution,
  type LiveLedgerOptions,
  type LiveRequest,
} from './agent/live-ledger.js';
export { UsageMeter } from './agent/usage-meter.js';
export { type AskOptions } from './writer/withdrawal.js';
export { type Balance } from './bounds/balance.js';
export {
  findBalance,
  findGrant,
  isGrantUnder,
  listGrants,
  listKeys,
  listOpenAuthorizations,
  listOpenStarts,
  nameOfKey,
  reserveStarted,
  type GrantAccount,
  type OpenAuthorization,
  type StartedAuthorization,
} from './report/accounts.js';
export {
  readKeyList,
  renderKeyList,
  type KeyList,
  type KeyListOptions,
  type KeyRecord,
  type ListedKey,
} from './report/key-list.js';
export {
  tellStory,
  type Story,
  type StoryAdjustment,
  type StoryEvent,
  type StoryGrant,
  type StoryKey,
  type StorySignature,
  type StoryStart,
} from './report/story.js';
export { renderStory } from './report/story-text.js';
export { renderAccounts, type AccountRow, type NameOfKey } from './report/accounts-text.js';
export { AnchorWatch, type Anchor, type AnchorOutcome, type AnchorRelation } from './verify/anchors.js';
export { finishVerification, type Ending, type EndOptions } from './verify/ending.js';
export { readDeclaredKeys } from './reader/declared-keys.js';
export { findRecord } from './reader/find-record.js';
export { LedgerView, type InspectOptions, type ViewOptions } from './view/ledger-view.js';
export { type IndexNotice } from './cache/ledger-index.js';
export { maintainIndex, type MaintainOptions, type MaintainedIndex } from './view/maintain-index.js';
export { replayTo, type Point } from './reader/replay.js';
export { restoreVerification, saveVerification, type SavedVerification } from './verify/saved-state.js';
export { readRecords, type ReadOptions, type ReadRecord, type UnreadLine } from './reader/read-records.js';
export {
  DEFAULT_MAX_FINDINGS,
  canGoOn,
  runVerification,
  type VerificationResult,
  type VerifyOptions,
} from './verify/run-verification.js';
export { type FoldedFinding, type SignatureOutcome } from './verify/line-findings.js';
export { startVerification, type EventVerdict, type TrustMode, type VerifyState } from './verify/state.js';
export { verifyLine, type LineResult, type SegmentName } from './verify/verify-line.js';
export { buildReport, toFindingJson, type Report } from './report/report.js';
export { matchesFilter, type FindingFilter } from './report/finding-filter.js';
export { plainPaint, renderFinding, renderReport, type Paint } from './report/text.js';
export {
  readLedgerStatus,
  type LedgerStatus,
  type LedgerStatusOptions,
  type ScarceMeter,
  type StatusKey,
} from './report/status.js';
export { renderStatus } from './report/status-text.js';
export {
  verifyChunks,
  type ByteBlob,
  type ByteStream,
  type LedgerBytes,
  type VerifyChunksOptions,
} from './report/verify-chunks.js';
export { verifyLedger, type LedgerInput, type VerifyLedgerOptions } from './report/verify-ledger.js';
export { describePredecessor } from './reader/describe-predecessor.js';
export { viewPredecessor, type PredecessorRelation, type PredecessorView } from './verify/predecessor.js';

// Tile trees (SPEC §6)
export { findCheckpoint, type FoundCheckpoint } from './reader/find-checkpoint.js';
export {
  formatTilePath,
  tileLevels,
  tryParseTilePath,
  type TileId,
  type TileLevel,
} from './tile/tile-path.js';
export {
  MAX_TILE_FAULTS,
  isTileTree,
  openTileTree,
  type TileCheck,
  type TileFault,
  type TileTree,
} from './tile/tile-tree.js';
export { openLedger } from './tile/open-ledger.js';
export { writeTiles, type FileCount, type WriteTilesOptions, type WrittenTiles } from './tile/tile-writer.js';

// Proofs, and where two ledgers part (SPEC §6)
export {
  formatConsistencyProof,
  parseConsistencyProof,
  readConsistencyProof,
  type ConsistencyProof,
} from './proof/consistency-proof.js';
export {
  diffLedgers,
  type DiffRecord,
  type DiffSide,
  type LedgerDiff,
  type LedgerRelation,
} from './proof/ledger-diff.js';
export { renderLedgerDiff } from './proof/ledger-diff-text.js';
export { type OpenLedger } from './ledger/read-lines.js';
export {
  makeConsistencyProof,
  makeProof,
  type MadeConsistencyProof,
  type MadeProof,
  type ProofOptions,
  type RecordProofOptions,
} from './proof/make-proof.js';
export {
  parseProofKey,
  type CheckpointSigners,
  type ProofKey,
  type ProofProblem,
  type ProofTrust,
} from './proof/proof-keys.js';
export { renderConsistencyResult, renderProofResult } from './proof/proof-result-text.js';
export { MAX_PROOF_BYTES } from './proof/proof-text.js';
export { formatTlogProof, parseTlogProof, readTlogProof, type TlogProof } from './proof/tlog-proof.js';
export { verifyConsistencyProof, type ConsistencyResult } from './proof/verify-consistency.js';
export {
  MAX_ENTRY_BYTES,
  verifyProof,
  type ProofEntry,
  type ProofEventSignature,
  type ProofGap,
  type ProofOutcome,
  type ProofResult,
  type ProofVerdict,
  type StatedTree,
  type VerifyProofOptions,
} from './proof/verify-proof.js';

// Signed notes, checkpoints and their keys (C2SP signed-note, tlog-checkpoint, tlog-cosignature)
export {
  formatCheckpoint,
  parseCheckpoint,
  type Checkpoint,
  type SignedCheckpoint,
} from './note/checkpoint.js';
export { judgeNote, type NoteJudgement, type NoteSigner } from './note/judge-note.js';
export {
  canBeLogKey,
  canBeWitnessKey,
  cosignNote,
  formatNoteKey,
  isSignedBy,
  makeNoteKey,
  parseNoteKey,
  signNote,
  type NoteKey,
} from './note/note-key.js';
export {
  MAX_NOTE_BYTES,
  formatNote,
  parseNote,
  type NoteSignature,
  type SignedNote,
} from './note/signed-note.js';

// Witnesses (C2SP tlog-policy, tlog-witness)
export {
  describeQuorum,
  describeSkipped,
  MAX_WITNESS_POLICY_BYTES,
  meetsQuorum,
  parseWitnessPolicy,
  witnessPolicyKeys,
  type PolicyGroup,
  type PolicyLog,
  type PolicyWitness,
  type SkippedPolicyKey,
  type WitnessPolicy,
  type WitnessPolicyKeys,
} from './trust/witness-policy.js';
export {
  createWitness,
  isSubmissionPrefix,
  originOf,
  type LogKey,
  type Witness,
  type WitnessEvent,
  type WitnessOptions,
  type WitnessRequest,
  type WitnessResponse,
} from './witness/witness-service.js';
export { attestCheckpoint, type Attested, type AttestOptions, type WithLedger } from './witness/attest.js';
export { serveWitness, type ServeOptions, type WitnessServer } from './witness/serve-witness.js';
export {
  collectCosignatures,
  submissionUrl,
  verifyCosignatures,
  type Collected,
  type CollectOptions,
  type JudgedCosignatures,
  type RightCosignature,
} from './witness/witness-client.js';
