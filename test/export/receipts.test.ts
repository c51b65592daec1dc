/** COSE receipts of many records. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { exportReceipts, type ReceiptsOptions, type RecordReceipt } from '../../src/out/export/receipts.js';
import { writeFilesThrough } from '../../src/log/fs/file-sink.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { makeReceipt } from '../../src/proof/make-receipt.js';
import { verifyReceipt } from '../../src/proof/verify-receipt.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { logKey, makeLines, noteOf, opener, signer } from '../proof/support.js';
import { ledgerOf } from '../verify/support.js';

/** Checkpoints at 4, 9 and 12; three records after the last. */
const lines = await makeLines({ events: [3, 4, 2, 2] });

async function make(
  ledger: Uint8Array = ledgerOf(lines),
  options: Partial<ReceiptsOptions> = {},
): Promise<{ made: RecordReceipt[]; counts: Record<string, number>; verdict: string }> {
  const made: RecordReceipt[] = [];
  const take = (receipt: RecordReceipt): undefined => void made.push(receipt);
  const { report, selected, receipts, skipped, beyond, treeSize } = await exportReceipts(ledger, take, {
    signer,
    ...options,
  });
  return { made, counts: { selected, receipts, skipped, beyond, treeSize }, verdict: report.verdict };
}

const places = (made: readonly RecordReceipt[]): number[] => made.map(({ seq }) => seq);

