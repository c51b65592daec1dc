/**
 * Model APIs that are scripted: `node upstream.js` prints where it listens. What a request comes to is said by its `user` member or its
 * system prompt: `fail 500 2` (the first two tries), `break` (the stream ends early), `cut` (the connection does), `tool`. GET /told gives
 * what came, and what it cost.
 */

import { createServer } from 'node:http';

/** In units of 10^-8 USD, so that sums are exact: see prices.json. */
const PRICES = {
  'm-openai': [300, 30, 1500],
  'gpt-image-1': [300, 30, 1500],
  'm-embed': [2, 2, 0],
  'm-anthropic': [300, 30, 1500],
};
/** Of all calls together, as they were stated. */
const tokens = { input: 0, output: 0 };
const calls = [];
const tries = new Map();
let cost = 0;
let count = 0;

/** Adds to what all calls cost, and makes usage that differs from call to call. */
function use(model, kind = 'all') {
  count += 1;
  const cached = kind === 'all' && count % 3 === 0 ? 10 : 0;
  const [input, output] = [40 + count, kind === 'input' ? 0 : 5 + (count % 4)];
  const [perInput, perCached, perOutput] = PRICES[model];
  cost += (input - cached) * perInput + cached * perCached + output * perOutput;
  tokens.input += input;
  tokens.output += output;
  return { input, cached, output };
}

