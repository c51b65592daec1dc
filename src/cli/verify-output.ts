/**
 * Where `verify` writes its report, and in which forms: one of them to standard output, and any number to files, each of which
 * appears whole or not at all.
 */

import { type Command, InvalidArgumentError } from 'commander';
import type { ByteSink } from '../base/bytes/byte-sink.js';
import { writeJson } from '../base/json/write-json.js';
import type { Finding } from '../format/finding/finding.js';
import { writeThrough } from '../log/fs/file-sink.js';
import { Spool } from '../log/fs/spool.js';
import {
  type Baseline,
  type BaselineOutcome,
  MAX_BASELINE_BYTES,
  parseBaseline,
} from '../out/ci/baseline.js';
import { renderBrief } from '../out/ci/brief.js';
import { FindingSpool } from '../out/ci/finding-spool.js';
import { renderGithub } from '../out/ci/github.js';
import { renderGitlab } from '../out/ci/gitlab.js';
import { renderJunit } from '../out/ci/junit.js';
import { renderMarkdown } from '../out/ci/markdown.js';
import { writeSarif } from '../out/ci/sarif.js';
import { renderFinding, renderReport } from '../out/text/report.js';
import { type LazyReport, toFindingJson } from '../rules/report/report.js';
import type { VerificationResult } from '../rules/verify/run-verification.js';
import { usageError } from './command-error.js';
import type { ExitStatus } from './context.js';
import { parseFile } from './input.js';
import { jsonText, safeSink } from './json-text.js';
import { commandGuide } from './remedies.js';
import { addReportOutput, type FormatOutput, type ReportOutputOptions, targetsOf } from './report-output.js';
import { assertTargets, STDOUT } from './targets.js';
import type { Terminal } from './terminal.js';

const FORMATS = [
  'text',
  'json',
  'ndjson',
  'sarif',
  'junit',
  'github',
  'gitlab',
  'markdown',
  'brief',
] as const;
type Format = (typeof FORMATS)[number];

/** What is written to standard output goes out in pieces of about so many characters. */
const BATCH = 64 * 1024;
/** The most findings of one code that are printed live within that time; the others are counted. */
const MAX_TOLD = 100;
const TOLD_WITHIN_MS = 10_000;

/** More findings than this are spilled to disk, if every requested format can take them one by one. */
const MAX_IN_MEMORY = 1_000;

/** These need every finding that is listed at once. */
const HOLDS_ALL: readonly Format[] = ['text', 'json', 'junit', 'gitlab'];

export interface OutputOptions extends ReportOutputOptions<Format> {
  readonly sarifAnchor?: string;
  readonly baseline?: string;
  readonly now?: string;
  readonly maxFindings: number;
}

/** Adds the options that say how a report is written. */
export function addOutputs(command: Command): Command {
  return addReportOutput(command, FORMATS, 'format of the report on standard output')
    .option(
      '--sarif-anchor <file>',
      'for sarif, github and gitlab: point to this file of the repository, and name the place in the ledger in the text',
      anchorFile,
    )
    .option(
      '--baseline <report>',
      'acknowledge the findings of this earlier JSON report: only new ones are listed and decide the exit status',
    );
}

function anchorFile(text: string): string {
  if (text === '') throw new InvalidArgumentError('Expected the path of a file.');
  return text;
}

export async function readBaseline(path: string | undefined): Promise<Baseline | undefined> {
  return path === undefined ? undefined : parseFile(path, MAX_BASELINE_BYTES, parseBaseline);
}

/** What a verification gave, as far as reports need it. */
export interface Verified {
  readonly report: LazyReport;
  readonly result: VerificationResult;
  readonly exitStatus: ExitStatus;
  /** Where there is a baseline. */
  readonly outcome: BaselineOutcome<LazyReport> | undefined;
}

