/** Servers and clients of the Model Context Protocol, both generations of the SDK. */

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import * as next from '@modelcontextprotocol/server';
import { Client as NextClient, InMemoryTransport as NextTransport } from '@modelcontextprotocol/client';
import * as z from 'zod';
import { openLedger, tell } from './ledger.js';
import { guardClient, guardTool } from 'northroot/mcp';

let ran = 0;
const read = async ({ path }) => {
  ran += 1;
  if (path === 'bad') throw Object.assign(new Error('no'), { code: 'ENOENT' });
  if (path === 'error') return { isError: true, content: [{ type: 'text', text: 'no' }] };
  return { content: [{ type: 'text', text: path }] };
};
const info = { name: 'files', version: '1' };

async function run(Server, ClientClass, Transport, schema, handler, wrap, paths) {
  ran = 0;
  const server = new Server(info);
  server.registerTool('read', { description: 'read', inputSchema: schema }, handler);
  const client = new ClientClass({ name: 'c', version: '1' });
  const [one, two] = Transport.createLinkedPair();
  await Promise.all([server.connect(one), client.connect(two)]);
  const guarded = wrap(client);
  const told = [];
  await Promise.all(
    paths.map(async (path) => {
      const { isError, content } = await guarded.callTool({ name: 'read', arguments: { path } });
      if (isError) told.push(content[0].text);
    }),
  );
  await client.close();
  return { ran, told };
}
const same = (client) => client;
const version1 = [McpServer, Client, InMemoryTransport, { path: z.string() }];
const version2 = [next.McpServer, NextClient, NextTransport, z.object({ path: z.string() })];
for (const version of [version1, version2]) {
  const [ledger, second, third] = [await openLedger(2), await openLedger(9), await openLedger(2)];
  const served = guardTool(ledger, 'files.read', read);
  await tell(ledger, await run(...version, served, same, ['c1', 'c2', 'c3']));
  const failing = guardTool(second, 'files.read', read);
  await tell(second, await run(...version, failing, same, ['bad', 'error']));
  const wrap = (client) => guardClient(third, 'files', client);
  await tell(third, await run(...version, read, wrap, ['c1', 'error', 'c3']));
}
