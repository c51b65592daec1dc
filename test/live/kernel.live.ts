/**
 * Real coding agents without tools of their own, with scripted models, as black boxes and as clients of the kernel's tools:
 * `npm run test:live`. Skipped, and said so, where they cannot run.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, northroot, ROOT } from './peers.js';
import { findObstacle, HOSTS, type LiveHost, PEERS } from './run-host.js';

const obstacle = findObstacle();
if (obstacle !== undefined) console.warn(`skipped: ${obstacle}`);

const CLAUDE = join(PEERS, HOSTS['claude-code'].bin);

/** A picture of one point. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** They ask nobody but the model. */
const QUIET = {
  DISABLE_AUTOUPDATER: '1',
  DISABLE_TELEMETRY: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  GEMINI_CLI_TRUST_WORKSPACE: 'true',
};

/** Claude Code asks its model before its servers are ready, unless it is told to wait. */
const WAITS = { MCP_CONNECTION_NONBLOCKING: '0', MCP_CONNECT_TIMEOUT_MS: '120000' };

/** What the model was sent: its tools, and its last message. */
interface Asked {
  readonly tools: readonly string[];
  readonly last: string;
}

interface ToolUse {
  readonly tool: string;
  /** A text for a tool that takes no JSON. */
  readonly input: object | string;
}

type Said = string | ToolUse;
/** A model: what it says, or the tool that it calls, after so many turns. */
type Model = (messages: string, turn: number) => Said;

/** Asks for a file in a line of text, and is done when it has read it. */
const askInText: Model = (messages) => {
  const [, nonce] = /⟦TI1 ([0-9a-f]{16})⟧ REQUEST_ID/.exec(messages) ?? [];
  const [, excerpt] = /⟦TX1 [0-9a-f]{16}⟧ q1 ([A-Za-z0-9_-]+)/.exec(messages) ?? [];
  if (nonce === undefined) return 'ok';
  if (excerpt !== undefined) return `It says ${Buffer.from(excerpt, 'base64url').toString()}.\n{"done":true}`;
  return `Let me look.\n⟦TI1 ${nonce}⟧ q1 fs.read ${Buffer.from('{"path":"notes.txt"}').toString('base64url')}`;
};

/** Calls tools, one after the other, before it goes on. */
const callFirst =
  (steps: readonly ToolUse[], next: Model): Model =>
  (messages, turn) =>
    steps[turn] ?? next(messages, turn);

/** How a model is asked, by a part of the path, and how it answers. */
interface Api {
  readonly path: string;
  tools(body: Body): readonly string[];
  messages(body: Body): readonly unknown[] | undefined;
  events(answer: Said, id: string): readonly object[];
}

interface Tool {
  readonly name?: string;
  readonly functionDeclarations?: readonly { readonly name: string }[];
}

interface Body {
  readonly tools?: readonly Tool[];
  readonly messages?: readonly unknown[];
  readonly input?: readonly unknown[];
  readonly contents?: readonly unknown[];
}

const namesOf = (tools: readonly Tool[] = []): string[] => tools.flatMap(({ name }) => name ?? []).sort();
const USAGE = { input_tokens: 11, output_tokens: 7 };

