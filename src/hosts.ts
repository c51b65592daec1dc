/**
 * `northroot/hosts`: what other systems recorded, as evidence of a ledger. Reading their files, checking them by their own rules, importing
 * them, holding a ledger against them. Each host is an entry point of its own too, `northroot/hosts/NAME`. Everything here is exported
 * by `northroot` too.
 */

export type {
  ActionClaim,
  Checker,
  Claim,
  EvidenceClaim,
  ExecutionClaim,
  ForeignDigest,
  GrantClaim,
  Host,
  HostFile,
  HostFinding,
  HostFindingClass,
  HostItem,
  HostOptions,
  HostPlace,
  HostReading,
  HostRule,
  ItemFate,
  LeftOut,
  Observation,
} from './hosts/host.js';
export {
  accountFor,
  verdictOf,
  type HostVerdict,
  type ItemAccount,
  type ItemCounts,
} from './hosts/account.js';
export {
  eventsOfClaims,
  notStated,
  type ClaimContext,
  type ClaimedEvent,
  type UnfitClaim,
} from './hosts/claims.js';
export {
  appendImport,
  firstTimeOf,
  ImportOutdatedError,
  planImport,
  planReading,
  readKnownLedger,
  type AuthorityCounts,
  type ImportPlan,
  type ImportResult,
  type KnownLedger,
  type PlanOptions,
} from './hosts/import.js';
export { checkHost, readHost, type HostReadOptions } from './hosts/read-host.js';
export { parseTimeZone, type TimeZone } from './hosts/local-time.js';
export { documentsOf } from './hosts/documents.js';
export { membersOf } from './hosts/members.js';
export { codeOf, principalOf, toolOf, unitOf, type PrincipalKind } from './hosts/names.js';
export { MAX_ITEM_BYTES, ReadingBuilder, splitLines, type SourceItem } from './hosts/reading.js';
export {
  amountOf,
  jcsDigest,
  listAt,
  numberAt,
  objectAt,
  textAt,
  timeOf,
  timeOfText,
  valueAt,
} from './hosts/values.js';
export {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceJsonCode,
  type SourceJsonOptions,
  type SourceValue,
} from './json/source-json.js';
export { reportCheck, reportImport, type ImportReportOptions } from './hosts/import-report.js';
export { describeHostFinding } from './hosts/finding-text.js';
export {
  RECONCILE_STATEMENT,
  reconcileLedger,
  Reconciler,
  type ReconciledLedger,
  type ReconcileLedgerOptions,
  type ReconcileOptions,
} from './hosts/reconcile.js';
export { ledgerEntryOf, type LedgerEntry } from './hosts/ledger-calls.js';
export {
  looksLikeLedger,
  readSource,
  recogniseHost,
  type ReconcileSource,
} from './hosts/reconcile-sources.js';
export type { ReconcileCode } from './hosts/reconcile-compare.js';
export { MAX_EXPECTATION_BYTES, parseExpectation } from './hosts/expectation.js';
export { CHECKERS, HOSTS } from './hosts/registry.js';
export { renderImport, renderImportMarkdown } from './text/import-text.js';
export { renderReconciliation, renderReconciliationMarkdown } from './text/reconcile-text.js';
export type {
  ImportReport,
  ReconcileCall,
  ReconcileExpectation,
  ReconcileFinding,
  ReconcileReport,
} from './schema/generated/types.js';
