/** What is kept of open starts and expiring actions between decisions is what the whole state says, after any sequence of records. */

import { describe, expect, it } from 'vitest';
import { listExpired } from '../../src/log/policy/expiry-queue.js';
import { heldGrants } from '../../src/log/policy/running-starts.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import type { Meter } from '../../src/base/value/meter.js';
import type { Quantity } from '../../src/base/value/quantity.js';
import { formatInstant, parseTimestamp } from '../../src/base/value/timestamp.js';
import { type Grant, grantChain } from '../../src/rules/bounds/grant.js';
import { withStarted } from '../../src/rules/bounds/started.js';
import { listRunning } from '../../src/rules/report/accounts.js';
import type { VerifyState } from '../../src/rules/verify/state.js';
import { MemoryEntries } from '../cache/memory-entries.js';
import { openIndex } from '../cache/support.js';
import { times } from '../slow.js';
import { actionEvent, emptyState, executionEvent, feed, grantEvent, int, startEvent } from './bare-events.js';
import { Dice } from './dice.js';

const START = parseTimestamp('2026-03-01T12:00:00Z');
const SECOND = 1_000_000_000n;
const at = (nanoseconds: bigint): string => formatInstant(START + nanoseconds);
const TOOL = 'fs.read';
const PRINCIPAL = 'agent:a1';
const UNITS = ['calls', 'usd', 'tok'];
const AMOUNTS: readonly Quantity[] = [
  int(0),
  int(1),
  int(7),
  { t: 'dec', m: '5', s: 1 },
  { t: 'rat', n: '1', d: '3' },
  { t: 'f64', bits: '3fb999999999999a' },
];
/** Their common denominators have soon more digits than a sum's may. */
const FINE: readonly Quantity[] = [
  ...AMOUNTS,
  { t: 'f64', bits: '0000000000000001' },
  ...[727n, 999n, 731n, 943n, 577n].map((n): Quantity => ({ t: 'rat', n: '1', d: String(10n ** 38n + n) })),
];
const RATES = ['calls.per_min', 'usd.per_sec', 'usd.per_5m', 'tok.per_10s'];

interface Open {
  readonly id: string;
  readonly params: string | undefined;
  startId: string | undefined;
}

/** Grants, some delegated, and what is open under them. */
class World {
  state = emptyState();
  now = 0n;
  readonly dice: Dice;
  readonly #amounts: readonly Quantity[];
  readonly #grants: string[] = [];
  readonly #open: Open[] = [];
  readonly #index: MemoryEntries | undefined;
  #takeChanges: (() => Parameters<MemoryEntries['write']>[0]) | undefined;
  #count = 0;

  constructor(seed: number) {
    this.dice = new Dice(seed);
    this.#amounts = this.dice.chance(15) ? FINE : AMOUNTS;
    this.#index = this.dice.chance(25) ? new MemoryEntries() : undefined;
  }

  async begin(): Promise<void> {
    await this.reopen();
    for (let n = this.dice.below(4); n >= 0; n -= 1) this.#grant();
  }

