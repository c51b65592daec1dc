/**
 * Random ledgers of bare events for the model test: a few principals, tools, units and instants, so that bounds are met, touched
 * and broken all the time; links mostly to what they should name, now and then to something else. Each event comes from a seed
 * of its own: a sequence shrinks by leaving events out. A topic makes some sorts of events more frequent, and the others calmer.
 */

import type { AnyEvent } from '../../src/format/event/build.js';
import { CANONICAL_PROFILE_ID } from '../../src/base/json/profile.js';
import type { ApprovalEvent, AuthorizationEvent } from '../../src/format/schema/generated/types.js';
import type { Digest } from '../../src/base/value/digest.js';
import type { Meter } from '../../src/base/value/meter.js';
import type { Quantity } from '../../src/base/value/quantity.js';
import type { Entry } from './naive-checker.js';
import { digestOf, isMalformed, malformed, number, withIds } from './support.js';

const PRINCIPALS = ['agent:a1', 'agent:a2', 'service:s1'];
const SLICE = 'northroot.slice';
const TOOLS = ['fs.read', 'fs.read', 'fs.read', 'fs.write', 'fs.', 'http.get', SLICE];
const PATTERNS = ['*', '*', '*', 'fs.*', 'fs.read', 'fs.', 'fs.r*', 'http.*', SLICE, 'northroot.*'];
const APPROVERS = ['human:h1', 'human:h1', 'human:h2', 'human:h2', 'human:h', 'agent:a2', 'agent:a1'];
const APPROVER_PATTERNS = ['human:*', 'human:h*', 'human:h1', 'human:h1*', 'human:h2', 'agent:*'];
const UNITS = ['usd', 'tok', 'calls'];
/** Windows. Some have several spellings. */
const WINDOWS = [
  ['sec', '1s'],
  ['min', '60s', '1m'],
  ['90s'],
  ['hour', '60m'],
  ['day', '24h', '1d'],
  ['week'],
];
const AMOUNTS: readonly Quantity[] = [
  { t: 'int', v: '0' },
  { t: 'int', v: '1' },
  { t: 'int', v: '1' },
  { t: 'int', v: '2' },
  { t: 'rat', n: '1', d: '3' },
  { t: 'rat', n: '2', d: '3' },
  { t: 'dec', m: '150', s: 2 },
  { t: 'dec', m: '3', s: 1 },
  { t: 'f64', bits: '3fb999999999999a' },
  { t: 'f64', bits: '3fc999999999999a' },
  { t: 'f64', bits: '8000000000000000' },
];
const CAPS: readonly Quantity[] = [
  ...AMOUNTS,
  { t: 'int', v: '4' },
  { t: 'int', v: '9' },
  { t: 'int', v: '9' },
];
/** In order. Some have two spellings. */
const INSTANTS = [
  ['2026-01-01T12:00:00Z', '2026-01-01T12:00:00.0Z'],
  ['2026-01-01T12:00:00.000000001Z'],
  ['2026-01-01T12:00:00.5Z', '2026-01-01T12:00:00.50Z'],
  ['2026-01-01T12:00:00.999999999Z'],
  ['2026-01-01T12:00:01Z', '2026-01-01T12:00:01.000000000Z'],
  ['2026-01-01T12:00:01.5Z'],
  ['2026-01-01T12:00:59.999999999Z'],
  ['2026-01-01T12:01:00Z'],
  ['2026-01-01T12:01:00.5Z'],
  ['2026-01-01T13:00:00Z'],
  ['2026-01-02T12:00:00Z'],
];
const INTENTS = ['intent', 'intent', 'intent', 'other', 'user'];
const BASES = ['measured', 'reported', 'estimated', 'estimated', 'billed'];
const RESOURCES = ['/a', '/b'].map((reference) => ({ kind: 'file', reference }));

export const TOPICS = ['all', 'approvals', 'revocations'] as const;
export type Topic = (typeof TOPICS)[number];

