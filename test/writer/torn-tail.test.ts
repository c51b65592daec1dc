import { appendFileSync, readFileSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { repairLedger } from '../../src/log/writer/repair.js';
import { samplePositions } from '../slow.js';
import { soundFileSystem } from './file-systems.js';
import {
  codeOf,
  draft,
  expectSound,
  holdLock,
  judge,
  makeLedger,
  noticeBoard,
  openLedger,
  openUnsigned,
  readBytes,
  readRecords,
  temporaryFolder,
} from './support.js';

const NEWLINE = 0x0a;

/** Runs `act` for each item, some at once. */
async function forAll<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += 8) await Promise.all(items.slice(at, at + 8).map(act));
}

/** An unsigned ledger's bytes with `count` records after genesis. */
async function unsignedBytes(count: number): Promise<Buffer> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const ledger = await openUnsigned(path);
  await Promise.all(Array.from({ length: count }, (_, n) => ledger.append({ event: draft(n) })));
  await ledger.close();
  return readBytes(path);
}

/** Everything in a file's folder, by name. */
function snapshot(path: string): Record<string, string> {
  const folder = dirname(path);
  return Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'latin1')]),
  );
}

describe('a torn tail', () => {
  test('is saved and cut off wherever in the last record it was torn, and appending goes on', async () => {
    const whole = await unsignedBytes(2);
    const start = whole.lastIndexOf(NEWLINE, whole.length - 2) + 1;
    const cuts = samplePositions(whole.length - 1 - start, 30).map((n) => start + 1 + n);
    const folder = temporaryFolder();
    await forAll(cuts, async (cut) => {
      const path = join(folder, `${cut}.jsonl`);
      writeFileSync(path, whole.subarray(0, cut));
      const { notices, onNotice } = noticeBoard();
      const ledger = await openUnsigned(path, { onNotice, fileSystem: soundFileSystem });
      const savedTo = `${path}.torn-${start}`;
      expect(notices).toEqual([
        { code: 'TORN_TAIL_SAVED', path, savedTo, offset: start, length: cut - start },
      ]);
      expect(readFileSync(savedTo)).toEqual(whole.subarray(start, cut));
      expect(readBytes(path)).toEqual(whole.subarray(0, start));
      // What was torn is not in the ledger: the same event is appended, not found.
      expect(await ledger.append({ event: draft(1) })).toMatchObject({ seq: 2, status: 'appended' });
      await ledger.close();
      expect(readBytes(path)).toEqual(whole);
    });
  });

  test('is only what follows the last whole record of the group that was being written', async () => {
    const whole = await unsignedBytes(6);
    const folder = temporaryFolder();
    const genesisEnd = whole.indexOf(NEWLINE) + 1;
    const cuts: number[] = [];
    for (let cut = genesisEnd; cut < whole.length; cut += 61) cuts.push(cut);
    await forAll(cuts, async (cut) => {
      const path = join(folder, `${cut}.jsonl`);
      writeFileSync(path, whole.subarray(0, cut));
      const kept = whole.lastIndexOf(NEWLINE, cut - 1) + 1;
      const { saved, lines } = await repairLedger(path, { fileSystem: soundFileSystem });
      expect(saved?.offset).toBe(kept === cut ? undefined : kept);
      expect(readBytes(path)).toEqual(whole.subarray(0, kept));
      expect(lines).toBe(readRecords(path).length);
      await expectSound(path, lines);
    });
  });

  test('is found in a folder, in the last segment', async () => {
    const path = join(temporaryFolder(), 'ledger/');
    await makeLedger(path, 2, { segmentBytes: 1 });
    const last = join(path, '00000000000000000002.jsonl');
    const tail = readFileSync(last).subarray(0, -1);
    writeFileSync(last, tail);
    const { notices, onNotice } = noticeBoard();
    const ledger = await openLedger(path, { segmentBytes: 1, onNotice });
    expect(notices).toEqual([
      { code: 'TORN_TAIL_SAVED', path: last, savedTo: `${last}.torn-0`, offset: 0, length: tail.length },
    ]);
    await ledger.append({ event: draft(2) });
    await ledger.append({ event: draft(3) });
    await ledger.close();
    expect(readFileSync(`${last}.torn-0`)).toEqual(tail);
    await expectSound(path, 4);
  });

  test('is never written over by another one', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 1);
    const offset = statSync(path).size;
    const saved = [];
    for (const tail of ['{"event":', '{"e', '\0']) {
      appendFileSync(path, tail);
      saved.push((await repairLedger(path)).saved?.savedTo);
    }
    expect(saved).toEqual(['', '-2', '-3'].map((suffix) => `${path}.torn-${offset}${suffix}`));
    expect(saved.map((name) => readFileSync(name!, 'utf8'))).toEqual(['{"event":', '{"e', '\0']);
    await expectSound(path, 2);
  });

  test.each([
    ['NULs, as a file system may leave them', Buffer.alloc(5_000)],
    [
      'bytes of any kind',
      Buffer.from(Array.from({ length: 512 }, (_, n) => n % 256)).filter((b) => b !== 10),
    ],
    ['more bytes than a record has', Buffer.alloc(3 * 1024 * 1024 + 5, 'x')],
    ['a whole record without its newline', undefined],
  ])('may be %s', async (_name, garbage) => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 2);
    const whole = readBytes(path);
    const tail = garbage ?? whole.subarray(whole.lastIndexOf(NEWLINE, whole.length - 2) + 1, -1);
    appendFileSync(path, tail);
    const ledger = await openLedger(path);
    await ledger.append({ event: draft(3) });
    await ledger.close();
    expect(readFileSync(`${path}.torn-${whole.length}`).equals(tail)).toBe(true);
    await expectSound(path, 4);
  });

  test('is kept from the eyes of others', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 1);
    appendFileSync(path, 'x');
    const { saved } = await repairLedger(path);
    expect(statSync(saved!.savedTo).mode & 0o777).toBe(0o600);
  });
});

