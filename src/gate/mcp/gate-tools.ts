/**
 * The gate's own tools, as a server of MCP: what an agent may ask about its own grants and calls, and how it asks for an approval. Both eras
 * are spoken. An agent is told of nothing but its own.
 */

import { NorthrootError } from '../../base/error.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { formatDigest, sha256Digest } from '../../base/value/digest.js';
import { escapeToolName, isToolName } from '../../base/value/tool.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { decimalsOf } from '../../rules/report/accounts.js';
import type { ApprovalNeed } from '../../log/policy/choose-approvals.js';
import type { Gate } from '../gate.js';
import { memberOf } from './json-rpc.js';
import { refused, serveTools, type ServeToolsOptions, type Told, ToolServer } from './tool-server.js';

export interface GateToolsOptions {
  /** Opens the gate, at the first call of a tool; where it fails, once more at the next. */
  readonly open: () => Promise<Gate>;
  /** Of whom it tells, and for whom it asks. */
  readonly principal: string;
  readonly trust?: TrustPolicy | undefined;
  /** How to approve a request, in words. */
  readonly howToApprove?: ((authorization: string) => string) | undefined;
}

export interface ServeGateToolsOptions extends GateToolsOptions, ServeToolsOptions {}

const INSTRUCTIONS =
  'Ask budget what is left before costly work, why of a call that was denied, and request_approval before a call that needs a person.';
const MAX_GRANTS = 100;
const MAX_ID = 200;

