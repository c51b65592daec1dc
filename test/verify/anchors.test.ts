/** Checkpoints that the user holds: whatever was cut off or changed since is found, and without one the report says that it is not. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { bytesSource } from '../bytes-source.js';
import { decodeCheckpoint } from '../../src/format/note/checkpoint.js';
import { buildReport, type Report } from '../../src/rules/report/report.js';
import { requireChecks } from '../../src/rules/report/not-checked.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { AnchorWatch, type Anchor } from '../../src/rules/verify/anchors.js';
import { runVerification, type VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import { genesis, keyOf, makeSigner, note } from '../docs/ledger-kit.js';
import { FILE_CASES, fixtureBytes } from '../fixtures/cases.js';
import { changedBytes, substrings } from '../note/support.js';
import { LedgerMaker, anchorOf, keyEvent, logLine } from './seal-kit.js';
import { sample, samplePositions, times } from '../slow.js';
import { ledgerOf, linesOf, rememberingBackend } from './support.js';

const backend = rememberingBackend();
const stranger = makeSigner();
const log = makeSigner();
const LOG_KEY = keyOf(log, { roles: ['event', 'checkpoint', 'admin'] });

const verify = (bytes: Uint8Array, options: VerifyOptions = {}): Promise<Report> =>
  verifyLedger(bytes, { backend, ...options });

/** A checkpoint of all that a report is about. */
function anchorOfReport({ ledger }: Report, size = ledger.tree_size, root = ledger.root): Anchor {
  const base64 = Buffer.from((root as string).slice('sha-256:'.length), 'base64url').toString('base64');
  return anchorOf(`${ledger.origin ?? 'example.com/none'}\n${size}\n${base64}\n`, stranger);
}

function codesOf({ findings }: Report): string[] {
  return findings.map(({ code }) => code);
}

function notChecked({ not_checked: list }: Report): string[] {
  return list.map(({ code }) => code);
}

const LEDGERS = [...new Set(FILE_CASES.map(({ ledger }) => ledger))];
/** What takes a place in a ledger: lines that are neither blank nor torn. */
const placesOf = (bytes: Buffer): number =>
  linesOf(bytes.subarray(0, bytes.lastIndexOf('\n') + 1)).filter(({ length }) => length > 0).length;

describe('truncation', () => {
  test('of any fixture at any record is found with an anchor, and without one it is said that it is not', async () => {
    let cuts = 0;
    for (const name of sample(LEDGERS, times(60, LEDGERS.length))) {
      const bytes = fixtureBytes(name);
      const whole = await verify(bytes);
      const { records } = whole.ledger;
      expect(records, name).toBe(placesOf(bytes));
      const anchor = anchorOfReport(whole);
      const kept = await verify(bytes, { checkpoints: [anchor] });
      expect(kept.checkpoints.anchors, name).toMatchObject([{ relation: 'extends', tree_size: records }]);
      expect(notChecked(kept).includes('TRUNCATION'), name).toBe(records === 0);
      const ends = [...bytes.keys()].filter((at) => bytes[at] === 0x0a).map((at) => at + 1);
      const chosen = ends.filter((_, index) => ends.length < 50 || index % 97 === 0 || index > 997);
      // Most of the time goes into the few large ones.
      for (const end of [0, ...sample(chosen, bytes.length < 20_000 ? 4 : 2)]) {
        const cut = bytes.subarray(0, end);
        const left = placesOf(cut);
        const without = await verify(cut);
        expect(without.ledger.records, name).toBe(left);
        expect(
          notChecked(without).some((code) => code === 'TRUNCATION' || code === 'CHAIN'),
          name,
        ).toBe(true);
        if (left === records) continue;
        const report = await verify(cut, { checkpoints: [anchor] });
        // A genesis that was cut off leaves no origin to be another.
        expect(codesOf(report), `${name} ${end}`).toContain('TRUNCATED');
        expect(report.findings.map(({ at }) => at.file)).not.toContain('');
        expect(report).toMatchObject({ verdict: 'invalid', exit_status: 1 });
        cuts += 1;
      }
    }
    expect(cuts).toBeGreaterThan(times(50, 1_000));
  });

  test('is found when the rest is another ledger of the same length', async () => {
    const lines = linesOf(fixtureBytes('ledgers/agent-run.jsonl'));
    const anchor = anchorOfReport(await verify(ledgerOf(lines)));
    const padded = [...lines.slice(0, 20), ...lines.slice(0, 2)];
    expect(codesOf(await verify(ledgerOf(padded), { checkpoints: [anchor] }))).toContain('FORKED');
    const grown = await verify(ledgerOf([...lines, ...lines.slice(1, 3)]), { checkpoints: [anchor] });
    expect(codesOf(grown)).not.toContain('FORKED');
    expect(grown.not_checked).toContainEqual(
      expect.objectContaining({ code: 'TRUNCATION', shown_before_seq: lines.length }),
    );
  });
});

