/**
 * Prints the table of targets: what verifying and appending cost beside others, as ratios of one run. On a shared machine only those
 * mean anything. Nothing is asserted on time.
 *
 *     npm run bench [-- --records 1000000 --quick --large --rounds 3 --only go,rules --folder /tmp --keep --json --all]
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { closeSync, openSync, readSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, tmpdir, type } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { VERSION } from '../dist/api/index.js';
import { KINDS } from './targets/kinds.js';
import { makeLedger } from './targets/make-ledger.js';
import {
  buildGo,
  checkVerifiers,
  findPeers,
  goVerify,
  northrootVerify,
  pythonVerify,
} from './targets/peers.js';
import { verifyByCommand } from './targets/processes.js';
import { COMPARISONS, fillRow, ROWS } from './targets/rows.js';
import { bestOf } from './targets/samples.js';
import { makeTasks } from './targets/tasks.js';

const RECORDS = 1_000_000;
const QUICK_RECORDS = 50_000;
const LARGE_FACTOR = 10;
const MIN_RECORDS = 5_000;
const CHECK_RECORDS = 3_000;
const SMALL_RECORDS = 20;
const MAX_SAMPLED = 100_000;
const MAX_APPENDS = 20_000;
/** The ledger grows by one record in a hundred. */
const GROWTH = 101;
/** Figures by programs of their own. */
const FURTHER = [
  'compare.js',
  'ed25519.js',
  'append.js',
  'start.js',
  'writers.js',
  'cost.js',
  'live.js',
  'guard.js',
];

const USAGE = `usage: npm run bench -- [options]
  --records N     so many records in each ledger (default: ${RECORDS})
  --quick         ${QUICK_RECORDS} records
  --large         ${LARGE_FACTOR} times as many too, for their memory
  --rounds N      so many interleaved rounds (default: 3)
  --only ROW,…    of peers, ${ROWS.map(({ id }) => id).join(', ')}
  --folder PATH   where ledgers are made (default: ${tmpdir()})
  --keep          leave them there for the next run
  --json          print JSON
  --all           then run the other programs too`;

/** What is asked for; whoever asks for help, or for what there is not, is told how to ask. */
function readOptions() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        records: { type: 'string' },
        quick: { type: 'boolean', default: false },
        large: { type: 'boolean', default: false },
        rounds: { type: 'string', default: '3' },
        only: { type: 'string' },
        folder: { type: 'string', default: tmpdir() },
        keep: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        all: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }));
  } catch (error) {
    refuse(error.message);
  }
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const records = Number(values.records ?? (values.quick ? QUICK_RECORDS : RECORDS));
  const rounds = Number(values.rounds);
  if (!(Number.isInteger(records) && records >= MIN_RECORDS && Number.isInteger(rounds) && rounds >= 1))
    refuse(`expected --records of at least ${MIN_RECORDS} and --rounds of at least 1`);
  const wanted = values.only?.split(',');
  const unknown = wanted?.filter((id) => id !== 'peers' && !ROWS.some((row) => row.id === id)) ?? [];
  if (unknown.length > 0) refuse(`--only takes none of ${unknown}`);
  return { values, records, rounds, wanted };
}

function refuse(message) {
  console.error(`${message}\n${USAGE}`);
  process.exit(2);
}

const { values, records, rounds, wanted } = readOptions();
const rows = ROWS.filter(({ id }) => wanted === undefined || wanted.includes(id));
const comparisons = wanted === undefined || wanted.includes('peers') ? COMPARISONS : [];

