/**
 * Going on without a look at the lines that were verified before: where the ledger's first bytes are those of then, nothing is asked of
 * their lines; where they are not, what is said is what those lines would have led to.
 */

import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { PrefixHasher } from '../../src/base/bytes/ledger-prefix.js';
import { NorthrootError } from '../../src/base/error.js';
import { openLedgerSource } from '../../src/log/fs/source.js';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { buildReport } from '../../src/rules/report/report.js';
import { runVerification, type VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import type { SavedVerification } from '../../src/rules/verify/verified-prefix.js';
import { checkpoint, genesis, keyOf, ledger, makeSigner, note } from '../docs/ledger-kit.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { sample } from '../slow.js';
import { ledgerOf, linesOf, rememberingBackend } from './support.js';

const backend = rememberingBackend();
const parent = mkdtempSync(join(tmpdir(), 'northroot-resuming-'));
afterAll(() => rmSync(parent, { recursive: true }));

let made = 0;
let path = '';
beforeEach(() => {
  path = join(parent, String((made += 1)));
});

const NOW = '2026-11-22T00:00:00Z';
const LINES = linesOf(fixtureBytes('ledgers/agent-run.jsonl'));
const whole = (count?: number): Buffer => ledgerOf(LINES.slice(0, count));

interface Verified {
  readonly report: unknown;
  readonly saved: SavedVerification;
}

async function verify(source: LedgerSource, options: VerifyOptions = {}): Promise<Verified> {
  const stream: string[] = [];
  const result = await runVerification(source, {
    ...{ backend, now: NOW, keepPrefix: true },
    ...options,
    onFinding: ({ code, at }) => stream.push(`${at.file} ${at.line} ${at.byteOffset} ${code}`),
  });
  const { state, kept: findings, prefix } = result;
  const saved = restoreVerification(saveVerification({ state, findings, prefix }), backend);
  return { report: { ...buildReport(result), stream }, saved };
}

/** The ledger at `path`, of which no line is read from the beginning. */
async function withoutLines(): Promise<LedgerSource> {
  return {
    ...(await openLedgerSource(path)),
    segments: { [Symbol.asyncIterator]: () => expect.fail('the lines were read from the beginning') },
  };
}

/** What comes of going on: the report, or the code of the error. */
async function outcome(from: SavedVerification, options: VerifyOptions = {}): Promise<unknown> {
  try {
    return (await verify(await openLedgerSource(path), { ...options, from })).report;
  } catch (error) {
    if (error instanceof NorthrootError) return error.code;
    throw error;
  }
}

/** A state is used up by going on from it. */
function copyOf({ state, findings, prefix }: SavedVerification, isHashed = true): SavedVerification {
  const bytes = saveVerification({ state, findings, prefix: isHashed ? prefix : undefined });
  return restoreVerification(bytes, backend);
}

/** Expects that going on gives what it gives where each line is hashed. */
async function expectSame(saved: SavedVerification, options: VerifyOptions = {}): Promise<unknown> {
  expect(saved.prefix).toBeDefined();
  const slow = await outcome(copyOf(saved, false), options);
  expect(await outcome(copyOf(saved), options)).toEqual(slow);
  return slow;
}

/** Lines as segments of so many lines each. */
function writeFolder(lines: readonly Buffer[], size: number): void {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path);
  for (let first = 0; first < lines.length; first += size) {
    const name = `${String(first).padStart(20, '0')}.jsonl`;
    writeFileSync(join(path, name), ledgerOf(lines.slice(first, first + size)));
  }
}

