/**
 * Findings that are known already: an earlier report acknowledges what it lists. What it acknowledges is counted and not listed
 * again; the verdict stays what it is.
 */

import { decodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { type Finding, rankOf as rankNameOf, RANKS } from '../../format/finding/finding.js';
import { checkReport } from '../../format/schema/check.js';
import type { FindingJson, ReportJson } from '../../format/schema/generated/types.js';
import { type LazyReport, type Report, toFindingJson } from '../../rules/report/report.js';
import type { VerificationResult } from '../../rules/verify/run-verification.js';
import { fingerprintFinding } from './fingerprint.js';

/** The largest report that is taken for a baseline, in bytes. */
export const MAX_BASELINE_BYTES = 67_108_864;

/** One finding that a baseline lists. */
export interface Allowance {
  /** How bad it is: its place among the ranks of findings, 0 the worst. */
  readonly rank: number;
  /** How many findings folded under it. */
  readonly folded: number;
  /** What was found, as the report says. */
  readonly actual: string | undefined;
}

export interface Baseline {
  /** By fingerprint, the least bad first. */
  readonly allowances: ReadonlyMap<string, readonly Allowance[]>;
  /** The ledger that it is about, as it was then. */
  readonly ledger: { readonly origin: string | null; readonly root: string | null };
  /** How many findings it lists. */
  readonly listed: number;
  /** How many it counts and does not list. */
  readonly unlisted: number;
}

/**
 * A baseline from the JSON report of an earlier verification (`verify --format json`), at most {@link MAX_BASELINE_BYTES}.
 *
 * @throws NorthrootError `BASELINE_MALFORMED` when it is none; also for the report of a later version that this one cannot read.
 */
export function parseBaseline(bytes: Uint8Array): Baseline {
  const { findings, findings_total: total, ledger } = readReport(bytes);
  const allowances = new Map<string, Allowance[]>();
  for (const finding of findings) {
    const fingerprint = fingerprintFinding(finding);
    const { folded = 0, actual } = finding;
    const allowance = { rank: rankOf(finding), folded, actual };
    const list = allowances.get(fingerprint);
    if (list === undefined) allowances.set(fingerprint, [allowance]);
    else list.push(allowance);
  }
  for (const list of allowances.values()) list.sort((a, b) => b.rank - a.rank);
  return {
    allowances,
    ledger: { origin: ledger.origin, root: ledger.root },
    listed: findings.length,
    unlisted: Math.max(0, total - findings.length),
  };
}

function readReport(bytes: Uint8Array): Report {
  if (bytes.length > MAX_BASELINE_BYTES) throw malformed(`it has more than ${MAX_BASELINE_BYTES} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(decodeUtf8(bytes));
  } catch (cause) {
    throw malformed('it is not JSON', cause);
  }
  const [issue] = checkReport(value);
  if (issue !== undefined)
    throw malformed(
      `it is not a report: ${issue.pointer}: expected ${issue.expected}, found ${issue.actual}`,
    );
  const report = value as ReportJson;
  if (report.findings === undefined) throw malformed('it lists no findings');
  return { ...report, findings: report.findings };
}

function malformed(why: string, cause?: unknown): NorthrootError {
  return new NorthrootError('BASELINE_MALFORMED', `not a baseline: ${why}`, {
    cause,
    hint: 'a baseline is the whole JSON report of an earlier verification',
  });
}

/** How many findings are new, by what they do. */
export interface NewFindings {
  readonly invalid: number;
  readonly violation: number;
  readonly warning: number;
}

export interface BaselineOutcome<R extends LazyReport = Report> {
  /** The report with its baseline counts; it lists new findings only, worst first. */
  readonly report: R;
  /** Acknowledged findings that were found again, in the order in which they were found. */
  readonly known: readonly FindingJson[];
  /**
   * Of the new ones, those that the baseline lists, and cannot acknowledge: more findings folded under them since, or what they are
   * about is another ledger, or is cut off anew.
   */
  readonly grown: readonly FindingJson[];
  /** Whether the baseline is of a ledger of another origin: it acknowledges nothing then. */
  readonly isOfOther: boolean;
  readonly fresh: NewFindings;
}

/** How bad a finding may be is counted for these in records, which grow with the ledger. */
const COUNTED: ReadonlySet<string> = new Set(['TAIL_UNSEALED']);

/**
 * Holds one verification against a baseline: {@link BaselineMatch.acknowledge} is given to `runVerification`, and
 * {@link BaselineMatch.finish} has its result.
 *
 * Of findings that fold, the baseline knows how many there were. As a ledger is only appended to, these are the first ones: when more
 * fold under a finding than it acknowledges, that finding is new again. So is one that is worse than what it lists: an error that was
 * a warning under another policy, or an error of more records.
 */
export class BaselineMatch {
  readonly #allowances: Map<string, Allowance[]>;
  readonly #baseline: Baseline;
  readonly #acknowledged = new Map<Finding, Allowance>();
  readonly #fresh = { invalid: 0, violation: 0, warning: 0 };
  #seen = 0;

  constructor(baseline: Baseline) {
    this.#baseline = baseline;
    this.#allowances = new Map([...baseline.allowances].map(([key, list]) => [key, [...list]]));
  }

  /** Whether a finding is known. MUST be called once for each. */
  readonly acknowledge = (finding: Finding): boolean => {
    const list = this.#allowances.get(fingerprintFinding(toFindingJson(finding))) ?? [];
    const index = list.findIndex((allowance) => !isWorse(finding, allowance));
    const [allowed] = index === -1 ? [] : list.splice(index, 1);
    if (allowed === undefined) this.#count(finding);
    else this.#acknowledged.set(finding, allowed);
    return allowed !== undefined;
  };

  /**
   * @param report - What `buildReport` or `buildLazyReport` made of `result`.
   * @param maxFindings - How many findings the report lists at most.
   */
  finish<R extends LazyReport>(
    report: R,
    { total }: VerificationResult,
    maxFindings: number,
  ): BaselineOutcome<R> {
    const known: FindingJson[] = [];
    const grown: FindingJson[] = [];
    const { origin, root } = this.#baseline.ledger;
    const isOfOther = report.ledger.origin !== origin;
    // The number of records is not their identity: others may be in their place.
    const isCutAnew = ({ code, eventId }: Finding): boolean =>
      code === 'TRUNCATED' && eventId === undefined && report.ledger.root !== root;
    for (const [finding, { folded }] of this.#acknowledged) {
      const hasGrown = isOfOther || (finding.folded ?? 0) > folded || isCutAnew(finding);
      (hasGrown ? grown : known).push(toFindingJson(finding));
      if (hasGrown) this.#count(finding);
    }
    const findings = [...grown, ...report.findings].sort((a, b) => rankOf(a) - rankOf(b));
    // Of very many faults of a tile tree only the first are reported: no baseline can list the others.
    const untold = total - known.length - this.#seen;
    const { invalid } = this.#fresh;
    return {
      known,
      grown,
      isOfOther,
      fresh: { ...this.#fresh, invalid: report.verdict === 'invalid' ? invalid + untold : invalid },
      report: {
        ...report,
        findings: findings.slice(0, maxFindings),
        baseline: {
          known: known.length,
          new: total - known.length,
          gone: this.#baseline.listed - this.#acknowledged.size,
          unlisted: this.#baseline.unlisted,
        },
      },
    };
  }

  #count(finding: Finding): void {
    this.#seen += 1;
    if (finding.severity === 'error' && finding.class !== 'none') this.#fresh[finding.class] += 1;
    if (finding.severity === 'warning') this.#fresh.warning += 1;
  }
}

/** Worst first, as reports list findings. */
function rankOf(finding: Pick<Finding, 'severity' | 'class'>): number {
  return RANKS.indexOf(rankNameOf(finding));
}

/** Whether a finding is worse than one with its fingerprint that is known. */
function isWorse(finding: Finding, { rank, actual }: Allowance): boolean {
  if (rankOf(finding) !== rank) return rankOf(finding) < rank;
  return (
    finding.severity === 'error' && COUNTED.has(finding.code) && !(Number(finding.actual) <= Number(actual))
  );
}

/** What makes the exit status of a verification other than 0: broken evidence, a broken bound too, or a warning too. */
export type FailOn = 'invalid' | 'violation' | 'warning';

/** What a report's exit status depends on. */
type DecisiveReport = Pick<ReportJson, 'verdict' | 'exit_status' | 'not_checked' | 'baseline'>;

/**
 * The exit status of a verification: the verdict's own, unless the line is drawn elsewhere or a baseline acknowledges what was found;
 * 2 in place of 0 where something was not checked that `requireChecks` marks.
 *
 * @param warnings - How many findings are warnings.
 * @param outcome - With a baseline: only new findings count. A ledger without records is undecided anyway.
 */
export function decideExitStatus(
  report: DecisiveReport,
  warnings: number,
  failOn: FailOn,
  fresh?: NewFindings,
): 0 | 1 | 2 | 3 {
  const status = statusOfFindings(report, warnings, failOn, fresh);
  return status === 0 && report.not_checked.some(({ required }) => required === true) ? 2 : status;
}

function statusOfFindings(
  { verdict, exit_status: status, baseline }: DecisiveReport,
  warnings: number,
  failOn: FailOn,
  fresh: NewFindings | undefined,
): 0 | 1 | 2 | 3 {
  if (verdict === 'undecided') return 2;
  if (fresh === undefined || baseline === undefined) {
    if (failOn === 'invalid' && verdict === 'violation') return 0;
    return failOn === 'warning' && verdict === 'ok' && warnings > 0 ? 3 : status;
  }
  if (fresh.invalid > 0) return 1;
  if (fresh.violation > 0 && failOn !== 'invalid') return 3;
  return failOn === 'warning' && fresh.warning > 0 ? 3 : 0;
}
