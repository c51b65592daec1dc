/** `northroot import` on the command line: which files it reads, and what it says besides the report. */

import { mkdirSync, symlinkSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hasRecordings, recordedText } from '../hosts/recorded.js';
import { expectError, expectOk, parse, Workshop } from './runner.js';

interface Report {
  readonly files: readonly { readonly name: string }[];
  readonly items: { readonly items: number };
  readonly events: { readonly appended: number };
  readonly imported_authority: object;
}

describe.skipIf(!hasRecordings)('import', () => {
  const shop = new Workshop();
  mkdirSync(shop.path('logs'));
  const log = hasRecordings ? recordedText('cgf/run/driver/openclaw-v02.live.events.jsonl') : '';
  shop.write('logs/a.jsonl', log);
  const ledger = ['--ledger', 'logs/l.jsonl', '--format', 'json'];

  it('reads no file twice, and not the ledger that stands among the logs, nor its key', () => {
    const made = shop.run(['import', '--from', 'cgf', '--create', ...ledger, 'logs', 'logs/../logs/a.jsonl']);
    expectOk(made);
    expect(made.stderr).not.toContain('Warning');
    const again = shop.run(['import', '--from', 'cgf', ...ledger, 'logs']);
    expectOk(again);
    const [first, second] = [parse<Report>(made.stdout), parse<Report>(again.stdout)];
    expect(first.files.map(({ name }) => name)).toEqual(['logs/a.jsonl']);
    expect(second.files).toEqual(first.files);
    expect([first.items.items, second.items.items]).toEqual([27, 27]);
    expect([first.events.appended, second.events.appended]).toEqual([36, 0]);
  });

  it('says where what it imports could be taken for authority of the ledger', () => {
    const path = ['--ledger', 'granted.jsonl'];
    expectOk(shop.run(['init', 'granted.jsonl', '--origin', 'example.com/granted']));
    const alone = shop.run(['import', '--from', 'cgf', ...path, '--check', 'logs/a.jsonl']);
    const grant = ['--to', 'agent:a1', '--tool', 'fs.*', '--cap', 'calls=1'];
    expectOk(shop.run(['grant', 'granted.jsonl', ...grant]));
    const beside = shop.run(['import', '--from', 'cgf', ...path, '--format', 'json', 'logs/a.jsonl']);
    expect(alone.stderr).not.toContain('IMPORTED_AUTHORITY');
    expect(beside.stderr).toContain('IMPORTED_AUTHORITY');
    expect(parse<Report>(beside.stdout).imported_authority).toMatchObject({ grants: 0, own_grants: 1 });
  });

  it('lists a file without items, and names what it leaves out of a folder', () => {
    mkdirSync(shop.path('more/sub'), { recursive: true });
    shop.write('more/a.jsonl', log);
    shop.write('more/empty.jsonl', '');
    symlinkSync('a.jsonl', shop.path('more/latest.jsonl'));
    const run = shop.run(['import', '--from', 'cgf', '--check', '--format', 'json', 'more']);
    expectOk(run);
    expect(parse<Report>(run.stdout).files).toMatchObject([
      { name: 'more/a.jsonl', items: 27 },
      { name: 'more/empty.jsonl', items: 0 },
    ]);
    expect(run.stderr).toContain('more/latest.jsonl (a link), more/sub (a folder)');
    expect(run.stderr).not.toContain('a.jsonl (');
    const empty = shop.run(['import', '--from', 'cgf', '--check', 'more/empty.jsonl']);
    expect([empty.status, empty.stdout.split('\n')[0]]).toEqual([
      2,
      'Import from CGF HostAdapter: more/empty.jsonl',
    ]);
  });
});

describe('files of absolute and relative paths', () => {
  const shop = new Workshop();
  const line = { type: 'user', message: { role: 'user', content: 'hi' }, uuid: 'u1', sessionId: 's' };
  const text = `${JSON.stringify({ ...line, parentUuid: null, timestamp: '2026-03-01T10:00:00Z' })}\n`;
  for (const name of ['a.jsonl', 'b.jsonl']) shop.write(name, text);
  const absolute = shop.path('a.jsonl');

  it.each([
    ['the absolute one first', [absolute, 'b.jsonl']],
    ['the relative one first', ['b.jsonl', absolute]],
    ['no folder in common but the root', ['/dev/null', absolute]],
  ])('are read, and listed by their names: %s', async (_, files) => {
    const running = shop.start(['import', '--from', 'claude-code', '--check', ...files]);
    const late = setTimeout(() => running.kill('SIGKILL'), 30_000);
    const { status, stdout } = await running.end();
    clearTimeout(late);
    expect(status).toBe(0);
    for (const name of files) expect(stdout).toContain(name.slice(name.lastIndexOf('/') + 1));
  });
});

describe('what the files are', () => {
  const shop = new Workshop();
  shop.write('a.jsonl', '{}\n');

  it.each([
    ['import', '--from', ['cgf', 'claude-code', 'litellm', 'otlp']],
    ['check', '--as', ['openclaw-pipeline', 'episode']],
  ])('is asked for by %s, with all that there is', (command, option, names) => {
    const run = shop.run([command, 'a.jsonl']);
    expectError(run, 2, 'USAGE');
    for (const text of [option, ...names]) expect(run.stderr).toContain(text);
  });

  it('takes the zone of times without an offset, and refuses what is none', () => {
    const line = '{"type":"session","version":3,"id":"s","timestamp":"2026-02-25T16:09:44","cwd":"/"}\n';
    shop.write('s.jsonl', line);
    const args = ['import', '--from', 'openclaw', 's.jsonl'];
    expect(expectOk(shop.run([...args, '--time-zone', '+02:00']))).toContain('2026-02-25T14:09:44Z');
    const without = shop.run(args);
    expect(without).toMatchObject({ status: 1, stdout: '' });
    expect(without.stderr).toContain('--time-zone');
    expect(shop.run([...args, '--time-zone', 'Mars/Base'])).toMatchObject({ status: 2, stdout: '' });
  });
});