const WORDS = ['Hel', 'lo, ', 'wor', 'ld'];
const call = { name: 'read', args: '{"path":"a"}' };
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The pieces of a stream: [event or undefined, data]; `usage` is called where it is said, and costs. */
const APIS = {
  '/v1/chat/completions': {
    errorOf: (type, message) => ({ error: { message, type, param: null, code: null } }),
    whole({ model }, isTool) {
      const { input, cached, output } = use(model);
      const message = { role: 'assistant', content: isTool ? null : WORDS.join(''), refusal: null };
      if (isTool)
        message.tool_calls = [
          { id: 'c1', type: 'function', function: { name: call.name, arguments: call.args } },
        ];
      return {
        ...{ id: `chat-${count}`, object: 'chat.completion', created: 1, model },
        choices: [{ index: 0, message, logprobs: null, finish_reason: isTool ? 'tool_calls' : 'stop' }],
        usage: {
          ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
          prompt_tokens_details: { cached_tokens: cached },
        },
      };
    },
    *pieces({ model, stream_options: options }, isTool) {
      const chunk = (delta, reason = null) => [
        undefined,
        {
          ...{ id: 'chat-1', object: 'chat.completion.chunk', created: 1, model },
          choices: [{ index: 0, delta, finish_reason: reason }],
        },
      ];
      yield chunk({ role: 'assistant', content: '' });
      if (isTool)
        for (const part of [
          { index: 0, id: 'c1', type: 'function', function: { name: call.name, arguments: '' } },
          { index: 0, function: { arguments: call.args.slice(0, 5) } },
          { index: 0, function: { arguments: call.args.slice(5) } },
        ])
          yield chunk({ tool_calls: [part] });
      else for (const word of WORDS) yield chunk({ content: word });
      yield chunk({}, isTool ? 'tool_calls' : 'stop');
      const { input, cached, output } = use(model);
      if (options?.include_usage === true) {
        const [, last] = chunk({});
        const usage = {
          ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
          prompt_tokens_details: { cached_tokens: cached },
        };
        yield [undefined, { ...last, choices: [], usage }];
      }
      yield [undefined, '[DONE]'];
    },
  },
  '/v1/responses': {
    errorOf: (type, message) => ({ error: { message, type, param: null, code: null } }),
    whole(body, isTool) {
      const { model } = body;
      const { input, cached, output } = use(model);
      return {
        ...responseOf(body, isTool),
        usage: {
          ...{ input_tokens: input, input_tokens_details: { cached_tokens: cached } },
          ...{ output_tokens: output, output_tokens_details: { reasoning_tokens: 1 } },
          total_tokens: input + output,
        },
      };
    },
    *pieces(body, isTool) {
      let at = 0;
      const event = (type, data) => [type, { type, sequence_number: (at += 1), ...data }];
      const begun = { ...responseOf(body, isTool), status: 'in_progress', output: [] };
      yield event('response.created', { response: begun });
      const [item] = responseOf(body, isTool).output;
      const empty = isTool ? { ...item, arguments: '' } : { ...item, content: [] };
      const where = { output_index: 0, item_id: item.id };
      yield event('response.output_item.added', { output_index: 0, item: empty });
      if (isTool) {
        yield event('response.function_call_arguments.delta', { ...where, delta: call.args });
        yield event('response.function_call_arguments.done', { ...where, arguments: call.args });
      } else {
        const part = { type: 'output_text', text: '', annotations: [] };
        yield event('response.content_part.added', { ...where, content_index: 0, part });
        for (const delta of WORDS)
          yield event('response.output_text.delta', { ...where, content_index: 0, delta, logprobs: [] });
        const text = WORDS.join('');
        yield event('response.output_text.done', { ...where, content_index: 0, text, logprobs: [] });
        yield event('response.content_part.done', { ...where, content_index: 0, part: { ...part, text } });
      }
      yield event('response.output_item.done', { output_index: 0, item });
      yield event('response.completed', { response: this.whole(body, isTool) });
    },
  },
  '/v1/completions': {
    errorOf: (type, message) => ({ error: { message, type, param: null, code: null } }),
    whole({ model }) {
      const { input, output } = use(model, 'uncached');
      return {
        ...{ id: `cmpl-${count}`, object: 'text_completion', created: 1, model },
        choices: [{ index: 0, text: WORDS.join(''), logprobs: null, finish_reason: 'stop' }],
        usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
      };
    },
  },
  '/v1/images/generations': {
    errorOf: (type, message) => ({ error: { message, type, param: null, code: null } }),
    whole({ model }) {
      const { input, output } = use(model, 'uncached');
      const details = { text_tokens: input, image_tokens: 0 };
      const usage = { input_tokens: input, input_tokens_details: details, output_tokens: output };
      return {
        ...{ created: 1, data: [{ b64_json: 'iVBO' }] },
        usage: { ...usage, total_tokens: input + output },
      };
    },
  },
  '/v1/embeddings': {
    errorOf: (type, message) => ({ error: { message, type, param: null, code: null } }),
    whole({ model }) {
      const { input } = use(model, 'input');
      // A client that asks for base64 takes numbers too.
      const data = [
        {
          object: 'embedding',
          index: 0,
          embedding: Buffer.from(new Float32Array([0.5, 0.25]).buffer).toString('base64'),
        },
      ];
      return { object: 'list', model, data, usage: { prompt_tokens: input, total_tokens: input } };
    },
  },
  '/v1/messages': {
    errorOf: (type, message) => ({ type: 'error', error: { type, message }, request_id: 'req_1' }),
    whole({ model }, isTool) {
      const content = isTool
        ? [{ type: 'tool_use', id: 't1', name: call.name, input: JSON.parse(call.args) }]
        : [{ type: 'text', text: WORDS.join('') }];
      const { output, ...said } = use(model);
      const usage = { ...anthropicUsage(said), output_tokens: output };
      return {
        ...{ id: `msg_${count}`, type: 'message', role: 'assistant', model, content },
        ...{ stop_reason: isTool ? 'tool_use' : 'end_turn', stop_sequence: null, usage },
      };
    },
    *pieces(body, isTool) {
      const { model } = body;
      const { output, ...said } = use(model);
      const event = (type, data = {}) => [type, { type, ...data }];
      const message = { ...{ id: 'msg_1', type: 'message', role: 'assistant', model, content: [] } };
      const usage = { ...anthropicUsage(said), output_tokens: 1 };
      yield event('message_start', {
        message: { ...message, stop_reason: null, stop_sequence: null, usage },
      });
      const content_block = isTool
        ? { type: 'tool_use', id: 't1', name: call.name, input: {} }
        : { type: 'text', text: '' };
      yield event('content_block_start', { index: 0, content_block });
      yield event('ping');
      for (const part of isTool ? [call.args] : WORDS)
        yield event('content_block_delta', {
          index: 0,
          delta: isTool
            ? { type: 'input_json_delta', partial_json: part }
            : { type: 'text_delta', text: part },
        });
      yield event('content_block_stop', { index: 0 });
      const delta = { stop_reason: isTool ? 'tool_use' : 'end_turn', stop_sequence: null };
      yield event('message_delta', { delta, usage: { output_tokens: output } });
      yield event('message_stop');
    },
  },
};

