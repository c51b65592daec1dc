/** The report of an import or a check, as data (schemas/import-report.json). */

import { VERSION } from '../../base/version.js';
import type { ImportFinding, ImportReceipts, ImportReport } from '../../format/schema/generated/types.js';
import { EXIT_STATUS } from '../../rules/report/exit-status.js';
import { cutDetail } from '../../rules/verify/line-findings.js';
import { accountFor, type ItemCounts, NO_ITEMS, verdictOf } from './account.js';
import { describeHostFinding, rankOf } from './findings.js';
import type { Checker, Host, HostFinding, HostReading, HostRule, ReceiptCounts } from './host.js';
import type { ImportPlan, ImportResult } from './import.js';
import { sumLeftOut } from './usage.js';

/** How many findings a report lists, unless more are asked for. */
const DEFAULT_MAX_FINDINGS = 1_000;

export interface ImportReportOptions {
  /** Default 1,000. The total is never cut. */
  readonly maxFindings?: number | undefined;
  /** The names of all files that were read: those without an item are listed too. */
  readonly files?: readonly string[] | undefined;
}

/** The report of an import. @param result - What was appended; absent where nothing was to be. */
export function reportImport(
  plan: ImportPlan,
  result?: ImportResult,
  options: ImportReportOptions = {},
): ImportReport {
  const { host, reading, findings, events, existing, conflicting, unfit, byType, authority } = plan;
  // Of what was appended some may be what an earlier plan of the same import had.
  const fresh = result?.appended ?? events.length;
  return {
    ...reportReading('host', host, { ...reading, findings }, options),
    events: {
      made: events.length + existing + conflicting,
      new: fresh,
      existing: existing + events.length - fresh,
      conflicting,
      unfit,
      ...(result === undefined ? {} : { appended: result.appended }),
      by_type: Object.fromEntries([...byType].sort(([a], [b]) => (a < b ? -1 : 1))),
    },
    imported_authority: {
      grants: authority.grants,
      actions: authority.actions,
      credits: authority.credits,
      own_grants: authority.ownGrants,
    },
  };
}

/** The report of a check. */
export function reportCheck(
  checker: Checker,
  reading: Pick<HostReading, 'items' | 'findings'>,
  options: ImportReportOptions = {},
): ImportReport {
  return reportReading('profile', checker, reading, options);
}

function reportReading(
  kind: 'host' | 'profile',
  subject: Pick<Host, 'name' | 'title' | 'rules'>,
  reading: Pick<HostReading, 'items' | 'findings' | 'leftOut' | 'receipts'>,
  { maxFindings = DEFAULT_MAX_FINDINGS, files = [] }: ImportReportOptions,
): ImportReport {
  const { total, byFile, byReason } = accountFor(reading.items);
  const verdict = verdictOf(reading);
  const ofRule = (id: string): number => reading.findings.filter(({ rule }) => rule === id).length;
  const sorted = [...reading.findings].sort((a, b) => rankOf(a) - rankOf(b));
  return {
    import_version: '1',
    tool: { name: 'northroot', version: VERSION },
    subject: { kind, name: subject.name, label: subject.title },
    verdict,
    exit_status: EXIT_STATUS[verdict],
    files: withEmpty(byFile, files),
    items: { ...total },
    ...(reading.receipts === undefined ? {} : { receipts: receiptsOf(reading.receipts) }),
    left_out: sumLeftOut(reading.leftOut),
    reasons: [...byReason].sort(([a], [b]) => (a < b ? -1 : 1)).map(([reason, items]) => ({ reason, items })),
    rules: [...subject.rules, INPUT_RULE].map(({ id, statement, undecidable }) => ({
      id,
      statement,
      findings: ofRule(id),
      ...(undecidable === undefined ? {} : { undecidable }),
    })),
    findings: sorted.slice(0, maxFindings).map(toFinding),
    findings_total: reading.findings.length,
  };
}

function receiptsOf({ verified, ownKey, unverified, broken }: ReceiptCounts): ImportReceipts {
  return { verified, own_key: ownKey, unverified, broken };
}

/** All files in their order; of an archive its members, and itself where none of them has an item. */
function withEmpty(byFile: ReadonlyMap<string, ItemCounts>, names: readonly string[]): ImportReport['files'] {
  const seen = new Set([...byFile.keys()].flatMap((name) => [name, name.replace(/!.*$/s, '')]));
  const empty = names.filter((name) => !seen.has(name)).map((name): [string, ItemCounts] => [name, NO_ITEMS]);
  const order = new Map(names.map((name, i) => [name, i]));
  const orderOf = (name: string): number =>
    order.get(name) ?? order.get(name.replace(/!.*$/s, '')) ?? names.length;
  return [...byFile, ...empty]
    .map(([name, counts]) => ({ name, ...counts }))
    .sort((a, b) => orderOf(a.name) - orderOf(b.name));
}

const INPUT_RULE: HostRule = {
  id: 'INPUT',
  statement: 'every item can be read, has what its kind must have, and says what it said before',
};

function toFinding(finding: HostFinding): ImportFinding {
  const { rule, code, severity, class: of, at, about, expected, actual, related } = finding;
  return {
    rule,
    code,
    severity,
    class: of,
    at: plainPlace(at),
    ...(about === undefined ? {} : { about: cutDetail(about) }),
    ...(expected === undefined ? {} : { expected: cutDetail(expected) }),
    ...(actual === undefined ? {} : { actual: cutDetail(actual) }),
    ...(related === undefined ? {} : { related: related.map(plainPlace) }),
    message: describeHostFinding(finding),
  };
}

/** A pointer that is too long is left out: cut off, it would point at something else. */
function plainPlace({ file, line, pointer }: HostFinding['at']): ImportFinding['at'] {
  return {
    file,
    ...(line === undefined ? {} : { line }),
    ...(pointer === undefined || cutDetail(pointer) !== pointer ? {} : { pointer }),
  };
}
