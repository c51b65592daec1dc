/**
 * What a hook of a coding agent costs: a process for each call. With a service that answers at once, against `node -e 0`, which is the least
 * that a hook in JavaScript can take; without one, each opens the ledger. `node bench/hook.js [RUNS]`, after `npm run build`.
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';

const runs = Number(process.argv[2] ?? 40);
const CLI = fileURLToPath(new URL('../bin/northroot.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'northroot-hook-'));
const ledger = join(folder, 'l.jsonl');
const call = (event, n, more = {}) =>
  JSON.stringify({
    session_id: 's1',
    hook_event_name: event,
    tool_name: 'Bash',
    tool_input: { command: 'echo hello' },
    tool_use_id: `t${n}`,
    ...more,
  });

/** Its own thread: this one waits for processes. */
const SERVICE = `
  const { createServer } = require('node:http');
  const { parentPort, workerData } = require('node:worker_threads');
  const answer = JSON.stringify({ effect: 'allow', code: 'ALLOW', ref: 't', authorization: 'sha-256:x', remaining: {}, is_repeated: false });
  createServer((request, response) => {
    request.resume().on('end', () => response.end(answer));
  }).listen(workerData, () => parentPort.postMessage('listens'));
`;

function run(args, input = '') {
  const at = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { input, encoding: 'utf8' });
  const took = performance.now() - at;
  if (status !== 0) throw new Error(`${args.join(' ')}: ${status}: ${stderr}`);
  return took;
}

function tell(name, times, least) {
  const sorted = times.toSorted((a, b) => a - b);
  const [best, median] = [sorted[0], sorted[sorted.length >> 1]];
  const against = least === undefined ? '' : `, ${(median / least).toFixed(2)} of node -e 0`;
  console.log(`${name.padEnd(22)} best ${best.toFixed(1)} ms, median ${median.toFixed(1)} ms${against}`);
  return median;
}

const worker = new Worker(SERVICE, { eval: true, workerData: `${ledger}.sock` });
try {
  await new Promise((resolve) => worker.once('message', resolve));
  const [least, decide, settle] = [[], [], []];
  // By turns, so that whatever else the machine does meets all alike.
  for (let n = 0; n < runs; n += 1) {
    least.push(run(['-e', '0']));
    decide.push(run([CLI, 'hook', 'claude-code', '--ledger', ledger], call('PreToolUse', n)));
    settle.push(
      run(
        [CLI, 'hook', 'claude-code', '--ledger', ledger],
        call('PostToolUse', n, { tool_response: 'hello' }),
      ),
    );
  }
  const median = tell('node -e 0', least);
  tell('decide, service', decide, median);
  tell('settle, service', settle, median);
  await worker.terminate();
  rmSync(`${ledger}.sock`, { force: true });
  run([CLI, 'init', ledger]);
  run([CLI, 'grant', ledger, '--to', 'agent:claude-code', '--tool', '*', '--cap', 'calls=1000000']);
  const [decideAlone, settleAlone] = [[], []];
  for (let n = 0; n < Math.ceil(runs / 4); n += 1) {
    decideAlone.push(run([CLI, 'hook', 'claude-code', '--ledger', ledger], call('PreToolUse', n)));
    settleAlone.push(
      run(
        [CLI, 'hook', 'claude-code', '--ledger', ledger],
        call('PostToolUse', n, { tool_response: 'hello' }),
      ),
    );
  }
  tell('decide, ledger', decideAlone, median);
  tell('settle, ledger', settleAlone, median);
} finally {
  await worker.terminate();
  rmSync(folder, { recursive: true, force: true });
}
