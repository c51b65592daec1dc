/**
 * Random ledgers of bare events for the model test: a few principals, tools, units and instants, so that bounds are met, touched
 * and broken all the time; links mostly to what they should name, now and then to something else.
 */

import fc from 'fast-check';
import { buildEvent, type AnyEvent } from '../../src/event/build.js';
import { identifyEvent } from '../../src/event/identity.js';
import type { Bounds } from '../../src/schema/generated/types.js';
import type { Quantity } from '../../src/value/quantity.js';
import type { Entry } from './naive-checker.js';
import { RELEASE, digestOf, number } from './support.js';

const PRINCIPALS = ['agent:a1', 'agent:a2', 'service:s1'];
const TOOLS = ['fs.read', 'fs.write', 'fs.', 'http.get'];
const PATTERNS = ['*', 'fs.*', 'fs.read', 'fs.', 'http.*', 'http.get'];
const UNITS = ['usd', 'tok', 'calls'];
const RATE_UNITS = ['calls.per_sec', 'usd.per_sec', 'calls.per_min', 'tok.per_min', 'usd.per_day', 'usd.per_hour'];
const AMOUNTS: readonly Quantity[] = [
  { t: 'int', v: '1' },
  { t: 'int', v: '0' },
  { t: 'int', v: '2' },
  { t: 'rat', n: '1', d: '3' },
  { t: 'dec', m: '150', s: 2 },
  { t: 'rat', n: '2', d: '3' },
  { t: 'dec', m: '3', s: 1 },
  { t: 'f64', bits: '3fb999999999999a' },
  { t: 'f64', bits: '3fc999999999999a' },
  { t: 'f64', bits: '8000000000000000' },
  { t: 'int', v: '5' },
];
/** In order; the third is the second in other words. */
const INSTANTS = [
  '2026-01-01T11:59:59Z',
  '2026-01-01T12:00:00Z',
  '2026-01-01T12:00:00.0Z',
  '2026-01-01T12:00:00.000000001Z',
  '2026-01-01T12:00:00.5Z',
  '2026-01-01T12:00:00.999999999Z',
  '2026-01-01T12:00:01Z',
  '2026-01-01T12:00:01.5Z',
  '2026-01-01T12:00:02Z',
  '2026-01-01T12:00:59.999999999Z',
  '2026-01-01T12:01:00Z',
  '2026-01-01T12:01:00.5Z',
  '2026-01-01T13:00:00Z',
  '2026-01-02T12:00:00Z',
];
const RESOURCES = ['/a', '/b'].map((reference) => ({ kind: 'file', reference }));
const MODES = ['digest_only', 'allow_contentref', 'allow_inline'] as const;

/** `usual`, or one time in `one` something else. */
function mostly<T>(one: number, usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof(
    { weight: one - 1, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: other },
  );
}

function option<T>(one: number, value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return mostly<T | undefined>(one, undefined, value);
}

function vector(units: readonly string[], minLength: number): fc.Arbitrary<Meters> {
  const meter = fc.record({ unit: fc.constantFrom(...units), amount: fc.constantFrom(...AMOUNTS) });
  return fc.uniqueArray(meter, { minLength, maxLength: 3, selector: ({ unit }) => unit });
}

type Meters = { readonly unit: string; readonly amount: Quantity }[];

const instant = fc.nat(INSTANTS.length - 1);
/** What an event names: the n-th last grant, the n-th last action, any event, or one that is nowhere. */
const link = fc.record({
  among: fc.constantFrom(...(['grant', 'action', 'any', 'nowhere'] as const)),
  nth: fc.nat(3),
});
type Link = typeof link extends fc.Arbitrary<infer T> ? T : never;

const common = {
  /** The step of the clock, or an instant of its own. */
  tick: mostly<{ step: number } | { at: number }>(
    8,
    { step: 0 },
    fc.oneof(fc.record({ step: fc.constant(1) }), fc.record({ at: instant })),
  ),
  /** Whether the principal is that of the event named, else which. */
  principal: option(12, fc.nat(PRINCIPALS.length - 1)),
  previous: option(15, link),
  /** By how many places the event stands later than it was made: so that links can lead forwards. */
  delay: mostly(10, 0, fc.nat(6)),
  isMalformed: mostly(40, false, fc.constant(true)),
};

const authorization = {
  ...common,
  isAllow: mostly(6, true, fc.constant(false)),
  checks: option(6, fc.array(fc.boolean(), { maxLength: 2 })),
  hygiene: option(8, fc.constantFrom('Ok', 'Lossy', 'Ambiguous', 'Invalid')),
};

const grantPlan = fc.record({
  kind: fc.constant('grant' as const),
  ...authorization,
  parent: option(2, mostly<Link>(10, { among: 'grant', nth: 0 }, link)),
  /** Which bounds it takes over from its parent, if it has one: all of them, or those whose bit is set. */
  inherited: mostly(2, 127, fc.nat(127)),
  tools: fc.uniqueArray(fc.constantFrom(...PATTERNS), { minLength: 1, maxLength: 3 }),
  caps: vector(UNITS, 1),
  rates: option(2, vector(RATE_UNITS, 0)),
  concurrency: option(3, fc.constantFrom('1', '2')),
  expires: option(3, instant),
  mode: option(4, fc.constantFrom(...MODES)),
  resources: option(4, fc.subarray(RESOURCES)),
});

const actionPlan = fc.record({
  kind: fc.constant('action' as const),
  ...authorization,
  grant: option(2, mostly<Link>(8, { among: 'grant', nth: 0 }, fc.record({ among: fc.constant('grant' as const), nth: fc.nat(3) }))).map(
    (found) => found ?? { among: 'grant' as const, nth: 0 },
  ),
  hasGrant: mostly(6, true, fc.constant(false)),
  strayGrant: option(12, link),
  tool: fc.nat(TOOLS.length - 1),
  reservation: option(2, vector(UNITS, 0)),
});

const executionPlan = fc.record({
  kind: fc.constant('execution' as const),
  ...common,
  authorization: fc.oneof(
    { weight: 6, arbitrary: fc.record({ among: fc.constantFrom('grant' as const, 'action' as const), nth: fc.nat(1) }) },
    { weight: 1, arbitrary: link },
  ),
  /** The tool, parameters and intent are those of the authorization where not given. */
  tool: option(5, fc.nat(TOOLS.length - 1)),
  params: fc.constantFrom(undefined, 'params', 'params', 'other'),
  intent: mostly(12, 'intent', fc.constant('other')),
  /** What was reserved, or something else. */
  used: option(2, vector(UNITS, 0)),
  outcome: fc.constantFrom('success', 'success', 'failure', 'release'),
  started: option(2, fc.tuple(instant, mostly<number | undefined>(6, 1, fc.constantFrom(undefined, -1, 0, 2, 4)))),
  ended: option(2, fc.nat(4)),
  hasOutput: mostly(5, false, fc.constant(true)),
  resources: option(5, fc.subarray(RESOURCES)),
});

const otherPlan = fc.record({
  kind: fc.constant('other' as const),
  ...common,
  type: fc.constantFrom('x.note', 'mystery', 'enigma'),
});

const repeatPlan = fc.record({ kind: fc.constant('repeat' as const), delay: common.delay, nth: fc.nat(5) });

type Plan<A = typeof grantPlan | typeof actionPlan | typeof executionPlan | typeof otherPlan> =
  A extends fc.Arbitrary<infer T> ? T : never;
