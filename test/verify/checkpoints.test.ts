/** Checkpoint and attestation records: no spoiled note seals anything, however many there are of them. */

import { describe, expect, test } from 'vitest';
import type { AnyEvent } from '../../src/format/event/build.js';
import type { RawLine } from '../../src/format/record/line-splitter.js';
import { decodeNote } from '../../src/format/note/signed-note.js';
import type { Report } from '../../src/rules/report/report.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { Key } from '../../src/format/schema/generated/types.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { finishVerification } from '../../src/rules/verify/ending.js';
import type { VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import { startVerification } from '../../src/rules/verify/state.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';
import { bare, brief, genesis, keyOf, makeSigner, note } from '../docs/ledger-kit.js';
import { changedBytes, substrings } from '../note/support.js';
import { LedgerMaker, attestationOf, keyEvent, logLine, witnessLine } from './seal-kit.js';
import { times } from '../slow.js';
import { rememberingBackend } from './support.js';

const backend = rememberingBackend();
const log = makeSigner();
const second = makeSigner();
const witness = makeSigner();
const stranger = makeSigner();
const MANAGER: Key['roles'] = ['event', 'checkpoint', 'admin'];
const LOG_KEY = keyOf(log, { roles: MANAGER });
const WITNESS_KEY = keyOf(witness, { roles: ['witness'], name: 'w.example' });
const OPTIONAL = { signing: { events: 'optional', checkpoints: 'optional' } };

const verify = (bytes: Uint8Array, options: VerifyOptions = {}): Promise<Report> =>
  verifyLedger(bytes, { backend, ...options });

function codesOf({ findings }: Report): string[] {
  return findings.map(brief);
}

function lineOf(bytes: Buffer, index: number): RawLine {
  const { length } = bytes;
  return { bytes, length, number: index + 1, offset: 0, terminated: true, longLeafHash: undefined };
}

/** Genesis and a note of a ledger that needs no signatures. */
function begun(...keys: readonly Key[]): LedgerMaker {
  const maker = new LedgerMaker();
  maker.append(genesis([LOG_KEY, ...keys], OPTIONAL));
  maker.append(note(1));
  return maker;
}

describe('the note in a checkpoint record', () => {
  const base = begun(WITNESS_KEY);
  const good = base.checkpoint([
    ...logLine(log)(base.text()),
    ...witnessLine('w.example', witness)(base.text()),
  ]);
  const text = good['note'] as string;
  const prefix = base.lines.map((line) => Buffer.from(line));

  /** What the step function finds in the third record, when that has this note. */
  function find(spoiled: string): { readonly codes: string[]; readonly sealed: number | null } {
    const maker = begun(WITNESS_KEY);
    maker.append(maker.checkpoint(spoiled));
    const state = startVerification(undefined, backend);
    const codes: string[] = [];
    for (const [index, bytes] of maker.lines.entries()) {
      const line = lineOf(bytes, index);
      const { findings } = verifyLine(state, line, { file: '-', firstSeq: undefined });
      codes.push(...findings.map(({ code, severity }) => `${code} ${severity}`));
    }
    return { codes, sealed: finishVerification(state).lastTreeSize };
  }

  test('seals the records before it', () => {
    expect(find(text)).toEqual({ codes: [], sealed: 2 });
    expect(prefix).toHaveLength(2);
  });

  test('seals nothing, or is an error, with any byte changed', () => {
    let count = 0;
    for (const { at, changed } of changedBytes(Buffer.from(text), times(1, 4))) {
      const spoiled = changed.toString();
      // What is not UTF-8 cannot stand in JSON.
      if (!Buffer.from(spoiled).equals(changed)) continue;
      const { codes, sealed } = find(spoiled);
      count += 1;
      if (sealed === null) expect(codes, `byte ${at}`).not.toEqual([]);
      // Only the cosignature was changed: it is wrong, or by nobody known.
      else {
        expect(at, `byte ${at}`).toBeGreaterThanOrEqual(
          Buffer.byteLength(text.slice(0, text.lastIndexOf('—'))),
        );
        expect(decodeNote(changed)).toHaveProperty('ok', true);
        expect([[], ['CHECKPOINT_SIGNATURE_INVALID error']]).toContainEqual(codes);
      }
    }
    expect(count).toBeGreaterThan(times(150, 700));
  });

  test('seals nothing when any part of it is missing, but for the last line', () => {
    const whole = Buffer.from(text);
    const withoutWitness = text.slice(0, text.lastIndexOf('—'));
    for (const part of substrings(whole)) {
      // What is no note is refused alike whatever it is; some are enough of those.
      const isNote = decodeNote(part).ok;
      if (!isNote && part.length % times(499, 101) !== 0) continue;
      const spoiled = part.toString();
      if (!Buffer.from(spoiled).equals(part)) continue;
      const { codes, sealed } = find(spoiled);
      if (spoiled === withoutWitness) expect({ codes, sealed }).toEqual({ codes: [], sealed: 2 });
      else expect([codes.length > 0, sealed], spoiled).toEqual([true, null]);
    }
  });

  test('may have a hundred signature lines, and no more', async () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, n) => witnessLine(`w${n}.example`, stranger)(base.text())[0]);
    const withLines = (count: number): LedgerMaker => {
      const maker = begun();
      maker.append(maker.checkpoint([...logLine(log)(maker.text()), ...many(count - 1)]));
      return maker;
    };
    const full = await verify(withLines(100).bytes);
    expect(codesOf(full)).toEqual([]);
    expect(full.not_checked.map(({ code }) => code)).toContain('NOTE_SIGNATURES_UNVERIFIED');
    expect(codesOf(await verify(withLines(101).bytes))).toEqual(['CHECKPOINT_NOTE_MALFORMED in 3']);
    const maker = begun();
    const short = Array.from({ length: 3_000 }, (_, n) => `— ${n.toString(36)} AAAAAAA=\n`).join('');
    maker.append(maker.checkpoint(`${maker.text()}\n${short}`));
    expect(codesOf(await verify(maker.bytes))).toEqual(['CHECKPOINT_NOTE_MALFORMED in 3']);
  });
});

