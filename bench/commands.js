/**
 * What commands cost beside `verify` of the same ledger, in whole processes: appending events from a file, the first command that asks an
 * index, those that read it, reports and exports.
 *
 *     node bench/commands.js [--records 50000 --rounds 2 --only append,export-csv --folder /tmp --json]
 */

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { actionDraft } from './ledger.js';
import { makeLedger } from './targets/make-ledger.js';
import { CLI, runNode, runProgram } from './targets/processes.js';
import { bestOf } from './targets/samples.js';

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '50000' },
    rounds: { type: 'string', default: '2' },
    only: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    json: { type: 'boolean', default: false },
  },
});
const records = Number(values.records);
const folder = mkdtempSync(join(values.folder, 'northroot-commands-'));
const ledger = join(folder, 'signed.jsonl');
const drafts = join(folder, 'drafts.ndjson');
const oneDraft = join(folder, 'draft.ndjson');
const appended = join(folder, 'appended.jsonl');
const made = join(folder, 'made');

const clean = (path) => rmSync(path, { recursive: true, force: true });
const command = (...args) => runNode(folder, [CLI, ...args]);

/** Appends the drafts to a new ledger, whose history begins before them. */
function append(args = [], ways = []) {
  for (const path of [appended, `${appended}.key`, `${appended}.index`]) clean(path);
  runProgram(process.execPath, [CLI, 'init', appended, '--at', '2025-12-31T00:00:00Z', ...ways]);
  return command('append', appended, drafts, ...args);
}

function exportTo(kind, isFolder = false) {
  clean(made);
  if (isFolder) mkdirSync(made);
  return command('export', ledger, `--${kind}`, made);
}

/** In the order in which they are run: an index that one made is there for the next. */
const TASKS = {
  verify: () => command('verify', ledger),
  'verify-1-thread': () => command('verify', ledger, '--threads', '1'),
  append: () => append(),
  'append-no-index': () => append(['--no-index']),
  'append-one-no-index': () => {
    if (!existsSync(appended)) append(['--no-index']);
    return command('append', appended, oneDraft, '--no-index');
  },
  'append-unsigned': () => append(['--no-index', '--unsigned'], ['--unsigned']),
  'status-first': () => {
    clean(`${ledger}.index`);
    return command('status', ledger);
  },
  'status-again': () => command('status', ledger),
  log: () => command('log', ledger),
  report: () => command('report', ledger),
  'export-csv': () => exportTo('csv', true),
  'export-parquet': () => exportTo('parquet', true),
  'export-ocsf': () => exportTo('ocsf'),
  'export-otlp': () => exportTo('otlp'),
  'export-dsse': () => exportTo('dsse'),
  'export-html': () => exportTo('html'),
};

try {
  await makeLedger(ledger, 'signed', records);
  const lines = Array.from({ length: records }, (_, index) => {
    const { authorization, ...draft } = actionDraft(`sha-256:${'A'.repeat(43)}`, index);
    const { kind, action } = authorization;
    return `${JSON.stringify({ ...draft, authorization: { kind, action } })}\n`;
  });
  writeFileSync(drafts, lines.join(''));
  writeFileSync(oneDraft, lines[0]);
  const chosen = values.only?.split(',');
  const names = Object.keys(TASKS).filter((name) => name === 'verify' || (chosen?.includes(name) ?? true));
  const best = {};
  for (let round = 0; round < Number(values.rounds); round += 1)
    for (const name of names) best[name] = bestOf(best[name], TASKS[name]());
  const rows = names.map((name) => {
    const { wall, cpu, rss } = best[name];
    return { name, wall, cpu, rss, ratio: wall / best.verify.wall };
  });
  if (values.json) console.log(JSON.stringify(rows));
  else
    for (const { name, wall, cpu, rss, ratio } of rows)
      console.log(
        `${name.padEnd(20)}${((1000 * wall) / records).toFixed(0).padStart(6)} µs a record, CPU ${((1000 * cpu) / records).toFixed(0).padStart(4)} ${ratio.toFixed(1).padStart(6)} × verify ${rss.toFixed(0).padStart(5)} MB`,
      );
} finally {
  clean(folder);
}
