/** Where two ledgers part, against a naive comparison of all their lines. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openLedgerSource, streamSource } from '../../src/log/fs/source.js';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { diffLedgers, type LedgerDiff } from '../../src/proof/ledger-diff.js';
import { renderLedgerDiff } from '../../src/out/text/ledger-diff.js';
import { plainPaint } from '../../src/out/text/guide.js';
import { hashToBase64url } from '../../src/format/tree/compact-range.js';
import { inChunks, ledgerOf } from '../verify/support.js';
import { temporaryFolder } from '../writer/support.js';
import { makeLines, rootOf } from './support.js';

const lines = await makeLines({ events: [3, 3] });
const ledger = ledgerOf(lines);

function diff(a: Uint8Array, b: Uint8Array): Promise<LedgerDiff> {
  return diffLedgers(bytesSource(a, 'a.jsonl'), bytesSource(b, 'b.jsonl'));
}

function changed(at: number, from: string | RegExp, to: string): Buffer {
  const line = Buffer.from(lines[at].toString().replace(from, to));
  expect(line.equals(lines[at])).toBe(false);
  return ledgerOf(lines.with(at, line));
}

const root = (count: number): string => `sha-256:${hashToBase64url(rootOf(lines.slice(0, count)))}`;

describe('two ledgers', () => {
  it('are the same', async () => {
    expect(await diff(ledger, ledger)).toEqual({
      relation: 'identical',
      exit_status: 0,
      verified: false,
      a: { paths: ['a.jsonl'], records: lines.length, torn_bytes: 0 },
      b: { paths: ['b.jsonl'], records: lines.length, torn_bytes: 0 },
      common: { records: lines.length, root: root(lines.length) },
      fork: null,
    });
    expect(await diff(Buffer.alloc(0), Buffer.alloc(0))).toMatchObject({
      relation: 'identical',
      common: { records: 0, root: root(0) },
    });
  });

  it('extend one the other, from every size', async () => {
    for (let size = 0; size < lines.length; size += 1) {
      const head = ledgerOf(lines.slice(0, size));
      const common = { records: size, root: root(size) };
      expect(await diff(ledger, head)).toMatchObject({ relation: 'a_extends_b', exit_status: 0, common });
      expect(await diff(head, ledger)).toMatchObject({ relation: 'b_extends_a', exit_status: 0, common });
    }
  });

  it('forked at the record that was changed', async () => {
    const result = await diff(ledger, changed(2, /"sig":"../, '"sig":"__'));
    expect(result).toMatchObject({
      relation: 'forked',
      exit_status: 1,
      common: { records: 2, root: root(2) },
      a: { records: lines.length },
      b: { records: lines.length },
      fork: { differs: ['/signatures'] },
    });
    const offset = lines[0].length + lines[1].length + 2;
    const { event } = JSON.parse(lines[2].toString()) as { event: { event_id: { b64: string } } };
    for (const [name, side] of [
      ['a.jsonl', result.fork?.a],
      ['b.jsonl', result.fork?.b],
    ] as const) {
      expect(side).toEqual({
        file: name,
        line: 3,
        byte_offset: offset,
        byte_length: lines[2].length,
        seq: 2,
        event_id: `sha-256:${event.event_id.b64}`,
        event_type: 'x.test',
        occurred_at: '2026-01-01T12:00:00Z',
        principal_id: 'agent:a1',
        code: null,
      });
    }
  });

  it('differ in the members that are named, also where one lacks them', async () => {
    const other = changed(2, '"n":2', '"m~/":{"k":1},"n":3').toString().replace('"seq":2', '"seq":9');
    const { fork } = await diff(ledger, Buffer.from(other));
    expect(fork?.differs).toEqual(['/event/m~0~1', '/event/n', '/seq']);
    expect(fork?.b).toMatchObject({ seq: 9, code: 'PAYLOAD_DIGEST_MISMATCH' });
    const renamed = await diff(ledger, changed(2, '"event"', '"evenz"'));
    expect(renamed.fork).toMatchObject({ differs: [], b: { seq: 2, event_id: null, code: 'SCHEMA' } });
  });

  it('fork in what cannot be read too', async () => {
    const cases: [Buffer, string][] = [
      [Buffer.from('no record'), 'NOT_JSON'],
      [Buffer.alloc(0), 'LINE_BLANK'],
      [Buffer.alloc(70_000, 0x61), 'LINE_TOO_LONG'],
      [Buffer.from('"text"'), 'SCHEMA'],
    ];
    for (const [line, code] of cases) {
      const result = await diff(ledger, ledgerOf(lines.with(3, line)));
      expect(result).toMatchObject({ relation: 'forked', common: { records: 3 }, fork: { differs: [] } });
      expect(result.fork?.b).toMatchObject({ code, line: 4, event_id: null, byte_length: line.length });
    }
  });

  it('are the same in lines that cannot be read, and differ behind the part of a line that is kept', async () => {
    const long = Buffer.alloc(70_000, 0x61);
    const odd = [Buffer.from('no record'), Buffer.alloc(0), long, ...lines];
    expect(await diff(ledgerOf(odd), ledgerOf(odd))).toMatchObject({
      relation: 'identical',
      // A blank line is no leaf of the tree.
      common: { records: odd.length, root: `sha-256:${hashToBase64url(rootOf(odd.toSpliced(1, 1)))}` },
    });
    const other = Buffer.from(long);
    other[69_999] = 0x62;
    expect(await diff(ledgerOf([long]), ledgerOf([other]))).toMatchObject({ relation: 'forked' });
  });

  it('are compared without a torn last line', async () => {
    const torn = Buffer.concat([ledgerOf(lines.slice(0, 2)), lines[2].subarray(0, 10)]);
    expect(await diff(ledger, torn)).toMatchObject({
      relation: 'a_extends_b',
      b: { records: 2, torn_bytes: 10 },
    });
    expect(await diff(torn, ledgerOf(lines.slice(0, 2)))).toMatchObject({
      relation: 'identical',
      a: { records: 2, torn_bytes: 10 },
    });
  });

  it('may be bare events', async () => {
    const bare = lines.map((line) => {
      const { event } = JSON.parse(line.toString()) as { event: object };
      return Buffer.from(JSON.stringify(event));
    });
    const other = bare.with(1, Buffer.from(bare[1].toString().replace('"n":1', '"n":7')));
    const { fork } = await diff(ledgerOf(bare), ledgerOf(other));
    expect(fork).toMatchObject({ differs: ['/event/n'], a: { event_type: 'x.test', seq: null } });
  });

  it('may come as files, as folders of segments, and in chunks of any size', async () => {
    const folder = temporaryFolder();
    const file = join(folder, 'ledger.jsonl');
    writeFileSync(file, ledger);
    const segments = join(folder, 'segments');
    mkdirSync(segments);
    writeFileSync(join(segments, '00000000000000000000.jsonl'), ledgerOf(lines.slice(0, 4)));
    writeFileSync(join(segments, '00000000000000000004.jsonl'), ledgerOf(lines.slice(4)));
    const open: (() => Promise<LedgerSource>)[] = [
      () => openLedgerSource(file),
      () => openLedgerSource(segments),
      () => Promise.resolve(streamSource(inChunks(ledger, 1), 'byte by byte')),
      () => Promise.resolve(streamSource(inChunks(ledger, 7, 1_000), 'chunks')),
    ];
    for (const a of open) {
      for (const b of open) {
        expect(await diffLedgers(await a(), await b())).toMatchObject({
          relation: 'identical',
          common: { records: lines.length, root: root(lines.length) },
        });
      }
    }
    const other = changed(5, '"sig":"', '"sig":"_');
    const forked = await diffLedgers(await openLedgerSource(segments), bytesSource(other, 'b'));
    expect(forked.fork?.a).toMatchObject({ line: 2, byte_offset: lines[4].length + 1 });
    expect(forked.fork?.a.file).toContain('00000000000000000004.jsonl');
  });

  it('part where a comparison of all lines says', async () => {
    const anyLines = fc.array(fc.constantFrom('a', 'b', '', 'cc'), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(anyLines, anyLines, fc.integer({ min: 1, max: 5 }), async (left, right, size) => {
        const bytes = (list: string[]): Buffer => ledgerOf(list.map((line) => Buffer.from(line)));
        const result = await diffLedgers(
          streamSource(inChunks(bytes(left), size), 'a'),
          streamSource(inChunks(bytes(right), 2, 3), 'b'),
        );
        let common = 0;
        while (common < Math.min(left.length, right.length) && left[common] === right[common]) common += 1;
        const isFork = common < Math.min(left.length, right.length);
        const relation = isFork
          ? 'forked'
          : left.length > right.length
            ? 'a_extends_b'
            : left.length < right.length
              ? 'b_extends_a'
              : 'identical';
        expect(result).toMatchObject({
          relation,
          common: { records: common },
          a: { records: left.length },
          b: { records: right.length },
        });
      }),
    );
  });

  it('are not compared when one cannot be read, or when it is interrupted', async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield await Promise.resolve(ledger.subarray(0, 100));
      throw new Error('broken disk');
    }
    const good = (): LedgerSource => bytesSource(ledger, 'a');
    await expect(diffLedgers(good(), streamSource(failing(), 'b'))).rejects.toThrow('broken disk');
    const signal = AbortSignal.abort(new Error('stop'));
    await expect(diffLedgers(good(), good(), signal)).rejects.toThrow('stop');
  });

  it('close what they read, however it ends', async () => {
    let closed = 0;
    async function* watched(bytes: Uint8Array, fails: boolean): AsyncGenerator<Uint8Array> {
      try {
        yield await Promise.resolve(bytes);
        if (fails) throw new Error('broken disk');
        yield bytes;
      } finally {
        closed += 1;
      }
    }
    await diffLedgers(streamSource(watched(ledger, false), 'a'), streamSource(watched(ledger, false), 'b'));
    expect(closed).toBe(2);
    const run = diffLedgers(
      streamSource(watched(ledger, false), 'a'),
      streamSource(watched(ledger, true), 'b'),
    );
    await expect(run).rejects.toThrow('broken disk');
    expect(closed).toBe(4);
  });
});

describe('the words', () => {
  it('say that nothing was verified, and let nothing from a ledger at the terminal', async () => {
    const evil = changed(2, '"agent:a1"', '"agent:\u202ea1"');
    const text = renderLedgerDiff(await diff(ledger, evil), plainPaint);
    expect(text).toContain('neither was verified');
    expect(text).toContain('/event/principal_id');
    expect(text).not.toContain('\u202e');
  });
});
