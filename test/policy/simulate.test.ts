/** What a grant would have denied, and the least grant that denies nothing. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  draftBounds,
  draftGrant,
  parseBounds,
  simulateGrant,
  type MadeCall,
  type Simulation,
} from '../../src/api/log.js';
import type { Meter } from '../../src/base/value/meter.js';
import { type Quantity, toRational } from '../../src/base/value/quantity.js';
import type { Bounds } from '../../src/format/schema/generated/types.js';
import { MAX_LISTED_DENIALS } from '../../src/log/policy/simulate.js';
import { decimalsOf } from '../../src/rules/report/accounts.js';
import { times } from '../slow.js';
import { int } from './bare-events.js';

const usd = (amount: Quantity): Meter[] => [{ unit: 'usd', amount }];
const at = (second: number): string => new Date(Date.UTC(2026, 2, 1, 12, 0, second)).toISOString();

function call(second: number, used = 1, members: Partial<MadeCall> = {}): MadeCall {
  return { toolName: 'fs.read', startedAt: at(second), meterUsed: usd(int(used)), ...members };
}

function boundsOf(members: object): Bounds {
  return parseBounds({ allowed_tools: ['*'], meter_caps: usd(int(100)), ...members });
}

/** How many were allowed, and why the others were not, by second. */
function outline({ allowed, denials }: Simulation): readonly unknown[] {
  return [allowed, ...denials.map(({ call, code }) => [new Date(call.startedAt).getUTCSeconds(), code])];
}

