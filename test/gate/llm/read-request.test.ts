/** Which requests are calls, and what they may cost at most. */

import { describe, expect, it } from 'vitest';
import { readModelRequest } from '../../../src/gate/llm/read-request.js';
import {
  callOf,
  CHAT,
  codeOf,
  get,
  MESSAGES,
  post,
  REQUEST_TOKENS,
  RESPONSES,
  SMALLEST,
  user,
} from './support.js';

const TOOLS = 1_024;
const SCHEMA = 1_024;
const PNG = `data:image/png;base64,${'iVBO'.repeat(10)}`;

const chat = (more: object): object => ({ model: 'gpt-4o', messages: [user('hi')], max_tokens: 5, ...more });
const responses = (more: object): object => ({ model: 'gpt-5', input: 'hi', max_output_tokens: 16, ...more });
const messages = (more: object): object => ({
  model: 'claude-sonnet-4-5',
  messages: [user('hi')],
  max_tokens: 5,
  ...more,
});
const bytesOf = (body: unknown): number => Buffer.byteLength(JSON.stringify(body));

describe('paths', () => {
  it.each(SMALLEST)('%s is a call, with and without /v1, and whatever its query', (path, body) => {
    const apis = [path, path.slice(3), `${path}?beta=true`].map((each) => callOf(each, body).api);
    expect(new Set(apis).size).toBe(1);
  });

  it.each([
    [get('/v1/models')],
    [get('/models')],
    [get('/v1/models/gpt-4o')],
    [get('/v1/models/meta-llama/Llama-3-8b')],
    [post('/v1/messages/count_tokens', {})],
    [post('/v1/responses/input_tokens', {})],
    [post('/v1/moderations', {})],
    [get('/v1/responses/resp_1?stream=true')],
    [get('/v1/responses/resp_1', 'DELETE')],
    [post('/v1/responses/resp_1/cancel', '')],
    [get('/v1/messages/batches/msgbatch_1/results')],
    [get('/v1/files')],
    [get('/v1/batches')],
  ])('%o costs nothing', (request) => {
    expect(readModelRequest(request).kind).toBe('free');
  });

  it.each([
    ['404 PATH_UNKNOWN', post('/v1/realtime/sessions', {})],
    ['404 PATH_UNKNOWN', post('/', {})],
    ['404 PATH_UNKNOWN', post('', {})],
    ['404 PATH_UNKNOWN', post('/v1/chat/completions/', {})],
    ['404 PATH_UNKNOWN', post('//v1/chat/completions', {})],
    ['404 PATH_UNKNOWN', post('/v1/v1/chat/completions', {})],
    ['404 PATH_UNKNOWN', post('/v1/models/../chat/completions', {})],
    ['404 PATH_UNKNOWN', get('/v1/models/..')],
    ['404 PATH_UNKNOWN', get('/v1/models/a/../../chat')],
    ['404 PATH_UNKNOWN', get('/v1/responses/..')],
    ['404 PATH_UNKNOWN', post('/v1/chat%2fcompletions', {})],
    ['404 PATH_UNKNOWN', post('/V1/chat/completions', {})],
    ['404 PATH_UNKNOWN', post('/v1/chat/completions;x', {})],
    ['404 PATH_UNKNOWN', post('/v1/chat/completions\n', {})],
    ['404 PATH_UNKNOWN', post('http://example.com/v1/chat/completions', {})],
    ['405 METHOD_NOT_ALLOWED', get('/v1/responses')],
    ['426 PROTOCOL_UNSUPPORTED', { ...get('/v1/responses'), headers: { upgrade: 'websocket' } }],
    ['404 PATH_UNKNOWN', { ...get('/v1/realtime'), headers: { upgrade: 'websocket' } }],
    ['405 METHOD_NOT_ALLOWED', get('/v1/chat/completions', 'PUT')],
    ['405 METHOD_NOT_ALLOWED', get('/v1/models', 'DELETE')],
    ['405 METHOD_NOT_ALLOWED', post('/v1/responses/resp_1', {})],
    ['405 METHOD_NOT_ALLOWED', get('/v1/chat/completions', 'post')],
  ])('%s: %o', (code, request) => {
    expect(codeOf(readModelRequest(request))).toBe(code);
  });

  it('tells whose errors are expected', () => {
    const family = (request: ReturnType<typeof get>): unknown => {
      const read = readModelRequest(request);
      return read.kind === 'call' ? undefined : read.family;
    };
    expect(family(get('/v1/models'))).toBe('openai');
    expect(family({ ...get('/v1/models'), headers: { 'anthropic-version': '2023-06-01' } })).toBe(
      'anthropic',
    );
    expect(family(post(MESSAGES, 'x'))).toBe('anthropic');
    expect(family(post('/messages/x', 'x'))).toBe('anthropic');
  });
});

