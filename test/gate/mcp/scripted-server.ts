/** A server of MCP over stdio, as a script without packages: what it does depends on the name of the tool. */

export const SCRIPTED_SERVER = `
import { createInterface } from 'node:readline';
import { appendFileSync, closeSync } from 'node:fs';
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const text = (id, text) => say({ id, result: { content: [{ type: 'text', text }] } });
const ended = process.argv[2];
process.on('SIGTERM', () => { if (ended !== 'stubborn') process.exit(9); });
const held = [];
let asked;
for await (const line of createInterface({ input: process.stdin })) {
  let message;
  try { message = JSON.parse(line); } catch { process.stderr.write('unread ' + line.length + '\\n'); continue; }
  const { id, method, params } = message;
  appendFileSync('seen.log', (method ?? 'answer') + ' ' + (params?.name ?? '') + '\\n');
  if (method === undefined) { if (asked !== undefined) text(asked, JSON.stringify(message.result)); continue; }
  if (method === 'initialize') say({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } });
  else if (method === 'server/discover') say({ id, error: { code: -32601, message: 'no' } });
  else if (method === 'ping') say({ id, result: {} });
  else if (method === 'tools/list') say({ id, result: { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] } });
  else if (method !== 'tools/call') continue;
  else switch (params.name) {
    case 'echo': text(id, JSON.stringify(params.arguments)); break;
    case 'env': text(id, Object.keys(process.env).filter((n) => n.startsWith('NORTHROOT')).join()); break;
    case 'progress': for (const progress of [1, 2, 3]) say({ method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress } }); text(id, 'done'); break;
    case 'hold': held.push(id); break;
    case 'release': for (const each of held.reverse()) text(each, 'late'); text(id, 'released'); break;
    case 'elicit': asked = id; say({ id: 1, method: 'elicitation/create', params: { message: 'm' } }); break;
    case 'exit': process.exit(5); break;
    case 'kill': process.kill(process.pid, 'SIGKILL'); break;
    case 'twice': text(id, 'a'); text(id, 'b'); break;
    case 'unknown': text(99, 'x'); text(String(id), 'y'); text(id, 'z'); break;
    case 'noise': process.stdout.write('free text\\n\\n{"jsonrpc":"2.0","method":"notifications/x"\\n'); text(id, 'ok'); break;
    case 'huge': say({ id, result: { content: [{ type: 'text', text: 'x'.repeat(params.arguments.bytes) }] } }); break;
    case 'endless': process.stdout.write(Buffer.alloc(params.arguments.bytes, 0x78)); process.stdout.write('\\n'); text(id, 'after'); break;
    case 'latin': process.stdout.write(Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":' + id + ',"result":{"content":[{"type":"text","text":"'), Buffer.from([0xe9]), Buffer.from('"}]}}\\n')])); break;
    case 'deaf': closeSync(0); setTimeout(() => process.exit(8), 60_000); break;
    case 'split': { const all = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }) + '\\n'; for (const c of all) { process.stdout.write(c); await new Promise(setImmediate); } break; }
  }
}
if (ended === 'stubborn') setInterval(() => undefined, 1000);
else process.exitCode = Number(ended ?? 0);
`;
