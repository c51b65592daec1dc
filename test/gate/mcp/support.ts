/** What the tests of MCP share: a guard over a new ledger, and messages given to it as a client and a server would. */

import { onTestFinished } from 'vitest';
import type { GateOptions } from '../../../src/gate/gate.js';
import type { McpEvent, McpGuardOptions } from '../../../src/gate/mcp/mcp-calls.js';
import { McpGuard } from '../../../src/gate/mcp/mcp-guard.js';
import type { McpHandling, McpLink, McpStep } from '../../../src/gate/mcp/mcp-link.js';
import type { GrantOptions } from '../../../src/log/policy/draft-grant.js';
import { type Event, grant, openLive, type Place } from '../../agent/support.js';
import { reopen } from '../support.js';

export interface Peers {
  readonly guard: McpGuard;
  readonly link: McpLink;
  readonly events: McpEvent[];
  /**
   * Gives a message of the client, and waits until what it ends is settled.
   * @returns What became of it: `>` and the message forwarded, `<` and the answer, or `dropped`
   */
  readonly client: (message: unknown) => Promise<Became>;
  readonly server: (message: unknown) => Promise<Became>;
}

export type Became = 'dropped' | readonly ['>' | '<', Record<string, never>];

/** A guard of the server `s`, and a grant of its tools for the agent. */
export async function openGuard(
  place: Place,
  options: Partial<McpGuardOptions> = {},
  bounds: Partial<GrantOptions> = {},
  gateOptions: GateOptions = {},
): Promise<Peers> {
  const ledger = await openLive(place);
  await grant(ledger, { allowedTools: ['mcp.s.*', 'llm.mcp/s'], meterCaps: { calls: 10 }, ...bounds });
  await ledger.close();
  return guardOver(place, options, gateOptions);
}

/** Another guard over the same ledger, as another process would have it. */
export function guardOver(
  place: Place,
  options: Partial<McpGuardOptions> = {},
  gateOptions: GateOptions = {},
): Peers {
  const events: McpEvent[] = [];
  const guard = new McpGuard({
    open: () => reopen(place, { coverage: 'proxy', ...gateOptions }),
    server: 's',
    onEvent: (event) => events.push(event),
    ...options,
  });
  onTestFinished(() => guard.close());
  const link = guard.connect();
  const settled = async ({ step }: McpHandling): Promise<Became> => {
    const done = await step;
    await guard.settled();
    return became(done);
  };
  const client = (message: unknown): Promise<Became> => settled(link.fromClient(bytesOf(message)));
  const server = (message: unknown): Promise<Became> => settled(link.fromServer(bytesOf(message)));
  return { guard, link, events, client, server };
}

export function bytesOf(message: unknown): Uint8Array {
  if (message instanceof Uint8Array) return message;
  return Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
}

export function became(step: McpStep): Became {
  if (step.kind === 'drop') return 'dropped';
  const text = Buffer.from(step.message).toString();
  return [step.kind === 'forward' ? '>' : '<', tryJson(text)];
}

export async function stepOf({ step }: McpHandling): Promise<Became> {
  return became(await step);
}

function tryJson(text: string): Record<string, never> {
  try {
    return JSON.parse(text) as Record<string, never>;
  } catch {
    return { text } as unknown as Record<string, never>;
  }
}

export const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A call of a tool. */
export function call(id: unknown, name: string, args?: unknown, more: object = {}): object {
  return {
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, ...(args === undefined ? {} : { arguments: args }), ...more },
  };
}

export function result(id: unknown, value: object): object {
  return { jsonrpc: '2.0', id, result: value };
}

export const TEXT = { content: [{ type: 'text', text: 'ok' }] };

/** The kinds of a ledger's events since its grant, with how each ended. */
export function story(place: Place): string[] {
  return place
    .events()
    .slice(2)
    .map((event) => tellOf(event));
}

function tellOf({ event_type: type, decision, outcome, error_code: code }: Event): string {
  if (type === 'authorization') return decision ?? '';
  if (type === 'x.northroot.start') return 'start';
  return [outcome ?? type, code].filter((each) => each !== undefined).join(' ');
}
