/**
 * What a host of hooks says and can hear. A profile is data and two small functions: `read` makes a step of an event, `answer` makes the
 * host's JSON of a verdict. It opens nothing and decides nothing.
 */

import { NorthrootError } from '../../base/error.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';

export type HookName = 'claude-code' | 'codex' | 'gemini' | 'copilot';

export interface HookCall {
  /** The host's id of it. Undefined: told by its tool and parameters, in order. */
  readonly ref: string | undefined;
  readonly session: string;
  /** The host's name of the tool, not yet a ToolName. */
  readonly tool: string;
  readonly params: JsonValue;
  /** The kind of subagent that makes it; undefined for the session itself. */
  readonly agentType: string | undefined;
}

export type HookStep =
  | { readonly kind: 'decide'; readonly call: HookCall }
  | {
      readonly kind: 'settle';
      readonly call: HookCall;
      readonly outcome: 'success' | 'failure' | 'unknown';
      /** What it gave, of which only the digest leaves the process. */
      readonly output: JsonValue | undefined;
      readonly errorCode?: string | undefined;
      readonly durationMs?: number | undefined;
    }
  /** Calls that are over and may not have run. */
  | { readonly kind: 'release'; readonly calls: readonly HookCall[] }
  /** With `mayHaveRun`, it broke off: nothing tells what came of its open calls. */
  | { readonly kind: 'release-session'; readonly session: string; readonly mayHaveRun?: true }
  | { readonly kind: 'none' };

/** What the host is to be told. `pass` is no answer: its own rules go on to decide. */
export type HookVerdict =
  | { readonly effect: 'pass' }
  | { readonly effect: 'allow'; readonly reason: string }
  | { readonly effect: 'deny' | 'ask'; readonly reason: string }
  | { readonly effect: 'rewrite'; readonly reason: string; readonly params: JsonObject };

/** Where a host keeps its hooks, and how one looks there. */
export interface HookSettings {
  /** In the home folder or, unless it says otherwise, the project's. */
  readonly folder: string;
  /** The variable that names another folder instead of that in the home folder. */
  readonly variable?: string;
  readonly file: string;
  /** Hooks of a user are read from nowhere. */
  readonly isProjectOnly?: true;
  /** What a new file begins with. */
  readonly empty: JsonObject;
  /** The member of a hook that is its command line. */
  readonly command: 'command' | 'bash';
  /** What an event has a list of: hooks, or groups with a matcher and hooks. */
  readonly isGrouped: boolean;
  /** @param seconds - How long the host is to wait */
  hook(command: string, seconds: number, isDecision: boolean): JsonObject;
  /** What in settings keeps the host from calling any hook of them; undefined if nothing does. */
  isOff?(settings: JsonObject): string | undefined;
  /** What remains to be done by people, if anything. */
  readonly remark?: string;
}

export interface HookProfile {
  readonly name: HookName;
  /** As its maker writes it. */
  readonly title: string;
  /** Who acts, unless it is said. */
  readonly principal: string;
  /** The event that decides. */
  readonly decides: string;
  /** The events to be called for, that one included. */
  readonly events: readonly string[];
  /** What it can hear beside a denial and nothing. Anything else is told as a denial. */
  readonly hears: readonly ('allow' | 'ask' | 'rewrite')[];
  readonly settings: HookSettings;
  /** @throws NorthrootError `HOOK_INPUT_INVALID` for a call that cannot be read */
  read(event: JsonObject, name: string): HookStep;
  answer(verdict: Exclude<HookVerdict, { effect: 'pass' }>): JsonObject;
}

export const NO_STEP: HookStep = { kind: 'none' };

/** The most calls that one event may end. */
const MAX_CALLS = 1_000;

/** @throws NorthrootError `HOOK_INPUT_INVALID`; never with what was given, which may be secret */
export function textOf(event: JsonObject, member: string): string {
  const value = event[member];
  if (typeof value === 'string' && value !== '') return value;
  throw invalidInput(`${member}: expected a text`);
}

/** @throws NorthrootError `HOOK_INPUT_INVALID` if it is there and no text */
export function optionalText(event: JsonObject, member: string): string | undefined {
  return event[member] === undefined || event[member] === null ? undefined : textOf(event, member);
}

/** The call of an event in the form that Claude Code began and others took over. */
export function callOf(event: JsonObject): HookCall {
  const params = event['tool_input'];
  if (params === undefined) throw invalidInput('tool_input: expected a value');
  return {
    ref: optionalText(event, 'tool_use_id'),
    session: textOf(event, 'session_id'),
    tool: textOf(event, 'tool_name'),
    params,
    agentType: optionalText(event, 'agent_type'),
  };
}

/** The calls of a list of an event that ends them. */
export function callsOf(event: JsonObject, member: string): HookCall[] {
  const list = event[member];
  if (!Array.isArray(list) || list.length > MAX_CALLS)
    throw invalidInput(`${member}: expected a list of at most ${MAX_CALLS} calls`);
  const { session_id: session, agent_type: agentType = null } = event;
  return list.map((each) => {
    if (!isJsonObject(each)) throw invalidInput(`${member}: expected objects`);
    return callOf({ ...each, session_id: session ?? null, agent_type: agentType });
  });
}

/** Milliseconds that a host measured; undefined for anything else. */
export function durationOf(event: JsonObject, member: string): number | undefined {
  const value = event[member];
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

/** `EXIT_3` of a text that begins with `Exit code 3`, as shells are reported; undefined for others. */
export function exitCodeOf(text: JsonValue | undefined): string | undefined {
  const [, code] = typeof text === 'string' ? (/^Exit code (\d{1,3})(?!\d)/.exec(text) ?? []) : [];
  return code === undefined ? undefined : `EXIT_${Number(code)}`;
}

export function invalidInput(message: string): NorthrootError {
  return new NorthrootError('HOOK_INPUT_INVALID', message, {
    hint: 'the host speaks another version of its hooks than this one knows',
  });
}

/** Of hosts whose settings have one switch for all hooks. */
export function isEveryHookOff({ disableAllHooks }: JsonObject): string | undefined {
  return disableAllHooks === true ? 'disableAllHooks is true' : undefined;
}