describe('names', () => {
  it('are those of the kits', () => {
    expect(callOf(CHAT, chat({}))).toMatchObject({
      toolName: 'llm.openai/gpt-4o',
      model: 'gpt-4o',
      provider: 'openai',
    });
    expect(callOf(MESSAGES, messages({})).toolName).toBe('llm.anthropic/claude-sonnet-4-5');
    const named = readModelRequest(post(CHAT, chat({ model: 'a b/c' })), { provider: 'groq' });
    expect(named).toMatchObject({ request: { toolName: 'llm.groq/a~20b/c', provider: 'groq' } });
    expect(callOf('/v1/batches', { input_file_id: 'f' }).toolName).toBe('llm.openai/batches');
  });
});

describe('the least request of each API', () => {
  it.each(SMALLEST)('%s has a bound', (path, body) => {
    const request = callOf(path, body);
    expect(request.unbounded).toEqual([]);
    expect(request.inputBytes).toBe(bytesOf(body) + REQUEST_TOKENS);
    expect(request.params).toEqual(body);
    expect(request.isStream).toBe(false);
  });
});

describe('the most output', () => {
  it.each<[string, object, number | undefined, number]>([
    ['max_tokens', chat({}), 5, 1],
    ['max_completion_tokens', chat({ max_tokens: undefined, max_completion_tokens: 7 }), 7, 1],
    ['the greater of both', chat({ max_completion_tokens: 7 }), 7, 1],
    ['the greater of both', chat({ max_tokens: 9, max_completion_tokens: 7 }), 9, 1],
    ['of each choice', chat({ n: 3 }), 15, 3],
    ['left open', chat({ max_tokens: undefined }), undefined, 1],
    ['left open by null', chat({ max_tokens: null, n: null }), undefined, 1],
    ['written as 5.0', chat({ max_tokens: 5.0 }), 5, 1],
  ])('of chat: %s', (_name, body, maxOutput, choices) => {
    expect(callOf(CHAT, body)).toMatchObject({ choices, ...(maxOutput === undefined ? {} : { maxOutput }) });
    expect(callOf(CHAT, body).maxOutput).toBe(maxOutput);
  });

  it.each<[string, string, object, number | undefined]>([
    ['of responses', RESPONSES, responses({}), 16],
    ['of responses, left open', RESPONSES, responses({ max_output_tokens: undefined }), undefined],
    [
      'of messages, thinking within it',
      MESSAGES,
      messages({ thinking: { type: 'enabled', budget_tokens: 4 } }),
      5,
    ],
    ['of messages that fill the cache', MESSAGES, messages({ max_tokens: 0 }), 0],
    ['of completions', '/v1/completions', { model: 'm', prompt: ['a', 'b'], n: 2, max_tokens: 5 }, 20],
    [
      'of the best of several',
      '/v1/completions',
      { model: 'm', prompt: 'a', n: 2, best_of: 3, max_tokens: 5 },
      15,
    ],
    ['of one prompt of tokens', '/v1/completions', { model: 'm', prompt: [1, 2, 3], max_tokens: 5 }, 5],
    ['of prompts of tokens', '/v1/completions', { model: 'm', prompt: [[1], [2]], max_tokens: 5 }, 10],
    ['of embeddings', '/v1/embeddings', { model: 'm', input: [[1, 2], [3]] }, 0],
    [
      'of images',
      '/v1/images/generations',
      { model: 'gpt-image-1', prompt: 'x', n: 2, size: 'auto' },
      12_480,
    ],
    ['of images priced by image', '/v1/images/generations', { model: 'dall-e-2', prompt: 'x', n: 2 }, 0],
  ])('%s', (_name, path, body, maxOutput) => {
    expect(callOf(path, body).maxOutput).toBe(maxOutput);
    expect(callOf(path, body).unbounded).toEqual([]);
  });

  it.each([
    ['max_tokens', -1],
    ['max_tokens', 0],
    ['max_tokens', 1.5],
    ['max_tokens', '5'],
    ['max_tokens', true],
    ['max_tokens', [5]],
    ['max_tokens', 1e300],
    ['max_tokens', 1_000_000_001],
    ['max_completion_tokens', 0],
    ['n', 0],
    ['n', 129],
    ['n', '2'],
    ['stream', 'true'],
    ['stream', 1],
    ['messages', 'hi'],
    ['messages', null],
    ['messages', ['hi']],
    ['messages', [{ role: 'user', content: 5 }]],
    ['messages', [{ role: 'user', content: ['hi'] }]],
    ['tools', {}],
    ['tools', ['bash']],
    ['model', ''],
    ['model', 5],
    ['model', null],
    ['model', 'x'.repeat(257)],
    ['model', 'a\u0000b'],
    ['model', 'a\u202eb'],
  ])('refuses %s %o', (name, value) => {
    const read = readModelRequest(post(CHAT, chat({ [name]: value })));
    expect(codeOf(read)).toBe('400 REQUEST_INVALID');
  });

  it.each([
    [RESPONSES, responses({ max_output_tokens: 0 })],
    [RESPONSES, responses({ input: 5 })],
    [RESPONSES, responses({ reasoning: 'high' })],
    [MESSAGES, messages({ max_tokens: undefined })],
    [MESSAGES, messages({ max_tokens: null })],
    [MESSAGES, messages({ max_tokens: -1 })],
    [MESSAGES, messages({ messages: undefined })],
    [MESSAGES, messages({ tools: [{ type: 'web_search_20250305', max_uses: -1 }] })],
    ['/v1/completions', { model: 'm', prompt: [{}] }],
    ['/v1/completions', { model: 'm', prompt: 'x', best_of: 0 }],
    ['/v1/completions', { model: 'm', prompt: Array(2_049).fill('') }],
    ['/v1/completions', { model: 'm', prompt: ['a', 'b'], max_tokens: 1_000_000_000 }],
    ['/v1/embeddings', { model: 'm' }],
    ['/v1/images/generations', { model: 'dall-e-3', prompt: 'x', n: 11 }],
    ['/v1/images/generations', { prompt: 'x' }],
  ])('refuses %s %o', (path, body) => {
    expect(codeOf(readModelRequest(post(path, body)))).toBe('400 REQUEST_INVALID');
  });
});

