/** The Claude Agent SDK, with its own agent, against a model that is scripted here. */

import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { query } from '@anthropic-ai/claude-agent-sdk';
import { openLedger, tell } from './ledger.js';
import { guardHooks } from 'northroot/claude-agent';
import { Gate } from 'northroot/gate';

/** What the model calls for, turn by turn, and what it is told of it. */
const turns = [];
const told = [];
let count = 0;

function contentOf({ tools = [], messages }) {
  // Titles and the like are asked for without tools.
  if (tools.length === 0) return [{ type: 'text', text: 'ok' }];
  for (const block of [messages.at(-1).content].flat())
    if (block.type === 'tool_result' && block.is_error) told.push(JSON.stringify(block.content));
  const commands = turns.shift();
  if (commands === undefined) return [{ type: 'text', text: 'done' }];
  return commands.map((command) => ({
    type: 'tool_use',
    id: `toolu_${(count += 1)}`,
    name: 'Bash',
    input: { command, description: 'run' },
  }));
}

const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    if (!request.url.startsWith('/v1/messages') || request.url.includes('count_tokens')) {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"input_tokens":10}');
      return;
    }
    const asked = JSON.parse(body);
    const content = contentOf(asked);
    const usage = { input_tokens: 11, output_tokens: 7 };
    const message = { id: `msg_${(count += 1)}`, type: 'message', role: 'assistant', model: asked.model };
    const reason = content[0].type === 'tool_use' ? 'tool_use' : 'end_turn';
    if (asked.stream !== true) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...message, content, stop_reason: reason, usage }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (type, data) =>
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
    send('message_start', { message: { ...message, content: [], stop_reason: null, usage } });
    for (const [index, block] of content.entries()) {
      const isText = block.type === 'text';
      send('content_block_start', {
        index,
        content_block: isText ? { type: 'text', text: '' } : { ...block, input: {} },
      });
      const delta = isText
        ? { type: 'text_delta', text: block.text }
        : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
      send('content_block_delta', { index, delta });
      send('content_block_stop', { index });
    }
    send('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage });
    send('message_stop', {});
    response.end();
  });
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const home = mkdtempSync(join(tmpdir(), 'northroot-claude-'));
const env = {
  PATH: process.env.PATH,
  HOME: home,
  ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.address().port}`,
  ANTHROPIC_API_KEY: 'dummy',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_AUTOUPDATER: '1',
};

async function run(hooks, ...steps) {
  told.length = 0;
  turns.push(...steps);
  const options = {
    hooks,
    env,
    cwd: home,
    model: 'claude-sonnet-4-5',
    allowedTools: ['Bash'],
    settingSources: [],
  };
  let text;
  for await (const message of query({ prompt: 'go', options }))
    if (message.type === 'result') text = message.result;
  return { text, told: [...told] };
}

const ledger = await openLedger(2);
await tell(ledger, await run(guardHooks(new Gate(ledger)), ['echo 1', 'exit 3'], ['echo 3']));
const second = await openLedger(1);
const gate = new Gate(second);
// A gate that fails must block.
const failing = {
  listOpen: () => [],
  decide: () => Promise.reject(new Error('no ledger')),
  settle: gate.settle,
};
await tell(second, await run(guardHooks(failing), ['echo 1']));
server.close();
server.closeAllConnections();
