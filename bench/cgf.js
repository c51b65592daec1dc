/**
 * How long a CGF server takes to evaluate, with several adapters at once, beside an fdatasync of the same disk.
 * `node bench/cgf.js [--adapters 8] [--proposals 100]`, after a build.
 */

import { spawn, spawnSync } from 'node:child_process';
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    adapters: { type: 'string', default: '8' },
    proposals: { type: 'string', default: '100' },
  },
});
const [adapters, proposals] = [Number(values.adapters), Number(values.proposals)];
const cli = fileURLToPath(new URL('../bin/northroot.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'northroot-bench-'));
const ledger = join(folder, 'ledger.jsonl');

function northroot(...args) {
  const { status, stderr } = spawnSync(process.execPath, [cli, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args[0]} ended with ${status}:\n${stderr}`);
}

function quantiles(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { median: at(0.5), p99: at(0.99), most: sorted.at(-1) };
}

function post(agent, port, path, body) {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body);
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
    const sent = request({ agent, host: '127.0.0.1', port, path, method: 'POST', headers }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString('utf8'))));
    });
    sent.on('error', reject);
    sent.end(text);
  });
}

async function runAdapter(port, name) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const host_config = { host_type: 'custom' };
  const { adapter_id } = await post(agent, port, '/v1/register', {
    ...{ schema_version: '0.3.0', adapter_type: name, host_config, features: [], risk_tiers: {} },
    timestamp: Date.now() / 1000,
  });
  const times = [];
  for (let n = 0; n < proposals; n += 1) {
    const began = performance.now();
    const { decision } = await post(agent, port, '/v1/evaluate', {
      ...{ schema_version: '0.3.0', adapter_id, host_config, context: {}, capacity_signals: {} },
      proposal: {
        ...{ proposal_id: `${name}-${n}`, timestamp: Date.now() / 1000, action_type: 'tool_call' },
        ...{ action_params: { tool_name: 'ls', n }, context_refs: [], estimated_cost: { tokens: 3 } },
        risk_tier: 'low',
      },
    });
    times.push(performance.now() - began);
    if (decision?.decision !== 'ALLOW') throw new Error(`expected ALLOW, found ${JSON.stringify(decision)}`);
  }
  agent.destroy();
  return times;
}

function timeSyncs() {
  const file = openSync(join(folder, 'sync'), 'a');
  const times = Array.from({ length: 100 }, () => {
    const began = performance.now();
    writeSync(file, 'x'.repeat(2_000));
    fdatasyncSync(file);
    return performance.now() - began;
  });
  closeSync(file);
  return quantiles(times);
}

try {
  northroot('init', ledger);
  northroot(
    'grant',
    ledger,
    '--to',
    'agent:a1',
    '--tool',
    'ls',
    '--cap',
    'calls=1000000',
    '--cap',
    'tokens=9000000',
  );
  const sync = timeSyncs();
  const server = spawn(
    process.execPath,
    [
      cli,
      'serve',
      ledger,
      '--face',
      'cgf',
      '--principal',
      'agent:a1',
      '--listen',
      '127.0.0.1:0',
      '--cgf-anonymous',
      '--no-log',
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let port;
  for await (const line of createInterface({ input: server.stdout })) {
    port = /^http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1];
    if (port !== undefined) break;
  }
  await runAdapter(port, 'warm');
  const all = await Promise.all(Array.from({ length: adapters }, (_, n) => runAdapter(port, `adapter-${n}`)));
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGTERM');
  await ended;
  const { median, p99, most } = quantiles(all.flat());
  const text = (ms) => `${ms.toFixed(1)} ms`;
  console.log(`fdatasync             median ${text(sync.median)}, p99 ${text(sync.p99)}`);
  console.log(`evaluate, ${adapters} at once  median ${text(median)}, p99 ${text(p99)}, most ${text(most)}`);
  console.log(
    `÷ fdatasync           median ${(median / sync.median).toFixed(1)}, p99 ${(p99 / sync.p99).toFixed(1)}`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