describe('exportReceipts', () => {
  it('makes the receipt that makeReceipt makes of each record', async () => {
    const { made, counts, verdict } = await make();
    expect([verdict, counts]).toEqual([
      'ok',
      { selected: 15, receipts: 12, skipped: 0, beyond: 3, treeSize: 12 },
    ]);
    expect(made.map(({ name }) => name)).toEqual(Array.from({ length: 12 }, (_, seq) => `${seq}.cose`));
    for (const { seq, bytes } of made) {
      const one = await makeReceipt(opener(lines), String(seq), { signer });
      expect(Buffer.from(bytes).equals(one.bytes)).toBe(true);
      expect(verifyReceipt(bytes, { keys: [logKey] }, { entry: lines[seq] }).verdict).toBe('ok');
    }
  });

  it('makes those of the selected records', async () => {
    const [, , second] = lines.map(
      (line) => JSON.parse(line.toString()) as { event: { event_id: { b64: string } } },
    );
    const eventIds = new Set([`sha-256:${second?.event.event_id.b64}`]);
    const { made, counts } = await make(undefined, { selection: { eventIds } });
    expect(places(made)).toEqual([2]);
    expect(counts).toMatchObject({ selected: 1, receipts: 1, beyond: 0 });
  });

  it('makes them of the tree of a checkpoint that is given', async () => {
    const { made, counts } = await make(undefined, { checkpoint: noteOf(lines.slice(0, 7)) });
    expect(places(made)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(counts).toMatchObject({ beyond: 8, treeSize: 7 });
  });

  it('asks the signer once', async () => {
    let asked = 0;
    const sign = (message: Uint8Array): Uint8Array => {
      asked += 1;
      return signer.sign(message);
    };
    await make(undefined, { signer: { publicKey: signer.publicKey, sign } });
    expect(asked).toBe(1);
  });

  it('signs no root of a broken ledger that the log had not signed', async () => {
    const changed = (at: number): Buffer =>
      ledgerOf(lines.with(at, Buffer.from(lines[at].toString().replace('"n":', '"n":1'))));
    const late = await make(changed(10));
    expect([late.verdict, late.counts['treeSize']]).toEqual(['invalid', 9]);
    expect(places(late.made)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    await expect(make(changed(1))).rejects.toMatchObject({ code: 'CHECKPOINT_MISSING' });
  });

  it('makes none of a line that is no record, and right ones of those beside it', async () => {
    const long = Buffer.from(`{"event":"${'x'.repeat(70_000)}"}`);
    const broken = lines.slice(0, 3).concat([long], lines.slice(4, 7));
    const { made, counts } = await make(ledgerOf(broken), { checkpoint: noteOf(broken) });
    expect(places(made)).toEqual([0, 1, 2, 4, 5, 6]);
    expect(counts).toMatchObject({ selected: 7, skipped: 1, treeSize: 7 });
    const { bytes } = made[3];
    expect(verifyReceipt(bytes, { keys: [logKey] }, { entry: lines[4] }).receipt_signers).toHaveLength(1);
  });

  it.each<[string, Uint8Array, Partial<ReceiptsOptions>, string]>([
    ['without a checkpoint', ledgerOf(lines.slice(0, 3)), {}, 'CHECKPOINT_MISSING'],
    ['of another history', ledgerOf(lines), { checkpoint: noteOf([...lines.slice(1), lines[0]]) }, 'FORKED'],
    ['of no records', ledgerOf(lines), { checkpoint: noteOf([]) }, 'FORKED'],
    ['of a shorter ledger', ledgerOf(lines.slice(0, 6)), { checkpoint: noteOf(lines) }, 'TRUNCATED'],
    [
      'of another log',
      ledgerOf(lines),
      { checkpoint: noteOf(lines, { origin: 'example.com/b' }) },
      'ORIGIN_MISMATCH',
    ],
    ['under what is no note', ledgerOf(lines), { checkpoint: Buffer.from('x') }, 'NOTE_MALFORMED'],
    [
      'by a key of another kind',
      ledgerOf(lines),
      { signer: createSigner(generatePrivateKey('ml-dsa-44')) },
      'KEY_UNSUPPORTED',
    ],
  ])('gives none %s', async (_what, ledger, options, code) => {
    const given: RecordReceipt[] = [];
    const take = (receipt: RecordReceipt): undefined => void given.push(receipt);
    await expect(exportReceipts(ledger, take, { signer, ...options })).rejects.toMatchObject({ code });
    expect(given).toEqual([]);
  });

  it('ends with what takes them, and where it is stopped', async () => {
    const fails = (): Promise<void> => Promise.reject(new Error('full'));
    await expect(exportReceipts(ledgerOf(lines), fails, { signer })).rejects.toThrow('full');
    const stop = new AbortController();
    const taken: number[] = [];
    const take = ({ seq }: RecordReceipt): undefined => {
      taken.push(seq);
      stop.abort(new Error('stopped'));
    };
    await expect(exportReceipts(ledgerOf(lines), take, { signer, signal: stop.signal })).rejects.toThrow(
      'stopped',
    );
    expect(taken).toEqual([0]);
  });
});

describe('writeFilesThrough', () => {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-files-'));
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  it('replaces files, and keeps those that are whole when it fails', async () => {
    const at = join(folder, 'deep/files');
    await writeFilesThrough(at, (place) => place('1.x', Buffer.from('old')));
    const failing = writeFilesThrough(at, async (place) => {
      await place('1.x', Buffer.from('new'));
      throw new Error('full');
    });
    await expect(failing).rejects.toThrow('full');
    expect(readdirSync(at)).toEqual(['1.x']);
    expect(readFileSync(join(at, '1.x'), 'utf8')).toBe('new');
  });

  it('makes no folder where nothing could be made, and an empty one where there was nothing to make', async () => {
    const none = writeFilesThrough(join(folder, 'none'), () => Promise.reject(new Error('no')));
    await expect(none).rejects.toThrow('no');
    await writeFilesThrough(join(folder, 'empty'), () => Promise.resolve());
    expect(readdirSync(folder).sort()).toEqual(['deep', 'empty']);
  });

  it('removes what killed processes left of the files that it writes', async () => {
    const at = join(folder, 'empty');
    for (const name of ['1.x.new-0a', '2.x.new-0b']) {
      writeFileSync(join(at, name), '');
      utimesSync(join(at, name), 0, 0);
    }
    await writeFilesThrough(at, (place) => place('1.x', Buffer.from('whole')));
    expect(readdirSync(at).sort()).toEqual(['1.x', '2.x.new-0b']);
  });
});
