/**
 * Measures guarded calls (`LiveLedger.guard`: a decision with its start, and an execution) beside a streamed append of the same records, in
 * CPU a record; one at a time beside as many fdatasyncs; and what open calls cost in memory and in the next decision.
 *
 *     node --expose-gc bench/guard.js [--calls 5000 --rounds 3 --in-flight 64,256 --open 100000 --unsigned --folder /tmp]
 */

import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  createSigner,
  draftGrant,
  generatePrivateKey,
  Ledger,
  LiveLedger,
  meters,
  sha256Digest,
} from '../dist/api/index.js';

const AGENT = 'agent:bench';
const INTENT = sha256Digest(Buffer.from('the benchmark'));
const RECORDS = 3;
const AT_ONCE = 1_000;
const SINGLES = 1_000;
const WARM_UP = 2_000;
const FEW = 10;
const TRIED = 500;

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '5000' },
    rounds: { type: 'string', default: '3' },
    'in-flight': { type: 'string', default: '64,256' },
    open: { type: 'string', default: '100000' },
    unsigned: { type: 'boolean', default: false },
    folder: { type: 'string', default: tmpdir() },
  },
});
const signer = values.unsigned ? undefined : createSigner(generatePrivateKey());
const folder = mkdtempSync(join(values.folder, 'northroot-guard-'));
let made = 0;

try {
  for (const inFlight of values['in-flight'].split(',').map(Number)) {
    for (const index of [false, true]) await printRatio(inFlight, index);
  }
  await printSingles();
  if (Number(values.open) > 0) await printOpen(Number(values.open));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function openLedger(index) {
  const path = join(folder, `${(made += 1)}.jsonl`);
  const options = { index, ...(signer && { signer }) };
  const ledger = await LiveLedger.open(path, {
    ...options,
    principalId: AGENT,
    create: { origin: 'example.com/bench/guard' },
  });
  const caps = { calls: 10n ** 9n, usd: 10n ** 9n };
  await ledger.append({ event: draftGrant({ principalId: AGENT, allowedTools: ['fs.*'], meterCaps: caps }) });
  return { path, options, ledger };
}

function call(ledger, n, run = ({ meter }) => meter.add('usd', '0.01')) {
  return ledger.guard('fs.read', { n }, run, { reserve: { usd: '0.05' } });
}

/** CPU of all threads, in microseconds a record. */
async function cpuOf(records, work) {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / records;
}

async function printRatio(inFlight, index) {
  const calls = Number(values.calls);
  const best = { guard: Infinity, append: Infinity };
  // The first round only warms up.
  for (let round = 0; round <= Number(values.rounds); round += 1) {
    const { path, options, ledger } = await openLedger(index);
    const work = async (_, worker) => {
      for (let n = worker; n < calls; n += inFlight) await call(ledger, n);
    };
    const guard = await cpuOf(calls * RECORDS, () => Promise.all(Array.from({ length: inFlight }, work)));
    await ledger.close();
    const append = await appendAgain(path, options, calls * RECORDS);
    if (round === 0) continue;
    best.guard = Math.min(best.guard, guard);
    best.append = Math.min(best.append, append);
  }
  const { guard, append } = best;
  console.log(
    `${inFlight} in flight, ${index ? 'with' : 'without'} index: ${guard.toFixed(0)} µs of CPU a record, ` +
      `${append.toFixed(0)} appended, ratio ${(guard / append).toFixed(2)} (target: at most 1.5)`,
  );
}

/** The same records, to the same beginning. */
async function appendAgain(path, options, records) {
  const lines = readFileSync(path, 'utf8').split('\n');
  const other = join(folder, `${(made += 1)}.jsonl`);
  writeFileSync(other, `${lines.slice(0, 2).join('\n')}\n`);
  const events = lines.slice(2, -1).map((line) => JSON.parse(line).event);
  const ledger = await Ledger.open(other, options);
  const cpu = await cpuOf(records, async () => {
    for (let at = 0; at < events.length; at += AT_ONCE)
      await Promise.all(events.slice(at, at + AT_ONCE).map((event) => ledger.append({ event })));
  });
  await ledger.close();
  return cpu;
}

async function printSingles() {
  const { path, ledger } = await openLedger(true);
  const walls = [];
  // The first ones only warm up.
  for (let n = -WARM_UP; n < SINGLES; n += 1) {
    const start = performance.now();
    await call(ledger, n);
    if (n >= 0) walls.push(performance.now() - start);
  }
  await ledger.close();
  const length = Math.round(readFileSync(path).length / ((WARM_UP + SINGLES) * 2));
  const file = openSync(join(folder, 'by-hand'), 'a');
  const syncs = [];
  for (let n = 0; n < SINGLES; n += 1) {
    const start = performance.now();
    writeSync(file, 'x'.repeat(length));
    fdatasyncSync(file);
    syncs.push(performance.now() - start);
  }
  closeSync(file);
  const base = 2 * at(syncs, 0.5);
  console.log(
    `1 in flight: ${(at(walls, 0.5) / base).toFixed(1)} times two fdatasyncs (target: at most 3), ` +
      `p99 ${(at(walls, 0.99) / base).toFixed(1)} (target: at most 10)`,
  );
}

/** A quantile. */
function at(times, share) {
  return times.toSorted((a, b) => a - b)[Math.floor(share * (times.length - 1))];
}

/** Calls that were begun and have no recorded end, as the state of the ledger has them; what a guard itself holds is not counted. */
async function printOpen(open) {
  const { ledger } = await openLedger(true);
  let begun = 0;
  const begin = async () => {
    const paramsDigest = sha256Digest(Buffer.from(`open ${(begun += 1)}`));
    const amounts = meters({ calls: 1, usd: '0.05' });
    const asked = {
      toolName: 'fs.read',
      paramsDigest,
      intentDigest: INTENT,
      meters: amounts,
      ttlMs: 900_000,
    };
    const { recorded } = await ledger.authorize(asked);
    await ledger.start(recorded.eventId, { paramsDigest, meterUsed: meters({ calls: 1 }) });
  };
  const hold = async (count) => {
    for (let n = 0; n < count; n += AT_ONCE)
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - n) }, begin));
  };
  const tryOnce = () =>
    cpuOf(TRIED, async () => {
      for (let n = 0; n < TRIED; n += 1) await call(ledger, `tried ${(begun += 1)}`);
    });
  const costOf = async () => {
    const costs = [];
    for (let round = 0; round <= Number(values.rounds); round += 1) costs.push(await tryOnce());
    return Math.min(...costs.slice(1));
  };
  await hold(FEW);
  const few = await costOf();
  globalThis.gc?.();
  const before = process.memoryUsage();
  await hold(open);
  globalThis.gc?.();
  const after = process.memoryUsage();
  const many = await costOf();
  const bytes = (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / open;
  console.log(
    `${open} open: ${bytes.toFixed(0)} bytes each (target: at most 1,024), ` +
      `a call costs ${(many / few).toFixed(2)} times as much beside them as beside ${FEW} (target: at most 1.1)`,
  );
  await ledger.close();
}
