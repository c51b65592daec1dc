/** What SECURITY.md says of who can still do what, and docs/spec/verification.md of binding: attacks, and near misses that are ok. */

import { describe, expect, it } from 'vitest';
import type { AnyEvent, Key, Signer, TrustPolicy } from '../../src/api/index.js';
import { authorization, execution, grant as makeGrant, usd } from './grant-kit.js';
import {
  DIGEST,
  type Item,
  bare,
  boundTo,
  checkpoint,
  codes,
  event,
  genesis,
  keyOf,
  ledger,
  makeSigner,
  note,
  verify,
} from './ledger-kit.js';

const keeper = makeSigner();
const boss = makeSigner();
const agent = makeSigner();
const other = makeSigner();

const KEYS: readonly Key[] = [
  keyOf(keeper, { roles: ['event', 'checkpoint', 'admin'], principals: ['service:*'] }),
  keyOf(boss, { roles: ['authority'], principals: ['human:boss', 'agent:*'] }),
  keyOf(agent, { principals: ['agent:a1'] }),
  keyOf(other, { principals: ['agent:a2'] }),
];
const signing = (binding: 'required' | 'optional') => ({
  signing: { events: 'required', checkpoints: 'optional', binding },
});
const bound = genesis(KEYS, signing('required'));
const unbound = genesis(KEYS, signing('optional'));

/** A grant in the ledger that begins with `bound`, under another in it. */
function grant(cap: number, parent?: AnyEvent, members: object = {}): AnyEvent {
  return makeGrant({ meter_caps: usd(cap) }, parent && boundTo(bound, parent), members);
}

function adjustment(direction: 'credit' | 'debit', on: AnyEvent, members: object = {}): AnyEvent {
  const grantId = boundTo(bound, on).event_id;
  return event('adjustment', { grant_event_id: grantId, direction, meters: usd(1), reason: 'R', ...members });
}

/** The findings on events that are bound and stand after genesis, each signed by one. */
function found(...items: readonly (readonly [AnyEvent, Signer])[]): Promise<string[]> {
  return codes(
    ledger(
      { event: bound, signers: [keeper] },
      ...items.map(([each, by]) => ({ event: boundTo(bound, each), signers: [by] })),
    ),
  );
}

const OTHERS = { principal_id: 'agent:a2' };
const given = grant(10);

describe('an agent with its own key', () => {
  it('acts, and delegates, within its grants', async () => {
    const used = execution(boundTo(bound, given), 10);
    expect(await found([given, boss], [used, agent], [grant(5, given, OTHERS), agent])).toEqual([]);
  });

  it('grants itself nothing, and widens nothing', async () => {
    expect(await found([given, agent])).toEqual(['KEY_NOT_FOR_ROLE in 2']);
    const action = { tool_name: 'fs.read', tool_params_digest: DIGEST, meter_reservation: usd(1) };
    expect(await found([authorization({ kind: 'action', action }), agent])).toEqual([
      'KEY_NOT_FOR_ROLE in 2',
    ]);
    expect(await found([given, boss], [grant(11, given, OTHERS), agent])).toEqual([
      'DELEGATION_EXCEEDED in 3',
    ]);
  });

  it('credits nothing, and signs for nobody else', async () => {
    expect(await found([given, boss], [adjustment('credit', given), agent])).toContain(
      'KEY_NOT_FOR_ROLE in 3',
    );
    expect(await found([note(1, OTHERS), agent])).toEqual(['KEY_NOT_FOR_PRINCIPAL in 2']);
  });

  it('debits any grant, under its own name', async () => {
    expect(await found([given, boss], [adjustment('debit', given, OTHERS), other])).toEqual([]);
  });

  it('adds no keys', async () => {
    const adding = event('key', { action: 'add', key: keyOf(makeSigner()) });
    expect(await found([adding, agent])).toEqual(['KEY_NOT_FOR_ROLE in 2']);
  });
});