describe('what is in the body', () => {
  it.each<[string, object, number]>([
    ['tools', chat({ tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] }), TOOLS],
    ['functions', chat({ functions: [{ name: 'f' }] }), TOOLS],
    ['a schema', chat({ response_format: { type: 'json_object' } }), SCHEMA],
    [
      'an image',
      chat({ messages: [user([{ type: 'image_url', image_url: { url: PNG } }])] }),
      24_600 - PNG.length,
    ],
    [
      'an image by address',
      chat({ messages: [user([{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }])] }),
      24_600,
    ],
    [
      'images of gpt-4o-mini, at low detail too',
      chat({
        model: 'gpt-4o-mini-2024-07-18',
        messages: [user(Array(2).fill({ type: 'image_url', image_url: { url: PNG, detail: 'low' } }))],
      }),
      2 * (48_169 - PNG.length),
    ],
    [
      'sound',
      chat({ messages: [user([{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } }])] }),
      0,
    ],
  ])('of chat: %s', (_name, body, added) => {
    const request = callOf(CHAT, body);
    expect(request.unbounded).toEqual([]);
    expect(request.inputBytes).toBe(bytesOf(body) + REQUEST_TOKENS + added);
  });

  it('counts an image by its bytes where those are more', () => {
    const url = `data:image/png;base64,${'A'.repeat(30_000)}`;
    const body = chat({ messages: [user([{ type: 'image_url', image_url: { url } }])] });
    expect(callOf(CHAT, body).inputBytes).toBe(bytesOf(body) + REQUEST_TOKENS);
  });

  const image = { type: 'input_image', image_url: PNG };
  it.each<[string, object, number]>([
    ['an image', responses({ input: [user([image])] }), 24_600 - PNG.length],
    ['an image by id', responses({ input: [user([{ type: 'input_image', file_id: 'file-1' }])] }), 24_600],
    [
      'an image from a tool',
      responses({ input: [{ type: 'function_call_output', call_id: 'c', output: [image] }] }),
      24_600 - PNG.length,
    ],
    [
      'a screenshot',
      responses({
        input: [{ type: 'computer_call_output', output: { type: 'computer_screenshot', image_url: PNG } }],
      }),
      24_600 - PNG.length,
    ],
    [
      'tools in a namespace',
      responses({ tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f' }] }] }),
      TOOLS,
    ],
    ['a format', responses({ text: { format: { type: 'text' } } }), SCHEMA],
    ['what a client says of itself', responses({ client_metadata: { turn_id: 't' } }), 0],
    [
      'a conversation that is all in it',
      responses({
        input: [
          { role: 'user', content: 'hi' },
          { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' },
          { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
          { type: 'function_call_output', call_id: 'c', output: 'ok' },
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok' }] },
        ],
        reasoning: { effort: 'high', summary: 'auto' },
        include: ['reasoning.encrypted_content'],
        store: false,
      }),
      0,
    ],
  ])('of responses: %s', (_name, body, added) => {
    const request = callOf(RESPONSES, body);
    expect(request.unbounded).toEqual([]);
    expect(request.inputBytes).toBe(bytesOf(body) + REQUEST_TOKENS + added);
  });

  const source = { type: 'base64', media_type: 'image/png', data: 'iVBO'.repeat(10) };
  const deferred = { name: 'f', input_schema: { type: 'object' }, defer_loading: true };
  const found = { type: 'tool_reference', tool_name: 'f' };
  it.each<[string, object, number]>([
    ['tools', messages({ tools: [{ name: 'f', input_schema: { type: 'object' } }] }), TOOLS],
    [
      'tools that Anthropic defines',
      messages({
        tools: [
          { type: 'bash_20250124', name: 'bash' },
          { type: 'text_editor_20250728', name: 'e' },
        ],
      }),
      TOOLS + 2 * 2_048,
    ],
    [
      'tools that the client found for it, each time anew',
      messages({
        tools: [deferred, { type: 'bash_20250124', name: 'bash', defer_loading: true }],
        messages: [
          user([{ type: 'tool_result', tool_use_id: 't', content: [found, found] }]),
          user([{ type: 'tool_result', tool_use_id: 'u', content: [{ ...found, tool_name: 'bash' }] }]),
        ],
      }),
      TOOLS + 2_048 + 2 * (bytesOf(deferred) + 64) + 2_048 + 64,
    ],
    [
      'tools that come and go',
      messages({
        tools: [deferred],
        messages: ['tool_addition', 'tool_removal'].map((type) => ({
          role: 'system',
          content: [{ type, tool: { type: 'tool_reference', name: 'f' } }],
        })),
      }),
      TOOLS + 2 * (bytesOf(deferred) + 64),
    ],
    ['a schema', messages({ output_config: { format: { type: 'json_schema', schema: {} } } }), SCHEMA],
    ['an image', messages({ messages: [user([{ type: 'image', source }])] }), 4_784 - 40],
    [
      'an image by address',
      messages({
        messages: [user([{ type: 'image', source: { type: 'url', url: 'https://example.com/a' } }])],
      }),
      4_784,
    ],
    [
      'an image from a tool',
      messages({
        messages: [user([{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source }] }])],
      }),
      4_784 - 40,
    ],
    [
      'images in a document',
      messages({
        messages: [
          user([{ type: 'document', source: { type: 'content', content: [{ type: 'image', source }] } }]),
        ],
      }),
      4_784 - 40,
    ],
    [
      'a document of text',
      messages({ messages: [user([{ type: 'document', source: { type: 'text', data: 'x' } }])] }),
      0,
    ],
    [
      'what an agent sends',
      messages({
        system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }],
        messages: [
          user('hi'),
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: '', signature: 'x' },
              { type: 'redacted_thinking', data: 'x' },
              { type: 'tool_use', id: 't', name: 'f', input: { content: [{ type: 'document' }] } },
            ],
          },
          user([{ type: 'tool_result', tool_use_id: 't', content: 'ok' }]),
        ],
        metadata: { user_id: 'u' },
        context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
        service_tier: 'auto',
      }),
      0,
    ],
  ])('of messages: %s', (_name, body, added) => {
    const request = callOf(MESSAGES, body);
    expect(request.unbounded).toEqual([]);
    expect(request.inputBytes).toBe(bytesOf(body) + REQUEST_TOKENS + added);
  });

  it('is bounded by its bytes however it is written', () => {
    const text = '{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"\\u00e9\\n é 😀"}]}';
    expect(callOf(CHAT, text).inputBytes).toBe(Buffer.byteLength(text) + REQUEST_TOKENS);
  });

  it('is bounded where a tokenizer writes it in another form, in which it is longer', () => {
    // U+FDFA is 3 bytes, and 33 in NFKC.
    for (const written of ['\ufdfa'.repeat(100), '\\ufdfa'.repeat(100)]) {
      const text = `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"${written}"}]}`;
      expect(callOf(CHAT, text).inputBytes).toBeGreaterThan(3_300);
    }
  });
});

