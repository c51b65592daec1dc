/**
 * What it costs to start the command line, beside a Node that does nothing: whole processes, in turns. Needs Linux.
 *
 *     node bench/start.js [--rounds 20 --folder /tmp]
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { writeLedger } from './ledger.js';

const CLI = fileURLToPath(new URL('../bin/northroot.js', import.meta.url));
const RECORDS = 20;

/** The CPU of the processes that this one started and that have ended: of Linux, in steps of 10 ms, so that only sums say much. */
function childrenMs() {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return 10 * (Number(fields[13]) + Number(fields[14]));
}

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, folder: { type: 'string', default: tmpdir() } },
});
const folder = mkdtempSync(join(values.folder, 'northroot-start-'));
try {
  const ledger = join(folder, 'ledger.jsonl');
  await writeLedger(ledger, RECORDS, true);
  const tasks = [
    { name: 'node -e 0', args: ['-e', '0'], target: '' },
    { name: 'northroot --version', args: [CLI, '--version'], target: '<= 1.6' },
    { name: `northroot verify, ${RECORDS} records`, args: [CLI, 'verify', ledger], target: '<= 2.5' },
    { name: 'northroot --help', args: [CLI, '--help'], target: '' },
  ].map((task) => ({ ...task, cpu: [], wall: [] }));
  for (let round = 0; round <= Number(values.rounds); round += 1) {
    for (const { args, cpu, wall } of tasks) {
      const start = performance.now();
      const before = childrenMs();
      spawnSync(process.execPath, args, { stdio: 'ignore' });
      // The first round fills caches.
      if (round === 0) continue;
      wall.push(performance.now() - start);
      cpu.push(childrenMs() - before);
    }
  }
  const best = (numbers) => Math.min(...numbers);
  const mean = (numbers) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
  console.log('starting, / node -e 0                      CPU     wall   target');
  for (const { name, cpu, wall, target } of tasks) {
    const ratios = [mean(cpu) / mean(tasks[0].cpu), best(wall) / best(tasks[0].wall)];
    console.log(
      `  ${name.padEnd(36)} ${ratios.map((ratio) => ratio.toFixed(2).padStart(7)).join('  ')}   ${target}`,
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
