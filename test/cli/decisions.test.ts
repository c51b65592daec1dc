/** What is asked of a ledger with budgets in it: `budget`, `why`, and what `verify` is told to show, to mind and to remember. */

import { describe, expect, it } from 'vitest';
import type { AnyEvent } from '../../src/format/event/build.js';
import { checkReport } from '../../src/format/schema/check.js';
import type { FindingJson, ReportJson } from '../../src/format/schema/generated/types.js';
import { VERSION } from '../../src/base/version.js';
import { meters } from '../../src/base/value/meter.js';
import { DIGEST, event, genesis, keyOf, ledger, makeSigner, note, type Item } from '../docs/ledger-kit.js';
import { expectCode, expectError, expectOk, parse, parseLines, Workshop, type Run } from './runner.js';

const shop = new Workshop();

const signer = makeSigner();
const intents = { intent_digest: DIGEST };
const decided = {
  intents,
  policy_id: 'test/1',
  policy_digest: DIGEST,
  decision: 'allow',
  decision_code: 'ALLOW',
};
const at = (minute: number): string => `2026-03-01T12:${String(minute).padStart(2, '0')}:00Z`;
const idOf = ({ event_id }: AnyEvent): string => `sha-256:${event_id.b64}`;

function grant(
  n: number,
  principal: string,
  bounds: object,
  members: object = {},
  parent?: AnyEvent,
): AnyEvent {
  return event('authorization', {
    ...decided,
    principal_id: principal,
    occurred_at: at(n),
    authorization: {
      kind: 'grant',
      bounds: { allowed_tools: ['fs.*', 'net.*'], meter_caps: meters({ calls: 10, usd: 2 }), ...bounds },
      ...(parent === undefined ? {} : { grant_event_id: parent.event_id }),
    },
    ...members,
  });
}

function action(n: number, under: AnyEvent | undefined, members: object = {}): AnyEvent {
  return event('authorization', {
    ...decided,
    occurred_at: at(n),
    checks: [{ check: 'spend', result: 'pass' }],
    authorization: {
      kind: 'action',
      ...(under === undefined ? {} : { grant_event_id: under.event_id }),
      action: { tool_name: 'fs.read', tool_params_digest: DIGEST, meter_reservation: meters({ usd: '0.5' }) },
    },
    ...members,
  });
}

function execution(n: number, authorization: Pick<AnyEvent, 'event_id'>, members: object = {}): AnyEvent {
  return event('execution', {
    intents,
    occurred_at: at(n),
    started_at: at(n),
    ended_at: at(n),
    auth_event_id: authorization.event_id,
    tool_name: 'fs.read',
    tool_params_digest: DIGEST,
    meter_used: meters({ usd: '0.25' }),
    outcome: 'success',
    ...members,
  });
}

const HOSTILE = '\u001b[2J\u202egpj.exe\u0007\u2028';
const root = grant(1, 'agent:a1', {
  meter_caps: meters({ calls: 10, usd: 5 }),
  expires_at: at(50),
  concurrency_limit: { t: 'int', v: '2' },
});
const child = grant(
  2,
  'agent:a2',
  { meter_caps: meters({ calls: 4, usd: 1 }), expires_at: at(40), concurrency_limit: { t: 'int', v: '1' } },
  {},
  root,
);
const refused = grant(3, 'agent:a1', {}, { decision: 'deny', decision_code: 'TOO_MUCH' });
const done = action(4, root);
const open = action(5, root, { policy_id: `${HOSTILE}7`, checks: [{ check: HOSTILE, result: 'pass' }] });
const denied = action(6, root, { decision: 'deny', decision_code: 'NOT_NOW' });
const doneRun = execution(7, done);
const attempt = execution(8, denied, { outcome: 'failure', error_code: 'BLOCKED', meter_used: [] });
const childRun = execution(9, child, {
  principal_id: 'agent:a2',
  meter_used: meters({ usd: '0.125', tok: 7 }),
});
const later = note('later', { occurred_at: at(30), prev_event_id: doneRun.event_id });
/** In this order, and so are their numbers, from 1 on. */
const good = [root, child, refused, done, open, denied, doneRun, attempt, childRun, later];

const again = execution(31, done);
const againAgain = execution(32, done);
const over = execution(33, child, { principal_id: 'agent:a2', meter_used: meters({ usd: 1 }) });
const lateRun = execution(45, child, { principal_id: 'agent:a2', meter_used: [] });
const uncapped = execution(46, root, { meter_used: meters({ tok: 1 }) });
const violating = [...good, again, againAgain, over, lateRun, uncapped];

const never = { event_id: { alg: 'sha-256', b64: 'A'.repeat(43) } } as const;
const lost = execution(47, never);
const lostToo = execution(48, never);

