/** Samples of executions are drawn by lot, by the root of a checkpoint (docs/spec/proofs.md), and proven by a bundle. */

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { sha256Digest } from '../../src/base/value/digest.js';
import { drawSample, type SampleOptions } from '../../src/log/read/draw-sample.js';
import { bytesSource } from '../bytes-source.js';
import { execution, grant, ndjson, note } from '../cli/drafts.js';
import { expectError, expectOk, parse, parseLines, Workshop } from '../cli/runner.js';

const shop = new Workshop();

interface Appended {
  readonly event_id: string;
}

interface Report {
  readonly selection: {
    readonly records: number;
    readonly sample: {
      readonly tree_size: number;
      readonly root: string;
      readonly of: number;
      readonly executions: readonly { readonly seq: number; readonly event_id: string }[];
    };
  };
}

function append(...drafts: object[]): string[] {
  const run = shop.run(['append', 'ledger.jsonl', '--origin', 'example.com/sample'], {
    input: ndjson(drafts),
  });
  return parseLines<Appended>(expectOk(run)).map(({ event_id: id }) => id);
}

const [granted = ''] = append(grant());

/** An execution that differs from others by `n`, and uses nothing. */
function run(n: unknown): object {
  const output = sha256Digest(Buffer.from(String(n)));
  return { ...execution(granted), meter_used: [], output_digest: output };
}

const early = append(...Array.from({ length: 30 }, (_, n) => [run(n), note(n)]).flat());
const executions = early.filter((_, n) => n % 2 === 0);
expectOk(shop.run(['checkpoint', 'ledger.jsonl']));
writeFileSync(shop.path('held.checkpoint'), readFileSync(shop.path('ledger.jsonl.checkpoint')));
append(run('late'));

/** The lots as docs/spec/proofs.md has them, by another way. */
function lowest(ids: readonly string[], root: string, count: number, nonce = ''): string[] {
  const bytes = (digest: string): Buffer => Buffer.from(digest.replace('sha-256:', ''), 'base64url');
  const lots = ids.map((id) => ({
    id,
    lot: createHash('sha256')
      .update('northroot:sample:v1\0')
      .update(bytes(root))
      .update(bytes(id))
      .update(nonce)
      .digest('hex'),
  }));
  lots.sort((a, b) => (a.lot < b.lot ? -1 : 1));
  return lots.slice(0, count).map(({ id }) => id);
}

function report(...args: string[]): Report['selection'] {
  return parse<Report>(expectOk(shop.run(['report', 'ledger.jsonl', '--format', 'json', ...args]))).selection;
}

describe('a sample', () => {
  it.each([
    [1, undefined],
    [7, undefined],
    [7, 'Q1 2026'],
    [29, 'Q2'],
    [30, undefined],
    [1000, 'more than there are'],
  ])(
    'of %i executions (nonce %s) has the lowest lots of those that the checkpoint covers',
    (count, nonce) => {
      const { records, sample } = report(
        ...['--sample', String(count)],
        ...(nonce === undefined ? [] : ['--sample-nonce', nonce]),
      );
      expect(sample).toMatchObject({ tree_size: 62, of: 30 });
      const drawn = sample.executions.map(({ event_id: id }) => id);
      expect(new Set(drawn)).toEqual(new Set(lowest(executions, sample.root, count, nonce)));
      expect(drawn).toEqual(executions.filter((id) => drawn.includes(id)));
      expect(records).toBe(Math.min(count, 30));
    },
  );

  it('is the same by the checkpoint that the user holds, after the ledger has grown and was sealed again', () => {
    const before = report('--sample', '5');
    writeFileSync(shop.path('grown.jsonl'), readFileSync(shop.path('ledger.jsonl')));
    writeFileSync(shop.path('grown.jsonl.key'), readFileSync(shop.path('ledger.jsonl.key')), { mode: 0o600 });
    expectOk(shop.run(['checkpoint', 'grown.jsonl']));
    const draw = (...args: string[]): Report['selection'] =>
      parse<Report>(
        expectOk(shop.run(['report', 'grown.jsonl', '--format', 'json', '--sample', '5', ...args])),
      ).selection;
    expect(draw('--checkpoint', 'held.checkpoint').sample).toEqual(before.sample);
    expect(draw().sample).toMatchObject({ of: 31, tree_size: 64 });
    expect(draw().sample.root).not.toBe(before.sample.root);
  });

  it('is drawn of what other conditions select', () => {
    expect(report('--sample', '5', '--principal', 'agent:nobody').sample).toMatchObject({
      of: 0,
      executions: [],
    });
  });

  it('is proven by a bundle', () => {
    const args = ['--sample', '3', '--sample-nonce', 'x'];
    const run = shop.run(['export', 'ledger.jsonl', '--bundle', 'sample.nrb', ...args]);
    expectOk(run);
    expect(run.stderr).toContain('sample: 3 of 30 executions');
    const { records } = parse<{ records: { selected: number } }>(
      expectOk(shop.run(['verify', 'sample.nrb', '--format', 'json'])),
    );
    expect(records.selected).toBe(3);
  });

  it('is refused where nothing can be drawn by', () => {
    const refused = (...args: string[]): void =>
      expectError(shop.run(['report', 'ledger.jsonl', ...args]), 2, 'USAGE');
    refused('--sample', '0');
    refused('--sample', '10001');
    refused('--sample-nonce', 'x');
    refused('--sample', '1', '--sample-nonce', '');
    refused('--sample', '1', '--sample-nonce', 'ä');
    refused('--sample', '1', '--checkpoint', 'held.checkpoint', '--checkpoint', 'held.checkpoint');
    const input = readFileSync(shop.path('ledger.jsonl'), 'utf8');
    expectError(shop.run(['report', '-', '--sample', '1'], { input }), 2, 'USAGE');
    const both = ['export', 'ledger.jsonl', '--bundle', 'both.nrb', '--sample', '1', '--event', '2'];
    expectError(shop.run(both), 2, 'USAGE');
    writeFileSync(shop.path('unsealed.jsonl'), input.split('\n').slice(0, 40).join('\n') + '\n');
    expectError(shop.run(['report', 'unsealed.jsonl', '--sample', '1']), 2, 'CHECKPOINT_MISSING');
    const held = ['--sample', '1', '--checkpoint', 'held.checkpoint'];
    expectError(shop.run(['report', 'unsealed.jsonl', ...held]), 1, 'TRUNCATED');
  });

  it('refuses options that are none', async () => {
    const source = (): ReturnType<typeof bytesSource> =>
      bytesSource(readFileSync(shop.path('ledger.jsonl')), 'ledger.jsonl');
    const draw = (options: SampleOptions): Promise<unknown> => drawSample(source(), options);
    await expect(draw({ count: 1.5 })).rejects.toThrow(RangeError);
    await expect(draw({ count: 1, nonce: '\n' })).rejects.toThrow(RangeError);
    await expect(draw({ count: '1' as unknown as number })).rejects.toThrow(TypeError);
    await expect(draw({ count: 1, checkpoint: Buffer.from('x') })).rejects.toMatchObject({
      code: 'NOTE_MALFORMED',
    });
  });
});
