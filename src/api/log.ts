/**
 * `northroot/log`: ledgers that are kept somewhere. Stores, appending, deciding under grants, reading, accounts, verification of files
 * and folders, tile trees. Everything here is exported by `northroot` too.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';

// Keys that a ledger declares (SPEC §7)
export {
  draftTrustPolicy,
  fingerprintsOf,
  type DraftOptions,
  type Fingerprints,
} from '../rules/trust/draft-policy.js';
export { type KeyRevocation, type SavedKey as LedgerKey } from '../rules/trust/keyring.js';

// The ledger file (SPEC §4)
export { openLedgerSource, streamSource, type SourceOptions } from '../log/fs/source.js';
export { OtherFileError, refuseOtherFiles } from '../log/fs/other-file.js';
export { followLedger, type FollowOptions } from '../log/fs/follow.js';
export { makeOrigin, ownKeyEntry, type GenesisOptions } from '../log/writer/genesis.js';
export {
  Ledger,
  type Appended,
  type CheckpointResult,
  type Entry,
  type LedgerOptions,
  type Notice,
} from '../log/writer/ledger.js';
export { type CheckpointSchedule } from '../log/writer/checkpoint.js';
export { MAX_SIGNING_THREADS } from '../log/writer/options.js';
export { StrictError } from '../log/writer/strict-error.js';
export { isUnbegun } from '../log/writer/unbegun.js';
export { repairLedger, type Repair } from '../log/writer/repair.js';
export { type OtherRecord } from '../log/writer/running-verification.js';
export { type MissedRecords, type WatchOptions, type WatchedRecords } from '../log/writer/watch.js';
export { type SignatureDepth, type StateCache, type StateView } from '../log/writer/state-cache.js';
export {
  type AcquireOptions,
  type LedgerStore,
  type NextPlace,
  type SavedTail,
  type Stored,
  type StoredEnd,
  type StorePosition,
  type Turn,
} from '../log/store/ledger-store.js';
export { FileStore, type FileStoreOptions } from '../log/store/file-store.js';
export { MemoryStore, type MemoryStoreOptions } from '../log/store/memory-store.js';

// Deciding, reading, accounts, reports (SPEC §8, §9)
export {
  GrantEvaluator,
  type AuthorizationDecision,
  type AuthorizationRequest,
  type PolicyCheck,
  type PolicyEvaluator,
  type HonourOptions,
} from '../log/policy/evaluator.js';
export { describeLeft, type DecidingBound } from '../log/policy/deciding-bound.js';
export {
  authorizeAction,
  readState,
  type ActionRequest,
  type AuthorizeOptions,
  type RecordedDecision,
} from '../log/policy/authorize.js';
export { draftAdjustment, type AdjustmentOptions } from '../log/policy/draft-adjustment.js';
export { digestIntent, draftGrant, type GrantOptions } from '../log/policy/draft-grant.js';
export { OptionsError, type OptionProblem } from '../log/policy/option-problems.js';
export {
  ABANDONED,
  ABORTED,
  checkDetails,
  draftAbandonment,
  draftExecution,
  draftSettlement,
  findPermission,
  resolveAuthorization,
  findSpent,
  measuredBases,
  raiseMeters,
  stateReserved,
  type ExecutionDetails,
  type ExecutionOutcome,
  type ExecutionRequest,
  type Permission,
  type SpentBound,
  type Unmetered,
} from '../log/policy/record.js';
export { startExecution, type StartRequest, type StartedExecution } from '../log/policy/start.js';
export { type Abandonable } from '../log/policy/sweep.js';
export { type Balance } from '../rules/bounds/balance.js';
export {
  findBalance,
  decimalsOf,
  findGrant,
  grantAccounts,
  isGrantUnder,
  listGrants,
  listKeys,
  listOpenAuthorizations,
  listOpenStarts,
  nameOfKey,
  reserveAllStarted,
  reserveStarted,
  unstartedActions,
  type GrantAccount,
  type OpenAuthorization,
  type StartedAuthorization,
  type UnstartedAction,
} from '../rules/report/accounts.js';
export {
  readKeyList,
  type KeyList,
  type KeyListOptions,
  type KeyRecord,
  type ListedKey,
} from '../rules/report/key-list.js';
export {
  explainEvent,
  type EventHistory,
  type HistoryAdjustment,
  type HistoryEvent,
  type HistoryGrant,
  type HistoryKey,
  type HistorySignature,
  type HistoryStart,
} from '../log/read/event-history.js';
export { renderKeyList } from '../out/text/key-list.js';
export { renderEventHistory } from '../out/text/event-history.js';
export { renderAccounts, type AccountRow, type NameOfKey } from '../out/text/accounts.js';
export { AnchorWatch } from '../rules/verify/anchors.js';
export { readDeclaredKeys } from '../log/read/declared-keys.js';
export { findRecord } from '../log/read/find-record.js';
export { LedgerView, type InspectOptions, type ViewOptions } from '../log/read/ledger-view.js';
export { type IndexNotice } from '../log/cache/ledger-index.js';
export { maintainIndex, type MaintainOptions, type MaintainedIndex } from '../log/read/maintain-index.js';
export { replayTo, type Point } from '../log/read/replay.js';
export { loadVerification, restoreVerification, saveVerification } from '../log/cache/saved-state.js';
export type { SavedVerification } from '../rules/verify/verified-prefix.js';
export { readRecords, type ReadOptions, type ReadRecord, type UnreadLine } from '../log/read/read-records.js';
export { canGoOn } from '../rules/verify/run-verification.js';
export { matchesFilter, type FindingFilter } from '../rules/report/finding-filter.js';
export {
  readLedgerStatus,
  type LedgerStatus,
  type LedgerStatusOptions,
  type ScarceMeter,
  type StatusKey,
} from '../log/read/status.js';
export { renderStatus } from '../out/text/status.js';
export { verifyLedger, type LedgerInput, type VerifyLedgerOptions } from '../log/read/verify-ledger.js';
export { describePredecessor } from '../log/read/describe-predecessor.js';
export {
  viewPredecessor,
  type PredecessorRelation,
  type PredecessorView,
} from '../rules/verify/predecessor.js';

// Tile trees (SPEC §6)
export { findCheckpoint, type FoundCheckpoint } from '../log/read/find-checkpoint.js';
export {
  formatTilePath,
  tileLevels,
  tryParseTilePath,
  type TileId,
  type TileLevel,
} from '../log/tile/tile-path.js';
export {
  MAX_TILE_FAULTS,
  isTileTree,
  openTileTree,
  type TileCheck,
  type TileTree,
} from '../log/tile/tile-tree.js';
export { openLedger } from '../log/tile/open-ledger.js';
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
  withLiveLedger,
  type AbandonOpenOptions,
  type AbandonOptions,
  type AbandonedOpen,
  type CloseOptions,
  type DoneExecution,
  type LiveLedgerOptions,
} from '../log/agent/live-ledger.js';
export type { LiveRequest } from '../log/agent/guard.js';
export { UsageMeter } from '../log/agent/usage-meter.js';
export { type AskOptions } from '../log/writer/withdrawal.js';