function write(name: string, events: readonly AnyEvent[], ...more: (Item | string)[]): void {
  const items = events.map((each) => ({ event: each, signers: [signer] }));
  const first = { event: genesis([keyOf(signer)]), signers: [signer] };
  shop.write(name, ledger(first, ...items, ...more));
}

write('good.jsonl', good);
const cappedBounds = {
  action_caps: meters({ calls: 1, usd: '0.2' }),
  expires_at: at(40),
  concurrency_limit: { t: 'int', v: '1' },
};
const capped = grant(2, 'agent:a2', cappedBounds, {}, root);
write('capped.jsonl', [root, capped]);
write('violating.jsonl', violating);
const unlinked = { intents: { intent_digest: { alg: 'sha-256', b64: 'B'.repeat(42) + 'A' } } };
// That a step does not name the intent that it is for is a warning.
write('warned.jsonl', [...good, action(31, root, unlinked)]);
write('invalid.jsonl', [...violating, lost, lostToo]);

function budget(...args: string[]): Run {
  return shop.run(['budget', ...args]);
}

interface BudgetJson {
  readonly grants: readonly {
    readonly event_id: string;
    readonly seq: number;
    readonly principal_id: string;
    readonly executions: number;
    readonly expires_at?: string;
    readonly parent_event_id?: string;
    readonly meters: readonly { readonly unit: string; readonly used: object; readonly left: object }[];
  }[];
}

