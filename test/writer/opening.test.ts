/** What stands in a ledger is taken up a block of lines at a time: the state is that of `verifyLine`, line by line, and who listens is told of each. */

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deserialize } from 'node:v8';
import { expect, test } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../src/log/fs/file-system.js';
import { defaultBackend } from '../../src/format/signature/default-backend.js';
import { saveVerification } from '../../src/log/cache/saved-state.js';
import { startVerification, type VerifyState } from '../../src/rules/verify/state.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';
import type { OtherRecord } from '../../src/log/writer/running-verification.js';
import { linesOf } from '../cache/support.js';
import { makeRandom } from '../ledger/scan-kit.js';
import { ledgerNearBounds } from '../verify/near-bounds.js';
import { draft, noticeBoard, openLedger, readRecords, signer, temporaryFolder } from './support.js';

function formOf(state: VerifyState): unknown {
  const saved = saveVerification({ state, findings: [] });
  return deserialize(saved.subarray(saved.indexOf(0x0a) + 1));
}

/** The same line with another signature, which nobody made. */
function forge(line: string): string {
  return line.replace(/"sig":"(.)/, (_match, first: string) => `"sig":"${first === 'A' ? 'B' : 'A'}`);
}

test.each([
  ['as they are, for those who append', false, 'ordinary'],
  ['all of them, for those who decide', true, 'none'],
] as const)('signatures are taken %s', async (_name, decides, assumed) => {
  const random = makeRandom(20_261_211);
  for (let n = 0; n < 4; n += 1) {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const lines = ledgerNearBounds(random, signer, 250).toString().trimEnd().split('\n');
    for (let count = 0; count < n; count += 1) {
      const at = 100 + Math.floor(random() * 140);
      lines[at] = forge(lines[at]);
    }
    const bytes = Buffer.from(`${lines.join('\n')}\n`);
    writeFileSync(path, bytes);
    const expected = startVerification(undefined, defaultBackend);
    expected.assumedSignatures = assumed;
    for (const line of linesOf(bytes)) verifyLine(expected, line, { file: path, firstSeq: undefined });
    const ledger = await openLedger(path, { index: false, decides });
    expect(await ledger.inspect(formOf)).toEqual(formOf(expected));
    await ledger.close();
  }
});

test('lines that are no records are counted', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const lines = ledgerNearBounds(makeRandom(1), signer, 200).toString().trimEnd().split('\n');
  writeFileSync(path, `${[...lines.slice(0, 150), '{}', '[]', ...lines.slice(150)].join('\n')}\n`);
  const { notices, onNotice } = noticeBoard();
  const ledger = await openLedger(path, { index: false, onNotice });
  expect(notices).toMatchObject([{ code: 'LEDGER_DAMAGED', lines: 2 }]);
  expect(ledger.size).toBe(lines.length);
});

test('who listens is told of each of many that others append', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const options = { index: false, lockTimeoutMs: 10_000, lingerMs: 0 };
  const [here, other] = [await openLedger(path, options), await openLedger(path, options)];
  const told: OtherRecord[] = [];
  here.onOther((record) => told.push(record));
  await Promise.all(Array.from({ length: 300 }, (_, n) => other.append({ event: draft(n) })));
  await here.append({ event: draft(1) });
  const records = readRecords(path).slice(1, 301);
  expect(told).toEqual(
    records.map(({ event }, index) => ({
      seq: index + 1,
      eventId: `sha-256:${event.event_id.b64}`,
      event,
      verdict: 'ok',
      findings: [],
    })),
  );
});

test('leaves nothing of a ledger whose creation was aborted while it waited for the lock', async () => {
  for (const name of ['ledger.jsonl', 'ledger/']) {
    const path = join(temporaryFolder(), name);
    const stop = new AbortController();
    const open: FileSystem['open'] = async (...asked) => {
      const file = await nodeFileSystem.open(...asked);
      stop.abort(new Error('given up'));
      return file;
    };
    const opened = openLedger(path, { signal: stop.signal, fileSystem: { ...nodeFileSystem, open } });
    await expect(opened).rejects.toThrow('given up');
    expect(existsSync(path)).toBe(false);
  }
});