describe('a torn genesis', () => {
  test('is saved, and a new one is made', async () => {
    const whole = await unsignedBytes(0);
    const cuts = [...Array.from({ length: 60 }, (_, n) => n + 1), 100, 200, whole.length - 1];
    const folder = temporaryFolder();
    await forAll(cuts, async (cut) => {
      const path = join(folder, `${cut}.jsonl`);
      writeFileSync(path, whole.subarray(0, cut));
      const ledger = await openUnsigned(path, { fileSystem: soundFileSystem });
      await ledger.append({ event: draft(1) });
      await ledger.close();
      expect(readFileSync(`${path}.torn-0`)).toEqual(whole.subarray(0, cut));
      await expectSound(path, 2);
    });
  });

  test('is saved, and the ledger is empty, when none is to be made', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const tail = (await unsignedBytes(0)).subarray(0, 99);
    writeFileSync(path, tail);
    const { saved, lines } = await repairLedger(path);
    expect(lines).toBe(0);
    expect(readFileSync(saved!.savedTo)).toEqual(tail);
    expect(statSync(path).size).toBe(0);
    await makeLedger(path, 1);
    await expectSound(path, 2);
  });
});

describe('repair', () => {
  test('has nothing to do where nothing is torn', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 3);
    const before = snapshot(path);
    expect(await repairLedger(path)).toEqual({ saved: undefined, lines: 4 });
    expect(snapshot(path)).toEqual(before);
  });

  test('leaves an empty file as it is', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    writeFileSync(path, '');
    expect(await repairLedger(path)).toEqual({ saved: undefined, lines: 0 });
  });

  test('makes no ledger where there is none', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    expect(await codeOf(repairLedger(path))).toBe('FILE_NOT_FOUND');
    expect(snapshot(path)).toEqual({});
  });

  test('waits for a writer, or does not', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 1);
    const release = await holdLock(path);
    expect(await codeOf(repairLedger(path, { lockTimeoutMs: 0 }))).toBe('LEDGER_LOCKED');
    const repair = repairLedger(path);
    await release();
    expect(await repair).toEqual({ saved: undefined, lines: 2 });
  });
});

describe('a file that is no ledger', () => {
  const passwd = 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false';
  const event = { event_type: 'x.test', event_version: '1' };
  const others: [string, string | Buffer][] = [
    ['a text', 'Dear ledger,\nhow are you?\n'],
    ['a text without newline', 'Dear ledger'],
    ['a text without final newline', passwd],
    ['a text after a blank line', '\nDear ledger'],
    ['a blank line', '\n'],
    ['JSON over several lines', JSON.stringify({ event }, null, 2)],
    ['JSON in one line', JSON.stringify({ event })],
    ['JSON lines with events', `{"event":{"a":1}}\n{"event":{"a":2}}\n`],
    ['JSON lines with events, torn', `{"event":{"a":1}}\n{"event":{"a`],
    ['a line that begins as a record', '{"event":{"a":1'],
    ['a record of another profile', '{"event":{"canonical_profile_id":"northroot-jcs-v2","chec'],
    ['NULs', Buffer.alloc(100)],
    ['an image', Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(2_000, 0xa5)])],
    ['a byte order mark', Buffer.from('\ufeff{"event":{"canonical')],
    ['UTF-16', Buffer.from('{"event":{"canonical_profile_id"', 'utf16le')],
    ['one long line', Buffer.alloc(100_000, 'a')],
  ];

  test.each(others)('%s: is refused, and nothing is changed', async (_name, content) => {
    const path = join(temporaryFolder(), 'file');
    writeFileSync(path, content);
    const before = snapshot(path);
    expect(await codeOf(openLedger(path))).toBe('NOT_A_LEDGER');
    expect(await codeOf(repairLedger(path))).toBe('NOT_A_LEDGER');
    expect(snapshot(path)).toEqual(before);
  });

  test('events without records: are refused, and nothing is changed', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 2);
    const bare = readRecords(path).map((record) => JSON.stringify(record.event));
    for (const content of [`${bare.join('\n')}\n`, bare.join('\n')]) {
      writeFileSync(path, content);
      const before = snapshot(path);
      expect(await codeOf(openLedger(path))).toBe('NOT_A_LEDGER');
      expect(await codeOf(repairLedger(path))).toBe('NOT_A_LEDGER');
      expect(snapshot(path)).toEqual(before);
    }
  });

  test('a ledger whose genesis is gone, or spoilt: is refused, and its tail stays', async () => {
    const whole = await unsignedBytes(3);
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const second = whole.subarray(whole.indexOf(NEWLINE) + 1);
    const spoilt = Buffer.from(whole);
    spoilt[1] = 0x20;
    for (const content of [second, second.subarray(0, -9), spoilt, spoilt.subarray(0, -9)]) {
      writeFileSync(path, content);
      expect(await codeOf(openUnsigned(path))).toBe('NOT_A_LEDGER');
      expect(await codeOf(repairLedger(path))).toBe('NOT_A_LEDGER');
      expect(snapshot(path)).toEqual({ [basename(path)]: content.toString('latin1') });
    }
  });
});