describe('budget', () => {
  it('shows what every grant caps, and what is left', () => {
    const { status, stdout, stderr } = budget('good.jsonl');
    expect([status, stderr]).toEqual([0, '']);
    const by = `    signed by ${signer.publicKey.keyid}`;
    expect(stdout.replace(/\d+ d ago/, 'N d ago')).toBe(
      [
        `  seq 1  agent:a1  ${idOf(root).slice(0, 20)}  2 executions, expires ${at(50)}`,
        by,
        '    unit   cap   used  reserved   left',
        '    calls   10      0         0     10',
        '    usd      5  0.375       0.5  4.125',
        `  seq 2  agent:a2  ${idOf(child).slice(0, 20)}  1 execution, expires ${at(40)}, delegated from seq 1`,
        by,
        '    unit   cap   used  reserved   left',
        '    calls    4      0         0      4',
        '    usd      1  0.125         0  0.875',
        '  seq 5  allowed to agent:a1 N d ago and not started: fs.read, usd 0.5 reserved',
        '',
      ].join('\n'),
    );
  });

  it('shows it as JSON', () => {
    const { grants } = parse<BudgetJson>(expectOk(budget('good.jsonl', '--format', 'json')));
    expect(grants.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(grants[1]).toEqual({
      event_id: idOf(child),
      seq: 2,
      signers: [signer.publicKey.keyid],
      principal_id: 'agent:a2',
      expires_at: at(40),
      parent_event_id: idOf(root),
      executions: 1,
      meters: [
        ...[{ unit: 'calls', cap: 4, used: 0, reserved: 0, left: 4 }].map(({ unit, ...amounts }) => ({
          unit,
          ...Object.fromEntries(
            Object.entries(amounts).map(([name, n]) => [name, { t: 'int', v: String(n) }]),
          ),
        })),
        {
          unit: 'usd',
          cap: { t: 'int', v: '1' },
          used: { t: 'dec', m: '125', s: 3 },
          reserved: { t: 'int', v: '0' },
          left: { t: 'dec', m: '875', s: 3 },
        },
      ],
      decimals: {
        calls: { cap: '4', used: '0', reserved: '0', left: '4' },
        usd: { cap: '1', used: '0.125', reserved: '0', left: '0.875' },
      },
    });
  });

  it('shows what one action may use at most, and what a grant was delegated from, as verify does', () => {
    const caps = '    one action at most 1 calls, 0.2 usd\n';
    expect(expectOk(budget('capped.jsonl'))).toContain(caps);
    const one = expectOk(budget('capped.jsonl', '--grant', '2'));
    expect(one).toContain(`, delegated from ${idOf(root).slice(0, 20)}\n`);
    const text = shop.run(['verify', 'capped.jsonl']).stdout;
    expect(text).toContain(caps);
    expect(text).toContain(', delegated from seq 1\n');
    const report = parse<ReportJson>(shop.run(['verify', 'capped.jsonl', '--format', 'json']).stdout);
    expect(checkReport(report)).toEqual([]);
    expect(report.grants).toMatchObject([
      { seq: 1 },
      {
        seq: 2,
        parent_event_id: idOf(root),
        action_caps: meters({ calls: 1, usd: '0.2' }),
        decimals: { calls: { action_cap: '1' }, usd: { action_cap: '0.2' } },
      },
    ]);
    expect(report.grants[0]).not.toHaveProperty('action_caps');
  });

  it('shows one grant, by its number, its id or a prefix of it', () => {
    const b64 = child.event_id.b64;
    for (const name of ['2', idOf(child), b64.slice(0, 9), Buffer.from(b64, 'base64url').toString('hex')]) {
      const { grants } = parse<BudgetJson>(
        expectOk(budget('good.jsonl', '--grant', name, '--format', 'json')),
      );
      expect(grants.map(({ seq }) => seq)).toEqual([2]);
    }
    expect(expectOk(budget('good.jsonl', '--grant', '2'))).not.toContain('agent:a1');
  });

  it.each<[string, string[], string]>([
    ['a number that no record has', ['--grant', '77'], 'RECORD_NOT_FOUND'],
    ['an id that no record has', ['--grant', 'A'.repeat(43)], 'RECORD_NOT_FOUND'],
    ['another event', ['--grant', '7'], 'GRANT_NOT_FOUND'],
    ['a grant that came later', ['--grant', '2', '--at', '1'], 'GRANT_NOT_FOUND'],
    ['a grant that was denied', ['--grant', '3'], 'GRANT_DENIED'],
    ['a point that no record has', ['--at', '11'], 'RECORD_NOT_FOUND'],
    ['a point that is no time', ['--at', 'noon'], 'USAGE'],
    ['a day that does not exist', ['--at', '2026-02-30'], 'USAGE'],
    ['a number that is negative', ['--at=-1'], 'USAGE'],
    ['what is no id', ['--grant', 'x y'], 'USAGE'],
  ])('refuses %s', (_what, args, code) => {
    const run = budget('good.jsonl', ...args);
    expectError(run, 2, code);
    if (code !== 'USAGE') expect(run.stderr).toContain('hint: ');
  });

  it('shows how it was after a record, or at a time', () => {
    const usd = (point: string, grantSeq = '1'): unknown => {
      const run = budget('good.jsonl', '--at', point, '--grant', grantSeq, '--format', 'json');
      const [account] = parse<BudgetJson>(expectOk(run)).grants;
      return account?.meters.find(({ unit }) => unit === 'usd')?.left;
    };
    expect(usd('1')).toEqual({ t: 'int', v: '5' });
    expect(usd('4')).toEqual({ t: 'dec', m: '45', s: 1 });
    expect(usd('7')).toEqual({ t: 'dec', m: '425', s: 2 });
    expect(usd('10')).toEqual({ t: 'dec', m: '4125', s: 3 });
    expect(usd(at(4))).toEqual({ t: 'dec', m: '45', s: 1 });
    expect(usd('2026-03-01T12:03:59.999999999Z')).toEqual({ t: 'int', v: '5' });
    expect(usd('2027-01-01')).toEqual({ t: 'dec', m: '4125', s: 3 });
    expect(budget('good.jsonl', '--at', '2020-01-01')).toEqual({
      status: 0,
      stdout: '',
      stderr: 'no grants at that point\n',
    });
  });

  it('reads standard input, once', () => {
    const input = shop.bytes('good.jsonl');
    expect(shop.run(['budget', '-'], { input }).stdout).toBe(budget('good.jsonl').stdout);
    expectError(shop.run(['budget', '-', '--grant', '1'], { input }), 2, 'USAGE');
  });

  it('says that a bound was broken, or the evidence', () => {
    const broken = budget('violating.jsonl');
    expect(broken.status).toBe(3);
    expect(broken.stderr).toContain('a bound was broken');
    expect(broken.stdout).toMatch(/usd +1 +1\.125 +0 +-0\.125\n/);
    expect(budget('violating.jsonl', '--at', '10')).toMatchObject({ status: 0, stderr: '' });
    const invalid = budget('invalid.jsonl');
    expect(invalid.status).toBe(1);
    expect(invalid.stderr).toContain('the evidence is broken');
    shop.write('torn.jsonl', shop.bytes('good.jsonl').subarray(0, -1));
    expect(budget('torn.jsonl').status).toBe(1);
    expect(budget('violating.jsonl', '--quiet').stderr).toBe('');
  });

  it('shows amounts of any size', () => {
    const huge = { t: 'int', v: '9'.repeat(39) };
    const odd = { t: 'f64', bits: '0000000000000001' };
    write('amounts.jsonl', [
      grant(1, 'agent:a1', {
        meter_caps: [
          { unit: 'a', amount: huge },
          { unit: 'b', amount: odd },
          { unit: 'c', amount: { t: 'rat', n: '1', d: '3' } },
        ],
      }),
    ]);
    const [, , ...rows] = expectOk(budget('amounts.jsonl')).split('\n');
    expect(new Set(rows.slice(0, 4).map((row) => row.length)).size).toBe(1);
    expect(rows[3]).toMatch(/^ {4}c +1\/3 +0 +0 +1\/3$/);
  });
});

function why(...args: string[]): Run {
  return shop.run(['why', ...args]);
}

interface HistoryJson {
  readonly seq: number;
  readonly verdict: string;
  readonly findings: readonly FindingJson[];
  readonly signatures: readonly { readonly keyid: string; readonly outcome: string }[];
  readonly authorization?: { readonly seq: number };
  readonly grants: readonly {
    readonly seq: number;
    readonly before: readonly object[];
    readonly after: readonly object[];
  }[];
  readonly account?: readonly object[];
  readonly executions: readonly { readonly seq: number }[];
  readonly executions_total: number;
}

function historyOf(name: string, which: string, status = 0): HistoryJson {
  const run = why(name, which, '--format', 'json');
  expect([run.status, run.stderr]).toEqual([status, '']);
  return parse<HistoryJson>(run.stdout);
}

/** The lines of a history that begin with one of these words. */
function linesOf(text: string, ...words: string[]): string[] {
  return text.split('\n').filter((line) => words.some((word) => line.trimStart().startsWith(`${word} `)));
}

describe('why', () => {
  it('tells of an execution: who decided, under which grants, with what before and after', () => {
    const history = historyOf('good.jsonl', '9');
    expect(history).toMatchObject({
      seq: 9,
      verdict: 'ok',
      signatures: [{ keyid: signer.publicKey.keyid, outcome: 'valid', roles: ['event'] }],
      executions_total: 0,
    });
    expect(history.grants.map(({ seq }) => seq)).toEqual([2, 1]);
    expect(history.authorization?.seq).toBe(2);
    const usd = ({ before, after }: HistoryJson['grants'][number]): unknown[] =>
      [before, after].map((balances) => (balances[1] as { left: unknown }).left);
    expect(history.grants.map(usd)).toEqual([
      [
        { t: 'int', v: '1' },
        { t: 'dec', m: '875', s: 3 },
      ],
      [
        { t: 'dec', m: '425', s: 2 },
        { t: 'dec', m: '4125', s: 3 },
      ],
    ]);
    const { stdout } = why('good.jsonl', idOf(childRun));
    expect(stdout.split('\n')[0]).toBe(`execution  seq 9  ${idOf(childRun)}  ok`);
    expect(linesOf(stdout, 'what', 'decided', 'under')).toEqual([
      '  what       fs.read success tok=7 usd=0.125',
      `decided by test/1, seq 2  ${idOf(child)}`,
      '  what       grant',
      `under grant seq 2  ${idOf(child)}`,
      `under grant seq 1  ${idOf(root)}`,
    ]);
    expect(stdout).toContain('METER_UNCAPPED');
  });

  it.each<[string, string, number, string[]]>([
    ['genesis', '0', 0, ['  what       example.com/test']],
    [
      'a grant',
      '1',
      0,
      ['  what       grant', '  tools      fs.*, net.*', '  caps       calls=10 usd=5', '  at once    2'],
    ],
    ['a delegated grant', '2', 0, ['  caps       calls=4 usd=1', `under grant seq 1  ${idOf(root)}`]],
    ['a denied grant', '3', 0, ['  decision   deny, TOO_MUCH']],
    [
      'an action',
      '4',
      0,
      ['  what       fs.read usd=0.5', '  checks     spend pass', `executed seq 7  ${idOf(doneRun)}`],
    ],
    ['an open action', '5', 0, ['not executed: it is open, and its reservation is held']],
    ['a denied action', '6', 0, ['  decision   deny, NOT_NOW', `attempted seq 8  ${idOf(attempt)}`]],
    [
      'a blocked attempt',
      '8',
      0,
      ['  what       fs.read failure BLOCKED', `under grant seq 1  ${idOf(root)}`],
    ],
    ['an extension', '10', 0, [`  follows    ${idOf(doneRun)}`]],
  ])('tells of %s', (_what, which, status, lines) => {
    const run = why('good.jsonl', which);
    expect([run.status, run.stderr]).toEqual([status, '']);
    for (const line of lines) expect(run.stdout.split('\n')).toContain(line);
    // Nothing is announced of which nothing follows.
    expect(run.stdout).not.toMatch(/ \n/);
  });

  it('tells of a grant what is left of it in the end', () => {
    expect(historyOf('good.jsonl', '1')).toMatchObject({
      account: [{ unit: 'calls' }, { unit: 'usd', left: { t: 'dec', m: '4125', s: 3 } }],
      grants: [],
      executions: [],
    });
    expect(historyOf('good.jsonl', '2')).toMatchObject({ executions: [{ seq: 9 }], executions_total: 1 });
  });

  it('tells of what broke a bound, also where it is listed with others', () => {
    const first = historyOf('violating.jsonl', '11', 3);
    const second = historyOf('violating.jsonl', idOf(againAgain), 3);
    for (const history of [first, second]) {
      expect(history.verdict).toBe('violation');
      expect(history.findings.map(({ code }) => code)).toEqual(['AUTHORIZATION_REUSED']);
      expect(history.findings[0]).not.toHaveProperty('folded');
      expect(history).toMatchObject({ authorization: { seq: 4 }, grants: [{ seq: 1 }] });
    }
    expect(second.findings[0]?.seq).toBe(12);
    const { status, stdout } = why('violating.jsonl', '13');
    expect(status).toBe(3);
    expect(stdout).toContain('\nfindings\nerror: violating.jsonl:14 ');
    expect(stdout).toContain(' METER_CAP_EXCEEDED: ');
    expect(stdout).toMatch(/\n {2}hint: .+\n$/);
  });

  it('tells of an execution whose authorization never came, and of the next one', () => {
    for (const which of ['16', '17']) {
      const history = historyOf('invalid.jsonl', which, 1);
      expect(history).toMatchObject({ verdict: 'invalid', grants: [] });
      expect(history).not.toHaveProperty('authorization');
      expect(history.findings.map(({ code, seq }) => [code, seq])).toEqual([
        ['AUTH_NOT_FOUND', Number(which)],
      ]);
    }
  });

  it('tells of an execution of something that is no authorization', () => {
    write('odd.jsonl', [...good, execution(36, later), execution(37, refused)]);
    const { status, stdout } = why('odd.jsonl', '11');
    expect(status).toBe(1);
    expect(linesOf(stdout, 'names', 'decided')).toEqual([`names x.note, seq 10  ${idOf(later)}`]);
    expect(why('odd.jsonl', '12')).toMatchObject({ status: 3 });
  });

  it('tells of an event that stands in the ledger twice', () => {
    write('twice.jsonl', [...good, later]);
    expect(historyOf('twice.jsonl', '10')).toMatchObject({ verdict: 'ok', seq: 10, findings: [] });
    const history = historyOf('twice.jsonl', '11', 1);
    expect(history.findings.map(({ code }) => code)).toEqual(['EVENT_DUPLICATE']);
    expect(history).toMatchObject({ verdict: 'invalid', seq: 11 });
    const run = why('twice.jsonl', idOf(later));
    expectError(run, 2, 'RECORD_AMBIGUOUS');
    expect(run.stderr).toContain('give the seq, 10 or 11');
  });

  it('counts executions that it does not list', () => {
    const runs = Array.from({ length: 102 }, (_, n) =>
      execution(10, root, {
        meter_used: [],
        started_at: `2026-03-01T12:10:00.${String(n).padStart(3, '0')}Z`,
      }),
    );
    write('many.jsonl', [root, ...runs]);
    const { stdout } = why('many.jsonl', '1');
    expect(linesOf(stdout, 'executed')).toHaveLength(100);
    expect(stdout).toContain('… and 2 more executions\n');
  });

  it.each<[string, string[], string]>([
    ['a number that no record has', ['good.jsonl', '77'], 'RECORD_NOT_FOUND'],
    ['an id that no record has', ['good.jsonl', `sha-256:${'A'.repeat(43)}`], 'RECORD_NOT_FOUND'],
    ['what is no id', ['good.jsonl', 'the last one'], 'USAGE'],
    ['no event', ['good.jsonl'], 'USAGE'],
    ['standard input', ['-', '1'], 'USAGE'],
    ['a ledger that is not there', ['missing.jsonl', '1'], 'FILE_NOT_FOUND'],
  ])('refuses %s', (_what, args, code) => {
    expectError(why(...args), 2, code);
  });

  it('refuses a prefix that more than one event has, and says how to go on', () => {
    const notes = Array.from({ length: 65 }, (_, n) => note(n));
    write('notes.jsonl', notes);
    const firsts = notes.map(({ event_id: { b64 } }) => b64[0]).filter((first) => !/\d/.test(first));
    const twice = firsts.find((first, n) => firsts.indexOf(first) !== n)!;
    const run = why('notes.jsonl', twice);
    expectError(run, 2, 'RECORD_AMBIGUOUS');
    expect(run.stderr).toMatch(/hint: give more of the id: sha-256:\S{43} or sha-256:\S{43}\n/);
  });

  it('shows nothing of what an event says as it stands', () => {
    for (const args of [['5'], ['5', '--format', 'json']]) {
      const { stdout } = why('good.jsonl', ...args);
      expect(stdout).toContain('gpj.exe');
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u202a-\u202e]/);
    }
    expect(
      parse<{ event: { policy_id: string } }>(why('good.jsonl', '5', '--format', 'json').stdout).event
        .policy_id,
    ).toBe(`${HOSTILE}7`);
  });
});

