/** LangChain with a model of its own test kit. */

import { AIMessage } from '@langchain/core/messages';
import { createAgent, FakeToolCallingModel, fakeModel, tool, ToolMessage } from 'langchain';
import { openLedger, tell } from './ledger.js';
import { guardMiddleware } from 'northroot/langchain';

const usage_metadata = {
  input_tokens: 100,
  output_tokens: 7,
  total_tokens: 107,
  input_token_details: { cache_read: 10 },
};
const call = (id) => ({ name: 'read', args: { path: id }, id, type: 'tool_call' });
const calls = (...ids) => new AIMessage({ content: '', tool_calls: ids.map(call), usage_metadata });
const scripted = (...answers) => answers.reduce((model, each) => model.respond(each), fakeModel());
const done = new AIMessage({ content: 'done', usage_metadata });
void FakeToolCallingModel;

let ran = 0;
const schema = { type: 'object', properties: { path: { type: 'string' } } };
const read = tool(
  ({ path }) => {
    ran += 1;
    if (path === 'bad') throw Object.assign(new Error('no'), { code: 'ENOENT' });
    if (path === 'error') return new ToolMessage({ content: 'no', tool_call_id: 'error', status: 'error' });
    return path;
  },
  { name: 'read', description: 'read', schema },
);

async function run(ledger, options, ...answers) {
  ran = 0;
  const agent = createAgent({
    model: scripted(...answers),
    tools: [read],
    middleware: [guardMiddleware(ledger, { ToolMessage, ...options })],
  });
  try {
    const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'go' }] });
    const told = messages
      .filter((each) => each.getType() === 'tool')
      .map((each) => `${each.status}: ${each.content}`);
    return { ran, text: messages.at(-1).content, told };
  } catch (error) {
    return { ran, threw: error.cause?.code ?? error.code ?? error.name };
  }
}

const ledger = await openLedger(2);
const priceOf = () => ({ usd: '0.01' });
await tell(ledger, await run(ledger, { models: { priceOf } }, calls('c1', 'c2', 'c3'), done));
const second = await openLedger(9);
await tell(second, await run(second, {}, calls('bad', 'error'), done));
const third = await openLedger(1);
await tell(third, await run(third, { onDenied: 'throw', models: false }, calls('c1', 'c2'), done));
