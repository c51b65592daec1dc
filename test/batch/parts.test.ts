/** A verification that is spread over jobs gives the report of one run; what is no part, or not one of these, is refused. */

import { describe, expect, test, vi } from 'vitest';
import { examineBlock, makeExaminer } from '../../src/fast/blocks/examine-block.js';
import { examinePart } from '../../src/fast/blocks/examine-part.js';
import { openParts, type PartInput } from '../../src/fast/blocks/open-parts.js';
import { NOT_COMPUTED, VALID } from '../../src/fast/blocks/verdicts.js';
import { NorthrootError } from '../../src/base/error.js';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import type { Report } from '../../src/rules/report/report.js';
import { buildReport } from '../../src/rules/report/report.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { requireChecks } from '../../src/rules/report/not-checked.js';
import { decideExitStatus } from '../../src/out/ci/baseline.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import { runVerification } from '../../src/rules/verify/run-verification.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { sample } from '../slow.js';
import { inChunks } from '../verify/support.js';

async function makePart(source: LedgerSource, part: number, of: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of examinePart(source, { part, of })) pieces.push(Uint8Array.from(piece));
  return Buffer.concat(pieces);
}

const toInput = (bytes: Uint8Array, name = 'part'): PartInput => ({
  name,
  open: () => inChunks(bytes, 1_000, 7),
});

async function partsOf(bytes: Uint8Array, of: number): Promise<PartInput[]> {
  const parts: PartInput[] = [];
  for (let part = of; part >= 1; part -= 1) {
    parts.push(toInput(await makePart(bytesSource(bytes, 'ledger'), part, of), `part ${part}`));
  }
  return parts;
}

async function reportOn(source: LedgerSource, options: object = {}): Promise<Report> {
  return buildReport(await runVerification(source, { now: '2026-06-01T00:00:00Z', ...options }));
}

/** A report on parts says that they are believed, and is that of one run otherwise. */
function withoutParts(merged: Report): Report {
  expect(merged.not_checked.filter(({ code }) => code === 'PARTS')).toHaveLength(1);
  return { ...merged, not_checked: merged.not_checked.filter(({ code }) => code !== 'PARTS') };
}

async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (each: unknown) => each,
  );
  return error instanceof NorthrootError ? error.code : String(error);
}

const CHOSEN = sample(
  FILE_CASES.filter(({ ledger }) => fixtureBytes(ledger).length < 80_000),
  30,
);

test.each(CHOSEN.map((fixture) => [fixture.ledger, fixture] as const))('%s', async (ledger, fixture) => {
  const bytes = fixtureBytes(ledger);
  const whole = await reportOn(bytesSource(bytes, 'ledger'), optionsOf(fixture));
  for (const of of [1, 2, 5]) {
    const merged = await reportOn(await openParts(await partsOf(bytes, of)), optionsOf(fixture));
    expect(JSON.stringify(withoutParts(merged)), `in ${of} parts`).toBe(JSON.stringify(whole));
  }
});

test('signatures that a part has verified are not verified again, but for a sample', async () => {
  const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
  const parts = await partsOf(bytes, 3);
  let computed = 0;
  const backend: typeof nodeBackend = {
    name: 'counting',
    importKey: (key) => {
      const known = nodeBackend.importKey(key);
      return {
        ...known,
        verify: (message, signature) => {
          computed += 1;
          return known.verify(message, signature);
        },
      };
    },
  };
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
  const { verdict } = await reportOn(await openParts(parts), { backend });
  random.mockRestore();
  expect(verdict).toBe('ok');
  // Those of the checkpoints' notes.
  expect(computed).toBeLessThan(50);
});

test('a signature in the sample whose key is not known here is left to who orders the lines', () => {
  const bytes = Uint8Array.from(fixtureBytes('ledgers/pipeline-1000.jsonl')).subarray(0, 50_000);
  const given = examineBlock(bytes, makeExaminer(nodeBackend), 'all').verdicts.map(() => VALID);
  const verdictsBy = (random: number): Uint8Array => {
    const mock = vi.spyOn(Math, 'random').mockReturnValue(random);
    const examiner = makeExaminer(nodeBackend);
    // Without the keys that the lines declare.
    examiner.keys.find = () => undefined;
    const { verdicts } = examineBlock(bytes, examiner, 'all', given);
    mock.mockRestore();
    return verdicts;
  };
  const isOf =
    (verdict: number) =>
    (each: number): boolean =>
      each === verdict;
  expect(verdictsBy(0.5).length).toBeGreaterThan(10);
  expect(verdictsBy(0.5).every(isOf(VALID))).toBe(true);
  expect(verdictsBy(0).every(isOf(NOT_COMPUTED))).toBe(true);
});

