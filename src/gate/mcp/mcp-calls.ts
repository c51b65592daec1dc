/**
 * The calls of a guard of MCP that are open, over all its connections, and the gate that decides on them. What outlives a connection is
 * here: calls whose client was asked for input (2026-07-28 repeats them under another id), tasks, and the definitions of tools.
 */

import { randomBytes } from 'node:crypto';
import { encodeBase64url } from '../../base/bytes/encoding.js';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, checkString, type OptionTypes } from '../../base/options.js';
import { defined } from '../../base/defined.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import type { JsonValue } from '../../base/json/value.js';
import { sha256Digest } from '../../base/value/digest.js';
import { type AmountsByUnit, type Meter, meters } from '../../base/value/meter.js';
import { escapeToolName } from '../../base/value/tool.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { readRecords } from '../../log/read/read-records.js';
import type { CallOutcome, Gate, GateCall, GateDecision } from '../gate.js';
import { keyOfText, memberOf } from './json-rpc.js';
import type { GuardedCall, McpSubject } from './guarded-call.js';
import { recordedDefinition, ToolDefinitions } from './tool-definitions.js';

export interface McpGuardOptions {
  /** Opens the gate, at the first call that is decided; where it fails, once more at the next. */
  readonly open: () => Promise<Gate>;
  /** A label of the server, that grants name: 1 to 64 characters of `[A-Za-z0-9_-]`. */
  readonly server: string;
  /** Who calls. Default: the ledger's `principalId`. */
  readonly principal?: string | undefined;
  /** The most that one call may use, by unit. Default: one call. */
  readonly reserve?: AmountsByUnit | undefined;
  /** How long a call may take, in milliseconds; then it is settled as unknown. Default 900,000 (15 minutes). */
  readonly ttlMs?: number | undefined;
  /** How long a call waits for approvals, in milliseconds. Default 0. */
  readonly waitMs?: number | undefined;
  /** What happens where no ledger can be asked: `open` forwards without a record. Default `closed`: denied. */
  readonly fail?: 'closed' | 'open' | undefined;
  /** How a denied call of a tool is answered: by a result that the model sees, or by an error. Default `result`. */
  readonly denyAs?: 'result' | 'error' | undefined;
  /** What is guarded besides calls of tools. Default: nothing. */
  readonly guard?: readonly McpSubject[] | undefined;
  /** Leaves tools that no grant names out of lists of tools. Default false. */
  readonly hide?: boolean | undefined;
  /** Denies calls of tools whose definition is another than when one was last allowed. Default false. */
  readonly pin?: boolean | undefined;
  /** How to approve a request, in words for who is denied. */
  readonly howToApprove?: ((authorization: string) => string) | undefined;
  readonly onEvent?: ((event: McpEvent) => void) | undefined;
}

/** What a guard did. Nothing of parameters and results is in it; names are as they came. */
export type McpEvent =
  | {
      readonly event: 'decided';
      readonly tool: string;
      readonly effect: 'allow' | 'deny' | 'ask' | 'rewrite';
      readonly code: string;
      readonly authorization: string | undefined;
    }
  /** A call waits for approvals. */
  | {
      readonly event: 'waiting';
      readonly tool: string;
      readonly authorization: string;
      readonly approvers: readonly string[];
    }
  | {
      readonly event: 'settled';
      readonly tool: string;
      readonly outcome: CallOutcome['outcome'];
      readonly code: string | undefined;
    }
  /** Forwarded without a record, as it is to fail open. */
  | { readonly event: 'unrecorded'; readonly tool: string; readonly code: string }
  /** A call ended and could not be settled. */
  | { readonly event: 'unsettled'; readonly tool: string; readonly code: string }
  /** The definition of a tool is another than when it was first listed. */
  | { readonly event: 'changed'; readonly tool: string }
  /** A message that is not forwarded, with why, or one that is passed on and cannot be read. */
  | { readonly event: 'dropped' | 'unread'; readonly from: 'client' | 'server'; readonly code: string };

