/**
 * Many writers of one ledger: how long each waits, beside what is promised.
 *
 *     node bench/writers.js [--seconds 20 --appenders 16 --streams 4 --readers 2 --folder /tmp]
 *
 * Processes that append one event at a time, streams by `northroot append`, one that seals, and readers that verify all the time.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  createSigner,
  generatePrivateKey,
  formatPrivateKey,
  Ledger,
  verifyLedger,
} from '../dist/api/index.js';
import { median } from './rounds.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    appenders: { type: 'string', default: '16' },
    streams: { type: 'string', default: '4' },
    readers: { type: 'string', default: '2' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const [seconds, appenders, streams, readers] = ['seconds', 'appenders', 'streams', 'readers'].map((name) =>
  Number(values[name]),
);
const CLI = fileURLToPath(new URL('../bin/northroot.js', import.meta.url));
const CHILD = fileURLToPath(new URL('writer-process.js', import.meta.url));
const TARGETS = { longest_ms: 2_000, ratio: 10 };
/** Until all processes have begun, in milliseconds. */
const START_MS = 15_000;

const folder = mkdtempSync(join(values.folder, 'northroot-writers-'));
try {
  const result = await run(join(folder, 'ledger.jsonl'));
  print(result);
  process.exitCode = result.wrong.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function run(path) {
  const key = generatePrivateKey();
  const signer = createSigner(key);
  await (await Ledger.open(path, { signer, create: { origin: 'example.com/bench/writers' } })).close();
  const from = Date.now() + START_MS;
  const until = from + 1000 * seconds;
  const task = { path, key: formatPrivateKey(key, 'pem'), from, until };
  const wrong = [];
  const roles = [
    ...Array.from({ length: appenders }, (_, n) => startChild({ ...task, role: 'append', tag: `a${n}` })),
    startChild({ ...task, role: 'seal', tag: 'seal' }),
    ...Array.from({ length: readers }, () => startChild({ ...task, role: 'read' })),
    ...Array.from({ length: streams }, (_, n) => startStream(task, n)),
  ];
  const ends = await Promise.all(roles);
  const { verdict, findings, ledger } = await verifyLedger(path);
  const bad = findings.filter(({ severity }) => severity !== 'info');
  if (verdict !== 'ok' || bad.length > 0) wrong.push(`the ledger is ${verdict}: ${bad[0]?.code}`);
  const ids = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => `sha-256:${JSON.parse(line).event.event_id.b64}`);
  const acknowledged = ends.flatMap(({ acknowledged = [] }) => acknowledged);
  const lost = acknowledged.filter(({ seq, eventId }) => ids[seq] !== eventId).length;
  if (lost > 0) wrong.push(`${lost} acknowledged records are not in their place`);
  wrong.push(...ends.flatMap(({ wrong: told = [] }) => told));
  const waits = ends.flatMap(({ waits: own = [] }) => own);
  const count = (role) => ends.filter((end) => end.role === role).map((end) => end.count);
  const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);
  return {
    records: ledger.records,
    waits,
    wrong,
    counts: {
      'events one at a time': sum(count('append')),
      'events of streams': sum(count('stream')),
      checkpoints: sum(count('seal')),
      'verifications beside it': sum(count('read')),
    },
  };
}

/** A process of bench/writer-process.js, and what it says at its end. */
function startChild(task) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [CHILD, JSON.stringify(task)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => (text += chunk));
    child.once('close', (status) =>
      resolve({
        role: task.role,
        ...(status === 0 ? JSON.parse(text) : { wrong: [`${task.role} ended with ${status}`] }),
      }),
    );
  });
}

/** A stream: events as fast as they are taken. */
function startStream({ path, key, from, until }, n) {
  return new Promise((resolve) => {
    const args = [CLI, 'append', path, '--principal', 'agent:stream', '--lock-timeout', '60'];
    const child = spawn(process.execPath, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NORTHROOT_KEY: keyFile(key) },
    });
    let [text, stderr, given] = ['', '', 0];
    const feed = () => {
      while (Date.now() < until) {
        given += 1;
        const event = { event_type: 'x.bench', stream: n, given };
        if (!child.stdin.write(`${JSON.stringify(event)}\n`)) return child.stdin.once('drain', feed);
      }
      child.stdin.end();
    };
    void sleep(Math.max(0, from - Date.now())).then(feed);
    child.stdout.setEncoding('utf8').on('data', (chunk) => (text += chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk) => (stderr += chunk));
    child.once('close', (status) => {
      const results = text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line));
      const acknowledged = results.map(({ seq, event_id: eventId }) => ({ seq, eventId }));
      const isWhole = status === 0 && results.length === given;
      const wrong = isWhole
        ? []
        : [`stream ${n}: ${results.length} of ${given}, ${status}: ${stderr.slice(0, 300)}`];
      resolve({ role: 'stream', count: results.length, acknowledged, wrong });
    });
  });
}

function keyFile(pem) {
  const path = join(folder, 'writers.key');
  writeFileSync(path, pem, { mode: 0o600 });
  return path;
}

function print({ records, waits, wrong, counts }) {
  const longest = Math.max(...waits);
  const middle = median(waits);
  console.log(
    `${appenders} appenders, ${streams} streams, a sealing process, ${readers} readers, ${seconds} s`,
  );
  console.log(
    `${records} records: ${Object.entries(counts)
      .map(([name, n]) => `${n} ${name}`)
      .join(', ')}`,
  );
  console.log(`median wait ${middle.toFixed(0)} ms`);
  console.log(`longest wait ${longest.toFixed(0)} ms (target: under ${TARGETS.longest_ms})`);
  console.log(`longest / median ${(longest / middle).toFixed(1)} (target: at most ${TARGETS.ratio})`);
  console.log(`forks, losses, invalid: ${wrong.length === 0 ? 'none' : wrong.join('; ')} (target: none)`);
}