mkdirSync(values.folder, { recursive: true });
const folder = mkdtempSync(join(values.folder, 'northroot-bench-'));
const ledgerFolder = values.keep ? values.folder : folder;
for (const [signal, status] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
]) {
  process.once(signal, () => {
    rmSync(folder, { recursive: true, force: true });
    process.exit(status);
  });
}
try {
  const results = await measure();
  if (values.json) console.log(JSON.stringify(results, undefined, 2));
  else print(results);
  process.exitCode = results.failed.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (values.all && !values.json) for (const script of FURTHER) runFurther(script);

async function measure() {
  const loadBefore = loadavg();
  const peers = findPeers();
  const go = {};
  try {
    if (peers.go.missing === undefined) go.program = buildGo(folder);
  } catch (error) {
    peers.go = { ...peers.go, missing: error.message };
  }
  await checkPeers(peers, go);
  const ledgers = {};
  const sampled = Math.min(records, MAX_SAMPLED);
  const appends = Math.min(records, MAX_APPENDS);
  const tasks = makeTasks({ folder, ledgers, records, appends, sampled, go, peers });
  const missing = {};
  for (const [name, { missing: why, needs = [] }] of Object.entries(tasks)) {
    const lacking = needs.find((peer) => peers[peer].missing !== undefined);
    missing[name] = why ?? (lacking === undefined ? undefined : peers[lacking].missing);
  }
  if (!values.large) missing.large2 = 'asked for with --large';
  if (!existsSync('/proc/self/status')) {
    for (const name of ['open2', 'limited2', 'large2']) missing[name] ??= 'the peak is known on Linux alone';
  }
  const isWhole = (row) => row.tasks.every((name) => missing[name] === undefined);
  const names = new Set([...rows.filter(isWhole).flatMap((row) => row.tasks), ...comparisons]);
  const order = Object.keys(tasks).filter((name) => names.has(name) && missing[name] === undefined);
  for (const name of order) {
    const { ledger } = tasks[name];
    const kinds = ledger === 'sample' ? ['signed', 'sample'] : ledger === undefined ? [] : [ledger];
    for (const kind of kinds) ledgers[kind] ??= await provideLedger(kind, ledgers, sampled);
  }
  const { samples, failed } = await runInTurns(tasks, order, missing);
  return {
    tool: { name: 'northroot', version: VERSION },
    machine: {
      cpu: cpus()[0]?.model,
      cpus: cpus().length,
      system: `${type()} ${release()}`,
      load_before: loadBefore,
      load_after: loadavg(),
    },
    peers,
    records,
    rounds,
    ledgers: Object.fromEntries(
      Object.entries(ledgers).map(([kind, { records: count, bytes }]) => [kind, { records: count, bytes }]),
    ),
    rows: rows.map((row) => {
      const why = row.tasks.map((name) => missing[name]).find((reason) => reason !== undefined);
      const { id, title, basis } = row;
      return why === undefined ? fillRow(row, samples, records) : { id, title, basis, not_measured: why };
    }),
    comparisons: comparisons.map((name) => {
      const { title } = tasks[name];
      if (missing[name] !== undefined) return { title, not_measured: missing[name] };
      return {
        title,
        records_per_s: (1000 * sampled) / samples[name].wall,
        ...(samples.sample1 !== undefined && { ratio: samples.sample1.wall / samples[name].wall }),
      };
    }),
    samples,
    failed,
  };
}

/** Each task once in each round; of times the least, of rates and memory the most. A task that fails is told, and left out from then on. */
async function runInTurns(tasks, order, missing) {
  const samples = {};
  const failed = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const name of order) {
      const { title, prepare, run, once = false } = tasks[name];
      if (missing[name] !== undefined || (once && round > 0)) continue;
      progress(`round ${round + 1} of ${rounds}: ${title}`);
      // Processes are waited for synchronously: a signal is heard only between two of them.
      await setImmediate();
      try {
        if (round === 0) await prepare?.();
        samples[name] = bestOf(samples[name], run());
      } catch (error) {
        missing[name] = `failed: ${error.message}`;
        failed.push({ task: name, error: error.message });
      }
    }
  }
  return { samples, failed };
}

/** A ledger of a kind, made now or found in the folder that is kept, with what is known of it. */
async function provideLedger(kind, ledgers, sampled) {
  if (kind === 'sample') return takeSample(ledgers.signed, sampled);
  const count = { small: SMALL_RECORDS, large: LARGE_FACTOR * records }[kind] ?? records;
  const maker = { small: 'signed', large: 'sealed' }[kind] ?? kind;
  const path = join(ledgerFolder, `${maker}-${count}.jsonl`);
  const facts = `${path}.facts.json`;
  if (existsSync(facts) && existsSync(path)) {
    const known = JSON.parse(readFileSync(facts, 'utf8'));
    if (known.bytes === statSync(path).size) return { path, ...known };
  }
  progress(`making ${count} records: ${maker}`);
  const made = await makeLedger(path, maker, count, Math.floor(count / GROWTH));
  writeFileSync(facts, JSON.stringify(made));
  return { path, ...made };
}

