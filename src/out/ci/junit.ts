/**
 * A report as JUnit XML: one suite, with a test case for each group of checks and one for each thing that was not checked, which
 * is skipped. Valid by the XSD that CI hosts go by.
 */

import type { FindingJson } from '../../format/schema/generated/types.js';
import type { LazyReport } from '../../rules/report/report.js';
import { count, toTell } from '../text/words.js';
import { CHECK_GROUPS, type CheckGroup, groupOf } from './check-groups.js';
import { messageOf, nameOf, placeOf, summaryOf } from './ci-words.js';
import { escapeXml } from './escape.js';

export interface JunitOptions {
  /** When it was verified. The XSD demands a time; without one it is that of 1970, so that the same ledger gives the same bytes. */
  readonly now?: string | undefined;
}

const NO_TIME = '1970-01-01T00:00:00';

/** The first of what the report lists, in characters, in one failure. */
const MAX_FAILURE_LENGTH = 262_144;

const CLASS_NAME = 'northroot.verify';

interface TestCase {
  readonly name: string;
  readonly outcome?: string;
  readonly result: 'passed' | 'failure' | 'skipped';
}

/** The report as JUnit XML. Errors are failures; warnings and infos are in `system-out`. */
export function renderJunit(report: LazyReport, { now }: JunitOptions = {}): string {
  const cases = [...CHECK_GROUPS.map((group) => toGroupCase(report, group)), ...toRest(report)];
  const skipped = report.not_checked.filter(
    ({ code }) => !cases.some(({ name, result }) => result === 'skipped' && name.startsWith(`${code}: `)),
  );
  const all = [
    ...cases,
    ...skipped.map(({ code, message, required = false }) =>
      required
        ? fail(`${code}: required`, code, `not checked: ${message}`)
        : skip(`${code}: not checked`, message),
    ),
    ...(report.verdict === 'undecided'
      ? [fail('something to verify', 'UNDECIDED', 'there is no record')]
      : []),
  ];
  const of = (result: TestCase['result']): number => all.filter((each) => each.result === result).length;
  const name = report.ledger.paths.map(nameOf).join(', ');
  const properties = {
    verdict: report.verdict,
    origin: report.ledger.origin ?? '',
    records: String(report.ledger.records),
    root: report.ledger.root ?? '',
  };
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites>',
    `<testsuite ${attributes({
      package: 'northroot',
      id: 0,
      name: name.trim() === '' ? 'ledger' : name,
      timestamp: now?.slice(0, NO_TIME.length) ?? NO_TIME,
      hostname: 'localhost',
      tests: all.length,
      failures: of('failure'),
      errors: 0,
      skipped: of('skipped'),
      time: 0,
    })}>`,
    '<properties>',
    ...Object.entries(properties).map(([key, value]) => `<property ${attributes({ name: key, value })}/>`),
    '</properties>',
    ...all.map(renderCase),
    `<system-out>${escapeXml(summaryOf(report))}\n${listAdvice(report)}</system-out>`,
    '<system-err></system-err>',
    '</testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

function toGroupCase({ findings, not_checked: notChecked }: LazyReport, group: CheckGroup): TestCase {
  const own = findings.filter(({ code, severity }) => severity === 'error' && groupOf(code) === group);
  const [worst] = own;
  if (worst !== undefined)
    return fail(group.title, worst.code, `${count(own.length, 'finding')}, first ${messageOf(worst)}`, own);
  const missing = notChecked.find(({ code }) => code === group.unchecked);
  if (missing === undefined) return { name: group.title, result: 'passed' };
  // What was required has a case of its own, which fails.
  return skip(missing.required === true ? group.title : `${missing.code}: ${group.title}`, missing.message);
}

/** What the report does not list may be of any group. As the worst are listed first, it has errors only behind errors. */
function toRest(report: LazyReport): TestCase[] {
  const rest = toTell(report) - report.findings.length;
  const last = report.findings.at(-1);
  return rest <= 0 || (last === undefined ? report.verdict === 'ok' : last.severity !== 'error')
    ? []
    : [fail('every finding is listed', 'FINDINGS_OMITTED', `${count(rest, 'more finding')} not listed here`)];
}

function fail(name: string, type: string, message: string, findings: readonly FindingJson[] = []): TestCase {
  let text = '';
  let listed = 0;
  for (const finding of findings) {
    const line = `${escapeXml(lineOf(finding))}\n`;
    if (text.length + line.length > MAX_FAILURE_LENGTH) break;
    text += line;
    listed += 1;
  }
  if (listed < findings.length) text += `… and ${count(findings.length - listed, 'more finding')}\n`;
  const head = `<failure ${attributes({ message, type })}>`;
  return { name, result: 'failure', outcome: `${head}${text}</failure>` };
}

function skip(name: string, message: string): TestCase {
  return { name, result: 'skipped', outcome: `<skipped ${attributes({ message })}/>` };
}

function renderCase({ name, outcome = '' }: TestCase): string {
  return `<testcase ${attributes({ name, classname: CLASS_NAME, time: 0 })}>${outcome}</testcase>`;
}

function listAdvice({ findings }: LazyReport): string {
  const advice = findings.filter(({ severity }) => severity !== 'error');
  return advice.map((finding) => `${escapeXml(`${finding.severity}: ${lineOf(finding)}`)}\n`).join('');
}

function lineOf(finding: FindingJson): string {
  const seq = finding.seq === null ? '' : ` (seq ${finding.seq})`;
  return `${placeOf(finding)}${seq} ${finding.code}: ${messageOf(finding)}`;
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${typeof value === 'number' ? value : escapeXml(value)}"`)
    .join(' ');
}
