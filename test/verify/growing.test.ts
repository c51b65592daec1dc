/** A ledger that is read while it is written: what is not there yet is not torn, and the report says where reading ended. */

import { appendFileSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { buildEvent } from '../../src/format/event/build.js';
import { openLedgerSource, type SourceOptions } from '../../src/log/fs/source.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import type { Report } from '../../src/rules/report/report.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'northroot-growing-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const line = (n: number): string =>
  `${canonicalText(
    buildEvent({
      event_type: 'x.test',
      occurred_at: '2026-01-01T00:00:00Z',
      principal_id: 'agent:a1',
      n,
    }),
  )}\n`;
const HALF = line(1).slice(0, 100);
const REST = line(1).slice(100);

/** The file of a ledger with one whole line and half of another. */
function halfWritten(): string {
  const path = join(folder(), 'ledger.jsonl');
  writeFileSync(path, line(0) + HALF);
  return path;
}

const codesOf = ({ findings }: Report): string[] => findings.map(({ code }) => code);
const growthOf = ({ not_checked: list }: Report): string[] =>
  list.filter(({ code }) => code === 'GROWTH').map(({ message }) => message);

const read = async (path: string, options: SourceOptions, onProgress?: () => void): Promise<Report> =>
  verifyLedger(await openLedgerSource(path, options), onProgress === undefined ? {} : { onProgress });

/** Runs `step` each time that a chunk was read. */
function atChunk(step: (count: number) => void): () => void {
  let count = 0;
  return () => {
    count += 1;
    step(count);
  };
}

describe('a line that is being written', () => {
  test('is waited for', async () => {
    const path = halfWritten();
    const atFirst = atChunk((count) => {
      if (count === 1) appendFileSync(path, REST);
    });
    const report = await verifyLedger(path, { onProgress: atFirst });
    expect([report.verdict, codesOf(report), report.ledger.records]).toEqual(['ok', [], 2]);
    expect(growthOf(report)).toEqual([]);
  });

  test('is waited for while it grows', async () => {
    const path = halfWritten();
    let at = 0;
    const more = atChunk(() => {
      appendFileSync(path, REST.slice(at, at + 100));
      at += 100;
    });
    const report = await read(path, { patienceMs: 60_000 }, more);
    expect(at).toBeGreaterThan(200);
    expect([report.verdict, report.ledger.records]).toEqual(['ok', 2]);
  });

  test('is the last that is read, and the report says where that was', async () => {
    const path = halfWritten();
    const report = await read(
      path,
      { patienceMs: 60_000 },
      atChunk((count) => {
        if (count === 1) appendFileSync(path, REST + line(2) + line(3).slice(0, 50));
      }),
    );
    expect([report.verdict, codesOf(report), report.ledger.records]).toEqual(['ok', [], 2]);
    expect(growthOf(report)).toEqual([
      expect.stringContaining(`byte ${line(0).length + line(1).length} of ${path}`),
    ]);
  });
});

describe('a file that is torn', () => {
  const TORN = ['invalid', ['LINE_TORN'], 1];

  test('and does not grow is invalid', async () => {
    const report = await verifyLedger(halfWritten());
    expect([report.verdict, codesOf(report), report.ledger.records]).toEqual(TORN);
    expect(growthOf(report)).toEqual([]);
  });

  test('and grows, but not to the end of the line, is invalid', async () => {
    const path = halfWritten();
    const more = atChunk((count) => {
      if (count === 1) appendFileSync(path, REST.slice(0, 20));
    });
    const report = await read(path, { patienceMs: 50 }, more);
    expect([report.verdict, codesOf(report), report.ledger.records]).toEqual(TORN);
  });

  test('long ago is not waited for', async () => {
    const path = halfWritten();
    utimesSync(path, 1_000, 1_000);
    const report = await read(path, { patienceMs: 60_000 });
    expect([report.verdict, codesOf(report), report.ledger.records]).toEqual(TORN);
  });

  test('in an earlier segment is invalid however long it is waited for', async () => {
    const path = folder();
    writeFileSync(join(path, '00000000000000000000.jsonl'), line(0) + HALF);
    writeFileSync(join(path, '00000000000000000001.jsonl'), line(2));
    expect(codesOf(await read(path, { patienceMs: 20 }))).toEqual(['LINE_TORN']);
  });

  test('and cut back meanwhile could not be decided', async () => {
    const path = halfWritten();
    const cut = atChunk(() => writeFileSync(path, line(0)));
    await expect(read(path, { patienceMs: 60_000 }, cut)).rejects.toMatchObject({ code: 'FILE_CHANGED' });
  });
});

describe('what comes after reading began', () => {
  test('in whole lines is reported', async () => {
    const path = join(folder(), 'ledger.jsonl');
    writeFileSync(path, line(0));
    const report = await read(
      path,
      {},
      atChunk(() => appendFileSync(path, line(1))),
    );
    expect([report.verdict, report.ledger.records]).toEqual(['ok', 1]);
    expect(growthOf(report)).toEqual([expect.stringContaining(`byte ${line(0).length} of ${path}`)]);
  });

  test('in a new segment is reported', async () => {
    const path = join(folder(), 'ledger');
    mkdirSync(path);
    writeFileSync(join(path, '00000000000000000000.jsonl'), line(0));
    const next = join(path, '00000000000000000001.jsonl');
    const report = await read(
      path,
      {},
      atChunk(() => writeFileSync(next, line(1))),
    );
    expect(report.ledger.records).toBe(1);
    expect(growthOf(report)).toEqual([expect.stringContaining(`byte 0 of ${next}`)]);
  });

  test('is nothing where nothing came', async () => {
    const path = join(folder(), 'ledger.jsonl');
    writeFileSync(path, line(0));
    expect(growthOf(await verifyLedger(path))).toEqual([]);
  });
});

test('patience is a number of milliseconds', async () => {
  await expect(openLedgerSource('nowhere', { patienceMs: -1 })).rejects.toThrow(RangeError);
  await expect(openLedgerSource('nowhere', { patienceMs: NaN })).rejects.toThrow(RangeError);
});
