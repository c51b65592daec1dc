/**
 * Appending, beside what a writer cannot do without: signing, and bringing the same bytes to the disk. By itself it prints the figures
 * that have targets:
 *
 *     node bench/append.js [--records 20000 --rounds 3 --folder /tmp]
 */

import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import {
  buildEvent,
  canonicalBytes,
  createSigner,
  generatePrivateKey,
  Ledger,
  PAYLOAD_TYPE,
  preAuthEncoding,
} from '../dist/index.js';
import { nodeFileSystem } from '../dist/fs/file-system.js';
import { actionDraft, grantDraft } from './ledger.js';

/** So many are appended, or written, one by one. */
const MAX_SINGLES = 2_000;
const GROUP = 1_000;

/** The tasks for {@link measureInTurns}, on lines like those of the ledger at `path`; the first is the one to compare with. */
export function appendTasks(folder, path, records) {
  const singles = Math.min(MAX_SINGLES, records);
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  const bytesOf = (count) => Buffer.byteLength(lines.slice(0, count).join('\n'));
  const signer = createSigner(generatePrivateKey());
  const { privateKey } = generateKeyPairSync('ed25519');
  const message = Buffer.from(lines[1]);
  let run = 0;
  const withLedger = async (options, work) => {
    const file = join(folder, `append-${run++}.jsonl`);
    const ledger = await Ledger.open(file, { ...options, create: { origin: 'example.com/bench' } });
    const { eventId } = await ledger.append({ event: grantDraft() });
    await work(ledger, eventId);
    await ledger.close();
    rmSync(file);
  };
  const stream = (count) => (ledger, grantId) =>
    Promise.all(
      Array.from({ length: count }, (_, i) => ledger.append({ event: actionDraft(grantId, i + 2) })),
    );
  const oneByOne = (count) => async (ledger, grantId) => {
    for (let i = 0; i < count; i += 1) await ledger.append({ event: actionDraft(grantId, i + 2) });
  };
  const byHand = (group, count) => {
    const name = join(folder, 'by-hand');
    const file = openSync(name, 'a');
    for (let done = 0; done < count; done += group) {
      writeSync(file, `${lines.slice(done, done + group).join('\n')}\n`);
      fdatasyncSync(file);
    }
    closeSync(file);
    rmSync(name);
  };
  const all = { records, bytes: bytesOf(records) };
  const few = { records: singles, bytes: bytesOf(singles) };
  return [
    { name: 'northroot append, streamed', ...all, run: () => withLedger({ signer }, stream(records)) },
    { name: 'northroot append, streamed, unsigned', ...all, run: () => withLedger({}, stream(records)) },
    { name: 'northroot append, one by one', ...few, run: () => withLedger({ signer }, oneByOne(singles)) },
    {
      name: 'as many node:crypto signatures',
      ...all,
      run: () => {
        for (let i = 0; i < records; i += 1) sign(null, message, privateKey);
      },
    },
    { name: `write + fdatasync, by ${GROUP}`, ...all, run: () => byHand(GROUP, records) },
    { name: 'write + fdatasync, one by one', ...few, run: () => byHand(1, singles) },
  ];
}

/** So many wait at a time in a stream, as in `northroot append`. */
const WAITING = 2_000;
const GRANT = `sha-256:${'A'.repeat(43)}`;

/** What was used since `start`. */
function usedSince({ cpu, wall }) {
  const { user, system } = process.cpuUsage(cpu);
  return { cpu: (user + system) / 1000, wall: performance.now() - wall };
}

const begin = () => ({ cpu: process.cpuUsage(), wall: performance.now() });