describe('a ledger that has grown', () => {
  test('resumes after the hashed prefix, wherever that ends', async () => {
    writeFileSync(path, whole());
    const { report } = await verify(await openLedgerSource(path));
    for (let count = 1; count <= LINES.length; count += 1) {
      writeFileSync(path, whole(count));
      const { saved } = await verify(await openLedgerSource(path));
      writeFileSync(path, whole());
      expect((await verify(await withoutLines(), { from: saved })).report, `${count} lines`).toEqual(report);
    }
  });

  test('so is a folder of segments, with segments that grew and new ones', async () => {
    for (const size of [1, 3, 5]) {
      writeFolder(LINES, size);
      const { report } = await verify(await openLedgerSource(path));
      for (let count = 1; count <= LINES.length; count += 2) {
        writeFolder(LINES.slice(0, count), size);
        const { saved } = await verify(await openLedgerSource(path));
        writeFolder(LINES, size);
        expect((await verify(await withoutLines(), { from: saved })).report).toEqual(report);
      }
    }
  });

  test('again and again', async () => {
    writeFileSync(path, '');
    let { report, saved } = await verify(await openLedgerSource(path));
    for (const [index, line] of LINES.entries()) {
      appendFileSync(path, ledgerOf([line]));
      const source = index === 0 ? await openLedgerSource(path) : await withoutLines();
      ({ report, saved } = await verify(source, { from: saved }));
    }
    expect(report).toEqual((await verify(await openLedgerSource(path))).report);
  });

  test('with a line in a new segment after an empty one', async () => {
    writeFolder(LINES.slice(0, 4), 4);
    writeFileSync(join(path, `${'4'.padStart(20, '0')}.jsonl`), '');
    const { saved } = await verify(await openLedgerSource(path));
    appendFileSync(join(path, `${'4'.padStart(20, '0')}.jsonl`), ledgerOf(LINES.slice(4)));
    const { report } = await verify(await withoutLines(), { from: copyOf(saved) });
    expect(report).toEqual((await verify(await openLedgerSource(path))).report);
    await expectSame(saved);
  });

  test('whatever is wrong with it', async () => {
    // What parents say is not part of a saved state.
    const broken = FILE_CASES.filter(
      ({ ledger, parents }) => parents === undefined && fixtureBytes(ledger).length < 20_000,
    );
    for (const fixture of sample(broken, 40)) {
      const bytes = fixtureBytes(fixture.ledger);
      const lines = linesOf(bytes.at(-1) === 0x0a ? bytes : Buffer.concat([bytes, Buffer.from('\n')]));
      const cut = ledgerOf(lines.slice(0, Math.ceil(lines.length / 2)));
      // Only what is held already is held against what is skipped.
      const options = (): VerifyOptions => ({ ...optionsOf(fixture), now: NOW });
      writeFileSync(path, cut);
      const { saved } = await verify(await openLedgerSource(path), options());
      writeFileSync(path, bytes);
      if (cut.length > 0)
        expect(await outcome(copyOf(saved), options())).toEqual(
          await outcome(copyOf(saved, false), options()),
        );
    }
  });

  test('and was saved without the hash of its bytes', async () => {
    writeFileSync(path, whole(9));
    const { saved } = await verify(await openLedgerSource(path), { keepPrefix: false });
    expect(saved.prefix).toBeUndefined();
    writeFileSync(path, whole());
    expect(await outcome(saved)).toEqual((await verify(await openLedgerSource(path))).report);
  });

  test('from bytes that were no file', async () => {
    const { saved } = await verify(bytesSource(whole(9), '-'));
    writeFileSync(path, whole());
    await verify(await withoutLines(), { from: saved });
  });
});

