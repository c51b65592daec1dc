/**
 * A kernel's tools as a server of MCP: each call is decided by a gate, done, and settled, before its result is given. For agents whose own
 * tools are switched off, so that they act through this alone.
 */

import { randomUUID } from 'node:crypto';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import type { JsonValue } from '../../base/json/value.js';
import { ContentFolder } from '../../log/contents/content-folder.js';
import type { Gate, GateCall, GateDecision } from '../gate.js';
import { refused, serveTools, type ServeToolsOptions, type Told, ToolServer } from '../mcp/tool-server.js';
import {
  isDenied,
  type KernelDenial,
  type KernelPlan,
  type KernelResult,
  type KernelToolName,
  type KernelTools,
} from './kernel-tool.js';
import { replan } from './replan.js';

export interface ServeKernelToolsOptions extends ServeToolsOptions {
  readonly tools: KernelTools;
  /** Opens the gate, at the first call of a tool; where it fails, once more at the next. */
  readonly open: () => Promise<Gate>;
  readonly principal: string;
  /** How long to wait for an approval, in milliseconds. Default: it is not waited for. */
  readonly waitMs?: number | undefined;
  /** Keeps what calls gave in `LEDGER.contents` too, for who audits. Default false. */
  readonly attach?: boolean | undefined;
  /** How to approve a request, in words. */
  readonly howToApprove?: ((authorization: string) => string) | undefined;
  /** Told of each call after it was decided, and of one whose end could not be recorded. */
  readonly onEvent?: ((event: KernelEvent) => void) | undefined;
}

export type KernelEvent =
  | { readonly event: 'decided'; readonly tool: KernelToolName; readonly decision: GateDecision }
  | { readonly event: 'unsettled'; readonly tool: KernelToolName; readonly code: string };

const OPTION_TYPES: OptionTypes<ServeKernelToolsOptions> = {
  tools: 'object',
  open: 'function',
  principal: 'string',
  waitMs: 'number',
  attach: 'boolean',
  howToApprove: 'function',
  onEvent: 'function',
  input: 'object',
  output: 'object',
  maxMessageBytes: 'number',
  signal: 'signal',
};

/** How much longer than its reservation a call may stay open, in milliseconds: what it did is still to be recorded. */
const SETTLING_MS = 30_000;
const INSTRUCTIONS =
  'These tools are all that you can act by. Paths are relative to one folder. A call that is denied says why; do not try it again unchanged.';
const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Serves a kernel's tools over stdio until the input ends or the signal is aborted; what runs then is ended, and settled. The names are
 * those of the tools with `_` for `.`, as some clients take no other: `fs_read`.
 * @throws TypeError for malformed options
 */
export async function serveKernelTools(options: ServeKernelToolsOptions): Promise<void> {
  checkOptions('serveKernelTools', options, OPTION_TYPES);
  const { input, output, maxMessageBytes, signal } = options;
  const server = new KernelServer(options);
  await serveTools(server, { input, output, maxMessageBytes, signal });
}

class KernelServer {
  readonly #options: ServeKernelToolsOptions;
  readonly #server: ToolServer;
  /** What its calls' ids are unique in. The client's own are not taken: it may use one twice. */
  readonly #session = randomUUID();
  #count = 0;
  #opened: Promise<Gate> | undefined;