describe('a ledger that is damaged in the middle', () => {
  test.each<[string, (line: Buffer) => Buffer, string]>([
    ['is garbage', (line) => Buffer.alloc(line.length, 'x'), 'NOT_JSON'],
    ['is blank', () => Buffer.alloc(0), 'LINE_BLANK'],
    ['is too long', () => Buffer.alloc(70_000, 'x'), 'LINE_TOO_LONG'],
    ['is another JSON text', () => Buffer.from('{"a":1}'), 'SCHEMA'],
    ['has a white space too many', (line) => Buffer.concat([line, Buffer.from(' ')]), 'NOT_CANONICAL'],
  ])('whose line %s is taken up with a notice, and stays as it is', async (_name, spoil, code) => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 4);
    const lines = readBytes(path).toString('latin1').split('\n');
    lines[2] = spoil(Buffer.from(lines[2], 'latin1')).toString('latin1');
    writeFileSync(path, lines.join('\n'), 'latin1');
    const { notices, onNotice } = noticeBoard();
    const ledger = await openLedger(path, { onNotice });
    expect(notices).toEqual([{ code: 'LEDGER_DAMAGED', path, lines: 1 }]);
    expect(await ledger.append({ event: draft(5) })).toMatchObject({ seq: 5, status: 'appended' });
    await ledger.close();
    const after = readBytes(path).toString('latin1').split('\n');
    expect(after.slice(0, 5)).toEqual(lines.slice(0, 5));
    const { verdict, codes } = await judge(path);
    expect(verdict).toBe('invalid');
    expect(codes).toContain(code);
    // What was appended fits to what it follows: the findings are those of the damage.
    expect(codes.filter((found) => found === 'PREV_MISMATCH').length).toBeLessThanOrEqual(1);
    expect(codes.filter((found) => found === 'SEQ_GAP').length).toBeLessThanOrEqual(1);
  });
});

describe('a ledger whose last record is not valid', () => {
  const spoilers: [string, (line: string) => string][] = [
    ['another digit', (line) => line.replace('"n":3', '"n":4')],
    ['a blank line', () => ''],
    ['another JSON text', () => '{"a":1}'],
    ['white space', (line) => `${line} `],
    ['a line that is too long', () => 'x'.repeat(70_000)],
    ['an event without its record', (line) => JSON.stringify((JSON.parse(line) as { event: object }).event)],
  ];

  test.each(spoilers)('(%s) is not built upon, and not changed', async (_name, spoil) => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 3);
    const lines = readBytes(path).toString('utf8').split('\n');
    lines[3] = spoil(lines[3]);
    writeFileSync(path, lines.join('\n'));
    const before = snapshot(path);
    expect(await codeOf(openLedger(path))).toBe('LEDGER_TAIL_INVALID');
    expect(await repairLedger(path)).toEqual({ saved: undefined, lines: 4 });
    expect(snapshot(path)).toEqual(before);
  });

  test('since it is longer than a line may be, though its beginning is a record, is not built upon', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    await ledger.append({ event: draft(1, { text: '' }) });
    const room = 65_536 - readBytes(path).toString('latin1').split('\n')[1].length - 1;
    await ledger.append({ event: draft(1, { text: 'a'.repeat(room) }) });
    await ledger.close();
    await expectSound(path, 3);
    const bytes = readBytes(path);
    writeFileSync(path, Buffer.concat([bytes.subarray(0, -1), Buffer.from('x\n')]));
    expect(await codeOf(openLedger(path))).toBe('LEDGER_TAIL_INVALID');
  });

  test('may have a torn tail behind it, which is saved', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 1);
    appendFileSync(path, '{}\n{"event":');
    const offset = statSync(path).size - '{"event":'.length;
    expect(await codeOf(openLedger(path))).toBe('LEDGER_TAIL_INVALID');
    expect(readFileSync(`${path}.torn-${offset}`, 'utf8')).toBe('{"event":');
    truncateSync(path, offset - 3);
    await expectSound(path, 2);
  });
});
