/**
 * `northroot/mcp`: guards for programs that serve or call tools of the Model Context Protocol. Seen: `@modelcontextprotocol/sdk` 1.32.2,
 * `@modelcontextprotocol/server` and `client` 2.4.0. A call is recorded as `mcp.SERVER.TOOL`; a result with `isError` is a failure,
 * `MCP_TOOL_ERROR`.
 */

import {
  type CallGuardOptions,
  checkGuarded,
  checkMethod,
  type GuardingLedger,
  guardTold,
  type KitCall,
  mcpFault,
  type OnDenied,
  overriding,
  type ReadResult,
} from './shared.js';
import { checkString } from '../../base/options.js';

export type { CallGuardOptions, GuardingLedger, OnDenied } from './shared.js';

export interface McpGuardOptions extends CallGuardOptions {
  /** Default `tell`: the result of a denied call is an error with the reason. */
  readonly onDenied?: OnDenied | undefined;
}

type Handler = (...args: unknown[]) => unknown;

/** What a request brings: version 1 has the signal in it, version 2 below `mcpReq`. */
interface Extra {
  readonly signal?: AbortSignal;
  readonly mcpReq?: { readonly signal?: AbortSignal };
}

/**
 * Guards the handler of a server's tool. Each request is a call of its own.
 * @param name - `SERVER.TOOL`: a label of the server that grants name, and the tool
 * @param handler - As for `registerTool`: it gets arguments and context, or the context alone
 * @throws TypeError for a malformed argument
 * @example
 * server.registerTool('read', config, guardTool(ledger, 'files.read', handler));
 */
export function guardTool<H extends (...args: never[]) => unknown>(
  ledger: GuardingLedger,
  name: string,
  handler: H,
  options: McpGuardOptions = {},
): H {
  checkGuarded('guardTool', ledger, name, 'a handler', handler);
  const handle = handler as unknown as Handler;
  const guarded: Handler = (...args) => {
    const { signal, mcpReq } = (args.at(-1) ?? {}) as Extra;
    const call = {
      tool: `mcp.${name}`,
      params: args.length > 1 ? args[0] : {},
      signal: signal ?? mcpReq?.signal,
    };
    return guardResult(ledger, call, () => handle(...args), options);
  };
  return guarded as unknown as H;
}

export interface McpClient {
  callTool(params: never, ...rest: never[]): Promise<unknown>;
}

interface CallParams {
  readonly name: string;
  readonly arguments?: unknown;
}

/**
 * Guards a client's `callTool`; all else of the client is as it was. A call whose connection breaks or whose time is over is charged.
 * @param server - A label of the server, that grants name
 * @throws TypeError for a malformed argument
 * @example
 * const client = guardClient(ledger, 'files', connected, { reserve: { usd: '0.01' } });
 */
export function guardClient<C extends McpClient>(
  ledger: GuardingLedger,
  server: string,
  client: C,
  options: McpGuardOptions = {},
): C {
  checkMethod('guardClient', 'a ledger', ledger, 'guard');
  checkString('guardClient', 'server', server);
  checkMethod('guardClient', 'a client', client, 'callTool');
  const call = client.callTool.bind(client) as unknown as Handler;
  return overriding(client, {
    callTool: (params: CallParams, ...rest: unknown[]) => {
      const last = rest.at(-1) as { readonly signal?: AbortSignal } | undefined;
      return guardResult(
        ledger,
        {
          tool: `mcp.${server}.${params.name}`,
          params: params.arguments ?? {},
          signal: last?.signal,
          answerer: 'server',
        },
        ({ signal }) =>
          // Without a signal of its own, the last may be a schema.
          last?.signal === undefined
            ? call(params, ...rest)
            : call(params, ...rest.slice(0, -1), { ...last, signal }),
        options,
      );
    },
  });
}

function guardResult(
  ledger: GuardingLedger,
  call: KitCall,
  run: (context: { readonly signal: AbortSignal }) => unknown,
  options: McpGuardOptions,
): Promise<unknown> {
  return guardTold(ledger, call, run, readResult, options, (text) => ({
    content: [{ type: 'text', text }],
    isError: true,
  }));
}

function readResult(result: unknown): ReadResult {
  if (typeof result !== 'object' || result === null) return { output: result };
  const { _meta, ...output } = result as Readonly<Record<string, unknown>>;
  void _meta;
  return { output, fault: mcpFault(result) };
}