describe('a holder of authority', () => {
  it('grants to the principals that its key covers, and executes nothing', async () => {
    expect(await found([grant(1, undefined, { principal_id: 'service:x' }), boss])).toEqual([
      'KEY_NOT_FOR_PRINCIPAL in 2',
    ]);
    expect(await found([note(1), boss])).toEqual(['KEY_NOT_FOR_ROLE in 2']);
  });

  it('credits those grants, but not under the name of who is credited', async () => {
    const by = (principal: string) => adjustment('credit', given, { principal_id: principal });
    const debit = adjustment('debit', given);
    expect(await found([given, boss], [debit, agent], [by('human:boss'), boss])).toEqual([]);
    expect(await found([given, boss], [debit, agent], [by('agent:a1'), boss])).toEqual(['SELF_CREDIT in 4']);
  });

  it('signs none of it as of an unknown key, also where signatures are optional', async () => {
    const optional = genesis(KEYS, { signing: { events: 'optional', checkpoints: 'optional' } });
    const grants = (signers: readonly Signer[]) =>
      codes(ledger({ event: optional }, { event: given, signers }));
    expect(await grants([boss])).toEqual([]);
    expect(await grants([])).toEqual(['SIGNATURE_MISSING in 2']);
    expect(await grants([makeSigner()])).toEqual(['KEY_UNKNOWN in 2']);
  });
});

describe('approvals and stops', () => {
  const [olga, sly] = [makeSigner(), makeSigner()];
  const first = genesis(
    [
      ...KEYS,
      keyOf(olga, { principals: ['human:olga'] }),
      keyOf(sly, { principals: ['agent:a1', 'human:*'] }),
    ],
    signing('required'),
  );
  const rule = { tools: ['fs.read'], approvers: ['human:*'], above: usd(1) };
  const ruled = boundTo(first, makeGrant({ meter_caps: usd(100), approvals: [rule] }));
  const call = { tool_name: 'fs.read', tool_params_digest: DIGEST };

  function approval(by: string, members: object = {}): AnyEvent {
    const said = { grant_event_id: ruled.event_id, decision: 'approve', decision_code: 'APPROVED', ...call };
    return boundTo(first, event('approval', { principal_id: by, ...said, ...members }));
  }

  function act(approvals: readonly AnyEvent[], amount: number, members: object = {}): AnyEvent {
    const named = approvals.map(({ event_id: id }) => id);
    const more = named.length === 0 ? {} : { approval_event_ids: named };
    const action = { ...call, meter_reservation: usd(amount), ...more };
    return boundTo(first, authorization({ kind: 'action', grant_event_id: ruled.event_id, action }, members));
  }

  const played = (...items: readonly (readonly [AnyEvent, Signer])[]): Promise<string[]> =>
    codes(
      ledger(
        { event: first, signers: [keeper] },
        { event: ruled, signers: [boss] },
        ...items.map(([each, by]) => ({ event: each, signers: [by] })),
      ),
    );
  const LATER = { occurred_at: '2026-01-03T00:00:00Z' };

  it('a call above the amount needs approval by another, below it none', async () => {
    const yes = approval('human:olga');
    expect(await played([yes, olga], [act([yes], 5), agent])).toEqual([]);
    expect(await played([act([], 1), agent])).toEqual([]);
    expect(await played([act([], 2), agent])).toEqual(['APPROVAL_MISSING in 3']);
  });

  it('the agent approves for itself under no name that its key covers', async () => {
    const [own, alias] = [approval('agent:a1'), approval('human:alias')];
    expect(await played([own, agent], [act([own], 5), agent])).toEqual(['APPROVAL_MISSING in 4']);
    expect(await played([alias, sly], [act([alias], 5), agent])).toEqual(['APPROVAL_MISSING in 4']);
    const forged = approval('human:olga');
    expect(await played([forged, agent], [act([forged], 5), agent])).toEqual([
      'KEY_NOT_FOR_PRINCIPAL in 3',
      'APPROVAL_MISSING in 4',
    ]);
  });

  it('an approval is used once, for its call, within its limit and time', async () => {
    const yes = approval('human:olga', { meter_limit: usd(5), expires_at: '2026-01-02T12:00:00Z' });
    const given: [AnyEvent, Signer] = [yes, olga];
    expect(await played(given, [act([yes], 5), agent], [act([yes], 4), agent])).toEqual([
      'APPROVAL_REUSED in 5',
      'APPROVAL_MISSING in 5',
    ]);
    expect(await played(given, [act([yes], 6), agent])).toEqual(['APPROVAL_EXCEEDED in 4']);
    expect(await played(given, [act([yes], 5, LATER), agent])).toEqual(['APPROVAL_MISSING in 4']);
    const other = approval('human:olga', { tool_name: 'fs.write' });
    expect(await played([other, olga], [act([other], 5), agent])).toEqual(['APPROVAL_MISSING in 4']);
  });

  it('an action dated before the clock does not revive an approval', async () => {
    const yes = approval('human:olga', { expires_at: '2026-01-02T12:00:00Z' });
    const items = [
      { event: first, signers: [keeper] },
      { event: ruled, signers: [boss] },
      { event: yes, signers: [olga] },
    ];
    const seal = checkpoint([keeper], { principal_id: 'service:ledger', ...LATER });
    const sealed: Item['event'] = (before) => boundTo(first, seal(before));
    const back = { event: act([yes], 5), signers: [agent] };
    expect(await codes(ledger(...items, back))).toEqual([]);
    expect(await codes(ledger(...items, { event: sealed, signers: [keeper] }, back))).toContain(
      'APPROVAL_MISSING in 5',
    );
  });

  it('nothing passes a revocation, whatever its date', async () => {
    const off = (effect: 'revoke' | 'resume', by: string, more: object = {}) =>
      boundTo(
        first,
        event('revocation', {
          principal_id: by,
          grant_event_id: ruled.event_id,
          effect,
          reason: 'R',
          ...more,
        }),
      );
    const revoke: [AnyEvent, Signer] = [off('revoke', 'human:boss', { in_flight: 'stop', ...LATER }), boss];
    const before = act([], 1);
    const used = boundTo(first, execution(before, 1));
    expect(await played([before, agent], revoke, [used, agent])).toContain('GRANT_REVOKED in 5');
    expect(await played(revoke, [before, agent])).toContain('GRANT_REVOKED in 4');
    expect(await played(revoke, [off('resume', 'human:boss'), boss], [before, agent])).toContain(
      'GRANT_REVOKED in 5',
    );
  });
});

