/** What transcripts say of tool uses that hooks are not told: when, and which subagent's they are. */

import { compareTimestamps } from '../../value/timestamp.js';
import { listAt, textAt } from '../values.js';
import { blocksOf, type HookLine, type TranscriptLine } from './lines.js';

interface ToolUse {
  readonly agent: string | undefined;
  readonly usedAt: string | undefined;
  endedAt: string | undefined;
}

/** The tool uses of transcripts, by their session and id. */
export class ToolUses {
  readonly #uses = new Map<string, ToolUse>();

  constructor(lines: readonly TranscriptLine[]) {
    for (const line of lines) {
      const { session, agent, time } = line;
      for (const { id } of blocksOf(line, 'tool_use')) {
        const key = keyOf(session, id);
        if (!this.#uses.has(key)) this.#uses.set(key, { agent, usedAt: time, endedAt: undefined });
      }
      for (const { id } of blocksOf(line, 'tool_result')) {
        const use = this.#uses.get(keyOf(session, id));
        if (use !== undefined) use.endedAt ??= time;
      }
    }
  }

  /** The line with what it does not state itself. */
  complete(line: HookLine): HookLine {
    const id = textAt(line.input, 'tool_use_id');
    const use = id === undefined ? undefined : this.#uses.get(keyOf(line.session, id));
    return { ...line, agent: line.agent ?? use?.agent, time: line.time ?? this.#timeOf(line, use) };
  }

  #timeOf({ event, session, input }: HookLine, use: ToolUse | undefined): string | undefined {
    if (event === 'PostToolUse' || event === 'PostToolUseFailure') return use?.endedAt;
    if (event !== 'PostToolBatch') return use?.usedAt;
    const ends = (listAt(input, 'tool_calls') ?? []).flatMap((call) => {
      const id = textAt(call, 'tool_use_id');
      return (id === undefined ? undefined : this.#uses.get(keyOf(session, id))?.endedAt) ?? [];
    });
    return ends.sort(compareTimestamps).at(-1);
  }
}

function keyOf(session: string, id: string): string {
  return JSON.stringify([session, id]);
}