function report(name: string, ...args: string[]): ReportJson & { findings: FindingJson[] } {
  const { stdout } = shop.run(['verify', name, '--format', 'json', ...args]);
  const value = parse<ReportJson & { findings: FindingJson[] }>(stdout);
  expect(checkReport(value)).toEqual([]);
  return value;
}

describe('verify, told what to show', () => {
  const { findings: all, ...whole } = report('invalid.jsonl');

  it('has something to choose from', () => {
    expect(all.map(({ code, at: place }) => [code, place.line])).toEqual([
      ['AUTH_NOT_FOUND', 17],
      ['AUTHORIZATION_REUSED', 12],
      ['METER_CAP_EXCEEDED', 14],
      ['GRANT_EXPIRED', 15],
      ['METER_UNCAPPED', 10],
      ['METER_UNCAPPED', 16],
    ]);
  });

  it.each<[string, string[], number[]]>([
    ['--since', ['--since', at(33)], [17, 14, 15, 16]],
    ['--until', ['--until', at(33)], [12, 10]],
    ['--since and --until', ['--since', at(33), '--until', at(45)], [14]],
    ['--since a day', ['--since', '2026-03-02'], []],
    ['--principal', ['--principal', 'agent:a2'], [14, 15, 10]],
    ['--principal with a pattern', ['--principal', 'agent:*'], [17, 12, 14, 15, 10, 16]],
    ['--grant', ['--grant', '2'], [14, 15, 10]],
    ['--grant by its id', ['--grant', idOf(root).slice(0, 20)], [12, 14, 15, 10, 16]],
    ['all of them', ['--grant', '1', '--principal', 'agent:a2', '--since', at(40)], [15]],
    ['--max-findings too', ['--grant', '1', '--max-findings', '2'], [12, 14]],
  ])('%s narrows what is listed, and nothing else', (_what, args, lines) => {
    const { findings, ...rest } = report('invalid.jsonl', ...args);
    expect(findings.map(({ at: place }) => place.line)).toEqual(lines);
    expect(rest).toEqual(whole);
    const stream = shop.run(['verify', 'invalid.jsonl', '--format', 'ndjson', ...args]);
    expect(stream.status).toBe(1);
    const values = parseLines<{ at?: { line: number } }>(stream.stdout);
    expect(values.at(-1)).toEqual(whole);
    if (!args.includes('--max-findings')) {
      expect(
        values
          .slice(0, -1)
          .map(({ at: place }) => place?.line)
          .sort(),
      ).toEqual([...lines].sort());
    }
  });

  it('says how many are not listed', () => {
    const { status, stdout } = shop.run(['verify', 'invalid.jsonl', '--grant', '2']);
    expect(status).toBe(1);
    expect(stdout).toContain('findings (6, worst first)\n');
    expect(stdout).toContain('… and 3 more: ');
  });

  it('shows what it cannot place: a line that cannot be read', () => {
    write('unread.jsonl', good, 'no record');
    for (const args of [
      ['--since', at(55)],
      ['--principal', 'org:none'],
      ['--grant', '2'],
    ]) {
      expect(report('unread.jsonl', ...args).findings.map(({ code }) => code)).toContain('NOT_JSON');
    }
  });

  it('shows what was executed under a deny with the grant that was asked for', () => {
    write('under-deny.jsonl', [...good, execution(36, denied), execution(37, refused)]);
    expect(report('under-deny.jsonl', '--grant', '1').findings.map(({ seq }) => seq)).toEqual([11, 9]);
    expect(report('under-deny.jsonl', '--grant', '3').findings.map(({ seq }) => seq)).toEqual([12]);
  });

  it.each<[string, string[]]>([
    ['a time that is none', ['--since', 'noon']],
    ['a day that does not exist', ['--until', '2026-02-30']],
    ['a principal of no kind', ['--principal', 'bob']],
    ['a grant from standard input', ['--grant', '1']],
    ['an unknown line', ['--fail-on', 'never']],
  ])('refuses %s', (_what, args) => {
    const input = shop.bytes('good.jsonl');
    expectError(shop.run(['verify', '-', ...args], { input }), 2, 'USAGE');
  });

  it('refuses a grant that is not there', () => {
    expectError(shop.run(['verify', 'good.jsonl', '--grant', '77']), 2, 'RECORD_NOT_FOUND');
  });
});

