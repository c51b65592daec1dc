/** `northroot grant` and `adjust`: budgets without JSON by hand, and an agent that cannot give itself any. */

import { appendFileSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  buildEvent,
  canonicalText,
  createSigner,
  draftGrant,
  formatRecord,
  parsePrivateKey,
  sha256Digest,
  signEvent,
  verifyLedger,
  type AuthorizationEvent,
} from '../../src/api/index.js';
import { openLedgerSource } from '../../src/log/fs/source.js';
import { readKeyList } from '../../src/rules/report/key-list.js';
import { expectError, expectOk, parse, type Run, Workshop, type ResultJson } from './runner.js';

const shop = new Workshop();
const L = 'l.jsonl';
let ownKeyid: string;
let agentKeyid: string;
let otherKeyid: string;

function grant(...args: string[]): ResultJson {
  return parse<ResultJson>(expectOk(shop.run(['grant', L, ...args])));
}

function eventAt(seq: number): AuthorizationEvent {
  return shop.records(L)[seq]?.event as unknown as AuthorizationEvent;
}

async function codesOf(name: string): Promise<string[]> {
  const { findings = [] } = await verifyLedger(shop.path(name));
  return findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code);
}

beforeAll(() => {
  const keyidOf = (args: string[]): string => parse<{ keyid: string }>(expectOk(shop.run(args))).keyid;
  ownKeyid = keyidOf(['init', L]);
  agentKeyid = keyidOf(['keygen', '--out', 'agent.pem']);
  otherKeyid = keyidOf(['keygen', '--out', 'other.pem']);
  expectOk(shop.run(['key', 'add', L, 'agent.pem', '--role', 'event', '--for', 'agent:a1']));
  expectOk(shop.run(['key', 'add', L, 'other.pem', '--role', 'event', '--for', 'agent:a2']));
});