describe('a byte changed before the anchor', () => {
  /** A newline more or less makes it another number of lines, and a changed origin another log. */
  const FOUND = ['FORKED', 'TRUNCATED', 'ORIGIN_MISMATCH'];

  async function expectFound(bytes: Buffer, at: number, flip: number, anchor: Anchor): Promise<void> {
    const changed = Buffer.from(bytes);
    changed[at] ^= flip;
    const report = await verify(changed, { checkpoints: [anchor] });
    const found = codesOf(report).filter((code) => FOUND.includes(code));
    const isNewline = bytes[at] === 0x0a || changed[at] === 0x0a;
    const text = bytes.toString('latin1');
    const origin = text.indexOf('"origin":"');
    const isOrigin = at > origin && at < text.indexOf('",', origin);
    expect(found, `byte ${at}`).toHaveLength(1);
    if (!isNewline && !isOrigin) expect(found, `byte ${at}`).toEqual(['FORKED']);
  }

  test('any of a small ledger', async () => {
    const bytes = fixtureBytes('ledgers/unsigned.jsonl');
    const anchor = anchorOfReport(await verify(bytes));
    for (const at of samplePositions(bytes.length, times(100, 300)))
      await expectFound(bytes, at, 1 << (at % 8), anchor);
  });

  test('in any line of a larger one', async () => {
    const bytes = fixtureBytes('ledgers/agent-run.jsonl');
    const anchor = anchorOfReport(await verify(bytes));
    for (const at of samplePositions(bytes.length, times(50, 100)))
      await expectFound(bytes, at, 1 << (at % 8), anchor);
  });

  test('after it is not the anchor’s to find', async () => {
    const lines = linesOf(fixtureBytes('ledgers/unsigned.jsonl'));
    const anchor = anchorOfReport(await verify(ledgerOf(lines.slice(0, 3))));
    const changed = ledgerOf([...lines.slice(0, 3), Buffer.from('{}')]);
    const report = await verify(changed, { checkpoints: [anchor] });
    expect(codesOf(report).filter((code) => FOUND.includes(code))).toEqual([]);
    expect(notChecked(report)).toContain('TRUNCATION');
  });
});

describe('the note of an anchor', () => {
  const maker = new LedgerMaker();
  maker.append(genesis([LOG_KEY]), log);
  maker.append(note(1), log);
  const good = maker.anchor(log);
  const { bytes } = maker;

  const refusalOf = (bytesOfNote: Uint8Array): string => {
    try {
      new AnchorWatch([{ name: 'kept', note: bytesOfNote }]);
    } catch (error) {
      if (error instanceof NorthrootError) return error.code;
      throw error;
    }
    return 'none';
  };

  /** Whether the anchor is refused, contradicted, or said to be signed by nobody known. */
  async function isSeenThrough(bytesOfNote: Buffer): Promise<boolean> {
    const refusal = refusalOf(bytesOfNote);
    if (refusal !== 'none') return refusal === 'NOTE_MALFORMED';
    const report = await verify(bytes, { checkpoints: [{ name: 'kept', note: bytesOfNote }] });
    return report.verdict === 'invalid' || notChecked(report).includes('ANCHOR_UNVERIFIED');
  }

  test('is accepted unchanged', async () => {
    const report = await verify(bytes, { checkpoints: [good] });
    expect(report.findings).toEqual([]);
    expect(notChecked(report)).toEqual(['TRUST', 'WITNESSES']);
    expect(report.checkpoints).toEqual({
      count: 0,
      last_tree_size: null,
      unsealed: 2,
      anchors: [
        {
          path: 'kept.checkpoint',
          tree_size: 2,
          relation: 'extends',
          signed_by: [log.publicKey.keyid],
        },
      ],
    });
  });

  test('is rejected when any byte is changed', async () => {
    for (const { at, changed } of changedBytes(good.note)) {
      expect(await isSeenThrough(changed), `byte ${at}`).toBe(true);
    }
  });

  test('is rejected when any part is missing', async () => {
    for (const part of substrings(good.note)) {
      // Most are no notes at all: only what can be read is verified.
      if (refusalOf(part) !== 'NOTE_MALFORMED') expect(await isSeenThrough(part)).toBe(true);
    }
  });

  test('of 10,000 signature lines is refused', () => {
    const [line = ''] = /—.*\n/.exec(good.note.toString()) ?? [];
    const many = Array.from({ length: 10_000 }, (_, n) => line.replace(' ', ` w${n}`));
    expect(refusalOf(Buffer.concat([good.note, Buffer.from(many.join(''))]))).toBe('NOTE_MALFORMED');
  });
});

