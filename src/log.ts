/**
 * `northroot/log`: ledgers that are kept somewhere. Stores, appending, deciding under grants, reading, accounts, verification of files
 * and folders, tile trees. Everything here is exported by `northroot` too.
 */

export { NorthrootError, type NorthrootErrorOptions } from './error.js';

// Keys that a ledger declares (SPEC §7)
export {
  draftTrustPolicy,
  fingerprintsOf,
  type DraftOptions,
  type Fingerprints,
} from './trust/draft-policy.js';
export { type KeyRevocation, type SavedKey as LedgerKey } from './trust/keyring.js';

// The ledger file (SPEC §4)
export { openLedgerSource, streamSource, type SourceOptions } from './fs/source.js';
export { OtherFileError, refuseOtherFiles } from './fs/other-file.js';
export { followLedger, type FollowOptions } from './fs/follow.js';
export { makeOrigin, ownKeyEntry, type GenesisOptions } from './writer/genesis.js';
export {
  Ledger,
  type Appended,
  type CheckpointResult,
  type Entry,
  type LedgerOptions,
  type Notice,
} from './writer/ledger.js';
export { type CheckpointSchedule } from './writer/checkpoint.js';
export { MAX_SIGNING_THREADS } from './writer/options.js';
export { StrictError } from './writer/strict-error.js';
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

// Deciding, reading, accounts, reports (SPEC §8, §9)
export {
  GrantEvaluator,
  type AuthorizationDecision,
  type AuthorizationRequest,
  type PolicyCheck,
  type PolicyEvaluator,
  type HonourOptions,
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
} from './policy/record.js';
export { startExecution, type StartRequest, type StartedExecution } from './policy/start.js';
export { type Abandonable } from './policy/sweep.js';
export { type Balance } from './bounds/balance.js';
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
} from './report/accounts.js';
export {
  readKeyList,
  type KeyList,
  type KeyListOptions,
  type KeyRecord,
  type ListedKey,
} from './report/key-list.js';
export {
  explainEvent,
  type EventHistory,
  type HistoryAdjustment,
  type HistoryEvent,
  type HistoryGrant,
  type HistoryKey,
  type HistorySignature,
  type HistoryStart,
} from './report/event-history.js';
export { renderKeyList } from './text/key-list.js';
export { renderEventHistory } from './text/event-history.js';
export { renderAccounts, type AccountRow, type NameOfKey } from './text/accounts.js';
export { AnchorWatch } from './verify/anchors.js';
export { readDeclaredKeys } from './reader/declared-keys.js';
export { findRecord } from './reader/find-record.js';
export { LedgerView, type InspectOptions, type ViewOptions } from './view/ledger-view.js';
export { type IndexNotice } from './cache/ledger-index.js';
export { maintainIndex, type MaintainOptions, type MaintainedIndex } from './view/maintain-index.js';
export { replayTo, type Point } from './reader/replay.js';
export {
  loadVerification,
  restoreVerification,
  saveVerification,
  type SavedVerification,
} from './verify/saved-state.js';
export { readRecords, type ReadOptions, type ReadRecord, type UnreadLine } from './reader/read-records.js';
export { canGoOn } from './verify/run-verification.js';
export { matchesFilter, type FindingFilter } from './report/finding-filter.js';
export {
  readLedgerStatus,
  type LedgerStatus,
  type LedgerStatusOptions,
  type ScarceMeter,
  type StatusKey,
} from './report/status.js';
export { renderStatus } from './text/status.js';
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
  type TileTree,
} from './tile/tile-tree.js';
export { openLedger } from './tile/open-ledger.js';
export { writeTiles, type FileCount, type WriteTilesOptions, type WrittenTiles } from './tile/tile-writer.js';
export { type OpenLedger } from './ledger/read-lines.js';

// A program that decides, acts and records
export { type Budget } from './agent/budget.js';
export {
  DeniedError,
  UnrecordedExecutionError,
  ViolationError,
  type GuardedOutcome,
} from './agent/errors.js';
export { type GuardContext, type GuardOptions, type GuardedFunction } from './agent/guard.js';
export {
  LiveLedger,
  withLiveLedger,
  type AbandonOpenOptions,
  type AbandonOptions,
  type AbandonedOpen,
  type CloseOptions,
  type DoneExecution,
  type LiveLedgerOptions,
  type LiveRequest,
} from './agent/live-ledger.js';
export { UsageMeter } from './agent/usage-meter.js';
export { type AskOptions } from './writer/withdrawal.js';
