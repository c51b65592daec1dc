/**
 * Ledgers made to be slow or large to judge: what is held grows by no more than so many bytes an event, and findings are folded
 * or not kept. SLOW=1 runs them at full size, prints what was measured, and holds times against each other too: twice as many
 * events take at most about three times as long. How fast a machine is, is never said.
 */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { peakOverlap } from '../../src/rules/bounds/timeline.js';
import { type AnyEvent, buildEvent } from '../../src/format/event/build.js';
import { identifyPayload, payloadOf } from '../../src/format/event/identity.js';
import { bytesSource } from '../bytes-source.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { listGrants, listOpenAuthorizations } from '../../src/rules/report/accounts.js';
import { meters } from '../../src/base/value/meter.js';
import type { Quantity } from '../../src/base/value/quantity.js';
import { formatInstant, parseTimestamp } from '../../src/base/value/timestamp.js';
import { runVerification } from '../../src/rules/verify/run-verification.js';
import { BareRun, NOON, RELEASE, digestOf, makeAction, makeExecution, makeGrant } from './support.js';

const IS_SLOW = process.env.SLOW === '1';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const ID = digestOf('in place of event_id');
const DIGEST = digestOf('in place of payload_digest');

/** Lines that differ from an event in some of its texts, with the right ids, made without building each event. */
class Template {
  readonly #payload: string;
  readonly #line: string;
  readonly #slots: readonly string[];

  /** @param changes - Members that replace the event's; the slots stand in them or in the event. */
  constructor(event: AnyEvent, changes: object, slots: readonly string[]) {
    const payload = { ...payloadOf(event), ...changes };
    this.#payload = canonicalText(payload);
    this.#line = canonicalText({ ...payload, event_id: ID, payload_digest: DIGEST });
    this.#slots = slots;
  }