describe('verify --fail-on', () => {
  write('clean.jsonl', [root, done, doneRun]);

  it.each<[string, string, string, number]>([
    ['clean.jsonl', 'warning', 'ok', 0],
    ['clean.jsonl', 'invalid', 'ok', 0],
    ['good.jsonl', 'violation', 'ok', 0],
    ['good.jsonl', 'warning', 'ok', 0],
    ['warned.jsonl', 'violation', 'ok', 0],
    ['warned.jsonl', 'warning', 'ok', 3],
    ['violating.jsonl', 'invalid', 'violation', 0],
    ['violating.jsonl', 'violation', 'violation', 3],
    ['violating.jsonl', 'warning', 'violation', 3],
    ['invalid.jsonl', 'invalid', 'invalid', 1],
    ['invalid.jsonl', 'warning', 'invalid', 1],
    ['empty.jsonl', 'invalid', 'undecided', 2],
  ])('%s with %s: %s ends with %i', (name, line, verdict, status) => {
    if (name === 'empty.jsonl') shop.write(name, '');
    const run = shop.run(['verify', name, '--fail-on', line]);
    expect([run.status, run.stdout.split(' ')[0]]).toEqual([status, verdict]);
  });

  it('does not depend on what is shown', () => {
    for (const args of [
      ['--max-findings', '0'],
      ['--since', '2027-01-01'],
      ['--grant', '2'],
    ]) {
      expect(shop.run(['verify', 'warned.jsonl', '--fail-on', 'warning', ...args]).status).toBe(3);
    }
  });
});