const anthropicUsage = ({ input, cached }) => ({
  input_tokens: input - cached,
  cache_read_input_tokens: cached,
  cache_creation_input_tokens: 0,
});

function responseOf({ model }, isTool) {
  const text = { type: 'output_text', text: WORDS.join(''), annotations: [] };
  return {
    ...{ id: `resp_${count}`, object: 'response', created_at: 1, model, status: 'completed', error: null },
    ...{
      incomplete_details: null,
      instructions: null,
      metadata: {},
      parallel_tool_calls: true,
      temperature: 1,
    },
    ...{ tool_choice: 'auto', tools: [], top_p: 1 },
    output: [
      isTool
        ? {
            type: 'function_call',
            id: 'fc_1',
            call_id: 'c1',
            name: call.name,
            arguments: call.args,
            status: 'completed',
          }
        : { type: 'message', id: 'm_1', role: 'assistant', status: 'completed', content: [text] },
    ],
  };
}

/** What is kept at the provider. */
const STORED = /^\/v1\/(?:files|batches|messages\/batches|responses\/resp_\d+\/cancel)/;

/** What is said to be done, in a member that each API has. */
function scriptOf(body) {
  const said = JSON.stringify(body);
  const [, script = ''] = /script:([a-z0-9 ]*)/.exec(said) ?? [];
  return script.trim().split(' ');
}

const TYPES = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

async function answer(request, response, text) {
  const json = (status, body, headers = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  const { method, url, headers } = request;
  if (url === '/told') return json(200, { calls, cost, tokens });
  const path = url.split('?')[0];
  if (method === 'GET' && path === '/v1/models')
    return json(200, {
      object: 'list',
      has_more: false,
      first_id: null,
      last_id: null,
      data: [{ id: 'm-openai', object: 'model', type: 'model' }],
    });
  if (method !== 'POST' || STORED.test(path))
    return json(200, { id: 'x_1', object: 'stored', type: 'stored' });
  const body = JSON.parse(text);
  if (path === '/v1/moderations')
    return json(200, { id: 'modr-1', model: 'm', results: [{ flagged: false }] });
  if (path === '/v1/responses/input_tokens')
    return json(200, { object: 'response.input_tokens', input_tokens: 12 });
  if (path === '/v1/messages/count_tokens') return json(200, { input_tokens: 12 });
  const api = APIS[path];
  if (api === undefined)
    return json(404, { error: { message: 'no such path', type: 'invalid_request_error' } });
  const [word, status, times = '1', id = ''] = scriptOf(body);
  calls.push({
    path,
    word,
    key: headers['idempotency-key'] ?? null,
    auth: headers.authorization ?? headers['x-api-key'] ?? null,
    limit: body.max_tokens ?? body.max_completion_tokens ?? body.max_output_tokens ?? null,
  });
  if (word === 'fail') {
    const name = `${path} ${status} ${id}`;
    const tried = (tries.get(name) ?? 0) + 1;
    tries.set(name, tried);
    if (tried <= Number(times))
      return json(Number(status), api.errorOf(TYPES[status] ?? 'api_error', 'scripted'), {
        'retry-after-ms': '1',
      });
  }
  const isTool = word === 'tool';
  if (word === 'slow') await sleep(3000);
  if (body.stream !== true) return json(200, api.whole(body, isTool), { 'x-request-id': 'r1' });
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  let at = 0;
  for (const [event, data] of api.pieces(body, isTool)) {
    at += 1;
    if (at === 4 && word === 'break') {
      // What Anthropic sends where it is overloaded midway.
      if (path === '/v1/messages')
        response.write(
          `event: error\ndata: ${JSON.stringify(api.errorOf('overloaded_error', 'scripted'))}\n\n`,
        );
      return response.end();
    }
    if (at === 4 && word === 'cut') return response.destroy();
    const told = typeof data === 'string' ? data : JSON.stringify(data);
    response.write(`${event === undefined ? '' : `event: ${event}\n`}data: ${told}\n\n`);
    await sleep(2);
  }
  return response.end();
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    answer(request, response, Buffer.concat(chunks).toString()).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