const APIS: readonly Api[] = [
  {
    path: '/v1/messages',
    tools: ({ tools }) => namesOf(tools),
    messages: ({ messages }) => messages,
    events: (answer, id) => {
      const isText = typeof answer === 'string';
      const message = { id, type: 'message', role: 'assistant', model: 'm', content: [], usage: USAGE };
      const block = isText
        ? { type: 'text', text: '' }
        : { type: 'tool_use', id: `toolu_${id}`, name: answer.tool, input: {} };
      const delta = isText
        ? { type: 'text_delta', text: answer }
        : { type: 'input_json_delta', partial_json: JSON.stringify(answer.input) };
      const end = { stop_reason: isText ? 'end_turn' : 'tool_use', stop_sequence: null };
      return [
        { type: 'message_start', message: { ...message, stop_reason: null, stop_sequence: null } },
        { type: 'content_block_start', index: 0, content_block: block },
        { type: 'content_block_delta', index: 0, delta },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: end, usage: USAGE },
        { type: 'message_stop' },
      ];
    },
  },
  {
    path: '/v1/responses',
    tools: ({ tools }) => namesOf(tools),
    messages: ({ input }) => input,
    events: (answer, id) => [
      { type: 'response.created', response: { id } },
      { type: 'response.output_item.done', output_index: 0, item: itemOf(answer, id) },
      { type: 'response.completed', response: { id, usage: { ...USAGE, total_tokens: 18 } } },
    ],
  },
  {
    path: ':streamGenerateContent',
    tools: ({ tools = [] }) => namesOf(tools.flatMap((each) => each.functionDeclarations ?? [])),
    messages: ({ contents }) => contents,
    events: (answer) => {
      const part =
        typeof answer === 'string'
          ? { text: answer }
          : { functionCall: { name: answer.tool, args: answer.input } };
      const content = { role: 'model', parts: [part] };
      const usageMetadata = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };
      return [{ candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata }];
    },
  },
];

function itemOf(answer: Said, id: string): object {
  if (typeof answer === 'string')
    return { type: 'message', id, role: 'assistant', content: [{ type: 'output_text', text: answer }] };
  const { tool: name, input } = answer;
  const call = { id, call_id: `call_${id}`, name };
  return typeof input === 'string'
    ? { type: 'custom_tool_call', ...call, input }
    : { type: 'function_call', ...call, arguments: JSON.stringify(input) };
}

async function serveModel(model: Model, asked: Asked[]): Promise<Server> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      const { method, url = '' } = request;
      const api = APIS.find(({ path }) => url.includes(path) && !url.includes('count'));
      if (api === undefined || method !== 'POST') {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"input_tokens":10,"totalTokens":10,"data":[],"models":[]}');
        return;
      }
      const sent = JSON.parse(body) as Body;
      const messages = api.messages(sent) ?? [];
      const turn = asked.push({ tools: api.tools(sent), last: JSON.stringify(messages.at(-1)) });
      const events = api.events(model(JSON.stringify(messages), turn - 1), `m${turn}`);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const event of events) {
        const type = 'type' in event ? `event: ${String(event.type)}\n` : '';
        response.write(`${type}data: ${JSON.stringify(event)}\n\n`);
      }
      response.end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** The last arguments of Codex: where the model is, instead of those of its settings, which it does not read. */
const codexArgs = (url: string): string[] =>
  [
    'model=gpt-5.5',
    'model_provider=mock',
    `model_providers.mock={name="mock",base_url="${url}/v1",wire_api="responses"}`,
  ].flatMap((each) => ['-c', each]);

/** What the profile of an agent must be told here: where the agent and its model are. */
const AGENTS: Readonly<Record<LiveHost, (url: string) => { env: Record<string, string>; args: string[] }>> = {
  'claude-code': (url) => ({ env: { ANTHROPIC_API_KEY: 'dummy', ANTHROPIC_BASE_URL: url }, args: [] }),
  codex: (url) => ({ env: { CODEX_API_KEY: 'dummy' }, args: codexArgs(url) }),
  gemini: (url) => ({
    env: { GEMINI_API_KEY: 'dummy', GOOGLE_GEMINI_BASE_URL: url },
    args: ['-m', 'gemini-2.5-flash'],
  }),
};

interface Profile {
  readonly args_template: readonly string[];
  readonly env_template: readonly (readonly [string, string])[];
  readonly version_probe: { readonly command: string; readonly regex: string };
}

async function ended(child: ChildProcess): Promise<{ status: number | null; said: string }> {
  let said = '';
  for (const output of [child.stdout, child.stderr])
    output?.on('data', (piece: Buffer) => (said += piece.toString()));
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, said };
}

