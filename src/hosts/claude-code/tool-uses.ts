/** What logs of sessions say of tool uses that hooks are not told: when, and whose they are. */

import { finding } from './rules.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { ReadingBuilder } from '../shared/reading.js';
import { listAt, textAt } from '../shared/values.js';
import type { Actor } from './calls.js';
import type { AnswerLine, HookLine } from './lines.js';

interface ToolUse {
  readonly actor: Actor;
  readonly usedAt: string | undefined;
  endedAt: string | undefined;
}

export class ToolUses {
  readonly #uses = new Map<string, ToolUse>();

  used(session: string, id: string, actor: Actor, time: string | undefined): void {
    const key = keyOf(session, id);
    if (!this.#uses.has(key)) this.#uses.set(key, { actor, usedAt: time, endedAt: undefined });
  }

  ended(session: string, id: string, time: string | undefined): void {
    const use = this.#uses.get(keyOf(session, id));
    if (use !== undefined) use.endedAt ??= time;
  }

  /**
   * The lines with what they do not state themselves. Hooks are told no time, and older ones not whose subagent asks; where a log of the
   * session says it of the same tool use, it stands, and how many times are from there is told.
   */
  complete(
    lines: readonly (HookLine | AnswerLine)[],
    reading: ReadingBuilder,
  ): readonly (HookLine | AnswerLine)[] {
    const dated = new Map<string, { readonly first: HookLine; count: number }>();
    const all = lines.map((line) => {
      if (line.kind !== 'hook') return line;
      const whole = this.#complete(line);
      if (line.time !== undefined || whole.time === undefined) return whole;
      const { file } = line.item.at;
      const { first, count } = dated.get(file) ?? { first: line, count: 0 };
      dated.set(file, { first, count: count + 1 });
      return whole;
    });
    for (const { first, count } of dated.values())
      reading.find(
        finding('TIME_OF_TRANSCRIPT', first.item.at, {
          actual: `none on ${count} lines; that of the same tool use in a log of its session stands for it`,
        }),
      );
    return all;
  }

  #complete(line: HookLine): HookLine {
    const id = textAt(line.input, 'tool_use_id');
    const use = id === undefined ? undefined : this.#useOf(line, id);
    const actor = line.agent === undefined && use !== undefined ? use.actor : line;
    const { session, agent } = actor;
    return { ...line, session, agent, time: line.time ?? this.#timeOf(line, use) };
  }

  /** A subagent may have a log of its own. */
  #useOf({ session, agent }: Actor, id: string): ToolUse | undefined {
    const own = agent === undefined ? undefined : this.#uses.get(keyOf(agent, id));
    return own ?? this.#uses.get(keyOf(session, id));
  }

  #timeOf(line: HookLine, use: ToolUse | undefined): string | undefined {
    const { event, input } = line;
    if (event === 'PostToolUse' || event === 'PostToolUseFailure') return use?.endedAt;
    if (event !== 'PostToolBatch') return use?.usedAt;
    const ends = (listAt(input, 'tool_calls') ?? []).flatMap((call) => {
      const id = textAt(call, 'tool_use_id');
      return (id === undefined ? undefined : this.#useOf(line, id)?.endedAt) ?? [];
    });
    return ends.sort(compareTimestamps).at(-1);
  }
}

function keyOf(session: string, id: string): string {
  return JSON.stringify([session, id]);
}
