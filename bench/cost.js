/**
 * What one event costs in a process of its own, in a large ledger and in a small one: CPU and memory of each command, side by side in
 * one run, and their ratios beside what they are to be.
 *
 *     node bench/cost.js [--records 100000 --small 10 --keys 1000 --rounds 5 --folder /tmp --keep --json]
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import {
  Ledger,
  canonicalBytes,
  createSigner,
  formatPrivateKey,
  generatePrivateKey,
  makeKeyEntry,
  meters,
  sha256Digest,
} from '../dist/api/index.js';
import { actionDraft, executionDraft, grantDraft } from './ledger.js';
import { median } from './rounds.js';

const MAX_CPU_RATIO = 1.5;
const MAX_MORE_MIB = 40;
const BATCH = 500;
const START = Date.parse('2026-01-01T00:00:00Z');
const bin = fileURLToPath(new URL('../bin/northroot.js', import.meta.url));
const usage = pathToFileURL(fileURLToPath(new URL('usage.js', import.meta.url))).href;

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '100000' },
    small: { type: 'string', default: '10' },
    keys: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '5' },
    folder: { type: 'string', default: tmpdir() },
    ledger: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const at = (second) => new Date(START + second * 1000).toISOString();
const digest = sha256Digest(canonicalBytes({ about: 'the benchmark' }));
const amounts = 'usd=0.0125,calls=1';

/** A grant like the others', whose calls are also limited in time and at once. */
function limitedGrantDraft() {
  const draft = grantDraft();
  const { bounds } = draft.authorization;
  const limits = {
    rate_limits: meters({ 'calls.per_min': 10n ** 6n }),
    concurrency_limit: { t: 'int', v: '1000000' },
  };
  return {
    ...draft,
    context_digest: digest,
    authorization: { kind: 'grant', bounds: { ...bounds, ...limits } },
  };
}

/** Writes a ledger with keys that came and went, two grants, actions and their executions, ten actions left open, and checkpoints. */
async function writeLedger(path, records, keys) {
  let now = 0;
  const key = generatePrivateKey();
  const signer = createSigner(key);
  writeFileSync(`${path}.key`, formatPrivateKey(key, 'pem'), { mode: 0o600 });
  const ledger = await Ledger.open(path, {
    create: { origin: 'example.com/bench' },
    now: () => at(now),
    checkpoints: true,
    signer,
  });
  const { eventId: grantId } = await ledger.append({ event: grantDraft() });
  const { eventId: limitedId } = await ledger.append({ event: limitedGrantDraft() });
  for (let done = 0; done < keys; done += 2) {
    const entry = makeKeyEntry(generatePrivateKey().publicKey, { roles: ['event'] });
    for (const action of ['add', 'revoke'])
      await ledger.append({
        event: { event_type: 'key', principal_id: 'service:ledger', action, key: entry },
      });
  }
  const open = [];
  for (let index = 0; index < 3; index += 1)
    open.push(await ledger.append({ event: actionDraft(grantId, index + 1) }));
  while (ledger.size < records - 1) {
    const begin = ledger.size;
    const count = Math.max(1, Math.min(BATCH, Math.floor((records - begin - 1) / 2)));
    const indices = Array.from({ length: count }, (_, i) => begin + 2 * i);
    const made = await Promise.all(
      indices.map((index) =>
        ledger.append({ event: actionDraft(index % 4 === 0 ? limitedId : grantId, index) }),
      ),
    );
    await Promise.all(
      made.map(({ eventId }, i) =>
        ledger.append({ event: executionDraft(eventId, indices[i], begin + 2 * count) }),
      ),
    );
    now = begin + 2 * count;
    if (begin % 10_000 < 2 * count) await ledger.checkpoint();
  }
  await ledger.checkpoint();
  const { size } = ledger;
  await ledger.close();
  return { size, grantId, limitedId, seq: Math.floor(size / 2) };
}

/** Runs the command in a process of its own; its CPU in ms and its memory in MiB. */
function measure(folder, args, input) {
  const path = join(folder, 'usage.json');
  rmSync(path, { force: true });
  const env = { ...process.env, NORTHROOT_BENCH_USAGE: path };
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', usage, bin, ...args], {
    input,
    env,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`northroot ${args.join(' ')} ended with ${status}:\n${stderr}${stdout}`);
  return { ...JSON.parse(readFileSync(path, 'utf8')), stdout };
}

