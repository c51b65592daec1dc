/**
 * The official clients, unchanged but for where they ask: `node clients.js CLIENT PART URL UPSTREAM`. What each call comes to, and how often the
 * upstream was asked for it.
 */

import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { generateText, jsonSchema, streamText, tool } from 'ai';

const [client, part, base, upstream] = process.argv.slice(2);
const KEY = 'sk-planted-5f1c';
const PROMPT = 'planted-prompt-77aa';
const told = {};
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

async function countAsked() {
  const { calls } = await (await fetch(`${upstream}/told`)).json();
  return calls.length;
}

/** Names an error as its client does. */
function nameOf(error) {
  const { lastError, cause } = error;
  const inner = lastError ?? error;
  const name = inner.constructor.name;
  const status = inner.status ?? inner.statusCode;
  const code = inner.code ?? inner.data?.error?.code;
  return { name, status, code, message: inner.message, ...(cause?.code && { cause: cause.code }) };
}

/** Runs one call: its result or error, and how often the upstream was asked. */
async function run(name, action) {
  const before = await countAsked();
  let found;
  try {
    found = { text: await action() };
  } catch (error) {
    found = nameOf(error);
  }
  told[name] = { ...found, asked: (await countAsked()) - before };
}

const textOf = async (stream, read) => {
  let text = '';
  for await (const each of stream) text += read(each) ?? '';
  return text;
};