describe('anchors and keys', () => {
  const maker = new LedgerMaker();
  const next = makeSigner();
  maker.append(genesis([LOG_KEY]), log);
  const first = maker.text();
  maker.append(keyEvent('add', keyOf(next, { roles: ['event', 'checkpoint', 'admin'] })), log);
  const second = maker.text();
  maker.seal(next);
  const third = maker.text();
  maker.append(keyEvent('revoke', LOG_KEY), next);
  const fourth = maker.text();
  const against = async (text: string, signer = log): Promise<Report> =>
    verify(maker.bytes, { checkpoints: [anchorOf(text, signer)] });

  test('a key counts for what was before its revocation, and no later', async () => {
    expect(codesOf(await against(first))).toEqual(['TAIL_UNSEALED']);
    expect(codesOf(await against(second))).toEqual(['TAIL_UNSEALED']);
    // The revocation is the first record that it does not cover.
    expect(codesOf(await against(third))).toEqual(['TAIL_UNSEALED']);
    const late = await against(fourth);
    expect(codesOf(late)).toEqual(['KEY_NOT_VALID_HERE', 'TAIL_UNSEALED']);
    expect(late.findings[0]).toMatchObject({ seq: null, event_id: null, at: { file: 'kept.checkpoint' } });
    expect(codesOf(await against(fourth, next))).toEqual([]);
  });

  test('the largest of several tells how far the ledger is sealed, in any order', async () => {
    const notes = [first, second, fourth].map((text, n) => anchorOf(text, n === 2 ? next : log, `${n}`));
    const report = await verify(maker.bytes, { checkpoints: notes });
    expect(report.findings).toEqual([]);
    expect(notChecked(report)).not.toContain('UNSEALED');
    // What the ledger itself has is told apart.
    expect(report.checkpoints).toMatchObject({ last_tree_size: 2, unsealed: 1 });
    const reversed = await verify(maker.bytes, { checkpoints: notes.toReversed() });
    expect(reversed.checkpoints.anchors).toEqual(report.checkpoints.anchors?.toReversed());
    expect({ ...reversed, checkpoints: {} }).toEqual({ ...report, checkpoints: {} });
  });

  test('one of the empty tree says nothing, and is extended by every ledger', async () => {
    const empty = new LedgerMaker();
    const kept = anchorOf(empty.text(), log);
    expect(decodeCheckpoint(kept.note)).toMatchObject({ value: { checkpoint: { size: 0 } } });
    for (const bytes of [maker.bytes, Buffer.alloc(0)]) {
      const report = await verify(bytes, { checkpoints: [kept] });
      expect(report.checkpoints.anchors).toMatchObject([{ relation: 'extends' }]);
      const required = requireChecks(report, ['TRUNCATION']);
      expect(required.not_checked).toContainEqual(
        expect.objectContaining({ code: 'TRUNCATION', required: true }),
      );
    }
  });

  test('a forged one beside a good one is an error', async () => {
    const forged = anchorOf(fourth.replace('\n4\n', '\n9\n'), next);
    const report = await verify(maker.bytes, { checkpoints: [anchorOf(second, log), forged] });
    expect(codesOf(report)).toContain('TRUNCATED');
  });
});

describe('anchors of a resumed verification', () => {
  const bytes = fixtureBytes('ledgers/agent-run.jsonl');
  const lines = linesOf(bytes);

  test('give the report of one pass, wherever it was saved and whatever their sizes', async () => {
    const roots = new Map<number, string>();
    for (let size = 0; size <= lines.length; size += 1) {
      roots.set(size, (await verify(ledgerOf(lines.slice(0, size)))).ledger.root as string);
    }
    const whole = await verify(bytes);
    const sizes = [0, 1, 5, 6, 21, 22];
    await fc.assert(
      fc.asyncProperty(
        fc.nat(lines.length),
        fc.array(fc.tuple(fc.constantFrom(...sizes), fc.boolean()), { maxLength: 4 }),
        async (saveAt, chosen) => {
          const checkpoints = chosen.map(([size, isForked]) =>
            anchorOfReport(whole, size, isForked ? `sha-256:${'A'.repeat(43)}` : roots.get(size)),
          );
          const options = { backend, checkpoints };
          const part = await runVerification(bytesSource(ledgerOf(lines.slice(0, saveAt)), '-'), {
            backend,
          });
          const saved = saveVerification({ state: part.state, findings: part.kept });
          const from = restoreVerification(saved, backend);
          const result = await runVerification(bytesSource(bytes, '-'), { ...options, from });
          expect(buildReport(result)).toEqual(await verify(bytes, options));
          const { findings } = buildReport(result);
          expect(findings.some(({ code }) => code === 'FORKED')).toBe(chosen.some(([, forked]) => forked));
        },
      ),
      { numRuns: times(15, 40) },
    );
  });
});

test('an anchor is of the log whose lines it signed under its origin', async () => {
  const maker = new LedgerMaker();
  maker.append(genesis([LOG_KEY]), log);
  const elsewhere = await verify(maker.bytes, { checkpoints: [maker.anchor(log, 'example.com/other')] });
  expect(codesOf(elsewhere)).toEqual(['ORIGIN_MISMATCH']);
  expect(elsewhere.checkpoints).toMatchObject({ last_tree_size: null });
  // Signed by the right key, under another name than the origin.
  const text = maker.text();
  const [line] = logLine(log)(text);
  const renamed = Buffer.from(
    `${text}\n— other.example ${Buffer.from([1, 2, 3, 4, ...(line?.signature ?? [])]).toString('base64')}\n`,
  );
  expect(notChecked(await verify(maker.bytes, { checkpoints: [{ name: 'n', note: renamed }] }))).toContain(
    'ANCHOR_UNVERIFIED',
  );
});
