/**
 * Findings as SARIF 2.1.0, for code scanning. Every rule of the catalogue is declared; what was not checked is told as a
 * notification, so that a run that could not look everywhere does not look clean.
 */

import type { ByteSink } from '../fs/file-sink.js';
import { CODE_PAGES, type CodePage } from '../finding/catalog.js';
import type { Report } from '../report/report.js';
import type { FindingJson } from '../schema/generated/types.js';
import { count } from '../text/words.js';
import { VERSION } from '../version.js';
import {
  messageOf,
  nameOf,
  placeOf,
  pointOf,
  summaryOf,
  toTell,
  type AnnotationOptions,
} from './ci-words.js';
import { escapeSarif, shown, toUri } from './escape.js';
import { fingerprintFinding } from './fingerprint.js';

/** GitHub takes no more runs in a file, and no more results in a run. */
export const MAX_SARIF_RUNS = 20;
export const MAX_SARIF_RESULTS = 25_000;

const LEVELS = { error: 'error', warning: 'warning', info: 'note' } as const;

const EXIT_WORDS = ['ok', 'invalid', 'could not decide', 'violation'] as const;

const RULES = Object.entries(CODE_PAGES).map(([id, page]) => toRule(id, page));
const RULE_INDEX = new Map(RULES.map(({ id }, index) => [id, index]));

/** How a report is written as SARIF. */
export interface SarifOptions extends AnnotationOptions {
  /** What the verification ends with. Default: the verdict's own. */
  readonly exitStatus?: 0 | 1 | 2 | 3 | undefined;
  /** The findings, worst first. Default: those that the report lists. */
  readonly findings?: Iterable<FindingJson> | AsyncIterable<FindingJson> | undefined;
  /** With a baseline: findings that are acknowledged. They are written as unchanged, since who leaves them out calls them mended. */
  readonly known?: readonly FindingJson[] | undefined;
}

/**
 * Writes a report as one SARIF file, findings as they come and in bounded memory. At most {@link MAX_SARIF_RUNS} runs of
 * {@link MAX_SARIF_RESULTS} results; the rest is counted in a notification. Each run's category is its `automationDetails.id`.
 *
 * @throws Whatever `sink` and `findings` reject with.
 */
export function writeSarif(sink: ByteSink, report: Report, options: SarifOptions = {}): Promise<void> {
  return writeRuns(sink, report, options, { runs: MAX_SARIF_RUNS, results: MAX_SARIF_RESULTS });
}

/** {@link writeSarif} with other limits. */
export async function writeRuns(
  sink: ByteSink,
  report: Report,
  options: SarifOptions,
  limits: { readonly runs: number; readonly results: number },
): Promise<void> {
  const { findings = report.findings, known = [], anchor } = options;
  const write = async (text: string): Promise<void> => {
    const room = sink.write(text);
    if (room !== undefined) await room;
  };
  let runs = 0;
  let inRun = 0;
  let written = 0;
  const total = toTell(report) + known.length;
  const beginRun = async (): Promise<void> => {
    const head = { tool: toolOf(report), automationDetails: { id: `northroot/verify/${runs + 1}/` } };
    await write(`${runs === 0 ? '' : ',\n'}${JSON.stringify(head).slice(0, -1)},"results":[`);
    runs += 1;
    inRun = 0;
  };
  const endRun = (rest: number): Promise<void> => {
    const tail = { invocations: [invocationOf(report, options, rest)], properties: propertiesOf(report) };
    return write(`],${JSON.stringify(tail).slice(1)}`);
  };
  const add = async (finding: FindingJson, state: 'new' | 'unchanged'): Promise<void> => {
    if (inRun === limits.results) {
      if (runs === limits.runs) return;
      await endRun(0);
      await beginRun();
    }
    const baselineState = report.baseline === undefined ? {} : { baselineState: state };
    const result = { ...toResult(finding, anchor), ...baselineState };
    await write(`${inRun === 0 ? '' : ','}\n${JSON.stringify(result)}`);
    inRun += 1;
    written += 1;
  };
  await write('{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[\n');
  await beginRun();
  for await (const finding of findings) await add(finding, 'new');
  for (const finding of known) await add(finding, 'unchanged');
  await endRun(total - written);
  await write(']}\n');
}

function toolOf(report: Report): object {
  const notifications = report.not_checked.map(({ code }) => code);
  return {
    driver: {
      name: 'northroot',
      version: VERSION,
      semanticVersion: VERSION,
      rules: RULES,
      notifications: [...new Set([...notifications, ...OWN_NOTIFICATIONS])].map((id) => ({ id })),
    },
  };
}

/** What this format itself tells of. */
const OWN_NOTIFICATIONS = ['UNDECIDED', 'FINDINGS_OMITTED', 'BASELINE'] as const;

