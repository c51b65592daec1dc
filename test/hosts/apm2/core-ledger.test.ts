/** The core's table `events`, in JSON made here: its own chain, and the daemon's payloads in it after a freeze. */

import { blake3 } from '@noble/hashes/blake3.js';
import { describe, expect, it } from 'vitest';
import { verdictOf } from '../../../src/hosts/shared/account.js';
import { codesOf, coreLedger, drafts, fileOf, KEYS, ledger, profile, read, type CoreDraft } from './kit.js';

const EVENTS = drafts(profile());
const ROWS: readonly CoreDraft[] = [EVENTS.attributed, EVENTS.requested, EVENTS.decided, EVENTS.executed].map(
  ({ type, payload }) => ({ type, payload: JSON.stringify({ event_type: type, ...payload }) }),
);
const edit = (index: number, change: Partial<CoreDraft>): CoreDraft[] =>
  ROWS.map((row, i) => (i === index ? { ...row, ...change } : row));
const codes = (text: string, options = KEYS): string[] =>
  codesOf(read([fileOf(text, 'events.jsonl')], options));

describe("the core's chain", () => {
  it('is BLAKE3 of the hash before and the payload, from 32 zero bytes', () => {
    const [first, second] = coreLedger(ROWS)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { payload: string; event_hash: string });
    const hash = (before: string, payload: string): string =>
      Buffer.from(blake3(Buffer.from(before + payload, 'hex'))).toString('hex');
    expect(first.event_hash).toBe(hash('00'.repeat(32), first.payload));
    expect(second.event_hash).toBe(hash(first.event_hash, second.payload));
  });

  it('goes in without a finding, whichever way its rows are signed', () => {
    expect(codes(coreLedger(ROWS))).toEqual([]);
    expect(codes(coreLedger(ROWS.map((row) => ({ ...row, signed: 'hash' }))))).toEqual([]);
    // The row itself names its key.
    expect(codes(coreLedger(ROWS), {})).toEqual([]);
    const reading = read([fileOf(coreLedger(ROWS), 'events.jsonl')]);
    expect(verdictOf(reading)).toBe('ok');
    expect(reading.claims.map(({ kind }) => kind)).toEqual(['evidence', 'evidence', 'action', 'execution']);
    const digests = reading.claims.flatMap(({ foreignDigests }) => foreignDigests ?? []);
    expect(digests.filter(({ form }) => form === 'apm2-events').map(({ check }) => check)).toEqual(
      Array<string>(4).fill('match'),
    );
  });

  it('has hashes in any case, and a first row after 32 zero bytes', () => {
    const [first, ...rest] = coreLedger(ROWS).trimEnd().split('\n');
    const zeros = first.replace('"prev_hash":null', `"prev_hash":"${'00'.repeat(32)}"`);
    const upper = [zeros, ...rest].join('\n').replace(/"[0-9a-f]{64,}"/g, (hex) => hex.toUpperCase());
    expect(codes(upper.replaceAll('D75A980182', 'd75a980182'))).toEqual([]);
  });

  /** Besides a request that is not there any more. */
  const BROKEN: readonly (readonly [string, readonly CoreDraft[], readonly string[]])[] = [
    [
      'a payload that was changed',
      edit(1, { after: { payload: '7b7d' } }),
      ['AP-10 LEDGER_HASH_MISMATCH', 'AP-10 LEDGER_SIGNATURE_INVALID'],
    ],
    ['another hash', edit(3, { after: { event_hash: '77'.repeat(32) } }), ['AP-10 LEDGER_HASH_MISMATCH']],
    [
      'a link to another row',
      edit(2, { after: { prev_hash: '77'.repeat(32) } }),
      ['AP-10 LEDGER_LINK_BROKEN', 'AP-10 LEDGER_HASH_MISMATCH'],
    ],
    ['no signature', edit(1, { signed: 'none' }), ['AP-10 LEDGER_UNSIGNED']],
    [
      'a signature of something else',
      edit(1, { after: { signature: '07'.repeat(64) } }),
      ['AP-10 LEDGER_SIGNATURE_INVALID'],
    ],
    [
      'a number that is missing',
      edit(2, { after: { seq_id: 9 } }),
      ['AP-10 LEDGER_SEQUENCE_GAP', 'AP-10 LEDGER_SEQUENCE_GAP'],
    ],
    [
      'a type that the payload contradicts',
      edit(1, { after: { event_type: 'tool_request' } }),
      ['AP-10 LEDGER_SIGNATURE_INVALID', 'AP-10 LEDGER_ROW_CONTRADICTS_PAYLOAD'],
    ],
  ];
  it.each(BROKEN)('with %s', (_, rows, expected) => {
    const found = codes(coreLedger(rows)).filter((code) => code !== 'AP-2 REQUEST_MISSING');
    expect(found.sort()).toEqual([...expected].sort());
  });

  it('with a row taken out', () => {
    const lines = coreLedger(ROWS).split('\n');
    expect(codes(lines.filter((_, i) => i !== 1).join('\n'))).toEqual([
      'AP-2 REQUEST_MISSING',
      'AP-10 LEDGER_LINK_BROKEN',
    ]);
    expect(codes(lines.slice(1).join('\n'))).toContain('AP-10 LEDGER_HEAD_MISSING');
  });
});

describe("the daemon's payloads in it", () => {
  it('go in without a finding', () => {
    const text = coreLedger(ROWS, true);
    expect(codes(text)).toEqual([]);
    expect(read([fileOf(text, 'events.jsonl')]).claims).toHaveLength(4);
  });

  it('show a chain that was made again without a row', () => {
    // The table's hash has no key, so anyone makes it again; the signed payloads still name the hashes that were.
    const signed = coreLedger(ROWS, true)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, string>);
    let prev: string | null = null;
    const forged = signed.flatMap((row, i) => {
      if (i === 2) return [];
      const before = prev;
      prev = Buffer.from(blake3(Buffer.from((before ?? '00'.repeat(32)) + row['payload'], 'hex'))).toString(
        'hex',
      );
      return [JSON.stringify({ ...row, seq_id: i < 2 ? i + 1 : i, prev_hash: before, event_hash: prev })];
    });
    expect(codes(forged.join('\n')).filter((code) => code.startsWith('AP-10'))).toEqual([
      'AP-10 LEDGER_ROW_CONTRADICTS_PAYLOAD',
    ]);
  });

  it("that were taken over from the daemon's table name that one's hashes", () => {
    const old = ledger([EVENTS.attributed, EVENTS.requested]).trimEnd().split('\n');
    const payloads = old.map((line) => JSON.parse(line) as { payload: string; event_type: string });
    const rows = payloads.map(({ payload, event_type }) => ({ type: event_type, payload }));
    expect(codes(coreLedger(rows))).toEqual(['AP-2 DECISION_MISSING']);
  });

  it('may be signed as those of a session or an episode', () => {
    const text = (domain: string): string => ledger([{ ...EVENTS.spawned, columns: { event_type: domain } }]);
    const under = (domain: string): string =>
      text(domain).replace(`"event_type":"${domain}"`, '"event_type":"episode_spawned"');
    for (const domain of ['episode', 'session_event'])
      expect(codes(under(domain)).filter((code) => code.includes('SIGNATURE'))).toEqual([]);
    expect(codes(under('tool_decided'))).toContain('AP-10 LEDGER_SIGNATURE_INVALID');
  });
});
