/**
 * Verifying many ledgers together, beside the same records in one: CPU and peak memory, each in a process of its own.
 *
 *   node bench/fleet.js [LEDGERS] [RECORDS] [ROUNDS]
 */

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listFleet, verifyFleet, verifyLedger } from '../dist/api/index.js';
import { writeLedger } from './ledger.js';

const [task, ...rest] = process.argv.slice(2);

async function measure(verify) {
  const { user, system } = process.cpuUsage();
  const report = await verify();
  if (report.verdict !== 'ok') throw new Error(`the verdict is ${report.verdict}`);
  const used = process.cpuUsage({ user, system });
  const { maxRSS } = process.resourceUsage();
  console.log(JSON.stringify({ cpu: (used.user + used.system) / 1e6, mib: maxRSS / 1024 }));
}

if (task === 'one') await measure(() => verifyLedger(rest[0]));
else if (task === 'fleet') await measure(async () => verifyFleet(await listFleet(rest[0])));
else await compare(Number(task ?? 1_000), Number(rest[0] ?? 1_000), Number(rest[1] ?? 3));

async function compare(ledgers, records, rounds) {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-bench-fleet-'));
  try {
    const fleet = join(folder, 'fleet');
    mkdirSync(fleet);
    for (let n = 0; n < ledgers; n += 1) await writeLedger(join(fleet, `${n}.jsonl`), records, true);
    const one = join(folder, 'one.jsonl');
    await writeLedger(one, ledgers * records, true);
    const run = (name, path) => {
      const program = [fileURLToPath(import.meta.url), name, path];
      const { status, stdout, stderr } = spawnSync(process.execPath, program, { encoding: 'utf8' });
      if (status !== 0) throw new Error(stderr);
      return JSON.parse(stdout);
    };
    const best = { one: { cpu: Infinity, mib: 0 }, fleet: { cpu: Infinity, mib: 0 } };
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, path] of [
        ['one', one],
        ['fleet', fleet],
      ]) {
        const { cpu, mib } = run(name, path);
        best[name] = { cpu: Math.min(best[name].cpu, cpu), mib: Math.max(best[name].mib, mib) };
      }
    }
    const show = ({ cpu, mib }) => `${cpu.toFixed(2)} s of CPU, ${Math.round(mib)} MiB`;
    console.log(`one ledger of ${ledgers * records} records: ${show(best.one)}`);
    console.log(`${ledgers} ledgers of ${records} records: ${show(best.fleet)}`);
    console.log(`ratio of CPU: ${(best.fleet.cpu / best.one.cpu).toFixed(2)} (at most 1.3)`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