  constructor(options: ServeKernelToolsOptions) {
    this.#options = options;
    this.#server = new ToolServer({
      tools: options.tools.definitions.map((each) => ({ ...each, name: toMcpName(each.name) })),
      instructions: INSTRUCTIONS,
      call: (name, given) => this.#call(name, given),
    });
  }

  answer(message: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#server.answer(message);
  }

  async #gate(): Promise<Gate> {
    this.#opened ??= this.#options.open();
    try {
      return await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  async #call(name: JsonValue | undefined, params: JsonValue): Promise<Told | undefined> {
    const tool = this.#options.tools.names.find((each) => toMcpName(each) === name);
    if (tool === undefined) return undefined;
    try {
      return await this.#act(await this.#gate(), tool, params);
    } catch (error) {
      if (error instanceof TypeError || error instanceof RangeError)
        return refused('INVALID_ARGUMENTS', 'the arguments have no canonical form');
      if (!(error instanceof NorthrootError)) throw error;
      return refused(error.code, 'the ledger could not be asked, so nothing was done');
    }
  }

  async #act(gate: Gate, tool: KernelToolName, params: JsonValue): Promise<Told> {
    const { tools, principal, waitMs, signal, howToApprove, onEvent } = this.#options;
    this.#count += 1;
    const call = { ref: String(this.#count), session: this.#session, principal };
    let plan = tools.plan(tool, params);
    const asked = { ...call, tool, params, coverage: 'kernel' as const, ...toCall(plan, tools) };
    const decision = await gate.decide(asked, {
      signal,
      ...(waitMs === undefined ? {} : { waitMs }),
    });
    onEvent?.({ event: 'decided', tool, decision });
    if (decision.effect === 'ask') {
      const how = howToApprove === undefined ? '' : `: ${howToApprove(decision.authorization)}`;
      return refused(decision.code, `it must be approved first${how}`);
    }
    if (decision.effect === 'deny') return refused(decision.code, decision.reason ?? 'it is denied');
    if (decision.effect === 'rewrite') plan = replan(plan, tools.plan(tool, decision.params));
    const result = isDenied(plan) ? toResult(plan) : await plan.run(signal);
    try {
      await this.#settle(gate, call, result);
    } catch (error) {
      const code = error instanceof NorthrootError ? error.code : 'INTERNAL_ERROR';
      onEvent?.({ event: 'unsettled', tool, code });
      return refused(code, 'what it did could not be recorded, so its result is not given');
    }
    return isDenied(plan) ? refused(plan.denied, plan.reason) : toTold(result);
  }

  async #settle(
    gate: Gate,
    call: { readonly ref: string; readonly session: string; readonly principal: string },
    { outcome, errorCode, used, output }: KernelResult,
  ): Promise<void> {
    // What it gave is kept before it is named; how it ended is recorded in any case.
    const kept =
      this.#options.attach === true
        ? new ContentFolder(gate.ledger.path).write(output)
        : Promise.resolve(undefined);
    const [isKept] = await Promise.allSettled([kept]);
    await gate.settle(call, { outcome, errorCode, used, output, meterBasis: 'measured' });
    if (isKept.status === 'rejected') throw isKept.reason;
  }
}

/** What a plan adds to a call. */
function toCall(
  plan: KernelPlan | KernelDenial,
  { isolation }: KernelTools,
): Pick<GateCall, 'reserve' | 'resources' | 'ttlMs' | 'found'> {
  const checks = [{ check: 'isolation', result: 'pass', code: isolation.toUpperCase() } as const];
  if (isDenied(plan)) {
    const { denied: code, reason } = plan;
    return {
      found: { checks: [...checks, { check: 'kernel', result: 'fail', code }], denial: { code, reason } },
    };
  }
  const { reserve, resources } = plan;
  return { reserve, resources, ttlMs: Number(reserve['time.ms']) + SETTLING_MS, found: { checks } };
}

/** A call that was allowed and cannot be done. */
function toResult({ denied }: KernelDenial): KernelResult {
  return {
    outcome: 'failure',
    errorCode: denied,
    output: new TextEncoder().encode(JSON.stringify({ error: denied })),
    used: { calls: 1, 'time.ms': 0, 'bytes.evidence': 0 },
  };
}

function toTold({ outcome, output }: KernelResult): Told {
  return { text: textOf(output), ...(outcome === 'success' ? {} : { isError: true }) };
}

/** What is no text is given as base64, and says so. */
function textOf(output: Uint8Array): string {
  try {
    return DECODER.decode(output);
  } catch {
    return `base64: ${Buffer.from(output).toString('base64')}`;
  }
}

function toMcpName(name: string): string {
  return name.replaceAll('.', '_');
}