describe('grant', () => {
  it.each(['--approvals', '--approval-age', '--concurrency', '--max-depth'])(
    'says which %s is no number',
    (flag) => {
      const bounds = ['--to', 'agent:a1', '--tool', 'fs.*', '--cap', 'usd=5', '--approver', 'human:*'];
      const run = shop.run(['grant', L, ...bounds, flag, '10m']);
      expectError(run, 2, 'USAGE');
      for (const word of [flag, '10m']) expect(run.stderr).toContain(word);
    },
  );

  it('writes a grant of amounts as people write them, and says what was granted, by whom, until when', async () => {
    const bounds = ['--tool', 'fs.*', '--cap', 'usd=5', '--cap', 'calls=100', '--rate', 'usd.per_5h=1'];
    const more = ['--action-cap', 'usd=0.5', '--expires', '2h', '--intent', 'release 1.2'];
    const run = shop.run(['grant', L, '--to', 'agent:a1', ...bounds, ...more]);
    const event = eventAt(3);
    expect(parse(expectOk(run))).toEqual({
      seq: 3,
      event_id: `sha-256:${event.event_id.b64}`,
      status: 'appended',
    });
    const { expires_at: end = '' } =
      event.authorization.kind === 'grant' ? (event.authorization.bounds ?? {}) : {};
    expect(Date.parse(end) - Date.parse(event.occurred_at)).toBe(2 * 3_600_000);
    for (const word of ['agent:a1', 'fs.*', '5 usd', ownKeyid, end]) expect(run.stderr).toContain(word);
    const digest = expectOk(shop.run(['digest', '--json', '--object'], { input: '"release 1.2"' }));
    expect(event.intents.intent_digest).toEqual(parse(digest));
    expect(await codesOf(L)).toEqual([]);
  });

  it.each([
    ['calls=2,usd=1,tokens.output=5,time.ms=9', '', ''],
    ['call=2', 'call', 'calls'],
    ['usd=1,eur=5', 'eur', ''],
  ])('of %s says which cap nothing counts by itself', (caps, unit, meant) => {
    const run = shop.run(['grant', L, '--to', 'agent:a3', '--tool', 'x', '--cap', caps]);
    expectOk(run);
    const notes = run.stderr.split('\n').filter((line) => line.startsWith('note:'));
    expect(notes).toHaveLength(unit === '' ? 0 : 1);
    if (unit !== '') expect(notes[0]).toContain(` ${unit} `);
    if (meant !== '') expect(notes[0]).toContain(` ${meant}?`);
  });

  it('says which calls need approval, and by whom', () => {
    const rule = ['--approve-tool', 'deploy', '--approve-above', 'usd=100', '--approver', 'human:olga'];
    const run = shop.run(['grant', L, '--to', 'agent:a3', '--tool', 'deploy', '--cap', 'usd=500', ...rule]);
    expectOk(run);
    for (const word of ['deploy', '100 usd', 'human:olga']) expect(run.stderr).toContain(word);
  });

  it('takes intents from files and as a list, and says when a text names a file', () => {
    shop.write('intent.json', '{"task": "release"}');
    const run = shop.run([
      'grant',
      L,
      '--to',
      'agent:a1',
      '--tool',
      'x',
      '--cap',
      'usd=1',
      '--intent',
      '@intent.json',
      '--intent',
      'intent.json',
    ]);
    const { seq } = parse<ResultJson>(expectOk(run));
    const digest = expectOk(
      shop.run(['digest', '--json', '--object'], { input: '[{"task":"release"},"intent.json"]' }),
    );
    expect(eventAt(seq).intents.intent_digest).toEqual(parse(digest));
    expect(run.stderr).toContain('@intent.json');
  });

  it('tells of all wrong options at once, by their names, and writes nothing', () => {
    const before = shop.read(L);
    const wrong = [
      '--to',
      'bob',
      '--tool',
      'f s',
      '--cap',
      'usd=5,usd=6',
      '--cap',
      'calls',
      '--rate',
      'usd=1',
    ];
    const more = ['--action-cap', 'usd=x', '--expires', 'soon', '--concurrency', '0', '--max-depth', '32'];
    const last = ['--resource', 'file', '--source', 'jira', '--policy-digest', 'x'];
    const run = shop.run(['grant', L, ...wrong, ...more, ...last]);
    expectError(run, 2, 'USAGE');
    const flags = [...wrong, ...more, ...last].filter((word) => word.startsWith('--'));
    for (const flag of flags) expect(run.stderr).toContain(`${flag}: `);
    expect(shop.read(L)).toBe(before);
  });

  it('and every other command with amounts names the option, the unit and what is wrong', () => {
    const args = ['--principal', 'agent:a1', '--tool', 'fs.read', '--reserve', 'usd=1,calls=one'];
    const run = shop.run(['authorize', L, ...args, '--', 'true']);
    expectError(run, 2, 'USAGE');
    for (const word of ['--reserve', 'calls: ', 'found one']) expect(run.stderr).toContain(word);
  });

  it("is refused with an agent's own key, which says whose would do", () => {
    expectOk(shop.run(['adjust', L, '--grant', '3', '--debit', 'usd=1', '--reason', 'INVOICE']));
    const before = shop.read(L);
    const args = ['--to', 'agent:a1', '--tool', '*', '--cap', 'usd=1000000'];
    const run = shop.run(['grant', L, ...args, '--key', 'agent.pem']);
    expectError(run, 1, 'KEY_NOT_FOR_ROLE');
    expect(run.stderr).toContain(`hint: sign with the key ${ownKeyid}`);
    expectError(
      shop.run([
        'adjust',
        L,
        '--grant',
        '3',
        '--credit',
        'usd=1',
        '--reason',
        'REFUND',
        '--key',
        'agent.pem',
      ]),
      1,
      'KEY_NOT_FOR_ROLE',
    );
    expect(shop.read(L)).toBe(before);
  });

  it('says for whom the key of somebody who grants has to be', () => {
    expectOk(shop.run(['keygen', '--out', 'ada.pem']));
    expectOk(shop.run(['init', 'ada.jsonl']));
    const add = ['key', 'add', 'ada.jsonl', 'ada.pem', '--role', 'authority', '--for', 'human:ada'];
    expectOk(shop.run(add));
    const args = ['ada.jsonl', '--to', 'agent:a1', '--tool', 'fs.*', '--cap', 'usd=1', '--key', 'ada.pem'];
    const run = shop.run(['grant', ...args]);
    expectError(run, 1, 'KEY_NOT_FOR_PRINCIPAL');
    expect(run.stderr).toMatch(/^hint: .*--for agent:a1/m);
  });

  it('delegates with the key of the delegator, and with nobody else’s', async () => {
    const args = ['--to', 'agent:a2', '--parent', '3', '--cap', 'usd=1'];
    const { seq } = grant(...args, '--expires', '30m', '--key', 'agent.pem');
    expect(eventAt(seq)).toMatchObject({
      principal_id: 'agent:a2',
      authorization: { grant_event_id: eventAt(3).event_id, bounds: { allowed_tools: ['fs.*'] } },
    });
    expect(await codesOf(L)).toEqual([]);
    const before = shop.read(L);
    const run = shop.run(['grant', L, ...args, '--key', 'other.pem']);
    expectError(run, 1, 'KEY_NOT_FOR_PRINCIPAL');
    const hint = run.stderr.split('\n').find((line) => line.startsWith('hint: ')) ?? '';
    expect([agentKeyid, ownKeyid].every((keyid) => hint.includes(keyid))).toBe(true);
    expect(hint).not.toContain(otherKeyid);
    expectError(shop.run(['grant', L, ...args.with(3, '1')]), 1, 'GRANT_NOT_A_GRANT');
    expect(shop.read(L)).toBe(before);
  });

  it('that an agent forces into the file is found', async () => {
    const key = createSigner(parsePrivateKey(readFileSync(shop.path('agent.pem'))));
    const lines = shop.lines(L);
    const seq = lines.length;
    const event = buildEvent(
      draftGrant({ principalId: 'agent:a1', allowedTools: ['*'], meterCaps: { usd: '1000000' } }),
      { occurredAt: new Date().toISOString(), ledgerId: eventAt(0).event_id.b64 },
    );
    const eventText = canonicalText(event);
    const signatures = [signEvent(Buffer.from(eventText), key)];
    const prev = sha256Digest(Buffer.from(`\0${lines[seq - 1]}`)).b64;
    shop.write('forced.jsonl', shop.read(L));
    appendFileSync(
      shop.path('forced.jsonl'),
      formatRecord({ eventText, meta: undefined, signatures, prev, seq }),
    );
    expect(await codesOf('forced.jsonl')).toEqual(['KEY_NOT_FOR_ROLE']);
  });
});

