/** `export --bundle`, `verify` of a bundle, and `disclose`. */

import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { action, execution, grant, ndjson, note } from './drafts.js';
import { expectError, expectOk, parse, parseLines, Workshop, type KeyJson } from './runner.js';

const shop = new Workshop();

function append(...drafts: object[]): string[] {
  const run = shop.run(['append', 'ledger.jsonl', '--origin', 'example.com/bundle'], {
    input: ndjson(drafts),
  });
  return parseLines<KeyJson & { event_id: string }>(expectOk(run)).map(({ event_id }) => event_id);
}

const [granted = ''] = append(grant());
const [allowed = ''] = append(action(granted));
append(execution(allowed), note(1), note(2));
expectOk(shop.run(['checkpoint', 'ledger.jsonl']));
append(note(3));

interface Result {
  readonly verdict: string;
  readonly scope: string;
  readonly findings_total: number;
  readonly records: { readonly selected: number; readonly beyond: number; readonly hashes_only: number };
  readonly stretches: readonly { readonly claim: string }[];
  readonly bundle: { readonly exporter?: { readonly known_by: string } };
}

function verify(file: string, ...more: string[]): Result {
  return parse<Result>(expectOk(shop.run(['verify', file, '--format', 'json', ...more])));
}

function exportTo(file: string, ...more: string[]): string {
  const run = shop.run(['export', 'ledger.jsonl', '--bundle', file, ...more]);
  expectOk(run);
  return run.stderr;
}

describe('export --bundle', () => {
  it('writes a ledger up to its last checkpoint, and says what it leaves out', () => {
    expect(exportTo('whole.nrb')).toContain('2 selected records left out');
    expect(verify('whole.nrb')).toMatchObject({ verdict: 'ok', scope: 'whole', records: { beyond: 2 } });
  });

  it('writes a grant and what is under it, signed', () => {
    exportTo('grant.nrb', '--grant', '1', '--key', 'ledger.jsonl.key');
    expect(verify('grant.nrb')).toMatchObject({
      verdict: 'ok',
      scope: 'selection',
      records: { selected: 3 },
      bundle: { exporter: { known_by: 'ledger' } },
    });
  });

  it('writes named events and stretches', () => {
    exportTo('events.nrb', '--event', '3', '--event', granted);
    expect(verify('events.nrb').records.selected).toBe(2);
    exportTo('stretch.nrb', '--complete', '2..4', '--tool', 'fs.read');
    expect(verify('stretch.nrb')).toMatchObject({ stretches: [{ claim: 'positions' }] });
    exportTo('all.nrb', '--complete', '2..4');
    expect(verify('all.nrb')).toMatchObject({
      stretches: [{ claim: 'complete' }],
      records: { hashes_only: 0 },
    });
  });

  it('refuses what no checkpoint covers, and leaves nothing', () => {
    const run = (...args: string[]) => shop.run(['export', 'ledger.jsonl', '--bundle', 'no.nrb', ...args]);
    expectError(run('--complete', '2..99'), 2, 'CHECKPOINT_MISSING');
    expectError(run('--event', '7'), 2, 'CHECKPOINT_MISSING');
    expect(run('--complete', '4..2').status).toBe(2);
    expectError(shop.run(['verify', 'no.nrb']), 2, 'FILE_NOT_FOUND');
  });
});

describe('verify', () => {
  it('knows a bundle by its first bytes, whatever it is called, and on standard input', () => {
    exportTo('named.jsonl', '--grant', '1');
    expect(verify('named.jsonl').scope).toBe('selection');
    const input = readFileSync(shop.path('named.jsonl'));
    const text = expectOk(shop.run(['verify', '-'], { input }));
    expect(text.split('\n')[0]).toContain('selection');
  });

  it('ends with 1 for a broken bundle, and with 2 for options that are of ledgers', () => {
    exportTo('broken.nrb');
    const bytes = readFileSync(shop.path('broken.nrb'));
    bytes[bytes.length - 100] = bytes[bytes.length - 100] ^ 1;
    writeFileSync(shop.path('broken.nrb'), bytes);
    expect(shop.run(['verify', 'broken.nrb']).status).toBe(1);
    expectError(shop.run(['verify', 'broken.nrb', '--since', '2026-01-01']), 2, 'USAGE');
    expectError(shop.run(['verify', 'broken.nrb', '--new']), 2, 'USAGE');
    expectError(shop.run(['verify', 'broken.nrb', '--format', 'sarif']), 2, 'USAGE');
  });

  it('lists as many findings as --max-findings says, and counts all', () => {
    append({ event_type: 'foo.bar', principal_id: 'agent:a1' });
    expectOk(shop.run(['checkpoint', 'ledger.jsonl']));
    exportTo('found.nrb');
    const { findings_total: total } = verify('found.nrb');
    expect(total).toBeGreaterThan(0);
    expect(verify('found.nrb', '--max-findings', '0')).toMatchObject({
      findings: [],
      findings_total: total,
      report: { findings: [] },
    });
  });
});

describe('disclose', () => {
  writeFileSync(shop.path('other.txt'), 'other');

  it('wants to be told what to do, and a bundle to attach to', () => {
    expectError(shop.run(['disclose', 'ledger.jsonl']), 2, 'USAGE');
    expectError(shop.run(['disclose', 'ledger.jsonl', '--content', 'other.txt']), 2, 'USAGE');
    expectError(
      shop.run(['disclose', 'ledger.jsonl', '--content', 'other.txt', '--out', 'x']),
      2,
      'NOT_A_BUNDLE',
    );
    const twice = shop.run(['disclose', '-', '--check', '-'], { input: 'other' });
    expectError(twice, 2, 'USAGE');
  });

  it('says with 1 that no record names a file, and attaches none', () => {
    exportTo('plain.nrb');
    for (const path of ['ledger.jsonl', 'plain.nrb']) {
      expect(shop.run(['disclose', path, '--check', 'other.txt']).status).toBe(1);
    }
    const run = shop.run(['disclose', 'plain.nrb', '--content', 'other.txt', '--out', 'x.nrb']);
    expectError(run, 2, 'CONTENT_NOT_NAMED');
  });

  it('attaches what a record names', () => {
    writeFileSync(shop.path('named.txt'), 'named');
    const digest = expectOk(shop.run(['digest', 'named.txt']))
      .trim()
      .split(/\s/)[0];
    const shown = { event_type: 'x.note', principal_id: 'agent:a1', context_digest: digest };
    append(shown);
    expectOk(shop.run(['checkpoint', 'ledger.jsonl']));
    exportTo('more.nrb');
    expectOk(shop.run(['disclose', 'more.nrb', '--content', 'named.txt', '--out', 'shown.nrb']));
    expect(expectOk(shop.run(['disclose', 'shown.nrb', '--check', 'named.txt']))).toContain('named once');
    expect(verify('shown.nrb')).toMatchObject({ verdict: 'ok', contents: [{ size_bytes: 5 }] });
  });
});
