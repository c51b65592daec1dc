/**
 * How an agent and the kernel talk: line by line with one that waits for answers; turn by turn with a vendor's command line, whose model
 * reads answers only as the next message. Either as messages of JSON to one process, or by a process for each turn, which is given
 * everything that was said.
 */

import { isJsonObject, type JsonObject } from '../../../base/json/value.js';
import type { AgentExit, AgentProcess, OutputFault } from './agent-process.js';

/** Who takes an agent's lines. */
export interface Listener {
  /** @returns the lines that answer it */
  take(line: string, isWhole?: boolean): Promise<readonly string[]>;
}

export interface Conversation {
  readonly listener: Listener;
  readonly onFault: (
    code: OutputFault | 'TURN_MALFORMED' | 'TURN_FAILED' | 'TOO_MANY_TURNS' | 'INPUT_NOT_READ',
  ) => void;
  /** Told what a turn of a model used. */
  readonly onTokens: (tokens: bigint) => Promise<void>;
  readonly signal: AbortSignal;
}

const MAX_TURNS = 1_000;

/** The agent reads answers as lines. @param prompt - Written first, where there is one */
export async function converseByLines(
  agent: AgentProcess,
  { listener, onFault }: Conversation,
  prompt: string | undefined,
): Promise<AgentExit> {
  if (prompt !== undefined) agent.write(`${prompt}\n`);
  for await (const { text, isWhole } of agent.lines(onFault)) {
    const answers = await listener.take(text, isWhole);
    if (answers.length > 0 && !agent.write(`${answers.join('\n')}\n`)) onFault('INPUT_NOT_READ');
  }
  return agent.exited;
}

/** The agent reads and writes messages of JSON, one a line (`stream-json`). A turn ends in a `result`, whose text has the requests. */
export async function converseByMessages(
  agent: AgentProcess,
  { listener, onFault, onTokens }: Conversation,
  prompt: string,
): Promise<AgentExit> {
  const say = (content: string): void => {
    const message = { type: 'user', message: { role: 'user', content } };
    if (!agent.write(`${JSON.stringify(message)}\n`)) onFault('INPUT_NOT_READ');
  };
  say(prompt);
  let turns = 0;
  for await (const { text: line } of agent.lines(onFault)) {
    if (line.trim() === '') continue;
    const message = objectIn(line);
    if (message === undefined) {
      onFault('TURN_MALFORMED');
      continue;
    }
    if (message['type'] !== 'result') continue;
    turns += 1;
    await onTokens(tokensOf(message['usage']));
    const text = message['result'];
    if (typeof text !== 'string' || message['is_error'] === true) {
      onFault('TURN_FAILED');
      agent.endInput();
      continue;
    }
    const answers = await takeAll(listener, text);
    if (answers.length === 0) agent.endInput();
    else if (turns >= MAX_TURNS) onFault('TOO_MANY_TURNS');
    else say(answers.join('\n'));
  }
  return agent.exited;
}

/** A process for each turn, which ends when it has answered. @param start - Starts one with a prompt */
export async function converseByProcesses(
  start: (prompt: string) => Promise<AgentProcess>,
  { listener, onFault, signal }: Conversation,
  prompt: string,
): Promise<AgentExit> {
  let said = prompt;
  for (let turn = 1; ; turn += 1) {
    const agent = await start(said);
    agent.endInput();
    const lines: string[] = [];
    const answers: string[] = [];
    for await (const { text } of agent.lines(onFault)) {
      lines.push(text);
      // It has ended: what it wrote last is whole.
      answers.push(...(await listener.take(text)));
    }
    const exit = await agent.exited;
    if (answers.length === 0 || exit.status !== 0 || signal.aborted) return exit;
    if (turn >= MAX_TURNS) {
      onFault('TOO_MANY_TURNS');
      return exit;
    }
    said = [said, '', 'You said:', ...lines, '', 'The kernel answered:', ...answers, '', 'Go on.'].join('\n');
  }
}

async function takeAll(listener: Listener, text: string): Promise<string[]> {
  const answers: string[] = [];
  for (const line of text.split('\n')) answers.push(...(await listener.take(line)));
  return answers;
}

const TOKENS = ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'];

/** What an agent says that a turn used: it is only reported. */
function tokensOf(usage: unknown): bigint {
  if (typeof usage !== 'object' || usage === null) return 0n;
  const counts = TOKENS.map((name) => (usage as Readonly<Record<string, unknown>>)[name]);
  return counts.reduce<bigint>(
    (sum, count) =>
      Number.isSafeInteger(count) && (count as number) > 0 ? sum + BigInt(count as number) : sum,
    0n,
  );
}

/** An object of one line; undefined for anything else. It is looked at for a few members, and kept nowhere. */
function objectIn(line: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