describe('a ledger whose first bytes are others', () => {
  test.each<[string, (lines: Buffer[]) => Uint8Array, expected?: string]>([
    ['with a byte changed', (lines) => ledgerOf(lines.with(3, changed(lines[3])))],
    [
      'with the last byte changed that was verified',
      (lines) => ledgerOf(lines.with(8, changed(lines[8], -1))),
    ],
    ['cut off', (lines) => ledgerOf(lines.slice(0, 8))],
    ['cut off within a line', (lines) => ledgerOf(lines).subarray(0, -5)],
    ['empty', () => Buffer.alloc(0)],
    ['without a line', (lines) => ledgerOf(lines.toSpliced(4, 1))],
    ['in another order', (lines) => ledgerOf([lines[1], lines[0], ...lines.slice(2)])],
    [
      'with CR at each end of a line',
      (lines) => Buffer.from(ledgerOf(lines).toString().replaceAll('\n', '\r\n')),
    ],
    ['with a blank line more', (lines) => ledgerOf(lines.toSpliced(4, 0, Buffer.alloc(0)))],
    [
      'with a last line that goes on',
      (lines) => Buffer.concat([ledgerOf(lines).subarray(0, -1), Buffer.from('x\n')]),
    ],
  ])('is refused: %s', async (_what, change) => {
    writeFileSync(path, whole(9));
    const { saved } = await verify(await openLedgerSource(path));
    writeFileSync(path, change(LINES.slice(0, 9)));
    expect(await expectSame(saved)).toBe('STATE_MISMATCH');
    writeFileSync(path, Buffer.concat([change(LINES.slice(0, 9)), ledgerOf(LINES.slice(9))]));
    expect(await expectSame(saved)).toBe('STATE_MISMATCH');
  });

  test('is the same ledger in other files', async () => {
    writeFileSync(path, whole(9));
    const { saved } = await verify(await openLedgerSource(path));
    rmSync(path);
    for (const size of [3, 9, 12]) {
      writeFolder(LINES, size);
      expect(await expectSame(saved)).toHaveProperty('verdict', 'ok');
    }
    rmSync(path, { recursive: true });
    writeFolder(LINES.slice(0, 9), 2);
    const { saved: ofFolder } = await verify(await openLedgerSource(path));
    writeFolder(LINES, 4);
    expect(await expectSame(ofFolder)).toHaveProperty('verdict', 'ok');
    // A segment of those in the middle has lost its end, and the next begins with it.
    writeFolder(LINES, 2);
    const [first = '', second = ''] = readdirSync(path).sort();
    const [one, two, three, four] = LINES;
    writeFileSync(join(path, first), ledgerOf([one, two, three]));
    writeFileSync(join(path, second), ledgerOf([four]));
    expect(await expectSame(ofFolder)).toHaveProperty('verdict', 'ok');
  });

  test('is the same ledger with a blank line elsewhere', async () => {
    const blank = Buffer.alloc(0);
    writeFileSync(path, ledgerOf(LINES.slice(0, 9).toSpliced(3, 0, blank)));
    const { saved } = await verify(await openLedgerSource(path));
    writeFileSync(path, ledgerOf(LINES.toSpliced(5, 0, blank)));
    expect(await expectSame(saved)).toHaveProperty('verdict', 'invalid');
  });

  test('its torn end is not hashed as a whole', async () => {
    const torn = Buffer.concat([whole(9), LINES[9].subarray(0, 20)]);
    writeFileSync(path, torn);
    const { saved } = await verify(await openLedgerSource(path));
    expect(saved.prefix).toBeUndefined();
    expect(await outcome(copyOf(saved))).toHaveProperty('verdict', 'invalid');
    writeFileSync(path, whole());
    expect(await outcome(saved)).toBe('STATE_MISMATCH');
  });
});

function changed(line: Buffer, at = line.length >> 1): Buffer {
  const copy = Buffer.from(line);
  copy[at < 0 ? copy.length + at : at] ^= 1;
  return copy;
}

