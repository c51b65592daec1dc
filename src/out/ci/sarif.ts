/**
 * Findings as SARIF 2.1.0, for code scanning. Every rule of the catalogue is declared. What was not checked is a
 * notification, so that a run that could not look everywhere does not look clean.
 */

import { promisify } from 'node:util';
import { deflateRaw } from 'node:zlib';
import type { ByteSink } from '../../base/bytes/byte-sink.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { defined } from '../../base/defined.js';
import { VERSION } from '../../base/version.js';
import { CODE_PAGES, type CodePage } from '../../format/finding/catalog.js';
import type { FindingJson } from '../../format/schema/generated/types.js';
import { isAtEnd } from '../../rules/report/causes.js';
import type { LazyReport } from '../../rules/report/report.js';
import { count, toTell } from '../text/words.js';
import { type AnnotationOptions, messageOf, nameOf, placeOf, pointOf, summaryOf } from './ci-words.js';
import { escapeSarif, shown, toUri } from './escape.js';
import { fingerprintFinding } from './fingerprint.js';

/** The most runs that GitHub accepts in one file. */
export const MAX_SARIF_RUNS = 20;
/** The most results that GitHub accepts in one run. */
export const MAX_SARIF_RESULTS = 25_000;

/** The largest file that GitHub accepts, compressed, in bytes. */
const MAX_SARIF_COMPRESSED = 10_000_000;

/** Bytes that are compressed together to measure the file. */
const MEASURED_BYTES = 256 * 1024;

const LEVELS = { error: 'error', warning: 'warning', info: 'note' } as const;

const EXIT_WORDS = ['ok', 'invalid', 'could not decide', 'violation'] as const;

const RULES = Object.entries(CODE_PAGES).map(([id, page]) => toRule(id, page));
const RULE_INDEX = new Map(RULES.map(({ id }, index) => [id, index]));

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
 * {@link MAX_SARIF_RESULTS} results, which compress to at most {@link MAX_SARIF_COMPRESSED} bytes; the rest is counted in a
 * notification. Each run's category is its `automationDetails.id`.
 *
 * @throws Whatever `sink` and `findings` reject with.
 */
export function writeSarif(sink: ByteSink, report: LazyReport, options: SarifOptions = {}): Promise<void> {
  return writeRuns(sink, report, options, {
    runs: MAX_SARIF_RUNS,
    results: MAX_SARIF_RESULTS,
    compressed: MAX_SARIF_COMPRESSED,
  });
}

/** Loaded lazily: nothing else needs zlib. */
const compress = (bytes: Uint8Array): Promise<Uint8Array> => promisify(deflateRaw)(bytes);

/** An upper bound of a file's compressed size, measured piece by piece. */
class CompressedSize {
  #pieces: Uint8Array[] = [];
  #waiting = 0;
  #size = 0;

  /** Bytes. */
  get most(): number {
    // Deflate stores what it cannot compress, with a few bytes more.
    return this.#size + this.#waiting + 64;
  }

