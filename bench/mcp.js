/**
 * What the tap of MCP on stdio costs: the round trip of `tools/call` through it beside none, against a server that answers at once, and
 * beside what a gate in this process takes to decide and to settle, which is mostly waiting for the disk. `node bench/mcp.js [--calls N]
 * [--rounds N]`, after `npm run build`. Each round makes the calls one after the other, by turns; of medians the least counts.
 */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createSigner, Gate, parsePrivateKey } from '../dist/api/index.js';

const { values } = parseArgs({
  options: { calls: { type: 'string', default: '1000' }, rounds: { type: 'string', default: '3' } },
});
const [calls, rounds] = [Number(values.calls), Number(values.rounds)];
const NORTHROOT = fileURLToPath(new URL('../bin/northroot.js', import.meta.url));
const SERVER = `
  const { createInterface } = require('node:readline');
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, params } = JSON.parse(line);
    const result = { content: [{ type: 'text', text: String(params.arguments.n) }] };
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
  });
`;
const DIRECT = ['-e', SERVER];

function northroot(...args) {
  const { status, stderr } = spawnSync(process.execPath, [NORTHROOT, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

/** A server that is asked for one call after the other. */
class Peer {
  #next;
  #id = 0;

  constructor(args) {
    this.child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: this.child.stdout }).on('line', (line) => this.#next(line));
  }

  /** Milliseconds that a call takes. */
  async call() {
    const n = (this.#id += 1);
    const request = {
      ...{ jsonrpc: '2.0', id: n, method: 'tools/call' },
      params: { name: 'echo', arguments: { n } },
    };
    const answered = new Promise((resolve) => (this.#next = resolve));
    const began = performance.now();
    this.child.stdin.write(`${JSON.stringify(request)}\n`);
    const { result } = JSON.parse(await answered);
    const took = performance.now() - began;
    if (result?.content[0].text !== String(n)) throw new Error(`call ${n}: ${JSON.stringify(result)}`);
    return took;
  }

  async close() {
    this.child.stdin.end();
    await once(this.child, 'close');
  }
}

/** The same calls, without a server. */
class Alone {
  #gate;
  #id = 0;

  static async open(ledger) {
    const signer = createSigner(parsePrivateKey(readFileSync(`${ledger}.key`)));
    const alone = new Alone();
    alone.#gate = await Gate.open(ledger, { signer, principalId: 'agent:a1', coverage: 'proxy' });
    return alone;
  }

  async call() {
    const n = (this.#id += 1);
    const began = performance.now();
    const { ref } = await this.#gate.decide({ tool: 'mcp.bench.echo', params: { n } });
    await this.#gate.settle(ref, { outcome: 'success', output: { n } });
    return performance.now() - began;
  }

  close() {
    return this.#gate.close();
  }
}

function quantiles(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  return { median: at(0.5), p99: at(0.99) };
}

const folder = mkdtempSync(join(tmpdir(), 'northroot-bench-mcp-'));
try {
  const ledger = join(folder, 'ledger.jsonl');
  northroot('init', ledger, '--origin', 'example.com/bench/mcp');
  northroot(
    'grant',
    ledger,
    '--to',
    'agent:a1',
    '--tool',
    'mcp.*',
    '--cap',
    'calls=1000000',
    '--expires',
    '1d',
  );
  const tap = [NORTHROOT, 'mcp', ledger, '--principal', 'agent:a1', '--server', 'bench', '--'];
  const starts = {
    direct: () => new Peer(DIRECT),
    alone: () => Alone.open(ledger),
    tapped: () => new Peer([...tap, process.execPath, ...DIRECT]),
  };
  const found = { direct: [], alone: [], tapped: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, start] of Object.entries(starts)) {
      const peer = await start();
      for (let n = 0; n < 50; n += 1) await peer.call();
      const times = [];
      for (let n = 0; n < calls; n += 1) times.push(await peer.call());
      await peer.close();
      found[name].push(quantiles(times));
    }
  }
  for (const name of ['median', 'p99']) {
    const least = (peer) => Math.min(...found[peer].map((each) => each[name]));
    const [direct, alone, tapped] = [least('direct'), least('alone'), least('tapped')];
    console.log(
      `tools/call, ${name}: ${direct.toFixed(2)} ms without the tap, ${tapped.toFixed(2)} ms through it: + ${(tapped - direct).toFixed(2)} ms, ${(tapped / direct).toFixed(0)} times; the gate alone takes ${alone.toFixed(2)} ms`,
    );
  }
  northroot('verify', '--quiet', ledger);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
