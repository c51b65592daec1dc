/** `northroot export`: which records are written, and what is left when it fails. */

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { formatJournalFrame, formatJournalHeader } from '../../src/out/export/journal/journal-file.js';
import type { LedgerStatement } from '../../src/proof/statement/statement.js';
import { action, execution, grant, ndjson } from './drafts.js';
import { expectError, expectOk, parseLines, Workshop, type KeyJson } from './runner.js';

const shop = new Workshop();

function append(...drafts: object[]): string[] {
  const run = shop.run(['append', 'ledger.jsonl', '--origin', 'example.com/export'], {
    input: ndjson(drafts),
  });
  return parseLines<KeyJson & { event_id: string }>(expectOk(run)).map(({ event_id }) => event_id);
}

const [granted = ''] = append(grant());
const [allowed = ''] = append(action(granted));
append(execution(allowed));

interface Envelope {
  readonly payload: string;
  readonly payloadType: string;
}

function envelopes(file: string): { event_type: string; event_id: { b64: string } }[] {
  return parseLines<Envelope>(readFileSync(shop.path(file), 'utf8')).map(
    ({ payload }) => JSON.parse(Buffer.from(payload, 'base64').toString()) as never,
  );
}

describe('export --dsse', () => {
  it('writes every event of the ledger in order', () => {
    expectOk(shop.run(['export', 'ledger.jsonl', '--dsse', 'all.jsonl']));
    expect(envelopes('all.jsonl').map((event) => event.event_type)).toEqual([
      'genesis',
      'authorization',
      'authorization',
      'execution',
    ]);
  });

  it('writes a grant and what is under it, with --grant', () => {
    expectOk(shop.run(['export', 'ledger.jsonl', '--grant', '1', '--dsse', 'grant.jsonl']));
    expect(envelopes('grant.jsonl')).toHaveLength(3);
  });

  it('writes only what the pattern of tools matches, with --tool', () => {
    expectOk(shop.run(['export', 'ledger.jsonl', '--tool', 'no.such.tool', '--dsse', 'none.jsonl']));
    expect(envelopes('none.jsonl')).toEqual([]);
  });
});

describe('export --in-toto', () => {
  it('signs what verification found, whatever is selected', () => {
    expectOk(shop.run(['keygen', '--out', 'auditor.pem']));
    const args = [
      'export',
      'ledger.jsonl',
      '--key',
      'auditor.pem',
      '--tool',
      'none',
      '--in-toto',
      'verified.json',
    ];
    expectOk(shop.run(args));
    const envelope = JSON.parse(readFileSync(shop.path('verified.json'), 'utf8')) as Envelope;
    expect(envelope.payloadType).toBe('application/vnd.in-toto+json');
    const statement = JSON.parse(Buffer.from(envelope.payload, 'base64').toString()) as LedgerStatement;
    expect(statement.subject[0].name).toBe('ledger.jsonl');
    expect(statement.predicate).toMatchObject({ verificationResult: 'PASSED', northroot: { verdict: 'ok' } });
  });

  it('wants a key, and URIs', () => {
    expectError(shop.run(['export', 'ledger.jsonl', '--in-toto', 'no.json']), 2, 'USAGE');
    const args = [
      'export',
      'ledger.jsonl',
      '--key',
      'auditor.pem',
      '--in-toto',
      'no.json',
      '--verifier-id',
      'me',
    ];
    expectError(shop.run(args), 2, 'USAGE');
    expect(existsSync(shop.path('no.json'))).toBe(false);
  });
});

