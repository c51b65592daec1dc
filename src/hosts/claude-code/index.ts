/** Claude Code: logs of its hooks, and its transcripts. README.md says what becomes of each field. */

import type { Host, HostFile, HostOptions, HostReading, SourceItem } from '../shared/host.js';
import { checkReadOptions, hasOwnLine, ReadingBuilder } from '../shared/reading.js';
import { inFileOrder, inTimeOrder } from '../shared/order.js';
import { Calls } from './calls.js';
import { HookReader } from './hooks.js';
import {
  type AnswerLine,
  blocksOf,
  type HookLine,
  isCodexHook,
  readLine,
  type TranscriptLine,
  withSidechains,
} from './lines.js';
import { Recorder } from './recorder.js';
import { CLAUDE_CODE_RULES } from './rules.js';
import { ToolUses } from './tool-uses.js';
import { TranscriptReader } from './transcripts.js';

/** Transcripts begin with lines about the session, which say nothing of what they are. */
const LOOKED_AT = 50;

/** The host Claude Code: transcripts and hook logs. */
export const claudeCode: Host = {
  name: 'claude-code',
  title: 'Claude Code hook logs and transcripts',
  rules: CLAUDE_CODE_RULES,
  aids: {},
  recognises: (file) => hasOwnLine(file, LOOKED_AT, isOwn),
  read,
};

function isOwn(item: SourceItem): boolean {
  const line = readLine(item);
  if (line?.kind === 'hook') return !isCodexHook(line);
  return line?.kind === 'transcript' && line.uuid !== undefined && line.value.has('message');
}

/** Hooks are told what runs, so they are read first; transcripts then add what no hook was asked about. */
function read(files: readonly HostFile[], options: HostOptions = {}): HostReading {
  checkReadOptions('claude-code.read', options);
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
  new HookReader(recorder).read(usesOf(transcripts).complete(hookLines, reading));
  new TranscriptReader(recorder).read(transcripts);
  recorder.finish();
  const made = inFileOrder(reading.finish(), files);
  return { ...made, claims: inTimeOrder(made.claims) };
}

function usesOf(lines: readonly TranscriptLine[]): ToolUses {
  const uses = new ToolUses();
  for (const line of lines) {
    const { session, time } = line;
    for (const { id } of blocksOf(line, 'tool_use')) uses.used(session, id, line, time);
    for (const { id } of blocksOf(line, 'tool_result')) uses.ended(session, id, time);
  }
  return uses;
}