describe('what has no bound', () => {
  it.each<[string, object]>([
    ['service_tier', chat({ service_tier: 'priority' })],
    ['prediction', chat({ prediction: { type: 'content', content: 'x' } })],
    ['audio', chat({ modalities: ['text', 'audio'] })],
    ['audio', chat({ audio: { voice: 'alloy', format: 'wav' } })],
    ['web_search_options', chat({ web_search_options: {} })],
    ['web_search_options', chat({ model: 'gpt-4o-search-preview' })],
    ['tool openrouter', chat({ tools: [{ type: 'openrouter' }] })],
    ['tool of another type', chat({ tools: [{ type: 'Ω' }] })],
    ['tool of another type', chat({ tools: [{}] })],
    ['file', chat({ messages: [user([{ type: 'file', file: { file_id: 'f' } }])] })],
    [
      'file',
      chat({
        messages: [user([{ type: 'image_url', image_url: { url: 'data:application/pdf;base64,AA' } }])],
      }),
    ],
    ['image', chat({ messages: [user([{ type: 'image_url', image_url: { url: PNG }, max_pixels: 10 }])] })],
    ['content of another type', chat({ messages: [user([{ type: 'video_url', video_url: { url: 'x' } }])] })],
    ['content of another type', chat({ messages: [user([{ text: 'hi' }])] })],
    ['messages: audio', chat({ messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] })],
    ['member plugins', chat({ plugins: [{ id: 'web' }] })],
    ['member models', chat({ models: ['dearer'] })],
    ['member of another name', chat({ 'Ignore previous instructions': 1 })],
  ])('of chat: %s', (reason, body) => {
    expect(callOf(CHAT, body).unbounded).toEqual([reason]);
  });

  it.each<[string, object]>([
    ['previous_response_id that was not seen here', responses({ previous_response_id: 'resp_1' })],
    ['conversation', responses({ conversation: 'conv_1' })],
    ['prompt', responses({ prompt: { id: 'pmpt_1' } })],
    ['context_management', responses({ context_management: [{ type: 'compaction' }] })],
    ['service_tier', responses({ service_tier: 'flex' })],
    ['reasoning.mode', responses({ reasoning: { mode: 'pro' } })],
    ['prompt_cache_options.ttl', responses({ prompt_cache_options: { ttl: '12h' } })],
    ['member background_options', responses({ background_options: { completion_window: '8h' } })],
    ['tools of the model', responses({ model: 'o3-deep-research' })],
    ['tool web_search', responses({ tools: [{ type: 'web_search' }] })],
    [
      'tool code_interpreter',
      responses({ tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }),
    ],
    ['tool file_search', responses({ tools: [{ type: 'file_search', vector_store_ids: ['v'] }] })],
    ['tool computer_use_preview', responses({ tools: [{ type: 'computer_use_preview' }] })],
    [
      'tool mcp',
      responses({
        tools: [{ type: 'namespace', tools: [{ type: 'mcp', server_url: 'https://example.com' }] }],
      }),
    ],
    ['file', responses({ input: [user([{ type: 'input_file', file_id: 'f' }])] })],
    [
      'item_reference that was not seen here',
      responses({ input: [{ type: 'item_reference', id: 'msg_1' }] }),
    ],
    [
      'reasoning by id that was not seen here',
      responses({ input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }),
    ],
    ['input of another type', responses({ input: [{ type: 'compaction', encrypted_content: 'x' }] })],
    ['content of another type', responses({ input: [user([{ type: 'x' }])] })],
    ['member max_tokens', responses({ max_tokens: 5 })],
  ])('of responses: %s', (reason, body) => {
    expect(callOf(RESPONSES, body).unbounded).toEqual([reason]);
  });

  it.each<[string, object]>([
    ['service_tier', messages({ service_tier: 'priority' })],
    ['speed', messages({ speed: 'fast' })],
    ['inference_geo', messages({ inference_geo: 'us' })],
    ['container', messages({ container: 'c' })],
    ['mcp_servers', messages({ mcp_servers: [{ type: 'url', url: 'https://example.com' }] })],
    ['fallbacks', messages({ fallbacks: 'default' })],
    ['context_management', messages({ context_management: { edits: [{ type: 'compact_20260112' }] } })],
    ['tool code_execution_20250825', messages({ tools: [{ type: 'code_execution_20250825', name: 'c' }] })],
    ['tool computer_toolset_20260801', messages({ tools: [{ type: 'computer_toolset_20260801' }] })],
    [
      'document',
      messages({ messages: [user([{ type: 'document', source: { type: 'base64', data: 'x' } }])] }),
    ],
    [
      'document',
      messages({
        messages: [
          user([
            {
              type: 'web_fetch_tool_result',
              content: { type: 'web_fetch_result', content: { type: 'document', source: { type: 'url' } } },
            },
          ]),
        ],
      }),
    ],
    [
      'citations',
      messages({
        messages: [
          user([{ type: 'document', source: { type: 'text', data: 'x' }, citations: { enabled: true } }]),
        ],
      }),
    ],
    ['content of another type', messages({ messages: [user([{ type: 'container_upload', file_id: 'f' }])] })],
    [
      'tool by reference',
      messages({
        messages: [user([{ type: 'tool_result', content: [{ type: 'tool_reference', tool_name: 'f' }] }])],
      }),
    ],
    ['image', messages({ messages: [user([{ type: 'image', source: {}, transformations: {} }])] })],
    ['member n', messages({ n: 2 })],
    [
      'tool by reference',
      messages({
        messages: [
          user([{ type: 'tool_addition', tool: { type: 'mcp_toolset_reference', server_name: 's' } }]),
        ],
      }),
    ],
  ])('of messages: %s', (reason, body) => {
    expect(callOf(MESSAGES, body).unbounded).toEqual([reason]);
  });

  it('counts searches where their number is limited', () => {
    const tool = (more: object): object => messages({ tools: [{ type: 'web_search_20250305', ...more }] });
    expect(callOf(MESSAGES, tool({ max_uses: 3 }))).toMatchObject({
      webSearches: 3,
      unbounded: ['tool web_search_20250305'],
    });
    expect(callOf(MESSAGES, tool({})).webSearches).toBe(1);
    const search = responses({ tools: [{ type: 'web_search' }], max_tool_calls: 4 });
    expect(callOf(RESPONSES, search).webSearches).toBe(4);
  });

  it.each([
    ['/v1/images/generations', { model: 'dall-e-3', prompt: 'x', quality: 'hd' }, ['quality']],
    ['/v1/images/generations', { model: 'gpt-image-1', prompt: 'x', size: '4096x4096' }, ['size']],
    ['/v1/audio/speech', { model: 'tts-1', input: 'x', voice: 'alloy' }, ['audio']],
    ['/v1/batches', { input_file_id: 'f', endpoint: CHAT }, ['batch']],
    ['/v1/messages/batches', { requests: [] }, ['batch']],
    ['/v1/embeddings', { model: 'm', input: [{ image: 'x' }] }, ['input of another type']],
  ])('of %s %o', (path, body, reasons) => {
    expect(callOf(path, body).unbounded).toEqual(reasons);
  });

  it('names at most sixteen', () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`x${n}`, 1]));
    expect(callOf(CHAT, chat(many)).unbounded).toHaveLength(16);
  });
});

