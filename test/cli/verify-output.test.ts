/** `northroot verify --output`: many reports of one run, each whole or not at all. */

import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Report } from '../../src/rules/report/report.js';
import { ndjson, note } from './drafts.js';
import { times } from '../slow.js';
import { expectError, expectOk, parse, parseLines, Workshop, type Run } from './runner.js';

const shop = new Workshop();
expectOk(
  shop.run(['append', 'good.jsonl', '--origin', 'example.com/output'], {
    input: ndjson([1, 2, 3].map((n) => note(n))),
  }),
);
shop.write('bad.jsonl', shop.read('good.jsonl').replace('"n":2', '"n":7'));

const verify = (...args: string[]): Run => shop.run(['verify', ...args]);
const litter = (): string[] => readdirSync(shop.folder).filter((name) => name.includes('.new-'));

it('writes JSON as if all at once, however many findings there are', () => {
  shop.write('noise.jsonl', 'x\n'.repeat(2_000));
  for (const [ledger, count] of [
    ['good.jsonl', '1000'],
    ['bad.jsonl', '1'],
    ['noise.jsonl', '2000'],
    ['noise.jsonl', '0'],
  ] as const) {
    const { stdout } = shop.run(['verify', ledger, '--format', 'json', '--max-findings', count]);
    expect(stdout).toBe(`${JSON.stringify(JSON.parse(stdout), undefined, 2)}\n`);
  }
});

const FORMATS = ['text', 'json', 'ndjson', 'sarif', 'junit', 'github', 'gitlab', 'markdown', 'brief'];

describe('verify --output', () => {
  it('writes each format as --format does, with one exit status', () => {
    const outputs = FORMATS.flatMap((format) => ['--output', `${format}=all.${format}`]);
    const run = verify('bad.jsonl', '--format', 'brief', ...outputs);
    expect([run.status, run.stderr, run.stdout]).toEqual([1, '', shop.read('all.brief')]);
    for (const format of FORMATS) {
      const alone = verify('bad.jsonl', '--format', format);
      expect([format, alone.status, alone.stdout]).toEqual([format, 1, shop.read(`all.${format}`)]);
    }
    expect(litter()).toEqual([]);
  });

  it('writes to standard output in place of --format, once', () => {
    const run = verify('bad.jsonl', '--output', 'brief=-');
    expect(run.stdout).toBe(verify('bad.jsonl', '--format', 'brief').stdout);
    expectError(verify('bad.jsonl', '--output', 'brief=-', '--output', 'json=-'), 2, 'USAGE');
    expectError(verify('bad.jsonl', '--output', 'brief=-', '--format', 'json'), 2, 'USAGE');
  });

  it('refuses an anchor that is no file', () => {
    expectError(verify('bad.jsonl', '--sarif-anchor', ''), 2, 'USAGE');
  });

  it('says of what stands beside a ledger that it is not replaced', () => {
    for (const end of ['key', 'checkpoint', 'index']) {
      const { status, stderr } = verify('bad.jsonl', '--output', `brief=bad.jsonl.${end}`);
      expect([status, stderr.includes('read by')]).toEqual([2, false]);
    }
    expect(verify('bad.jsonl', '--output', 'brief=bad.jsonl').stderr).toContain('read by');
  });

  it('writes findings one by one as it lists them at once', () => {
    const noise = 'x\n'.repeat(1_500);
    const args = ['verify', '-', '--format', 'brief', '--max-findings', '3000', '--output'];
    expect(shop.run([...args, 'sarif=spooled.sarif'], { input: noise }).status).toBe(1);
    expect(shop.run([...args, 'sarif=held.sarif', '--output', 'text=t'], { input: noise }).status).toBe(1);
    expect(shop.read('spooled.sarif')).toBe(shop.read('held.sarif'));
    expect(shop.read('spooled.sarif').match(/"ruleIndex"/g)).toHaveLength(1_500);
  });

  it('takes no more memory for more findings where they need not be held at once', () => {
    const count = times(100_000, 1_000_000);
    const args = ['verify', '-', '--format', 'brief', '--max-findings', String(count)];
    const env = { NODE_OPTIONS: '--max-old-space-size=48' };
    const run = shop.run([...args, '--output', 'sarif=many.sarif'], { input: 'x\n'.repeat(count), env });
    expect([run.status, run.stderr]).toEqual([1, '']);
    const sarif = shop.read('many.sarif');
    expect(sarif.match(/"ruleIndex"/g)).toHaveLength(Math.min(count, 500_000));
    expect(sarif.includes('more findings not listed')).toBe(count > 500_000);
  });

  it.each([
    ['unknown=x', 'USAGE'],
    ['json=', 'USAGE'],
    ['x.json', 'USAGE'],
    ['json=no/such/folder/x.json', 'FILE_NOT_FOUND'],
    ['json=/dev/null', 'USAGE'],
    ['json=folder', 'USAGE'],
    ['json=good.jsonl', 'USAGE'],
    ['json=./link.jsonl', 'USAGE'],
  ])('refuses %s before it verifies', (output, code) => {
    if (!existsSync(shop.path('folder'))) mkdirSync(shop.path('folder'));
    if (!existsSync(shop.path('link.jsonl'))) symlinkSync('good.jsonl', shop.path('link.jsonl'));
    const before = shop.read('good.jsonl');
    expectError(verify('good.jsonl', '--output', 'text=first', '--output', output), 2, code);
    expect([existsSync(shop.path('first')), shop.read('good.jsonl'), litter()]).toEqual([false, before, []]);
  });

  it('refuses one path for two reports', () => {
    mkdirSync(shop.path('here'));
    symlinkSync('.', shop.path('here/again'));
    for (const [one, other] of [
      ['x', 'x'],
      ['x', './x'],
      ['here/x', 'here/again/x'],
    ]) {
      const outputs = ['--output', `json=${one}`, '--output', `text=${other}`];
      expectError(verify('good.jsonl', ...outputs), 2, 'USAGE');
    }
    expectError(verify('good.jsonl', '--state', 'new.state', '--output', 'json=./new.state'), 2, 'USAGE');
    expect([existsSync(shop.path('x')), existsSync(shop.path('new.state')), litter()]).toEqual([
      false,
      false,
      [],
    ]);
  });

  it('writes nothing anywhere in a ledger that is a folder', () => {
    mkdirSync(shop.path('segments/deep/deeper'), { recursive: true });
    writeFileSync(shop.path('segments/00000000000000000000.jsonl'), shop.read('good.jsonl'));
    symlinkSync('segments/deep', shop.path('aside'));
    for (const path of ['segments/x', 'segments/deep/x', 'segments/deep/deeper/x', 'aside/deeper/x']) {
      expectError(verify('segments', '--output', `json=${path}`), 2, 'USAGE');
    }
    expect(verify('segments', '--output', 'json=beside.json').status).toBe(0);
  });

  it('leaves what was there when the ledger cannot be read', () => {
    writeFileSync(shop.path('before.json'), 'before');
    expectError(verify('missing.jsonl', '--output', 'json=before.json'), 2, 'FILE_NOT_FOUND');
    shop.write('key.pem', '-----BEGIN PRIVATE KEY-----\n');
    expectError(verify('key.pem', '--output', 'json=before.json'), 2, 'NOT_A_LEDGER');
    expect([shop.read('before.json'), litter()]).toEqual(['before', []]);
  });
});