/** The commands, in an order in which each finds what it needs. */
function commandsOf({ path, grantId, limitedId, seq }, folder, round) {
  const authorized = (grant, tag) => [
    'authorize',
    path,
    '--principal',
    'agent:bench/worker-1',
    '--tool',
    'llm.chat',
    '--grant',
    grant,
    '--reserve',
    amounts,
    '--',
    'true',
    tag,
  ];
  const event = JSON.stringify({
    event_type: 'x.bench.note',
    principal_id: 'agent:bench/worker-1',
    n: `${Date.now()} ${round}`,
  });
  let last;
  return [
    ['append', () => measure(folder, ['append', path], `${event}\n`)],
    ['authorize', () => (last = measure(folder, authorized(grantId, `a${round}`)))],
    ['authorize, rate-limited', () => measure(folder, authorized(limitedId, `b${round}`))],
    [
      'record',
      () => measure(folder, ['record', path, '--auth', idIn(last.stdout), '--', 'true', `a${round}`]),
    ],
    ['status', () => measure(folder, ['status', path])],
    ['budget --grant', () => measure(folder, ['budget', path, '--grant', grantId])],
    ['show SEQ', () => measure(folder, ['show', path, String(seq)])],
    ['why SEQ', () => measure(folder, ['why', path, String(seq)])],
    ['checkpoint', () => measure(folder, ['checkpoint', path])],
    ['prove SEQ', () => measure(folder, ['prove', path, String(seq)])],
  ];
}

function idIn(text) {
  return /sha-256:[A-Za-z0-9_-]{43}/.exec(text)[0];
}

const folder = mkdtempSync(join(values.folder, 'northroot-cost-'));
try {
  const ledgers = [];
  for (const [name, records, keys] of [
    ['small', Number(values.small), 0],
    ['large', Number(values.records), Number(values.keys)],
  ]) {
    const path =
      name === 'large' && values.ledger !== undefined ? values.ledger : join(folder, `${name}.jsonl`);
    const facts = `${path}.bench.json`;
    const start = performance.now();
    const made = existsSync(facts)
      ? JSON.parse(readFileSync(facts, 'utf8'))
      : await writeLedger(path, records, keys);
    if (values.ledger !== undefined && name === 'large') writeFileSync(facts, JSON.stringify(made));
    ledgers.push({
      name,
      path,
      ...made,
      bytes: statSync(path).size,
      seconds: (performance.now() - start) / 1000,
    });
  }
  const samples = new Map();
  for (let round = 0; round <= rounds; round += 1) {
    for (const ledger of ledgers) {
      for (const [command, run] of commandsOf(ledger, folder, round)) {
        const used = run();
        if (round === 0) continue;
        const key = `${command}\n${ledger.name}`;
        samples.set(key, [...(samples.get(key) ?? []), used]);
      }
    }
  }
  const rows = commandsOf(ledgers[0], folder, 0).map(([command]) => {
    const of = (name, what) => median(samples.get(`${command}\n${name}`).map((each) => each[what]));
    const [small, large] = [of('small', 'cpu_ms'), of('large', 'cpu_ms')];
    return {
      command,
      small_ms: small,
      large_ms: large,
      ratio: large / small,
      more_mib: of('large', 'rss_mib') - of('small', 'rss_mib'),
    };
  });
  if (values.json) console.log(JSON.stringify({ ledgers, rows }, undefined, 2));
  else print(ledgers, rows);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function print(ledgers, rows) {
  for (const { name, size, bytes } of ledgers)
    console.log(`${name}: ${size} records, ${(bytes / 1e6).toFixed(1)} MB`);
  console.log(`targets: at most ${MAX_CPU_RATIO} times the CPU, at most ${MAX_MORE_MIB} MiB more\n`);
  const heads = ['small ms', 'large ms', 'ratio', 'more MiB', ''];
  console.log(`${'one event, a process each'.padEnd(28)} ${heads.map((head) => head.padStart(9)).join(' ')}`);
  for (const { command, small_ms: small, large_ms: large, ratio, more_mib: more } of rows) {
    const isMet = ratio <= MAX_CPU_RATIO && more <= MAX_MORE_MIB;
    const cells = [
      small.toFixed(0),
      large.toFixed(0),
      ratio.toFixed(2),
      more.toFixed(1),
      isMet ? 'met' : 'MISSED',
    ];
    console.log(`  ${command.padEnd(26)} ${cells.map((cell) => cell.padStart(9)).join(' ')}`);
  }
}