  /** Continues with a state that was saved, or over an index that is opened again. */
  async reopen(): Promise<void> {
    if (this.#index === undefined) {
      if (this.state.lines === 0) return;
      this.state = restoreVerification(saveVerification({ state: this.state, findings: [] })).state;
      return;
    }
    if (this.#takeChanges !== undefined) await this.#index.write(this.#takeChanges());
    const indexed = await openIndex(this.#index);
    this.#takeChanges = () => indexed.takeChanges();
    this.state = indexed.state;
  }

  get grants(): readonly Grant[] {
    return this.#grants.map((id) => this.state.links.grants.get(id.slice('sha-256:'.length)) as Grant);
  }

  step(): void {
    const { dice } = this;
    // Mostly forwards; sometimes back.
    this.now += BigInt(dice.of([0, 0, 1, 500, 2_000, 30_000, -1, -700, -20_000])) * 1_000_000n;
    const open = this.#open.length === 0 ? undefined : dice.of(this.#open);
    const kind = dice.below(10);
    if (open === undefined || kind < 3) this.#action();
    else if (kind < 6) this.#start(open);
    else if (kind < 9) this.#execute(open);
    else this.#start(this.#underGrant());
  }

  #grant(): void {
    const { dice } = this;
    const big = { t: 'int', v: '1000000' } as const;
    const { id } = feed(
      this.state,
      grantEvent({
        principal: PRINCIPAL,
        at: at(-SECOND * 3_600n + BigInt(this.#grants.length)),
        grantId: this.#grants.length > 0 && dice.chance(60) ? dice.of(this.#grants) : undefined,
        bounds: {
          allowed_tools: ['*'],
          concurrency_limit: dice.chance(50) ? int(2 + dice.below(30)) : undefined,
          meter_caps: UNITS.filter((unit) => unit === 'calls' || dice.chance(80)).map((unit) => ({
            unit,
            amount: big,
          })),
          rate_limits: RATES.filter(() => dice.chance(40)).map((unit) => ({
            unit,
            amount: int(3 + dice.below(40)),
          })),
        },
      }),
    );
    this.#grants.push(id);
  }

  #meters(): Meter[] {
    return UNITS.filter(() => this.dice.chance(60)).map((unit) => ({
      unit,
      amount: this.dice.of(this.#amounts),
    }));
  }

  #action(): void {
    const { dice } = this;
    const params = `p${(this.#count += 1)}`;
    const { id } = feed(
      this.state,
      actionEvent({
        principal: PRINCIPAL,
        at: at(this.now),
        tool: TOOL,
        params,
        meters: [{ unit: 'calls', amount: int(1) }, ...this.#meters().filter(({ unit }) => unit !== 'calls')],
        grantId: dice.chance(90) ? dice.of(this.#grants) : undefined,
        expiresAt: dice.chance(60) ? at(this.now + BigInt(1 + dice.below(40)) * SECOND) : undefined,
      }),
    );
    this.#open.push({ id, params, startId: undefined });
  }

  #underGrant(): Open {
    const open = { id: this.dice.of(this.#grants), params: undefined, startId: undefined };
    this.#open.push(open);
    return open;
  }

  /** Begins what is open, or takes it over. */
  #start(open: Open): void {
    const { dice } = this;
    // Some recorder's clock is ahead, or behind.
    const startedAt = at(this.now + BigInt(dice.of([0, 0, 0, 0, 3_000, -3_000, -90_000])) * 1_000_000n);
    const { id } = feed(
      this.state,
      startEvent({
        principal: PRINCIPAL,
        authorizationId: open.id,
        tool: TOOL,
        params: open.params,
        startedAt,
        meters: this.#meters(),
        recorder: `recorder-${String((this.#count += 1)).padStart(12, '0')}`,
        startId: open.startId,
      }),
    );
    open.startId = id;
  }

  #execute(open: Open): void {
    const { dice } = this;
    const isRelease = open.startId === undefined && dice.chance(50);
    feed(
      this.state,
      executionEvent({
        principal: PRINCIPAL,
        authorizationId: open.id,
        tool: TOOL,
        ...(open.params === undefined ? {} : { params: open.params }),
        startedAt: at(this.now),
        endedAt: at(this.now),
        meters: isRelease ? [] : this.#meters(),
        ...(isRelease ? { errorCode: 'ABANDONED' } : {}),
        startId: dice.chance(80) ? open.startId : undefined,
      }),
    );
    this.#open.splice(this.#open.indexOf(open), 1);
  }
}

/** What decides of a grant and those above it, in words that can be compared. */
function describeGrant(grant: Grant, now: bigint): unknown {
  const instants = [0n, 1n, -1n, SECOND, -30n * SECOND].map((more) => START + now + more);
  return grantChain(grant).map(({ accounts, rates, concurrency, ...rest }) => ({
    index: rest.index,
    members: Object.keys(rest).sort(),
    accounts: [...accounts].map(([unit, each]) => [unit, { ...each }]),
    rates: rates.map(({ unit, window, started }) => [
      unit,
      instants.map((from) => started?.peak(from, from + window)),
    ]),
    concurrency: concurrency && instants.map((from) => concurrency.started?.peak(from, from + 1n)),
  }));
}

/** @returns How many have expired */
function expectSame(state: VerifyState, grants: readonly Grant[], now: bigint): number {
  const hold = heldGrants(state);
  const running = listRunning(state);
  for (const grant of grants)
    expect(describeGrant(hold(grant), now)).toEqual(describeGrant(withStarted(grant, running), now));
  const instant = at(now);
  const expired = [...state.links.expiring].filter(([, until]) => parseTimestamp(until) <= START + now);
  expect(listExpired(state.links.expiring, instant)).toEqual(expired.map(([id]) => id));
  return expired.length;
}

describe('what runs, and what has expired', () => {
  it('is known without reading all that is open', async () => {
    let [most, late] = [0, 0];
    for (let seed = 1; seed <= times(25, 3_000); seed += 1) {
      const world = new World(seed);
      await world.begin();
      for (let n = 0; n < 60; n += 1) {
        world.step();
        if (world.dice.chance(2)) await world.reopen();
        if (world.dice.chance(20)) late += expectSame(world.state, world.grants, world.now);
        most = Math.max(most, listRunning(world.state).length);
      }
      expectSame(world.state, world.grants, world.now);
    }
    expect(most).toBeGreaterThan(10);
    expect(late).toBeGreaterThan(10);
  });
});
