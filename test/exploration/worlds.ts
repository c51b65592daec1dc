/** The worlds that are explored, and those made wrong, each with what it breaks. */

import type { LiveLedger } from '../../src/log/agent/live-ledger.js';
import { GrantEvaluator } from '../../src/log/policy/evaluator.js';
import type { Account } from '../history.js';
import type { InvariantName } from '../invariants.js';
import type { LedgerOptions } from './ledgers.js';
import { budgetOf, Ledgers } from './ledgers.js';
import { type CallPlan, OWNER, TIMES } from './programs.js';
import { World, type WorldOptions } from './world.js';

export interface Plan {
  readonly ledger: Omit<LedgerOptions, 'calls'>;
  readonly world: Omit<WorldOptions, 'bounds'>;
  /** Of the first grant and the second. */
  readonly bounds: readonly {
    readonly calls: number;
    readonly concurrency?: number;
    readonly perMinute?: number;
  }[];
}

export function worldOf({ ledger, world, bounds }: Plan): World {
  const ledgers = new Ledgers({ ...ledger, calls: world.calls });
  return new World(ledgers, { ...world, bounds: bounds.map((each) => ({ grantId: '', ...each })) });
}

const READ = { tool: 'fs.read', params: 0 } as const;
const PAY = { tool: 'pay', params: 1 } as const;
const NEEDS_APPROVAL = { approvals: [{ tools: ['pay'], approvers: [OWNER] }] } as const;

const CALM = { asks: 1, owner: [], crashes: 0, times: 0, deciders: 2, abandons: false } as const;

/** All of it: two grants, three calls, approval, suspension, revocation, expiry, crashes and two deciders. */
export const FULL: Plan = {
  ledger: {
    grant: { concurrencyLimit: 1, rateLimits: { 'calls.per_min': 2 }, ...NEEDS_APPROVAL },
    subGrant: { calls: 1, expires: TIMES[2] },
  },
  world: {
    calls: [
      { grant: 0, isBegunAtOnce: true, ...READ },
      { grant: 1, isBegunAtOnce: false, ...READ },
      { grant: 0, isBegunAtOnce: false, ...PAY },
    ],
    asks: 2,
    owner: ['approve', ['suspend', 0, 'stop'], ['resume', 0], ['revoke', 1, 'finish']],
    crashes: 2,
    times: 2,
    deciders: 2,
    abandons: true,
  },
  bounds: [{ calls: 2, concurrency: 1, perMinute: 2 }, { calls: 1 }],
};

const CAP: Plan['ledger'] = { grant: {}, subGrant: { calls: 1 } };
const CAPS: Plan['bounds'] = [{ calls: 2 }, { calls: 1 }];