describe('attestations', () => {
  test('bring 10,000 signature lines, of which the known ones count once', async () => {
    const maker = begun(WITNESS_KEY);
    const sealed = maker.seal(log);
    for (let n = 0; n < 100; n += 1) {
      const lines = (text: string) =>
        Array.from({ length: 100 }, (_, m) => witnessLine(`w${n}.${m}.example`, stranger)(text)[0]);
      const own = n === 50 ? witnessLine('w.example', witness) : () => [];
      maker.append(attestationOf(sealed, (text) => [...lines(text).slice(own(text).length), ...own(text)]));
    }
    const report = await verify(maker.bytes);
    expect(codesOf(report)).toEqual(['TAIL_UNSEALED info in 3']);
    expect(report.checkpoints.signers).toEqual([
      { keyid: log.publicKey.keyid, name: 'example.com/test', role: 'log', tree_size: 2 },
      { keyid: witness.publicKey.keyid, name: 'w.example', role: 'witness', declared: true, tree_size: 2 },
    ]);
    const unknown = report.not_checked.find(({ code }) => code === 'NOTE_SIGNATURES_UNVERIFIED');
    expect(unknown?.message).toContain('9999');
  });

  test('of a checkpoint that is wrong make it no better', async () => {
    const maker = begun();
    const wrong = maker.checkpoint(logLine(stranger)(maker.text()), { tree_size: 1 });
    maker.append(wrong);
    maker.append(attestationOf(wrong, logLine(log)));
    const report = await verify(maker.bytes);
    expect(report.checkpoints.last_tree_size).toBeNull();
  });

  test('of an earlier checkpoint leave the later one the last', async () => {
    const maker = begun(keyOf(second, { roles: ['checkpoint'] }));
    const first = maker.seal(log);
    maker.seal(log);
    maker.append(attestationOf(first, logLine(second)));
    const { checkpoints } = await verify(maker.bytes);
    expect(checkpoints).toMatchObject({ last_tree_size: 3, unsealed: 1 });
    expect(checkpoints.signers?.map(({ tree_size: size }) => size)).toEqual([3, 2]);
  });

  test('sign late: records between are covered, records after are not', async () => {
    const maker = begun(keyOf(second, { roles: ['event'] }));
    maker.append(note(2), second);
    const sealed = maker.append(maker.checkpoint(logLine(stranger)(maker.text())), second);
    maker.append(note(3), second);
    maker.append(note(4), second);
    maker.append(attestationOf(sealed, logLine(log)));
    maker.append(keyEvent('revoke', keyOf(second)), log);
    const report = await verify(maker.bytes);
    // The checkpoint's own record rests on its note.
    expect(report.findings.map((each) => [brief(each), each.folded])).toEqual([
      ['KEY_NOT_VALID_HERE in 5', 1],
      ['KEY_UNKNOWN warning in 4', undefined],
      ['TAIL_UNSEALED info in 4', undefined],
    ]);
    expect(report.counts.by_verdict).toMatchObject({ ok: 6, invalid: 2 });
  });
});