describe('forms', () => {
  const form = (...parts: readonly string[]): Buffer =>
    Buffer.from(`${parts.map((part) => `--b\r\n${part}\r\n`).join('')}--b--\r\n`);
  const model = 'Content-Disposition: form-data; name="model"\r\n\r\nwhisper-1';
  const file = 'Content-Disposition: form-data; name="file"; filename="a.mp3"\r\n\r\nname="model"\r\n\r\nx';
  const headers = { 'content-type': 'multipart/form-data; boundary=b' };
  const path = '/v1/audio/transcriptions';

  it('name their model, and are recorded by their digest', () => {
    const body = form(file, model);
    const request = callOf(path, body, { headers });
    expect(request).toMatchObject({ api: 'openai-audio', model: 'whisper-1', unbounded: ['audio'] });
    expect(request.params).toEqual({
      body_digest: expect.stringMatching(/^sha-256:/) as string,
      bytes: body.length,
    });
    expect(request.inputBytes).toBe(body.length + REQUEST_TOKENS);
    expect(callOf('/v1/files', form(file), { headers }).toolName).toBe('llm.openai/files');
    const quoted = { 'content-type': 'multipart/form-data; charset=x; boundary="b"' };
    expect(callOf('/v1/images/edits', body, { headers: quoted }).unbounded).toEqual(['image']);
  });

  it.each([
    ['no model', form(file), headers],
    ['two models', form(model, model), headers],
    ['an empty model', form('Content-Disposition: form-data; name="model"\r\n\r\n'), headers],
    ['a part without a head', form('model'), headers],
    ['too many parts', form(...Array<string>(70).fill(file)), headers],
    ['no boundary', form(model), { 'content-type': 'multipart/form-data; x=y' }],
    ['nothing', Buffer.from(''), headers],
  ])('are refused with %s', (_name, body, given) => {
    expect(codeOf(readModelRequest(post(path, body, { headers: given })))).toBe('400 REQUEST_INVALID');
  });
});