describe('adjust', () => {
  it('credits and debits a grant, with evidence', async () => {
    shop.write('bill.txt', 'a bill');
    const credit = shop.run([
      'adjust',
      L,
      '--grant',
      '3',
      '--debit',
      'usd=0.3',
      '--reason',
      'INVOICE',
      '--basis',
      'billed',
      '--evidence',
      'bill.txt',
    ]);
    const { seq } = parse<ResultJson>(expectOk(credit));
    expect(eventAt(seq)).toMatchObject({
      event_type: 'adjustment',
      direction: 'debit',
      grant_event_id: eventAt(3).event_id,
      meter_basis: 'billed',
      evidence: { size_bytes: 6 },
    });
    expectOk(shop.run(['adjust', L, '--grant', '3', '--credit', 'usd=0.3', '--reason', 'REFUND']));
    expect(await codesOf(L)).toEqual([]);
  });

  it('says of what it recorded that it changes nothing, or breaks a bound', async () => {
    const debit = (amount: string): Run =>
      shop.run(['adjust', 'd.jsonl', '--grant', '1', '--debit', amount, '--reason', 'INVOICE']);
    expectOk(shop.run(['init', 'd.jsonl']));
    expectOk(shop.run(['grant', 'd.jsonl', '--to', 'agent:a1', '--tool', 'x', '--cap', 'usd=1']));
    expect(debit('eur=1').stderr).toMatch(/^note: METER_UNCAPPED: /m);
    expect(debit('usd=2').stderr).toMatch(/^warning: METER_CAP_EXCEEDED: /m);
    expect(await codesOf('d.jsonl')).toEqual(['METER_CAP_EXCEEDED']);
  });

  it.each<[string, 1 | 2, string, string[]]>([
    ['nothing at all', 2, 'USAGE', []],
    [
      'both directions',
      2,
      'USAGE',
      ['--grant', '3', '--credit', 'usd=1', '--debit', 'usd=1', '--reason', 'A'],
    ],
    ['what is not a grant', 1, 'GRANT_NOT_A_GRANT', ['--grant', '1', '--debit', 'usd=1', '--reason', 'A']],
    [
      'what is not an execution',
      1,
      'EXECUTION_NOT_FOUND',
      ['--grant', '3', '--debit', 'usd=1', '--reason', 'A', '--execution', '3'],
    ],
    [
      'a credit of more than was used',
      1,
      'ADJUSTMENT_EXCEEDED',
      ['--grant', '3', '--credit', 'usd=99', '--reason', 'A'],
    ],
    [
      'a credit by the grantee',
      1,
      'SELF_CREDIT',
      ['--grant', '3', '--credit', 'usd=1', '--reason', 'A', '--principal', 'agent:a1'],
    ],
  ])('refuses %s', (_what, status, code, args) => {
    const before = shop.read(L);
    expectError(shop.run(['adjust', L, ...args]), status, code);
    expect(shop.read(L)).toBe(before);
  });
});