describe.skipIf(obstacle !== undefined)('agents without tools', () => {
  let folder: string;
  const at = (name: string): string => join(folder, name);
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'northroot-live-'));
    mkdirSync(at('work'));
    writeFileSync(at('work/notes.txt'), 'buy milk');
    northroot('init', at('ledger.jsonl'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs a program of an agent with a model that answers so; what the model was asked. */
  async function runWith(
    host: LiveHost,
    model: Model,
    makeCommand: (url: string) => readonly [string, ...string[]],
  ): Promise<readonly Asked[]> {
    const asked: Asked[] = [];
    const server = await serveModel(model, asked);
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const env = { ...process.env, ...QUIET, ...WAITS, HOME: folder, ...AGENTS[host](url).env };
      const [command, ...args] = makeCommand(url);
      const child = spawn(command, args, { cwd: at('work'), env, stdio: ['ignore', 'pipe', 'pipe'] });
      const { status, said } = await ended(child);
      expect(status, said).toBe(0);
      return asked;
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  /** Runs an agent by its profile of examples/, with the task to read the notes. */
  function runBox(host: LiveHost, model: Model): Promise<readonly Asked[]> {
    return runWith(host, model, (url) => {
      const { env, args } = AGENTS[host](url);
      const file = join(ROOT, `examples/agent-profiles/${host}.json`);
      const profile = JSON.parse(readFileSync(file, 'utf8')) as Profile;
      const command = join(PEERS, host === 'claude-code' ? HOSTS[host].bin : `node_modules/.bin/${host}`);
      const names = ['PATH', 'HOME', ...Object.keys(QUIET), ...Object.keys(env)];
      const prompt = profile.args_template.indexOf('{prompt}');
      const changed = {
        ...profile,
        command,
        // The prompt of Codex is its last argument, and that of Gemini follows its option.
        args_template:
          host === 'codex'
            ? [...profile.args_template.slice(0, prompt), ...args, '{prompt}']
            : [...profile.args_template, ...args],
        env_template: names.map((name) => [name, `\${${name}}`]),
        version_probe: { ...profile.version_probe, command: `${command} --version` },
      };
      writeFileSync(at('profile.json'), JSON.stringify(changed));
      return [
        ...([process.execPath, CLI, 'run-agent', at('ledger.jsonl')] as const),
        ...['--profile', at('profile.json'), '--workspace', at('work'), '--episode', 'e1'],
        ...['--task', 'read the notes', '--excerpt', '16KiB'],
      ];
    });
  }

  function expectRead(): void {
    const record = at('ledger.jsonl.episodes/e1/record');
    expect(readFileSync(join(record, 'log.txt'), 'utf8')).toContain('It says buy milk.\n{"done":true}\n');
    expect(readdirSync(at('work'))).toEqual(['notes.txt']);
    expect(northroot('verify', at('ledger.jsonl'))).toMatch(/^ok /);
    expect(northroot('check', '--as', 'episode', record)).toMatch(/^ok /m);
  }

  it('Claude Code asks in its text, and reads the answer as its next message', async () => {
    const asked = await runBox('claude-code', askInText);
    expect(asked.map(({ tools }) => tools)).toEqual([[], []]);
    expect(asked.at(-1)?.last).toContain('⟦TR1 ');
    expectRead();
  });

  it('Codex asks in its text, and what is left of its tools neither reads nor writes', async () => {
    writeFileSync(at('one.png'), Buffer.from(PIXEL, 'base64'));
    const patch = '*** Begin Patch\n*** Add File: own.txt\n+own\n*** End Patch\n';
    const own = [
      { tool: 'view_image', input: { path: at('one.png') } },
      { tool: 'exec_command', input: { cmd: 'echo own > own.txt' } },
      { tool: 'apply_patch', input: patch },
    ];
    const asked = await runBox('codex', callFirst(own, askInText));
    expect(new Set(asked.map(({ tools }) => String(tools)))).toEqual(
      new Set(['apply_patch,request_user_input']),
    );
    const [, image, command, patched] = asked.map(({ last }) => last);
    expect(image).toContain('unsupported call');
    expect(command).toContain('unsupported call');
    expect(patched).toContain('patch rejected');
    expectRead();
  });

  it('Gemini CLI asks in its text, where its settings take its tools away', async () => {
    mkdirSync(at('.gemini'));
    const settings = {
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
      tools: { core: [] },
    };
    writeFileSync(at('.gemini/settings.json'), JSON.stringify(settings));
    const asked = await runBox('gemini', askInText);
    expect(asked.map(({ tools }) => tools)).toEqual([[], []]);
    expectRead();
  });

  /** Grants three calls of tools, and gives them to Claude Code. */
  function grantTools(): void {
    const cap = 'calls=3,bytes.evidence=10000000';
    const tools = ['--tool', 'fs.*', '--tool', 'exec'];
    northroot('grant', at('ledger.jsonl'), '--to', 'agent:mcp', ...tools, '--cap', cap, '--expires', '1h');
    const served = ['--serve-tools', '--workspace', at('work'), '--program', 'cat'];
    const server = { command: process.execPath, args: [CLI, 'mcp', at('ledger.jsonl'), ...served] };
    writeFileSync(at('tools.json'), JSON.stringify({ mcpServers: { act: server } }));
  }

  const runClient = (steps: readonly ToolUse[]): Promise<readonly Asked[]> =>
    runWith(
      'claude-code',
      callFirst(steps, () => 'done'),
      () => [
        ...([CLAUDE, '-p', 'go', '--tools', '', '--model', 'claude-sonnet-4-5'] as const),
        ...['--mcp-config', at('tools.json'), '--strict-mcp-config', '--allowedTools', 'mcp__act'],
      ],
    );
  const write = (name: string): ToolUse => ({
    tool: 'mcp__act__fs_write',
    input: { path: `${name}.txt`, content: name },
  });
  /** Each denial and each end of a call. */
  const ends = (): string[] =>
    northroot('log', at('ledger.jsonl')).match(/(?:deny action \S+ \S+|\S+ success\b)/g) ?? [];

  it('Claude Code acts through the tools that are served alone', async () => {
    grantTools();
    const asked = await runClient([
      write('one'),
      { tool: 'mcp__act__exec', input: { argv: ['cat', 'one.txt', 'notes.txt'] } },
      { tool: 'mcp__act__fs_read', input: { path: '../ledger.jsonl.key' } },
      { tool: 'Bash', input: { command: 'touch own.txt', description: 'make' } },
      { tool: 'mcp__act__exec', input: { argv: ['touch', 'program.txt'] } },
      write('two'),
      write('three'),
    ]);
    const offered = asked.map(({ tools }) => tools.map((name) => name.replace('mcp__act__', '')));
    expect(new Set(offered.map(String))).toEqual(new Set(['exec,fs_list,fs_read,fs_write']));
    expect(readdirSync(at('work')).sort()).toEqual(['notes.txt', 'one.txt', 'two.txt']);
    const [, , ran, key, own, program, , over] = asked.map(({ last }) => last);
    expect(ran).toContain('onebuy milk');
    expect([key, program, over].map((last) => /[A-Z]+(?:_[A-Z]+)+/.exec(last ?? '')?.[0])).toEqual([
      'PATH_OUTSIDE_ROOT',
      'PROGRAM_NOT_ALLOWED',
      'RESERVATION_OVER_CAP',
    ]);
    expect(own).toContain('No such tool');
    expect(northroot('verify', at('ledger.jsonl'))).toMatch(/^ok /);
    expect(ends()).toEqual([
      'fs.write success',
      'exec success',
      'deny action fs.read PATH_OUTSIDE_ROOT',
      'deny action exec PROGRAM_NOT_ALLOWED',
      'fs.write success',
      'deny action fs.write RESERVATION_OVER_CAP',
    ]);
  });

  it('Claude Code shares one budget between two sessions', async () => {
    grantTools();
    await Promise.all(
      [
        ['a1', 'a2', 'a3'],
        ['b1', 'b2', 'b3'],
      ].map((names) => runClient(names.map(write))),
    );
    expect(readdirSync(at('work'))).toHaveLength(1 + 3);
    const counted = (end: string): number => ends().filter((each) => each === end).length;
    expect(counted('fs.write success')).toBe(3);
    expect(counted('deny action fs.write RESERVATION_OVER_CAP')).toBe(3);
    expect(northroot('verify', at('ledger.jsonl'))).toMatch(/^ok /);
  });
});