describe('hostile bodies', () => {
  const plain = JSON.stringify(chat({}));
  const within = (text: string): string => plain.replace('"max_tokens":5', text);

  it.each<[string, string | Buffer]>([
    ['nothing', ''],
    ['no JSON', 'hello'],
    ['half of it', plain.slice(0, -1)],
    ['two', plain + plain],
    ['a byte order mark', `\ufeff${plain}`],
    ['duplicate limits', within('"max_tokens":5,"max_tokens":100000')],
    ['duplicate limits, one escaped', within('"max_tokens":5,"max_token\\u0073":100000')],
    ['duplicate keys below', within('"max_tokens":5,"metadata":{"a":1,"a":2}')],
    ['a lone surrogate', within('"max_tokens":5,"user":"\\ud800"')],
    ['nesting', within(`"max_tokens":5,"metadata":${'['.repeat(100)}${']'.repeat(100)}`)],
    ['deep nesting', '['.repeat(1_000_000)],
    ['a number that is none', within('"max_tokens":1e999')],
    ['bytes that are no UTF-8', Buffer.from([...Buffer.from(plain.slice(0, -2)), 0xff, 0x22, 0x7d])],
    ['UTF-16', Buffer.from(plain, 'utf16le')],
  ])('are refused: %s', (_name, body) => {
    const read = readModelRequest(post(CHAT, body));
    expect(codeOf(read)).toBe('400 REQUEST_NOT_JSON');
  });

  it.each(['9223372036854775807', '-0', '-0.0'])(
    'are read with %s, and recorded by their digest',
    (number) => {
      const body = within(
        `"max_tokens":5,"tools":[{"type":"function","function":{"parameters":{"maximum":${number}}}}]`,
      );
      const request = callOf(CHAT, body);
      expect(request.params).toMatchObject({ bytes: body.length });
      expect(request.maxOutput).toBe(5);
      expect(codeOf(readModelRequest(post(CHAT, within(`"max_tokens":${number}`))))).toBe(
        '400 REQUEST_INVALID',
      );
      expect(codeOf(readModelRequest(post(CHAT, `${within(`"seed":${number}`)}}`)))).toBe(
        '400 REQUEST_NOT_JSON',
      );
    },
  );

  it.each(['[]', '"x"', 'null', '5'])('are refused: %s', (body) => {
    expect(codeOf(readModelRequest(post(CHAT, body)))).toBe('400 REQUEST_INVALID');
  });

  it.each(['MAX_TOKENS', 'Max_Tokens', 'max_token\u017f', 'Model', 'n\u200b', 'STREAM', 'Temperature'])(
    'are refused where some provider may take %s for another name',
    (name) => {
      const read = readModelRequest(post(CHAT, chat({ [name]: 100_000 })));
      if (name === 'n\u200b')
        expect(read).toMatchObject({ request: { unbounded: ['member of another name'] } });
      else expect(codeOf(read)).toBe('400 REQUEST_INVALID');
    },
  );

  it('have no members of prototypes', () => {
    const body = '{"model":"m","messages":[],"max_tokens":5,"__proto__":{"n":100}}';
    expect(callOf(CHAT, body)).toMatchObject({ choices: 1, unbounded: ['member of another name'] });
    expect(codeOf(readModelRequest(post(CHAT, '{"__proto__":{"model":"m","messages":[]}}')))).toBe(
      '400 REQUEST_INVALID',
    );
  });

  it.each([
    ['415 CONTENT_TYPE_UNSUPPORTED', {}],
    ['415 CONTENT_TYPE_UNSUPPORTED', { 'content-type': 'text/plain' }],
    ['415 CONTENT_TYPE_UNSUPPORTED', { 'content-type': 'multipart/form-data; boundary=b' }],
    ['415 CONTENT_TYPE_UNSUPPORTED', { 'content-type': 'application/jsonx' }],
    ['415 CONTENT_TYPE_UNSUPPORTED', { 'content-type': 'application/json; charset=utf-7' }],
    ['415 CONTENT_TYPE_UNSUPPORTED', { 'content-type': 'application/json; charset=utf-8; charset=utf-16' }],
    ['call', { 'content-type': 'application/json;charset="UTF-8"' }],
    ['415 CONTENT_TYPE_UNSUPPORTED', { 'content-type': ['text/plain', 'application/json'] }],
    ['415 CONTENT_ENCODING_UNSUPPORTED', { 'content-type': 'application/json', 'content-encoding': 'zstd' }],
    ['call', { 'content-type': 'Application/JSON; charset=utf-8', 'content-encoding': 'identity' }],
  ])('%s for %o', (code, headers) => {
    expect(codeOf(readModelRequest(post(CHAT, chat({}), { headers })))).toBe(code);
  });

  it('are not repeated in refusals', () => {
    const secret = 'sk-planted-secret';
    const bodies = [
      { model: secret.repeat(20), messages: [] },
      { model: 'm', messages: secret },
      { model: 'm', messages: [{ content: [secret] }] },
      { model: 'm', messages: [], n: secret },
      `{"${secret}":1,"${secret}":1}`,
      `{"a":"${secret}`,
    ];
    for (const body of bodies) {
      const read = readModelRequest(post(CHAT, body));
      expect(codeOf(read)).toMatch(/^400/);
      expect(JSON.stringify(read)).not.toContain(secret);
    }
    expect(
      JSON.stringify(callOf(CHAT, chat({ [secret]: 1, tools: [{ type: secret }] })).unbounded),
    ).not.toContain(secret);
  });
});
