/** A state saved after any line and gone on from gives the report of one pass; and only with the ledger that it comes from. */

import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deserialize, serialize } from 'node:v8';
import { describe, expect, it } from 'vitest';
import { openLedgerSource } from '../../src/log/fs/source.js';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { buildReport, type Report } from '../../src/rules/report/report.js';
import { runVerification } from '../../src/rules/verify/run-verification.js';
import { loadVerification, restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import type { SavedVerification } from '../../src/rules/verify/verified-prefix.js';
import { replayTo } from '../../src/log/read/read-records.js';
import { listGrants } from '../../src/rules/report/accounts.js';
import { sample, times } from '../slow.js';

const fixtures = fileURLToPath(new URL('../../fixtures/', import.meta.url));
const NAME = 'ledger.jsonl';
const NEWLINE = 0x0a;

function read(name: string): Buffer {
  return readFileSync(`${fixtures}${name}`);
}

/** Every offset just after a newline. */
function lineEnds(bytes: Buffer): number[] {
  return [...bytes.keys()].filter((at) => bytes[at] === NEWLINE).map((at) => at + 1);
}

async function verify(
  source: LedgerSource,
  from?: SavedVerification,
): Promise<{ report: Report; saved: SavedVerification }> {
  const result = await runVerification(source, from === undefined ? {} : { from });
  const bytes = saveVerification({ state: result.state, findings: result.kept });
  return { report: buildReport(result), saved: restoreVerification(bytes) };
}

const broken = readdirSync(`${fixtures}broken`).filter((name) => name.endsWith('.jsonl'));
/** Ledgers with every kind of state in them: budgets, delegation, rates, concurrency, links that wait, findings that fold. */
const interesting = broken.filter((name) =>
  /^(auth-|authorization-reused|concurrency|delegation|event-type-unknown|execution|grant|key-unknown|meter-cap|rate|reservation|prev-mismatch)/.test(
    name,
  ),
);

describe('a saved verification', () => {
  it('covers the fixtures it is meant for', () => {
    expect(interesting.length).toBeGreaterThan(30);
  });

  it.each([
    'ledgers/agent-run.jsonl',
    'ledgers/at-the-bounds.jsonl',
    'ledgers/quantities.jsonl',
    'ledgers/bare-events.jsonl',
    ...interesting.map((name) => `broken/${name}`),
  ])(
    'goes on after any line of %s as if nothing had happened',
    async (name) => {
      const bytes = read(name);
      const { report } = await verify(bytesSource(bytes, NAME));
      for (const end of sample(lineEnds(bytes), times(3, 8))) {
        const { saved } = await verify(bytesSource(bytes.subarray(0, end), NAME));
        expect((await verify(bytesSource(bytes, NAME), saved)).report).toEqual(report);
      }
    },
    120_000,
  );

  it('goes on line by line, saved and restored after each', async () => {
    for (const name of [
      'ledgers/at-the-bounds.jsonl',
      'broken/rate-limit-exceeded.jsonl',
      'broken/concurrency-exceeded.jsonl',
    ]) {
      const bytes = read(name);
      let saved: SavedVerification | undefined;
      let report: Report | undefined;
      for (const end of lineEnds(bytes)) {
        ({ report, saved } = await verify(bytesSource(bytes.subarray(0, end), NAME), saved));
      }
      expect(report).toEqual((await verify(bytesSource(bytes, NAME))).report);
    }
  });

  it('goes on in a folder of segments', async () => {
    const path = `${fixtures}ledgers/segments`;
    const { report, saved } = await verify(await openLedgerSource(path));
    expect(report.verdict).toBe('ok');
    expect((await verify(await openLedgerSource(path), saved)).report).toEqual(report);
  });

  it('does not go on with a ledger that was changed, cut or put in place of its own', async () => {
    const bytes = read('ledgers/agent-run.jsonl');
    const { saved } = await verify(bytesSource(bytes, NAME));
    const changed = Buffer.from(bytes);
    changed[lineEnds(bytes)[3]] ^= 1;
    const cut = bytes.subarray(0, lineEnds(bytes).at(-2));
    for (const other of [changed, cut, read('ledgers/at-the-bounds.jsonl'), Buffer.alloc(0)]) {
      await expect(verify(bytesSource(other, NAME), saved)).rejects.toMatchObject({ code: 'STATE_MISMATCH' });
    }
  });

  it('is restored from a part of a larger buffer, wherever that begins', async () => {
    const bytes = read('ledgers/agent-run.jsonl');
    const { state } = await runVerification(bytesSource(bytes, NAME));
    const saved = saveVerification({ state, findings: [] });
    for (let at = 0; at < 4; at += 1) {
      const larger = Buffer.concat([Buffer.alloc(at), saved]);
      const restored = restoreVerification(larger.subarray(at));
      const { report } = await verify(bytesSource(bytes, NAME), restored);
      expect(report).toEqual((await verify(bytesSource(bytes, NAME))).report);
    }
  });

  it('is refused where it was cut or changed, or has fewer ids than it says', async () => {
    const { state } = await runVerification(bytesSource(read('ledgers/agent-run.jsonl'), NAME));
    const saved = Buffer.from(saveVerification({ state, findings: [] }));
    const body = saved.indexOf(NEWLINE) + 1;
    const forge = (changes: object): Buffer => {
      const clone = serialize({ ...(deserialize(saved.subarray(body)) as object), ...changes });
      const digest = createHash('sha256').update(clone).digest('base64url');
      return Buffer.concat([saved.subarray(0, body - 44), Buffer.from(`${digest}\n`), clone]);
    };
    const codeOf = (bytes: Uint8Array): unknown => {
      try {
        restoreVerification(bytes);
        return 'restored';
      } catch (error) {
        return (error as { code?: string }).code;
      }
    };
    for (const length of [0, 20, body - 1, body, body + 1, saved.length - 32, saved.length - 1])
      expect(codeOf(saved.subarray(0, length)), String(length)).toBe('STATE_INVALID');
    for (const at of [body - 2, body, saved.length - 1]) {
      const changed = Buffer.from(saved);
      changed[at] ^= 1;
      expect(codeOf(changed), String(at)).toBe('STATE_INVALID');
    }
    for (const ids of [1_000_000, -1, 0.5, 2 ** 53, undefined, 'many', NaN])
      expect(codeOf(forge({ ids })), String(ids)).toBe('STATE_INVALID');
    expect(codeOf(forge({ form: 3 }))).toBe('STATE_OUTDATED');
  });

  it('is read from a file, of which no more than the beginning is read where it is another', async () => {
    const { state } = await runVerification(bytesSource(read('ledgers/agent-run.jsonl'), NAME));
    const folder = mkdtempSync(join(tmpdir(), 'northroot-state-'));
    const path = join(folder, 'state');
    try {
      const saved = saveVerification({ state, findings: [] });
      writeFileSync(path, saved);
      expect((await loadVerification(path)).state.records).toBe(state.records);
      // Larger than any piece of memory, without taking room on disk.
      truncateSync(path, 2 ** 40);
      await expect(loadVerification(path)).rejects.toMatchObject({ code: 'FILE_TOO_BIG' });
      writeFileSync(path, 'another');
      truncateSync(path, 2 ** 40);
      await expect(loadVerification(path)).rejects.toMatchObject({ code: 'STATE_INVALID' });
      await expect(loadVerification(`${path}s`)).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    } finally {
      rmSync(folder, { recursive: true });
    }
    if (process.platform === 'linux')
      await expect(loadVerification('/dev/zero')).rejects.toMatchObject({ code: 'STATE_INVALID' });
  });

  it('refuses bytes that are no state', () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from('{}'), read('ledgers/agent-run.jsonl')]) {
      expect(() => restoreVerification(bytes)).toThrow(
        expect.objectContaining({ code: 'STATE_INVALID' }) as Error,
      );
    }
  });
});

describe('replayTo', () => {
  it('stops after a record, or before what occurred later', async () => {
    const source = () => bytesSource(read('ledgers/agent-run.jsonl'), NAME);
    expect((await replayTo(source(), 'end')).records).toBe(22);
    expect((await replayTo(source(), { seq: 4 })).records).toBe(5);
    expect((await replayTo(source(), { time: '2026-03-02T09:02:00Z' })).records).toBe(6);
    expect((await replayTo(source(), { time: '2026-03-02T09:01:59.999999999Z' })).records).toBe(5);
    const [grant] = listGrants(await replayTo(source(), { seq: 3 }));
    expect(grant?.executions).toBe(0);
  });
});
