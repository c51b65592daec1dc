/**
 * Appending, beside what a writer cannot do without: signing, and bringing the same bytes to the disk. By itself it prints the figures
 * that have targets:
 *
 *     node bench/append.js [--records 20000 --rounds 3 --folder /tmp]
 */

import { generateKeyPairSync, sign } from 'node:crypto';
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createSigner, generatePrivateKey, Ledger } from '../dist/api/index.js';
import { actionDraft, grantDraft } from './ledger.js';
import { bestOf } from './targets/samples.js';
import { fillRow, ROWS } from './targets/rows.js';
import { makeTasks } from './targets/tasks.js';

/** So many are appended, or written, one by one. */
const MAX_SINGLES = 2_000;
const GROUP = 1_000;
/** The rows that are printed. */
const APPENDING = ['append', 'append-threads', 'sync'];

/** The tasks for {@link measureInTurns}, on lines like those of the ledger at `path`; the first is the one to compare with. */
export function appendTasks(folder, path, records) {
  const singles = Math.min(MAX_SINGLES, records);
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  const bytesOf = (count) => Buffer.byteLength(lines.slice(0, count).join('\n'));
  const signer = createSigner(generatePrivateKey());
  const { privateKey } = generateKeyPairSync('ed25519');
  const message = Buffer.from(lines[1]);
  let run = 0;
  const withLedger = async (options, work) => {
    const file = join(folder, `append-${run++}.jsonl`);
    const ledger = await Ledger.open(file, { ...options, create: { origin: 'example.com/bench' } });
    const { eventId } = await ledger.append({ event: grantDraft() });
    await work(ledger, eventId);
    await ledger.close();
    rmSync(file);
  };
  const stream = (count) => (ledger, grantId) =>
    Promise.all(
      Array.from({ length: count }, (_, i) => ledger.append({ event: actionDraft(grantId, i + 2) })),
    );
  const oneByOne = (count) => async (ledger, grantId) => {
    for (let i = 0; i < count; i += 1) await ledger.append({ event: actionDraft(grantId, i + 2) });
  };
  const byHand = (group, count) => {
    const name = join(folder, 'by-hand');
    const file = openSync(name, 'a');
    for (let done = 0; done < count; done += group) {
      writeSync(file, `${lines.slice(done, done + group).join('\n')}\n`);
      fdatasyncSync(file);
    }
    closeSync(file);
    rmSync(name);
  };
  const all = { records, bytes: bytesOf(records) };
  const few = { records: singles, bytes: bytesOf(singles) };
  return [
    { name: 'northroot append, streamed', ...all, run: () => withLedger({ signer }, stream(records)) },
    { name: 'northroot append, streamed, unsigned', ...all, run: () => withLedger({}, stream(records)) },
    { name: 'northroot append, one by one', ...few, run: () => withLedger({ signer }, oneByOne(singles)) },
    {
      name: 'as many node:crypto signatures',
      ...all,
      run: () => {
        for (let i = 0; i < records; i += 1) sign(null, message, privateKey);
      },
    },
    { name: `write + fdatasync, by ${GROUP}`, ...all, run: () => byHand(GROUP, records) },
    { name: 'write + fdatasync, one by one', ...few, run: () => byHand(1, singles) },
  ];
}

/** The rows of the table of targets that are about appending, by the programs that it has for them. */
function printTargets() {
  const { values } = parseArgs({
    options: {
      records: { type: 'string', default: '20000' },
      rounds: { type: 'string', default: '3' },
      folder: { type: 'string', default: tmpdir() },
    },
  });
  const records = Number(values.records);
  const rows = ROWS.filter(({ id }) => APPENDING.includes(id));
  const folder = mkdtempSync(join(values.folder, 'northroot-append-'));
  const samples = {};
  try {
    const tasks = makeTasks({
      folder,
      ledgers: {},
      records,
      appends: records,
      sampled: 0,
      go: {},
      peers: {},
    });
    const names = new Set(rows.flatMap((row) => row.tasks));
    for (let round = 0; round < Number(values.rounds); round += 1)
      for (const name of names) samples[name] = bestOf(samples[name], tasks[name].run());
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`appending ${records} signed actions beside signing as many messages with node:crypto`);
  for (const row of rows) {
    const { title, basis, measured, target, note } = fillRow(row, samples, records);
    console.log(`  ${title} (${basis}): ${measured}, ${target}; ${note}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) printTargets();
