/**
 * `northroot/hosts`: what other systems recorded, as evidence of a ledger. Reading their files, checking them by their own rules, importing
 * them, holding a ledger against them. Each host is an entry point of its own too, `northroot/hosts/NAME`.
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
  ReceiptCounts,
} from '../hosts/shared/host.js';
export { type ClaimedEvent } from '../hosts/shared/claims.js';
export {
  appendImport,
  ImportOutdatedError,
  planImport,
  readKnownLedger,
  type AuthorityCounts,
  type ImportPlan,
  type ImportResult,
  type KnownLedger,
  type PlanOptions,
} from '../hosts/shared/import.js';
export { callsOfLedger, callsOfReading, type RecordedCall } from '../hosts/shared/made-calls.js';
export { reportSimulation } from '../hosts/shared/simulation-report.js';
export { checkHost, readHost, type HostReadOptions } from '../hosts/shared/read-host.js';
export { parseTimeZone, type TimeZone } from '../hosts/shared/local-time.js';
export { principalOf, toolOf, unitOf, type PrincipalKind } from '../hosts/shared/names.js';
export { ReadingBuilder } from '../hosts/shared/reading.js';
export type { SourceItem } from '../hosts/shared/host.js';
export {
  amountOf,
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
  type SourceNumber,
  type SourceObject,
  type SourceJsonCode,
  type SourceJsonOptions,
  type SourceValue,
} from '../base/json/source-json.js';
export { reportCheck, reportImport, type ImportReportOptions } from '../hosts/shared/import-report.js';
export { describeHostFinding } from '../hosts/shared/findings.js';
export {
  reconcileLedger,
  type ReconcileLedgerOptions,
  type ReconcileOptions,
} from '../hosts/shared/reconcile.js';
export { readSource, type ReconcileSource } from '../hosts/shared/reconcile-sources.js';
export { parseExpectation } from '../hosts/shared/expectation.js';
export { CHECKERS, HOSTS } from '../hosts/shared/registry.js';
export { renderImport } from '../out/text/import-text.js';
export { renderReconciliation } from '../out/text/reconcile-text.js';
export type {
  ImportReceipts,
  ImportReport,
  ReconcileCall,
  ReconcileExpectation,
  ReconcileFinding,
  ReconcileReport,
  SimulatedDenialJson,
  SimulationReport,
} from '../format/schema/generated/types.js';