  /** The line with these texts in the slots. */
  line(...texts: readonly (string | number)[]): { readonly text: string; readonly id: string } {
    const fill = (text: string): string =>
      this.#slots.reduce((filled, slot, index) => filled.replaceAll(slot, String(texts[index])), text);
    const { eventId, payloadDigest } = identifyPayload(Buffer.from(fill(this.#payload)));
    const text = fill(this.#line).replace(ID.b64, eventId).replace(DIGEST.b64, payloadDigest);
    return { text, id: eventId };
  }
}

const ALWAYS = 10n ** 30n;
const LINK = digestOf('in place of a link');
const NUMBER = 'in place of a number';
/** Members that any event of the kind may have, for a number that makes it another event. */
const NUMBERED = { authorization: { policy_id: NUMBER }, execution: { model_id: NUMBER } } as const;

function numberedBy(event: AnyEvent, ...slots: readonly string[]): Template {
  return new Template(event, NUMBERED[event.event_type as keyof typeof NUMBERED], [NUMBER, ...slots]);
}

/** The same event so many times, each with another number. */
function* repeat(event: AnyEvent, count: number): Generator<string, void, void> {
  const template = numberedBy(event);
  for (let n = 0; n < count; n += 1) yield template.line(n).text;
}

interface Measured {
  readonly milliseconds: number;
  /** What the state holds, in the heap and in typed arrays. */
  readonly bytes: number;
  readonly state: BareRun['state'];
  /** How many were listed. */
  readonly findings: number;
}

/** Verifies the lines; measures the processor's time for it, without that for making them, and what is held at the end. */
function measure(lines: Iterable<string>): Measured {
  const held = (): number => {
    collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = held();
  const run = new BareRun();
  let findings = 0;
  let microseconds = 0;
  let batch: string[] = [];
  const verify = (): void => {
    const start = process.cpuUsage();
    for (const line of batch) findings += run.push(line).length;
    const { user, system } = process.cpuUsage(start);
    microseconds += user + system;
    batch = [];
  };
  for (const line of lines) {
    batch.push(line);
    if (batch.length === 500) verify();
  }
  verify();
  findings += run.end().length;
  return { milliseconds: microseconds / 1_000, bytes: held() - before, state: run.state, findings };
}

interface Size {
  readonly size: number;
  /** With SLOW=1. */
  readonly full: number;
  readonly bytesPerEvent: number;
}

/**
 * Measures a hostile ledger, and in the long run one of half the size. The collector has its own mind: one round of four in which
 * the time grows as it should is enough, since what is quadratic shows in each.
 */
function expectLinear(
  { size, full, bytesPerEvent }: Size,
  makeLines: (size: number) => Iterable<string>,
): Measured {
  const whole = IS_SLOW ? full : size;
  const ratios: string[] = [];
  const held: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    const all = measure(makeLines(whole));
    // Two million: what a state holds from the beginning, and the noise; what grows with the events shows in each round.
    if (all.bytes >= whole * bytesPerEvent + 2e6) {
      held.push(all.bytes);
      continue;
    }
    // Only the long run, on a machine of its own, holds times against each other.
    if (!IS_SLOW) return all;
    const half = measure(makeLines(whole / 2));
    console.log(expect.getState().currentTestName, describeGrowth(whole, half, all));
    const ratio = all.milliseconds / half.milliseconds;
    if (ratio <= 3) return all;
    ratios.push(ratio.toFixed(1));
  }
  return expect.fail(
    `twice as many events took ${ratios.join(', ')} times as long, and ${held.join(', ')} bytes`,
  );
}

function describeGrowth(size: number, half: Measured, all: Measured): string {
  const [first, second] = [half, all].map(
    ({ milliseconds, bytes }) => `${Math.round(milliseconds)} ms and ${(bytes / 1e6).toFixed(1)} MB`,
  );
  const each = (all.milliseconds * 1e3) / size;
  return `${size / 2}: ${first}; ${size}: ${second} (${each.toFixed(1)} µs and ${Math.round(all.bytes / size)} bytes each), ${all.findings} findings`;
}

/** Seconds after noon. */
function after(seconds: number): string {
  return formatInstant(parseTimestamp(NOON) + BigInt(seconds) * 1_000_000_000n);
}

/** Rationals of 39 digits, no two denominators of which have a factor in common worth speaking of. */
function fineAmount(n: number): Quantity {
  return { t: 'rat', n: '1', d: String(10n ** 38n + BigInt(2 * n + 1)) };
}

describe('links', () => {
  test('grants that delegate in a chain', () => {
    const { findings, state } = expectLinear(
      { size: 2_000, full: 100_000, bytesPerEvent: 4_000 },
      function* (size) {
        const root = makeGrant();
        yield canonicalText(root);
        const template = numberedBy(makeGrant({}, LINK), LINK.b64);
        let parent = root.event_id.b64;
        for (let n = 1; n < size; n += 1) {
          const { text, id } = template.line(n, parent);
          yield text;
          parent = id;
        }
      },
    );
    const grants = listGrants(state);
    expect(findings).toBe(grants.length - 32);
  });

  test('executions at the end of such a chain count against 32 grants', () => {
    const chain = [makeGrant({ caps: { usd: 10n ** 12n } })];
    while (chain.length < 200) chain.push(makeGrant({ caps: { usd: 10n ** 12n } }, chain.at(-1)));
    const { state } = expectLinear({ size: 1_000, full: 20_000, bytesPerEvent: 300 }, function* (size) {
      for (const grant of chain) yield canonicalText(grant);
      yield* repeat(makeExecution(chain[199], { usd: 1n }), size);
    });
    const executions = listGrants(state).map((grant) => grant.executions);
    expect(executions.filter((count) => count > 0)).toHaveLength(32);
  });

  test('links that lead forwards resolve when they are met', () => {
    const { state, findings } = expectLinear(
      { size: 2_000, full: 200_000, bytesPerEvent: 2_500 },
      function* (size) {
        const early = numberedBy(makeExecution(LINK), LINK.b64);
        const late = numberedBy(makeGrant());
        for (let n = 0; n < size / 2; n += 1) yield early.line(n, late.line(n).id).text;
        for (let n = 0; n < size / 2; n += 1) yield late.line(n).text;
      },
    );
    expect([...state.links.pending.values()].length).toBe(0);
    expect(findings).toBe(listGrants(state).length);
  });

  test('links that would lead in a circle, in events with ids that are not theirs', () => {
    const { state } = expectLinear({ size: 2_000, full: 100_000, bytesPerEvent: 3_000 }, function* (size) {
      const claim = (id: string, parent: string): string =>
        canonicalText({ ...makeGrant({}, LINK), event_id: ID })
          .replace(ID.b64, id)
          .replaceAll(LINK.b64, parent);
      const text = claim('in place of the id', 'in place of the parent');
      const idOf = (n: number): string => `${String(n).padStart(42, '0')}A`;
      for (let n = 0; n < size; n += 1) {
        // Pairs that name each other, and grants that name themselves.
        const parent = n % 3 === 0 ? n + 1 : n % 3 === 1 ? n - 1 : n;
        yield text.replace('in place of the id', idOf(n)).replace('in place of the parent', idOf(parent));
      }
    });
    expect(Math.max(...[...state.links.grants.values()].map(({ depth }) => depth))).toBe(2);
  });

  test('executions that name nothing, all of them the same', () => {
    const { findings } = expectLinear({ size: 2_000, full: 200_000, bytesPerEvent: 250 }, (size) =>
      repeat(makeExecution(digestOf('nowhere')), size),
    );
    expect(findings).toBe(1);
  });

  test('executions that name nothing, each something else', () => {
    const { findings, state } = expectLinear(
      { size: 2_000, full: 200_000, bytesPerEvent: 1_500 },
      function* (size) {
        const template = numberedBy(makeExecution(LINK), LINK.b64);
        for (let n = 0; n < size; n += 1) yield template.line(n, `${String(n).padStart(42, '0')}A`).text;
      },
    );
    expect(findings).toBe(state.records);
  });

  test('actions that name one missing grant', () => {
    const { findings, state } = expectLinear({ size: 2_000, full: 100_000, bytesPerEvent: 2_500 }, (size) =>
      repeat(makeAction(makeGrant()), size),
    );
    expect(findings).toBe(1);
    expect(listOpenAuthorizations(state)).toHaveLength(state.records);
  });
});

describe('executions', () => {
  test('of one action', () => {
    const grant = makeGrant({ caps: { usd: 10n ** 12n } });
    const action = makeAction(grant, { usd: 1n });
    const { findings, state } = expectLinear(
      { size: 2_000, full: 1_000_000, bytesPerEvent: 250 },
      function* (size) {
        yield canonicalText(grant);
        yield canonicalText(action);
        yield* repeat(makeExecution(action, { usd: 1n }), size);
      },
    );
    expect(findings).toBe(1);
    expect(listGrants(state)).toMatchObject([{ executions: state.records - 2 }]);
  });

  test('of one grant, each of them a violation: findings are counted, not kept', async () => {
    const grant = makeGrant({ caps: { usd: 0n } });
    const lines = function* (size: number): Generator<string, void, void> {
      yield canonicalText(grant);
      yield* repeat(makeExecution(grant, { usd: 1n }), size);
    };
    const { findings } = expectLinear({ size: 2_000, full: 1_000_000, bytesPerEvent: 250 }, lines);
    expect(findings).toBe(IS_SLOW ? 1_000_000 : 2_000);
    const bytes = Buffer.from([...lines(3_000)].map((line) => `${line}\n`).join(''));
    const result = await runVerification(bytesSource(bytes, 'bare.jsonl'), { maxFindings: 100 });
    expect([result.findings.length, result.total]).toEqual([100, 3_000]);
  });

  test('that go back in time, under limits of rates and concurrency', () => {
    const grant = makeGrant({ rates: { 'calls.per_min': 20n, 'calls.per_day': 10n }, concurrency: 3n });
    const recorded = { occurred_at: '2027-01-01T00:00:00Z' };
    const execution = makeExecution(grant, {}, { started_at: NOON, ended_at: NOON, ...recorded });
    const slots = { model_id: NUMBER, started_at: 'in place of a start', ended_at: 'in place of an end' };
    const lines = (order: (n: number, size: number) => number) =>
      function* (size: number): Generator<string, void, void> {
        yield canonicalText(grant);
        const template = new Template(execution, slots, Object.values(slots));
        for (let n = 0; n < size; n += 1) {
          const second = order(n, size);
          yield template.line(n, after(second), after(second + 5)).text;
        }
      };
    const size = { size: 1_500, full: 60_000, bytesPerEvent: 1_500 };
    const back = expectLinear(
      size,
      lines((n, all) => all - n),
    );
    const forth = expectLinear(
      size,
      lines((n) => n),
    );
    const mixed = expectLinear(
      size,
      lines((n, all) => (n * 7_919) % all),
    );
    expect(mixed.findings).toBeGreaterThan(0);
    expect(back.findings).toBe(forth.findings);
  });

  test('that all happen at once, under the same limits', () => {
    const grant = makeGrant({ rates: { 'calls.per_day': 10n }, concurrency: 3n });
    const { findings, state } = expectLinear(
      { size: 1_500, full: 60_000, bytesPerEvent: 250 },
      function* (size) {
        yield canonicalText(grant);
        yield* repeat(makeExecution(grant, {}, { started_at: NOON, ended_at: after(1) }), size);
      },
    );
    const executions = state.records - 1;
    expect(findings).toBe(executions - 10 + (executions - 3));
  });

  test('at the end of a chain of grants with 16 limits of rates each', () => {
    const units = ['calls', ...Array.from({ length: 3 }, (_, n) => `u${n}`)];
    const limits = units.flatMap((unit) =>
      ['sec', 'min', 'hour', 'day'].map((per) => [`${unit}.per_${per}`, 9n]),
    );
    const used = Object.fromEntries(units.slice(1).map((unit) => [unit, 1n]));
    const draft = { rates: Object.fromEntries(limits) as Record<string, bigint>, caps: used };
    const chain = [makeGrant(draft)];
    while (chain.length < 32) chain.push(makeGrant(draft, chain.at(-1)));
    const execution = makeExecution(chain[31], used, { started_at: NOON });
    const slots = { model_id: NUMBER, started_at: 'in place of a start' };
    // 512 limits hold what each execution used: much for one line, and no more for the next.
    expectLinear({ size: 8, full: 200, bytesPerEvent: 800_000 }, function* (size) {
      for (const grant of chain) yield canonicalText(grant);
      const template = new Template(execution, slots, Object.values(slots));
      for (let n = 0; n < size; n += 1) yield template.line(n, after(n)).text;
    });
  });
});

describe('amounts', () => {
  const units = Array.from({ length: 64 }, (_, n) => `u${n}`);

  test.each([1, 32])('64 units of rationals with 39 digits, under %i grants', (depth) => {
    const caps = Object.fromEntries(units.map((unit) => [unit, 10n ** 30n]));
    const chain = [makeGrant({ caps })];
    while (chain.length < depth) chain.push(makeGrant({ caps }, chain.at(-1)));
    const last = chain[depth - 1];
    const size = { size: depth === 1 ? 60 : 10, full: depth === 1 ? 6_000 : 200, bytesPerEvent: 50_000 };
    const { findings, state } = expectLinear(size, function* (count) {
      for (const grant of chain) yield canonicalText(grant);
      // Ten amounts fit into a sum of 400 digits: every event after them is refused, at the full cost.
      for (let n = 0; n < 10 + count; n += 1) {
        const used = Object.fromEntries(units.map((unit, index) => [unit, fineAmount(n * 64 + index)]));
        yield canonicalText(makeExecution(last, used));
      }
    });
    const accounts = [...state.links.grants.values()].flatMap((grant) => [...grant.accounts.values()]);
    const digits = accounts.map(({ used }) => used.d.toString().length);
    expect(Math.max(...digits)).toBeLessThanOrEqual(400);
    expect(findings).toBe((state.records - depth - 10) * 64 * depth);
  });

  /** The parts of the n-th fine amount and of what it lacks of one: together they are whole, apart they are not. */
  const complements = (n: number): readonly [readonly string[], readonly string[]] => {
    const d = 10n ** 38n + BigInt(2 * n + 1);
    return [
      ['1', String(d)],
      [String(d - 1n), String(d)],
    ];
  };
  const parts = [String(10n ** 38n + 1n), String(10n ** 38n + 3n)] as const;
  const usd: Quantity = { t: 'rat', n: parts[0], d: parts[1] };

  test('reservations of which every second is given back', () => {
    const grant = makeGrant({ caps: { usd: 10n ** 12n } });
    const { state } = expectLinear({ size: 900, full: 15_000, bytesPerEvent: 2_500 }, function* (size) {
      yield canonicalText(grant);
      const reserve = new Template(makeAction(grant, { usd }), {}, parts);
      const release = numberedBy(makeExecution(LINK, {}, RELEASE), LINK.b64);
      const ids: string[] = [];
      for (let n = 0; n < size / 3; n += 1) {
        const [first, second] = complements(n).map((part) => reserve.line(...part));
        yield first.text;
        yield second.text;
        ids.push(second.id);
      }
      for (const id of ids) yield release.line(0, id).text;
    });
    const { reserved } = [...state.links.grants.values()][0].accounts.get('usd') as {
      reserved: { d: bigint };
    };
    expect(reserved.d.toString().length).toBeLessThanOrEqual(400);
  });

  test.each([
    ['some of which fit into each window', 10_000, 0],
    ['more of which are in each window than fit', 1_000, 1],
  ])('rationals with 39 digits, %s', (_, seconds, refused) => {
    const grant = makeGrant({ caps: { tok: 1n }, rates: { 'usd.per_day': 10n ** 12n } });
    const start = 'in place of a start';
    const { state, findings } = expectLinear(
      { size: 400, full: 15_000, bytesPerEvent: 3_000 },
      function* (size) {
        yield canonicalText(grant);
        const recorded = { occurred_at: '9999-01-01T00:00:00Z' };
        const execution = makeExecution(grant, { usd }, { started_at: NOON, ...recorded });
        const template = new Template(execution, { started_at: start }, [...parts, start]);
        for (let n = 0; n < size; n += 1) {
          const { n: part, d } = fineAmount(n) as Extract<Quantity, { t: 'rat' }>;
          yield template.line(part, d, after(((n * 7_919) % size) * seconds)).text;
        }
      },
    );
    // The unit is in no account; what no window can hold is refused of each of them.
    expect(Math.sign(findings - 1)).toBe(refused);
    const { timeline } = [...state.links.grants.values()][0].rates[0];
    expect(peakOverlap(timeline, -ALWAYS, ALWAYS).d.toString().length).toBeLessThanOrEqual(400);
  });

  test('windows of which the fullest holds whole sums and the others do not', () => {
    const grant = makeGrant({ caps: { tok: 1n }, rates: { 'usd.per_day': 10n ** 12n } });
    const { state } = expectLinear({ size: 900, full: 15_000, bytesPerEvent: 1_000 }, function* (size) {
      yield canonicalText(grant);
      const [later, sooner] = [after(3_600), NOON].map(
        (time) => new Template(makeExecution(grant, { usd }, { started_at: time }), {}, parts),
      );
      for (let n = 0; n < size / 2; n += 1) {
        const [first, second] = complements(n);
        yield later.line(...first).text;
        yield sooner.line(...second).text;
      }
    });
    const { timeline } = [...state.links.grants.values()][0].rates[0];
    expect(peakOverlap(timeline, -ALWAYS, ALWAYS).d.toString().length).toBeLessThanOrEqual(400);
    // Ten of them fit into a window, and no window holds both halves of the ledger.
    expect(listGrants(state)).toMatchObject([{ executions: state.records - 1 }]);
  });
});

describe('approvals', () => {
  const caps = meters({ usd: 10n ** 12n });
  const rule = { tools: ['*'], approvers: ['human:*'] };
  const grantWith = (approvals: readonly object[], parent?: AnyEvent): AnyEvent =>
    makeGrant({}, undefined, {
      authorization: {
        kind: 'grant',
        bounds: { allowed_tools: ['*'], meter_caps: caps, approvals },
        ...(parent && { grant_event_id: parent.event_id }),
      },
    });
  const grant = grantWith([rule]);
  const answer = (decision: string): AnyEvent =>
    buildEvent({
      event_type: 'approval',
      occurred_at: NOON,
      principal_id: 'human:ada',
      grant_event_id: grant.event_id,
      decision,
      decision_code: 'N',
      tool_name: 'fs.read',
      tool_params_digest: LINK,
      ...(decision === 'approve' && { meter_limit: meters({ usd: 1n }) }),
    });
  /** Of another call each, or all of one. */
  const answers = (decision: string, isOne = false): ((n: number) => { text: string; id: string }) => {
    const template = new Template(answer(decision), { decision_code: NUMBER }, [NUMBER, LINK.b64]);
    return (n) => template.line(`N${n}`, digestOf(isOne ? 'params' : String(n)).b64);
  };

  test.each([
    ['each of another call', 'approve', false],
    ['all of one call', 'approve', true],
    ['rejects, each of another call', 'reject', false],
  ])('that nobody uses: %s', (_, decision, isOne) => {
    const { findings } = expectLinear({ size: 8_000, full: 200_000, bytesPerEvent: 400 }, function* (size) {
      yield canonicalText(grant);
      const make = answers(decision, isOne);
      for (let n = 0; n < size; n += 1) yield make(n).text;
    });
    expect(findings).toBe(0);
  });

  test('that calls wait for', () => {
    const { findings, state } = expectLinear(
      { size: 8_000, full: 200_000, bytesPerEvent: 600 },
      function* (size) {
        yield canonicalText(grant);
        const asked = makeAction(
          grant,
          { usd: 1n },
          { decision: 'deny', decision_code: 'APPROVAL_REQUIRED' },
        );
        const authorization = JSON.parse(
          JSON.stringify(asked.authorization).replace(digestOf('params').b64, LINK.b64),
        ) as object;
        const template = new Template(asked, { authorization, policy_id: NUMBER }, [NUMBER, LINK.b64]);
        for (let n = 0; n < size; n += 1) yield template.line(n, digestOf(String(n)).b64).text;
      },
    );
    expect(findings).toBe(0);
    expect([...state.links.awaiting.values()]).toHaveLength(state.records - 1);
  });

  test('that are used up, with their actions executed', () => {
    const { findings } = expectLinear({ size: 8_000, full: 200_000, bytesPerEvent: 250 }, function* (size) {
      yield canonicalText(grant);
      const make = answers('approve', true);
      const named = { approval_event_ids: [digestOf('approval')] };
      const action = numberedBy(makeAction(grant, {}, {}, 'fs.read', named), digestOf('approval').b64);
      const execution = numberedBy(makeExecution(LINK), LINK.b64);
      for (let n = 0; n < size / 3; n += 1) {
        const given = make(n);
        yield given.text;
        const asked = action.line(n, given.id);
        yield asked.text;
        yield execution.line(n, asked.id).text;
      }
    });
    expect(findings).toBe(0);
  });

  test('that 512 rules of 32 grants, one under the other, do not ask for', () => {
    const rules = (n: number): object[] =>
      Array.from({ length: 16 }, (_, i) => ({ tools: [`t${n}.${i}`], approvers: [`human:u${n}.${i}`] }));
    const { findings } = expectLinear({ size: 640, full: 12_800, bytesPerEvent: 10_000 }, function* (size) {
      for (let n = 0; n < size; n += 64) {
        const chain: AnyEvent[] = [];
        for (let depth = 0; depth < 32; depth += 1) chain.push(grantWith(rules(n + depth), chain.at(-1)));
        for (const each of chain) yield canonicalText(each);
        yield* repeat(makeAction(chain.at(-1)), 32);
      }
    });
    expect(findings).toBe(0);
  });
});
