/** A process of its own that signs, or appends signed records, as its one argument says in JSON; prints in JSON what it took. */

import { createPrivateKey, sign } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import {
  buildEvent,
  canonicalBytes,
  createSigner,
  generatePrivateKey,
  Ledger,
} from '../../dist/api/index.js';
import { nodeFileSystem, PAYLOAD_TYPE, preAuthEncoding } from '../../dist/api/internals.js';
import { actionDraft, grantDraft } from '../ledger.js';

/** So many wait at a time in a stream. */
const WAITING = 2_000;
/** Until everything is compiled. */
const WARM_UP = 10_000;
const MESSAGES = 1_000;
const FIRST_TIME = '2026-01-01T00:00:00Z';

/** Signs as many messages as there would be records. */
function signer(pkcs8) {
  const key = createPrivateKey({ key: Buffer.from(pkcs8), format: 'der', type: 'pkcs8' });
  const grantId = `sha-256:${'A'.repeat(43)}`;
  const messages = Array.from({ length: MESSAGES }, (_, index) =>
    preAuthEncoding(PAYLOAD_TYPE, canonicalBytes(buildEvent(actionDraft(grantId, index)))),
  );
  return (count) => {
    for (let index = 0; index < count; index += 1) sign(null, messages[index % MESSAGES], key);
  };
}

const begin = () => ({ cpu: process.cpuUsage(), wall: performance.now() });

/** What was used since `start`, in ms. */
function usedSince({ cpu, wall }) {
  const { user, system } = process.cpuUsage(cpu);
  return { cpu: (user + system) / 1000, wall: performance.now() - wall };
}

function signAlone({ records }) {
  const run = signer(generatePrivateKey().pkcs8);
  run(WARM_UP);
  const start = begin();
  run(records);
  return usedSince(start);
}

/** The same on several threads, each with its share. */
async function signOnThreads({ records, threads }) {
  const { pkcs8 } = generatePrivateKey();
  const count = Math.ceil(records / threads);
  const workers = Array.from(
    { length: threads },
    () => new Worker(new URL(import.meta.url), { workerData: { pkcs8, count } }),
  );
  const told = (worker) =>
    new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  await Promise.all(workers.map(told));
  const done = Promise.all(workers.map(told));
  const start = begin();
  for (const worker of workers) worker.postMessage('go');
  await done;
  const used = usedSince(start);
  await Promise.all(workers.map((worker) => worker.terminate()));
  return used;
}

/**
 * Appends a stream of signed actions under one grant. Making the drafts is the caller's, and not measured; `syncing` is for how long a
 * sync was under way.
 */
async function appendStream({ folder, records, options }) {
  let syncing = 0;
  const fileSystem = {
    ...nodeFileSystem,
    open: async (...args) => {
      const file = await nodeFileSystem.open(...args);
      return new Proxy(file, {
        get: (target, name) => {
          const member = target[name];
          if (typeof member !== 'function') return member;
          if (name !== 'datasync') return member.bind(target);
          return async () => {
            const from = performance.now();
            await target.datasync();
            syncing += performance.now() - from;
          };
        },
      });
    },
  };
  // Records come in the order of their times, so that there is nothing to find in them.
  const now = () => FIRST_TIME;
  const all = { signer: createSigner(generatePrivateKey()), fileSystem, now, ...options };
  const append = async (count) => {
    const path = join(folder, `append-${count}.jsonl`);
    const ledger = await Ledger.open(path, { ...all, create: { origin: 'example.com/bench' } });
    const { eventId } = await ledger.append({ event: grantDraft() });
    const used = { cpu: 0, wall: 0 };
    syncing = 0;
    for (let done = 0; done < count; done += WAITING) {
      const drafts = Array.from({ length: Math.min(WAITING, count - done) }, (_, index) =>
        actionDraft(eventId, done + index + 2),
      );
      const start = begin();
      await Promise.all(drafts.map((event) => ledger.append({ event })));
      const { cpu, wall } = usedSince(start);
      used.cpu += cpu;
      used.wall += wall;
    }
    await ledger.close();
    rmSync(path);
    rmSync(`${path}.index`, { recursive: true, force: true });
    return { ...used, syncing, share: syncing / used.wall };
  };
  await append(WARM_UP);
  return append(records);
}

if (!isMainThread && workerData?.pkcs8 !== undefined) {
  const run = signer(workerData.pkcs8);
  run(WARM_UP);
  parentPort.once('message', () => {
    run(workerData.count);
    parentPort.postMessage('done');
  });
  parentPort.postMessage('ready');
} else if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const task = JSON.parse(process.argv[2]);
  console.log(JSON.stringify(await { signAlone, signOnThreads, appendStream }[task.role](task)));
}
