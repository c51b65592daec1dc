/** Starts server-everything over HTTP at a port that is free, and prints where. */

import { createServer } from 'node:net';

const probe = createServer().listen(0, '127.0.0.1');
await new Promise((resolve) => probe.once('listening', resolve));
const { port } = probe.address();
await new Promise((resolve) => probe.close(resolve));
process.env.PORT = String(port);
await import('./node_modules/@modelcontextprotocol/server-everything/dist/transports/streamableHttp.js');
for (;;) {
  const answer = await fetch(`http://127.0.0.1:${port}/mcp`).catch(() => undefined);
  if (answer !== undefined) break;
  await new Promise((resolve) => setTimeout(resolve, 50));
}
console.log(`http://127.0.0.1:${port}/mcp`);