describe('export --receipts', () => {
  const receipts = (folder: string, ...args: string[]) =>
    shop.run(['export', 'ledger.jsonl', '--receipts', folder, ...args]);
  const key = ['--key', 'ledger.jsonl.key'];

  it('writes one of each selected record, which verify-proof takes with the record', () => {
    expectOk(shop.run(['init', 'sealed.jsonl', '--origin', 'example.com/sealed']));
    const noted = shop.run(['append', 'sealed.jsonl', '--principal', 'agent:a1'], {
      input: ndjson([{ event_type: 'x.a' }, { event_type: 'x.b' }]),
    });
    expectOk(noted);
    expectOk(shop.run(['checkpoint', 'sealed.jsonl']));
    const run = shop.run([
      'export',
      'sealed.jsonl',
      '--principal',
      'agent:*',
      '--receipts',
      'deep/receipts',
      '--key',
      'sealed.jsonl.key',
    ]);
    expect(expectOk(run)).toBe('');
    expect(run.stderr).toBe(
      "deep/receipts: 2 receipts in the checkpoint of 3 records; the ledger's verdict is ok\n",
    );
    expect(readdirSync(shop.path('deep/receipts')).sort()).toEqual(['1.cose', '2.cose']);
    shop.write('entry.json', expectOk(shop.run(['show', 'sealed.jsonl', '2', '--format', 'record'])));
    shop.write('log.pub', expectOk(shop.run(['key', 'show', 'sealed.jsonl.key', '--form', 'pem'])));
    expectOk(shop.run(['verify-proof', 'deep/receipts/2.cose', '--key', 'log.pub', '--entry', 'entry.json']));
  });

  it.each<[string, string[], string]>([
    ['without a key', ['none'], 'USAGE'],
    [
      'under two checkpoints',
      ['none', ...key, '--checkpoint', 'sealed.jsonl.checkpoint', '--checkpoint', 'sealed.jsonl.checkpoint'],
      'USAGE',
    ],
    ['to standard output', ['-', ...key], 'USAGE'],
    ['in place of the ledger', ['ledger.jsonl', ...key], 'USAGE'],
    ['of a ledger that nothing seals', ['none', ...key], 'CHECKPOINT_MISSING'],
  ])('makes none %s', (_what, args, code) => {
    if (!existsSync(shop.path('ledger.jsonl.key')))
      expectOk(shop.run(['keygen', '--out', 'ledger.jsonl.key']));
    expectError(receipts(...(args as [string])), 2, code);
    expect(existsSync(shop.path('none'))).toBe(false);
  });
});

describe('export --journal and append of it', () => {
  it('gives the same events again', () => {
    expectOk(shop.run(['export', 'ledger.jsonl', '--journal', 'all.nrj']));
    const run = shop.run(['append', 'ledger.jsonl', 'all.nrj']);
    const results = parseLines<{ seq: number; status: string }>(expectOk(run));
    expect(results.map(({ seq, status }) => [seq, status])).toEqual(
      envelopes('all.jsonl').map((_, seq) => [seq, 'exists']),
    );
  });

  it('appends what others wrote inside an extension event, where that is asked for', () => {
    const content = {
      data: 'x',
      event_type: 'test',
      occurred_at: '2026-01-01T00:00:00Z',
      principal_id: 'service:s',
    };
    const b64 = createHash('sha256')
      .update(`northroot:event:v1\0${JSON.stringify(content)}`)
      .digest('base64url');
    const foreign = { ...content, event_id: { alg: 'sha-256', b64 } };
    const payload = Buffer.from(JSON.stringify(foreign));
    shop.write('foreign.nrj', Buffer.concat([formatJournalHeader(), formatJournalFrame(payload)]));
    expectError(
      shop.run(['append', 'ledger.jsonl', 'foreign.nrj']),
      1,
      'JOURNAL_FOREIGN',
      'foreign.nrj, byte 16',
    );
    expectOk(shop.run(['append', 'ledger.jsonl', 'foreign.nrj', '--foreign-as', 'x.journal']));
    const last = shop.records('ledger.jsonl').at(-1)?.event;
    expect(last).toMatchObject({
      event_type: 'x.journal',
      principal_id: 'service:s',
      journal_event: foreign,
    });
    expectError(shop.run(['append', 'ledger.jsonl', 'foreign.nrj', '--foreign-as', 'journal']), 2, 'USAGE');
  });

  it('keeps what came before a torn frame', () => {
    const whole = readFileSync(shop.path('all.nrj'));
    shop.write('torn.nrj', whole.subarray(0, -1));
    const run = shop.run(['append', 'ledger.jsonl', 'torn.nrj']);
    expect(run.status).toBe(1);
    expect(run.stderr).toContain('JOURNAL_TORN');
    expect(parseLines(run.stdout)).toHaveLength(envelopes('all.jsonl').length - 1);
  });
});

