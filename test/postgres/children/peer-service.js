// A service of a ledger in PostgreSQL: node peer-service.js OPTIONS, JSON. Runs until SIGTERM.

import { setImmediate } from 'node:timers';
import { readFileSync } from 'node:fs';
import { createSigner, parsePrivateKey } from '../../../dist/api/index.js';
import { PostgresStore } from '../../../dist/api/postgres.js';
import { Gate, serveGate, Tokens } from '../../../dist/api/gate.js';

const { url, key, tokens, port, peers, principalId, dies } = JSON.parse(process.argv[2]);
const signer = createSigner(parsePrivateKey(readFileSync(key, 'utf8')));

/** Lets the process die as by kill -9, at an append: `before` it, while the server has it (`amid`), or once it stands (`after`). */
function dieAt(store, { append, moment }) {
  const appendIf = store.appendIf.bind(store);
  let count = 0;
  store.appendIf = async (...given) => {
    count += 1;
    if (count !== append) return appendIf(...given);
    if (moment === 'before') process.kill(process.pid, 'SIGKILL');
    const appended = appendIf(...given);
    if (moment === 'amid') setImmediate(() => process.kill(process.pid, 'SIGKILL'));
    await appended;
    process.kill(process.pid, 'SIGKILL');
  };
}

async function open() {
  const store = await PostgresStore.open(url, {});
  if (dies !== undefined) dieAt(store, dies);
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