/** Appends a stream; says what it used, and for how long it waited for the disk, in milliseconds. */
async function stream(folder, records, options) {
  let syncing = 0;
  const timed = (file) =>
    new Proxy(file, {
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
  const fileSystem = {
    ...nodeFileSystem,
    open: async (...args) => timed(await nodeFileSystem.open(...args)),
  };
  const path = join(folder, 'stream.jsonl');
  const ledger = await Ledger.open(path, { ...options, fileSystem, create: { origin: 'example.com/bench' } });
  const { eventId } = await ledger.append({ event: grantDraft() });
  const drafts = Array.from({ length: records }, (_, index) => actionDraft(eventId, index + 2));
  syncing = 0;
  const start = begin();
  for (let from = 0; from < records; from += WAITING)
    await Promise.all(drafts.slice(from, from + WAITING).map((event) => ledger.append({ event })));
  const used = usedSince(start);
  await ledger.close();
  rmSync(path);
  rmSync(`${path}.index`, { recursive: true, force: true });
  return { ...used, syncing };
}

/** Messages as records' signatures are of. */
function messagesOf(count) {
  const defaults = { principalId: 'agent:bench/worker-1' };
  return Array.from({ length: count }, (_, index) =>
    preAuthEncoding(PAYLOAD_TYPE, canonicalBytes(buildEvent(actionDraft(GRANT, index), defaults))),
  );
}

function signAll(pkcs8, records) {
  const key = createPrivateKey({ key: Buffer.from(pkcs8), format: 'der', type: 'pkcs8' });
  const messages = messagesOf(1_000);
  for (const message of messages) sign(null, message, key);
  return () => {
    for (let index = 0; index < records; index += 1) sign(null, messages[index % messages.length], key);
  };
}

/** The wall time of raw signing on so many threads, each with its share. */
async function signOnThreads(pkcs8, records, threads) {
  const workers = Array.from(
    { length: threads },
    () => new Worker(new URL(import.meta.url), { workerData: { pkcs8, records: records / threads } }),
  );
  const message = (worker) => new Promise((resolve) => worker.once('message', resolve));
  await Promise.all(workers.map(message));
  const start = begin();
  const done = Promise.all(workers.map(message));
  for (const worker of workers) worker.postMessage('go');
  await done;
  const used = usedSince(start);
  await Promise.all(workers.map((worker) => worker.terminate()));
  return used;
}

/** The figures with targets: the best of the rounds, which go in turns. */
async function printTargets() {
  const { values } = parseArgs({
    options: {
      records: { type: 'string', default: '20000' },
      rounds: { type: 'string', default: '3' },
      folder: { type: 'string', default: tmpdir() },
    },
  });
  const records = Number(values.records);
  const folder = mkdtempSync(join(values.folder, 'northroot-append-'));
  const privateKey = generatePrivateKey();
  const signer = createSigner(privateKey);
  const raw = signAll(privateKey.pkcs8, records);
  const tasks = {
    raw: () => {
      const start = begin();
      raw();
      return usedSince(start);
    },
    raw2: () => signOnThreads(privateKey.pkcs8, records, 2),
    plain: () => stream(folder, records, { signer, signingThreads: 0, index: false }),
    threads: () => stream(folder, records, { signer, signingThreads: 1, index: false }),
    indexed: () => stream(folder, records, { signer, signingThreads: 0 }),
    default: () => stream(folder, records, { signer }),
  };
  const best = {};
  try {
    for (let round = 0; round <= Number(values.rounds); round += 1) {
      for (const [name, run] of Object.entries(tasks)) {
        const used = { ...(await run()) };
        used.share = used.syncing === undefined ? 0 : used.syncing / used.wall;
        const known = best[name];
        // The first round warms up.
        if (round === 0) continue;
        best[name] ??= used;
        for (const of of Object.keys(used)) best[name][of] = Math.min(known?.[of] ?? Infinity, used[of]);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const row = (title, value, target) => console.log(`  ${title.padEnd(62)} ${value.padStart(8)}   ${target}`);
  console.log(`appending ${records} signed actions beside signing as many messages with node:crypto`);
  row('one thread, CPU: rate / raw signing', (best.raw.cpu / best.plain.cpu).toFixed(2), '>= 0.5');
  row('the same with the index beside it', (best.raw.cpu / best.indexed.cpu).toFixed(2), '');
  row(
    'signing in 1 thread more, wall: rate / raw on 2 threads',
    (best.raw2.wall / best.threads.wall).toFixed(2),
    '>= 0.8',
  );
  row('the same with the index beside it', (best.raw2.wall / best.default.wall).toFixed(2), '');
  row("fdatasync's share of the wall, one thread", `${(100 * best.plain.share).toFixed(1)} %`, '<= 15 %');
  row('the same with signing in 1 thread more', `${(100 * best.threads.share).toFixed(1)} %`, '<= 15 %');
}

if (!isMainThread && workerData?.pkcs8 !== undefined) {
  const run = signAll(workerData.pkcs8, workerData.records);
  parentPort.postMessage('ready');
  parentPort.once('message', () => {
    run();
    parentPort.postMessage('done');
  });
} else if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await printTargets();
}
