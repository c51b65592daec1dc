// A writer that takes the lock of a ledger and keeps it: node holder.js OPTIONS, JSON. Then it appends one more line, and says what came of it.

import { createHash } from 'node:crypto';
import { clearInterval, setInterval } from 'node:timers';
import { PostgresStore } from '../../../dist/api/postgres.js';

const { url } = JSON.parse(process.argv[2]);
const store = await PostgresStore.open(url, { create: true });
const lock = await store.acquire({ timeoutMs: 20_000 });
console.log('holds');
const go = new Promise((resolve) => process.once('SIGTERM', resolve));
const alive = setInterval(() => undefined, 1_000);
await go;
clearInterval(alive);
const tip = createHash('sha256').update(Uint8Array.of(0)).update('one').digest('base64url');
const end = { size: 1, tip, file: '', line: 2, byteOffset: 4 };
console.log(
  await store.appendIf(end, [Buffer.from('late\n')]).then(
    () => 'appended',
    ({ code }) => code,
  ),
);
await lock.release();
await store.close();
