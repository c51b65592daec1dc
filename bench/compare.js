/**
 * Measures verifying and appending beside what they cannot do without, in interleaved rounds of one run, and prints
 * medians as ratios: on a shared machine only those mean anything.
 *
 *     node bench/compare.js [--records 50000 --rounds 3 --folder /tmp --json]
 */

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { appendTasks } from './append.js';
import { writeLedger } from './ledger.js';
import { measureParts } from './parts.js';
import { measureInTurns, median } from './rounds.js';
import { measureMemory, verifyTasks, verifyWhole } from './verify.js';

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '50000' },
    rounds: { type: 'string', default: '3' },
    folder: { type: 'string', default: tmpdir() },
    json: { type: 'boolean', default: false },
  },
});
const wanted = Number(values.records);
const rounds = Number(values.rounds);
if (!(Number.isInteger(wanted) && wanted >= 100 && Number.isInteger(rounds) && rounds >= 1)) {
  throw new RangeError('expected --records of at least 100 and --rounds of at least 1');
}

const folder = mkdtempSync(join(values.folder, 'northroot-bench-'));
try {
  const signedPath = join(folder, 'signed.jsonl');
  const unsignedPath = join(folder, 'unsigned.jsonl');
  const sealedPath = join(folder, 'sealed.jsonl');
  const records = await writeLedger(signedPath, wanted, true);
  const sealedRecords = await writeLedger(sealedPath, wanted, true, true);
  await writeLedger(unsignedPath, wanted, false);
  const memory = measureMemory(signedPath);
  const ledgers = { signedPath, unsignedPath, sealedPath, records, sealedRecords };
  const verifying = await measureInTurns(verifyTasks(ledgers), rounds);
  const parts = await shareOut(signedPath);
  const appending = await measureInTurns(appendTasks(folder, signedPath, records), rounds);
  const results = {
    machine: { cpu: cpus()[0]?.model, cpus: cpus().length, node: process.version },
    ledger: { records, bytes: statSync(signedPath).size },
    rounds,
    memory,
    verify: verifying,
    parts,
    append: appending,
  };
  if (values.json) console.log(JSON.stringify(results, undefined, 2));
  else print(results);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The shares that the parts have in verifying; both are measured in turns, and what is left is `all else`. */
async function shareOut(path) {
  const wholes = [];
  const passes = [];
  for (let round = 0; round <= rounds; round += 1) {
    const start = performance.now();
    await verifyWhole(path);
    const whole = (performance.now() - start) / 1000;
    const pass = measureParts(path);
    if (round === 0) continue;
    wholes.push(whole);
    passes.push(pass);
  }
  const whole = median(wholes);
  const shares = Object.keys(passes[0]).map((name) => ({
    name,
    share: median(passes.map((pass) => pass[name])) / whole,
  }));
  const rest = 1 - shares.reduce((sum, { share }) => sum + share, 0);
  return [...shares, { name: 'all else: files, chain, links and bounds, counting', share: rest }];
}

function print({ machine, ledger, memory, verify, parts, append }) {
  const { records, bytes } = ledger;
  console.log(`${machine.cpu}, ${machine.cpus} CPUs, Node ${machine.node}`);
  console.log(`${records} records of ${Math.round(bytes / records)} bytes, medians of ${rounds} rounds`);
  console.log(
    `peak memory of verifying ${memory.verifying_mib} MiB, ${memory.idle_mib} MiB of it when idle\n`,
  );
  printRates('verify', verify);
  console.log('shares of verify');
  for (const { name, share } of parts) {
    console.log(`  ${name.padEnd(52)} ${(100 * share).toFixed(1).padStart(6)} %`);
  }
  console.log();
  printRates('append', append);
}

function printRates(title, rows) {
  console.log(
    `${title.padEnd(42)} ${['records/s', 'MB/s', 'ratio'].map((head) => head.padStart(10)).join(' ')}`,
  );
  for (const { name, records_per_s: rate, mb_per_s: mb, ratio } of rows) {
    const cells = [rate.toFixed(0), mb.toFixed(1), ratio.toFixed(2)].map((cell) => cell.padStart(10));
    console.log(`  ${name.padEnd(40)} ${cells.join(' ')}`);
  }
  console.log();
}
