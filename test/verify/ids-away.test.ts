/** Ids in temporary files: what is reported, and what is saved, is what it would be were all of them in memory. */

import type * as idIndex from '../../src/rules/verify/id-index.js';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { openScratchFile } from '../../src/log/fs/scratch-file.js';
import type { ScratchFile } from '../../src/rules/source/scratch-file.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { openLedger } from '../../src/log/tile/tile-tree.js';
import { buildReport, type Report } from '../../src/rules/report/report.js';
import { parseRecordName } from '../../src/base/value/record-name.js';
import { runVerification, type VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import { makeAction, makeExecution, makeGrant, number } from '../bounds/support.js';
import { FILE_CASES, FIXTURES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { sample } from '../slow.js';
import { rememberingBackend } from './support.js';

/** How many ids an index has in memory, in place of what it would be by its bytes. */
const room = vi.hoisted(() => ({ ids: undefined as number | undefined }));
vi.mock('../../src/rules/verify/id-index.js', async (original) => {
  const actual = await original<typeof idIndex>();
  return { ...actual, idsWithin: (bytes: number) => room.ids ?? actual.idsWithin(bytes) };
});

afterEach(() => {
  room.ids = undefined;
});

const backend = rememberingBackend();
const now = '2026-11-01T00:00:00Z';

/** Its temporary files are counted. */
interface Counted {
  readonly source: LedgerSource;
  readonly files: { opened: number; closed: number };
}

function counting(source: LedgerSource, wrap: (file: ScratchFile) => ScratchFile = (file) => file): Counted {
  const files = { opened: 0, closed: 0 };
  const openScratch = (): ScratchFile => {
    files.opened += 1;
    const file = wrap(openScratchFile());
    return {
      append: (bytes) => file.append(bytes),
      read: (target, position) => file.read(target, position),
      close: () => {
        files.closed += 1;
        file.close();
      },
    };
  };
  return { source: { ...source, openScratch }, files };
}

function withoutFiles({ openScratch, ...source }: LedgerSource): LedgerSource {
  void openScratch;
  return source;
}

async function report(source: LedgerSource, options: VerifyOptions): Promise<Report> {
  return buildReport(await runVerification(source, { backend, now, ...options }));
}

/**
 * A grant, actions and their executions in an order that has nothing to do with theirs; on the way executions of what was executed,
 * duplicates, and links to what is long past or nowhere.
 */
function makeLedger(pairs: number): Buffer {
  const grant = makeGrant({ caps: { calls: 10_000n } });
  const actions = Array.from({ length: pairs }, (_, n) => makeAction(grant, { calls: 1n }, number(n)));
  const executions = actions.map((action, n) =>
    makeExecution(
      action,
      { calls: n % 50 === 7 ? 2n : 1n },
      {
        ...number(n),
        ...(n % 3 === 0 && { prev_event_id: (actions[(n * 7) % pairs] ?? grant).event_id }),
        ...(n % 100 === 5 && { prev_event_id: grant.payload_digest }),
      },
    ),
  );
  const shuffled = executions.map((_, n) => executions[(n * 37) % pairs] ?? grant);
  const again = actions
    .filter((_, n) => n % 90 === 1)
    .flatMap((action, n) => [makeExecution(action, { calls: 1n }, number(pairs + n)), action]);
  const events = [grant, ...actions, ...shuffled, ...again, ...shuffled.slice(0, 5)];
  return Buffer.from(events.map((event) => `${canonicalText(event)}\n`).join(''));
}

const LEDGER = makeLedger(1_009);
const source = (): LedgerSource => bytesSource(LEDGER, 'ledger.jsonl');

describe('the report', () => {
  test('of every fixture is the same when three ids are in memory', async () => {
    let opened = 0;
    // More events than ids fit in memory.
    const isLong = ({ ledger }: (typeof FILE_CASES)[number]): boolean =>
      fixtureBytes(ledger).filter((byte) => byte === 0x0a).length > 6;
    const cases = sample(FILE_CASES.filter(isLong), 30);
    for (const fixture of cases) {
      const given = await openLedger(`${FIXTURES}${fixture.ledger}`);
      room.ids = undefined;
      const expected = await report(withoutFiles(given), optionsOf(fixture));
      room.ids = 3;
      const { source: bounded, files } = counting(await openLedger(`${FIXTURES}${fixture.ledger}`));
      expect(await report(bounded, optionsOf(fixture)), fixture.ledger).toEqual(expected);
      opened += files.opened;
    }
    expect(opened).toBeGreaterThan(cases.length);
  });

  test.each([
    ['the least memory', undefined, 1],
    ['so few that runs become one, and these one again', 12, 2 * 84],
  ])('of some thousand records is the same within %s', async (_, ids, least) => {
    const expected = await report(withoutFiles(source()), {});
    expect(new Set(expected.findings.map(({ code }) => code))).toEqual(
      new Set(['AUTHORIZATION_REUSED', 'EVENT_DUPLICATE', 'PREV_EVENT_NOT_FOUND', 'RESERVATION_EXCEEDED']),
    );
    room.ids = ids;
    const { source: bounded, files } = counting(source());
    expect(await report(bounded, { maxMemory: 64 * 1024 })).toEqual(expected);
    expect(files.opened).toBeGreaterThanOrEqual(least);
    // Those of runs that became one.
    expect(files.opened - files.closed).toBeLessThanOrEqual(3 * 7);
  });

  test('is by names, too, what it is of an index in memory', async () => {
    const all = (await runVerification(withoutFiles(source()), { backend, now })).state.events;
    room.ids = 100;
    const { events } = (await runVerification(source(), { backend, now })).state;
    const [first] = all.matchNow(parseRecordName('0')) ?? [];
    for (const name of [
      '0',
      '1500',
      '2000',
      first?.eventId ?? '',
      (first?.eventId ?? '').slice(0, 16),
      'sha-256:A',
    ]) {
      const matches = all.matchNow(parseRecordName(name));
      expect(matches).not.toEqual([]);
      expect(events.matchNow(parseRecordName(name)), name).toEqual(matches);
    }
  });
});

describe('a state', () => {
  test('is saved as if all ids were in memory, and resumes within the same bounds', async () => {
    const end = LEDGER.indexOf('\n', LEDGER.length / 2) + 1;
    const first = (): LedgerSource => bytesSource(LEDGER.subarray(0, end), 'ledger.jsonl');
    const save = async (given: LedgerSource): Promise<Uint8Array> => {
      const { state, kept } = await runVerification(given, { backend, now });
      return saveVerification({ state, findings: kept });
    };
    const expected = await save(withoutFiles(first()));
    room.ids = 100;
    const saved = await save(first());
    expect(Buffer.from(saved).equals(expected)).toBe(true);
    const { source: bounded, files } = counting(source());
    const went = await report(bounded, { from: restoreVerification(saved, backend) });
    expect(files.opened).toBeGreaterThan(5);
    expect(went).toEqual(await report(withoutFiles(source()), {}));
  });
});

describe('a temporary file', () => {
  const full = (): never => {
    throw new NorthrootError('DISK_FULL', 'there is no space left');
  };

  test.each([
    ['that is full', 'DISK_FULL', (file: ScratchFile) => ({ ...bind(file), append: full })],
    [
      'that cannot be read',
      'IO_FAILED',
      (file: ScratchFile) => ({
        ...bind(file),
        read: () => {
          throw new NorthrootError('IO_FAILED', 'the device failed');
        },
      }),
    ],
    [
      'that gives another byte than it was given',
      'IO_FAILED',
      (file: ScratchFile) => ({
        ...bind(file),
        read: (target: Uint8Array, position: number) => {
          file.read(target, position);
          target[100] = (target[100] ?? 0) ^ 1;
        },
      }),
    ],
    [
      'of which a part is gone',
      'IO_FAILED',
      (file: ScratchFile) => ({
        ...bind(file),
        append: (bytes: Uint8Array) => file.append(bytes.subarray(0, 100)),
      }),
    ],
  ])('%s ends the verification: it says nothing of the ledger', async (_, code, wrap) => {
    room.ids = 100;
    const { source: bounded, files } = counting(source(), wrap);
    await expect(runVerification(bounded, { backend, now })).rejects.toMatchObject({
      name: 'NorthrootError',
      code,
    });
    expect(files.closed).toBe(files.opened);
  });

  test('is closed when the verification ends early', async () => {
    room.ids = 100;
    const { source: bounded, files } = counting(source());
    const onRecord = ({ ordinal }: { ordinal: number }): undefined => {
      if (ordinal === 1_500) throw new Error('stopped');
    };
    await expect(runVerification(bounded, { backend, now, onRecord })).rejects.toThrow('stopped');
    expect(files.opened).toBeGreaterThan(0);
    expect(files.closed).toBe(files.opened);
  });
});

function bind(file: ScratchFile): ScratchFile {
  return {
    append: (bytes) => file.append(bytes),
    read: (target, position) => file.read(target, position),
    close: () => file.close(),
  };
}

test('maxMemory is an integer of at least 64 KiB', async () => {
  for (const maxMemory of [65_535, 0, -1, 1e6 + 0.5, Number.NaN, Infinity]) {
    await expect(runVerification(source(), { maxMemory })).rejects.toThrow(RangeError);
  }
});
