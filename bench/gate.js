/**
 * What the gate costs: decide and settle in process, and over the socket of `northroot serve`, one client, in one run; a hundred calls of 0.18
 * against 1.00 from three clients at once, of which five may run; and what open calls cost in memory (gate, state and running starts), and
 * in the next decision.
 *
 *     node --expose-gc bench/gate.js [--calls 500 --rounds 3 --open 100000]
 */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createSigner, Gate, parsePrivateKey } from '../dist/api/index.js';
import { readFileSync } from 'node:fs';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '3' },
    open: { type: 'string', default: '100000' },
  },
});
const calls = Number(values.calls);
const rounds = Number(values.rounds);
const NORTHROOT = fileURLToPath(new URL('../bin/northroot.js', import.meta.url));
const PRINCIPAL = 'agent:a1';

function northroot(...args) {
  const { status, stderr } = spawnSync(process.execPath, [NORTHROOT, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

function makeLedger(folder, cap, name = 'ledger') {
  const path = join(folder, `${name}.jsonl`);
  northroot('init', path, '--origin', 'example.com/bench/gate');
  northroot(
    'grant',
    path,
    '--to',
    PRINCIPAL,
    '--tool',
    'fs.*',
    '--cap',
    cap,
    '--cap',
    'calls=1000000',
    '--expires',
    '1d',
  );
  return path;
}

function quantiles(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  return { median: at(0.5), p99: at(0.99) };
}

async function inProcess(path, from) {
  const signer = createSigner(parsePrivateKey(readFileSync(`${path}.key`)));
  const gate = await Gate.open(path, { signer, principalId: PRINCIPAL });
  const times = [];
  for (let n = from; n < from + calls; n += 1) {
    const began = performance.now();
    await gate.decide({ ref: `c${n}`, tool: 'fs.read', params: { n }, reserve: { usd: '0.01' } });
    times.push(performance.now() - began);
    await gate.settle(`c${n}`, { outcome: 'success', used: { usd: '0.01' } });
  }
  await gate.close();
  return quantiles(times);
}

async function serve(path) {
  const child = spawn(process.execPath, [NORTHROOT, 'serve', path, '--principal', PRINCIPAL, '--no-log'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(child.stdout, 'data');
  return child;
}

function ask(socketPath, agent, path, body) {
  return new Promise((resolve, reject) => {
    const sent = request(
      { socketPath, path, method: 'POST', agent, headers: { 'content-type': 'application/json' } },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
        response.on('end', () => resolve(JSON.parse(text)));
      },
    );
    sent.on('error', reject);
    sent.end(JSON.stringify(body));
  });
}

async function overSocket(path, from) {
  const child = await serve(path);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const socket = `${path}.sock`;
  const times = [];
  for (let n = from; n < from + calls; n += 1) {
    const began = performance.now();
    await ask(socket, agent, '/v1/decide', {
      ref: `c${n}`,
      tool: 'fs.read',
      params: { n },
      reserve: { usd: '0.01' },
    });
    times.push(performance.now() - began);
    await ask(socket, agent, '/v1/settle', { ref: `c${n}`, outcome: 'success', used: { usd: '0.01' } });
  }
  agent.destroy();
  child.kill('SIGTERM');
  await once(child, 'close');
  return quantiles(times);
}

async function runaway(path) {
  const child = await serve(path);
  const agents = [0, 1, 2].map(() => new Agent({ keepAlive: true }));
  const socket = `${path}.sock`;
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) =>
      ask(socket, agents[n % 3], '/v1/decide', {
        ref: `r${n}`,
        tool: 'fs.read',
        params: { n },
        reserve: { usd: '0.18' },
      }),
    ),
  );
  for (const agent of agents) agent.destroy();
  child.kill('SIGTERM');
  await once(child, 'close');
  return answers.filter(({ effect }) => effect === 'allow').length;
}

const FEW = 10;
const AT_ONCE = 1_000;
const TRIED = 200;

async function printOpen(path, open) {
  const signer = createSigner(parsePrivateKey(readFileSync(`${path}.key`)));
  const gate = await Gate.open(path, { signer, principalId: PRINCIPAL });
  let begun = 0;
  const decide = () => {
    // As it comes over a wire: no text is shared.
    const call = { ref: `o${(begun += 1)}`, session: 's1', tool: 'fs.read', params: { begun } };
    return gate.decide(JSON.parse(JSON.stringify({ ...call, reserve: { usd: '0.01' } })));
  };
  const hold = async (count) => {
    for (let n = 0; n < count; n += AT_ONCE)
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - n) }, decide));
  };
  /** CPU, in microseconds: other work of the machine does not count. */
  const costOf = async () => {
    let least = Infinity;
    for (let round = 0; round <= rounds; round += 1) {
      const before = process.cpuUsage();
      for (let n = 0; n < TRIED; n += 1) {
        const { ref } = await decide();
        await gate.settle({ ref, session: 's1' }, { outcome: 'success' });
      }
      const { user, system } = process.cpuUsage(before);
      if (round > 0) least = Math.min(least, user + system);
    }
    return least;
  };
  const memory = () => {
    globalThis.gc?.();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  await hold(FEW);
  const few = await costOf();
  const before = memory();
  await hold(open);
  const bytes = (memory() - before) / open;
  const many = await costOf();
  console.log(
    `${open} open: ${bytes.toFixed(0)} bytes each (target: at most 1,024), ` +
      `a call costs ${(many / few).toFixed(2)} times as much beside them as beside ${FEW} (target: at most 1.1)`,
  );
  await gate.close();
}

const folder = mkdtempSync(join(tmpdir(), 'northroot-bench-gate-'));
try {
  const path = makeLedger(folder, 'usd=1000000');
  const [own, remote] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    own.push(await inProcess(path, 2 * round * calls));
    remote.push(await overSocket(path, (2 * round + 1) * calls));
  }
  const least = (all, name) => Math.min(...all.map((each) => each[name]));
  for (const name of ['median', 'p99']) {
    const [a, b] = [least(own, name), least(remote, name)];
    console.log(
      `decide, ${name}: ${a.toFixed(2)} ms in process, ${b.toFixed(2)} ms over the socket: + ${(b - a).toFixed(2)} ms`,
    );
  }
  const other = join(folder, 'runaway');
  northroot('init', other, '--origin', 'example.com/bench/runaway');
  northroot('grant', other, '--to', PRINCIPAL, '--tool', 'fs.*', '--cap', 'usd=1', '--expires', '1d');
  console.log(`100 calls of 0.18 against 1.00 at once: ${await runaway(other)} run`);
  if (Number(values.open) > 0)
    await printOpen(makeLedger(folder, 'usd=1000000', 'open'), Number(values.open));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
