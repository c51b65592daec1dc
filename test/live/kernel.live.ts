/**
 * The real Claude Code without tools of its own, with a scripted model, as a black box and as a client of the kernel's tools:
 * `npm run test:live`. Skipped, and said so, where it cannot run.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, northroot, ROOT } from './peers.js';
import { findObstacle, PEERS } from './run-host.js';

const CLAUDE = join(PEERS, 'node_modules/@anthropic-ai/claude-code-linux-x64/claude');
const obstacle = findObstacle();
if (obstacle !== undefined) console.warn(`skipped: ${obstacle}`);

/** It asks nobody but the model. */
const QUIET = {
  DISABLE_AUTOUPDATER: '1',
  DISABLE_TELEMETRY: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
};

/** What the model was sent: its tools, and its last message. */
interface Asked {
  readonly tools: readonly { readonly name: string }[] | undefined;
  readonly last: string;
}

interface ToolUse {
  readonly tool: string;
  readonly input: object;
}

/** A model: what it says, or the tool that it calls, after so many turns. */
type Model = (messages: string, turn: number) => string | ToolUse;

/** Asks for a file in a line of text, and is done when it has read it. */
const askInText: Model = (messages) => {
  const [, nonce] = /⟦TI1 ([0-9a-f]{16})⟧ REQUEST_ID/.exec(messages) ?? [];
  const [, excerpt] = /⟦TX1 [0-9a-f]{16}⟧ q1 ([A-Za-z0-9_-]+)/.exec(messages) ?? [];
  if (nonce === undefined) return 'ok';
  if (excerpt !== undefined) return `It says ${Buffer.from(excerpt, 'base64url').toString()}.\n{"done":true}`;
  return `Let me look.\n⟦TI1 ${nonce}⟧ q1 fs.read ${Buffer.from('{"path":"notes.txt"}').toString('base64url')}`;
};

/** Calls tools, one after the other, and is done. */
const callInTurn =
  (steps: readonly ToolUse[]): Model =>
  (_messages, turn) =>
    steps[turn] ?? 'done';

function stream(response: ServerResponse, model: string, answer: string | ToolUse, turn: number): void {
  const send = (type: string, more: object): void =>
    void response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
  const usage = { input_tokens: 11, output_tokens: 7 };
  const message = { id: `msg_${turn}`, type: 'message', role: 'assistant', model, content: [], usage };
  const [block, delta, reason] =
    typeof answer === 'string'
      ? [{ type: 'text', text: '' }, { type: 'text_delta', text: answer }, 'end_turn']
      : [
          { type: 'tool_use', id: `toolu_${turn}`, name: answer.tool, input: {} },
          { type: 'input_json_delta', partial_json: JSON.stringify(answer.input) },
          'tool_use',
        ];
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  send('message_start', { message: { ...message, stop_reason: null, stop_sequence: null } });
  send('content_block_start', { index: 0, content_block: block });
  send('content_block_delta', { index: 0, delta });
  send('content_block_stop', { index: 0 });
  send('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage });
  send('message_stop', {});
  response.end();
}

async function serveModel(model: Model, asked: Asked[]): Promise<Server> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      const isMessage = request.url?.startsWith('/v1/messages') === true && !request.url.includes('count');
      if (!isMessage) {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"input_tokens":10}');
        return;
      }
      const sent = JSON.parse(body) as Pick<Asked, 'tools'> & { model: string; messages: unknown[] };
      const turn = asked.push({ tools: sent.tools, last: JSON.stringify(sent.messages.at(-1)) });
      stream(response, sent.model, model(JSON.stringify(sent.messages), turn - 1), turn);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function ended(child: ChildProcess): Promise<{ status: number | null; said: string }> {
  let said = '';
  for (const output of [child.stdout, child.stderr])
    output?.on('data', (piece: Buffer) => (said += piece.toString()));
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, said };
}