describe('hostile numbers', () => {
  test('of checkpoints that no known key signed', async () => {
    const maker = new LedgerMaker();
    maker.append(genesis());
    const line = logLine(stranger)(maker.text());
    const count = times(1_500, 20_000);
    for (let n = 0; n < count; n += 1) maker.append(maker.checkpoint(line));
    const { bytes } = maker;
    const report = await verify(bytes);
    expect(report).toMatchObject({ verdict: 'ok', checkpoints: { count, last_tree_size: null } });
    expect(report.findings.map(({ code, folded }) => [code, folded])).toEqual([['KEY_UNKNOWN', count - 1]]);
  });

  test('of keys, and checkpoints among them', async () => {
    // Each key is added, and then a checkpoint made: the keys are not looked through for each.
    const maker = new LedgerMaker();
    maker.append(genesis([LOG_KEY]), log);
    for (let n = 0; n < 300; n += 1) {
      maker.append(
        keyEvent('add', keyOf(makeSigner(), { roles: ['checkpoint', 'witness'], name: `w${n}` })),
        log,
      );
      maker.append(
        maker.checkpoint(logLine(log)(maker.text(n % 2 === 0 ? undefined : 'example.com/test'))),
        log,
      );
    }
    const report = await verify(maker.bytes);
    expect(report).toMatchObject({ verdict: 'ok', checkpoints: { count: 300, last_tree_size: 600 } });
  });

  test('of checkpoints of other logs, one each', async () => {
    const maker = new LedgerMaker();
    maker.append(
      genesis(
        Array.from({ length: 200 }, () => keyOf(makeSigner(), { roles: MANAGER })),
        OPTIONAL,
      ),
    );
    for (let n = 0; n < 2_000; n += 1) {
      const text = maker.text(`example.com/${n}`);
      maker.append(maker.checkpoint(`${text}\n— example.com/${n} AAAAAAA=\n`));
    }
    const report = await verify(maker.bytes, { maxFindings: 10 });
    expect(report).toMatchObject({ verdict: 'invalid', findings_total: 2_000 });
    expect(new Set(report.findings.map(({ code }) => code))).toEqual(new Set(['ORIGIN_MISMATCH']));
  });

  test('of long notes: a state does not keep them', () => {
    const maker = begun();
    const state = startVerification(undefined, nodeBackend);
    const lines: AnyEvent[] = [];
    for (let n = 0; n < 200; n += 1) {
      const long = `${maker.text()}${'x'.repeat(40_000)}\n\n— other.example AAAAAAA=\n`;
      lines.push(maker.append(maker.checkpoint(long)));
    }
    for (const [index, bytes] of maker.lines.entries()) {
      const line = lineOf(bytes, index);
      verifyLine(state, line, { file: '-', firstSeq: undefined });
    }
    expect(state.checkpoints).toBe(lines.length);
    const saved = saveVerification({ state, findings: [] });
    expect(saved.length).toBeLessThan(1_000 * lines.length);
    expect(restoreVerification(saved).state.checkpoints).toBe(lines.length);
  });
});

test('a duplicate of a checkpoint is judged no further, and seals nothing anew', async () => {
  const maker = begun();
  const sealed = maker.seal(log);
  maker.append(sealed, log);
  const report = await verify(maker.bytes);
  expect(codesOf(report)).toEqual(['EVENT_DUPLICATE in 4', 'TAIL_UNSEALED info in 3']);
  expect(report.checkpoints).toMatchObject({ last_tree_size: 2, unsealed: 1 });
});

test('checkpoints among bare events are events and no more', async () => {
  const maker = begun();
  maker.seal(log);
  const report = await verify(bare(...maker.events));
  expect(report.checkpoints).toEqual({ count: 1, last_tree_size: null, unsealed: 3 });
  expect(report.not_checked.map(({ code }) => code)).toContain('CHAIN');
});