describe('simulateGrant', () => {
  it('settles what is allowed before the next call, and lets a denied call use nothing', () => {
    const result = simulateGrant(
      [call(1, 6), call(2, 5), call(3, 4)],
      boundsOf({ meter_caps: usd(int(10)) }),
    );
    expect(outline(result)).toEqual([2, [2, 'RESERVATION_OVER_CAP']]);
    expect(result).toMatchObject({ calls: 3, needApproval: 0, denied: { RESERVATION_OVER_CAP: 1 } });
    expect(result.denials[0]?.bound).toMatchObject({
      code: 'RESERVATION_OVER_CAP',
      unit: 'usd',
      limit: int(10),
      used: int(6),
      left: int(4),
    });
    expect(decimalsOf(result.remaining)).toEqual({
      usd: { cap: '10', used: '10', reserved: '0', left: '0' },
    });
  });

  it('takes calls in the order of their times, and changes nothing of what it is given', () => {
    const calls = Object.freeze([call(3, 3), call(1, 9), call(2, 2)].map((each) => Object.freeze(each)));
    const result = simulateGrant(calls, boundsOf({ meter_caps: usd(int(10)) }));
    expect(outline(result)).toEqual([1, [2, 'RESERVATION_OVER_CAP'], [3, 'RESERVATION_OVER_CAP']]);
    expect(result.denials[1]?.call).toBe(calls[0]);
  });

  it('counts equal calls each, and a call without calls as one', () => {
    const same = call(1);
    const caps = [{ unit: 'calls', amount: int(2) }];
    const result = simulateGrant([same, same, same], boundsOf({ meter_caps: caps }));
    expect(outline(result)).toEqual([2, [1, 'RESERVATION_OVER_CAP']]);
  });

  it.each<[string, object, MadeCall[], unknown[]]>([
    ['tools', { allowed_tools: ['fs.w*'] }, [call(1)], [0, [1, 'TOOL_NOT_ALLOWED']]],
    ['action caps', { action_caps: usd(int(2)) }, [call(1, 2), call(2, 3)], [1, [2, 'ACTION_CAP_EXCEEDED']]],
    ['an end', { expires_at: at(2) }, [call(1), call(2)], [1, [2, 'GRANT_EXPIRED']]],
    ['an end before all', { expires_at: at(0) }, [call(1)], [0, [1, 'GRANT_EXPIRED']]],
    ['a beginning', { not_before: at(2) }, [call(1), call(2)], [1, [1, 'GRANT_NOT_YET_VALID']]],
    [
      'rates',
      { rate_limits: [{ unit: 'usd.per_10s', amount: int(2) }] },
      [call(1), call(2), call(3), call(20)],
      [3, [3, 'RATE_LIMIT_EXCEEDED']],
    ],
    [
      'concurrency',
      { concurrency_limit: int(1) },
      [call(1, 1, { endedAt: at(5) }), call(2, 1, { endedAt: at(9) }), call(6)],
      [2, [2, 'CONCURRENCY_EXCEEDED']],
    ],
    [
      'resources',
      { resources: [{ kind: 'file', reference: '/a' }] },
      [call(1, 1, { resources: [{ kind: 'file', reference: '/b' }] })],
      [0, [1, 'RESOURCE_NOT_GRANTED']],
    ],
    [
      'approvals',
      { approvals: [{ tools: ['*'], approvers: ['human:*'], above: usd(int(1)) }] },
      [call(1, 1), call(2, 2)],
      [1, [2, 'APPROVAL_REQUIRED']],
    ],
  ])('holds to %s', (_, members, calls, expected) => {
    expect(outline(simulateGrant(calls, boundsOf(members)))).toEqual(expected);
  });

  it('counts calls that need approval apart', () => {
    const bounds = boundsOf({ approvals: [{ tools: ['*'], approvers: ['human:*'] }] });
    expect(simulateGrant([call(1)], bounds)).toMatchObject({ allowed: 0, needApproval: 1, denied: {} });
  });

  it('takes a call that ends before it begins as one that takes no time', () => {
    const calls = [call(1, 1, { endedAt: at(0) }), call(2)];
    expect(simulateGrant(calls, boundsOf({ concurrency_limit: int(1) })).allowed).toBe(2);
  });

  it('lists the first denials, and counts all', () => {
    const calls = Array.from({ length: MAX_LISTED_DENIALS + 1 }, () => call(1));
    const result = simulateGrant(calls, boundsOf({ allowed_tools: ['x'] }));
    expect(result.denied).toEqual({ TOOL_NOT_ALLOWED: MAX_LISTED_DENIALS + 1 });
    expect(result.denials).toHaveLength(MAX_LISTED_DENIALS);
  });

  it('says what is left where there are no calls', () => {
    expect(simulateGrant([], boundsOf({}))).toMatchObject({ calls: 0, allowed: 0, denials: [] });
  });

  it.each<[string, object, typeof TypeError | typeof RangeError]>([
    ['tool', { toolName: 'no tool' }, TypeError],
    ['tool of another type', { toolName: 7 }, TypeError],
    ['time', { startedAt: 'yesterday' }, RangeError],
    ['end', { endedAt: 'tomorrow' }, RangeError],
    ['amount', { meterUsed: [{ unit: 'usd', amount: 1 }] }, TypeError],
    ['negative amount', { meterUsed: usd(int(-1)) }, RangeError],
    ['unit twice', { meterUsed: [...usd(int(1)), ...usd(int(1))] }, RangeError],
    ['resource', { resources: ['x'] }, TypeError],
  ])('refuses a malformed %s', (_, members, type) => {
    expect(() => simulateGrant([call(1), call(2, 1, members)], boundsOf({}))).toThrow(type);
  });
});

describe('parseBounds', () => {
  const bounds = { allowed_tools: ['fs.*'], meter_caps: usd(int(1)) };
  const grant = draftGrant({ principalId: 'agent:a1', allowedTools: ['fs.*'], meterCaps: { usd: 1 } });

  it.each([
    ['bounds', bounds],
    ['a draft', grant],
    ['a record', { event: grant, seq: 1 }],
  ])('takes %s', (_, value) => expect(parseBounds(value)).toEqual(bounds));

  it.each([
    ['no object', 7],
    ['null', null],
    ['a list', [bounds]],
    ['another member', { ...bounds, more: 1 }],
    ['an action', { authorization: { kind: 'action', action: {} } }],
    ['a number as amount', { ...bounds, meter_caps: [{ unit: 'usd', amount: 1 }] }],
  ])('refuses %s', (_, value) =>
    expect(() => parseBounds(value)).toThrow(expect.objectContaining({ code: 'SCHEMA' })),
  );
});

