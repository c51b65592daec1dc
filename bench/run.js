/**
 * Measures verifying and appending beside what they cannot do without, in interleaved rounds of one run, and prints
 * medians as ratios: on a shared machine only those mean anything.
 *
 *     npm run bench [-- --records 20000 --rounds 3 --json]
 */

import { spawnSync } from 'node:child_process';
import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import canonicalize from 'canonicalize';
import { Ledger, createSigner, generatePrivateKey, verifyLedger } from '../dist/index.js';
import { actionDraft, grantDraft, writeLedger } from './ledger.js';

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
  },
});
const records = Number(values.records);
const rounds = Number(values.rounds);
if (!(Number.isInteger(records) && records >= 100 && Number.isInteger(rounds) && rounds >= 1)) {
  throw new RangeError('expected --records of at least 100 and --rounds of at least 1');
}

const folder = mkdtempSync(join(tmpdir(), 'northroot-bench-'));
const signedPath = join(folder, 'signed.jsonl');
const unsignedPath = join(folder, 'unsigned.jsonl');
const singles = Math.min(2_000, records);

try {
  const size = await writeLedger(signedPath, records, true);
  await writeLedger(unsignedPath, records, false);
  const results = {
    verify: await measure(verifyTasks(size), rounds),
    append: await measure(appendTasks(), rounds),
  };
  const bytes = statSync(signedPath).size;
  const rss = Math.round(process.resourceUsage().maxRSS / 1024);
  if (values.json)
    console.log(JSON.stringify({ records: size, bytes, rss_mib: rss, ...results }, undefined, 2));
  else {
    console.log(
      `${size} records of ${Math.round(bytes / size)} bytes, ${rounds} rounds, peak memory ${rss} MiB\n`,
    );
    print('verify', results.verify, 'northroot verify');
    print('append', results.append, 'northroot append, streamed');
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** What verifying one signed ledger is beside: hashing it, parsing it, checking its signatures and nothing else. */
function verifyTasks(size) {
  const lines = readFileSync(signedPath, 'utf8').trimEnd().split('\n');
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const message = Buffer.from(lines[1]);
  const signature = sign(null, message, privateKey);
  const key = createPublicKey(publicKey.export({ type: 'spki', format: 'pem' }));
  const check = async (path) => {
    const report = await verifyLedger(path);
    if (report.verdict !== 'ok') throw new Error(`the ledger is ${report.verdict}`);
  };
  return [
    { name: 'northroot verify', count: size, run: () => check(signedPath) },
    { name: 'northroot verify, unsigned ledger', count: size, run: () => check(unsignedPath) },
    {
      name: 'node:crypto verify, as many signatures',
      count: size,
      run: () => times(size, () => verify(null, message, key, signature)),
    },
    { name: 'JSON.parse of the lines', count: size, run: () => lines.forEach((line) => JSON.parse(line)) },
    {
      name: 'JSON.parse, canonicalize, compare',
      count: size,
      run: () => lines.forEach((line) => canonicalize(JSON.parse(line)) === line),
    },
    {
      name: 'SHA-256 of the file, in Node',
      count: size,
      run: () => createHash('sha256').update(readFileSync(signedPath)).digest(),
    },
    { name: 'sha256sum of the file', count: size, run: () => spawnSync('sha256sum', [signedPath]) },
  ];
}

/** What appending is beside: the same bytes written and synced by hand, and the signatures alone. */
function appendTasks() {
  const signer = createSigner(generatePrivateKey());
  const lines = readFileSync(signedPath, 'utf8').trimEnd().split('\n').slice(0, records);
  const { privateKey } = generateKeyPairSync('ed25519');
  const message = Buffer.from(lines[1]);
  let run = 0;
  const withLedger = async (work) => {
    const path = join(folder, `append-${run++}.jsonl`);
    const ledger = await Ledger.open(path, { signer, create: { origin: 'example.com/bench' } });
    const { eventId } = await ledger.append({ event: grantDraft() });
    await work(ledger, eventId);
    await ledger.close();
    rmSync(path);
  };
  const byHand = (group, count) => {
    const path = join(folder, 'by-hand');
    const file = openSync(path, 'a');
    for (let done = 0; done < count; done += group) {
      writeSync(file, `${lines.slice(done, done + group).join('\n')}\n`);
      fdatasyncSync(file);
    }
    closeSync(file);
    rmSync(path);
  };
  return [
    {
      name: 'northroot append, streamed',
      count: records,
      run: () =>
        withLedger((ledger, id) =>
          Promise.all(
            Array.from({ length: records }, (_, i) => ledger.append({ event: actionDraft(id, i + 2) })),
          ),
        ),
    },
    {
      name: 'northroot append, one by one',
      count: singles,
      run: () =>
        withLedger(async (ledger, id) => {
          for (let i = 0; i < singles; i += 1) await ledger.append({ event: actionDraft(id, i + 2) });
        }),
    },
    { name: 'write + fdatasync, by 1,000', count: records, run: () => byHand(1_000, records) },
    { name: 'write + fdatasync, one by one', count: singles, run: () => byHand(1, singles) },
    {
      name: 'node:crypto sign, as many signatures',
      count: records,
      run: () => times(records, () => sign(null, message, privateKey)),
    },
  ];
}

function times(count, action) {
  for (let i = 0; i < count; i += 1) action();
}

/** The median rate of each task, in records a second; the tasks take turns, so that a slow moment hits them alike. */
async function measure(tasks, count) {
  const rates = new Map(tasks.map(({ name }) => [name, []]));
  for (let round = 0; round <= count; round += 1) {
    for (const task of tasks) {
      const start = performance.now();
      await task.run();
      const rate = task.count / ((performance.now() - start) / 1000);
      // The first round warms up.
      if (round > 0) rates.get(task.name).push(rate);
    }
  }
  return Object.fromEntries([...rates].map(([name, list]) => [name, median(list)]));
}

function median(list) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/** Each rate, and how many times as fast it is as the first. */
function print(title, rates, base) {
  console.log(`${title.padEnd(42)} ${'records/s'.padStart(10)} ${'ratio'.padStart(8)}`);
  for (const [name, rate] of Object.entries(rates)) {
    console.log(
      `  ${name.padEnd(40)} ${Math.round(rate).toString().padStart(10)} ${(rate / rates[base]).toFixed(2).padStart(8)}`,
    );
  }
  console.log();
}