/** Every form that one run writes. */
export class VerifyOutputs {
  readonly #outputs: readonly FormatOutput<Format>[];
  readonly #options: OutputOptions;
  readonly #terminal: Terminal;
  readonly #isDirect: boolean;
  #isLive = false;
  /** By code, how many findings were printed or left out, since when. */
  readonly #told = new Map<string, { readonly since: number; count: number }>();
  #spool: Spool | undefined;
  #findings: FindingSpool | undefined;
  #streamed = 0;
  #batch = '';

  /**
   * @param isFormatGiven - Whether `--format` was given, and is no default.
   * @param canSpool - Whether every finding is given to {@link VerifyOutputs.take}, and none is folded under another.
   * @throws NorthrootError `USAGE` for options that contradict each other.
   */
  constructor(terminal: Terminal, options: OutputOptions, isFormatGiven: boolean, canSpool: boolean) {
    this.#terminal = terminal;
    this.#options = options;
    const asked = options.output;
    const toStdout = asked.filter(({ path }) => path === STDOUT);
    if (toStdout.length > 1 || (toStdout.length === 1 && isFormatGiven))
      throw usageError(
        'standard output takes one report',
        'give --format, or one --output with - for its path',
      );
    this.#outputs = toStdout.length === 1 ? asked : [{ format: options.format, path: STDOUT }, ...asked];
    const formats = this.#outputs.map(({ format }) => format);
    const isMuch = options.maxFindings > MAX_IN_MEMORY;
    this.#isDirect = canSpool && isMuch && !formats.some((format) => HOLDS_ALL.includes(format));
  }

  /** How many findings have to be kept for the report. */
  get maxKept(): number {
    return this.#isDirect ? MAX_IN_MEMORY : this.#options.maxFindings;
  }