async function openai(name) {
  const { default: OpenAI, toFile } = await import(name);
  const api = new OpenAI({ baseURL: `${base}/v1`, apiKey: KEY, maxRetries: 2 });
  const ask = (script = '', more = {}) => ({
    model: 'm-openai',
    max_completion_tokens: 20,
    messages: [{ role: 'user', content: `${PROMPT} script:${script}` }],
    ...more,
  });
  const { completions } = api.chat;
  const chat = async (...args) => {
    const { choices } = await completions.create(ask(...args));
    const [{ message }] = choices;
    return message.content ?? message.tool_calls[0].function.arguments;
  };
  const chatStream = async (script, more) =>
    textOf(await completions.create(ask(script, { stream: true, ...more })), ({ choices }) => {
      const delta = choices[0]?.delta;
      return delta?.content ?? delta?.tool_calls?.[0].function.arguments;
    });
  const stream_options = { include_usage: true };
  const tools = [
    { type: 'function', function: { name: 'read', parameters: { type: 'object', properties: {} } } },
  ];
  const answer = { model: 'm-openai', max_output_tokens: 20 };
  const respond = (script, more) =>
    api.responses.create({ ...answer, input: `${PROMPT} script:${script}`, ...more });
  const events = (event) => (event.type.endsWith('.delta') ? event.delta : '');

  if (part === 'budget') {
    for (const n of [1, 2, 3, 4]) await run(`chat ${n}`, () => chat());
    await run('stream', () => chatStream(''));
    await run('responses', async () => (await respond('')).output_text);
    return;
  }
  if (part === 'broken') {
    await run('chat, stream without usage', () => chatStream(''));
    await run('chat, stream breaks', () => chatStream('break', { stream_options }));
    await run('responses, stream is cut', async () => textOf(await respond('cut', { stream: true }), events));
    await run('chat, given up', () => completions.create(ask('slow'), { timeout: 1500, maxRetries: 0 }));
    await run('chat, stream is left', async () => {
      for await (const { choices } of await completions.create(ask('', { stream: true })))
        if (choices[0].delta.content) return 'left';
    });
    return;
  }
  if (part === 'more') {
    const url = `data:image/png;base64,${PIXEL}`;
    const text = { type: 'text', text: PROMPT };
    const picture = (detail) => ({ type: 'image_url', image_url: { url, detail } });
    const seen = [{ role: 'user', content: [text, picture('low'), picture('high')] }];
    await run('chat, images', () => chat('', { messages: seen }));
    const schema = { type: 'object', properties: {}, additionalProperties: false };
    const json_schema = { name: 'x', schema, strict: true };
    await run('chat, a format', () => chat('', { response_format: { type: 'json_schema', json_schema } }));
    await run('chat, runs its tools', async () => {
      const runner = completions.runTools(
        {
          ...ask('tool'),
          tools: [
            {
              type: 'function',
              function: { name: 'read', parameters: schema, function: () => 'ok', parse: JSON.parse },
            },
          ],
        },
        { maxChatCompletions: 2 },
      );
      await runner.done().catch(() => undefined);
      return runner.messages.length;
    });
    await run('chat, streamed by its helper', async () => {
      const stream = completions.stream(ask('', { stream_options }));
      return (await stream.finalChatCompletion()).choices[0].message.content;
    });
    await run('completions', async () => {
      const prompt = { model: 'm-openai', prompt: PROMPT, max_tokens: 20 };
      return (await api.completions.create(prompt)).choices[0].text;
    });
    await run('responses, images', async () => {
      const content = [
        { type: 'input_text', text: PROMPT },
        { type: 'input_image', image_url: url, detail: 'auto' },
      ];
      return (await respond('', { input: [{ role: 'user', content }] })).output_text;
    });
    await run('responses, one after the other', async () => {
      const { id } = await respond('');
      return (await respond('', { previous_response_id: id })).output_text;
    });
    await run('responses, cache options', async () => {
      const more = { prompt_cache_options: { ttl: '30m' }, prompt_cache_key: 'k' };
      return (await respond('', more)).output_text;
    });
    await run('images', async () => {
      const { data } = await api.images.generate({ model: 'gpt-image-1', prompt: PROMPT });
      return data[0].b64_json;
    });
    await run('embeddings, several', async () => {
      const input = [PROMPT, 'b'];
      const { data } = await api.embeddings.create({ model: 'm-embed', input, dimensions: 2 });
      return data[0].embedding.join();
    });
    await run('free: moderations', async () => (await api.moderations.create({ input: 'x' })).results.length);
    await run('free: a response', async () => (await api.responses.retrieve('resp_1')).object);
    await run('free: a response is cancelled', async () => (await api.responses.cancel('resp_1')).object);
    await run('free: a batch', async () => (await api.batches.retrieve('batch_1')).object);
    return;
  }
  if (part === 'stored') {
    await run('a file', async () => {
      const file = await toFile(Buffer.from('{}'), 'a.jsonl');
      return (await api.files.create({ file, purpose: 'batch' })).id;
    });
    await run('a batch', async () => {
      const batch = { input_file_id: 'f', endpoint: '/v1/chat/completions', completion_window: '24h' };
      return (await api.batches.create(batch)).id;
    });
    await run('chat, another level', () => chat('', { service_tier: 'flex' }));
    await run(
      'responses, searches',
      async () => (await respond('', { tools: [{ type: 'web_search' }] })).output_text,
    );
    await run(
      'responses, a conversation',
      async () => (await respond('', { conversation: 'conv_1' })).output_text,
    );
    return;
  }
  await run('chat', () => chat());
  await run('chat, limit left open', () => chat('', { max_completion_tokens: undefined }));
  await run('chat, tool', () => chat('tool', { tools }));
  await run('chat, stream', () => chatStream('', { stream_options }));
  await run('chat, stream, tool', () => chatStream('tool', { stream_options, tools }));
  await run('responses', async () => (await respond('')).output_text);
  await run('responses, tool', async () => (await respond('tool')).output[0].arguments);
  await run('responses, stream', async () => textOf(await respond('', { stream: true }), events));
  await run('embeddings', async () => {
    const { data } = await api.embeddings.create({ model: 'm-embed', input: PROMPT });
    return data[0].embedding.join();
  });
  await run('models', async () => (await api.models.list()).data[0].id);
  for (const status of [400, 401, 500]) await run(`chat, ${status}`, () => chat(`fail ${status} 9 a`));
  await run('chat, 429', () => chat('fail 429 9 a'));
  await run('chat, 500 twice', () => chat('fail 500 2 b'));
  await run('chat, 429 once, with a key', async () => {
    const headers = { 'Idempotency-Key': 'k-1' };
    const { choices } = await completions.create(ask('fail 429 1 c'), { headers });
    return choices[0].message.content;
  });
  await run('chat, unknown model', () => chat('', { model: 'no-such-model' }));
}