/** Worlds of which every state is looked at. */
export const WHOLE: Readonly<Record<string, Plan>> = {
  'two grants, one cap': {
    ledger: CAP,
    world: {
      ...CALM,
      calls: [
        { grant: 0, isBegunAtOnce: true, ...READ },
        { grant: 1, isBegunAtOnce: true, ...READ },
        { grant: 1, isBegunAtOnce: true, ...READ },
      ],
    },
    bounds: CAPS,
  },
  'a crash at each write': {
    ledger: CAP,
    world: {
      ...CALM,
      calls: [{ grant: 1, isBegunAtOnce: true, ...READ }],
      asks: 2,
      crashes: 2,
      abandons: true,
    },
    bounds: CAPS,
  },
  'suspended and resumed': {
    ledger: CAP,
    world: {
      ...CALM,
      calls: [{ grant: 1, isBegunAtOnce: false, ...READ }],
      asks: 2,
      owner: [
        ['suspend', 0, 'stop'],
        ['resume', 0],
      ],
      crashes: 1,
    },
    bounds: CAPS,
  },
  revoked: {
    ledger: CAP,
    world: {
      ...CALM,
      deciders: 1,
      calls: [
        { grant: 0, isBegunAtOnce: true, ...READ },
        { grant: 1, isBegunAtOnce: false, ...READ },
      ],
      owner: [['revoke', 0, 'stop']],
    },
    bounds: CAPS,
  },
  expired: {
    ledger: { grant: {}, subGrant: { calls: 1, expires: TIMES[2] } },
    world: {
      ...CALM,
      calls: [{ grant: 1, isBegunAtOnce: false, ...READ }],
      asks: 2,
      crashes: 1,
      times: 2,
      abandons: true,
    },
    bounds: CAPS,
  },
  approved: {
    ledger: { grant: NEEDS_APPROVAL, subGrant: { calls: 1 } },
    world: {
      ...CALM,
      calls: [
        { grant: 0, isBegunAtOnce: true, ...PAY },
        { grant: 0, isBegunAtOnce: true, ...PAY },
      ],
      asks: 2,
      owner: ['approve'],
    },
    bounds: CAPS,
  },
  'asked of two at once': {
    ledger: CAP,
    world: {
      ...CALM,
      calls: [{ grant: 1, isBegunAtOnce: true, ...READ }],
      asks: 3,
      crashes: 1,
      abandons: true,
      isImpatient: true,
    },
    bounds: CAPS,
  },
  'decided by a trust policy': {
    ledger: { ...CAP, isPinned: true },
    world: {
      ...CALM,
      calls: [
        { grant: 0, isBegunAtOnce: true, ...READ },
        { grant: 1, isBegunAtOnce: true, ...READ },
      ],
    },
    bounds: CAPS,
  },
  'taken over': {
    ledger: CAP,
    world: {
      ...CALM,
      calls: [
        { grant: 1, isBegunAtOnce: true, ...READ },
        { grant: 1, isBegunAtOnce: true, ...READ },
      ],
      asks: 2,
      isImpatient: true,
      takeovers: 2,
    },
    bounds: CAPS,
  },
  'one at a time': {
    ledger: { grant: { concurrencyLimit: 1, rateLimits: { 'calls.per_min': 1 } }, subGrant: { calls: 1 } },
    world: {
      ...CALM,
      calls: [
        { grant: 0, isBegunAtOnce: false, ...READ },
        { grant: 1, isBegunAtOnce: true, ...READ },
      ],
      deciders: 1,
      asks: 2,
      times: 2,
    },
    bounds: [{ calls: 2, concurrency: 1, perMinute: 1 }, { calls: 1 }],
  },
};

/** Of which every state is looked at too, by hand: two calls of two grants, asked of two deciders, a stop and its end, a crash. */
export const LARGE: Plan = {
  ledger: CAP,
  world: {
    ...CALM,
    calls: [
      { grant: 0, isBegunAtOnce: true, ...READ },
      { grant: 1, isBegunAtOnce: false, ...READ },
    ],
    owner: [
      ['suspend', 0, 'stop'],
      ['resume', 0],
    ],
    crashes: 1,
    abandons: true,
  },
  bounds: CAPS,
};

/** Allows what the grants deny for one reason. */
function allowing(code: string): NonNullable<LedgerOptions['policy']> {
  return (state) => {
    const own = new GrantEvaluator(state);
    return {
      policyId: own.policyId,
      policyDigest: own.policyDigest,
      evaluate: (request) => {
        const answer = own.evaluate(request);
        if (answer.decisionCode !== code) return answer;
        return { ...answer, decision: 'allow', decisionCode: 'ALLOW', reservation: request.meters ?? [] };
      },
    };
  };
}

/** As if what has begun held nothing back. */
async function forgetsBegun(live: LiveLedger, grantId: string): Promise<Account> {
  const { used, reserved } = await budgetOf(live, grantId);
  const { started } = await live.budget(grantId);
  return { used, reserved: reserved - started.length };
}

const TWO_AT_ONCE: readonly CallPlan[] = [
  { grant: 1, isBegunAtOnce: true, ...READ },
  { grant: 1, isBegunAtOnce: true, ...READ },
];
const ONE_CALL: Plan = {
  ledger: CAP,
  world: { ...CALM, calls: [{ grant: 1, isBegunAtOnce: true, ...READ }] },
  bounds: CAPS,
};

function weak(invariant: InvariantName, plan: Plan, more: Partial<Plan['world']>): Weak {
  return { invariant, plan: { ...plan, world: { ...plan.world, ...more } } };
}

interface Weak {
  readonly plan: Plan;
  /** What it breaks, among others. */
  readonly invariant: InvariantName;
}

const CONFUSED = { weakness: 'decides-before-lock' } as const;
const TWO_CALLS: Plan = { ...ONE_CALL, world: { ...ONE_CALL.world, calls: TWO_AT_ONCE } };

