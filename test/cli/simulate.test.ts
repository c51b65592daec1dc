/** `northroot simulate` and `northroot draft-grant` on the command line: sources, outputs, exit statuses, wrong use. */

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { SimulationReport } from '../../src/format/schema/generated/types.js';
import { VERSION } from '../../src/base/version.js';
import { execution, grant, unsigned } from '../docs/grant-kit.js';
import { hasRecordings, recordedText } from '../hosts/recorded.js';
import { validatorOf } from '../schema/ajv.js';
import { expectError, expectOk, parse, Workshop } from './runner.js';

const int = (value: number): object => ({ t: 'int', v: `${value}` });
const capped = (calls: number, members: object = {}): string =>
  JSON.stringify({ allowed_tools: ['*'], meter_caps: [{ unit: 'calls', amount: int(calls) }], ...members });

const shop = new Workshop();
for (const [name, path] of [
  ['claude-code', '../hosts/claude-code/samples/transcript.jsonl'],
  ['codex', '../hosts/codex/samples/rollout.jsonl'],
] as const)
  shop.write(`${name}.jsonl`, readFileSync(new URL(path, import.meta.url), 'utf8'));
shop.write('one.json', capped(1));
shop.write('bad.json', '{"allowed_tools":["*"],"meter_caps":[],"more":1}');
shop.write('twice.json', '{"allowed_tools":["*"],"allowed_tools":["*"]}');
shop.write('text.json', 'no JSON \u001b[31m');
shop.write('ask.json', capped(9, { approvals: [{ tools: ['*'], approvers: ['human:*'] }] }));
expectOk(shop.run(['init', 'l.jsonl']));
expectOk(
  shop.run(['grant', 'l.jsonl', '--to', 'agent:a1', '--tool', 'sh.*', '--cap', 'calls=9', '--cap', 'usd=9']),
);
for (const usd of ['0.5', '0.75'])
  expectOk(
    shop.run([
      ...['record', 'l.jsonl', '--auth', '1', '--tool', 'sh.x', '--outcome', 'success'],
      '--meter',
      `usd=${usd},calls=1`,
    ]),
  );
const reserve = ['--principal', 'agent:a1', '--tool', 'sh.x', '--reserve', 'calls=1'];
expectOk(shop.run(['authorize', 'l.jsonl', ...reserve, '--', 'true']));
expectOk(shop.run(['record', 'l.jsonl', '--auth', '4', '--abandon']));

