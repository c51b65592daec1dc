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
} from '../hosts/shared/host.js';
export {
  accountFor,
  verdictOf,
  type HostVerdict,
  type ItemAccount,
  type ItemCounts,
} from '../hosts/shared/account.js';
export {
  eventsOfClaims,
  notStated,
  type ClaimContext,
  type ClaimedEvent,
  type UnfitClaim,
} from '../hosts/shared/claims.js';
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
} from '../hosts/shared/import.js';
export { checkHost, readHost, type HostReadOptions } from '../hosts/shared/read-host.js';
export { parseTimeZone, type TimeZone } from '../hosts/shared/local-time.js';
export { documentsOf } from '../hosts/shared/documents.js';
export { membersOf } from '../hosts/shared/members.js';
export { codeOf, principalOf, toolOf, unitOf, type PrincipalKind } from '../hosts/shared/names.js';
export { MAX_ITEM_BYTES, ReadingBuilder, splitLines } from '../hosts/shared/reading.js';
export type { SourceItem } from '../hosts/shared/host.js';
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
} from '../hosts/shared/values.js';
export {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceJsonCode,
  type SourceJsonOptions,
  type SourceValue,
} from '../base/json/source-json.js';
export { reportCheck, reportImport, type ImportReportOptions } from '../hosts/shared/import-report.js';
export { describeHostFinding } from '../hosts/shared/finding-text.js';
export {
  RECONCILE_STATEMENT,
  reconcileLedger,
  Reconciler,
  type ReconciledLedger,
  type ReconcileLedgerOptions,
  type ReconcileOptions,
} from '../hosts/shared/reconcile.js';
export { ledgerEntryOf, type LedgerEntry } from '../hosts/shared/ledger-calls.js';
export {
  looksLikeLedger,
  readSource,
  recogniseHost,
  type ReconcileSource,
} from '../hosts/shared/reconcile-sources.js';
export type { ReconcileCode } from '../hosts/shared/reconcile-compare.js';
export { MAX_EXPECTATION_BYTES, parseExpectation } from '../hosts/shared/expectation.js';
export { CHECKERS, HOSTS } from '../hosts/shared/registry.js';
export { renderImport, renderImportMarkdown } from '../out/text/import-text.js';
export { renderReconciliation, renderReconciliationMarkdown } from '../out/text/reconcile-text.js';
export type {
  ImportReport,
  ReconcileCall,
  ReconcileExpectation,
  ReconcileFinding,
  ReconcileReport,
} from '../format/schema/generated/types.js';
