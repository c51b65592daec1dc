/** The grant evaluator: it answers as the verifier will judge, changes nothing, and takes nothing that no event could hold. */

import { describe, expect, it } from 'vitest';
import type { FindingCode } from '../../src/format/finding/catalog.js';
import type { Finding } from '../../src/format/finding/finding.js';
import {
  GrantEvaluator,
  type AuthorizationDecision,
  type AuthorizationRequest,
} from '../../src/log/policy/evaluator.js';
import { findBalance } from '../../src/rules/report/accounts.js';
import type { Meter } from '../../src/base/value/meter.js';
import { fromRational, toRational, type Quantity } from '../../src/base/value/quantity.js';
import { addRationals, subtractRationals } from '../../src/base/value/rational.js';
import { formatInstant, parseTimestamp } from '../../src/base/value/timestamp.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import type { Grant } from '../../src/rules/bounds/grant.js';
import type { VerifyState } from '../../src/rules/verify/state.js';
import { times } from '../slow.js';
import {
  INTENT,
  actionEvent,
  digestOf,
  emptyState,
  executionEvent,
  feed,
  grantEvent,
  int,
  type Bounds,
  type Fed,
} from './bare-events.js';
import { Dice } from './dice.js';

/** Which check each error is held under. */
const CHECK_OF: Partial<Record<FindingCode, string>> = {
  GRANT_NOT_FOUND: 'grant',
  GRANT_DENIED: 'grant',
  HYGIENE_NOT_OK: 'hygiene',
  PRINCIPAL_MISMATCH: 'principal',
  TOOL_NOT_ALLOWED: 'tool',
  GRANT_EXPIRED: 'time',
  RESERVATION_OVER_CAP: 'spend',
  METER_CAP_EXCEEDED: 'spend',
  QUANTITY_INVALID: 'spend',
  RATE_LIMIT_EXCEEDED: 'rate',
  CONCURRENCY_EXCEEDED: 'concurrency',
};

const START = parseTimestamp('2026-03-01T12:00:00Z');
const SECOND = 1_000_000_000n;
const at = (nanoseconds: bigint): string => formatInstant(START + nanoseconds);

const PRINCIPALS = ['agent:a1', 'agent:a1', 'agent:a1', 'agent:a2'];
const TOOLS = ['fs.read', 'fs.read', 'fs.write', 'net.get'];
const PATTERNS = [['*'], ['fs.*'], ['fs.*', 'net.*'], ['fs.read'], ['fs.read*']];
const UNITS = ['calls', 'usd', 'tok'];
const CAPS: readonly Quantity[] = [
  int(3),
  int(10),
  { t: 'dec', m: '25', s: 1 },
  { t: 'rat', n: '7', d: '3' },
  { t: 'f64', bits: '400199999999999a' },
];
const AMOUNTS: readonly Quantity[] = [
  int(0),
  int(1),
  { t: 'dec', m: '5', s: 1 },
  { t: 'rat', n: '1', d: '3' },
  { t: 'f64', bits: '3fb999999999999a' },
];
/** No two of them have a denominator in common, and that of all three has more than 400 digits. */
const FINE_AMOUNTS: readonly Quantity[] = [
  { t: 'rat', n: '1', d: '170141183460469231731687303715884105727' },
  { t: 'rat', n: '1', d: '999999999999999999999999999999999999999' },
  { t: 'f64', bits: '0000000000000001' },
];
const TINY = { n: 1n, d: 10n ** 18n };
const INVALID_INPUT = {
  metrics: { INVALID_UTF8: 1 },
  profile_id: 'northroot-jcs-v1',
  status: 'Invalid',
  warnings: ['INVALID_UTF8'],
} as const;
const LOSSY_INPUT = {
  metrics: { NUMBER_COERCED: 1 },
  profile_id: 'northroot-jcs-v1',
  status: 'Lossy',
  warnings: ['NUMBER_COERCED'],
} as const;

