/** Claude Code: logs of its hooks, and its transcripts. docs/hosts/claude-code.md says what becomes of each field. */

import type { Host, HostFile, HostOptions, HostReading } from '../host.js';
import { checkReadOptions } from '../read-options.js';
import { readDocument, ReadingBuilder, splitLines, type SourceItem } from '../reading.js';
import { inTimeOrder } from '../time-order.js';
import { decodeSourceJson } from '../../json/source-json.js';
import { Calls } from './calls.js';
import { HookReader } from './hooks.js';
import { readLine, withSidechains, type AnswerLine, type HookLine, type TranscriptLine } from './lines.js';
import { Recorder } from './recorder.js';
import { CLAUDE_CODE_RULES } from './rules.js';
import { ToolUses } from './tool-uses.js';
import { TranscriptReader } from './transcripts.js';

/** The host Claude Code. */
export const claudeCode: Host = {
  name: 'claude-code',
  title: 'Claude Code hook logs and transcripts',
  rules: CLAUDE_CODE_RULES,
  aids: {},
  recognises,
  read,
};

/** Transcripts begin with lines about the session, which say nothing of what they are. */
const LOOKED_AT = 50;

function recognises(file: HostFile): boolean {
  const document = readDocument(file);
  if (document !== undefined) return document.slice(0, LOOKED_AT).some(isOwn);
  let left = LOOKED_AT;
  for (const { at, bytes } of splitLines(file)) {
    if (left-- === 0) return false;
    const decoded = decodeSourceJson(bytes);
    if (decoded.ok && isOwn({ at, bytes, value: decoded.value })) return true;
  }
  return false;
}

function isOwn(item: SourceItem): boolean {
  const line = readLine(item);
  if (line?.kind === 'hook') return true;
  return line?.kind === 'transcript' && line.uuid !== undefined && line.value.has('message');
}

/** Hooks are told what runs, so they are read first; transcripts then add what no hook was asked about. */
function read(files: readonly HostFile[], options: HostOptions = {}): HostReading {
  checkReadOptions('claude-code', options);
  const reading = new ReadingBuilder(options);
  const hookLines: (HookLine | AnswerLine)[] = [];
  const transcriptLines: TranscriptLine[] = [];
  for (const file of files) {
    for (const item of reading.lines(file)) {
      const line = readLine(item);
      if (line === undefined) reading.drop(item.at, 'unknown', 'NOT_A_LINE_OF_THESE');
      else if (line.kind === 'transcript') transcriptLines.push(line);
      else hookLines.push(line);
    }
  }
  const recorder = new Recorder(reading, new Calls());
  const transcripts = withSidechains(transcriptLines);
  new HookReader(recorder).read(completed(hookLines, new ToolUses(transcripts), reading));
  new TranscriptReader(recorder).read(transcripts);
  recorder.finish();
  return inTimeOrder(inFileOrder(reading.finish(), files));
}

/** Hooks are told no time, and older ones not whose subagent asks. Where transcripts say it of the same tool use, it stands. */
function completed(
  lines: readonly (HookLine | AnswerLine)[],
  uses: ToolUses,
  reading: ReadingBuilder,
): readonly (HookLine | AnswerLine)[] {
  const dated = new Map<string, { readonly first: HookLine; count: number }>();
  const all = lines.map((line) => {
    if (line.kind !== 'hook') return line;
    const whole = uses.complete(line);
    if (line.time !== undefined || whole.time === undefined) return whole;
    const { file } = line.item.at;
    const { first, count } = dated.get(file) ?? { first: line, count: 0 };
    dated.set(file, { first, count: count + 1 });
    return whole;
  });
  for (const { first, count } of dated.values()) {
    reading.find({
      rule: 'INPUT',
      code: 'TIME_OF_TRANSCRIPT',
      severity: 'info',
      class: 'none',
      at: first.item.at,
      expected: 'a date and time',
      actual: `none on ${count} lines; that of the same tool use in a transcript stands for it`,
    });
  }
  return all;
}

function inFileOrder(reading: HostReading, files: readonly HostFile[]): HostReading {
  const order = new Map(files.map(({ name }, index) => [name, index]));
  const compare = (
    { at: a }: { readonly at: HostReading['items'][number]['at'] },
    { at: b }: { readonly at: HostReading['items'][number]['at'] },
  ): number => (order.get(a.file) ?? 0) - (order.get(b.file) ?? 0) || (a.line ?? 0) - (b.line ?? 0);
  return {
    ...reading,
    items: [...reading.items].sort(compare),
    findings: [...reading.findings].sort(compare),
  };
}
