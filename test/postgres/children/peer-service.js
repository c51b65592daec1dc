// A service of a ledger in PostgreSQL, as `northroot serve` has it: node peer-service.js OPTIONS, JSON. Runs until SIGTERM.

import { readFileSync } from 'node:fs';
import { createSigner, parsePrivateKey } from '../../../dist/api/index.js';
import { PostgresStore } from '../../../dist/api/postgres.js';
import { Gate, serveGate, Tokens } from '../../../dist/api/gate.js';

const { url, key, tokens, port, peers, principalId } = JSON.parse(process.argv[2]);
const signer = createSigner(parsePrivateKey(readFileSync(key, 'utf8')));

async function open() {
  const store = await PostgresStore.open(url, {});
  return { gate: await Gate.open(store, { signer, principalId }) };
}

async function openAgain() {
  const opened = await open();
  opening = opened;
  return opened;
}

let opening = await open();
const server = await serveGate({
  gate: opening.gate,
  tokens: Tokens.parse(readFileSync(tokens)),
  listen: { port },
  peers: peers.map((peer) => new URL(peer)),
  reopen: openAgain,
  onRole: (change) => console.error(JSON.stringify(change)),
});
console.error('serves ');
process.once('SIGTERM', async () => {
  await server.close();
  await opening.gate.close();
});
