/** `northroot approve`, `reject`, `approvals`, `revoke`, `suspend` and `resume`, and what `authorize` says of them. */

import { beforeAll, describe, expect, it } from 'vitest';
import { expectError, expectOk, parse, Workshop, type ResultJson } from './runner.js';

const shop = new Workshop();
const L = 'l.jsonl';

interface Decision {
  readonly decision: string;
  readonly decision_code: string;
  readonly seq: number;
  readonly event_id: string;
  readonly approval?: { readonly approvers: readonly string[]; readonly count: number };
}

function authorize(
  usd: string,
  ...args: string[]
): { decision: Decision; stderr: string; status: number | null } {
  const asked = [
    '--principal',
    'agent:a1',
    '--tool',
    'deploy',
    '--params',
    'p.json',
    '--reserve',
    `usd=${usd}`,
  ];
  const run = shop.run(['authorize', L, ...asked, '--key', 'agent.pem', ...args]);
  return { decision: parse<Decision>(run.stdout), stderr: run.stderr, status: run.status };
}

function requests(...args: string[]): { event_id: string; status: string; seq: number }[] {
  const run = expectOk(shop.run(['approvals', L, '--format', 'json', ...args]));
  return parse<{ requests: { event_id: string; status: string; seq: number }[] }>(run).requests;
}

beforeAll(() => {
  shop.write('p.json', '{"env":"prod"}');
  expectOk(shop.run(['init', L]));
  for (const name of ['agent', 'olga', 'otto']) {
    expectOk(shop.run(['keygen', '--out', `${name}.pem`]));
    const principal = name === 'agent' ? 'agent:a1' : `human:${name}`;
    expectOk(shop.run(['key', 'add', L, `${name}.pem`, '--role', 'event', '--for', principal]));
  }
  const rule = [
    '--approve-tool',
    'deploy',
    '--approve-above',
    'usd=100',
    '--approver',
    'human:*',
    '--approvals',
    '2',
  ];
  expectOk(shop.run(['grant', L, '--to', 'agent:a1', '--tool', '*', '--cap', 'usd=1000', ...rule]));
});

describe('approvals', () => {
  it('says who must approve, and by which command; the answer is status 3', () => {
    const { decision, stderr, status } = authorize('500');
    expect(status).toBe(3);
    expect(decision).toMatchObject({
      decision_code: 'APPROVAL_REQUIRED',
      approval: { approvers: ['human:*'], count: 2 },
    });
    expect(stderr).toContain(`northroot approve ${L} ${decision.event_id}`);
    expect(requests()).toMatchObject([{ event_id: decision.event_id, status: 'waiting' }]);
    expect(shop.run(['approvals', L]).stdout).toContain(decision.event_id);
  });

  it('approves by two people, each in the name of their key, and is used up by one action', () => {
    const [{ event_id: id }] = requests();
    const first = shop.run(['approve', L, id, '--key', 'olga.pem']);
    expectOk(first);
    expect(first.stderr).toContain('human:olga approved deploy');
    expect(first.stderr).toContain('note: the call still needs approval by 2 of human:*');
    expect(authorize('500').decision.decision_code).toBe('APPROVAL_REQUIRED');
    expectOk(shop.run(['approve', L, id.slice(0, 20), '--key', 'otto.pem', '--expires', '1h']));
    expect(requests()).toEqual([]);
    expect(requests('--all')).toMatchObject([{ status: 'approved' }]);
    expect(authorize('500').decision).toMatchObject({ decision: 'allow' });
    expect(requests('--all')).toEqual([]);
    expect(authorize('400').decision.decision_code).toBe('APPROVAL_REQUIRED');
  });

  it('rejects a request, which no longer waits then', () => {
    const [{ event_id: id }] = requests();
    expectOk(shop.run(['reject', L, id, '--code', 'TOO_MUCH', '--key', 'olga.pem']));
    expect(requests()).toEqual([]);
    expect(requests('--all')).toMatchObject([{ status: 'rejected' }]);
  });

  it('says that a call lacks something else, or more approvals, under the id of any of its requests', () => {
    const over = authorize('5000').decision;
    expect(over.decision_code).toBe('RESERVATION_OVER_CAP');
    const vain = shop.run(['approve', L, over.event_id, '--key', 'olga.pem']);
    expectOk(vain);
    expect(vain.stderr).toContain('note: the call was denied with RESERVATION_OVER_CAP');
    const ask = ['authorize', L, '--principal', 'agent:a1', '--tool', 'deploy', '--reserve', 'usd=200'];
    const again = [0, 1].map(() => shop.run([...ask, '--key', 'agent.pem', '--', 'twice']));
    const [, second] = again.map(({ stdout }) => parse<Decision>(stdout));
    const approve = (key: string): string =>
      shop.run(['approve', L, second?.event_id ?? '', '--key', key]).stderr;
    expect(approve('olga.pem')).toContain('note: the call still needs approval by 2 of human:*');
    expect(approve('otto.pem')).not.toContain('note:');
    expect(shop.run(['reject', L, second?.event_id ?? '', '--key', 'otto.pem']).stderr).not.toContain(
      'note:',
    );
  });

  it('refuses what is no request, wrong options and the key of another, and appends nothing', () => {
    const [{ event_id: id }] = requests('--all');
    const { event_id: open } = authorize('1').decision;
    const before = shop.records(L).length;
    expectError(shop.run(['approve', L, '0']), 1, 'AUTH_NOT_AN_AUTHORIZATION');
    expectError(shop.run(['approve', L, '999']), 2, 'RECORD_NOT_FOUND');
    const allowed = shop.run(['approve', L, open]);
    expectError(allowed, 2, 'REQUEST_ALLOWED');
    expect(allowed.stderr).toContain(`northroot approvals ${L}`);
    expectError(shop.run(['approve', L, id, '--limit', 'usd']), 2, 'USAGE');
    expectError(shop.run(['approve', L, id, '--code', 'no good']), 2, 'USAGE');
    const other = ['--principal', 'human:boss', '--key', 'olga.pem'];
    expectError(shop.run(['approve', L, id, ...other]), 1, 'KEY_NOT_FOR_PRINCIPAL');
    expect(shop.records(L).length).toBe(before);
  });
});