/** How often each sort of event comes, by topic. */
const WEIGHTS = {
  all: { grant: 5, action: 5, execution: 9, adjustment: 3, start: 4, other: 1, approval: 3, revocation: 2 },
  approvals: {
    grant: 3,
    action: 8,
    execution: 6,
    adjustment: 0,
    start: 1,
    other: 0,
    approval: 12,
    revocation: 0,
  },
  revocations: {
    grant: 4,
    action: 7,
    execution: 10,
    adjustment: 1,
    start: 6,
    other: 0,
    approval: 0,
    revocation: 6,
  },
} as const satisfies Record<Topic, object>;
type Sort = keyof (typeof WEIGHTS)['all'];

/** Choices that follow from a seed. */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** 0 … n − 1 (mulberry32). */
  below(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % n;
  }

  oneIn(n: number): boolean {
    return this.below(n) === 0;
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)];
  }

  /** Some of the list, in its order. */
  some<T>(list: readonly T[], oneIn = 2): T[] {
    return list.filter(() => this.oneIn(oneIn));
  }

  vector(units: readonly string[], amounts: readonly Quantity[], oneIn = 2): Meter[] {
    return this.some(units, oneIn).map((unit) => ({ unit, amount: this.of(amounts) }));
  }

  instant(from = 0): string {
    return this.of(INSTANTS[from + this.below(INSTANTS.length - from)]);
  }
}

/** Makes events one after the other. */
class Maker {
  readonly #made: AnyEvent[] = [];
  readonly #sorts: readonly Sort[];
  readonly #isCalm: boolean;
  #now = 0;

