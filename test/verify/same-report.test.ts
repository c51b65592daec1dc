/** The report depends on the bytes alone: not on how they come, in which chunks, nor on which backend checks signatures. */

import { createReadStream } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Report } from '../../src/rules/report/report.js';
import { verifyLedger, type LedgerInput } from '../../src/log/read/verify-ledger.js';
import { nobleBackend } from '../signature/noble-backend.js';
import type { VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { CASES, FILE_CASES, FIXTURES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { sample } from '../slow.js';
import { inChunks, rememberingBackend } from './support.js';

const backend = rememberingBackend();

/** The report with the source's name left out, which is the only thing that may differ. */
async function verify(source: LedgerInput, options: VerifyOptions): Promise<Report> {
  const report = await verifyLedger(source, { backend, ...options });
  const name = typeof source === 'string' ? source : '-';
  return JSON.parse(JSON.stringify(report).replaceAll(JSON.stringify(name).slice(1, -1), '-')) as Report;
}

const SMALL = FILE_CASES.filter(({ ledger }) => fixtureBytes(ledger).length < 8_000);
const LARGE = FILE_CASES.filter(({ ledger }) => fixtureBytes(ledger).length >= 8_000);

describe('chunks', () => {
  test('of 1 byte', async () => {
    for (const fixture of sample(SMALL, 20)) {
      const bytes = fixtureBytes(fixture.ledger);
      const whole = await verify(bytes, optionsOf(fixture));
      expect(await verify(inChunks(bytes, 1), optionsOf(fixture)), fixture.ledger).toEqual(whole);
    }
  });

  test('of 2, of 7, and of sizes that change', async () => {
    const kinds = [[2], [7], [1, 1_000, 3, 129], [4_096]];
    for (const [index, fixture] of sample(SMALL, 30).entries()) {
      const bytes = fixtureBytes(fixture.ledger);
      const whole = await verify(bytes, optionsOf(fixture));
      const chunks = inChunks(bytes, ...kinds[index % kinds.length]);
      expect(await verify(chunks, optionsOf(fixture)), fixture.ledger).toEqual(whole);
    }
  });

  test('around 64 KiB, where lines and buffers end', async () => {
    expect(LARGE.map(({ ledger }) => ledger)).toEqual(
      expect.arrayContaining(['ledgers/longest-line.jsonl', 'broken/line-too-long.jsonl']),
    );
    const short = sample(
      LARGE.filter(({ ledger }) => fixtureBytes(ledger).length <= 65_000),
      10,
    );
    const long = LARGE.filter(({ ledger }) => fixtureBytes(ledger).length > 65_000);
    for (const fixture of [...short, ...long]) {
      const bytes = fixtureBytes(fixture.ledger);
      const whole = await verify(bytes, optionsOf(fixture));
      const isLong = bytes.length > 65_000;
      for (const size of isLong ? [65_534, 65_535, 65_536, 65_537, 997] : [997]) {
        expect(await verify(inChunks(bytes, size), optionsOf(fixture)), fixture.ledger).toEqual(whole);
      }
    }
  });

  test('of any sizes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...SMALL),
        fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 20 }),
        async (fixture, sizes) => {
          const bytes = fixtureBytes(fixture.ledger);
          const whole = await verify(bytes, optionsOf(fixture));
          expect(await verify(inChunks(bytes, ...sizes), optionsOf(fixture))).toEqual(whole);
        },
      ),
      { numRuns: 50 },
    );
  });

  test('among them empty ones', async () => {
    const bytes = fixtureBytes('ledgers/unsigned.jsonl');
    async function* withGaps(): AsyncGenerator<Uint8Array> {
      yield await Promise.resolve(new Uint8Array(0));
      for await (const chunk of inChunks(bytes, 500)) {
        yield chunk;
        yield new Uint8Array(0);
      }
    }
    expect(await verify(withGaps(), {})).toEqual(await verify(bytes, {}));
  });
});

test('files, streams of files and bytes', async () => {
  for (const fixture of sample(FILE_CASES, 80)) {
    const path = `${FIXTURES}${fixture.ledger}`;
    const whole = await verify(fixtureBytes(fixture.ledger), optionsOf(fixture));
    expect(await verify(path, optionsOf(fixture)), fixture.ledger).toEqual(whole);
    const stream = createReadStream(path, { highWaterMark: 1_000 });
    expect(await verify(stream, optionsOf(fixture)), fixture.ledger).toEqual(whole);
  }
});

test('either signature backend gives the same report', async () => {
  const signed = CASES.filter(
    ({ ledger, findings }) =>
      /signature|key-|p256|agent-run|optional/.test(ledger) ||
      findings.some(({ code }) => /^(?:SIGNATURE|KEY)_/.test(code)),
  );
  expect(signed.length).toBeGreaterThan(30);
  for (const fixture of signed) {
    const path = `${FIXTURES}${fixture.ledger}`;
    const node = await verify(path, optionsOf(fixture));
    expect(await verify(path, { ...optionsOf(fixture), backend: nobleBackend }), fixture.ledger).toEqual(
      node,
    );
  }
});

describe('findings', () => {
  const path = `${FIXTURES}broken/not-canonical-crlf.jsonl`;

  test('are cut, but never their number', async () => {
    const all = await verifyLedger(path);
    const cut = await verifyLedger(path, { maxFindings: 2 });
    expect(all.findings).toHaveLength(4);
    expect(cut).toEqual({ ...all, findings: all.findings.slice(0, 2) });
    expect((await verifyLedger(path, { maxFindings: 0 })).findings).toEqual([]);
  });

  test('are the worst ones when cut', async () => {
    const swapped = `${FIXTURES}broken/genesis-missing-cut-head.jsonl`;
    const { findings } = await verifyLedger(swapped);
    expect(findings.map(({ severity }) => severity)).toEqual(['error', 'error', 'error', 'warning']);
    const found: string[] = [];
    await verifyLedger(swapped, { maxFindings: 1, onFinding: ({ code }) => found.push(code) });
    expect(found).toEqual(findings.map(({ code }) => code));
  });

  test('must have a sensible limit', async () => {
    for (const maxFindings of [-1, 1.5, Number.NaN]) {
      await expect(verifyLedger(path, { maxFindings })).rejects.toThrow(RangeError);
    }
  });
});

test('progress is reported in bytes, and an abort ends the work', async () => {
  const path = `${FIXTURES}ledgers/pipeline-1000.jsonl`;
  const { length } = fixtureBytes('ledgers/pipeline-1000.jsonl');
  const seen: [number, number | undefined][] = [];
  await verifyLedger(path, { backend, onProgress: (...progress) => seen.push(progress) });
  expect(seen.length).toBeGreaterThan(1);
  expect(seen.at(-1)).toEqual([length, length]);
  const abort = new AbortController();
  const reason = new Error('enough');
  const aborted = verifyLedger(path, {
    backend,
    signal: abort.signal,
    onProgress: () => abort.abort(reason),
  });
  await expect(aborted).rejects.toBe(reason);
});