describe('suspend, resume and revoke', () => {
  it('stop what was allowed and not begun, and say so', () => {
    const open = authorize('50').decision;
    const grant = shop.records(L).find(({ event }) => 'authorization' in event)?.seq;
    const seq = String(grant);
    const stop = ['--in-flight', 'stop', '--reason', 'INCIDENT'];
    parse<ResultJson>(expectOk(shop.run(['suspend', L, seq, ...stop])));
    expect(authorize('50').decision.decision_code).toBe('GRANT_REVOKED');
    const run = shop.run(['record', L, '--auth', open.event_id, '--key', 'agent.pem', '--', 'true']);
    expectError(run, 1, 'GRANT_REVOKED');
    // What it reserved is not free by itself.
    expect(run.stderr).toContain('--abandon');
    expectOk(shop.run(['record', L, '--auth', open.event_id, '--abandon', '--key', 'agent.pem']));
    expectOk(shop.run(['resume', L, seq, '--reason', 'OVER']));
    expect(authorize('50').decision.decision).toBe('allow');
    const { event_id: late } = authorize('300').decision;
    expectOk(shop.run(['revoke', L, '--all', '--reason', 'END', '--key', 'agent.pem']));
    const vain = shop.run(['approve', L, late, '--key', 'olga.pem']);
    expectOk(vain);
    expect(vain.stderr).toMatch(/^note: a grant of the call .* is withdrawn/m);
    expect(authorize('50').decision.decision_code).toBe('GRANT_REVOKED');
    expectOk(shop.run(['verify', L]));
    // Nothing ends a revocation: that a grant was resumed would not be true.
    for (const command of ['suspend', 'resume']) {
      const idle = shop.run([command, L, seq, '--reason', 'X']);
      expect([idle.status, idle.stderr]).toEqual([
        0,
        expect.stringMatching(/ed 0 grants[^]*^note: .* is revoked/m),
      ]);
    }
  });

  it('refuse what is no grant and wrong options, and append nothing', () => {
    const before = shop.records(L).length;
    expectError(shop.run(['revoke', L, '--reason', 'X']), 2, 'USAGE');
    expectError(shop.run(['revoke', L, '1', '--all', '--reason', 'X']), 2, 'USAGE');
    expectError(shop.run(['revoke', L, '1']), 2, 'USAGE');
    expectError(shop.run(['revoke', L, '1', '--reason', 'because']), 2, 'USAGE');
    expectError(shop.run(['revoke', L, '1', '--reason', 'X']), 1, 'GRANT_NOT_A_GRANT');
    expect(shop.records(L).length).toBe(before);
  });
});
