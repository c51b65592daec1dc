/** The machine's clock is set, by minutes, while calls are open. */

import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.js';
import type { Gate, GateOptions } from '../../src/gate/gate.js';
import type { LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import { formatQuantity } from '../../src/base/value/quantity.js';
import { grant, memoryPlace, openLive, type Place } from '../agent/support.js';
import { reopen } from './support.js';

const MINUTE_MS = 60_000;
const BEGAN_MS = Date.UTC(2026, 0, 1, 12);

/** A clock that does not run by itself: `now` may be set, `ticks` only go on. */
class SetClock implements Clock {
  ms = 0;
  #setBy = -60 * MINUTE_MS;

  setTo(ms: number): void {
    this.#setBy = ms;
  }

  now(): number {
    return BEGAN_MS + this.ms + this.#setBy;
  }

  ticks(): number {
    return this.ms;
  }

  setTimeout(run: () => void, ms: number): ReturnType<Clock['setTimeout']> {
    return systemClock.setTimeout(run, ms);
  }

  setInterval(run: () => void, ms: number): ReturnType<Clock['setInterval']> {
    return systemClock.setInterval(run, ms);
  }

  clear(timer: ReturnType<Clock['setTimeout']> | undefined): void {
    systemClock.clear(timer);
  }
}

async function open(
  options: GateOptions & LiveLedgerOptions = {},
): Promise<{ readonly place: Place; readonly gate: Gate; readonly clock: SetClock }> {
  const place = memoryPlace();
  const clock = new SetClock();
  const ledger = await openLive(place, { clock });
  await grant(ledger, { allowedTools: ['*'], meterCaps: { calls: 10, 'time.ms': 60_000 } });
  await ledger.close();
  clock.setTo(0);
  return { place, clock, gate: await reopen(place, { clock, ...options }) };
}

const call = (ref: string) => ({ ref, tool: 'fs.read', params: { ref } });

describe.each([-10, 10])('set by %i minutes', (minutes) => {
  it('is not what a call takes', async () => {
    const { place, clock, gate } = await open();
    await gate.decide({ ...call('a'), reserve: { 'time.ms': '5000' } });
    await gate.decide({ ...call('b'), start: false, reserve: { 'time.ms': '5000' } });
    clock.ms += 1_000;
    clock.setTo(minutes * MINUTE_MS);
    for (const ref of ['a', 'b']) await gate.settle(ref, { outcome: 'success' });
    const used = place.events().flatMap(({ meter_used: meters = [] }) => meters);
    expect(used.filter(({ unit }) => unit === 'time.ms').map(({ amount }) => formatQuantity(amount))).toEqual(
      ['1000', '1000'],
    );
    expect((await gate.decide({ ...call('c'), reserve: { 'time.ms': '50000' } })).effect).toBe('allow');
    expect(await place.verdict()).toBe('ok');
  });

  it('keeps nothing from being given back', async () => {
    const { place, clock, gate } = await open();
    await gate.decide({ ...call('a'), start: false });
    const other = await gate.decide({ ...call('b'), start: false });
    clock.setTo(minutes * MINUTE_MS);
    await gate.release('a');
    await gate.ledger.abandon(other.authorization);
    expect((await gate.ledger.budget()).map(({ unstarted }) => unstarted)).toEqual([[]]);
    expect((await gate.decide({ ...call('a'), start: false })).effect).toBe('allow');
    expect(await place.verdict()).toBe('ok');
  });

  it('lets a call begin that was allowed before', async () => {
    const { place, clock, gate } = await open();
    await gate.decide({ ...call('a'), start: false });
    clock.setTo(minutes * MINUTE_MS);
    expect((await gate.decide(call('a'))).effect).toBe('allow');
    await gate.settle('a', { outcome: 'success' });
    expect((await gate.ledger.budget()).map(({ unstarted }) => unstarted)).toEqual([[]]);
    expect(await place.verdict()).toBe('ok');
  });

  it('makes a checkpoint due, whichever way', async () => {
    const { place, clock, gate } = await open({ checkpointEvery: { milliseconds: MINUTE_MS } });
    const count = (): number => place.events().filter(({ event_type: type }) => type === 'checkpoint').length;
    await gate.decide(call('a'));
    const before = count();
    clock.setTo(minutes * MINUTE_MS);
    await gate.decide(call('b'));
    await gate.decide(call('c'));
    expect(count()).toBe(before + 1);
  });
});