function toRule(id: string, page: CodePage): { readonly id: string } {
  const { title, meaning, cause, remedy, section, severity, class: of } = page;
  const rule = {
    id,
    name: id.toLowerCase().replace(/(?:^|_)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
    shortDescription: { text: escapeSarif(title) },
    fullDescription: { text: escapeSarif(meaning) },
    help: {
      text: escapeSarif(
        `${meaning} Usual cause: ${cause} What to do: ${remedy} (format and verification ${section})`,
      ),
      markdown: `${meaning}\n\n**Usual cause:** ${cause}\n\n**What to do:** ${remedy}\n\nFormat and verification ${section}.`,
    },
    defaultConfiguration: { level: LEVELS[severity] },
    properties: { class: of, tags: of === 'none' ? ['audit'] : ['audit', of] },
  };
  return rule;
}

function toResult(finding: FindingJson, anchor: string | undefined): object {
  const { code, severity, class: of, at, seq, event_id: id, folded, related = [] } = finding;
  const { principal_id: principal, tool_name: tool } = finding;
  const ruleIndex = RULE_INDEX.get(code);
  const point = pointOf(finding, anchor);
  const own = {
    artifactLocation: { uri: toUri(nameOf(at.file)) },
    region: { startLine: at.line, byteOffset: at.byte_offset, byteLength: at.byte_length },
  };
  const logicalLocations =
    seq === null && id === null
      ? {}
      : {
          logicalLocations: [
            {
              ...(seq === null ? {} : { name: `seq ${seq}` }),
              ...(id === null ? {} : { fullyQualifiedName: id }),
              kind: 'record',
            },
          ],
        };
  const physicalLocation =
    anchor === undefined
      ? own
      : { artifactLocation: { uri: toUri(point.file) }, region: { startLine: point.line } };
  const elsewhere = [
    ...(anchor === undefined
      ? []
      : [
          { id: 0, message: { text: escapeSarif(`the record, ${placeOf(finding)}`) }, physicalLocation: own },
        ]),
    ...related.map(({ file, line, seq: other }, index) => ({
      id: index + 1,
      message: { text: escapeSarif(other === null ? 'see also' : `see also seq ${other}`) },
      physicalLocation: { artifactLocation: { uri: toUri(nameOf(file)) }, region: { startLine: line } },
    })),
  ];
  const fingerprint = fingerprintFinding(finding);
  return {
    ruleId: code,
    ...(ruleIndex === undefined ? {} : { ruleIndex }),
    level: LEVELS[severity],
    message: { text: escapeSarif(messageOf(finding, anchor)) },
    locations: [{ physicalLocation, ...logicalLocations }],
    ...(elsewhere.length === 0 ? {} : { relatedLocations: elsewhere }),
    // GitHub knows results again by this one alone, and makes it of the file's lines where it is not given.
    partialFingerprints: { 'northrootFinding/v1': fingerprint, primaryLocationLineHash: fingerprint },
    properties: {
      class: of,
      ...(at.pointer === undefined ? {} : { pointer: shown(at.pointer) }),
      ...(principal === undefined ? {} : { principal_id: principal }),
      ...(tool === undefined ? {} : { tool_name: tool }),
      ...(folded === undefined ? {} : { folded }),
    },
  };
}

function invocationOf(
  report: Report,
  { exitStatus = report.exit_status }: SarifOptions,
  rest: number,
): object {
  const { verdict, not_checked: notChecked, baseline } = report;
  const notify = (id: string, level: 'error' | 'warning' | 'note', text: string): object => ({
    descriptor: { id },
    level,
    message: { text: escapeSarif(text) },
  });
  return {
    executionSuccessful: verdict !== 'undecided',
    exitCode: exitStatus,
    exitCodeDescription: EXIT_WORDS[exitStatus],
    toolExecutionNotifications: [
      ...(verdict === 'undecided' ? [notify('UNDECIDED', 'error', summaryOf(report))] : []),
      ...notChecked.map(({ code, message }) => notify(code, 'warning', `not checked: ${message}`)),
      ...(rest > 0
        ? [notify('FINDINGS_OMITTED', 'warning', `${count(rest, 'more finding')} not listed in this file`)]
        : []),
      ...(baseline === undefined
        ? []
        : [notify('BASELINE', baseline.unlisted > 0 ? 'warning' : 'note', describeBaseline(report))]),
    ],
  };
}

function describeBaseline(report: Report): string {
  const { baseline } = report;
  if (baseline === undefined) return '';
  const { known, gone, unlisted } = baseline;
  const cut =
    unlisted === 0
      ? ''
      : `; the baseline was cut: it counts ${count(unlisted, 'finding')} that it does not list, and acknowledges none of these`;
  return `verdict ${report.verdict}; by the baseline ${known} known, ${baseline.new} new, ${gone} gone${cut}`;
}

function propertiesOf({ verdict, ledger }: Report): object {
  return {
    verdict,
    records: ledger.records,
    root: ledger.root,
    origin: ledger.origin === null ? null : shown(ledger.origin),
  };
}
