/** Version 1 of the SDK asks server-everything for this and that: `node client-v1.js COMMAND…` or `node client-v1.js URL`. */

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [command, ...args] = process.argv.slice(2);
const capabilities = { sampling: {}, elicitation: {} };
const client = new Client({ name: 'live', version: '1' }, { capabilities });
const asked = [];
client.setRequestHandler(CreateMessageRequestSchema, () => {
  asked.push('sampling');
  return { role: 'assistant', model: 'm-1', content: { type: 'text', text: 'sampled' } };
});
client.setRequestHandler(ElicitRequestSchema, () => {
  asked.push('elicitation');
  return { action: 'accept', content: { name: 'Ada' } };
});
const transport = command.startsWith('http:')
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, stderr: 'inherit' });
await client.connect(transport);

const told = {};
/** What a call came to: its text, or that it is an error. */
async function call(name, input = {}, options) {
  try {
    const result = await client.callTool({ name, arguments: input }, undefined, options);
    const text = result.content?.[0]?.text ?? '';
    return `${result.isError === true ? 'error: ' : ''}${text}`;
  } catch (error) {
    return `threw ${error.code}: ${error.message}`;
  }
}

/** Calls a tool that answers with a task, and waits for what that comes to. */
async function callTask(name, input) {
  const seen = [];
  for await (const message of client.experimental.tasks.callToolStream(
    { name, arguments: input },
    undefined,
    {
      task: { ttl: 60_000 },
    },
  )) {
    if (seen.at(-1) !== message.type) seen.push(message.type);
    if (message.type === 'result') seen.push(message.result.content[0].text.split('\n')[0]);
    if (message.type === 'error') seen.push(message.error.message);
  }
  return seen;
}

const { tools } = await client.listTools();
told.tools = tools.map(({ name }) => name).sort();
told.server = client.getServerVersion()?.name;
told.echo = await call('echo', { message: 'hello \u{1f30d}' });
told.sums = await Promise.all([1, 2, 3, 4, 5].map((a) => call('get-sum', { a, b: 1 })));
const steps = [];
const long = { duration: 0.3, steps: 3 };
told.long = await call('trigger-long-running-operation', long, {
  onprogress: ({ progress }) => steps.push(progress),
});
told.steps = steps;
told.sampled = await call('trigger-sampling-request', { prompt: 'p', maxTokens: 5 });
told.elicited = await call('trigger-elicitation-request');
told.asked = asked;
told.task = await callTask('simulate-research-query', { topic: 't', ambiguous: false });
// Its arguments are not what the tool expects.
told.invalid = await call('get-sum', { a: 'x' });
told.missing = await call('no-such-tool');
told.denied = await call('get-env');
const abort = new AbortController();
setTimeout(() => abort.abort(), 300);
told.cancelled = await call(
  'trigger-long-running-operation',
  { duration: 2, steps: 2 },
  { signal: abort.signal },
);
told.over = [];
for (let n = 0; n < 3; n += 1) told.over.push(await call('get-structured-content', { location: 'Chicago' }));
await client.close();
console.log(JSON.stringify(told));
