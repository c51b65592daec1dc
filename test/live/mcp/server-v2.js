/** A server of version 2 of the SDK, for both eras: `node server-v2.js` on stdio, `node server-v2.js http` prints where it listens. It counts
 * what it ran in the file RAN. */

import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from '@modelcontextprotocol/node';
import { acceptedContent, createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const ran = (name) => process.env.RAN !== undefined && appendFileSync(process.env.RAN, `${name}\n`);
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function make() {
  const server = new McpServer(
    { name: 'live-v2', version: '1' },
    { capabilities: { tools: {}, resources: {}, prompts: {}, logging: {} } },
  );
  const tool = (name, inputSchema, handler) =>
    server.registerTool(name, { description: name, inputSchema: z.object(inputSchema) }, handler);
  tool('add', { a: z.number(), b: z.number() }, ({ a, b }) => {
    ran('add');
    return text(String(a + b));
  });
  tool('deploy', { env: z.string() }, ({ env }, ctx) => {
    const schema = z.object({ confirm: z.boolean() });
    const answer = acceptedContent(ctx.mcpReq.inputResponses, 'confirm', schema);
    if (answer?.confirm !== true)
      return inputRequired({
        inputRequests: {
          confirm: inputRequired.elicit({ message: `Deploy to ${env}?`, requestedSchema: schema }),
        },
        requestState: `state of ${env}`,
      });
    ran('deploy');
    return text(`deployed to ${env}`);
  });
  tool('fail', {}, () => {
    ran('fail');
    return { ...text('no'), isError: true };
  });
  tool('steps', {}, async (_input, ctx) => {
    ran('steps');
    const token = ctx.mcpReq._meta?.progressToken;
    for (let n = 1; n <= 3 && token !== undefined; n += 1) {
      await ctx.mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken: token, progress: n, total: 3 },
      });
      // A client that hears of the end first no longer hears of steps.
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return text('stepped');
  });
  tool('wait', { seconds: z.number() }, async ({ seconds }, ctx) => {
    ran('wait');
    await new Promise((resolve) => {
      setTimeout(resolve, seconds * 1000);
      ctx.mcpReq.signal.addEventListener('abort', resolve);
    });
    return text('waited');
  });
  // What the conformance suite asks for.
  tool('test_simple_text', {}, () => text('This is a simple text response for testing.'));
  tool('test_image_content', {}, () => ({
    content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }],
  }));
  tool('test_error_handling', {}, () => ({
    ...text('This tool intentionally returns an error for testing'),
    isError: true,
  }));
  tool('test_input_required_result_elicitation', {}, (_input, ctx) => {
    const schema = z.object({ name: z.string() });
    const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', schema);
    if (answer !== undefined) return text(`Hello, ${answer.name}!`);
    const request = inputRequired.elicit({ message: 'What is your name?', requestedSchema: schema });
    return inputRequired({ inputRequests: { user_name: request } });
  });
  server.registerPrompt('test_simple_prompt', { description: 'simple' }, () => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'This is a simple prompt for testing.' } }],
  }));
  server.registerResource('static-text', 'test://static-text', { mimeType: 'text/plain' }, () => ({
    contents: [
      {
        uri: 'test://static-text',
        mimeType: 'text/plain',
        text: 'This is the content of the static text resource.',
      },
    ],
  }));
  return server;
}

if (process.argv[2] === 'http') {
  const handle = toNodeHandler(createMcpHandler(make));
  const [isHostRight, isOriginRight] = [localhostHostValidation(), localhostOriginValidation()];
  const server = createServer((request, response) => {
    if (isHostRight(request, response) && isOriginRight(request, response)) void handle(request, response);
  });
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
} else {
  serveStdio(make);
}
