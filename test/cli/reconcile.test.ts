/** `northroot reconcile` on the command line: sources and their hosts, outputs, exit statuses, wrong use. */

import { mkdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hasRecordings, recordedText } from '../hosts/recorded.js';
import { expectError, expectOk, parse, Workshop } from './runner.js';

const HTTP = 'cgf/run/driver/http.jsonl';
const ADAPTER = 'cgf/run/driver/openclaw-v02.live.events.jsonl';

describe.skipIf(!hasRecordings)('reconcile', () => {
  const shop = new Workshop();
  shop.write('http.jsonl', hasRecordings ? recordedText(HTTP) : '');
  mkdirSync(shop.path('logs'));
  shop.write('logs/adapter.jsonl', hasRecordings ? recordedText(ADAPTER) : '');
  shop.write('bad.json', '{"expect_version":"1","tool":[]}');
  shop.write('promised.json', '{"expect_version":"1","tools":[{"tool":"search_web"},{"tool":"nothing"}]}');
  shop.write('note.txt', 'a note\n');
  if (hasRecordings)
    expectOk(
      shop.run(['import', '--from', 'cgf', '--ledger', 'l.jsonl', '--create', '--unsigned', 'http.jsonl']),
    );

  it('says of the file that was imported that it is the same', () => {
    const run = shop.run([
      'reconcile',
      'l.jsonl',
      'cgf=http.jsonl',
      '--output',
      'json=r.json',
      '--output',
      'markdown=r.md',
    ]);
    expect(run.status).toBe(0);
    expect(run.stdout).toContain('did not happen');
    expect(parse<object>(shop.read('r.json'))).toMatchObject({
      verdict: 'ok',
      calls: { total: 13, same_file: 13, corroborated: 0 },
      by_code: { SAME_FILE: 1 },
    });
    expect(shop.read('r.md')).toContain('Each call');
  });

  it('corroborates it by what the other side logged, and recognises a host', () => {
    const run = shop.run(['reconcile', 'l.jsonl', 'logs', '--format', 'json']);
    expect(run.status).toBe(1);
    expect(parse<object>(run.stdout)).toMatchObject({
      calls: { corroborated: 7, same_file: 0, ledger_only: 5, source_only: 1, contradicted: 0 },
      by_code: { EXECUTION_NOT_IN_LEDGER: 1, NOT_IN_SOURCES: 5 },
    });
    expect(shop.run(['reconcile', 'l.jsonl', 'logs', '--from', 'cgf', '--allow-missing']).status).toBe(0);
  });

  it('holds both against what was promised', () => {
    const run = shop.run([
      'reconcile',
      'l.jsonl',
      'cgf=http.jsonl',
      '--expect',
      'promised.json',
      '--format',
      'json',
    ]);
    expect(run.status).toBe(1);
    expect(parse<{ by_code: object }>(run.stdout).by_code).toMatchObject({ TOOL_MISSING: 1 });
  });

  it.each([
    ['HOST_UNKNOWN', ['note.txt']],
    ['EXPECTATION_INVALID', ['cgf=http.jsonl', '--expect', 'bad.json']],
    ['USAGE', ['cgf=http.jsonl', '--output', 'json=http.jsonl']],
    ['USAGE', ['cgf=http.jsonl', '--output', 'html=r.html']],
    ['USAGE', ['cgf=http.jsonl', '--aid', 'nothing=note.txt']],
    ['USAGE', ['cgf=-', 'cgf=-']],
    ['USAGE', []],
    ['FILE_NOT_FOUND', ['cgf=missing.jsonl']],
  ])('refuses with %s: %j', (code, args) => {
    expectError(shop.run(['reconcile', 'l.jsonl', ...args]), 2, code);
  });
});

