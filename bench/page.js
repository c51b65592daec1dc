/**
 * What the exported page of a large ledger costs its reader: seconds until it shows the verdict, and the memory and processor time of
 * the browser's process that it runs in. Of that process the kernel is asked (VmHWM, RssAnon, utime + stime): Linux alone.
 *
 *     node bench/page.js [--records 100000 --grants 20 --chromium /usr/bin/chromium --page FILE]
 */

import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clearInterval, setInterval } from 'node:timers';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { exportPage, writeThrough } from '../dist/api/index.js';
import { writeLedger } from './ledger.js';

const EVERY_MS = 100;
const TICKS_PER_SECOND = 100;
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '100000' },
    grants: { type: 'string', default: '20' },
    chromium: { type: 'string', default: '/usr/bin/chromium' },
    page: { type: 'string' },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'northroot-bench-'));
const page = values.page ?? join(folder, 'page.html');

try {
  await writeThrough(join(folder, 'empty.html'), (sink) => exportPage(new Uint8Array(), sink));
  console.log(`a page without records: ${megabytes(statSync(join(folder, 'empty.html')).size)} MB`);
  if (!existsSync(page)) {
    const ledger = join(folder, 'ledger.jsonl');
    const records = await writeLedger(ledger, Number(values.records), true, false, Number(values.grants));
    console.log(`${records} records, ${megabytes(statSync(ledger).size)} MB`);
    const begun = performance.now();
    await writeThrough(page, (sink) => exportPage(ledger, sink));
    console.log(`exported in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  }
  console.log(`the page: ${megabytes(statSync(page).size)} MB`);
  await measure(page);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function measure(path) {
  const browser = await chromium.launch({
    executablePath: values.chromium,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-dev-shm-usage'],
  });
  try {
    const tab = await browser.newPage();
    const renderers = new Set(findRenderers());
    let anonymous = 0;
    const sampler = setInterval(() => {
      for (const pid of renderers) anonymous = Math.max(anonymous, statusOf(pid, 'RssAnon'));
    }, EVERY_MS);
    const begun = performance.now();
    await tab.goto(pathToFileURL(path).href);
    for (const pid of findRenderers()) renderers.add(pid);
    const opened = performance.now();
    await tab.waitForSelector('html[data-state=done]', { state: 'attached', timeout: 600_000 });
    const done = performance.now();
    clearInterval(sampler);
    const verdict = await tab.evaluate("document.getElementById('main').dataset.verdict");
    const peak = Math.max(...[...renderers].map((pid) => statusOf(pid, 'VmHWM')));
    const cpu = Math.max(...[...renderers].map(cpuOf));
    console.log(`Chromium ${browser.version()}: opened after ${seconds(begun, opened)} s`);
    console.log(
      `verdict ${verdict} after ${seconds(begun, done)} s, ${cpu.toFixed(1)} s of them on a processor`,
    );
    console.log(`peak of its process: ${megabytes(peak)} MB, ${megabytes(anonymous)} MB of them its own`);
  } finally {
    await browser.close();
  }
}

function seconds(from, to) {
  return ((to - from) / 1000).toFixed(1);
}

/** The processes that run pages, among those that descend from this one. */
function findRenderers() {
  const parents = new Map();
  const commands = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      parents.set(
        Number(pid),
        Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
      );
      commands.set(Number(pid), readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    } catch {
      // It has ended.
    }
  }
  const isOwn = (pid) => pid === process.pid || (parents.has(pid) && isOwn(parents.get(pid)));
  return [...commands].flatMap(([pid, words]) =>
    words.includes('--type=renderer') && isOwn(pid) ? [pid] : [],
  );
}

/** Bytes. */
function statusOf(pid, field) {
  try {
    const [, kib] =
      new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(kib ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Seconds of all threads. */
function cpuOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
}
