/** The OpenAI Agents SDK with a model that is made here. */

import { Agent, Runner, setTracingDisabled, tool, Usage } from '@openai/agents';
import { openLedger, tell } from './ledger.js';
import { guardExecute, guardModel, guardTool } from 'northroot/openai-agents';

setTracingDisabled(true);
const call = (id) => ({
  type: 'function_call',
  name: 'read',
  callId: id,
  status: 'completed',
  arguments: JSON.stringify({ path: id }),
});
const calls = (...ids) => ids.map(call);
const done = [
  {
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'done' }],
  },
];
const numbers = {
  requests: 1,
  inputTokens: 100,
  outputTokens: 7,
  totalTokens: 107,
  inputTokensDetails: [{ cached_tokens: 10 }],
};
/** A model that answers with these, one after the other. */
const scripted = (...answers) => ({
  asked: [],
  getResponse(request) {
    this.asked.push(request);
    return Promise.resolve({ usage: new Usage(numbers), output: answers.shift(), responseId: 'r' });
  },
  async *getStreamedResponse(request) {
    this.asked.push(request);
    const output = answers.shift();
    yield { type: 'response_started' };
    yield { type: 'response_done', response: { id: 'r', usage: numbers, output } };
  },
});

let ran = 0;
const own = {
  name: 'read',
  description: 'read',
  strict: false,
  parameters: {
    type: 'object',
    properties: { path: { type: 'string' } },
    required: [],
    additionalProperties: true,
  },
  execute: async ({ path }) => {
    ran += 1;
    if (path === 'bad') throw Object.assign(new Error('no'), { code: 'ENOENT' });
    return path;
  },
};

async function run(ledger, given, stream, ...answers) {
  ran = 0;
  const mock = scripted(...answers);
  const model = guardModel(ledger, 'openai/m-1', mock, { priceOf: () => ({ usd: '0.01' }) });
  try {
    const runner = new Runner({ tracingDisabled: true });
    const result = await runner.run(new Agent({ name: 'a', model, tools: [given] }), 'go', { stream });
    if (stream) for await (const event of result) void event;
    const told = mock.asked
      .at(-1)
      .input.filter(({ type }) => type === 'function_call_result')
      .map(({ output }) => output.text ?? output);
    return { ran, text: result.finalOutput, told };
  } catch (error) {
    return { ran, threw: error.error?.code ?? error.code ?? error.name };
  }
}

const guarded = (ledger, options) =>
  tool({
    ...own,
    execute: guardExecute(ledger, own.name, own.execute, options),
    ...(options && { errorFunction: null }),
  });

const ledger = await openLedger(2);
await tell(ledger, await run(ledger, guarded(ledger), false, calls('c1', 'c2', 'c3'), done));
const second = await openLedger(9);
await tell(second, await run(second, guarded(second), true, calls('bad'), done));
const third = await openLedger(9);
await tell(third, await run(third, guardTool(third, tool(own)), false, calls('bad', 'c2'), done));
const fourth = await openLedger(1);
await tell(fourth, await run(fourth, guarded(fourth, { onDenied: 'throw' }), false, calls('c1', 'c2'), done));