  constructor(topic: Topic) {
    this.#isCalm = topic !== 'all';
    this.#sorts = Object.entries(WEIGHTS[topic]).flatMap(([sort, weight]) =>
      Array.from({ length: weight }, () => sort as Sort),
    );
  }

  make(seed: number): Entry & { readonly delay: number } {
    const dice = new Dice(seed);
    const delay = dice.oneIn(10) ? dice.below(7) : 0;
    if (dice.oneIn(30) && this.#made.length > 0) {
      const event = dice.of(this.#made);
      return { event, malformed: isMalformed(event), delay };
    }
    if (dice.oneIn(3)) this.#now = Math.min(this.#now + 1, INSTANTS.length - 1);
    const draft = this.#draft(dice, this.#made.length === 0 ? 'grant' : dice.of(this.#sorts));
    const event = complete(
      {
        event_version: '1',
        canonical_profile_id: CANONICAL_PROFILE_ID,
        occurred_at: dice.oneIn(this.#isCalm ? 12 : 8) ? dice.instant() : dice.of(INSTANTS[this.#now]),
        principal_id: PRINCIPALS[0],
        ...draft,
        ...number(this.#made.length),
        ...(dice.oneIn(20) && { prev_event_id: this.#any(dice) }),
      },
      dice.oneIn(40),
    );
    this.#made.push(event);
    return { event, malformed: isMalformed(event), delay };
  }

  #draft(dice: Dice, sort: Sort): object {
    switch (sort) {
      case 'grant':
        return this.#grant(dice);
      case 'action':
        return this.#action(dice);
      case 'execution':
        return this.#execution(dice);
      case 'adjustment':
        return this.#adjustment(dice);
      case 'start':
        return this.#start(dice);
      case 'approval':
        return this.#approval(dice);
      case 'revocation':
        return this.#revocation(dice);
      case 'other':
        return { event_type: dice.of(['x.note', 'mystery', 'enigma']) };
    }
  }

  #grant(dice: Dice): object {
    const named = dice.oneIn(2) ? this.#latest(dice, 'grant') : undefined;
    const parent = this.#find(named);
    const inherited = parent?.authorization.kind === 'grant' ? parent.authorization.bounds : undefined;
    const own: Record<string, unknown> = {
      allowed_tools: [dice.of(PATTERNS), ...dice.some(PATTERNS, 6)],
      meter_caps: [{ unit: 'usd', amount: dice.of(CAPS) }, ...dice.vector(['calls', 'tok'], CAPS)],
      ...(dice.oneIn(4) && { action_caps: dice.vector(UNITS, AMOUNTS) }),
      ...(dice.oneIn(2) && {
        rate_limits: dice
          .vector(
            UNITS.flatMap((unit) => WINDOWS.map((window) => `${unit}.per_${dice.of(window)}`)),
            CAPS,
            10,
          )
          .slice(0, 16),
      }),
      ...(dice.oneIn(6) && { max_delegation_depth: dice.below(3) }),
      ...(dice.oneIn(5) && {
        not_before: dice.of(INSTANTS[Math.max(this.#now - 2 + dice.below(4), 0)] ?? INSTANTS[0]),
      }),
      ...(dice.oneIn(2) && { concurrency_limit: { t: 'int', v: dice.of(['1', '2']) } }),
      ...(dice.oneIn(3) && { expires_at: dice.instant(this.#now) }),
      ...(dice.oneIn(4) && { output_mode: dice.of(['digest_only', 'allow_contentref', 'allow_inline']) }),
      ...(dice.oneIn(4) && { resources: dice.some(RESOURCES) }),
      ...(!dice.oneIn(3) && {
        approvals: [this.#rule(dice), ...(dice.oneIn(3) ? [this.#rule(dice)] : [])],
      }),
    };
    if (this.#isCalm && !dice.oneIn(4)) {
      own['allowed_tools'] = ['*', ...dice.some([SLICE])];
      for (const name of ['rate_limits', 'concurrency_limit', 'not_before', 'output_mode']) delete own[name];
    }
    // A child that takes all from its parent but one bound may be within it.
    const changed = dice.of(Object.entries(own));
    const bounds =
      inherited === undefined || dice.oneIn(3) ? own : { ...inherited, ...Object.fromEntries([changed]) };
    const slice = { ledger_id: digestOf('parent'), event_id: digestOf(dice.of(['slice', 'other slice'])) };
    const authorization = {
      kind: 'grant',
      bounds,
      ...(named ? { grant_event_id: named } : dice.oneIn(3) && { slice }),
    };
    return { ...decisionOf(dice), principal_id: dice.of(PRINCIPALS), authorization };
  }

  #rule(dice: Dice): object {
    const [unit, ...units] = dice.vector(UNITS, AMOUNTS);
    return {
      tools: dice.oneIn(3) ? [dice.of(PATTERNS)] : ['*'],
      approvers: dice.oneIn(2) ? ['*'] : [dice.of(APPROVER_PATTERNS), ...dice.some(['human:h2'], 4)],
      ...(dice.oneIn(2) && unit && { above: [unit, ...units] }),
      ...(dice.oneIn(2) && { count: dice.of([1, 2, 2, 2, 3]) }),
      ...(dice.oneIn(3) && { max_age_s: dice.of([1, 1, 2, 60, 3_600]) }),
    };
  }

  #action(dice: Dice): object {
    const given = this.#made
      .filter(({ event_type: type }) => type === 'approval')
      .slice(-5) as unknown as ApprovalEvent[];
    const approvals = dice.oneIn(3) ? dice.some(given, 5) : dice.some(given, 2);
    const model = dice.oneIn(6) ? undefined : approvals.at(-1);
    const of = dice.oneIn(8) ? undefined : this.#latest(dice, 'grant');
    // A grant, or one below it, where that is among the last.
    const below = model && this.#made.filter((event) => this.#isUnder(event, model.grant_event_id)).slice(-3);
    const named =
      below === undefined || below.length === 0 || dice.oneIn(6)
        ? of
        : dice.oneIn(2)
          ? model?.grant_event_id
          : dice.of(below).event_id;
    const ids = [...approvals.map((each) => each.event_id), ...(dice.oneIn(15) ? [this.#any(dice)] : [])];
    const some = dice.vector(UNITS, AMOUNTS);
    // An allow always has explicit bounds.
    const needed = named === undefined && some.length === 0;
    const reservation = needed ? [{ unit: 'usd', amount: dice.of(AMOUNTS) }] : some;
    const authorization = {
      kind: 'action',
      action: {
        tool_name: model === undefined || dice.oneIn(12) ? dice.of(TOOLS) : model.tool_name,
        tool_params_digest: model === undefined || dice.oneIn(12) ? paramsOf(dice) : model.tool_params_digest,
        ...(ids.length > 0 && { approval_event_ids: distinct(ids) }),
        ...((named === undefined || !dice.oneIn(4)) && { meter_reservation: reservation }),
        ...(dice.oneIn(5) && { expires_at: dice.instant(this.#now) }),
        ...(dice.oneIn(2) && { request_key: dice.of(['a', 'a', 'b']) }),
      },
      ...(named && { grant_event_id: named }),
    };
    return { ...decisionOf(dice), principal_id: this.#principalFor(dice, named), authorization };
  }

  #execution(dice: Dice): object {
    const begun = dice.oneIn(4) ? this.#lastStarted() : undefined;
    const named = begun ?? this.#latest(dice, dice.oneIn(3) ? 'grant' : 'action');
    const authorization = this.#find(named)?.authorization;
    const action = authorization?.kind === 'action' ? authorization.action : undefined;
    const start = Math.max(this.#now - dice.of([0, 0, 0, 1, 3]), 0);
    const authorized = this.#find(named)?.intents.intent_digest;
    const startedAt = dice.of(INSTANTS[start]);
    const end = Math.min(start + dice.of([-1, 0, 1, 1, 2, 3, 5]), INSTANTS.length - 1);
    const settled = dice.oneIn(2) ? this.#startOf(dice, named) : undefined;
    // Where something was started, give it back more often.
    const [first, second] = begun === undefined ? ['success', 'failure'] : ['release', 'release'];
    const outcome = dice.of(['success', first, second, 'release', 'unknown']);
    // What was started is given back by nothing less than a release.
    const isWhole = outcome === 'release' && begun !== undefined;
    const isShort = isWhole || (outcome === 'release' && dice.oneIn(2));
    const used = dice.oneIn(3) ? (action?.meter_reservation ?? []) : dice.vector(UNITS, AMOUNTS);
    const stated = outcome === 'release' || dice.oneIn(6) ? [] : used;
    return {
      event_type: 'execution',
      principal_id: this.#principalFor(dice, named),
      intents: { intent_digest: dice.oneIn(15) ? digestOf('other') : (authorized ?? digestOf('intent')) },
      auth_event_id: named,
      ...(settled && { prev_event_id: settled }),
      tool_name: action === undefined || dice.oneIn(10) ? dice.of(TOOLS) : action.tool_name,
      ...(!dice.oneIn(6) && {
        tool_params_digest: dice.oneIn(8)
          ? digestOf('other')
          : (action?.tool_params_digest ?? digestOf('params')),
      }),
      ...(!dice.oneIn(3) && {
        started_at: startedAt,
        ended_at: dice.of(INSTANTS[isShort ? start : Math.max(end, 0)]),
      }),
      ...(dice.oneIn(12) && { started_at: startedAt }),
      ...(dice.oneIn(3) && { meter_basis: dice.of(BASES) }),
      ...(stated.length > 0 &&
        dice.oneIn(4) && { meter_basis_by_unit: { [dice.of(stated).unit]: dice.of(BASES) } }),
      meter_used: stated,
      outcome: outcome === 'release' ? 'failure' : outcome,
      ...((outcome === 'failure' || outcome === 'release') && {
        error_code: outcome === 'release' ? 'ABANDONED' : 'E',
      }),
      ...(!isWhole && dice.oneIn(2) && { output_ref: { digest: digestOf('output') } }),
      ...(!isWhole && dice.oneIn(8) && { output_digest: digestOf('output') }),
      ...(!isWhole && dice.oneIn(5) && { resources_touched: dice.some(RESOURCES) }),
    };
  }

  #start(dice: Dice): object {
    const again = dice.oneIn(2) ? this.#lastStarted() : undefined;
    const named = again ?? this.#latest(dice, dice.oneIn(3) ? 'grant' : 'action');
    const authorization = this.#find(named)?.authorization;
    const action = authorization?.kind === 'action' ? authorization.action : undefined;
    const earlier = dice.oneIn(4) ? undefined : this.#startOf(dice, named);
    const [first, ...others] = dice.vector(UNITS, AMOUNTS);
    return {
      event_type: 'x.northroot.start',
      principal_id: this.#principalFor(dice, named),
      intents: { intent_digest: digestOf('intent') },
      auth_event_id: named,
      ...(earlier && { prev_event_id: earlier }),
      ...(!dice.oneIn(40) && {
        tool_name: action === undefined || dice.oneIn(15) ? dice.of(TOOLS) : action.tool_name,
      }),
      ...(!dice.oneIn(30) && {
        tool_params_digest: dice.oneIn(30)
          ? digestOf('other')
          : (action?.tool_params_digest ?? digestOf('params')),
      }),
      ...(!dice.oneIn(30) && { started_at: dice.of(INSTANTS[this.#now]) }),
      ...(!dice.oneIn(30) && {
        meter_known: first === undefined ? [] : [first, ...others, ...(dice.oneIn(30) ? [first] : [])],
      }),
      ...(!dice.oneIn(30) && { recorder: dice.oneIn(30) ? 'a-short-name' : 'a-recorder-of-its-own' }),
    };
  }

  /** What was started last. */
  #lastStarted(): Digest | undefined {
    const last = this.#made.findLast(({ event_type: type }) => type === 'x.northroot.start');
    return last?.['auth_event_id'] as Digest | undefined;
  }

  /** The id of one of the last starts of an authorization; now and then of any start. */
  #startOf(dice: Dice, named: Digest): Digest | undefined {
    const isOf = (event: AnyEvent): boolean =>
      event.event_type === 'x.northroot.start' &&
      ((event['auth_event_id'] as Digest).b64 === named.b64 || dice.oneIn(20));
    const made = this.#made.filter(isOf).slice(-2);
    return made.length === 0 ? undefined : dice.of(made).event_id;
  }

  #adjustment(dice: Dice): object {
    const [first, ...others] = dice.vector(UNITS, AMOUNTS);
    const executions = this.#made.filter(({ event_type: type }) => type === 'execution').slice(-4);
    const execution =
      executions.length === 0 || dice.oneIn(8) ? this.#any(dice) : dice.of(executions).event_id;
    return {
      event_type: 'adjustment',
      principal_id: dice.oneIn(4) ? dice.of(PRINCIPALS) : 'service:billing',
      grant_event_id: this.#latest(dice, 'grant'),
      direction: dice.of(['credit', 'credit', 'debit']),
      meters: [first ?? { unit: 'usd', amount: dice.of(AMOUNTS) }, ...others],
      reason: 'CORRECTION',
      ...(dice.oneIn(2) && { execution_event_id: execution }),
      ...(dice.oneIn(2) && { meter_basis: dice.of(BASES) }),
    };
  }

  /** Often like one of the last approvals but for a member or two: by another principal, of another tool, a reject. */
  #approval(dice: Dice): object {
    const given = this.#made
      .filter(({ event_type: type }) => type === 'approval')
      .slice(-3) as unknown as ApprovalEvent[];
    const requests = this.#made.filter((event) => kindOf(event) === 'action').slice(-3);
    const [unit, ...units] = dice.vector(UNITS, AMOUNTS);
    const grant = this.#latest(dice, 'grant');
    const above = this.#find(grant)?.authorization.grant_event_id;
    const changes = {
      principal_id: dice.oneIn(5) ? this.#principalFor(dice, above ?? grant) : dice.of(APPROVERS),
      decision: dice.of(['approve', 'approve', 'reject']),
      tool_name: dice.of(TOOLS),
      tool_params_digest: paramsOf(dice),
      grant_event_id: above !== undefined && dice.oneIn(3) ? above : grant,
    };
    const model = given.length > 0 && !dice.oneIn(4) ? dice.of(given) : undefined;
    const names = [...dice.some(Object.keys(changes), 8), ...(dice.oneIn(3) ? ['decision'] : [])];
    const alike = model && {
      ...Object.fromEntries(Object.keys(changes).map((key) => [key, model[key as keyof ApprovalEvent]])),
      ...Object.fromEntries(Object.entries(changes).filter(([key]) => names.includes(key))),
    };
    const request = requests.length === 0 || dice.oneIn(6) ? this.#any(dice) : dice.of(requests).event_id;
    return {
      event_type: 'approval',
      ...changes,
      ...alike,
      decision_code: 'CODE',
      ...(dice.oneIn(4) && unit && { meter_limit: [unit, ...units] }),
      ...(dice.oneIn(4) && { expires_at: dice.instant(this.#now) }),
      ...(dice.oneIn(4) && { request_event_id: request }),
      ...(dice.oneIn(4) && { occurred_at: dice.instant() }),
    };
  }

  /** Of one of the last grants, or of the one above. */
  #revocation(dice: Dice): object {
    const grant = this.#latest(dice, 'grant');
    const last = this.#made.findLast(({ event_type: type }) => type === 'revocation');
    const above = this.#find(grant)?.authorization.grant_event_id;
    const named = above !== undefined && dice.oneIn(2) ? above : grant;
    const effect = dice.of(['revoke', 'suspend', 'suspend', 'suspend', 'resume', 'resume', 'resume']);
    return {
      event_type: 'revocation',
      principal_id: dice.of(PRINCIPALS),
      grant_event_id: last !== undefined && dice.oneIn(2) ? last['grant_event_id'] : named,
      effect,
      ...(effect !== 'resume' && { in_flight: dice.of(['finish', 'stop']) }),
      reason: 'CODE',
    };
  }

  /** Whether an event is a grant, or one of the grants right below it. */
  #isUnder(event: AnyEvent, grant: Digest): boolean {
    const above = this.#find(event.event_id)?.authorization.grant_event_id;
    return kindOf(event) === 'grant' && (event.event_id.b64 === grant.b64 || above?.b64 === grant.b64);
  }

  /** The id of one of the last authorizations of a kind; now and then of anything, or of nothing. */
  #latest(dice: Dice, kind: 'grant' | 'action'): Digest {
    const made = this.#made.filter((event) => kindOf(event) === kind);
    return made.length === 0 || dice.oneIn(this.#isCalm ? 40 : 20)
      ? this.#any(dice)
      : dice.of(made.slice(-3)).event_id;
  }

  #any(dice: Dice): Digest {
    return dice.oneIn(3) || this.#made.length === 0
      ? digestOf(dice.of(['nowhere', 'elsewhere']))
      : dice.of(this.#made).event_id;
  }

  #find(id: Digest | undefined): AuthorizationEvent | undefined {
    const event = this.#made.find(({ event_id: own }) => own.b64 === id?.b64);
    return event?.event_type === 'authorization' ? (event as unknown as AuthorizationEvent) : undefined;
  }

  #principalFor(dice: Dice, named: Digest | undefined): string {
    const principal = this.#find(named)?.principal_id;
    return principal === undefined || dice.oneIn(15) ? dice.of(PRINCIPALS) : principal;
  }
}

function decisionOf(dice: Dice): object {
  const hygiene = { warnings: [], metrics: {}, profile_id: CANONICAL_PROFILE_ID };
  return {
    event_type: 'authorization',
    intents: {
      intent_digest: digestOf(dice.of(INTENTS)),
      ...(dice.oneIn(2) && { user_intent_digest: digestOf(dice.of(INTENTS)) }),
    },
    policy_id: 'p',
    policy_digest: digestOf('policy'),
    decision: dice.oneIn(8) ? 'deny' : 'allow',
    decision_code: 'CODE',
    ...(dice.oneIn(5) && {
      checks: ['first', 'second'].map((check) => ({ check, result: dice.oneIn(8) ? 'fail' : 'pass' })),
    }),
    ...(dice.oneIn(5) && {
      hygiene: { ...hygiene, status: dice.of(['Ok', 'Ok', 'Lossy', 'Ambiguous', 'Invalid']) },
    }),
  };
}

/** A member that a known type of event may not have, if it is to be broken. */
function complete(payload: object, broken: boolean): AnyEvent {
  const { event_type: type } = payload as AnyEvent;
  return broken && /^(authorization|execution|adjustment|approval|revocation)$/.test(type)
    ? malformed(payload)
    : withIds(payload);
}

function paramsOf(dice: Dice): Digest {
  return digestOf(dice.oneIn(10) ? 'other params' : 'params');
}

/** Each id once. */
function distinct(ids: readonly Digest[]): Digest[] {
  return ids.filter((id, index) => ids.findIndex(({ b64 }) => b64 === id.b64) === index);
}

function kindOf(event: AnyEvent): string | undefined {
  return (event['authorization'] as { kind: string } | undefined)?.kind;
}

/** The ledger that follows from a topic and a list of seeds, one an event. */
export function makeSequence(seeds: readonly number[], topic: Topic = 'all'): Entry[] {
  const maker = new Maker(topic);
  return seeds
    .map((seed, index) => {
      const { delay, ...entry } = maker.make(seed);
      return { entry, order: index + delay };
    })
    .sort((a, b) => a.order - b.order)
    .map(({ entry }) => entry);
}
