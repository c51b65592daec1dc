/** Each invariant holds of a sound history, and is broken by one that it is there for: what cannot fail checks nothing. */

import { expect, it } from 'vitest';
import {
  type Accounts,
  type Acknowledged,
  type Answer,
  emptyHistory,
  type Event,
  type History,
  type Line,
} from './history.js';
import { findBroken, type InvariantName, INVARIANTS } from './invariants.js';

const at = (second: number): string => `2026-01-01T12:00:${String(second).padStart(2, '0')}Z`;
const account = (used: number, reserved: number): Accounts => new Map([['grant', { used, reserved }]]);
const id = (name: string): { b64: string } => ({ b64: name });
const calls = (v: number): Event['meter_used'] => [{ unit: 'calls', amount: { t: 'int', v: String(v) } }];

function event(name: string, type: string, more: Partial<Event> = {}): Event {
  return { event_id: id(name), event_type: type, occurred_at: at(1), ...more };
}

function action(name: string, request: string, more: object = {}): Event {
  return event(name, 'authorization', {
    decision: 'allow',
    authorization: {
      kind: 'action',
      grant_event_id: id('grant'),
      action: { request_key: request, meter_reservation: calls(1) ?? [], ...more },
    },
  });
}

function start(name: string, of: string): Event {
  return event(name, 'x.northroot.start', { auth_event_id: id(of) });
}

function execution(name: string, of: string, began: string | undefined, second = 1): Event {
  return event(name, 'execution', {
    auth_event_id: id(of),
    meter_used: calls(1) ?? [],
    started_at: at(second),
    ...(began === undefined ? {} : { prev_event_id: id(began) }),
  });
}

const stop = (name: string, effect: string): Event =>
  event(name, 'revocation', {
    effect,
    grant_event_id: id('grant'),
    ...(effect === 'resume' ? {} : { in_flight: 'stop' }),
  });

function acknowledged(eventId: string, more: Partial<Acknowledged> = {}): Acknowledged {
  return { ms: 1, by: 'gate1', eventId, isStored: true, ...more };
}

function answer(ref: string, authorization: string, more: Partial<Answer> = {}): Answer {
  const base = { ms: 9, askedMs: 5, by: 'gate1', effect: 'allow', code: 'ALLOW', isRepeated: false };
  return { ...base, ref, authorization, ...more };
}

/** Two calls, one after the other, and a third that is open. */
const SOUND: readonly Event[] = [
  event('g', 'genesis'),
  event('grant', 'authorization', { decision: 'allow', authorization: { kind: 'grant' } }),
  action('a', 'ka', { approval_event_ids: [id('yes')] }),
  start('sa', 'a'),
  execution('xa', 'a', 'sa'),
  stop('stop', 'suspend'),
  stop('go', 'resume'),
  action('b', 'kb'),
  start('sb', 'b'),
  execution('xb', 'b', 'sb'),
  action('c', 'kc'),
];

function history(events: readonly Event[] = SOUND, more: Partial<History> = {}): History {
  const lines = events.map((each, seq): Line => ({
    seq,
    prev: { b64: seq === 0 ? 'empty' : `h${seq - 1}` },
    event: each,
  }));
  return {
    ...emptyHistory(),
    lines,
    hashes: lines.map(({ seq }) => `h${seq}`),
    grants: [{ grantId: 'grant', calls: 3, concurrency: 1, perMinute: 2 }],
    acknowledged: [
      acknowledged('a'),
      acknowledged('xa', { seq: 4, isInOrder: true }),
      acknowledged('xb', { seq: 9, isInOrder: true }),
    ],
    answers: [answer('ka', 'a'), answer('ka', 'a', { isRepeated: true })],
    runs: [{ ref: 'ka', authorization: 'a', begunMs: 1, endedMs: 2 }],
    asked: [{ by: 'gate1', what: 'decide', settled: 1 }],
    report: { findings: [] },
    live: account(2, 1),
    reported: account(2, 1),
    ...more,
  };
}

