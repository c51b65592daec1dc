/** One process of bench/writers.js. Its one argument is JSON; at its end it says in JSON what it met. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createSigner, Ledger, parsePrivateKey, verifyLedger } from '../dist/api/index.js';
import { openLedgerSource } from '../dist/api/internals.js';

const { role, path, key, tag, from, until } = JSON.parse(process.argv[2]);

async function append() {
  const ledger = await open({});
  const [waits, acknowledged] = [[], []];
  await sleep(Math.max(0, from - Date.now()));
  for (let n = 0; Date.now() < until; n += 1) {
    const event = { event_type: 'x.bench', principal_id: 'agent:a1', tag, n };
    const start = performance.now();
    const { seq, eventId } = await ledger.append({ event });
    waits.push(performance.now() - start);
    acknowledged.push({ seq, eventId });
  }
  await ledger.close();
  return { count: waits.length, waits, acknowledged };
}

async function seal() {
  const ledger = await open({ checkpoints: true });
  const acknowledged = [];
  await sleep(Math.max(0, from - Date.now()));
  while (Date.now() < until) {
    const { seq, eventId } = await ledger.checkpoint();
    acknowledged.push({ seq, eventId });
    await sleep(500);
  }
  await ledger.close();
  return { count: acknowledged.length, acknowledged };
}

async function read() {
  const wrong = [];
  let count = 0;
  await sleep(Math.max(0, from - Date.now()));
  for (; Date.now() < until; count += 1) {
    const { verdict, findings } = await verifyLedger(await openLedgerSource(path));
    if (verdict !== 'ok') wrong.push(`a reader says ${verdict}: ${findings[0]?.code}`);
  }
  return { count, wrong };
}

function open(options) {
  return Ledger.open(path, { signer: createSigner(parsePrivateKey(key)), lockTimeoutMs: 60_000, ...options });
}

console.log(JSON.stringify(await { append, seal, read }[role]()));
