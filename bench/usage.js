/** Loaded into a measured process: writes what it used, and its children, when it ends. */

import { writeFileSync } from 'node:fs';

process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const path = process.env['NORTHROOT_BENCH_USAGE'];
  if (path !== undefined)
    writeFileSync(
      path,
      JSON.stringify({ cpu_ms: (userCPUTime + systemCPUTime) / 1000, rss_mib: maxRSS / 1024 }),
    );
});