describe('simulate', () => {
  it('says what of a ledger a grant would have denied, and writes nothing', () => {
    const files = readdirSync(shop.path('.')).sort();
    const before = shop.read('l.jsonl');
    const run = shop.run(['simulate', 'l.jsonl', '--grant', 'one.json', '--format', 'json']);
    expect(run.status).toBe(3);
    expect(parse<SimulationReport>(run.stdout)).toEqual({
      simulation_version: '1',
      tool: { name: 'northroot', version: VERSION },
      calls: 2,
      allowed: 1,
      need_approval: 0,
      denied: { RESERVATION_OVER_CAP: 1 },
      denials: [
        {
          seq: 3,
          file: expect.stringMatching(/l\.jsonl$/) as string,
          line: 4,
          tool_name: 'sh.x',
          started_at: expect.any(String) as string,
          code: 'RESERVATION_OVER_CAP',
          unit: 'calls',
          limit: int(1),
          used: int(1),
          left: int(0),
        },
      ],
      remaining: { calls: { cap: '1', used: '1', reserved: '0', left: '0' } },
    });
    expect(shop.read('l.jsonl')).toBe(before);
    expect(readdirSync(shop.path('.')).sort()).toEqual(files);
  });

  it('shows the same as text', () => {
    const { status, stdout } = shop.run(['simulate', 'l.jsonl', '--grant', 'one.json']);
    expect(status).toBe(3);
    expect(stdout).toMatch(/^ +seq 3 \S+ sh\.x RESERVATION_OVER_CAP/m);
  });

  it('takes only calls of one principal, and warns if there are none', () => {
    const args = ['simulate', 'l.jsonl', '--grant', 'one.json', '--principal'];
    expect(shop.run([...args, 'agent:a1']).status).toBe(3);
    const run = shop.run([...args, 'agent:a2']);
    expect(run.status).toBe(0);
    expect(run.stderr).toMatch(/^warning: /m);
  });

  it('reads a grant from a record, and bounds from standard input', () => {
    const record = shop.read('l.jsonl').split('\n')[1];
    shop.write('record.json', record);
    expectOk(shop.run(['simulate', 'l.jsonl', '--grant', 'record.json']));
    expect(shop.run(['simulate', 'l.jsonl', '--grant', '-'], { input: capped(1) }).status).toBe(3);
  });

  it('counts what needs approval as not allowed', () => {
    const args = ['simulate', '--from', 'claude-code', 'claude-code.jsonl', '--grant', 'ask.json'];
    const run = shop.run([...args, '--format', 'json']);
    expect(run.status).toBe(3);
    expect(parse<object>(run.stdout)).toMatchObject({ calls: 3, allowed: 0, need_approval: 3, denied: {} });
    expect(shop.run(args).stdout).toContain('APPROVAL_REQUIRED');
  });

  it.each([
    ['SCHEMA', ['l.jsonl', '--grant', 'bad.json']],
    ['DUPLICATE_KEYS', ['l.jsonl', '--grant', 'twice.json']],
    ['NOT_JSON', ['l.jsonl', '--grant', 'text.json']],
    ['FILE_NOT_FOUND', ['l.jsonl', '--grant', 'missing.json']],
    ['FILE_NOT_FOUND', ['missing.jsonl', '--grant', 'one.json']],
    ['USAGE', ['l.jsonl']],
    ['USAGE', ['-', '--grant', '-']],
    ['USAGE', ['l.jsonl', 'l.jsonl', '--grant', 'one.json']],
    ['USAGE', ['l.jsonl', '--grant', 'one.json', '--from', 'nobody']],
    ['USAGE', ['l.jsonl', '--grant', 'one.json', '--principal', 'nobody']],
  ])('refuses with %s: %j', (code, args) => {
    expectError(shop.run(['simulate', ...args]), 2, code);
  });

  it('refuses a ledger of which it cannot read a line', () => {
    shop.write('broken.jsonl', `${shop.read('l.jsonl')}{"x":1}\n`);
    expectError(shop.run(['simulate', 'broken.jsonl', '--grant', 'ask.json']), 1, 'LEDGER_INVALID');
  });

  it.each([
    ['a cap', capped(1), { unit: 'calls', limit: int(1) }],
    [
      'a rate',
      capped(9, { rate_limits: [{ unit: 'calls.per_day', amount: int(1) }] }),
      { unit: 'calls.per_day' },
    ],
    ['a tool', capped(9, { allowed_tools: ['no.such'] }), { code: 'TOOL_NOT_ALLOWED' }],
    [
      'approvals',
      capped(9, { approvals: [{ tools: ['*'], approvers: ['human:*'] }] }),
      { code: 'APPROVAL_REQUIRED' },
    ],
    ['nothing', capped(9), undefined],
  ])('writes JSON of the published schema where a call breaks %s', (_, bounds, denial) => {
    for (const sources of [['l.jsonl'], ['--from', 'claude-code', 'claude-code.jsonl']]) {
      const { stdout } = shop.run(['simulate', ...sources, '--grant', '-', '--format', 'json'], {
        input: bounds,
      });
      const report = parse<SimulationReport>(stdout);
      const isValid = validatorOf('simulation-report');
      expect(isValid(report), JSON.stringify(isValid.errors)).toBe(true);
      expect(isValid({ ...report, more: 1 })).toBe(false);
      if (denial === undefined) expect(report.denials).toEqual([]);
      else expect(report.denials.at(-1)).toMatchObject(denial);
    }
  });

  it('moves no cursor with what a transcript says', () => {
    const text = shop.read('claude-code.jsonl').replaceAll('"Bash"', String.raw`"B\u001b[31m\u202e"`);
    shop.write('hostile.jsonl', text);
    for (const format of ['text', 'json']) {
      const args = ['--from', 'claude-code', 'hostile.jsonl', '--grant', 'ask.json', '--format', format];
      const run = shop.run(['simulate', ...args]);
      expect(run.status).toBe(3);
      expect(run.stdout + run.stderr).not.toMatch(/[^\n\P{C}]/u);
    }
  });
});