it('without a key that has the role authority grants may be self-issued, and the report says so', async () => {
  const keys = [keyOf(agent, { principals: ['agent:a1'] })];
  const own = await verify(ledger({ event: genesis(keys), signers: [] }, { event: given, signers: [agent] }));
  expect(own.findings.map(({ code }) => code)).not.toContain('KEY_NOT_FOR_ROLE');
  expect(own.not_checked.map(({ code }) => code)).toContain('AUTHORITY');
  const ruled = ledger({ event: unbound, signers: [keeper] }, { event: given, signers: [boss] });
  expect((await verify(ruled)).not_checked.map(({ code }) => code)).not.toContain('AUTHORITY');
});

it('of right and wrong roles beside each other each has its weight', async () => {
  const expired = keyOf(other, { roles: ['authority'], valid_until: '2026-01-01T00:00:00Z' });
  const elsewhere = keyOf(other, { roles: ['authority'], principals: ['agent:z'] });
  const by = (key: Key) =>
    codes(
      ledger(
        { event: genesis([...KEYS.slice(0, 3), key]), signers: [keeper] },
        { event: given, signers: [agent, other] },
      ),
    );
  expect(await by(elsewhere)).toEqual(['KEY_NOT_FOR_PRINCIPAL in 2', 'KEY_NOT_FOR_ROLE warning in 2']);
  expect(await by(expired)).toEqual(['KEY_NOT_VALID_HERE in 2', 'KEY_NOT_FOR_ROLE warning in 2']);
});