async function anthropic() {
  const api = new Anthropic({ baseURL: base, apiKey: KEY, maxRetries: 2 });
  const ask = (script = '', more = {}) => ({
    model: 'm-anthropic',
    max_tokens: 20,
    messages: [{ role: 'user', content: `${PROMPT} script:${script}` }],
    ...more,
  });
  const message = async (...args) => {
    const { content } = await api.messages.create(ask(...args));
    return content[0].text ?? JSON.stringify(content[0].input);
  };
  const messageStream = async (...args) => {
    const { content } = await api.messages.stream(ask(...args)).finalMessage();
    return content[0].text ?? JSON.stringify(content[0].input);
  };
  if (part === 'budget') {
    for (const n of [1, 2, 3, 4]) await run(`messages ${n}`, () => message());
    await run('stream', () => messageStream());
    return;
  }
  if (part === 'broken') {
    await run('messages, stream breaks', () => messageStream('break'));
    await run('messages, stream is cut', () => messageStream('cut'));
    return;
  }
  if (part === 'more') {
    const source = { type: 'base64', media_type: 'image/png', data: PIXEL };
    const seen = [
      {
        role: 'user',
        content: [
          { type: 'text', text: PROMPT },
          { type: 'image', source },
        ],
      },
    ];
    await run('messages, image', () => message('', { messages: seen }));
    const cache_control = { type: 'ephemeral' };
    await run('messages, cached system', () =>
      message('', { system: [{ type: 'text', text: 'be', cache_control }] }),
    );
    await run('messages, thinking', () =>
      message('', { max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 } }),
    );
    await run('beta messages', async () => {
      const { content } = await api.beta.messages.create({ ...ask(''), betas: ['context-1m-2025-08-07'] });
      return content[0].text;
    });
    await run('free: models', async () => (await api.models.list()).data[0].id);
    await run('free: a batch', async () => (await api.messages.batches.retrieve('msgbatch_1')).type);
    return;
  }
  if (part === 'stored') {
    await run('a batch', async () => {
      const { model, messages, max_tokens } = ask();
      const requests = [{ custom_id: 'a', params: { model, messages, max_tokens } }];
      return (await api.messages.batches.create({ requests })).id;
    });
    await run('messages, searches', () =>
      message('', { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 1 }] }),
    );
    return;
  }
  const tools = [
    { name: 'read', input_schema: { type: 'object', properties: { path: { type: 'string' } } } },
  ];
  await run('messages', () => message());
  await run('messages, tool', () => message('tool', { tools }));
  await run('messages, stream', () => messageStream());
  await run('messages, stream, tool', () => messageStream('tool', { tools }));
  await run('count tokens', async () => {
    const { model, messages } = ask();
    return (await api.messages.countTokens({ model, messages })).input_tokens;
  });
  for (const status of [400, 401, 500]) await run(`messages, ${status}`, () => message(`fail ${status} 9 a`));
  await run('messages, 429', () => message('fail 429 9 a'));
  await run('messages, 529 once', () => message('fail 529 1 b'));
}

async function aiSdk() {
  const gpt = createOpenAI({ baseURL: `${base}/v1`, apiKey: KEY });
  const claude = createAnthropic({ baseURL: `${base}/v1`, apiKey: KEY });
  const models = { chat: gpt.chat('m-openai'), responses: gpt('m-openai'), messages: claude('m-anthropic') };
  const read = tool({ description: 'read', inputSchema: jsonSchema({ type: 'object', properties: {} }) });
  const quiet = { maxRetries: 1, maxOutputTokens: 20 };
  for (const [name, model] of Object.entries(models)) {
    const ask = (script) => ({ model, prompt: `${PROMPT} script:${script}`, ...quiet });
    if (part === 'budget') {
      for (const n of [1, 2, 3]) await run(`${name} ${n}`, async () => (await generateText(ask(''))).text);
      return;
    }
    await run(`ai ${name}`, async () => (await generateText(ask(''))).text);
    await run(`ai ${name}, tool`, async () => {
      const { toolCalls } = await generateText({ ...ask('tool'), tools: { read } });
      return JSON.stringify(toolCalls[0].input);
    });
    await run(`ai ${name}, stream`, async () => {
      const { textStream } = streamText({ ...ask(''), onError: () => undefined });
      return textOf(textStream, (each) => each);
    });
    await run(`ai ${name}, 400`, async () => (await generateText(ask('fail 400 9 z'))).text);
  }
}

if (client === 'anthropic') await anthropic();
else if (client === 'ai') await aiSdk();
else await openai(client);
console.log(JSON.stringify(told));
