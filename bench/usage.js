/** Loaded into a measured process: writes what it used when it ends. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const STATUS = '/proc/self/status';

/** The most memory that this process had. What resourceUsage says of it on Linux is no less than that of the process that began it. */
function peakMib() {
  const [, kib] = (existsSync(STATUS) && /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(STATUS, 'latin1'))) || [];
  return Number(kib ?? process.resourceUsage().maxRSS) / 1024;
}

process.on('exit', () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const path = process.env['NORTHROOT_BENCH_USAGE'];
  if (path === undefined) return;
  const usage = { cpu_ms: (userCPUTime + systemCPUTime) / 1000, rss_mib: peakMib() };
  writeFileSync(path, JSON.stringify(usage));
});