const TOOLS = [
  {
    name: 'budget',
    title: 'What is left',
    description:
      'Tells what your grants allow: for each the cap, and the amounts used, reserved and left, by unit, and until when it holds.',
    inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'why',
    title: 'What was decided of a call',
    description:
      'Tells what the ledger says of one of your calls: whether it was allowed, by which checks, under which grant, and how it ended.',
    inputSchema: {
      type: 'object',
      properties: { id: { type: 'string', description: 'the id of its authorization, sha-256:…' } },
      required: ['id'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'request_approval',
    title: 'Ask for an approval',
    description:
      'Asks that a person approve one call, before you make it. Give exactly the tool and the arguments of the call. When it is approved, make that same call once.',
    inputSchema: {
      type: 'object',
      properties: {
        tool: { type: 'string', description: 'as grants name it, such as mcp.files.write' },
        arguments: { type: 'object', description: 'the arguments of the call' },
      },
      required: ['tool'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  },
];

/**
 * Serves the tools over stdio until the input ends or the signal is aborted: messages are lines, answered in order.
 * @param input - Default: standard input
 * @param maxMessageBytes - Default 16 MiB
 */
export async function serveGateTools({
  input,
  output,
  maxMessageBytes,
  signal,
  ...options
}: ServeGateToolsOptions): Promise<void> {
  await serveTools(new GateTools(options), { input, output, maxMessageBytes, signal });
}

export class GateTools {
  readonly #options: GateToolsOptions;
  readonly #server: ToolServer;
  #opened: Promise<Gate> | undefined;

  constructor(options: GateToolsOptions) {
    this.#options = options;
    this.#server = new ToolServer({
      tools: TOOLS,
      instructions: INSTRUCTIONS,
      call: (name, given) => this.#call(name, given),
    });
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

  /** Answers one message. @returns Undefined where none is due. Never rejects. */
  answer(message: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#server.answer(message);
  }

  async #call(name: JsonValue | undefined, given: JsonValue): Promise<Told | undefined> {
    const tool = TOOLS.find((each) => each.name === name);
    if (tool === undefined) return undefined;
    if (!isJsonObject(given)) return refused('USAGE', 'arguments: expected an object');
    const known = Object.keys(tool.inputSchema.properties);
    if (!Object.keys(given).every((each) => known.includes(each)))
      return refused('USAGE', `arguments: expected only ${known.join(', ') || 'none'}`);
    try {
      switch (tool.name) {
        case 'budget':
          return await this.#budget();
        case 'why':
          return await this.#why(memberOf(given, 'id'));
        default:
          return await this.#requestApproval(memberOf(given, 'tool'), memberOf(given, 'arguments') ?? {});
      }
    } catch (error) {
      if (!(error instanceof NorthrootError))
        return refused('INTERNAL_ERROR', 'the ledger could not be asked');
      return refused(error.code, error.message);
    }
  }

  async #budget(): Promise<Told> {
    const { principal } = this.#options;
    const gate = await this.#gate();
    const all = await gate.ledger.budget();
    const own = all.filter(({ principalId }) => principalId === principal);
    const grants = own.slice(-MAX_GRANTS).map((grant) => ({
      grant: grant.eventId,
      ...(grant.expiresAt === undefined ? {} : { expires_at: grant.expiresAt }),
      ...(grant.withdrawn === undefined ? {} : { withdrawn: true }),
      units: decimalsOf(grant.balances, grant.actionCaps),
      running: grant.started.length,
    }));
    return {
      value: {
        principal,
        grants,
        ...(own.length > grants.length ? { left_out: own.length - grants.length } : {}),
      },
    };
  }

  async #why(id: JsonValue | undefined): Promise<Told> {
    if (typeof id !== 'string' || id === '' || id.length > MAX_ID)
      return refused('USAGE', 'id: expected sha-256:…');
    const { principal, trust } = this.#options;
    const gate = await this.#gate();
    const missing = refused('EVENT_NOT_FOUND', 'none of your calls has this id');
    let history;
    try {
      history = await gate.ledger.view({ trust }).explainEvent(id);
    } catch (error) {
      // Whether others have such an event is not told.
      if (error instanceof NorthrootError && MISSING.has(error.code)) return missing;
      throw error;
    }
    const { event, event_id: eventId, seq, verdict, executions } = history;
    if (event['principal_id'] !== principal) return missing;
    return {
      value: {
        id: eventId,
        seq,
        verdict,
        event: pick(event, [
          'event_type',
          'occurred_at',
          'decision',
          'decision_code',
          'checks',
          'authorization',
          'tool_name',
          'outcome',
          'error_code',
          'meter_used',
        ]),
        executions: executions.map((each) =>
          pick(each.event, ['outcome', 'error_code', 'ended_at', 'meter_used']),
        ),
      },
    };
  }

  async #requestApproval(tool: JsonValue | undefined, params: JsonValue): Promise<Told> {
    if (typeof tool !== 'string' || tool === '') return refused('USAGE', 'tool: expected the name of a tool');
    if (!isJsonObject(params)) return refused('USAGE', 'arguments: expected an object');
    const { principal, howToApprove } = this.#options;
    const gate = await this.#gate();
    const call = { tool: isToolName(tool) ? tool : escapeToolName(tool), params, principal, start: false };
    // What needs no approval is not reserved by asking.
    const answer = await gate.ask(call);
    if (answer.effect === 'deny') return refused(answer.code, answer.reason ?? 'the call would be denied');
    const needless = { value: { status: 'not_needed', tool: call.tool } };
    if (answer.effect !== 'ask') return needless;
    const told = (request: string, need: ApprovalNeed | undefined): Told => ({
      value: {
        status: 'waiting',
        request,
        tool: call.tool,
        approvers: need?.approvers ?? [],
        count: need?.count ?? 1,
        ...(howToApprove === undefined ? {} : { how: howToApprove(request) }),
      },
    });
    // Asked for before, by this tool or by the call itself.
    const digest = formatDigest(sha256Digest(canonicalBytes(params)));
    const asked = await gate.ledger.waitingRequest({
      principalId: principal,
      toolName: call.tool,
      paramsDigest: digest,
    });
    if (asked !== undefined) return told(asked.eventId, asked.need);
    const decision = await gate.decide(call);
    if (decision.effect === 'deny')
      return refused(decision.code, decision.reason ?? 'the call would be denied');
    if (decision.effect !== 'ask') {
      // Approved between the two.
      await gate.release({ ref: decision.ref, principal });
      return needless;
    }
    return told(decision.authorization, decision.need);
  }
}

/** Why a record cannot be found. */
const MISSING: ReadonlySet<string> = new Set(['RECORD_NOT_FOUND', 'RECORD_AMBIGUOUS', 'USAGE']);

function pick(event: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => (event[name] === undefined ? [] : [[name, event[name]]])),
  );
}