export interface OpenMcpCall extends Pick<GuardedCall, 'tool' | 'isModern' | 'asksForTask'> {
  readonly ref: string;
  /** Of the parameters that the client gave, base64url. */
  readonly asked: string;
  /** Those to use instead of them. */
  readonly rewritten: GateDecision['params'];
  /** False where it was forwarded without a record. */
  readonly isRecorded: boolean;
  timer?: NodeJS.Timeout | undefined;
  state?: string | undefined;
  /** A task of the legacy era that is complete, whose result was not seen. */
  isComplete?: boolean;
  /** Calls of models that the client was asked for within it, by the key of each. */
  samplings?: ReadonlyMap<string, Pick<OpenMcpCall, 'ref' | 'tool'>> | undefined;
}

/** What is known of a call that ends without an answer. */
export type McpLoss =
  | 'MCP_CANCELLED'
  | 'MCP_CLOSED'
  | 'MCP_INPUT_EXPIRED'
  | 'MCP_NOT_ANSWERED'
  | 'MCP_TASK_EXPIRED';

const OPTION_TYPES: OptionTypes<McpGuardOptions> = {
  open: 'function',
  server: 'string',
  principal: 'string',
  reserve: 'object',
  ttlMs: 'number',
  waitMs: 'number',
  fail: 'string',
  denyAs: 'string',
  guard: 'array',
  hide: 'boolean',
  pin: 'boolean',
  howToApprove: 'function',
  onEvent: 'function',
};

const SERVER = /^[A-Za-z0-9_-]{1,64}$/;
/** The most calls that are decided, run or wait for input at once. */
export const MAX_OPEN_CALLS = 1_000;
const DEFAULT_TTL_MS = 15 * 60_000;
/** The most answers that pass before their calls are settled on disk; of more, each waits for that. */
const MAX_SETTLING = 256;
/** The longest that a timer of Node takes. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const SESSION_BYTES = 12;
const OF_NOTHING = sha256Digest(canonicalBytes({}));
const ONE_CALL: Meter = { unit: 'calls', amount: { t: 'int', v: '1' } };
/** Why a tool is denied that no grant names; all other denials may pass. */
const UNNAMED: ReadonlySet<string> = new Set(['GRANT_NOT_FOUND', 'TOOL_NOT_ALLOWED']);

export class McpCalls {
  readonly options: McpGuardOptions;
  readonly subjects: ReadonlySet<McpSubject>;
  readonly definitions = new ToolDefinitions();
  readonly #session = encodeBase64url(randomBytes(SESSION_BYTES)).replace(/^[^A-Za-z0-9]/, 'x');
  /** All that are open. */
  readonly #calls = new Set<OpenMcpCall>();
  readonly #inputs = new Map<string, OpenMcpCall[]>();
  readonly #tasks = new Map<string, OpenMcpCall>();
  readonly #settling = new Set<Promise<void>>();
  #gate: Promise<Gate> | undefined;
  #pins: Promise<ReadonlyMap<string, string>> | undefined;
  #nextRef = 1;
  #deciding = 0;

  /** @throws TypeError, RangeError naming the malformed option */
  constructor(options: McpGuardOptions) {
    checkOptions('McpGuard', options, OPTION_TYPES);
    checkString('McpGuard', 'server', options.server);
    if (!SERVER.test(options.server))
      throw new RangeError('McpGuard: server: expected 1 to 64 letters, digits, _ and -');
    meters(options.reserve ?? {});
    this.options = options;
    this.subjects = new Set(options.guard);
  }