describe('draft-grant', () => {
  const drafted = (args: readonly string[]): SimulationReport => {
    const draft = shop.run(['draft-grant', ...args]);
    shop.write('draft.json', expectOk(draft));
    const run = shop.run([
      'simulate',
      ...args.filter((arg) => arg !== '--prefixes'),
      '--grant',
      'draft.json',
      '--format',
      'json',
    ]);
    return parse<SimulationReport>(expectOk(run));
  };

  it.each([
    [['--from', 'claude-code', 'claude-code.jsonl'], 3],
    [['--from', 'codex', 'codex.jsonl'], 5],
    [['--from', 'codex', 'codex.jsonl', '--prefixes'], 5],
    [['l.jsonl'], 2],
  ])('proposes what simulate denies nothing under: %j', (args, calls) => {
    expect(drafted(args)).toMatchObject({ calls, allowed: calls, denied: {} });
  });

  it.skipIf(!hasRecordings)('does so for recorded traffic', () => {
    shop.write('http.jsonl', hasRecordings ? recordedText('cgf/run/driver/http.jsonl') : '');
    const { calls, allowed } = drafted(['--from', 'cgf', 'http.jsonl']);
    expect([calls > 0, allowed]).toEqual([true, calls]);
  });

  it('writes the bounds, and names the command that grants them', () => {
    const run = shop.run(['draft-grant', 'l.jsonl', '--principal', 'agent:a1']);
    expect(parse<object>(expectOk(run))).toEqual({
      allowed_tools: ['sh.x'],
      meter_caps: [
        { unit: 'calls', amount: int(2) },
        { unit: 'usd', amount: { t: 'dec', m: '125', s: 2 } },
      ],
      action_caps: [
        { unit: 'calls', amount: int(1) },
        { unit: 'usd', amount: { t: 'dec', m: '75', s: 2 } },
      ],
    });
    const [, words = ''] = /^northroot (grant .*)$/m.exec(run.stderr) ?? [];
    const args = words.replace('LEDGER', 'granted.jsonl').split(' ');
    expectOk(shop.run(['init', 'granted.jsonl']));
    expectOk(shop.run(args));
    shop.write('granted.json', shop.read('granted.jsonl').split('\n')[1]);
    expectOk(shop.run(['simulate', 'l.jsonl', '--grant', 'granted.json']));
  });

  it('names no command for amounts that are no decimals', () => {
    const shop = new Workshop();
    const meter = [{ unit: 'usd', amount: { t: 'rat', n: '1', d: '3' } }];
    shop.write('l.jsonl', unsigned(execution(grant(), 0, { meter_used: meter })).toString());
    const run = shop.run(['draft-grant', 'l.jsonl']);
    expect(expectOk(run)).toContain('"rat"');
    expect(run.stderr).not.toContain('northroot grant LEDGER');
  });

  it.each([
    ['USAGE', ['l.jsonl', '--principal', 'agent:nobody']],
    ['USAGE', ['l.jsonl', 'l.jsonl']],
    ['USAGE', []],
    ['FILE_NOT_FOUND', ['missing.jsonl']],
  ])('refuses with %s: %j', (code, args) => {
    expectError(shop.run(['draft-grant', ...args]), 2, code);
  });
});