describe.skipIf(obstacle !== undefined)('Claude Code', () => {
  let folder: string;
  const at = (name: string): string => join(folder, name);
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'northroot-live-'));
    mkdirSync(at('work'));
    writeFileSync(at('work/notes.txt'), 'buy milk');
    northroot('init', at('ledger.jsonl'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs a program with a model that answers so; what the model was asked. */
  async function runWith(
    model: Model,
    [command, ...args]: readonly [string, ...string[]],
  ): Promise<readonly Asked[]> {
    const asked: Asked[] = [];
    const server = await serveModel(model, asked);
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const env = {
        ...process.env,
        ...QUIET,
        HOME: folder,
        ANTHROPIC_API_KEY: 'dummy',
        ANTHROPIC_BASE_URL: url,
      };
      const child = spawn(command, args, { cwd: at('work'), env, stdio: ['ignore', 'pipe', 'pipe'] });
      const { status, said } = await ended(child);
      expect(status, said).toBe(0);
      return asked;
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  it('as a black box asks in its text, and reads the answer as its next message', async () => {
    const profile = JSON.parse(
      readFileSync(join(ROOT, 'examples/agent-profiles/claude-code.json'), 'utf8'),
    ) as object;
    const env = ['HOME', 'ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL', ...Object.keys(QUIET)];
    const changes = {
      command: CLAUDE,
      version_probe: { command: `${CLAUDE} --version`, regex: '^2\\.1\\.\\d+ \\(Claude Code\\)$' },
      env_template: env.map((name) => [name, `\${${name}}`]),
    };
    writeFileSync(at('profile.json'), JSON.stringify({ ...profile, ...changes }));
    const asked = await runWith(askInText, [
      ...([process.execPath, CLI, 'run-agent', at('ledger.jsonl')] as const),
      ...['--profile', at('profile.json'), '--workspace', at('work'), '--episode', 'e1'],
      ...['--task', 'read the notes', '--excerpt', '16KiB'],
    ]);
    expect(new Set(asked.map(({ tools }) => JSON.stringify(tools)))).toEqual(new Set(['[]']));
    expect(asked.at(-1)?.last).toContain('⟦TR1 ');
    const record = at('ledger.jsonl.episodes/e1/record');
    expect(readFileSync(join(record, 'log.txt'), 'utf8')).toContain('It says buy milk.\n{"done":true}\n');
    expect(northroot('verify', at('ledger.jsonl'))).toMatch(/^ok /);
    expect(northroot('check', '--as', 'episode', record)).toMatch(/^ok /m);
  });

  it('acts through the tools that are served alone', async () => {
    const cap = 'calls=3,bytes.evidence=10000000';
    const tools = ['--tool', 'fs.*', '--tool', 'exec'];
    northroot('grant', at('ledger.jsonl'), '--to', 'agent:mcp', ...tools, '--cap', cap, '--expires', '1h');
    const served = ['--serve-tools', '--workspace', at('work'), '--program', 'cat'];
    const server = { command: process.execPath, args: [CLI, 'mcp', at('ledger.jsonl'), ...served] };
    writeFileSync(at('tools.json'), JSON.stringify({ mcpServers: { act: server } }));
    const write = (name: string): ToolUse => ({
      tool: 'mcp__act__fs_write',
      input: { path: `${name}.txt`, content: name },
    });
    const asked = await runWith(
      callInTurn([
        write('one'),
        { tool: 'mcp__act__exec', input: { argv: ['cat', 'one.txt', 'notes.txt'] } },
        { tool: 'mcp__act__fs_read', input: { path: '../ledger.jsonl.key' } },
        { tool: 'Bash', input: { command: 'touch own.txt', description: 'make' } },
        { tool: 'mcp__act__exec', input: { argv: ['touch', 'program.txt'] } },
        write('two'),
        write('three'),
      ]),
      [
        ...([CLAUDE, '-p', 'go', '--tools', '', '--model', 'claude-sonnet-4-5'] as const),
        ...['--mcp-config', at('tools.json'), '--strict-mcp-config', '--allowedTools', 'mcp__act'],
      ],
    );
    const offered = asked.map((each) => each.tools?.map(({ name }) => name.replace('mcp__act__', '')));
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
    const told = northroot('log', at('ledger.jsonl'));
    const ends = /(?:deny action \S+ \S+|\S+ success\b)/g;
    expect(told.match(ends)).toEqual([
      'fs.write success',
      'exec success',
      'deny action fs.read PATH_OUTSIDE_ROOT',
      'deny action exec PROGRAM_NOT_ALLOWED',
      'fs.write success',
      'deny action fs.write RESERVATION_OVER_CAP',
    ]);
  });
});