/** The first lines of a ledger, for those that are too slow for all of it. */
function takeSample({ path }, count) {
  const sample = join(folder, 'sample.jsonl');
  const buffer = Buffer.alloc(1 << 20);
  const [from, to] = [openSync(path, 'r'), openSync(sample, 'w')];
  let left = count;
  while (left > 0) {
    let bytes = buffer.subarray(0, readSync(from, buffer));
    if (bytes.length === 0) break;
    for (let at = bytes.indexOf(0x0a); at !== -1 && left > 0; at = bytes.indexOf(0x0a, at + 1)) {
      left -= 1;
      if (left === 0) bytes = bytes.subarray(0, at + 1);
    }
    writeFileSync(to, bytes);
  }
  closeSync(from);
  closeSync(to);
  return { path: sample, records: count };
}

/** Whether each kind of ledger is right, and whoever verifies sees what is wrong. */
async function checkPeers(peers, go) {
  const path = join(folder, 'check.jsonl');
  for (const kind of Object.keys(KINDS)) {
    progress(`checking ${CHECK_RECORDS} records: ${kind}`);
    const { records: count } = await makeLedger(path, kind, CHECK_RECORDS, CHECK_RECORDS / 10);
    verifyByCommand(folder, path, count, []);
  }
  const signed = await makeLedger(path, 'signed', CHECK_RECORDS);
  const verifiers = { northroot: northrootVerify };
  if (go.program !== undefined) verifiers.Go = (file) => goVerify(go.program, file, 2);
  if (peers.cryptography?.version !== undefined) verifiers.Python = pythonVerify;
  progress(`checking that changed ledgers are seen: ${Object.keys(verifiers).join(', ')}`);
  checkVerifiers(verifiers, folder, path, signed);
}

function runFurther(script) {
  const path = fileURLToPath(new URL(script, import.meta.url));
  if (!existsSync(path)) return;
  console.log(`\n${script}`);
  spawnSync(process.execPath, [path, '--folder', values.folder], { stdio: 'inherit' });
}

function progress(what) {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${what}\n`);
}

function print({ tool, machine, peers, rows: filled, comparisons: others }) {
  const load = (averages) => averages.map((each) => each.toFixed(1)).join(' ');
  console.log(`${tool.name} ${tool.version}, ${records} records, best of ${rounds} interleaved rounds`);
  console.log(`${machine.cpu}, ${machine.cpus} CPUs, ${machine.system}`);
  console.log(`load average ${load(machine.load_before)} before, ${load(machine.load_after)} after`);
  for (const [name, { version: found, missing }] of Object.entries(peers))
    console.log(`  ${name.padEnd(14)} ${missing ?? found}`);
  if (records < RECORDS)
    console.log(`\nthe targets are for ${RECORDS} records: with fewer, starting and compiling weigh more`);
  printTable(
    ['what', 'basis', 'measured', 'target', 'met', 'beside it'],
    filled.map((row) => {
      const { title, basis, measured, target, met, stretch_met: stretched, note, not_measured: why } = row;
      if (why !== undefined) return [title, basis, `not measured: ${why}`];
      const verdict = `${met ? 'met' : 'not met'}${stretched ? ', stretch too' : ''}`;
      return [title, basis, measured, target, verdict, note];
    }),
  );
  if (others.length === 0) return;
  printTable(
    ['others, one thread each', 'records/s', 'northroot = 1'],
    others.map(({ title, records_per_s: rate, ratio, not_measured: why }) =>
      why === undefined
        ? [title, rate.toFixed(0), ratio === undefined ? '' : ratio.toFixed(2)]
        : [title, `not measured: ${why}`],
    ),
  );
}

function printTable(heads, lines) {
  const isRest = (line, column) => column === line.length - 1;
  const widths = heads.map((_, column) =>
    Math.max(...[heads, ...lines].map((line) => (isRest(line, column) ? 0 : (line[column]?.length ?? 0)))),
  );
  console.log();
  for (const line of [heads, ...lines])
    console.log(
      line.map((cell, column) => (isRest(line, column) ? cell : cell.padEnd(widths[column]))).join('  '),
    );
}