describe('the keys of a ledger', () => {
  beforeAll(() => {
    expectOk(shop.run(['keygen', '--out', 'recovery.pem']));
    expectOk(shop.run(['init', 'k.jsonl', '--recovery-key', 'recovery.pem']));
    expectOk(shop.run(['keygen', '--out', 'next.pem']));
  });

  it('can be replaced by the recovery key when the first is lost', async () => {
    const roles = ['event', 'authority', 'checkpoint', 'admin'].flatMap((role) => ['--role', role]);
    const by = ['--key', 'recovery.pem'];
    expectOk(shop.run(['key', 'add', 'k.jsonl', 'next.pem', ...roles, ...by]));
    const lost = parse<{ keyid: string }>(expectOk(shop.run(['key', 'show', 'k.jsonl.key']))).keyid;
    expectOk(shop.run(['key', 'revoke', 'k.jsonl', lost, '--reason', 'lost', ...by]));
    const args = ['grant', 'k.jsonl', '--to', 'agent:a1', '--tool', 'x', '--cap', 'calls=1', '--key'];
    expectError(shop.run([...args, 'recovery.pem']), 1, 'KEY_NOT_FOR_ROLE');
    expectOk(shop.run([...args, 'next.pem']));
    expectOk(shop.run(['checkpoint', 'k.jsonl', '--key', 'next.pem']));
    expect(await codesOf('k.jsonl')).toEqual([]);
  });

  it('are listed with their roles, since when, and where and why they were revoked', async () => {
    const { keys, hasInvalid } = await readKeyList(await openLedgerSource(shop.path('k.jsonl')));
    expect(hasInvalid).toBe(false);
    const [first, recovery, next, ...others] = keys;
    expect(others).toEqual([]);
    expect(first).toMatchObject({ since: { seq: 0 }, addedBy: [], revoked: { seq: 2, reason: 'lost' } });
    expect(recovery).toMatchObject({ key: { roles: ['admin'], principals: ['*'] }, since: { seq: 0 } });
    expect(recovery.revoked).toBeUndefined();
    expect(next).toMatchObject({ since: { seq: 1 }, addedBy: [recovery.key.keyid], revoked: undefined });

    const json = parse<{ keys: object[] }>(
      expectOk(shop.run(['key', 'list', 'k.jsonl', '--format', 'json'])),
    );
    expect(json.keys).toMatchObject([
      { keyid: first.key.keyid, since: { seq: 0 }, revoked: { seq: 2, reason: 'lost' } },
      { roles: ['admin'], revoked: null },
      { since: { seq: 1 }, added_by: [recovery.key.keyid] },
    ]);
    const text = expectOk(shop.run(['key', 'list', 'k.jsonl']));
    for (const { key } of keys) expect(text).toContain(key.keyid);
    expect(text).toMatch(/revoked +at seq 2: lost/);
  });

  it('that nobody entitled added are not listed', async () => {
    const records = shop.lines('k.jsonl');
    const [, added] = shop.records('k.jsonl');
    const signatures = added.signatures.map(({ keyid, sig }) => ({
      keyid,
      sig: `${sig.slice(0, -6)}AAAAAA`,
    }));
    const line = JSON.stringify({ ...added, signatures });
    shop.write('forged.jsonl', `${records[0]}\n${line}\n`);
    const { keys, hasInvalid } = await readKeyList(await openLedgerSource(shop.path('forged.jsonl')));
    expect(keys).toHaveLength(2);
    expect(hasInvalid).toBe(true);
  });

  it.each<[string, string[]]>([
    ['without a key', ['--unsigned', '--recovery-key', 'recovery.pem']],
    ['by its own key', ['--key', 'recovery.pem', '--recovery-key', 'recovery.pem']],
    ['by one key twice', ['--recovery-key', 'recovery.pem', '--recovery-key', 'recovery.pem']],
  ])('are not recovered %s', (_what, args) => {
    expectError(shop.run(['init', 'refused.jsonl', ...args]), 2, 'USAGE');
    expect(shop.files('refused')).toEqual([]);
  });
});
