/**
 * A server of version 1 of the SDK, with sessions and all that the conformance suite asks of one for 2025-11-25: `node server-v1.js` prints
 * where it listens.
 */

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod';
import { InMemoryEventStore } from './node_modules/@modelcontextprotocol/sdk/dist/esm/examples/shared/inMemoryEventStore.js';

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const SOUND = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
const text = (value) => ({ type: 'text', text: value });
const sleep = (ms) => new Promise((ok) => setTimeout(ok, ms));
/** Asks the user of the client. */
const elicit = ({ sendRequest }, message, properties, required = []) =>
  sendRequest(
    {
      method: 'elicitation/create',
      params: { message, requestedSchema: { type: 'object', properties, required } },
    },
    ElicitResultSchema,
  );
function make() {
  const server = new McpServer(
    { name: 'live-v1', version: '1' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
    },
  );
  const tool = (name, handler, inputSchema = {}) =>
    server.registerTool(name, { description: name, inputSchema }, handler);
  tool('test_simple_text', () => ({ content: [text('This is a simple text response for testing.')] }));
  tool('test_image_content', () => ({ content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }] }));
  tool('test_audio_content', () => ({ content: [{ type: 'audio', data: SOUND, mimeType: 'audio/wav' }] }));
  const embedded = {
    type: 'resource',
    resource: {
      uri: 'test://embedded-resource',
      mimeType: 'text/plain',
      text: 'This is an embedded resource content.',
    },
  };
  tool('test_embedded_resource', () => ({ content: [embedded] }));
  tool('test_multiple_content_types', () => ({
    content: [
      text('Multiple content types test:'),
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }));
  tool('test_tool_with_logging', async (_, extra) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
      await sleep(50);
    }
    return { content: [text('Tool with logging executed successfully')] };
  });
  tool('test_tool_with_progress', async (_, extra) => {
    const progressToken = extra._meta?.progressToken ?? 0;
    for (const p of [0, 50, 100]) {
      await extra.sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress: p, total: 100, message: `Completed step ${p} of 100` },
      });
      await sleep(50);
    }
    return { content: [text(String(progressToken))] };
  });
  tool('test_error_handling', () => ({
    isError: true,
    content: [text('This tool intentionally returns an error for testing')],
  }));
  tool(
    'test_sampling',
    async ({ prompt }, extra) => {
      const result = await extra.sendRequest(
        {
          method: 'sampling/createMessage',
          params: { messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 },
        },
        CreateMessageResultSchema,
      );
      return { content: [text(`LLM response: ${result.content.text}`)] };
    },
    { prompt: z.string() },
  );
  tool(
    'test_elicitation',
    async ({ message }, extra) => {
      const result = await elicit(
        extra,
        message,
        { response: { type: 'string', description: "User's response" } },
        ['response'],
      );
      return {
        content: [text(`User response: action=${result.action}, content=${JSON.stringify(result.content)}`)],
      };
    },
    { message: z.string() },
  );
  tool('test_elicitation_sep1034_defaults', async (_, extra) => {
    const result = await elicit(extra, 'Please review', {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    });
    return { content: [text(JSON.stringify(result))] };
  });
  tool('test_elicitation_sep1330_enums', async (_, extra) => {
    const result = await elicit(extra, 'Please select', {
      untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
      titledSingle: {
        type: 'string',
        oneOf: [
          { const: 'value1', title: 'First Option' },
          { const: 'value2', title: 'Second Option' },
          { const: 'value3', title: 'Third Option' },
        ],
      },
      legacyEnum: {
        type: 'string',
        enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'],
      },
      untitledMulti: {
        type: 'array',
        items: { type: 'string', enum: ['option1', 'option2', 'option3'] },
      },
      titledMulti: {
        type: 'array',
        items: {
          anyOf: [
            { const: 'value1', title: 'First Choice' },
            { const: 'value2', title: 'Second Choice' },
            { const: 'value3', title: 'Third Choice' },
          ],
        },
      },
    });
    return { content: [text(JSON.stringify(result))] };
  });
  tool('test_reconnection', async (_, extra) => {
    extra.closeSSEStream?.();
    await sleep(100);
    return { content: [text('Reconnection test completed')] };
  });
  server.registerResource('static-text', 'test://static-text', { mimeType: 'text/plain' }, (uri) => ({
    contents: [
      { uri: uri.href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
    ],
  }));
  server.registerResource('static-binary', 'test://static-binary', { mimeType: 'image/png' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'image/png', blob: PIXEL }],
  }));
  server.registerResource('watched', 'test://watched-resource', { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'w' }],
  }));
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { mimeType: 'application/json' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        },
      ],
    }),
  );
  const msg = (content) => ({ messages: [{ role: 'user', content }] });
  server.registerPrompt('test_simple_prompt', { description: 'd' }, () =>
    msg(text('This is a simple prompt for testing.')),
  );
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'd', argsSchema: { arg1: z.string(), arg2: z.string() } },
    ({ arg1, arg2 }) => msg(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'd', argsSchema: { resourceUri: z.string() } },
    ({ resourceUri }) => ({
      messages: [
        {
          role: 'user',
          content: {
            type: 'resource',
            resource: {
              uri: resourceUri,
              mimeType: 'text/plain',
              text: 'Embedded resource content for testing.',
            },
          },
        },
        { role: 'user', content: text('Please process the embedded resource above.') },
      ],
    }),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'd' }, () => ({
    messages: [
      { role: 'user', content: { type: 'image', data: PIXEL, mimeType: 'image/png' } },
      { role: 'user', content: text('Please analyze the image above.') },
    ],
  }));
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(SetLevelRequestSchema, () => ({}));
  server.server.setRequestHandler(CompleteRequestSchema, () => ({
    completion: { values: ['a'], total: 1, hasMore: false },
  }));
  return server;
}
const sessions = new Map();
createServer(async (request, response) => {
  const host = (request.headers.host ?? '').replace(/:\d+$/, ''),
    origin = request.headers.origin;
  if (
    !['127.0.0.1', 'localhost'].includes(host) ||
    (origin && !/^https?:\/\/(127\.0\.0\.1|localhost)(:\d+)?$/.test(origin))
  ) {
    response.writeHead(403).end('{}');
    return;
  }

  const id = request.headers['mcp-session-id'];
  let transport = id && sessions.get(id);
  if (!transport) {
    if (id) {
      response
        .writeHead(404, { 'content-type': 'application/json' })
        .end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}');
      return;
    }
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      eventStore: new InMemoryEventStore(),
      retryInterval: 500,
      onsessioninitialized: (session) => sessions.set(session, transport),
    });
    await make().connect(transport);
  }
  await transport.handleRequest(request, response);
}).listen(0, '127.0.0.1', function () {
  console.log(`http://127.0.0.1:${this.address().port}/mcp`);
});