  /**
   * Refuses outputs that cannot be written or would replace an input, before the verification.
   *
   * @param inputs - Paths that the command reads.
   * @throws NorthrootError `USAGE`, `FILE_NOT_FOUND`.
   */
  async check(inputs: readonly (string | undefined)[]): Promise<void> {
    await assertTargets(targetsOf(this.#files), inputs);
  }

  /** Prints a finding at once, unless there were too many of its code lately. */
  #tell(finding: Finding): void {
    const { code } = finding;
    const now = performance.now();
    let told = this.#told.get(code);
    if (told === undefined || now - told.since >= TOLD_WITHIN_MS) {
      this.#tellMore(code);
      told = { since: now, count: 0 };
      this.#told.set(code, told);
    }
    told.count += 1;
    if (told.count <= MAX_TOLD) this.#terminal.say(renderFinding(toFindingJson(finding)).join('\n'));
  }

  /** Says how many of a code were not printed. */
  #tellMore(code: string): void {
    const more = (this.#told.get(code)?.count ?? 0) - MAX_TOLD;
    this.#told.delete(code);
    if (more > 0) this.#terminal.say(`… and ${more} more ${code}`);
  }

  /** From here on each finding is printed at once: as ndjson if that goes to standard output, else on standard error. */
  goLive(): void {
    this.#isLive = true;
  }

  take(finding: Finding): void {
    this.#findings?.add(finding);
    const isStreamed = this.#outputs.some(({ format, path }) => format === 'ndjson' && path === STDOUT);
    if (this.#isLive && !isStreamed) this.#tell(finding);
    if (!isStreamed || this.#streamed >= this.#options.maxFindings) return;
    this.#streamed += 1;
    this.#batch += `${jsonText(toFindingJson(finding))}\n`;
    if (this.#batch.length < BATCH && !this.#isLive) return;
    void this.#terminal.write(this.#batch);
    this.#batch = '';
  }

  /**
   * Runs `verify` and writes what it gives. The files are begun before it, so that what cannot be written is known then; each gets its
   * name when it is whole.
   *
   * @throws What `verify` rejects with; NorthrootError when a file cannot be written.
   */
  async write(verify: () => Promise<Verified>): Promise<Verified> {
    const isSpooled =
      this.#files.some(({ format }) => format === 'ndjson') ||
      (this.#isDirect && this.#outputs.some(({ format }) => format === 'sarif'));
    if (isSpooled) {
      this.#spool = new Spool();
      this.#findings = new FindingSpool(this.#spool, this.#options.maxFindings);
    }
    try {
      return await this.#fill(this.#files, [], verify);
    } finally {
      this.#spool?.close();
    }
  }

  get #files(): FormatOutput<Format>[] {
    return this.#outputs.filter(({ path }) => path !== STDOUT);
  }

  async #fill(
    [file, ...others]: readonly FormatOutput<Format>[],
    open: readonly (readonly [Format, ByteSink])[],
    verify: () => Promise<Verified>,
  ): Promise<Verified> {
    if (file !== undefined)
      return writeThrough(file.path, (sink) => this.#fill(others, [...open, [file.format, sink]], verify));
    const verified = await verify();
    for (const code of [...this.#told.keys()]) this.#tellMore(code);
    for (const { format, path } of this.#outputs) {
      if (path !== STDOUT) continue;
      const sink = new TerminalSink(this.#terminal);
      await this.#render(format, sink, verified, true);
      await sink.flush();
    }
    for (const [format, sink] of open) await this.#render(format, sink, verified, false);
    return verified;
  }

  async #render(format: Format, sink: ByteSink, verified: Verified, isStdout: boolean): Promise<void> {
    const { report, result, exitStatus, outcome } = verified;
    const { sarifAnchor: anchor, now } = this.#options;
    switch (format) {
      case 'text':
        return sink.write(renderReport(report, isStdout ? this.#terminal.paint : undefined, commandGuide));
      case 'json':
        await writeJson(safeSink(sink), report, 2);
        return sink.write('\n');
      case 'ndjson':
        return this.#renderNdjson(sink, verified, isStdout);
      case 'sarif': {
        const spooled = this.#isDirect ? this.#findings?.worstFirst(result) : undefined;
        const { grown = [], known = [] } = outcome ?? {};
        const findings = spooled === undefined ? report.findings : chain(grown, spooled);
        return writeSarif(sink, report, { findings, known, exitStatus, anchor });
      }
      case 'junit':
        return sink.write(renderJunit(report, { now }));
      case 'github':
        return sink.write(renderGithub(report, { anchor }));
      case 'gitlab':
        return sink.write(renderGitlab(report, { anchor }));
      case 'markdown':
        return sink.write(renderMarkdown(report));
      case 'brief':
        return sink.write(renderBrief(report));
    }
  }

  /** Findings in the order of the ledger, then the report without them. */
  async #renderNdjson(sink: ByteSink, { report, outcome }: Verified, isStdout: boolean): Promise<void> {
    if (isStdout) await sink.write(this.#batch);
    else if (this.#findings !== undefined) {
      for await (const finding of this.#findings.inOrder()) await sink.write(`${jsonText(finding)}\n`);
    }
    for (const finding of outcome?.grown ?? []) await sink.write(`${jsonText(finding)}\n`);
    await writeJson(safeSink(sink), { ...report, findings: undefined });
    await sink.write('\n');
  }
}

async function* chain<T>(first: Iterable<T>, second: AsyncIterable<T>): AsyncGenerator<T, void, void> {
  yield* first;
  yield* second;
}

/** Standard output, in pieces of some size. */
class TerminalSink implements ByteSink {
  readonly #terminal: Terminal;
  #batch = '';

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  write(piece: Uint8Array | string): Promise<void> | undefined {
    this.#batch += typeof piece === 'string' ? piece : Buffer.from(piece).toString();
    return this.#batch.length < BATCH ? undefined : this.flush();
  }

  async flush(): Promise<void> {
    const batch = this.#batch;
    this.#batch = '';
    await this.#terminal.write(batch);
  }
}
