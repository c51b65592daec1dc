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
  planImport,
  readKnownLedger,
  type ImportPlan,
  type ImportResult,
  type KnownLedger,
  type PlanOptions,
} from './hosts/import.js';
export { reportCheck, reportImport, type ImportReportOptions } from './hosts/import-report.js';
export { describeHostFinding } from './hosts/finding-text.js';
export { CHECKERS, HOSTS } from './hosts/registry.js';
export { renderImport, renderImportMarkdown } from './text/import-text.js';
export type { ImportReport } from './schema/generated/types.js';