describe('what is made of a ledger', () => {
  if (!existsSync(shop.path('ledger.jsonl.key'))) expectOk(shop.run(['keygen', '--out', 'ledger.jsonl.key']));

  it.each([
    [['export', 'ledger.jsonl', '--dsse', 'ledger.jsonl']],
    [['export', 'ledger.jsonl', '--dsse', 'ledger.jsonl.key']],
    [['export', 'ledger.jsonl', '--html', './ledger.jsonl']],
    [['export', 'ledger.jsonl', '--ocsf', 'twice.json', '--otlp', 'twice.json']],
    [['export', 'ledger.jsonl', '--csv', 'ledger.jsonl']],
    [['export', 'ledger.jsonl', '--csv', '-']],
    [['export', 'ledger.jsonl', '--in-toto', 'ledger.jsonl.key', '--key', 'ledger.jsonl.key']],
    [['report', 'ledger.jsonl', '--output', 'json=ledger.jsonl']],
    [['report', 'ledger.jsonl', '--output', 'json=ledger.jsonl.key']],
    [['verify', 'ledger.jsonl', '--output', 'json=ledger.jsonl.key']],
  ])('is not written over what is read: %j', (args) => {
    const before = readFileSync(shop.path('ledger.jsonl'));
    const key = readFileSync(shop.path('ledger.jsonl.key'));
    expectError(shop.run(args), 2, 'USAGE');
    expect(readFileSync(shop.path('ledger.jsonl')).equals(before)).toBe(true);
    expect(readFileSync(shop.path('ledger.jsonl.key')).equals(key)).toBe(true);
    expect(existsSync(shop.path('twice.json'))).toBe(false);
  });

  it('is not written over a ledger that has the name of one of several files', () => {
    const ledger = readFileSync(shop.path('ledger.jsonl'));
    mkdirSync(shop.path('tables'), { recursive: true });
    const places = [
      ['tables/events.csv', '--csv', 'tables'],
      ['tables/meters.parquet', '--parquet', './tables/'],
      ['costs-of.verification.csv', '--focus', 'costs-of.csv'],
    ] as const;
    for (const [path, kind, target] of places) {
      shop.write(path, ledger);
      expectError(shop.run(['export', path, kind, target]), 2, 'USAGE');
      expect(readFileSync(shop.path(path)).equals(ledger)).toBe(true);
    }
  });

  it('is not written into the folder that is a ledger, nor into a new one in it', () => {
    mkdirSync(shop.path('segments'));
    shop.write('segments/00000000000000000000.jsonl', readFileSync(shop.path('ledger.jsonl')));
    for (const target of ['segments', 'segments/new', './segments/new/and/more', 'new/../segments/more']) {
      expectError(shop.run(['export', 'segments', '--csv', target]), 2, 'USAGE');
      expect(readdirSync(shop.path('segments'))).toEqual(['00000000000000000000.jsonl']);
    }
  });

  it.each([
    ['--ocsf', 'same.out', '--otlp', './same.out'],
    ['--focus', 'same.csv', '--ocsf', 'same.verification.csv'],
    ['--csv', 'same-folder', '--ocsf', 'same-folder/events.csv'],
    ['--csv', '', '--ocsf', 'same.out'],
  ])('is not written twice to one place, nor to none: %j', (...args) => {
    expectError(shop.run(['export', 'ledger.jsonl', ...args]), 2, 'USAGE');
    expect(readdirSync(shop.path('.')).filter((name) => name.startsWith('same'))).toEqual([]);
  });

  it('is written to standard output for -', () => {
    expectOk(shop.run(['export', 'ledger.jsonl', '--dsse', 'as-file.jsonl']));
    const run = shop.run(['export', 'ledger.jsonl', '--dsse', '-']);
    expect(expectOk(run)).toBe(readFileSync(shop.path('as-file.jsonl'), 'utf8'));
    expect(existsSync(shop.path('-'))).toBe(false);
  });
});