/** Worlds with a door that is made wrong. */
export const WEAK: Readonly<Record<string, Weak>> = {
  'the caps are looked at before the lock': weak('cap-held', TWO_CALLS, CONFUSED),
  'concurrency is looked at before the lock': weak(
    'concurrency-held',
    {
      ...TWO_CALLS,
      ledger: { grant: { concurrencyLimit: 1 }, subGrant: { calls: 2 } },
      bounds: [{ calls: 2, concurrency: 1 }, { calls: 2 }],
    },
    CONFUSED,
  ),
  'rates are looked at before the lock': weak(
    'rate-held',
    {
      ...TWO_CALLS,
      ledger: { grant: { rateLimits: { 'calls.per_min': 1 } }, subGrant: { calls: 2 } },
      bounds: [{ calls: 2, perMinute: 1 }, { calls: 2 }],
    },
    CONFUSED,
  ),
  'approvals are looked at before the lock': weak('approval-once', WHOLE['approved'], CONFUSED),
  'revocations are looked at before the lock': weak('nothing-after-stop', ONE_CALL, {
    ...CONFUSED,
    owner: [['suspend', 0, 'stop']],
  }),
  'requests are looked at before the lock': weak(
    'one-action-a-request',
    { ...ONE_CALL, ledger: { grant: {}, subGrant: { calls: 2 } }, bounds: [{ calls: 2 }, { calls: 2 }] },
    { ...CONFUSED, asks: 2, isImpatient: true },
  ),
  'the evaluator ignores revocations': weak(
    'nothing-after-stop',
    { ...ONE_CALL, ledger: { ...CAP, policy: allowing('GRANT_REVOKED') } },
    { owner: [['revoke', 0, 'finish']] },
  ),
  'the evaluator ignores revocations, by a trust policy too': weak(
    'nothing-after-stop',
    { ...ONE_CALL, ledger: { ...CAP, isPinned: true, policy: allowing('GRANT_REVOKED') } },
    { owner: [['revoke', 0, 'finish']] },
  ),
  'the evaluator ignores rules of approval': weak(
    'sound',
    {
      ...ONE_CALL,
      ledger: { grant: NEEDS_APPROVAL, subGrant: { calls: 1 }, policy: allowing('APPROVAL_REQUIRED') },
    },
    { calls: [{ grant: 0, isBegunAtOnce: true, ...PAY }] },
  ),
  'requests are forgotten': weak(
    'one-answer',
    { ...ONE_CALL, ledger: { grant: {}, subGrant: { calls: 2 } }, bounds: [{ calls: 2 }, { calls: 2 }] },
    { weakness: 'forgets-requests', asks: 2, isImpatient: true },
  ),
  'a settlement frees twice': weak(
    'done-once',
    { ...ONE_CALL, ledger: { ...CAP, isStrict: false } },
    { weakness: 'frees-twice' },
  ),
  'a crash loses what was acknowledged': weak('acknowledged-or-told', ONE_CALL, {
    weakness: 'loses-acknowledged',
    crashes: 1,
  }),
  'who asks is told before it is stored': weak('durable-before-told', ONE_CALL, {
    weakness: 'tells-before-stored',
  }),
  'who was taken over appends what it had decided': weak('cap-held', TWO_CALLS, {
    weakness: 'comes-back',
    takeovers: 1,
  }),
  'who was taken over answers a request again': weak(
    'one-action-a-request',
    { ...ONE_CALL, ledger: { grant: {}, subGrant: { calls: 2 } }, bounds: [{ calls: 2 }, { calls: 2 }] },
    { weakness: 'comes-back', takeovers: 1, asks: 2, isImpatient: true },
  ),
  'the store does not compare': weak('one-chain', TWO_CALLS, { weakness: 'no-compare' }),
  'answers come in another order': weak('told-in-order', ONE_CALL, {
    weakness: 'tells-backwards',
    owner: ['note'],
  }),
  'the store never answers': weak('settles-once', { ...ONE_CALL, ledger: { ...CAP, isMute: true } }, {}),
  'what has begun holds nothing back': weak(
    'reserved-is-open',
    { ...ONE_CALL, ledger: { ...CAP, budget: forgetsBegun } },
    {},
  ),
};
