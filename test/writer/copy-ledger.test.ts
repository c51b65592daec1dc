/** A copy has the source's bytes, as far as they are sound; it continues what it began, and nothing else. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { copyLedger } from '../../src/api/index.js';
import { fixtureBytes } from '../fixtures/cases.js';

const BYTES = fixtureBytes('ledgers/checkpoints.jsonl');
let folder: string;
let from: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'northroot-copy-'));
  from = join(folder, 'from.jsonl');
  writeFileSync(from, BYTES);
});
afterEach(() => rmSync(folder, { recursive: true }));

const at = (name: string): string => join(folder, name);
const lineEnds = (bytes: Uint8Array): number[] =>
  [...bytes].flatMap((byte, offset) => (byte === 0x0a ? [offset + 1] : []));
const SIZE = lineEnds(BYTES).length;

test('to a file, and back out of a folder of segments', async () => {
  const file = await copyLedger(from, at('to.jsonl'));
  expect(file).toMatchObject({ copied: SIZE, size: SIZE, isBehind: false });
  expect(readFileSync(at('to.jsonl'))).toEqual(BYTES);
  await copyLedger(from, `${at('segments')}/`, { segmentBytes: 1 });
  expect(readdirSync(at('segments')).length).toBe(1);
  const back = await copyLedger(at('segments'), at('back.jsonl'));
  expect(back).toMatchObject({ size: SIZE, root: file.root });
  expect(readFileSync(at('back.jsonl'))).toEqual(BYTES);
});

test('continues wherever a copy was cut, also within a line', async () => {
  for (const end of lineEnds(BYTES)) {
    for (const cut of [end, end - 3]) {
      writeFileSync(at('to.jsonl'), BYTES.subarray(0, cut));
      const torn: string[] = [];
      const whole = lineEnds(BYTES.subarray(0, cut)).length;
      const { copied, size } = await copyLedger(from, at('to.jsonl'), {
        onTornTail: ({ savedTo }) => torn.push(savedTo),
      });
      expect([copied, size, torn.length]).toEqual([SIZE - whole, SIZE, cut === end ? 0 : 1]);
      expect(readFileSync(at('to.jsonl'))).toEqual(BYTES);
    }
  }
  expect(await copyLedger(from, at('to.jsonl'))).toMatchObject({ copied: 0, size: SIZE });
});

test('refuses a target that is not its beginning, and leaves it as it is', async () => {
  const [first = 0, second = 0] = lineEnds(BYTES);
  const other = Buffer.from(BYTES.subarray(0, second));
  other.writeUInt8(other.readUInt8(first + 40) ^ 1, first + 40);
  const longer = Buffer.concat([BYTES, BYTES.subarray(first, second)]);
  for (const bytes of [other, longer]) {
    writeFileSync(at('to.jsonl'), bytes);
    await expect(copyLedger(from, at('to.jsonl'))).rejects.toMatchObject({ code: 'LEDGER_CONFLICT' });
    expect(readFileSync(at('to.jsonl'))).toEqual(bytes);
  }
});

test('refuses a broken source: nothing of its batch is written, and nothing is left', async () => {
  const broken = Buffer.from(BYTES);
  const [first = 0] = lineEnds(BYTES);
  broken.writeUInt8(broken.readUInt8(first + 60) ^ 1, first + 60);
  writeFileSync(from, broken);
  await expect(copyLedger(from, at('to.jsonl'))).rejects.toMatchObject({
    code: 'LEDGER_INVALID',
    message: expect.stringContaining('from.jsonl:2: ') as string,
  });
  expect(readdirSync(folder)).toEqual(['from.jsonl']);
});

test('copies up to the last whole line, and says that there is more', async () => {
  writeFileSync(from, BYTES.subarray(0, -5));
  expect(await copyLedger(from, at('to.jsonl'))).toMatchObject({ size: SIZE - 1, isBehind: true });
  expect(readFileSync(from)).toEqual(BYTES.subarray(0, -5));
});

test('a ledger without records, one that is missing, and itself are no source', async () => {
  writeFileSync(from, '');
  await expect(copyLedger(from, at('to.jsonl'))).rejects.toMatchObject({ code: 'LEDGER_EMPTY' });
  await expect(copyLedger(at('none'), at('to.jsonl'))).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
  await expect(copyLedger(from, at('to.jsonl'), { durability: 'replicated' })).rejects.toMatchObject({
    code: 'STORE_NOT_DURABLE',
  });
  await expect(copyLedger(from, from)).rejects.toMatchObject({ code: 'USAGE' });
  expect(readdirSync(folder)).toEqual(['from.jsonl']);
});

test('two copies at once leave one whole ledger', async () => {
  const both = await Promise.all([copyLedger(from, at('to.jsonl')), copyLedger(from, at('to.jsonl'))]);
  expect(both.map(({ copied }) => copied).sort((a, b) => a - b)).toEqual([0, SIZE]);
  expect(readFileSync(at('to.jsonl'))).toEqual(BYTES);
});