describe('export', () => {
  it('wants to be told what to write', () => {
    expectError(shop.run(['export', 'ledger.jsonl']), 2, 'USAGE');
  });

  it.each([
    ['--ocsf', 'x.json', '--event', '1'],
    ['--ocsf', 'x.json', '--key', 'ledger.jsonl.key'],
    ['--dsse', 'x.json', '--complete', '0..1'],
    ['--csv', 'x', '--currency-unit', 'usd=USD'],
    ['--focus', 'x.csv', '--currency-unit', 'usd=USD', 'usd=EUR'],
  ])('takes no option that would change nothing: %j', (...args) => {
    expectError(shop.run(['export', 'ledger.jsonl', ...args]), 2, 'USAGE');
    expect(readdirSync(shop.path('.')).filter((name) => name.startsWith('x'))).toEqual([]);
  });

  it('leaves no folder that it made where the ledger cannot be read', () => {
    mkdirSync(shop.path('kept'));
    const bundle = 'whole.nrb';
    shop.run(['export', 'ledger.jsonl', '--bundle', bundle]);
    for (const folder of ['made/deep', 'kept']) {
      expect(shop.run(['export', bundle, '--csv', folder]).status).toBe(2);
    }
    expect([existsSync(shop.path('made')), existsSync(shop.path('kept'))]).toEqual([false, true]);
  });

  it('warns of a name that the ledger never has, and of an export of nothing', () => {
    const said = (...args: string[]): string => {
      const run = shop.run(['export', 'ledger.jsonl', ...args]);
      expectOk(run);
      return run.stderr;
    };
    const unknown = ['--principal', 'agent:b1'];
    for (const target of ['--csv', '--focus', '--ocsf', '--bundle']) {
      expect(said(target, `nothing${target}`, ...unknown)).toMatch(/warning: .*agent:b1.*agent:a1/);
    }
    expect(said('--dsse', 'nothing', '--tool', 'fs.raed')).toMatch(/warning: .*fs\.raed.*fs\.read/);
    expect(said('--dsse', 'nothing', '--until', '2000-01-01')).toContain('warning: no record');
    expect(said('--dsse', 'nothing', '--principal', 'agent:*')).not.toContain('warning');
  });

  it('leaves nothing where the ledger cannot be read', () => {
    expectError(shop.run(['export', 'missing.jsonl', '--dsse', 'left.jsonl']), 2, 'FILE_NOT_FOUND');
    expect(existsSync(shop.path('left.jsonl'))).toBe(false);
    expect(readdirSync(shop.path('.')).filter((name) => name.includes('.new-'))).toEqual([]);
  });
});

describe('export --csv and --parquet', () => {
  it('write a folder of files each, with the exit status of verify', () => {
    const broken = fileURLToPath(new URL('../../fixtures/broken/meter-cap-exceeded.jsonl', import.meta.url));
    const run = shop.run(['export', broken, '--csv', 'deep/tables', '--parquet', 'deep/tables']);
    expect(run.status).toBe(3);
    expect(readdirSync(shop.path('deep/tables')).sort()).toEqual([
      'events.csv',
      'events.parquet',
      'meters.csv',
      'meters.parquet',
      'verification.csv',
    ]);
    expect(readFileSync(shop.path('deep/tables/verification.csv'), 'utf8')).toContain(
      'verdict,violation\r\n',
    );
    expect(readFileSync(shop.path('deep/tables/events.parquet')).subarray(0, 4).toString()).toBe('PAR1');
  });
});

describe('export --focus', () => {
  it('writes cost rows, and what was verified beside them', () => {
    expectOk(shop.run(['export', 'ledger.jsonl', '--focus', 'costs.csv', '--currency-unit', 'calls=EUR']));
    const [names, ...rows] = readFileSync(shop.path('costs.csv'), 'utf8').trimEnd().split('\r\n');
    expect(names).toMatch(/^BilledCost,BillingAccountId,/);
    expect(rows.map((row) => row.split(',').slice(0, 4))).toEqual([['1', 'example.com/export', '', 'EUR']]);
    expect(readFileSync(shop.path('costs.verification.csv'), 'utf8')).toContain('verdict,ok\r\n');
  });

  it('refuses a currency that is none', () => {
    const args = ['export', 'ledger.jsonl', '--focus', 'no.csv', '--currency-unit'];
    for (const pair of ['usd=ZZZ', 'usd', 'USD=usd']) expectError(shop.run([...args, pair]), 2, 'USAGE');
    expect(existsSync(shop.path('no.csv'))).toBe(false);
  });
});

describe('export --ocsf and --otlp', () => {
  it('write events and spans, both in one run', () => {
    const run = shop.run(['export', 'ledger.jsonl', '--ocsf', 'events.ndjson', '--otlp', 'spans.json']);
    expectOk(run);
    expect(parseLines(readFileSync(shop.path('events.ndjson'), 'utf8'))).toHaveLength(6);
    expect(JSON.parse(readFileSync(shop.path('spans.json'), 'utf8'))).toHaveProperty('resourceSpans');
    expect(run.stderr).toContain('3 spans; 2 records left out: no span');
  });
});
