/** `northroot abandon`, what `budget` lists of what is open, and `authorize --expires`. */

import { describe, expect, it } from 'vitest';
import { digestIntent, draftGrant } from '../../src/log/policy/draft-grant.js';
import { meters } from '../../src/base/value/meter.js';
import { ndjson } from './drafts.js';
import { expectError, expectOk, parse, parseLines, Workshop } from './runner.js';

const shop = new Workshop();
const PAST = '2026-03-01T10:00:00Z';
const START = 'x.northroot.start';
const digest = digestIntent('test');

interface Line {
  readonly seq: number;
  readonly event_id: string;
  readonly outcome: string;
  readonly auth_event_id: string;
  readonly start_event_id: string | null;
}

interface BudgetJson {
  readonly grants: readonly {
    readonly meters: readonly { readonly unit: string; readonly left: object }[];
  }[];
  readonly actions: readonly {
    readonly seq: number;
    readonly event_id: string;
    readonly expires_at?: string;
  }[];
}

function append(name: string, event: object): string {
  const run = shop.run(['append', name], { input: ndjson([event]) });
  return parse<{ event_id: string }>(expectOk(run)).event_id;
}

function toDigest(id: string): object {
  return { alg: 'sha-256', b64: id.slice('sha-256:'.length) };
}

/** A ledger with a grant, and what allows an action of it. */
function make(name: string): { readonly allow: (n: number, members?: object) => string } {
  expectOk(shop.run(['init', name, '--origin', 'example.com/abandon']));
  const caps = { allowedTools: ['fs.*'], meterCaps: { calls: 10, usd: 10 }, intent: 'test' };
  const granted = append(name, draftGrant({ principalId: 'agent:a1', occurredAt: PAST, ...caps }));
  const allow = (n: number, members: object = {}): string =>
    append(name, {
      event_type: 'authorization',
      principal_id: 'agent:a1',
      occurred_at: PAST,
      intents: { intent_digest: digest },
      policy_id: 'test/1',
      policy_digest: digest,
      decision: 'allow',
      decision_code: 'ALLOW',
      authorization: {
        kind: 'action',
        grant_event_id: toDigest(granted),
        action: {
          tool_name: 'fs.read',
          tool_params_digest: digestIntent(String(n)),
          meter_reservation: meters({ usd: n }),
          ...members,
        },
      },
    });
  return { allow };
}

function begin(name: string, action: string, n: number): string {
  return append(name, {
    event_type: START,
    principal_id: 'agent:a1',
    occurred_at: PAST,
    intents: { intent_digest: digest },
    auth_event_id: toDigest(action),
    tool_name: 'fs.read',
    tool_params_digest: digestIntent(String(n)),
    started_at: PAST,
    meter_known: [],
    recorder: 'a'.repeat(22),
  });
}

