/** Appending, beside what a writer cannot do without: signing, and bringing the same bytes to the disk. */

import { generateKeyPairSync, sign } from 'node:crypto';
import { closeSync, fdatasyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Ledger, createSigner, generatePrivateKey } from '../dist/index.js';
import { actionDraft, grantDraft } from './ledger.js';

/** So many are appended, or written, one by one. */
const MAX_SINGLES = 2_000;
const GROUP = 1_000;

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
