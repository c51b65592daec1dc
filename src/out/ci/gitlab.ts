/** A report as a GitLab Code Quality report: one JSON array, an issue for each finding that the report lists. */

import { sha256Base64url } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import type { FindingJson } from '../../format/schema/generated/types.js';
import type { LazyReport } from '../../rules/report/report.js';
import { count, toTell } from '../text/words.js';
import { type AnnotationOptions, messageOf, nameOf, pointOf } from './ci-words.js';
import { shown } from './escape.js';
import { fingerprintFinding } from './fingerprint.js';

/** The severities of Code Quality. */
type IssueSeverity = 'info' | 'minor' | 'major' | 'critical' | 'blocker';

interface Issue {
  readonly description: string;
  readonly check_name: string;
  readonly fingerprint: string;
  readonly severity: IssueSeverity;
  readonly location: { readonly path: string; readonly lines: { readonly begin: number } };
}

/**
 * The report as Code Quality JSON, worst first. The format knows issues alone: what was not checked is one of severity minor each, and
 * what the report does not list is counted in one.
 */
export function renderGitlab(report: LazyReport, options: AnnotationOptions = {}): string {
  const path = options.anchor ?? nameOf(report.ledger.paths[0] ?? 'ledger');
  const ledger = report.ledger.origin ?? nameOf(report.ledger.paths[0] ?? 'ledger');
  const about = (code: string, description: string, severity: IssueSeverity): Issue => ({
    description: shown(description),
    check_name: code,
    // Reports on several ledgers meet in one merge request.
    fingerprint: sha256Base64url(encodeUtf8(JSON.stringify(['northroot:report:v1', code, ledger]))),
    severity,
    location: { path: shown(path), lines: { begin: 1 } },
  });
  const rest = toTell(report) - report.findings.length;
  const issues = [
    ...(report.verdict === 'undecided'
      ? [about('UNDECIDED', 'undecided: there is no record to verify', 'blocker')]
      : []),
    ...report.findings.map((finding) => toIssue(finding, options.anchor)),
    ...(rest > 0
      ? [about('FINDINGS_OMITTED', `${count(rest, 'more finding')} not listed here`, 'critical')]
      : []),
    ...report.not_checked.map(({ code, message, required = false }) =>
      about(
        code,
        `${required ? 'required, and ' : ''}not checked: ${message}`,
        required ? 'blocker' : 'minor',
      ),
    ),
  ];
  return `[${makeUnique(issues)
    .map((issue) => `\n${JSON.stringify(issue)}`)
    .join(',')}\n]\n`;
}

function toIssue(finding: FindingJson, anchor: string | undefined): Issue {
  const { file, line } = pointOf(finding, anchor);
  return {
    description: `${finding.code}: ${shown(messageOf(finding, anchor))}`,
    check_name: finding.code,
    fingerprint: fingerprintFinding(finding),
    severity: severityOf(finding),
    location: { path: shown(file), lines: { begin: line } },
  };
}

function severityOf({ severity, class: of }: FindingJson): IssueSeverity {
  if (severity === 'error') return of === 'invalid' ? 'blocker' : 'critical';
  return severity === 'warning' ? 'minor' : 'info';
}

/** The host refuses a report in which two issues have one fingerprint. */
function makeUnique(issues: readonly Issue[]): Issue[] {
  const seen = new Map<string, number>();
  return issues.map((issue) => {
    const before = seen.get(issue.fingerprint) ?? 0;
    seen.set(issue.fingerprint, before + 1);
    return before === 0 ? issue : { ...issue, fingerprint: `${issue.fingerprint}:${before + 1}` };
  });
}
