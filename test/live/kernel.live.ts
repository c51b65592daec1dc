/** The real Claude Code as a black box behind the kernel, with a scripted model: `npm run test:live`. Skipped, and said so, where it cannot run. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CLI, ROOT } from './peers.js';
import { findObstacle, PEERS } from './run-host.js';

const CLAUDE = join(PEERS, 'node_modules/@anthropic-ai/claude-code-linux-x64/claude');
const obstacle = findObstacle();
if (obstacle !== undefined) console.warn(`skipped: ${obstacle}`);

/** What the model was sent: its tools, and its last message. */
const asked: { tools: unknown; last: string }[] = [];

/** Asks for a file, and is done when it has read it. */
function answer(said: string): string {
  const [, nonce] = /⟦TI1 ([0-9a-f]{16})⟧ REQUEST_ID/.exec(said) ?? [];
  const [, excerpt] = /⟦TX1 [0-9a-f]{16}⟧ q1 ([A-Za-z0-9_-]+)/.exec(said) ?? [];
  if (nonce === undefined) return 'ok';
  if (excerpt !== undefined) return `It says ${Buffer.from(excerpt, 'base64url').toString()}.\n{"done":true}`;
  return `Let me look.\n⟦TI1 ${nonce}⟧ q1 fs.read ${Buffer.from('{"path":"notes.txt"}').toString('base64url')}`;
}

function stream(response: ServerResponse, model: string, text: string): void {
  const send = (type: string, more: object): void =>
    void response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
  const usage = { input_tokens: 11, output_tokens: 7 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], usage };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  send('message_start', { message: { ...message, stop_reason: null, stop_sequence: null } });
  send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
  send('content_block_delta', { index: 0, delta: { type: 'text_delta', text } });
  send('content_block_stop', { index: 0 });
  send('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage });
  send('message_stop', {});
  response.end();
}

async function serveModel(): Promise<Server> {
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
      const sent = JSON.parse(body) as { model: string; tools: unknown; messages: unknown[] };
      asked.push({ tools: sent.tools, last: JSON.stringify(sent.messages.at(-1)) });
      stream(response, sent.model, answer(JSON.stringify(sent.messages)));
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

describe.skipIf(obstacle !== undefined)('Claude Code as a black box', () => {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-kernel-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('asks in its text, and reads the answer as its next message', async () => {
    const at = (name: string): string => join(folder, name);
    mkdirSync(at('work'));
    writeFileSync(at('work/notes.txt'), 'buy milk');
    const profile = JSON.parse(
      readFileSync(join(ROOT, 'examples/agent-profiles/claude-code.json'), 'utf8'),
    ) as object;
    const env = ['HOME', 'ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL', 'DISABLE_AUTOUPDATER'];
    const changes = {
      command: CLAUDE,
      version_probe: { command: `${CLAUDE} --version`, regex: '^2\\.1\\.\\d+ \\(Claude Code\\)$' },
      env_template: env.map((name) => [name, `\${${name}}`]),
    };
    writeFileSync(at('profile.json'), JSON.stringify({ ...profile, ...changes }));
    const northroot = (...args: string[]): string =>
      spawnSync(process.execPath, [CLI, ...args], { cwd: folder, encoding: 'utf8' }).stdout;
    northroot('init', 'ledger.jsonl');
    const model = await serveModel();
    try {
      const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}`;
      const task = ['--task', 'read the notes', '--excerpt', '16KiB', '--episode', 'e1'];
      const args = ['run-agent', 'ledger.jsonl', '--profile', 'profile.json', '--workspace', 'work', ...task];
      const child = spawn(process.execPath, [CLI, ...args], {
        cwd: folder,
        env: {
          ...process.env,
          HOME: folder,
          ANTHROPIC_API_KEY: 'dummy',
          ANTHROPIC_BASE_URL: url,
          DISABLE_AUTOUPDATER: '1',
        },
      });
      const { status, said } = await ended(child);
      expect(status, said).toBe(0);
    } finally {
      model.closeAllConnections();
      model.close();
    }
    expect(new Set(asked.map(({ tools }) => JSON.stringify(tools)))).toEqual(new Set(['[]']));
    expect(asked.at(-1)?.last).toContain('⟦TR1 ');
    const record = 'ledger.jsonl.episodes/e1/record';
    expect(readFileSync(at(`${record}/log.txt`), 'utf8')).toContain('It says buy milk.\n{"done":true}\n');
    expect(northroot('verify', 'ledger.jsonl')).toMatch(/^ok /);
    expect(northroot('check', '--as', 'episode', record)).toMatch(/^ok /m);
  });
});
