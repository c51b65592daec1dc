/** The AI SDK with a model of its own test kit: `node ai.js PACKAGE`. */

import { AGENT, openLedger, tell } from './ledger.js';
import { guardApproval, guardModel, guardTools } from 'northroot/ai';
import { Gate } from 'northroot/gate';

const name = process.argv[2];
const { generateText, streamText, stepCountIs, tool, jsonSchema, simulateReadableStream } = await import(
  name
);
const kit = await import(`${name}/test`);
const Model = kit.MockLanguageModelV4 ?? kit.MockLanguageModelV3;
const simulate = simulateReadableStream ?? kit.simulateReadableStream;

const usage = {
  inputTokens: { total: 100, noCache: 90, cacheRead: 10, cacheWrite: undefined },
  outputTokens: { total: 7, text: 7, reasoning: undefined },
};
const call = (id, toolName = 'read') => ({
  type: 'tool-call',
  toolCallId: id,
  toolName,
  input: JSON.stringify({ path: id }),
});
const answer = (content, reason) => ({
  content,
  finishReason: { unified: reason, raw: reason },
  usage,
  warnings: [],
});
/** A model that answers with these, one after the other. */
function scripted(...answers) {
  let at = 0;
  return new Model({
    provider: 'mock.chat',
    modelId: 'm-1',
    doGenerate: async () => answers[at++],
    doStream: async () => {
      const { content, finishReason } = answers[at++];
      const parts = content.flatMap((part) =>
        part.type === 'text'
          ? [
              { type: 'text-start', id: '1' },
              { type: 'text-delta', id: '1', delta: part.text },
              { type: 'text-end', id: '1' },
            ]
          : [part],
      );
      const chunks = [
        { type: 'stream-start', warnings: [] },
        ...parts,
        { type: 'finish', finishReason, usage },
      ];
      return { stream: simulate({ chunks, initialDelayInMs: null, chunkDelayInMs: null }) };
    },
  });
}
const text = answer([{ type: 'text', text: 'done' }], 'stop');
const calls = (...ids) =>
  answer(
    ids.map((id) => call(...[id].flat())),
    'tool-calls',
  );
const inputSchema = jsonSchema({ type: 'object', properties: { path: { type: 'string' } } });

let ran = 0;
const tools = {
  read: tool({
    description: 'read',
    inputSchema,
    execute: async ({ path }) => {
      ran += 1;
      if (path === 'bad') throw Object.assign(new Error('no'), { code: 'ENOENT' });
      return { path };
    },
  }),
  tail: tool({
    description: 'tail',
    inputSchema,
    execute: async function* () {
      ran += 1;
      yield 'a';
      yield 'ab';
    },
  }),
};
/** What a model was told of calls that failed or were denied. */
const toldOf = ({ doGenerateCalls }) =>
  doGenerateCalls
    .at(-1)
    .prompt.filter(({ role }) => role === 'tool')
    .flatMap(({ content }) => content)
    .filter(({ output }) => !['json', 'text'].includes(output?.type))
    .map(({ output }) => output?.value ?? output?.reason ?? output);

// Two calls, a third that is denied, in one step and at once.
const ledger = await openLedger(2);
const guarded = guardTools(ledger, tools);
const mock = scripted(calls('c1', 'c2', 'c3'), text);
const model = guardModel(ledger, mock, { priceOf: () => ({ usd: '0.01' }) });
const first = await generateText({ model, tools: guarded, prompt: 'go', stopWhen: stepCountIs(4) });
await tell(ledger, { ran, text: first.text, told: toldOf(mock) });

// A tool that throws, a tool in pieces.
ran = 0;
const second = await openLedger(9);
const other = scripted(calls('bad', ['c2', 'tail']), text);
const next = await generateText({
  model: other,
  tools: guardTools(second, tools),
  prompt: 'go',
  stopWhen: stepCountIs(4),
});
await tell(second, { ran, text: next.text, told: toldOf(other) });

// Streams: to the end, and left.
const third = await openLedger(9);
const streamed = streamText({ model: guardModel(third, scripted(text)), prompt: 'go' });
let said = '';
for await (const piece of streamed.textStream) said += piece;
const abort = new AbortController();
const left = streamText({
  model: guardModel(third, scripted(text), { reserve: { usd: '0.5' } }),
  prompt: 'go',
  abortSignal: abort.signal,
  onError: () => undefined,
});
for await (const part of left.fullStream) if (part.type === 'text-delta') abort.abort();
await tell(third, { said });

// Approval, of version 7.
if (name !== 'ai') {
  ran = 0;
  const fourth = await openLedger(2);
  const gate = new Gate(fourth);
  const asking = scripted(calls('c1', 'bad', 'c3'), text);
  const approved = await generateText({
    model: asking,
    tools,
    prompt: 'go',
    stopWhen: stepCountIs(4),
    ...guardApproval(gate, { principal: AGENT }),
  });
  await tell(fourth, { ran, text: approved.text, told: toldOf(asking) });
}
