/** Measures whole processes: the command line, and whatever it is held against. */

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const CLI = fileURLToPath(new URL('../../bin/northroot.js', import.meta.url));
const USAGE = pathToFileURL(fileURLToPath(new URL('../usage.js', import.meta.url))).href;
const MAX_OUTPUT = 1 << 26;
const SELF = '/proc/self/stat';
const MS_PER_TICK = 10;

/** Runs a program; its wall time in ms and what it printed. Throws unless it ends with 0. */
export function runProgram(command, args, options = {}) {
  const start = performance.now();
  const { status, signal, error, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: MAX_OUTPUT,
    ...options,
  });
  const wall = performance.now() - start;
  if (error !== undefined) throw error;
  if (status !== 0) {
    const said = `${stderr}${stdout}`.trim().slice(0, 300);
    throw new Error(`${command} ${args.join(' ')} ended with ${status ?? signal}: ${said}`);
  }
  return { wall, stdout, stderr };
}

/** Runs a program of Node's that loads bench/usage.js first: wall time and CPU in ms (all threads), peak memory in MB. */
export function runNode(folder, args) {
  const path = join(folder, 'usage.json');
  rmSync(path, { force: true });
  const env = { ...process.env, NORTHROOT_BENCH_USAGE: path };
  const { wall, stdout } = runProgram(process.execPath, ['--import', USAGE, ...args], { env });
  const { cpu_ms: cpu, rss_mib: mib } = JSON.parse(readFileSync(path, 'utf8'));
  return { wall, cpu, rss: (mib * 2 ** 20) / 1e6, stdout };
}

/** `northroot verify`, which has to find nothing wrong in so many records: a verifier that gives up early is fast. */
export function verifyByCommand(folder, path, records, args) {
  const { stdout, ...used } = runNode(folder, [CLI, 'verify', path, '--format', 'brief', ...args]);
  const said = stdout.replaceAll(',', '');
  if (!said.startsWith('ok ') || !said.includes(` ${records} records 0 findings`))
    throw new Error(`northroot verify ${path} found: ${stdout.trim()}`);
  return used;
}

/** The CPU, in ms, of the processes that this one started and that have ended; undefined where Linux does not tell. In coarse steps. */
export function childrenCpu() {
  if (!existsSync(SELF)) return undefined;
  const stat = readFileSync(SELF, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return MS_PER_TICK * (Number(fields[13]) + Number(fields[14]));
}