describe('abandon', () => {
  it('releases what has expired and was not started, and leaves what was started', () => {
    const { allow } = make('expired.jsonl');
    const late = allow(1, { expires_at: '2026-03-01T11:00:00Z' });
    allow(2, { expires_at: '9999-01-01T00:00:00Z' });
    const begun = allow(3, { expires_at: '2026-03-01T11:00:00Z' });
    begin('expired.jsonl', begun, 3);
    const listed = expectOk(shop.run(['budget', 'expired.jsonl']));
    expect(listed).toMatch(
      /seq 2 {2}allowed to agent:a1 \d+ d ago and not started: fs\.read, usd 1 reserved, expired 2026/,
    );
    expect(listed).toMatch(/seq 3 .* expires 9999/);
    expect(listed).not.toMatch(/seq 4 {2}allowed/);
    const { actions } = parse<BudgetJson>(
      expectOk(shop.run(['budget', 'expired.jsonl', '--format', 'json'])),
    );
    expect(actions.map(({ seq }) => seq)).toEqual([2, 3]);
    expect(actions[0]).toMatchObject({
      event_id: late,
      principal_id: 'agent:a1',
      tool_name: 'fs.read',
      occurred_at: PAST,
      expires_at: '2026-03-01T11:00:00Z',
      meter_reservation: meters({ usd: 1 }),
    });
    const [line, ...others] = parseLines<Line>(expectOk(shop.run(['abandon', 'expired.jsonl', '--expired'])));
    expect(line).toMatchObject({ outcome: 'released', auth_event_id: late, start_event_id: null });
    expect(others).toEqual([]);
    const again = shop.run(['abandon', 'expired.jsonl', '--expired']);
    expect([again.status, again.stdout, again.stderr]).toEqual([0, '', 'nothing to settle\n']);
    expectOk(shop.run(['verify', 'expired.jsonl']));
  });

  it('settles whatever is old: released where it was not started, else charged', () => {
    const { allow } = make('old.jsonl');
    const begun = allow(1);
    const start = begin('old.jsonl', begun, 1);
    const open = allow(2);
    expectOk(
      shop.run([
        ...['authorize', 'old.jsonl', '--principal', 'agent:a1', '--tool', 'fs.read', '--reserve', 'usd=0.5'],
        ...['--params-digest', `sha-256:${'A'.repeat(43)}`, '--expires', '15m'],
      ]),
    );
    const lines = parseLines<Line>(expectOk(shop.run(['abandon', 'old.jsonl', '--older-than', '1h'])));
    expect(lines).toMatchObject([
      { outcome: 'unknown', auth_event_id: begun, start_event_id: start },
      { outcome: 'released', auth_event_id: open, start_event_id: null },
    ]);
    const budget = expectOk(shop.run(['budget', 'old.jsonl']));
    // What was begun is charged, and the fresh one still reserved.
    expect(budget).toMatch(/usd +10 +1 +0\.5 +8\.5/);
    expect(budget).toMatch(/seq 5 .*usd 0\.5 reserved, expires 20/);
    expectOk(shop.run(['verify', 'old.jsonl']));
  });

  it('settles only what is under the grant that is named, and says what it cannot', () => {
    const { allow } = make('other.jsonl');
    allow(1);
    const other = append('other.jsonl', {
      ...draftGrant({
        principalId: 'agent:a2',
        occurredAt: PAST,
        allowedTools: ['fs.*'],
        meterCaps: { usd: 1 },
      }),
    });
    const none = shop.run(['abandon', 'other.jsonl', '--older-than', '1h', '--grant', other]);
    expect([none.status, none.stdout]).toEqual([0, '']);
    expectOk(shop.run(['keygen', '--out', 'a2.pem']));
    expectOk(shop.run(['key', 'add', 'other.jsonl', 'a2.pem', '--role', 'event', '--for', 'agent:a2']));
    const refused = shop.run(['abandon', 'other.jsonl', '--older-than', '1h', '--key', 'a2.pem']);
    expect([refused.status, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toMatch(/^not settled: sha-256:.*KEY_NOT_FOR_PRINCIPAL/);
  });

  it('refuses what it does not understand', () => {
    make('wrong.jsonl');
    expectError(shop.run(['abandon', 'wrong.jsonl']), 2, 'USAGE');
    expectError(shop.run(['abandon', 'wrong.jsonl', '--older-than', 'yesterday']), 2, 'USAGE');
    expectError(shop.run(['abandon', 'wrong.jsonl', '--older-than', '0s']), 2, 'USAGE');
    const asked = ['authorize', 'wrong.jsonl', '--principal', 'agent:a1', '--tool', 'fs.read'];
    const params = ['--params-digest', `sha-256:${'A'.repeat(43)}`];
    expectError(shop.run([...asked, ...params, '--expires', 'soon']), 2, 'USAGE');
    const past = shop.run([...asked, ...params, '--expires', '2026-03-01']);
    expect([past.status, parse<{ decision_code: string }>(past.stdout).decision_code]).toEqual([
      3,
      'ACTION_EXPIRED',
    ]);
  });
});