const amounts = fc.oneof(
  fc.integer({ min: 0, max: 1_000 }).map(int),
  fc.record({
    t: fc.constant('dec' as const),
    m: fc.integer({ min: 0, max: 999 }).map(String),
    s: fc.integer({ min: 1, max: 6 }),
  }),
  fc.constantFrom<Quantity>({ t: 'rat', n: '1', d: '3' }, { t: 'f64', bits: '3fb999999999999a' }),
);
const calls = fc.array(
  fc.record({
    toolName: fc.constantFrom(
      'fs.read',
      'fs.write',
      'fs.',
      'fs',
      'net.get',
      '.x',
      'northroot.slice',
      'northroot.x',
    ),
    startedAt: fc.integer({ min: 0, max: 50 }).map(at),
    endedAt: fc.option(fc.integer({ min: 0, max: 50 }).map(at), { nil: undefined }),
    meterUsed: fc
      .uniqueArray(fc.constantFrom('calls', 'usd', 'time.ms', 'tokens'))
      .chain((units) => fc.tuple(...units.map((unit) => amounts.map((amount) => ({ unit, amount }))))),
  }),
  { minLength: 1, maxLength: 12 },
) as fc.Arbitrary<MadeCall[]>;

describe('draftBounds', () => {
  it('states the tools, the sums and the most of one call', () => {
    const made = [call(1, 2), call(2, 3, { toolName: 'fs.write' })];
    const caps = (total: number, sum: number) => [
      { unit: 'calls', amount: int(total) },
      { unit: 'usd', amount: int(sum) },
    ];
    const expected = { meter_caps: caps(2, 5), action_caps: caps(1, 3) };
    expect(draftBounds(made)).toEqual({ allowed_tools: ['fs.read', 'fs.write'], ...expected });
    expect(draftBounds(made, { prefixes: true })).toEqual({ allowed_tools: ['fs.*'], ...expected });
  });

  it('denies nothing of what it was made from', () => {
    fc.assert(
      fc.property(calls, fc.boolean(), (made, prefixes) => {
        const bounds = draftBounds(made, { prefixes });
        expect(simulateGrant(made, bounds)).toMatchObject({ allowed: made.length, denials: [] });
      }),
      { numRuns: times(100, 20_000) },
    );
  });

  it('has no tool and no amount too many', () => {
    fc.assert(
      fc.property(calls, (made) => {
        const bounds = draftBounds(made);
        const isDenied = (less: Bounds): boolean => simulateGrant(made, less).allowed < made.length;
        const { allowed_tools: tools = [], meter_caps: caps = [], action_caps: each = [] } = bounds;
        for (const tool of tools)
          expect(
            isDenied({ ...bounds, allowed_tools: ['none', ...tools.filter((other) => other !== tool)] }),
          ).toBe(true);
        for (const member of ['meter_caps', 'action_caps'] as const)
          for (const { unit, amount } of member === 'meter_caps' ? caps : each) {
            if (toRational(amount).n === 0n) continue;
            const less = (bounds[member] ?? []).map((cap) =>
              cap.unit === unit ? { unit, amount: int(0) } : cap,
            );
            expect(isDenied({ ...bounds, [member]: less })).toBe(true);
          }
      }),
      { numRuns: times(25, 5_000) },
    );
  });

  it('refuses no calls, options that it does not know, and sums that no amount can state', () => {
    expect(() => draftBounds([])).toThrow(RangeError);
    expect(() => draftBounds([call(1)], { prefix: true } as object)).toThrow(TypeError);
    const fine = (d: string) => call(1, 1, { meterUsed: usd({ t: 'rat', n: '1', d }) });
    const two = [
      fine('170141183460469231731687303715884105727'),
      fine('999999999999999999999999999999999999999'),
    ];
    expect(() => draftBounds(two)).toThrow(RangeError);
  });
});