function metersOf(dice: Dice, amount: () => Quantity): Meter[] {
  return UNITS.filter(() => dice.chance(60)).map((unit) => ({ unit, amount: amount() }));
}

function boundsOf(dice: Dice): Bounds {
  const caps = metersOf(dice, () => dice.of(CAPS));
  const window = dice.of(['sec', 'min', 'hour', 'day']);
  const rate = { unit: `${dice.of(UNITS)}.per_${window}`, amount: dice.of(CAPS) };
  return {
    allowed_tools: dice.of(PATTERNS),
    concurrency_limit: dice.chance(30) ? int(1 + dice.below(3)) : undefined,
    expires_at: dice.chance(40) ? at(SECOND * dice.of([-1n, 60n, 120n])) : undefined,
    meter_caps: caps.length === 0 ? [{ unit: 'calls', amount: int(3) }] : caps,
    rate_limits: dice.chance(40) ? [rate] : undefined,
  };
}

interface World {
  readonly state: VerifyState;
  readonly grantIds: readonly string[];
  /** What is used in it, and asked for. */
  readonly amounts: readonly Quantity[];
}

/** A state with grants of every kind, some of them delegated, and what was used of them. */
function makeWorld(dice: Dice): World {
  const state = emptyState();
  const amounts = dice.chance(3) ? FINE_AMOUNTS : AMOUNTS;
  const grantIds: string[] = [];
  const count = 2 + dice.below(5);
  for (let n = 0; n < count; n += 1) {
    const fed = feed(
      state,
      grantEvent({
        principal: dice.of(PRINCIPALS),
        at: at(-SECOND * 3_600n + BigInt(n)),
        decision: dice.chance(10) ? 'deny' : 'allow',
        grantId: n > 0 && dice.chance(50) ? dice.of(grantIds) : undefined,
        bounds: boundsOf(dice),
      }),
    );
    grantIds.push(fed.id);
  }
  for (let n = dice.below(8); n > 0; n -= 1) {
    const startedAt = BigInt(dice.below(120)) * SECOND - 60n * SECOND;
    const common = { principal: 'agent:a1', tool: 'fs.read', meters: metersOf(dice, () => dice.of(amounts)) };
    const authorizationId = dice.chance(50)
      ? dice.of(grantIds)
      : feed(
          state,
          actionEvent({ ...common, at: at(startedAt), params: `before ${n}`, grantId: dice.of(grantIds) }),
        ).id;
    if (dice.chance(30)) continue;
    feed(
      state,
      executionEvent({
        ...common,
        authorizationId,
        startedAt: at(startedAt),
        endedAt: at(startedAt + BigInt(dice.below(90)) * SECOND),
      }),
    );
  }
  return { state, grantIds, amounts };
}

function makeRequest(dice: Dice, { state, grantIds, amounts }: World, params: string): AuthorizationRequest {
  const grantId = dice.chance(80) ? dice.of(grantIds) : undefined;
  const amount = (unit: string): Quantity => {
    const balance = grantId === undefined ? undefined : findBalance(state, grantId, unit);
    if (balance === undefined || dice.chance(60)) return dice.of(amounts);
    const left = toRational(balance.left);
    const near = dice.of([left, left, addRationals(left, TINY), subtractRationals(left, TINY)]);
    try {
      return near.n < 0n ? int(0) : fromRational(near);
    } catch {
      return int(1);
    }
  };
  const meters = UNITS.filter(() => dice.chance(60)).map((unit) => ({ unit, amount: amount(unit) }));
  const second = dice.of([-60n, -1n, 0n, 1n, 59n, 60n, 119n, 120n]);
  return {
    principalId: dice.of(PRINCIPALS),
    toolName: dice.of(TOOLS),
    paramsDigest: digestOf(params),
    intentDigest: INTENT,
    now: at(second * SECOND + dice.of([0n, 0n, -1n, 1n])),
    ...(meters.length === 0 && dice.chance(50) ? {} : { meters }),
    ...(grantId === undefined
      ? {}
      : { grantId: dice.chance(1) ? `sha-256:${digestOf(params).b64}` : grantId }),
    ...(dice.chance(3) ? { hygiene: toReport(dice.of([INVALID_INPUT, LOSSY_INPUT])) } : {}),
  };
}

