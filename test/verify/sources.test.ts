/** What can be verified, and what cannot: files, folders, pipes and devices, and files that change under the reader. */

import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { FIXTURES, fixtureBytes } from '../fixtures/cases.js';
import { ledgerOf, linesOf, rememberingBackend } from './support.js';

const backend = rememberingBackend();
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'northroot-verify-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

async function refusalOf(path: string, options = {}): Promise<{ code: string }> {
  try {
    await verifyLedger(path, options);
  } catch (error) {
    if (error instanceof NorthrootError) return { code: error.code };
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('nothing to verify', () => {
  test('a missing file', async () => {
    expect(await refusalOf(join(folder, 'missing.jsonl'))).toEqual({ code: 'FILE_NOT_FOUND' });
    expect((await refusalOf(join(FIXTURES, 'expected.json', 'x'))).code).toBe('FILE_NOT_FOUND');
  });

  test('a folder without segments', async () => {
    const empty = join(folder, 'empty');
    mkdirSync(empty);
    expect(await refusalOf(empty)).toEqual({ code: 'NOT_A_LEDGER' });
    writeFileSync(join(empty, '1.jsonl'), fixtureBytes('ledgers/unsigned.jsonl'));
    expect((await refusalOf(empty)).code).toBe('NOT_A_LEDGER');
  });

  test('segments that are folders, or lead nowhere', async () => {
    const odd = join(folder, 'odd');
    const segment = join(odd, '00000000000000000000.jsonl');
    mkdirSync(segment, { recursive: true });
    expect(await refusalOf(odd)).toEqual({ code: 'IS_A_FOLDER' });
    rmSync(segment, { recursive: true });
    symlinkSync(join(folder, 'nowhere'), segment);
    expect(await refusalOf(odd)).toEqual({ code: 'FILE_NOT_FOUND' });
  });

  test.each(['empty.jsonl', '/dev/null'])('%s is undecided', async (name) => {
    writeFileSync(join(folder, 'empty.jsonl'), '');
    const report = await verifyLedger(name.startsWith('/') ? name : join(folder, name));
    expect(report).toMatchObject({ verdict: 'undecided', exit_status: 2, findings: [] });
    expect(report.ledger).toMatchObject({
      records: 0,
      origin: null,
      tip_event_id: null,
      root: 'sha-256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
    });
  });

  test('a stream without a byte is undecided', async () => {
    async function* nothing(): AsyncGenerator<Uint8Array> {}
    expect((await verifyLedger(nothing())).verdict).toBe('undecided');
  });
});

test('a named pipe', async () => {
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const ledger = `${FIXTURES}ledgers/pipeline-1000.jsonl`;
  const writer = spawn('sh', ['-c', 'cat "$1" > "$2"', 'sh', ledger, pipe]);
  const report = await verifyLedger(pipe, { backend });
  expect(writer.exitCode ?? 0).toBe(0);
  expect(report).toMatchObject({ verdict: 'ok', ledger: { records: 1_000, paths: [pipe] } });
});

test('a folder of segments is one ledger, whatever else is in the folder', async () => {
  const split = join(folder, 'split');
  mkdirSync(split);
  const bytes = fixtureBytes('ledgers/agent-run.jsonl');
  const lines = linesOf(bytes);
  for (const [from, to] of [
    [0, 9],
    [9, 10],
    [10, lines.length],
  ] as const) {
    writeFileSync(join(split, `${String(from).padStart(20, '0')}.jsonl`), ledgerOf(lines.slice(from, to)));
  }
  writeFileSync(join(split, 'notes.txt'), 'not a segment');
  writeFileSync(join(split, '9.jsonl'), 'not a segment either');
  const whole = await verifyLedger(bytes, { backend });
  const report = await verifyLedger(split, { backend });
  expect({ ...report, ledger: { ...report.ledger, paths: ['-'] } }).toEqual(whole);
});

/** Files of more than one chunk, so that something can happen between two of them. */
describe('a file that changes while it is read', () => {
  const size = 3 * 1024 * 1024;

  function writeLarge(name: string): string {
    const path = join(folder, name);
    const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
    const copies = Array.from({ length: 3 }, () => bytes);
    writeFileSync(path, Buffer.concat(copies).subarray(0, size));
    return path;
  }

  /** Verifies, and does something when the first chunk is through. */
  const verifyWhile = (path: string, change: () => void) => {
    let isFirst = true;
    return {
      backend,
      onProgress: () => {
        if (isFirst) change();
        isFirst = false;
      },
    };
  };

  test.each([
    ['becomes empty', 0],
    ['is cut within what was read', 100],
    ['is cut behind what was read', 2 * 1024 * 1024],
  ])('and %s could not be judged', async (name, length) => {
    const path = writeLarge(`cut-${length}`);
    const options = verifyWhile(path, () => truncateSync(path, length));
    expect(await refusalOf(path, options), name).toEqual({ code: 'FILE_CHANGED' });
  });

  test('is rewritten in place', async () => {
    const path = writeLarge('rewritten');
    const options = verifyWhile(path, () => writeFileSync(path, Buffer.alloc(size, 0x20), { flag: 'r+' }));
    expect((await refusalOf(path, options)).code).toBe('FILE_CHANGED');
  });

  test('grows by whole records: what was there when reading began is verified', async () => {
    const path = join(folder, 'growing');
    const lines = linesOf(fixtureBytes('ledgers/pipeline-1000.jsonl'));
    writeFileSync(path, ledgerOf(lines.slice(0, 950)));
    const options = verifyWhile(path, () => appendFileSync(path, ledgerOf(lines.slice(950))));
    const report = await verifyLedger(path, options);
    expect(report).toMatchObject({ verdict: 'ok', ledger: { records: 950 } });
  });

  test('grows by the rest of a record: that record is verified, too', async () => {
    const path = join(folder, 'growing-line');
    const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
    const lines = linesOf(bytes);
    const half = ledgerOf(lines.slice(0, 950)).length + 200;
    writeFileSync(path, bytes.subarray(0, half));
    const options = verifyWhile(path, () => appendFileSync(path, bytes.subarray(half)));
    const report = await verifyLedger(path, options);
    expect(report).toMatchObject({ verdict: 'ok', ledger: { records: 951 } });
  });
});