describe('a forged part', () => {
  const LEDGER = 'broken/signature-invalid-copied.jsonl';
  /** Says valid of every signature. */
  async function forged(): Promise<PartInput> {
    const bytes = fixtureBytes(LEDGER);
    const { PartEncoder, decodePart } = await import('../../src/fast/blocks/part-file.js');
    const part = await makePart(bytesSource(bytes, 'ledger'), 1, 1);
    const encoder = new PartEncoder();
    const pieces: Uint8Array[] = [];
    for await (const frame of decodePart(inChunks(part, 1_000), 'part')) {
      if ('northroot_part' in frame) pieces.push(encoder.header(frame));
      else if (frame.kind === 'lines') {
        pieces.push(encoder.frame({ ...frame, verdicts: frame.verdicts.map(() => 2) }));
      } else pieces.push(encoder.frame(frame));
    }
    return toInput(Buffer.concat([...pieces, encoder.end()]));
  }

  test('is found out where the sample falls on what it forged', async () => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(0);
    const merging = reportOn(await openParts([await forged()]));
    expect(await refusalOf(merging)).toBe('PART_WRONG');
    random.mockRestore();
  });

  test('is believed where it does not, and the report says so, also when resumed', async () => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const result = await runVerification(await openParts([await forged()]));
    random.mockRestore();
    const report = requireChecks(buildReport(result), ['PARTS']);
    expect(report.verdict).toBe('ok');
    expect(report.not_checked).toContainEqual(expect.objectContaining({ code: 'PARTS', required: true }));
    expect(decideExitStatus(report, 0, 'violation')).toBe(2);
    const from = restoreVerification(saveVerification({ state: result.state, findings: result.kept }));
    const later = await reportOn(bytesSource(fixtureBytes(LEDGER), 'ledger'), { from });
    expect(later.not_checked.map(({ code }) => code)).toContain('PARTS');
  });

  test('cannot make a valid signature invalid: every rejection is computed again', async () => {
    const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
    const [whole] = await partsOf(bytes, 1);
    const part = await makePart(bytesSource(bytes, 'ledger'), 1, 1);
    expect(whole).toBeDefined();
    const { PartEncoder, decodePart } = await import('../../src/fast/blocks/part-file.js');
    const encoder = new PartEncoder();
    const pieces: Uint8Array[] = [];
    for await (const frame of decodePart(inChunks(part, 5_000), 'part')) {
      if ('northroot_part' in frame) pieces.push(encoder.header(frame));
      else if (frame.kind === 'lines') {
        pieces.push(encoder.frame({ ...frame, verdicts: frame.verdicts.map(() => 1) }));
      } else pieces.push(encoder.frame(frame));
    }
    const input = toInput(Buffer.concat([...pieces, encoder.end()]));
    expect(await refusalOf(reportOn(await openParts([input])))).toBe('PART_WRONG');
  });
});

describe('refuses', () => {
  const bytes = fixtureBytes('ledgers/unsigned.jsonl');

  test('what is missing, there twice, or of another ledger', async () => {
    const parts = await partsOf(bytes, 3);
    const [third, second, first] = parts as [PartInput, PartInput, PartInput];
    const other = await partsOf(bytes, 2);
    const grown = await makePart(bytesSource(Buffer.concat([bytes, Buffer.from('\n')]), 'ledger'), 1, 3);
    const cases: [PartInput[], string][] = [
      [[first, third], 'PARTS_INCOMPLETE'],
      [[first, second, third, second], 'PARTS_INCOMPLETE'],
      [[first, second, other[0]], 'PART_WRONG'],
      [[toInput(grown), second, third], 'PART_WRONG'],
    ];
    for (const [given, code] of cases) expect(await refusalOf(openParts(given))).toBe(code);
    await expect(openParts([])).rejects.toThrow(RangeError);
  });

  test('a part that was cut off or changed, wherever that is', async () => {
    const part = await makePart(bytesSource(bytes, 'ledger'), 1, 1);
    const whole = await reportOn(bytesSource(bytes, 'ledger'));
    const merge = async (given: Uint8Array): Promise<Report> => reportOn(await openParts([toInput(given)]));
    expect(withoutParts(await merge(part))).toEqual(whole);
    const places = [
      0,
      1,
      20,
      60,
      ...Array.from({ length: 40 }, (_, n) => Math.floor((part.length * n) / 40)),
    ];
    for (const at of places) {
      expect(await refusalOf(merge(part.subarray(0, at))), `cut at ${at}`).toBe('PART_MALFORMED');
      const changed = Buffer.from(part);
      changed[at] = changed[at] ^ 0x11;
      expect(await refusalOf(merge(changed)), `changed at ${at}`).toMatch(/^PART_(MALFORMED|WRONG)$/);
    }
    expect(await refusalOf(merge(Buffer.concat([part, Buffer.from([0])])))).toBe('PART_MALFORMED');
  });

  test('a stream, and numbers that are out of range', async () => {
    const stream: LedgerSource = { ...bytesSource(bytes, '-'), size: undefined };
    expect(await refusalOf(makePart(stream, 1, 2))).toBe('SIZE_UNKNOWN');
    for (const [part, of] of [
      [0, 1],
      [2, 1],
      [1, 10_001],
      [1.5, 2],
    ] as const) {
      await expect(makePart(bytesSource(bytes, 'ledger'), part, of)).rejects.toThrow(RangeError);
    }
  });
});