describe('verify --state', () => {
  const lines = shop.bytes('violating.jsonl').toString('utf8').split('\n').slice(0, -1);
  const put = (name: string, from: readonly string[]): string =>
    shop.write(name, from.map((line) => `${line}\n`).join(''));
  const verify = (name: string, ...args: string[]): Run =>
    shop.run(['verify', name, '--state', `${name}.state`, ...args]);
  /** The same, without what standard error says of how it was done. */
  const report = (name: string, ...args: string[]): Omit<Run, 'stderr'> =>
    withoutWords(verify(name, ...args));
  /** The report of one pass, of the same file. */
  const onePass = (name: string, ...args: string[]): Omit<Run, 'stderr'> =>
    withoutWords(shop.run(['verify', name, ...args]));

  it('goes on where it was, and gives the report of one pass', () => {
    for (const format of ['json', 'text', 'ndjson']) {
      const name = `grows-${format}.jsonl`;
      for (const count of format === 'json' ? [0, 3, 11, 12, lines.length] : [3, lines.length]) {
        put(name, lines.slice(0, count));
        const args = ['--format', format];
        const whole = onePass(name, ...args);
        expect(report(name, ...args)).toEqual(whole);
        expect(report(name, ...args)).toEqual(whole);
      }
    }
    expect(shop.files('grows-json')).toEqual(['grows-json.jsonl', 'grows-json.jsonl.state']);
  });

  it('says whether it went on, and from where', () => {
    put('said.jsonl', lines.slice(0, 3));
    const words = [verify('said.jsonl').stderr];
    put('said.jsonl', lines.slice(0, 5));
    words.push(verify('said.jsonl').stderr);
    expect(words).toEqual([
      expect.stringContaining('there is no usable state in said.jsonl.state'),
      expect.stringMatching(/said\.jsonl\.state.* 3 records .* 2 are new/),
    ]);
  });

  it('keeps warnings in mind, whatever is shown', () => {
    put('minded.jsonl', shop.lines('warned.jsonl'));
    expect(verify('minded.jsonl', '--max-findings', '0').status).toBe(0);
    expect(verify('minded.jsonl', '--fail-on', 'warning', '--max-findings', '0').status).toBe(3);
    expect(report('minded.jsonl', '--grant', '2', '--format', 'json')).toEqual(
      onePass('minded.jsonl', '--grant', '2', '--format', 'json'),
    );
  });

  it('does not go on with a ledger that was changed before, or cut off', () => {
    put('changed.jsonl', lines.slice(0, 11));
    expect(verify('changed.jsonl').status).toBe(0);
    const state = shop.bytes('changed.jsonl.state');
    for (const other of [
      lines.with(5, lines[5].replace('fs.read', 'fs.reap')),
      lines.slice(0, 10),
      lines.toSpliced(3, 1),
      [],
    ]) {
      put('changed.jsonl', other);
      const run = verify('changed.jsonl');
      expectError(run, 2, 'STATE_MISMATCH');
      expect(run.stderr).toContain('hint: ');
      expect(shop.bytes('changed.jsonl.state')).toEqual(state);
    }
    put('changed.jsonl', lines);
    expect(verify('changed.jsonl').status).toBe(3);
  });

  it('verifies anew under another trust policy', () => {
    put('trusted.jsonl', lines.slice(0, 11));
    expect(verify('trusted.jsonl').status).toBe(0);
    const policy = (name: string, origin: string): string =>
      shop.write(name, JSON.stringify({ trust_version: '1', origins: [origin], keys: [keyOf(signer)] }));
    policy('ours.json', 'example.com/test');
    policy('theirs.json', 'example.com/other');
    expect(
      parse<ReportJson>(verify('trusted.jsonl', '--trust', 'ours.json', '--format', 'json').stdout),
    ).toMatchObject({
      verdict: 'ok',
      trust: { mode: 'policy', signatures: { valid: 11 } },
    });
    // What it was then, it would have been with the state.
    const other = verify('trusted.jsonl', '--trust', 'theirs.json');
    expect(other.status).toBe(1);
    expect(other.stdout).toContain('ORIGIN_MISMATCH');
    expect(verify('trusted.jsonl').stdout).toContain('self-declared');
  });

  it('refuses a state that is damaged, and overwrites nothing', () => {
    put('damaged.jsonl', lines.slice(0, 5));
    expect(verify('damaged.jsonl').status).toBe(0);
    const state = shop.bytes('damaged.jsonl.state');
    const flipped = Buffer.from(state);
    flipped[flipped.length >> 1] ^= 4;
    for (const bytes of [Buffer.alloc(0), Buffer.from('no state\n'), state.subarray(0, -1), flipped]) {
      shop.write('damaged.jsonl.state', bytes);
      const run = verify('damaged.jsonl');
      expectError(run, 2, 'STATE_INVALID');
      expect(run.stderr).toContain('hint: ');
      expect(shop.bytes('damaged.jsonl.state')).toEqual(Buffer.from(bytes));
    }
    expectError(shop.run(['verify', 'damaged.jsonl', '--state', 'damaged.jsonl']), 2, 'STATE_INVALID');
    expectCode(shop.run(['verify', 'damaged.jsonl', '--state', '.']), 'IS_A_FOLDER');
  });

  it('verifies anew when another version saved the state', () => {
    put('older.jsonl', lines.slice(0, 5));
    const first = verify('older.jsonl');
    const state = shop.bytes('older.jsonl.state').toString('latin1');
    shop.write('older.jsonl.state', Buffer.from(state.replace(` ${VERSION} `, ' 0.0.1 '), 'latin1'));
    expect(verify('older.jsonl')).toEqual(first);
    expect(shop.bytes('older.jsonl.state').toString('latin1')).toMatch(`northroot-state ${VERSION} `);
  });

  it('saves no state of an invalid ledger', () => {
    put('bad.jsonl', [...lines.slice(0, 5), 'no record']);
    expect(verify('bad.jsonl').status).toBe(1);
    expect(shop.has('bad.jsonl.state')).toBe(false);
    put('bad.jsonl', lines.slice(0, 5));
    expect(verify('bad.jsonl').status).toBe(0);
    const state = shop.bytes('bad.jsonl.state');
    put('bad.jsonl', [...lines.slice(0, 6), 'no record']);
    expect(verify('bad.jsonl').status).toBe(1);
    expect(shop.bytes('bad.jsonl.state')).toEqual(state);
    // The bad line was taken off again, and the ledger goes on.
    put('bad.jsonl', lines.slice(0, 8));
    expect(report('bad.jsonl')).toEqual(onePass('bad.jsonl'));
  });

  it('takes a ledger from standard input, and one in a folder', () => {
    const input = shop.bytes('violating.jsonl');
    for (let n = 0; n < 2; n += 1) {
      expect(shop.run(['verify', '-', '--state', 'stdin.state'], { input }).status).toBe(3);
    }
    expectOk(
      shop.run(['append', 'folder/', '--create', '--segment-bytes', '700', '--quiet'], {
        input: notesOf(0, 5),
      }),
    );
    const once = (): Run => shop.run(['verify', 'folder', '--state', 'folder.state']);
    expect(once().status).toBe(0);
    expectOk(shop.run(['append', 'folder/', '--segment-bytes', '700', '--quiet'], { input: notesOf(5, 9) }));
    expect(withoutWords(once())).toEqual(onePass('folder'));
  });
});

function withoutWords({ status, stdout }: Run): Omit<Run, 'stderr'> {
  return { status, stdout };
}

function notesOf(from: number, to: number): string {
  return Array.from(
    { length: to - from },
    (_, n) => `${JSON.stringify({ event_type: 'x.note', principal_id: 'agent:a1', n: from + n })}\n`,
  ).join('');
}