  /** Settles all that is open as unknown, and waits until that and all else is on disk. The gate stays open. */
  async close(): Promise<void> {
    await Promise.all([...this.#calls].map((call) => this.lose(call, 'MCP_CLOSED')));
    await this.settled();
  }

  /** Resolves when what ended is settled on disk, or cannot be. */
  async settled(): Promise<void> {
    await Promise.all(this.#settling);
  }

  /** Whether a call is not settled yet. */
  isOpen(call: OpenMcpCall): boolean {
    return this.#calls.has(call);
  }

  /** Calls that are decided, run, or wait for input. */
  get openCalls(): number {
    return this.#calls.size + this.#deciding;
  }

  /** The gate, opened once. @throws as `McpGuardOptions.open` */
  async gate(): Promise<Gate> {
    this.#gate ??= this.options.open();
    try {
      return await this.#gate;
    } catch (error) {
      this.#gate = undefined;
      throw error;
    }
  }

  tell(event: McpEvent): void {
    this.options.onEvent?.(event);
  }

  /** Decides on a call. @throws as `Gate.decide`, and as the gate is opened */
  async decide(
    asked: Pick<GuardedCall, 'tool' | 'name' | 'params'>,
    signal: AbortSignal,
    onWait: () => void,
  ): Promise<GateDecision> {
    this.#deciding += 1;
    try {
      const { tool, name, params } = asked;
      const { principal, reserve, ttlMs = DEFAULT_TTL_MS, waitMs = 0 } = this.options;
      const gate = await this.gate();
      const found = name === undefined ? undefined : await this.#findDefinition(gate, tool, name);
      signal.throwIfAborted();
      const ref = String(this.#nextRef);
      this.#nextRef += 1;
      const call: GateCall = { ref, session: this.#session, principal, tool, params, reserve, ttlMs, found };
      return await gate.decide(call, {
        signal,
        waitMs,
        onApprovalNeeded: ({ recorded, need }) => {
          const approvers = need?.approvers ?? [];
          this.tell({ event: 'waiting', tool, authorization: recorded.eventId, approvers });
          onWait();
        },
      });
    } finally {
      this.#deciding -= 1;
    }
  }

  keep(call: OpenMcpCall): void {
    this.#calls.add(call);
    this.#expire(call, this.options.ttlMs ?? DEFAULT_TTL_MS, 'MCP_NOT_ANSWERED');
  }

  /** Records how a call ended, once. Never rejects. */
  settle(call: OpenMcpCall, outcome: CallOutcome): Promise<void> {
    if (!this.#calls.delete(call)) return Promise.resolve();
    this.#forget(call);
    return call.isRecorded ? this.record(call, outcome) : Promise.resolve();
  }

  /** Whether so much is being settled that answers are to wait. */
  get isBehind(): boolean {
    return this.#settling.size > MAX_SETTLING;
  }

  /** Records an outcome under a call's id. Never rejects. */
  record(call: Pick<OpenMcpCall, 'ref' | 'tool'>, outcome: CallOutcome): Promise<void> {
    const settling = this.#record(call, outcome).finally(() => this.#settling.delete(settling));
    this.#settling.add(settling);
    return settling;
  }

  async #record({ ref, tool }: Pick<OpenMcpCall, 'ref' | 'tool'>, outcome: CallOutcome): Promise<void> {
    const { principal } = this.options;
    try {
      const gate = await this.gate();
      // A client that calls again at once has both in one write.
      await gate.settle({ ref, session: this.#session, principal }, outcome, { mayWait: true });
      this.tell({ event: 'settled', tool, outcome: outcome.outcome, code: outcome.errorCode });
    } catch (error) {
      this.tell({ event: 'unsettled', tool, code: codeOf(error) });
    }
  }

  /** How a call ended was not seen. */
  async lose(call: OpenMcpCall, errorCode: McpLoss): Promise<void> {
    const samplings = [...(call.samplings?.values() ?? [])];
    call.samplings = undefined;
    const lost: CallOutcome = { outcome: 'unknown', errorCode };
    await Promise.all([
      ...samplings.map((each) => this.record(each, lost)),
      this.settle(call, call.isComplete === true ? { outcome: 'success' } : lost),
    ]);
  }

  /** Loses a call unless it ends within so many milliseconds. */
  expireIn(call: OpenMcpCall, ms: number, code: McpLoss): void {
    if (this.#calls.has(call)) this.#expire(call, ms, code);
  }

  /** The client was asked for input: it repeats the call, with the state. */
  awaitInput(call: OpenMcpCall, state: string | undefined): void {
    if (!this.#calls.has(call)) return;
    const key = keyOfInput(call.tool, call.asked, state);
    call.state = key;
    this.#inputs.set(key, [...(this.#inputs.get(key) ?? []), call]);
    this.#expire(call, this.options.ttlMs ?? DEFAULT_TTL_MS, 'MCP_INPUT_EXPIRED');
  }

  /** The call that a repetition continues; undefined where it is a call of its own. */
  resume({ tool, digest, retry }: Pick<GuardedCall, 'tool' | 'digest' | 'retry'>): OpenMcpCall | undefined {
    if (retry === undefined) return undefined;
    const [call] = this.#inputs.get(keyOfInput(tool, digest.b64, retry.state)) ?? [];
    if (call === undefined) return undefined;
    this.#forget(call);
    this.#expire(call, this.options.ttlMs ?? DEFAULT_TTL_MS, 'MCP_NOT_ANSWERED');
    return call;
  }

  /** The call goes on as a task. */
  awaitTask(call: OpenMcpCall, id: string, ttlMs: number | undefined): void {
    // Two calls cannot be one task: which of them ends is not to be known.
    const key = keyOfText(id);
    if (this.#tasks.has(key)) void this.lose(call, 'MCP_NOT_ANSWERED');
    if (!this.#calls.has(call)) return;
    this.#tasks.set(key, call);
    const { ttlMs: own = DEFAULT_TTL_MS } = this.options;
    this.#expire(call, Math.min(own, ttlMs ?? Infinity), 'MCP_TASK_EXPIRED');
  }

  /** The call that is a task, by the key of its id; undefined for none that is open. */
  taskOf(key: string | undefined): OpenMcpCall | undefined {
    const call = key === undefined ? undefined : this.#tasks.get(key);
    return call !== undefined && this.#calls.has(call) ? call : undefined;
  }

  /** The tools of a list that grants name; undefined where nobody can say. */
  async findGranted(tools: readonly JsonValue[]): Promise<JsonValue[] | undefined> {
    try {
      const gate = await this.gate();
      const isGranted = await Promise.all(tools.map((tool) => this.#isGranted(gate, memberOf(tool, 'name'))));
      return tools.filter((_, index) => isGranted[index] === true);
    } catch {
      return undefined;
    }
  }

  async #isGranted(gate: Gate, name: JsonValue | undefined): Promise<boolean> {
    if (typeof name !== 'string' || name === '') return false;
    const { server, principal } = this.options;
    const decision = await gate.ledger.evaluate({
      toolName: escapeToolName(`mcp.${server}.${name}`),
      paramsDigest: OF_NOTHING,
      intentDigest: OF_NOTHING,
      meters: [ONE_CALL],
      ...defined({ principalId: principal }),
    });
    return decision.decision === 'allow' || !UNNAMED.has(decision.decisionCode);
  }

  #expire(call: OpenMcpCall, ms: number, code: McpLoss): void {
    clearTimeout(call.timer);
    if (!(ms < MAX_TIMER_MS)) return;
    call.timer = setTimeout(() => void this.lose(call, code), ms);
    call.timer.unref();
  }

  #forget(call: OpenMcpCall): void {
    clearTimeout(call.timer);
    if (call.state !== undefined) {
      const others = (this.#inputs.get(call.state) ?? []).filter((each) => each !== call);
      if (others.length === 0) this.#inputs.delete(call.state);
      else this.#inputs.set(call.state, others);
      call.state = undefined;
    }
    for (const [id, each] of this.#tasks) if (each === call) this.#tasks.delete(id);
  }

  async #findDefinition(gate: Gate, tool: string, name: string): Promise<GateCall['found']> {
    if (this.options.pin !== true) return this.definitions.find(name, undefined);
    this.#pins ??= readPins(gate, `mcp.${this.options.server}.`);
    const pins = await this.#pins;
    return this.definitions.find(name, pins.get(tool) ?? this.definitions.firstOf(name) ?? null);
  }
}

/** The definitions with which calls of a server's tools were last allowed, by the recorded name of the tool. */
async function readPins(gate: Gate, prefix: string): Promise<ReadonlyMap<string, string>> {
  const pins = new Map<string, string>();
  // What a store holds cannot be read by its path.
  if (!gate.ledger.isInFiles) return pins;
  for await (const { event } of readRecords(await openLedger(gate.ledger.path))) {
    if (event['event_type'] !== 'authorization' || event['decision'] !== 'allow') continue;
    const tool = memberOf(memberOf(event['authorization'], 'action'), 'tool_name');
    if (typeof tool !== 'string' || !tool.startsWith(prefix)) continue;
    const digest = recordedDefinition(event['checks']);
    if (digest !== undefined) pins.set(tool, digest);
  }
  return pins;
}

/** The code of an error, for logs: other errors may quote what was given. */
export function codeOf(error: unknown): string {
  return error instanceof NorthrootError ? printable(error.code, 64) : 'INTERNAL_ERROR';
}

function keyOfInput(tool: string, asked: string, state: string | undefined): string {
  return JSON.stringify([tool, asked, state === undefined ? null : keyOfText(state)]);
}
