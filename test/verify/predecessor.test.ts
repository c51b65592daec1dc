/** Ledgers that go on from another: what genesis says is checked when that one is given, and named when it is not. */

import { describe, expect, test } from 'vitest';
import { bytesSource } from '../bytes-source.js';
import {
  renderReport,
  verifyLedger,
  type GenesisEvent,
  type Predecessor,
  type Report,
} from '../../src/api/index.js';
import { checkReport } from '../../src/format/schema/check.js';
import { describePredecessor } from '../../src/log/read/describe-predecessor.js';
import { bare, genesis, keyOf, ledger, makeSigner, note } from '../docs/ledger-kit.js';
import { LedgerMaker, attestationOf, witnessLine } from './seal-kit.js';

const a = makeSigner();
const first = genesis([keyOf(a, { roles: ['event', 'checkpoint', 'admin'] })]);
const other = genesis([keyOf(a)], { origin: 'example.com/other' });

function old(...texts: readonly string[]): LedgerMaker {
  const maker = new LedgerMaker();
  maker.append(first, a);
  for (const text of texts) maker.append(note(text), a);
  return maker;
}

const describeOld = (bytes: Uint8Array): Promise<Predecessor> =>
  describePredecessor(() => Promise.resolve(bytesSource(bytes, 'old.jsonl')));

async function successor(of: Uint8Array): Promise<Buffer> {
  const continues = await describeOld(of);
  const next = genesis([keyOf(a)], { origin: 'example.com/new', continues });
  return ledger({ event: next, signers: [a] }, { event: note('goes on'), signers: [a] });
}

async function check(bytes: Uint8Array, predecessor?: Uint8Array): Promise<Report> {
  const report = await verifyLedger(bytes, predecessor === undefined ? {} : { predecessor });
  expect(checkReport(report)).toEqual([]);
  return report;
}

const notChecked = ({ not_checked: list }: Report): boolean =>
  list.some(({ code }) => code === 'PREDECESSOR');

describe('a successor', () => {
  const kept = old('1', '2').bytes;

  test('says that its predecessor was not checked where that is not given', async () => {
    const report = await check(await successor(kept));
    expect([report.verdict, notChecked(report)]).toEqual(['ok', true]);
    expect(report.ledger.continues).toMatchObject({
      tree_size: 3,
      ledger_id: `sha-256:${first.event_id.b64}`,
    });
    expect(report.ledger.continues).not.toHaveProperty('relation');
    expect(notChecked(await check(kept))).toBe(false);
  });

  test.each<[string, LedgerMaker]>([
    ['as it was', old('1', '2')],
    ['that has grown since', old('1', '2', '3')],
  ])('is well with its predecessor %s', async (_which, { bytes }) => {
    const report = await check(await successor(kept), bytes);
    expect([report.verdict, notChecked(report)]).toEqual(['ok', false]);
    expect(report.ledger.continues?.relation).toBe('continues');
    expect(renderReport(report)).toContain('the predecessor is it');
  });

  test.each<[string, Uint8Array, string, string, string]>([
    ['another ledger', ledger({ event: other }), 'LEDGER_MISMATCH', 'ledger_id', 'other-ledger'],
    ['fewer records', old('1').bytes, 'TRUNCATED', 'tree_size', 'truncated'],
    ['another history', old('1', 'two').bytes, 'FORKED', 'root', 'forked'],
    ['bare events', bare(first, note('1')), 'LEDGER_MISMATCH', 'ledger_id', 'other-ledger'],
    ['nothing', Buffer.from(''), 'LEDGER_MISMATCH', 'ledger_id', 'other-ledger'],
  ])('is invalid with %s', async (_which, given, code, member, relation) => {
    const report = await check(await successor(kept), given);
    expect(report.findings).toMatchObject([
      { code, class: 'invalid', seq: 0, at: { line: 1, pointer: `/event/continues/${member}` } },
    ]);
    expect([report.verdict, report.ledger.continues?.relation]).toEqual(['invalid', relation]);
    expect(report.counts.by_verdict).toMatchObject({ ok: 1, invalid: 1 });
  });

  test('is required only where genesis says so', async () => {
    const report = await check(kept, old().bytes);
    expect(report.findings).toMatchObject([
      { code: 'LEDGER_MISMATCH', at: { line: 1, pointer: '/event/continues' } },
    ]);
    const events = await check(bare(note('1')), kept);
    expect(events.findings).toMatchObject([{ code: 'LEDGER_MISMATCH', seq: null }]);
  });
});

describe('what is said of a predecessor', () => {
  test('has the note of a last checkpoint that covers the whole', async () => {
    const maker = old('1');
    const checkpoint = maker.seal(a);
    expect((await describeOld(maker.bytes)).note).toBe(checkpoint['note']);
    maker.append(attestationOf(checkpoint, witnessLine('w.example', makeSigner())), a);
    const { note: text = '', tree_size: size } = await describeOld(maker.bytes);
    expect([text.startsWith(checkpoint['note'] as string), text.includes('— w.example '), size]).toEqual([
      true,
      true,
      4,
    ]);
    maker.append(note('2'), a);
    expect(await describeOld(maker.bytes)).not.toHaveProperty('note');
  });

  test('is nothing where there is no ledger', async () => {
    for (const bytes of [Buffer.from(''), bare(first), Buffer.from('{}\n')])
      await expect(describeOld(bytes)).rejects.toMatchObject({ code: 'NOT_A_LEDGER' });
  });

  test('is in genesis unchanged', async () => {
    const bytes = await successor(old('1').bytes);
    const { event } = JSON.parse(bytes.toString().split('\n')[0] ?? '') as { event: GenesisEvent };
    expect(event.continues).toEqual(await describeOld(old('1').bytes));
  });
});
