/** Codex CLI: rollouts of its sessions, and logs of its hooks. README.md says what becomes of each field. */

import { Calls } from '../claude-code/calls.js';
import { inFileOrder, inTimeOrder } from '../shared/order.js';
import { HookReader } from '../claude-code/hooks.js';
import type { AnswerLine, HookLine } from '../claude-code/lines.js';
import { type HookedHost, Recorder } from '../claude-code/recorder.js';
import { ToolUses } from '../claude-code/tool-uses.js';
import type { Host, HostFile, HostOptions, HostReading } from '../shared/host.js';
import { checkReadOptions, hasOwnLine, ReadingBuilder } from '../shared/reading.js';
import { textAt } from '../shared/values.js';
import { isOwnLine, readLine, type RolloutLine } from './lines.js';
import { RolloutReader } from './rollouts.js';
import { type Session, sessionsOf } from './sessions.js';
import { rulesOf } from '../shared/findings.js';

const LOOKED_AT = 50;

/** The rules for hook logs and rollouts. */
const CODEX_RULES = rulesOf({
  'CX-1': 'a call id names one call of its session',
  'CX-2': 'an output belongs to a call',
  'CX-3': "a forked session's history can be told from its own lines",
  'CX-5': 'a call ends once, and all sources agree on its end',
  'CX-6': 'a denied call does not run',
  'CX-7': 'every call that ran was allowed',
  'CX-8': 'tool and parameters that ran are those that were allowed',
  'CX-9': 'a call has an output, or was denied',
  'CX-10': 'an output is not dated before its call',
  'CX-11':
    'usage is stated in whole numbers, totals grow by the usage of each answer, and no part exceeds its whole',
  'CX-12': 'a decision is one that hooks can give',
  'CX-13': ['no line was removed from the end, or rewritten', 'lines are neither hashed nor signed'],
  'CX-14': [
    'the call that ran is the one that a person or the approval policy allowed',
    'rollouts state only denials',
  ],
});

/** The host Codex CLI: rollouts and hook logs. */
export const codex: Host = {
  name: 'codex',
  title: 'Codex CLI rollouts and hook logs',
  rules: CODEX_RULES,
  aids: {},
  recognises: (file) => hasOwnLine(file, LOOKED_AT, isOwnLine),
  read,
};

/** Hooks of Codex are told what a tool wrote, and not how it ended. */
const HOOKED: HookedHost = { name: 'codex', rules: 'CX', hooksKnowOutcomes: false };

/** What hooks decided comes first; rollouts say how it ended, and hooks after them what no rollout has. */
function read(files: readonly HostFile[], options: HostOptions = {}): HostReading {
  checkReadOptions('codex.read', options);
  const reading = new ReadingBuilder(options);
  const hookLines: (HookLine | AnswerLine)[] = [];
  const rolloutLines: RolloutLine[] = [];
  for (const file of files) {
    for (const item of reading.lines(file)) {
      const line = readLine(item);
      if (line === undefined) reading.drop(item.at, 'unknown', 'NOT_A_LINE_OF_THESE');
      else if (line.kind === 'rollout') rolloutLines.push(line);
      else hookLines.push(line);
    }
  }
  // Ids of calls are the model's own: only their session tells them apart.
  const calls = new Calls((id, { session, agent }) => `${agent ?? session}/${id}`);
  const recorder = new Recorder(reading, calls, HOOKED);
  const sessions = sessionsOf(rolloutLines, reading);
  const hooks = usesOf(sessions).complete(hookLines, reading);
  const hookReader = new HookReader(recorder);
  const [before, after] = byEnd(hooks);
  hookReader.read(before);
  new RolloutReader(recorder).read(sessions);
  hookReader.read(after);
  recorder.finish();
  const made = inFileOrder(reading.finish(), files);
  return { ...made, claims: inTimeOrder(made.claims) };
}

function usesOf(sessions: readonly Session[]): ToolUses {
  const uses = new ToolUses();
  for (const { id, actor, lines, copies } of sessions) {
    for (const line of lines) {
      const call = copies.has(line) ? undefined : textAt(line.payload, 'call_id');
      if (call === undefined) continue;
      if (/_call$/.test(line.type ?? '')) uses.used(id, call, actor, line.time);
      else if (/_(?:output|end)$/.test(line.type ?? '')) uses.ended(id, call, line.time);
    }
  }
  return uses;
}

/** The lines before a tool ran, and those after it, each with the answers that follow them. */
function byEnd(
  lines: readonly (HookLine | AnswerLine)[],
): readonly [(HookLine | AnswerLine)[], (HookLine | AnswerLine)[]] {
  const before: (HookLine | AnswerLine)[] = [];
  const after: (HookLine | AnswerLine)[] = [];
  let isEnd = false;
  for (const line of lines) {
    if (line.kind === 'hook') isEnd = /^PostToolUse/.test(line.event);
    (isEnd ? after : before).push(line);
  }
  return [before, after];
}
