/** Version 2 of the SDK asks server-v2 for this and that: `node client-v2.js ERA COMMAND…` or `node client-v2.js ERA URL`. */

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [era, command, ...args] = process.argv.slice(2);
const mode = era === 'modern' ? 'auto' : 'legacy';
const client = new Client(
  { name: 'live', version: '1' },
  { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
);
let asked = 0;
client.setRequestHandler('elicitation/create', () => {
  asked += 1;
  return { action: 'accept', content: { confirm: true } };
});
const transport = command.startsWith('http:')
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' });
await client.connect(transport);

async function call(name, input = {}, options) {
  try {
    const { isError, content } = await client.callTool({ name, arguments: input }, options);
    return `${isError === true ? 'error: ' : ''}${content?.[0]?.text ?? content?.[0]?.type}`;
  } catch (error) {
    return `threw ${error.code}: ${error.message}`;
  }
}

const told = { version: client.getNegotiatedProtocolVersion?.() };
told.tools = (await client.listTools()).tools.map(({ name }) => name).sort();
told.add = await call('add', { a: 1, b: 2 });
told.deploy = await call('deploy', { env: 'prod' });
told.asked = asked;
told.fail = await call('fail');
const steps = [];
told.stepped = await call('steps', {}, { onprogress: ({ progress }) => steps.push(progress) });
told.steps = steps;
told.prompt = (await client.getPrompt({ name: 'test_simple_prompt' })).messages.length;
told.resource = (await client.readResource({ uri: 'test://static-text' })).contents.length;
const abort = new AbortController();
setTimeout(() => abort.abort(), 400);
told.cancelled = await call('wait', { seconds: 3 }, { signal: abort.signal });
told.denied = await call('test_simple_text');
told.over = [];
for (let n = 0; n < 3; n += 1) told.over.push(await call('add', { a: n, b: n }));
await client.close();
console.log(JSON.stringify(told));