function toReport({ status, warnings, metrics, profile_id }: typeof INVALID_INPUT | typeof LOSSY_INPUT) {
  return { status, warnings: [...warnings], metrics: { ...metrics }, profile_id };
}

/** The errors that the request gives once it is recorded as allowed, in the order in which they are found. */
function recordAction(
  state: VerifyState,
  request: AuthorizationRequest,
  grantId: string,
  params: string,
): Fed {
  const { principalId: principal, toolName: tool, now, meters, hygiene } = request;
  return feed(
    state,
    actionEvent({ principal, tool, at: now, params, meters, grantId, hygiene: hygiene && sorted(hygiene) }),
  );
}

/** The same once it is executed at once with all that it asked for. */
function recordExecution(
  state: VerifyState,
  request: AuthorizationRequest,
  authorizationId: string,
  params: string,
): Fed {
  const { principalId: principal, toolName: tool, now, meters = [] } = request;
  const endedAt = formatInstant(parseTimestamp(now) + 1n);
  return feed(
    state,
    executionEvent({ principal, tool, params, authorizationId, startedAt: now, endedAt, meters }),
  );
}

/** The errors by the check that they are held under. */
function errorsIn(findings: readonly Finding[]): Map<string, string[]> {
  const errors = new Map<string, string[]>();
  for (const { code, severity } of findings) {
    if (severity !== 'error') continue;
    const check = CHECK_OF[code] ?? 'none';
    errors.set(check, [...(errors.get(check) ?? []), code]);
  }
  return errors;
}

/** What is denied live though verification has no finding for it: under an unsound grant, and where any unit is overdrawn. */
function deniedLive(state: VerifyState, grantId: string | undefined): [string, string][] {
  const first = state.links.grants.get(grantId?.slice('sha-256:'.length) ?? '');
  if (first?.decision !== 'allow') return [];
  const chain: (typeof first)[] = [];
  for (let each: typeof first | undefined = first; each !== undefined; each = each.parent) chain.push(each);
  const isOverdrawn = chain.some(({ accounts }) =>
    [...accounts.values()].some(
      ({ cap, used, reserved }) => subtractRationals(cap, addRationals(used, reserved)).n < 0n,
    ),
  );
  return [
    ...(chain.every(({ isSound }) => isSound) ? [] : [['grant', 'GRANT_UNSOUND'] as [string, string]]),
    ...(isOverdrawn ? [['spend', 'METER_CAP_EXCEEDED'] as [string, string]] : []),
  ];
}

function describeAnswers(answer: AuthorizationDecision, failed: Map<string, string[]>): string {
  return `the evaluator says ${JSON.stringify(answer)}, the verifier ${JSON.stringify([...failed])}`;
}

function sorted(hygiene: object): object {
  return Object.fromEntries(Object.entries(hygiene).sort(([a], [b]) => (a < b ? -1 : 1)));
}

