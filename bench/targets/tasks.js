/** What is measured, by name: each task gives one sample, and rows of the table are ratios of two of them. */

import { spawnSync } from 'node:child_process';
import { copyFileSync, createReadStream, createWriteStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { goVerify, opensslVerifies, pythonVerify } from './peers.js';
import { childrenCpu, CLI, runProgram, verifyByCommand } from './processes.js';

const APPEND = fileURLToPath(new URL('append-process.js', import.meta.url));
const START_TURNS = 7;
const SMALL = 20;

/**
 * The tasks of a run. `needs` names peers without which one is not measured, `ledger` the ledger that it reads; `once`: for its memory,
 * which takes no rounds. `run` gives times in ms, memory in MB, rates per second.
 *
 * @param ledgers - Gives a ledger by its kind: its `path` and what `makeLedger` said of it. They are there when a task is run.
 */
export function makeTasks({ folder, ledgers, records, appends, sampled, go, peers }) {
  const verify = (name, ...args) => {
    const { path, records: count } = ledgers[name];
    return verifyByCommand(folder, path, count, args);
  };
  const verifying = (ledger, threads) => ({
    title: `northroot verify, ${ledger}, ${threads} thread${threads === 1 ? '' : 's'}`,
    ledger,
    run: () => verify(ledger, '--threads', String(threads)),
  });
  const resuming = (ledger) => ({
    title: `northroot verify --state, ${ledger}`,
    ledger,
    prepare: () => saveBaseState(folder, ledgers[ledger], ledger),
    run: () => {
      const state = join(folder, `${ledger}.state`);
      copyFileSync(`${state}.base`, state);
      return verify(ledger, '--threads', '2', '--state', state);
    },
  });
  const appending = (title, task) => ({
    title,
    run: () => {
      const all = JSON.stringify({ folder, records: appends, ...task });
      return JSON.parse(runProgram(process.execPath, [APPEND, all]).stdout);
    },
  });
  const streaming = (title, signingThreads, options = {}) =>
    appending(title, { role: 'appendStream', options: { signingThreads, ...options } });
  return {
    signed2: verifying('signed', 2),
    opensslSpeed: {
      title: 'openssl speed -multi 2 ed25519',
      needs: ['openssl'],
      run: () => ({ rate: opensslVerifies(2) }),
    },
    go2: {
      title: 'Go, the same file, 2 threads',
      needs: ['go'],
      ledger: 'signed',
      run: () => counted(goVerify(go.program, ledgers.signed.path, 2), records),
    },
    signed1: verifying('signed', 1),
    keys2: verifying('keys', 2),
    sealed2: verifying('sealed', 2),
    opensslDigest: {
      title: 'openssl dgst -sha256',
      needs: ['openssl'],
      ledger: 'sealed',
      run: () => runProgram('openssl', ['dgst', '-sha256', ledgers.sealed.path]),
    },
    sealed1: verifying('sealed', 1),
    linked1: verifying('linked', 1),
    extension1: verifying('extension', 1),
    small2: { ...verifying('small', 2), title: `northroot verify, ${SMALL} records, 2 threads` },
    resumeSigned: resuming('signed'),
    resumeSealed: resuming('sealed'),
    open2: { ...verifying('open', 2), once: true },
    limited2: { ...verifying('limited', 2), once: true },
    large2: { ...verifying('large', 2), once: true },
    sign1: appending('node:crypto signing, 1 thread', { role: 'signAlone' }),
    sign2: appending('node:crypto signing, 2 threads', { role: 'signOnThreads', threads: 2 }),
    append: streaming('appending a stream', 0),
    appendUnindexed: streaming('appending a stream, no index', 0, { index: false }),
    appendThreads: streaming('appending a stream, signing ahead', 1),
    appendThreadsUnindexed: streaming('appending a stream, signing ahead, no index', 1, { index: false }),
    start: { title: 'starting', ledger: 'small', run: () => measureStart(ledgers.small.path) },
    sample1: { ...verifying('sample', 1), title: `northroot verify, 1 thread` },
    go1: {
      title: 'Go: encoding/json, SHA-256, crypto/ed25519, tree',
      needs: ['go'],
      ledger: 'sample',
      run: () => counted(goVerify(go.program, ledgers.sample.path, 1), sampled),
    },
    python: {
      title: `Python: json, hashlib${peers.cryptography?.version ? ', cryptography' : '; no signatures'}`,
      needs: ['python3'],
      ledger: 'sample',
      run: () => counted(pythonVerify(ledgers.sample.path), sampled),
    },
    jq: {
      title: 'jq -c . (parses and prints)',
      needs: ['jq'],
      ledger: 'sample',
      run: () => ({ wall: intoNothing('jq', ['-c', '.', ledgers.sample.path]) }),
    },
    sha256sum: {
      title: 'sha256sum of the file',
      needs: ['sha256sum'],
      ledger: 'sample',
      run: () => runProgram('sha256sum', [ledgers.sample.path]),
    },
  };
}

/** The state after a ledger without its last hundredth, which every resumption begins with. */
async function saveBaseState(folder, { path, baseRecords, baseBytes }, name) {
  const base = join(folder, `${name}-base.jsonl`);
  const state = join(folder, `${name}.state.base`);
  rmSync(state, { force: true });
  await pipeline(createReadStream(path, { end: baseBytes - 1 }), createWriteStream(base));
  verifyByCommand(folder, base, baseRecords, ['--threads', '2', '--state', state]);
  rmSync(base);
}

function counted(said, records) {
  if (said.records !== records) throw new Error(`expected ${records} records, found ${said.records}`);
  return said;
}

function intoNothing(command, args) {
  const start = performance.now();
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw error ?? new Error(`${command} ended with ${status}`);
  return performance.now() - start;
}

/** The least wall time, and the mean CPU, of short processes in turns. */
function measureStart(path) {
  const commands = { node: ['-e', '0'], version: [CLI, '--version'], verify: [CLI, 'verify', path] };
  const sample = {};
  for (let turn = 0; turn < START_TURNS; turn += 1) {
    for (const [name, args] of Object.entries(commands)) {
      const before = childrenCpu();
      const { wall } = runProgram(process.execPath, args);
      const cpu = before === undefined ? NaN : (childrenCpu() - before) / START_TURNS;
      sample[name] = Math.min(sample[name] ?? Infinity, wall);
      sample[`${name}Cpu`] = (sample[`${name}Cpu`] ?? 0) + cpu;
    }
  }
  return sample;
}