  async add(text: string): Promise<void> {
    const bytes = encodeUtf8(text);
    this.#pieces.push(bytes);
    this.#waiting += bytes.length;
    if (this.#waiting < MEASURED_BYTES) return;
    const { length } = await compress(Buffer.concat(this.#pieces, this.#waiting));
    this.#size += length;
    this.#pieces = [];
    this.#waiting = 0;
  }
}

/** {@link writeSarif} with other limits. */
export async function writeRuns(
  sink: ByteSink,
  report: LazyReport,
  options: SarifOptions,
  limits: { readonly runs: number; readonly results: number; readonly compressed: number },
): Promise<void> {
  const { findings = report.findings, known = [], anchor } = options;
  const size = new CompressedSize();
  const write = async (text: string): Promise<void> => {
    const room = sink.write(text);
    if (room !== undefined) await room;
    await size.add(text);
  };
  // What ends this run and begins another has to fit, too.
  const reserve = endOf(report, options, Number.MAX_SAFE_INTEGER).length + beginOf(report, 0).length;
  const seen = new Map<string, number>();
  let isFull = false;
  let runs = 0;
  let inRun = 0;
  let written = 0;
  const total = toTell(report) + known.length;
  const beginRun = async (): Promise<void> => {
    await write(beginOf(report, runs));
    runs += 1;
    inRun = 0;
  };
  const endRun = (rest: number): Promise<void> => write(endOf(report, options, rest));
  const add = async (finding: FindingJson, state: 'new' | 'unchanged'): Promise<void> => {
    if (inRun === limits.results) {
      if (runs === limits.runs) return;
      await endRun(0);
      await beginRun();
    }
    const baselineState = report.baseline === undefined ? {} : { baselineState: state };
    const fingerprint = fingerprintFinding(finding);
    const before = seen.get(fingerprint) ?? 0;
    const result = { ...toResult(finding, anchor, fingerprint, before + 1), ...baselineState };
    const text = `${inRun === 0 ? '' : ','}\n${JSON.stringify(result)}`;
    isFull = size.most + text.length * MAX_BYTES_OF_CHARACTER + reserve > limits.compressed;
    if (isFull) return;
    seen.set(fingerprint, before + 1);
    await write(text);
    inRun += 1;
    written += 1;
  };
  await write('{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[\n');
  await beginRun();
  for await (const finding of findings) {
    await add(finding, 'new');
    if (isFull) break;
  }
  for (const finding of isFull ? [] : known) {
    await add(finding, 'unchanged');
    if (isFull) break;
  }
  await endRun(total - written);
  await write(']}\n');
}

/** The most that one UTF-16 code unit takes in UTF-8. */
const MAX_BYTES_OF_CHARACTER = 3;

function beginOf(report: LazyReport, index: number): string {
  const head = { tool: toolOf(report), automationDetails: { id: `northroot/verify/${index + 1}/` } };
  return `${index === 0 ? '' : ',\n'}${JSON.stringify(head).slice(0, -1)},"results":[`;
}

function endOf(report: LazyReport, options: SarifOptions, rest: number): string {
  const tail = { invocations: [invocationOf(report, options, rest)], properties: propertiesOf(report) };
  return `],${JSON.stringify(tail).slice(1)}`;
}

function toolOf(report: LazyReport): object {
  const notifications = report.not_checked.map(({ code }) => code);
  return {
    driver: {
      name: 'northroot',
      version: VERSION,
      semanticVersion: VERSION,
      informationUri: INFORMATION,
      rules: RULES,
      notifications: [...new Set([...notifications, ...OWN_NOTIFICATIONS])].map((id) => ({ id })),
    },
  };
}

const OWN_NOTIFICATIONS = ['UNDECIDED', 'FINDINGS_OMITTED', 'BASELINE'] as const;

/** Where readers learn what northroot is. */
const INFORMATION = 'https://northroot.dev/';

/** A rule's name for people, which is not its id in other letters (SARIF1001): of a code of one word its title. */
function nameOfRule(id: string, title: string): string {
  const name = toPascalCase(id.toLowerCase());
  return name.toLowerCase() === id.toLowerCase() ? toPascalCase(title) : name;
}

function toPascalCase(text: string): string {
  return text.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function toRule(id: string, page: CodePage): { readonly id: string } {
  const { title, meaning, cause, remedy, section, severity, class: of } = page;
  const rule = {
    id,
    name: nameOfRule(id, title),
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

/** @param occurrence - Which it is of those with its fingerprint, from 1. */
function toResult(
  finding: FindingJson,
  anchor: string | undefined,
  fingerprint: string,
  occurrence: number,
): object {
  const { code, severity, class: of, at, seq, event_id: id, folded, related = [] } = finding;
  const { principal_id: principal, tool_name: tool } = finding;
  const ruleIndex = RULE_INDEX.get(code);
  const point = pointOf(finding, anchor);
  const own = {
    artifactLocation: { uri: toUri(nameOf(at.file)) },
    region: {
      startLine: pointOf(finding).line,
      // Behind the last line there are no bytes of a line.
      ...(isAtEnd(finding) ? {} : { byteOffset: at.byte_offset, byteLength: at.byte_length }),
    },
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
  return {
    ruleId: code,
    ...defined({ ruleIndex }),
    level: LEVELS[severity],
    message: { text: escapeSarif(messageOf(finding, anchor)) },
    locations: [{ physicalLocation, ...logicalLocations }],
    ...(elsewhere.length === 0 ? {} : { relatedLocations: elsewhere }),
    partialFingerprints: {
      'northrootFinding/v1': fingerprint,
      // GitHub knows results again by this one alone, and makes it of the file's lines where it is not given. Two with the same one
      // are one alert.
      primaryLocationLineHash: occurrence === 1 ? fingerprint : `${fingerprint}:${occurrence}`,
    },
    properties: {
      class: of,
      ...(at.pointer === undefined ? {} : { pointer: shown(at.pointer) }),
      ...defined({ principal_id: principal, tool_name: tool, folded }),
    },
  };
}

function invocationOf(
  report: LazyReport,
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
      ...notChecked.map(({ code, message, required = false }) =>
        notify(
          code,
          required ? 'error' : 'warning',
          `${required ? 'required, and ' : ''}not checked: ${message}`,
        ),
      ),
      ...(rest > 0
        ? [notify('FINDINGS_OMITTED', 'warning', `${count(rest, 'more finding')} not listed in this file`)]
        : []),
      ...(baseline === undefined
        ? []
        : [notify('BASELINE', baseline.unlisted > 0 ? 'warning' : 'note', describeBaseline(report))]),
    ],
  };
}

function describeBaseline(report: LazyReport): string {
  const { baseline } = report;
  if (baseline === undefined) return '';
  const { known, gone, unlisted } = baseline;
  const cut =
    unlisted === 0
      ? ''
      : `; the baseline was cut: it counts ${count(unlisted, 'finding')} that it does not list, and acknowledges none of these`;
  return `verdict ${report.verdict}; by the baseline ${known} known, ${baseline.new} new, ${gone} gone${cut}`;
}

function propertiesOf({ verdict, ledger }: LazyReport): object {
  return {
    verdict,
    records: ledger.records,
    root: ledger.root,
    origin: ledger.origin === null ? null : shown(ledger.origin),
  };
}