describe('checkpoints that the user holds', () => {
  const signer = makeSigner();
  const lines = linesOf(
    ledger(
      { event: genesis([keyOf(signer, { roles: ['event', 'checkpoint'] })]), signers: [signer] },
      ...[1, 2, 3].map((n) => ({ event: note(n), signers: [signer] })),
      { event: checkpoint([signer]), signers: [signer] },
      ...[4, 5, 6].map((n) => ({ event: note(n), signers: [signer] })),
      { event: checkpoint([signer]), signers: [signer] },
      { event: note(7), signers: [signer] },
    ),
  );
  const noteAt = (seq: number): { name: string; note: Uint8Array } => {
    const { event } = JSON.parse(lines[seq].toString()) as { event: { note: string } };
    return { name: `checkpoint-${seq}`, note: Buffer.from(event.note) };
  };
  /** The note of a ledger that has these first lines, and then a checkpoint. */
  const noteAfter = (count: number, of: readonly Buffer[] = lines): { name: string; note: Uint8Array } => {
    const items = of.slice(0, count).map((line) => line.toString());
    const sealed = linesOf(
      ledger(...items, {
        event: (before) => checkpoint([signer])({ ...before, tip: genesis() }),
        signers: [signer],
      }),
    );
    const { event } = JSON.parse(sealed[count].toString()) as { event: { note: string } };
    return { name: `after-${count}`, note: Buffer.from(event.note) };
  };

  test.each<[string, number, { name: string; note: Uint8Array }[], isFast: boolean]>([
    ['that end where the state does', 6, [noteAfter(6)], true],
    ['that end behind it', 6, [noteAt(8)], true],
    ['that a record of the ledger states', 6, [noteAt(4), noteAt(8)], true],
    ['that are of another ledger behind it', 6, [noteAfter(9, lines.toReversed())], true],
    ['that end before it, where nothing is known', 6, [noteAfter(2)], false],
    ['that are of another ledger before it', 6, [noteAfter(5, lines.toReversed())], false],
    ['that are of another ledger, at a size that is known', 6, [noteAfter(4, lines.toReversed())], false],
  ])('are held against it: those %s', async (_what, count, checkpoints, isFast) => {
    writeFileSync(path, ledgerOf(lines.slice(0, count)));
    const { saved } = await verify(await openLedgerSource(path));
    writeFileSync(path, ledgerOf(lines));
    const whole = (await verify(await openLedgerSource(path), { checkpoints })).report;
    expect(await expectSame(saved, { checkpoints })).toEqual(whole);
    const attempt = verify(await withoutLines(), { from: copyOf(saved), checkpoints });
    if (isFast) expect((await attempt).report).toEqual(whole);
    else await expect(attempt).rejects.toThrow('from the beginning');
  });

  test('are known again, where they were held when it was saved', async () => {
    for (const held of [noteAfter(2), noteAfter(5, lines.toReversed())]) {
      const checkpoints = [held, noteAfter(3)];
      writeFileSync(path, ledgerOf(lines.slice(0, 6)));
      const { saved } = await verify(await openLedgerSource(path), { checkpoints });
      writeFileSync(path, ledgerOf(lines));
      const { report } = await verify(await openLedgerSource(path), { checkpoints });
      const again = await verify(await withoutLines(), { from: saved, checkpoints });
      expect(again.report).toEqual(report);
      expect((await verify(await withoutLines(), { from: again.saved, checkpoints })).report).toEqual(report);
    }
  });

  test('are held against what is read again', async () => {
    writeFileSync(path, ledgerOf(lines.slice(0, 6)));
    const { saved } = await verify(await openLedgerSource(path));
    rmSync(path);
    writeFolder(lines, 4);
    await expectSame(saved, { checkpoints: [noteAt(4), noteAfter(6), noteAt(8)] });
  });
});

test('reading ends with the reason of the signal, and nothing is left open', async () => {
  writeFileSync(path, whole(9));
  const { saved } = await verify(await openLedgerSource(path));
  writeFileSync(path, whole());
  const open = (): number => readdirSync('/proc/self/fd').length;
  const before = process.platform === 'linux' ? open() : 0;
  const stop = AbortSignal.abort(new Error('enough'));
  await expect(verify(await openLedgerSource(path), { from: copyOf(saved), signal: stop })).rejects.toThrow(
    'enough',
  );
  const failing = verify(await openLedgerSource(path), {
    from: copyOf(saved),
    onRecord: () => {
      throw new Error('full');
    },
  });
  await expect(failing).rejects.toThrow('full');
  await outcome(copyOf(saved));
  if (process.platform === 'linux') expect(open()).toBe(before);
});

describe('the hash of files', () => {
  const hashOf = (...files: string[][]): string | undefined => {
    const hasher = new PrefixHasher();
    for (const chunks of files) {
      hasher.beginFile();
      for (const chunk of chunks) hasher.update(Buffer.from(chunk));
    }
    return hasher.prefix()?.hash;
  };

  test('depends on where files end, and not on chunks', () => {
    expect(hashOf(['a\n', '', 'b\n'])).toBe(hashOf(['a\nb\n']));
    const divided = [
      [['a\nb\n']],
      [['a\n'], ['b\n']],
      [['a\nb\n'], []],
      [[], ['a\nb\n']],
      [['a\n', '\0\0\0\0\0\0\0\u0002', 'b\n']],
    ].map((files) => hashOf(...files));
    expect(new Set(divided).size).toBe(divided.length);
  });

  test('is none where a line has no end, and where there is no file', () => {
    expect(hashOf(['a\n', 'b'])).toBeUndefined();
    expect(hashOf(['a'], [])).toBeDefined();
    expect(hashOf()).toBeUndefined();
  });
});