describe('the evaluator and the verifier', () => {
  const REQUESTS = times(10_000, 100_000);
  const REQUESTS_PER_WORLD = 25;
  const WORLDS = REQUESTS / REQUESTS_PER_WORLD;
  /** What shows in executions only, or may. */
  const IN_EXECUTIONS = ['RATE_LIMIT_EXCEEDED', 'CONCURRENCY_EXCEEDED', 'QUANTITY_INVALID'];

  it(`agree on ${REQUESTS.toLocaleString('en')} random requests`, () => {
    const answers = new Map<string, number>();
    for (let seed = 0; seed < WORLDS; seed += 1) {
      const dice = new Dice(seed);
      const world = makeWorld(dice);
      const { state } = world;
      const evaluator = new GrantEvaluator(state);
      for (let n = 0; n < REQUESTS_PER_WORLD; n += 1) {
        const params = `request ${n}`;
        const request = makeRequest(dice, world, params);
        const answer = evaluator.evaluate(request);
        const own = deniedLive(state, answer.grantId);
        answers.set(answer.decisionCode, (answers.get(answer.decisionCode) ?? 0) + 1);
        const grantId = answer.grantId ?? request.grantId;
        // There is no grant that it could be recorded under.
        if (grantId === undefined) continue;
        const failed = answer.checks.filter(({ result }) => result === 'fail');
        const action = recordAction(state, request, grantId, params);
        // Most denials show in the action already; executing them too would only take its time.
        const inAction = failed.filter(({ code = '' }) => !IN_EXECUTIONS.includes(code));
        const isWhole = inAction.length === 0 || inAction.length < failed.length || dice.chance(20);
        const execution = isWhole ? recordExecution(state, request, action.id, params).findings : [];
        const errors = errorsIn([...action.findings, ...execution]);
        for (const [check, code] of own) {
          // By what verification finds it is denied first.
          if (errors.has(check)) errors.get(check)?.push(code);
          else errors.set(check, [code]);
        }
        const isAlike =
          failed.length === errors.size &&
          failed.every(({ check, code }) => errors.get(check)?.includes(code as string)) &&
          answer.decision === (errors.size === 0 ? 'allow' : 'deny') &&
          answer.decisionCode === (failed[0]?.code ?? 'ALLOW');
        if (!isAlike) expect.fail(`seed ${seed}, request ${n}: ${describeAnswers(answer, errors)}`);
      }
    }
    // The requests are of every kind.
    for (const code of ['ALLOW', 'GRANT_UNSOUND', ...Object.keys(CHECK_OF)]) {
      expect([code, (answers.get(code) ?? 0) > times(1, 50)]).toEqual([code, true]);
    }
  });
});

describe('of several grants', () => {
  const nearness = ({ checks, decisionCode }: AuthorizationDecision): readonly [number, number] => [
    checks.some(({ check, result }) => check === 'tool' && result === 'pass') ? 1 : 0,
    checks.findIndex(({ code }) => code === decisionCode),
  ];
  const isNearer = (one: AuthorizationDecision, other: AuthorizationDecision): boolean => {
    const [[tool, failed], [otherTool, otherFailed]] = [nearness(one), nearness(other)];
    if (tool !== otherTool) return tool > otherTool;
    if (failed !== otherFailed) return failed > otherFailed;
    const [bound, otherBound] = [one.bound, other.bound];
    if (bound?.left === undefined || otherBound?.left === undefined || bound.unit !== otherBound.unit)
      return false;
    return subtractRationals(toRational(bound.left), toRational(otherBound.left)).n > 0n;
  };

  it('the first that allows it decides, else the nearest, as each of them alone says', () => {
    const codes = new Map<string, number>();
    for (let seed = 0; seed < times(400, 4_000); seed += 1) {
      const dice = new Dice(seed);
      const world = makeWorld(dice);
      const { state, grantIds } = world;
      const withdrawn = state.links.grants.at(dice.below(grantIds.length));
      const { place } = withdrawn as NonNullable<typeof withdrawn>;
      if (dice.chance(30))
        Object.assign(withdrawn as object, {
          withdrawal: { effect: 'suspend', place, stop: undefined, byAuthority: false },
        });
      const evaluator = new GrantEvaluator(state);
      for (let n = 0; n < 10; n += 1) {
        const { grantId, ...request } = makeRequest(dice, world, `request ${n}`);
        void grantId;
        const alone = [...state.links.grants.allowedTo(request.principalId)].map(({ place: { eventId } }) =>
          evaluator.evaluate({ ...request, grantId: eventId }),
        );
        const [first, ...rest] = alone;
        const expected =
          alone.find(({ decision }) => decision === 'allow') ??
          (first && rest.reduce((best, each) => (isNearer(each, best) ? each : best), first));
        const answer = evaluator.evaluate(request);
        codes.set(answer.decisionCode, (codes.get(answer.decisionCode) ?? 0) + 1);
        if (expected !== undefined) expect([seed, n, answer]).toEqual([seed, n, expected]);
      }
    }
    for (const code of ['ALLOW', 'GRANT_REVOKED', 'GRANT_EXPIRED', 'RESERVATION_OVER_CAP'])
      expect([code, (codes.get(code) ?? 0) > 10]).toEqual([code, true]);
  });

  it('those that are used up or over are not judged', () => {
    const state = emptyState();
    const bounds = { allowed_tools: ['fs.*'], meter_caps: [{ unit: 'usd', amount: int(0) }] };
    const feedGrant = (n: number, more: Partial<Bounds>): string => {
      const draft = { principal: 'agent:a1', at: at(BigInt(n) - SECOND), bounds: { ...bounds, ...more } };
      return feed(state, grantEvent(draft)).id;
    };
    for (let n = 0; n < 20; n += 1) feedGrant(n, n % 2 === 0 ? {} : { expires_at: at(0n) });
    const last = feedGrant(20, { meter_caps: [{ unit: 'usd', amount: int(5) }] });
    const judged = new Set<Grant>();
    for (const grant of state.links.grants.values()) {
      const { intent } = grant;
      Object.defineProperty(grant, 'intent', { get: () => (judged.add(grant), intent) });
    }
    const meters = [{ unit: 'usd', amount: int(1) }];
    const answer = new GrantEvaluator(state).evaluate({ ...REQUEST, meters });
    expect(answer).toMatchObject({ decision: 'allow', grantId: last });
    expect(judged.size).toBe(1);
    // A denial tells of the nearest: of the ten whose time is over it is none.
    judged.clear();
    expect(
      new GrantEvaluator(state).evaluate({ ...REQUEST, meters: [{ unit: 'usd', amount: int(9) }] }).decision,
    ).toBe('deny');
    expect(judged.size).toBe(11);
  });
});