describe('binding', () => {
  const ORIGINAL = genesis(KEYS, { ...signing('required'), origin: 'example.com/staging' });
  const begin = { event: bound, signers: [keeper] };

  it('an event of another ledger is a mismatch, and one of none unbound', async () => {
    const mine = boundTo(bound, note(1));
    expect(await codes(ledger(begin, { event: mine, signers: [agent] }))).toEqual([]);
    const theirs = { event: boundTo(ORIGINAL, note(1)), signers: [agent] };
    expect(await codes(ledger(begin, theirs))).toEqual(['LEDGER_MISMATCH in 2']);
    expect(await codes(ledger(begin, { event: note(1), signers: [agent] }))).toEqual(['LEDGER_UNBOUND in 2']);
    const optional = { event: unbound, signers: [keeper] };
    expect(await codes(ledger(optional, { event: note(1), signers: [agent] }))).toEqual([]);
    expect(await codes(ledger(optional, theirs))).toEqual(['LEDGER_MISMATCH in 2']);
  });

  it('by a replayed key event no key comes or goes', async () => {
    const added = makeSigner();
    const members = { principal_id: 'service:ledger', action: 'add', key: keyOf(added) };
    const adding = event('key', members);
    const use = { event: boundTo(bound, note(1)), signers: [added] };
    const with_ = (each: AnyEvent) => codes(ledger(begin, { event: each, signers: [keeper] }, use));
    expect(await with_(boundTo(bound, adding))).toEqual([]);
    expect(await with_(boundTo(ORIGINAL, adding))).toEqual(['LEDGER_MISMATCH in 2', 'KEY_UNKNOWN in 3']);
  });

  it('findings fold: of one other ledger, and of none but key events apart', async () => {
    const notes = [1, 2, 3].map((i) => ({ event: boundTo(ORIGINAL, note(i)), signers: [agent] }));
    const report = await verify(ledger(begin, ...notes));
    expect(report.findings.map(({ code, folded }) => [code, folded])).toEqual([['LEDGER_MISMATCH', 2]]);
    expect(report.counts.by_verdict.invalid).toBe(3);
  });

  it('bare events that name a ledger name one', async () => {
    expect(await codes(bare(note(1), boundTo(bound, note(2)), boundTo(bound, note(3))))).toEqual([]);
    expect(await codes(bare(boundTo(bound, note(1)), boundTo(ORIGINAL, note(2))))).toEqual([
      'LEDGER_MISMATCH in 2',
    ]);
  });
});

it('under a trust policy an admin that it does not pin adds nothing, and a pinned key keeps its roles', async () => {
  const added = makeSigner();
  const adding = (key: Key) =>
    boundTo(bound, event('key', { principal_id: 'service:ledger', action: 'add', key }));
  const under = (keys: readonly Key[], key: Key, by: AnyEvent, signer: Signer) =>
    codes(
      ledger(
        { event: bound, signers: [keeper] },
        { event: adding(key), signers: [keeper] },
        { event: boundTo(bound, by), signers: [signer] },
      ),
      { trust: { trust_version: '1', keys: [...keys] } },
    );
  const authority = (signer: Signer) => keyOf(signer, { roles: ['authority'] });
  const [admin, ...others] = KEYS as [Key, ...Key[]];
  const plain = { ...admin, roles: ['event' as const] };
  expect(await under([admin, ...others], authority(added), given, added)).toEqual([]);
  expect(await under([plain, ...others], authority(added), given, added)).toEqual([
    'KEY_NOT_FOR_ROLE in 2',
    'KEY_UNKNOWN in 3',
  ]);
  expect(await under([admin, ...others], authority(agent), given, agent)).toEqual(['KEY_NOT_FOR_ROLE in 3']);
});

it('a checkpoint record that only a producer signed seals, and dates nothing', async () => {
  const policy: TrustPolicy = {
    trust_version: '1',
    keys: [...KEYS],
    require: { checkpoint_max_age_seconds: 60 },
  };
  const sealed = (by: Signer, principal: string) =>
    ledger(
      { event: unbound, signers: [keeper] },
      {
        event: checkpoint([keeper], { principal_id: principal, occurred_at: '2026-02-01T00:00:00Z' }),
        signers: [by],
      },
    );
  const options = { trust: policy, now: '2026-02-01T00:00:30Z' };
  expect(await codes(sealed(keeper, 'service:ledger'), options)).toEqual([]);
  expect(await codes(sealed(agent, 'agent:a1'), options)).toEqual(['CHECKPOINT_MISSING in 2']);
});
