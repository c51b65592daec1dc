/** Guards of tools keep the same promises in every SDK. The callers here do as the SDKs of the named versions were seen to do. */

/* eslint-disable @typescript-eslint/require-await -- the SDKs that are imitated here are asynchronous */

import { guardTools } from '../../../src/gate/sdk/ai.js';
import { guardMiddleware } from '../../../src/gate/sdk/langchain.js';
import { guardClient, guardTool as guardMcpTool } from '../../../src/gate/sdk/mcp.js';
import { guardExecute, guardTool as guardAgentTool } from '../../../src/gate/sdk/openai-agents.js';
import { Gate } from '../../../src/gate/gate.js';
import { AGENT } from '../../agent/support.js';
import { approvingAi, hookedClaude, ToolMessage } from './fakes.js';
import { describeKit } from './kit.js';

const messageOf = (error: unknown): string => {
  const { code = '', message } = error as { code?: string; message: string };
  return `${code} ${message}`;
};

const mcpResult = (path: string): object => ({ content: [{ type: 'text', text: path }] });
const mcpFault = {
  value: { isError: true, content: [{ type: 'text', text: 'no' }] },
  code: 'MCP_TOOL_ERROR',
};

describeKit('ai: execute', {
  tool: 'read',
  fault: mcpFault,
  make: (ledger, body) => {
    const { read } = guardTools(ledger, {
      read: {
        description: 'reads',
        execute: ({ path }: { path: string }, { abortSignal }: { abortSignal: AbortSignal }): unknown =>
          body(path, abortSignal),
      },
    });
    return {
      call: async (path, abortSignal) => {
        try {
          return { value: await read.execute({ path }, { abortSignal } as never) };
        } catch (error) {
          return { told: messageOf(error) };
        }
      },
    };
  },
});

describeKit('ai: execute that gives results in pieces', {
  tool: 'read',
  make: (ledger, body) => {
    const { read } = guardTools(ledger, {
      read: {
        execute: async function* ({ path }: { path: string }, how: { abortSignal: AbortSignal }) {
          yield 'at work';
          yield await body(path, how.abortSignal);
        },
      },
    });
    return {
      call: async (path, abortSignal) => {
        let value: unknown;
        try {
          for await (value of read.execute({ path }, { abortSignal } as never));
          return { value };
        } catch (error) {
          return { told: messageOf(error) };
        }
      },
    };
  },
});

describeKit('ai: approval', {
  tool: 'read',
  // The SDK tells how a call ended, and its signal tells nobody.
  aborted: false,
  fault: mcpFault,
  make: (ledger, body) => approvingAi(new Gate(ledger), { principal: AGENT }, body),
});

describeKit('langchain', {
  tool: 'read',
  fault: {
    value: new ToolMessage({ content: 'no', tool_call_id: 'c', name: 'read', status: 'error' }),
    code: 'TOOL_ERROR',
  },
  resultOf: (path) => new ToolMessage({ content: path, tool_call_id: 'c', name: 'read' }),
  outputOf: (value) => (value as ToolMessage).content,
  make: (ledger, body) => {
    const { wrapToolCall } = guardMiddleware(ledger, { ToolMessage });
    return {
      call: async (path, signal) => {
        const request = { toolCall: { id: 'c', name: 'read', args: { path } }, runtime: { signal } };
        const value = (await wrapToolCall?.(request, async () => body(path, signal))) as ToolMessage;
        // What the middleware made itself is told; what the tool made is handed on.
        const isOwn = value.status === 'error' && value.content !== 'no';
        return isOwn ? { told: value.content } : { value };
      },
    };
  },
});

/** What the SDK makes of an error by itself. */
const ERROR_TEXT = 'An error occurred while running the tool. Please try again.';

describeKit('openai-agents: execute', {
  tool: 'read',
  make: (ledger, body) => {
    type Details = { signal?: AbortSignal | undefined };
    const execute = guardExecute(
      ledger,
      'read',
      ({ path }: { path: string }, _context: unknown, details?: Details): unknown =>
        body(path, details?.signal),
    );
    return {
      call: async (path, signal) => {
        const value = await Promise.resolve(execute({ path }, {}, { signal })).catch(() => ERROR_TEXT);
        return isTold(value) ? { told: value } : { value };
      },
    };
  },
});

describeKit('openai-agents: a tool that was made elsewhere', {
  tool: 'read',
  // The error has become a text by then.
  thrown: 'failure TOOL_ERROR',
  aborted: false,
  make: (ledger, body) => {
    const made = guardAgentTool(ledger, {
      type: 'function',
      name: 'read',
      invoke: async (_: unknown, input: string, details?: { signal?: AbortSignal | undefined }) => {
        try {
          return await body((JSON.parse(input) as { path: string }).path, details?.signal);
        } catch {
          return ERROR_TEXT;
        }
      },
    });
    return {
      call: async (path, signal) => {
        const value = await made.invoke({}, JSON.stringify({ path }), { signal });
        return isTold(value) ? { told: value } : { value };
      },
    };
  },
});

function isTold(value: unknown): value is string {
  return typeof value === 'string' && (value === ERROR_TEXT || value.endsWith('The call was not run.'));
}

for (const [version, extraOf] of [
  ['version 1', (signal?: AbortSignal) => ({ signal })],
  ['version 2', (signal?: AbortSignal) => ({ mcpReq: { signal } })],
] as const)
  describeKit(`mcp: a server's handler, ${version}`, {
    tool: 'mcp.files.read',
    fault: mcpFault,
    resultOf: mcpResult,
    make: (ledger, body) => {
      const handler = guardMcpTool(
        ledger,
        'files.read',
        async ({ path }: { path: string }, extra: object) => {
          return (await body(path, (extra as { signal?: AbortSignal }).signal)) as object;
        },
      );
      return {
        call: async (path, signal) => toldOf(await handler({ path }, extraOf(signal)).catch(toResult)),
      };
    },
  });

describeKit('mcp: a client', {
  tool: 'mcp.files.read',
  // The server may have done it.
  thrown: 'unknown',
  fault: mcpFault,
  resultOf: mcpResult,
  make: (ledger, body) => {
    class Client {
      readonly #body = body;
      async callTool(
        { arguments: { path } }: { name: string; arguments: { path: string } },
        how?: { signal?: AbortSignal },
      ): Promise<object> {
        return (await this.#body(path, how?.signal)) as object;
      }
    }
    const client = guardClient(ledger, 'files', new Client());
    return {
      call: async (path, signal) => {
        const how = signal === undefined ? [] : [{ signal }];
        return toldOf(await client.callTool({ name: 'read', arguments: { path } }, ...how).catch(toResult));
      },
    };
  },
});

/** A server makes a result of what a handler throws. */
function toResult(error: unknown): object {
  return { isError: true, content: [{ type: 'text', text: `thrown: ${messageOf(error)}` }] };
}

function toldOf(result: object): { value?: unknown; told?: string } {
  const { isError, content } = result as { isError?: boolean; content: { text: string }[] };
  const text = content[0]?.text ?? '';
  return isError === true && text !== 'no' ? { told: text } : { value: result };
}

describeKit('claude-agent', {
  tool: 'read',
  thrown: 'failure EXIT_3',
  aborted: 'unknown INTERRUPTED',
  fault: mcpFault,
  make: (ledger, body) => hookedClaude(new Gate(ledger), { principal: AGENT }, body),
});