/** A state with one grant of these bounds, and what a request under it needs. */
function makeGrant(bounds: Partial<Bounds> = {}): { state: VerifyState; grantId: string } {
  const state = emptyState();
  const all = { allowed_tools: ['fs.*'], meter_caps: [{ unit: 'usd', amount: int(10) }], ...bounds };
  const { id } = feed(state, grantEvent({ principal: 'agent:a1', at: at(-SECOND), bounds: all }));
  return { state, grantId: id };
}

const REQUEST: AuthorizationRequest = {
  principalId: 'agent:a1',
  toolName: 'fs.read',
  paramsDigest: digestOf('params'),
  intentDigest: INTENT,
  now: at(0n),
};

describe('the evaluator', () => {
  it('changes nothing in the state that it is asked about', () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const dice = new Dice(seed);
      const world = makeWorld(dice);
      const evaluator = new GrantEvaluator(world.state);
      const before = saveVerification({ state: world.state, findings: [] });
      for (let n = 0; n < 10; n += 1) evaluator.evaluate(makeRequest(dice, world, `request ${n}`));
      const after = saveVerification({ state: world.state, findings: [] });
      expect(Buffer.compare(before, after)).toBe(0);
    }
  });

  it('answers the same of a state that was saved', () => {
    for (let seed = 0; seed < 50; seed += 1) {
      const dice = new Dice(seed);
      const world = makeWorld(dice);
      const { state } = restoreVerification(saveVerification({ state: world.state, findings: [] }));
      for (let n = 0; n < 5; n += 1) {
        const request = makeRequest(dice, world, `request ${n}`);
        const answer = new GrantEvaluator(world.state).evaluate(request);
        expect(new GrantEvaluator(state).evaluate(request)).toEqual(answer);
      }
    }
  });

  it('allows, with what is then left', () => {
    const { state, grantId } = makeGrant({
      meter_caps: [
        { unit: 'usd', amount: int(10) },
        { unit: 'calls', amount: int(3) },
      ],
    });
    const meters = [
      { unit: 'usd', amount: { t: 'dec', m: '25', s: 1 } },
      { unit: 'tok', amount: int(7) },
    ] as const;
    const answer = new GrantEvaluator(state).evaluate({ ...REQUEST, meters });
    expect(answer).toMatchObject({ decision: 'allow', decisionCode: 'ALLOW', grantId, reservation: meters });
    expect(answer.checks.map(({ check, result }) => `${check} ${result}`)).toEqual([
      'grant pass',
      'hygiene pass',
      'principal pass',
      'intent pass',
      'tool pass',
      'time pass',
      'spend pass',
      'rate pass',
      'concurrency pass',
      'resource pass',
    ]);
    expect(answer.remaining).toEqual([
      {
        unit: 'usd',
        cap: int(10),
        used: int(0),
        reserved: { t: 'dec', m: '25', s: 1 },
        left: { t: 'dec', m: '75', s: 1 },
      },
      { unit: 'calls', cap: int(3), used: int(0), reserved: int(0), left: int(3) },
    ]);
    expect(answer).not.toHaveProperty('reason');
  });

  it.each<[string, Partial<Bounds>, Partial<AuthorizationRequest>, string]>([
    ['all of the cap', {}, { meters: [{ unit: 'usd', amount: int(10) }] }, 'ALLOW'],
    [
      'the least more than the cap',
      {},
      { meters: [{ unit: 'usd', amount: { t: 'dec', m: `10${'0'.repeat(17)}1`, s: 18 } }] },
      'RESERVATION_OVER_CAP',
    ],
    ['a unit without a cap', {}, { meters: [{ unit: 'tok', amount: int(10n ** 38n) }] }, 'ALLOW'],
    ['one nanosecond before expiry', { expires_at: at(1n) }, {}, 'ALLOW'],
    ['at expiry', { expires_at: at(0n) }, {}, 'GRANT_EXPIRED'],
    ['at expiry, spelled otherwise', { expires_at: '2026-03-01T12:00:00.000Z' }, {}, 'GRANT_EXPIRED'],
    ['the prefix of a pattern alone', {}, { toolName: 'fs.' }, 'TOOL_NOT_ALLOWED'],
    [
      'the last instant that there is',
      { concurrency_limit: int(1) },
      { now: '9999-12-31T23:59:59.999999999Z' },
      'ALLOW',
    ],
  ])('decides on %s', (_what, bounds, request, code) => {
    const { state, grantId } = makeGrant(bounds);
    const evaluator = new GrantEvaluator(state);
    expect(evaluator.evaluate({ ...REQUEST, ...request, grantId }).decisionCode).toBe(code);
  });

  it("takes the first of the principal's grants that allows it, and otherwise tells of the nearest", () => {
    const state = emptyState();
    const grants = [
      { allowed_tools: ['net.*'], meter_caps: [{ unit: 'usd', amount: int(1) }] },
      { allowed_tools: ['fs.*'], meter_caps: [{ unit: 'usd', amount: int(1) }] },
      { allowed_tools: ['fs.*'], meter_caps: [{ unit: 'usd', amount: int(5) }] },
      { allowed_tools: ['fs.*'], meter_caps: [{ unit: 'usd', amount: int(9) }] },
    ].map((bounds) => feed(state, grantEvent({ principal: 'agent:a1', at: at(-SECOND), bounds })).id);
    const ask = (usd: number) =>
      new GrantEvaluator(state).evaluate({ ...REQUEST, meters: [{ unit: 'usd', amount: int(usd) }] });
    expect([1, 2, 6].map((usd) => ask(usd).grantId)).toEqual([grants[1], grants[2], grants[3]]);
    expect(ask(10)).toMatchObject({ decisionCode: 'RESERVATION_OVER_CAP', grantId: grants[3] });
  });

  const usd = (amount: number, unit = 'usd') => [{ unit, amount: int(amount) }];
  const FS = ['fs.*'];
  const APPROVALS = [{ approvers: ['human:*'], tools: FS }];
  /** Each case: the bounds of two grants, and why the nearer one denies. It is told, whichever of them comes first. */
  it.each<[string, Bounds, Bounds, string]>([
    [
      'allows the tool, though its caps are spent',
      { allowed_tools: ['net.*'], meter_caps: usd(99) },
      { allowed_tools: FS, meter_caps: usd(1) },
      'RESERVATION_OVER_CAP',
    ],
    [
      'allows the tool, though it has expired',
      { allowed_tools: ['net.*'], meter_caps: usd(99) },
      { allowed_tools: FS, meter_caps: usd(99), expires_at: at(0n) },
      'GRANT_EXPIRED',
    ],
    [
      'lives, though its caps are spent',
      { allowed_tools: FS, meter_caps: usd(99), expires_at: at(0n) },
      { allowed_tools: FS, meter_caps: usd(1) },
      'RESERVATION_OVER_CAP',
    ],
    [
      'has more left of the unit',
      { allowed_tools: FS, meter_caps: usd(1) },
      { allowed_tools: FS, meter_caps: usd(5) },
      'RESERVATION_OVER_CAP',
    ],
    [
      'somebody can approve',
      { allowed_tools: FS, meter_caps: usd(5) },
      { allowed_tools: FS, meter_caps: usd(99), approvals: APPROVALS },
      'APPROVAL_REQUIRED',
    ],
  ])('tells of the grant that %s', (_, farther, nearer, code) => {
    for (const order of [
      [farther, nearer],
      [nearer, farther],
    ]) {
      const state = emptyState();
      const ids = order.map(
        (bounds) => feed(state, grantEvent({ principal: 'agent:a1', at: at(-SECOND), bounds })).id,
      );
      const answer = new GrantEvaluator(state).evaluate({ ...REQUEST, meters: usd(9) });
      expect(answer).toMatchObject({
        decision: 'deny',
        decisionCode: code,
        grantId: ids[order.indexOf(nearer)],
      });
    }
  });

  it('tells of the first of grants that are equally near', () => {
    const state = emptyState();
    const [first] = [usd(2), usd(3, 'tok'), usd(2)].map((caps) => {
      const bounds = { allowed_tools: FS, meter_caps: caps };
      return feed(state, grantEvent({ principal: 'agent:a1', at: at(-SECOND), bounds })).id;
    });
    const meters = [...usd(9), ...usd(9, 'tok')];
    expect(new GrantEvaluator(state).evaluate({ ...REQUEST, meters }).grantId).toBe(first);
  });

  it('lists only the checks that it made', () => {
    const state = emptyState();
    const bounds = { allowed_tools: ['*'], meter_caps: [{ unit: 'usd', amount: int(1) }] };
    const { id } = feed(
      state,
      grantEvent({ principal: 'agent:a2', at: at(-SECOND), bounds, decision: 'deny' }),
    );
    const evaluator = new GrantEvaluator(state);
    const failed = [
      { check: 'grant', result: 'fail', code: 'GRANT_DENIED' },
      { check: 'hygiene', result: 'pass' },
    ];
    expect(evaluator.evaluate({ ...REQUEST, grantId: id })).toMatchObject({
      decision: 'deny',
      decisionCode: 'GRANT_DENIED',
      grantId: id,
      checks: failed,
    });
    const missing = [
      { check: 'grant', result: 'fail', code: 'GRANT_NOT_FOUND' },
      { check: 'hygiene', result: 'fail', code: 'HYGIENE_NOT_OK' },
    ];
    for (const grantId of [undefined, `sha-256:${digestOf('none').b64}`]) {
      const hygiene = toReport(INVALID_INPUT);
      const answer = evaluator.evaluate({ ...REQUEST, hygiene, ...(grantId && { grantId }) });
      expect(answer).toMatchObject({ decision: 'deny', decisionCode: 'GRANT_NOT_FOUND', checks: missing });
      expect(answer).toMatchObject({ grantId: undefined, reservation: [], remaining: [] });
    }
  });

  it('says in a deny what was expected and found', () => {
    const { state } = makeGrant();
    const meters = [{ unit: 'usd', amount: int(12) }];
    const { reason } = new GrantEvaluator(state).evaluate({ ...REQUEST, meters });
    expect(reason).toMatch(/^expected usd at most 10 .*found 0 used before, 12 by this event: 2 over$/);
  });

  const OTHERS: readonly [string, Record<string, unknown>, typeof TypeError | typeof RangeError][] = [
    ['no principal', { principalId: undefined }, TypeError],
    ['a principal of no kind', { principalId: 'bob' }, TypeError],
    ['no tool', { toolName: undefined }, TypeError],
    ['a tool with a space', { toolName: 'fs read' }, TypeError],
    ['a tool pattern', { toolName: 'fs.*' }, TypeError],
    ['no time', { now: undefined }, TypeError],
    ['a Date', { now: new Date(0) }, TypeError],
    ['a day that does not exist', { now: '2026-02-30T00:00:00Z' }, TypeError],
    ['another time zone', { now: '2026-02-03T00:00:00+01:00' }, TypeError],
    ['no parameters', { paramsDigest: undefined }, TypeError],
    ['a digest as text', { paramsDigest: 'sha-256:x' }, TypeError],
    ['a digest of another length', { intentDigest: { alg: 'sha-256', b64: 'AAAA' } }, TypeError],
    ['a context that is no digest', { contextDigest: 7 }, TypeError],
    ['a grant that is no id', { grantId: 'sha-256:AAAA' }, TypeError],
    ['a grant that is a number', { grantId: 3 }, TypeError],
    ['a hygiene report that is none', { hygiene: { status: 'Invalid' } }, TypeError],
    ['meters that are no list', { meters: { usd: 1 } }, TypeError],
    ['a meter without an amount', { meters: [{ unit: 'usd' }] }, TypeError],
    ['a unit with a capital', { meters: [{ unit: 'USD', amount: int(1) }] }, TypeError],
    ['a number as amount', { meters: [{ unit: 'usd', amount: 1 }] }, TypeError],
    ['an amount with letters', { meters: [{ unit: 'usd', amount: { t: 'int', v: 'abc' } }] }, RangeError],
    ['an amount of no type', { meters: [{ unit: 'usd', amount: { t: 'big', v: '1' } }] }, RangeError],
    [
      'more than 64 units',
      { meters: Array.from({ length: 65 }, (_, n) => ({ unit: `u${n}`, amount: int(1) })) },
      TypeError,
    ],
    ['a negative amount', { meters: [{ unit: 'usd', amount: int(-1) }] }, RangeError],
    [
      'a unit twice',
      {
        meters: [
          { unit: 'usd', amount: int(1) },
          { unit: 'usd', amount: int(1) },
        ],
      },
      RangeError,
    ],
    [
      'a fraction that is not reduced',
      { meters: [{ unit: 'usd', amount: { t: 'rat', n: '2', d: '4' } }] },
      RangeError,
    ],
    [
      'an infinite double',
      { meters: [{ unit: 'usd', amount: { t: 'f64', bits: '7ff0000000000000' } }] },
      RangeError,
    ],
  ];

  it.each(OTHERS)('refuses %s', (_what, members, kind) => {
    const { state } = makeGrant();
    const request = { ...REQUEST, ...members };
    expect(() => new GrantEvaluator(state).evaluate(request)).toThrow(kind);
  });

  it('takes digests of other systems', () => {
    const { state } = makeGrant();
    const foreign = { alg: 'blake3', b64: 'AAAA' };
    const request = { ...REQUEST, paramsDigest: foreign, intentDigest: foreign, contextDigest: foreign };
    expect(new GrantEvaluator(state).evaluate(request).decision).toBe('allow');
  });
});