describe('verify --baseline', () => {
  it('ends with 0 when all is known, in every format, and the verdict stays', () => {
    expect(verify('bad.jsonl', '--output', 'json=base.json').status).toBe(1);
    const outputs = FORMATS.flatMap((format) => ['--output', `${format}=known.${format}`]);
    const run = verify('bad.jsonl', '--baseline', 'base.json', ...outputs);
    expect([run.status, run.stderr]).toEqual([0, '']);
    const { findings_total: total } = parse<Report>(shop.read('base.json'));
    expect(parse<Report>(shop.read('known.json'))).toMatchObject({
      verdict: 'invalid',
      findings: [],
      baseline: { known: total, new: 0, gone: 0, unlisted: 0 },
    });
    expect(shop.read('known.junit')).toContain('failures="0"');
    expect(shop.read('known.github')).not.toContain('::error');
    expect(shop.lines('known.ndjson')).toHaveLength(1);
    const unchanged = shop.read('known.sarif').match(/"baselineState":"unchanged"/g);
    expect([unchanged?.length, shop.read('known.sarif').includes('"exitCode":0')]).toEqual([total, true]);
    for (const format of ['text', 'brief', 'markdown'])
      expect(shop.read(`known.${format}`)).toContain('invalid');
  });

  it('speaks of what is new when the ledger goes on', () => {
    const grown = `${shop.read('bad.jsonl')}${shop.lines('good.jsonl').at(-1)}\n`;
    shop.write('grown.jsonl', grown);
    const run = verify('grown.jsonl', '--baseline', 'base.json', '--format', 'ndjson');
    expect(run.status).toBe(1);
    const found = parseLines<{ code?: string; at?: { line: number } }>(run.stdout).slice(0, -1);
    expect(found.map(({ at }) => at?.line)).toEqual(found.map(() => 5));
    expect(found.map(({ code }) => code)).toContain('EVENT_DUPLICATE');
  });

  it('says when it was cut', () => {
    expect(verify('bad.jsonl', '--max-findings', '1', '--output', 'json=cut.json').status).toBe(1);
    const run = verify('bad.jsonl', '--baseline', 'cut.json', '--format', 'brief');
    expect([run.status, run.stderr]).toEqual([1, expect.stringContaining('was cut')]);
  });

  it('goes with no filter, and is not written over', () => {
    expectError(verify('bad.jsonl', '--baseline', 'base.json', '--since', '7d'), 2, 'USAGE');
    expectError(verify('bad.jsonl', '--baseline', 'base.json', '--output', 'json=base.json'), 2, 'USAGE');
    expectError(verify('bad.jsonl', '--baseline', 'bad.jsonl'), 2, 'BASELINE_MALFORMED');
    expectError(verify('bad.jsonl', '--baseline', 'none.json'), 2, 'FILE_NOT_FOUND');
  });

  it('goes with --state, whatever that has kept', () => {
    for (const round of [1, 2]) {
      const run = verify('good.jsonl', '--baseline', 'base.json', '--state', 's.state', '--format', 'json');
      expect([round, run.status]).toEqual([round, 0]);
      expect(parse<Report>(run.stdout).baseline).toMatchObject({ known: 0, new: 0 });
    }
  });
});