it.each([
  ['hooks.jsonl', 'l.jsonl'],
  ['claude-code=hooks.jsonl', 'l.jsonl'],
  ['hooks.jsonl', 'claude-code=l.jsonl'],
])('says that the ledger comes first: %s %s', (first, second) => {
  const shop = new Workshop();
  const hooks = new URL('../hosts/claude-code/samples/hooks.jsonl', import.meta.url);
  shop.write('hooks.jsonl', readFileSync(hooks, 'utf8'));
  expectOk(
    shop.run([
      'import',
      '--from',
      'claude-code',
      '--ledger',
      'l.jsonl',
      '--create',
      '--unsigned',
      'hooks.jsonl',
    ]),
  );
  const run = shop.run(['reconcile', first, second]);
  expect([run.status, run.stdout]).toEqual([2, '']);
  expect(run.stderr).toContain('the ledger comes first');
  const without = shop.run(['reconcile', 'hooks.jsonl', 'hooks.jsonl']);
  expect([without.status, without.stdout]).toEqual([2, '']);
  expect(without.stderr).toContain('the ledger comes first');
});

it('does not hold against a transcript that the decisions are in the ledger only', () => {
  const shop = new Workshop();
  for (const name of ['hooks.jsonl', 'transcript.jsonl'])
    shop.write(name, readFileSync(new URL(`../hosts/claude-code/samples/${name}`, import.meta.url), 'utf8'));
  const into = ['--ledger', 'l.jsonl', '--create', '--unsigned'];
  expectOk(shop.run(['import', '--from', 'claude-code', ...into, 'hooks.jsonl']));
  const reconcile = (): object =>
    parse<object>(
      shop.run(['reconcile', 'l.jsonl', 'transcript.jsonl', '--allow-missing', '--format', 'json']).stdout,
    );
  expect(reconcile()).toMatchObject({
    verdict: 'ok',
    calls: { corroborated: 5, contradicted: 0, source_only: 6 },
    sources: [{ verdict: 'ok' }],
  });
  // One more call that nobody is known to have allowed.
  const ran = [
    { type: 'tool_use', id: 'toolu_x', name: 'Bash', input: { command: 'id' } },
    { type: 'tool_result', tool_use_id: 'toolu_x', content: 'root' },
  ].map((block, index) => ({
    type: block.type === 'tool_use' ? 'assistant' : 'user',
    uuid: `x${index}`,
    sessionId: 's',
    timestamp: '2026-11-20T09:01:00Z',
    message: { content: [block] },
  }));
  shop.write(
    'transcript.jsonl',
    `${shop.read('transcript.jsonl')}${ran.map((each) => `${JSON.stringify(each)}\n`).join('')}`,
  );
  expect(reconcile()).toMatchObject({ verdict: 'invalid', sources: [{ verdict: 'invalid' }] });
});

it('knows what an import kept as evidence for what the file says', () => {
  const shop = new Workshop();
  for (const name of ['hooks.jsonl', 'transcript.jsonl'])
    shop.write(name, readFileSync(new URL(`../hosts/claude-code/samples/${name}`, import.meta.url), 'utf8'));
  const files = ['hooks.jsonl', 'transcript.jsonl'];
  const into = ['--ledger', 'l.jsonl', '--create', '--unsigned'];
  expectOk(shop.run(['import', '--from', 'claude-code', ...into, ...files]));
  const reconcile = (ledger: string): object =>
    parse<object>(shop.run(['reconcile', ledger, ...files, '--format', 'json']).stdout);
  expect(reconcile('l.jsonl')).toMatchObject({
    verdict: 'ok',
    calls: { same_file: 11, source_only: 0, corroborated: 0 },
  });
  // Without the evidence of the transcript its model calls are nowhere in the ledger.
  expectOk(
    shop.run([
      'import',
      '--from',
      'claude-code',
      '--ledger',
      'h.jsonl',
      '--create',
      '--unsigned',
      'hooks.jsonl',
    ]),
  );
  expect(reconcile('h.jsonl')).toMatchObject({ verdict: 'invalid', calls: { source_only: 6 } });
});
