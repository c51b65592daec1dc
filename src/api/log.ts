/**
 * `northroot/log`: ledgers that are kept somewhere. Stores, appending, deciding under grants, reading, accounts, verification of files
 * and folders, tile trees. `northroot` exports all of this too.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';

// Keys that a ledger declares (SPEC §7)
export { draftTrustPolicy, type DraftOptions } from '../rules/trust/draft-policy.js';
export { type KeyRevocation, type SavedKey as LedgerKey } from '../rules/trust/keyring.js';

// The ledger file (SPEC §4)
export { followLedger, type FollowOptions } from '../log/fs/follow.js';
export { ownKeyEntry, type GenesisOptions } from '../log/writer/genesis.js';
export {
  Ledger,
  type Appended,
  type CheckpointResult,
  type Entry,
  type LedgerOptions,
  type Notice,
} from '../log/writer/ledger.js';
export { type CheckpointSchedule } from '../log/writer/checkpoint.js';
export { isEmptyLedger } from '../log/writer/genesis.js';
export { StrictError } from '../log/writer/admission.js';

export { copyLedger, type CopiedLedger, type CopyOptions } from '../log/writer/copy-ledger.js';
export { repairLedger, type Repair } from '../log/writer/repair.js';
export { type OtherRecord } from '../log/writer/running-verification.js';
export { type MissedRecords, type WatchOptions, type WatchedRecords } from '../log/writer/watch.js';
export { type SignatureDepth, type StateCache, type StateView } from '../log/writer/state-cache.js';
export {
  type AcquireOptions,
  type Durability,
  type LedgerStore,
  type LinePlace,
  type NextPlace,
  type SavedTail,
  type Stored,
  type StoredEnd,
  type StorePosition,
  type WriteLock,
} from '../log/store/ledger-store.js';

// Deciding, reading, accounts, reports (SPEC §8, §9)
export {
  GrantEvaluator,
  type Advice,
  type AuthorizationDecision,
  type AuthorizationRequest,
  type PolicyCheck,
  type PolicyEvaluator,
  type HonourOptions,
} from '../log/policy/evaluator.js';
export { type DecidingBound } from '../log/policy/deciding-bound.js';
export {
  authorizeAction,
  type ActionRequest,
  type AuthorizeOptions,
  type RecordedDecision,
} from '../log/policy/authorize.js';
export { checkDecisions } from '../log/policy/check-decisions.js';
export { draftAdjustment, type AdjustmentOptions } from '../log/policy/draft-adjustment.js';
export {
  draftApproval,
  listPendingApprovals,
  type ApprovalOptions,
  type PendingApproval,
  type RequestedCall,
  type RequestSelection,
} from '../log/policy/approve.js';
export {
  completePasskeyApproval,
  preparePasskeyApproval,
  type PasskeyAnswer,
  type PasskeyApprovalOptions,
  type PasskeyOptions,
  type PasskeyRequest,
} from '../log/policy/passkey.js';
export { type FoundCall, type KnownCall } from '../log/policy/known-answer.js';
export {
  readRequest,
  type ExplainedRequest,
  type ReadRequestOptions,
  type RequestApproval,
  type RequestContent,
  type RequestRule,
  type RequestView,
} from '../log/policy/explain-request.js';
export {
  contentsPath,
  KeptContents,
  readContent,
  writeContent,
  type ContentOptions,
} from '../log/contents/content-folder.js';
export {
  ContentStore,
  type ContentAlgorithm,
  type ContentStoreOptions,
  type KeptContent,
} from '../log/contents/content-store.js';
export { type ApprovalNeed } from '../log/policy/choose-approvals.js';
export { type DelegateOptions } from '../log/policy/delegate.js';
export { draftRevocation, withdrawGrants, type RevocationOptions } from '../log/policy/revoke.js';
export { draftBounds, parseBounds, type DraftBoundsOptions } from '../log/policy/draft-bounds.js';
export {
  simulateGrant,
  type MadeCall,
  type SimulatedDenial,
  type Simulation,
} from '../log/policy/simulate.js';
export {
  draftGrant,
  type ApprovalRuleOptions,
  type GrantOptions,
  type SliceOptions,
} from '../log/policy/draft-grant.js';
export { OptionsError, type OptionProblem } from '../log/policy/option-problems.js';
export {
  type ExecutionDetails,
  type ExecutionOutcome,
  type ExecutionRequest,
  type Permission,
  type Unmetered,
} from '../log/policy/record.js';
export { type StartRequest, type StartedExecution } from '../log/policy/start.js';
export { type Abandonable } from '../log/policy/sweep.js';
export { type Balance } from '../rules/bounds/balance.js';
export {
  listGrants,
  listOpenAuthorizations,
  type GrantAccount,
  type OpenAuthorization,
  type StartedAuthorization,
  type UnstartedAction,
} from '../rules/report/accounts.js';
export {
  type EventHistory,
  type HistoryAdjustment,
  type HistoryEvent,
  type HistoryGrant,
  type HistoryKey,
  type HistorySignature,
  type HistoryStart,
} from '../log/read/event-history.js';
export {
  drawSample,
  type Sample,
  type SampledExecution,
  type SampleOptions,
} from '../log/read/draw-sample.js';
export { LedgerView, type InspectOptions, type ViewOptions } from '../log/read/ledger-view.js';
export { type IndexNotice } from '../log/cache/ledger-index.js';
export { loadVerification, saveVerification } from '../log/cache/saved-state.js';
export type { SavedVerification } from '../rules/verify/verified-prefix.js';
export { readRecords, type ReadOptions, type ReadRecord, type UnreadLine } from '../log/read/read-records.js';
export {
  type LedgerStatus,
  type LedgerStatusOptions,
  type ScarceMeter,
  type StatusKey,
} from '../log/read/status.js';
export { verifyLedger, type LedgerInput, type VerifyLedgerOptions } from '../log/read/verify-ledger.js';
export { type PredecessorRelation, type PredecessorView } from '../rules/verify/predecessor.js';

// Many ledgers: slices, their settlement, anchors, and the verification of all (SPEC §8 rule 17)
export {
  openSlice,
  sliceKey,
  type GivenSlice,
  type OpenedSlice,
  type OpenSliceOptions,
} from '../log/fleet/slice.js';
export { formatSlice, parseSlice, type SliceJson } from '../log/fleet/slice-json.js';
export {
  countSlices,
  draftSliceGrant,
  grantSlice,
  type SliceGrantOptions,
} from '../log/fleet/grant-slice.js';
export { grantNextSlice, openNextSlice, type NextSliceOptions } from '../log/fleet/next-slice.js';
export {
  closeSlices,
  recordSettlement,
  settleSlices,
  type ClosedSlice,
  type SettledSlice,
  type SettleSlicesOptions,
  type SliceSettlement,
} from '../log/fleet/settle.js';
export {
  anchorLedger,
  anchorsToCheckpoints,
  verifyAnchoringParent,
  type AnchoringParent,
  type AnchorOptions,
  type AnchorsByChild,
  type HeldAnchors,
  type RecordedAnchor,
} from '../log/fleet/anchor.js';
export type { LedgerAnchor } from '../log/fleet/anchor-event.js';
export { listFleet, parseFleetList } from '../log/fleet/list-fleet.js';
export { verifyFleet, type VerifyFleetOptions } from '../log/fleet/verify-fleet.js';

// Tile trees (SPEC §6)
export { type FoundCheckpoint } from '../log/read/find-checkpoint.js';
export { openLedger } from '../log/tile/tile-tree.js';
export { type ObjectSink, type StoredObject } from '../log/object/object-sink.js';
export { type S3Credentials } from '../log/object/s3-client.js';
export { type BucketAddressing } from '../log/object/s3-place.js';
export { openS3Sink, type S3SinkOptions } from '../log/object/s3-sink.js';
export { isStoreUrl, openStore, type OpenStoreOptions } from '../log/store/open-store.js';
export {
  writeTiles,
  type FileCount,
  type WriteTilesOptions,
  type WrittenTiles,
} from '../log/tile/tile-writer.js';
export { type OpenLedger } from '../rules/source/read-lines.js';

// A program that decides, acts and records
export { type Budget } from '../log/agent/budget.js';
export {
  DeniedError,
  UnrecordedExecutionError,
  ViolationError,
  type GuardedOutcome,
} from '../log/agent/errors.js';
export { type GuardContext, type GuardOptions, type GuardedFunction } from '../log/agent/guard.js';
export {
  LiveLedger,
  type AbandonOpenOptions,
  type AbandonOptions,
  type AbandonedOpen,
  type CloseOptions,
  type DoneExecution,
  type LiveLedgerOptions,
  type DecisionOptions,
  type WaitOptions,
  type WithdrawOptions,
} from '../log/agent/live-ledger.js';
export type { LiveRequest } from '../log/agent/guard.js';
export type { UsageMeter } from '../log/agent/usage-meter.js';
export {
  type AskOptions,
  type Decided,
  type DecideOptions,
  type PatientOptions,
} from '../log/writer/withdrawal.js';
