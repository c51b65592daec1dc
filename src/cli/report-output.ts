/** Writes reports to standard output and, atomically, to files. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ByteSink } from '../base/bytes/byte-sink.js';
import { writeJson } from '../base/json/write-json.js';
import { writeThrough } from '../log/fs/file-sink.js';
import { type Paint, plainPaint } from '../out/text/guide.js';
import { jsonText, safeSink } from './json-text.js';
import { STDOUT, type Target } from './targets.js';
import type { Terminal } from './terminal.js';

/** One format of a report and its path; `-` is standard output. */
export interface FormatOutput<F extends string> {
  readonly format: F;
  readonly path: string;
}

export interface ReportOutputOptions<F extends string> {
  readonly format: F;
  readonly output: readonly FormatOutput<F>[];
}

export function addReportOutput(
  command: Command,
  formats: readonly string[],
  description = 'format of the report',
): Command {
  return command
    .addOption(new Option('--format <format>', description).choices(formats).default('text'))
    .option(
      '--output <format=path>',
      'also write the report to a file, in any of these formats; - is standard output, instead of --format (repeatable)',
      collectOutputs(formats),
      [],
    );
}

export const DOCUMENT_FORMATS = ['text', 'markdown', 'json'] as const;
export type DocumentFormat = (typeof DOCUMENT_FORMATS)[number];

/** Renders such a report. */
export function renderDocument<T extends object>(
  report: T,
  texts: { text(report: T, paint: Paint): string; markdown(report: T): string },
): (format: DocumentFormat, paint: Paint) => string {
  return (format, paint) => (format === 'json' ? `${jsonText(report, 2)}\n` : texts[format](report, paint));
}

/** Parses values of `--output`, `format=path`. */
function collectOutputs<F extends string>(
  formats: readonly F[],
): (text: string, previous?: readonly FormatOutput<F>[]) => FormatOutput<F>[] {
  return (text, previous = []) => {
    const at = text.indexOf('=');
    const format = formats.find((each) => each === text.slice(0, Math.max(at, 0)));
    const path = text.slice(at + 1);
    if (format === undefined || path === '')
      throw new InvalidArgumentError(`Expected format=path, the format one of ${formats.join(', ')}.`);
    return [...previous, { format, path }];
  };
}

/** The files of outputs, to check before long work. */
export function targetsOf(outputs: readonly { readonly path: string }[]): Target[] {
  return outputs.map(({ path }) => ({ path, kind: 'file' }));
}

export function screenFormat<F extends string>({ format, output }: ReportOutputOptions<F>): F {
  return output.find(({ path }) => path === STDOUT)?.format ?? format;
}

/** A report as text, or as JSON, which is written in pieces. */
export type Rendered = string | { readonly json: object };

/** Writes the files, then standard output. Only a terminal gets colours. */
export async function writeReport<F extends string>(
  terminal: Terminal,
  options: ReportOutputOptions<F>,
  render: (format: F, paint: Paint) => Rendered,
): Promise<void> {
  await writeReportFiles(options, render);
  await write({ write: (piece) => terminal.write(piece) }, render(screenFormat(options), terminal.paint));
}

export async function writeReportFiles<F extends string>(
  { output }: ReportOutputOptions<F>,
  render: (format: F, paint: Paint) => Rendered,
): Promise<void> {
  for (const { format, path } of output)
    if (path !== STDOUT) await writeThrough(path, (sink) => write(sink, render(format, plainPaint)));
}

async function write(sink: ByteSink, rendered: Rendered): Promise<void> {
  if (typeof rendered === 'string') {
    await sink.write(rendered);
    return;
  }
  await writeJson(safeSink(sink), rendered.json, 2);
  await sink.write('\n');
}