const without = (name: string): Event[] => SOUND.filter(({ event_id: of }) => of.b64 !== name);
const finding = { class: 'violation', code: 'METER_CAP_EXCEEDED', seq: 4 };

const BROKEN: Record<InvariantName, readonly History[]> = {
  'acknowledged-or-told': [
    history(SOUND, { acknowledged: [acknowledged('lost')] }),
    history(SOUND, { acknowledged: [acknowledged('a', { seq: 7 })] }),
  ],
  'durable-before-told': [history(SOUND, { acknowledged: [acknowledged('a', { isStored: false })] })],
  'told-in-order': [
    history(SOUND, {
      acknowledged: [
        acknowledged('xb', { seq: 9, isInOrder: true }),
        acknowledged('xa', { seq: 4, isInOrder: true }),
      ],
    }),
  ],
  'settles-once': [
    history(SOUND, { asked: [{ by: 'gate1', what: 'decide', settled: 0 }] }),
    history(SOUND, { asked: [{ by: 'gate1', what: 'decide', settled: 2 }] }),
  ],
  'one-chain': [
    history(SOUND, { hashes: SOUND.map((_, seq) => (seq === 3 ? 'other' : `h${seq}`)) }),
    { ...history(), lines: history().lines.filter(({ seq }) => seq !== 5) },
  ],
  sound: [history(SOUND, { report: { findings: [finding as never] } })],
  'one-answer': [history(SOUND, { answers: [answer('ka', 'a'), answer('ka', 'b')] })],
  'one-action-a-request': [history([...SOUND, action('d', 'ka')], { live: undefined, reported: undefined })],
  'done-once': [
    history([...SOUND, execution('again', 'a', undefined, 2)]),
    history([...SOUND, start('again', 'a')]),
  ],
  'cap-held': [
    history([...SOUND, action('d', 'kd')]),
    history(SOUND, {
      runs: ['a', 'b', 'a', 'b'].map((authorization, n) => ({
        ref: `k${n}`,
        authorization,
        begunMs: n,
        endedMs: n + 0.5,
      })),
    }),
  ],
  'rate-held': [history([...SOUND, execution('xc', 'c', undefined, 59)])],
  'concurrency-held': [
    history(without('xa')),
    history(SOUND, {
      runs: [
        { ref: 'ka', authorization: 'a', begunMs: 1, endedMs: 4 },
        { ref: 'kb', authorization: 'b', begunMs: 3, endedMs: 5 },
      ],
    }),
  ],
  'nothing-after-stop': [
    history(without('go')),
    history(without('go').filter((each) => !['b', 'sb', 'xb'].includes(each.event_id.b64))),
    // What waited when it was stopped begins when the stop is over.
    history([
      ...SOUND.slice(0, 2),
      action('w', 'kw'),
      stop('stop', 'suspend'),
      stop('go', 'resume'),
      start('sw', 'w'),
    ]),
    // The stop is not where it was acknowledged.
    history([...without('go').filter(({ event_id: of }) => of.b64 !== 'stop')], {
      answers: [answer('kb', 'b')],
      stops: [{ ms: 1, eventId: 'grant', grantId: 'grant', effect: 'suspend' }],
    }),
  ],
  'approval-once': [history([...SOUND, action('d', 'kd', { approval_event_ids: [id('yes')] })])],
  'reserved-is-open': [history(SOUND, { live: account(2, 0) }), history(SOUND, { reported: account(3, 1) })],
};

it('all hold of a sound history', () => {
  expect(findBroken(history())).toEqual({});
});

it.each(Object.keys(INVARIANTS) as InvariantName[])('%s is broken by what it is there for', (name) => {
  for (const each of BROKEN[name]) expect(findBroken(each)).toHaveProperty(name);
});

it('what was acknowledged may be gone for who was told so', () => {
  const told = new Set(['gate1']);
  expect(findBroken(history(SOUND, { acknowledged: [acknowledged('lost')], told }))).toEqual({});
});

it('each has one plain sentence', () => {
  for (const { sentence } of Object.values(INVARIANTS)) expect(sentence).toMatch(/^[A-Z][^.]*\.$/);
});
