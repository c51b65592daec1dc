/** Answers pass while their calls are being settled: what is decided meanwhile, what a failure does, what closing waits for. */

import { describe, expect, it } from 'vitest';
import type { WriteLock } from '../../../src/log/store/ledger-store.js';
import { filePlace, memoryPlace, type Place } from '../../agent/support.js';
import { FaultyFileSystem } from '../../writer/file-systems.js';
import { reopen } from '../support.js';
import { became, bytesOf, call, guardOver, openGuard, result, stepOf, story, TEXT } from './support.js';

/** Keeps all others from writing. */
async function lock(place: Place): Promise<WriteLock> {
  const store = place.open();
  if (typeof store === 'string') throw new TypeError('expected a store');
  return store.acquire({ timeoutMs: 60_000 });
}

const answerOf = (id: unknown): Uint8Array => bytesOf(result(id, TEXT));

describe('an answer', () => {
  it('passes at once, and is settled when that can be written', async () => {
    const place = memoryPlace();
    const { client, link, guard, events } = await openGuard(place);
    await client(call(1, 'echo'));
    const held = await lock(place);
    const { step } = link.fromServer(answerOf(1));
    expect(step).not.toBeInstanceOf(Promise);
    expect(became(await step)[0]).toBe('>');
    expect(guard.openCalls).toBe(0);
    expect(events.map(({ event }) => event)).toEqual(['decided']);
    expect(story(place)).toEqual(['allow', 'start']);
    await held.release();
    await guard.settled();
    expect(story(place)).toEqual(['allow', 'start', 'success']);
    expect(events.at(-1)).toMatchObject({ event: 'settled', outcome: 'success' });
  });

  it('frees its id at once: a call of the same id is another one, decided after the first is settled', async () => {
    const place = memoryPlace();
    const { client, link, guard } = await openGuard(place, {}, { concurrencyLimit: 1 });
    await client(call(1, 'echo'));
    const held = await lock(place);
    await link.fromServer(answerOf(1)).step;
    const again = link.fromClient(bytesOf(call(1, 'echo')));
    // It is being decided: its id is taken, and the server cannot answer it.
    expect(await stepOf(link.fromClient(bytesOf(call(1, 'echo'))))).toMatchObject(['<', { error: {} }]);
    expect(await stepOf(link.fromServer(answerOf(1)))).toBe('dropped');
    await held.release();
    expect((await stepOf(again))[0]).toBe('>');
    expect(story(place)).toEqual(['allow', 'start', 'success', 'allow', 'start']);
    await link.fromServer(answerOf(1)).step;
    await guard.close();
    expect(story(place).slice(5)).toEqual(['success']);
    expect(await place.verdict()).toBe('ok');
  });

  it('cannot be used to overspend, however fast calls follow', async () => {
    const place = memoryPlace();
    const { link, guard } = await openGuard(place, {}, { meterCaps: { calls: 3 } });
    const became: unknown[] = [];
    for (let id = 0; id < 5; id += 1) {
      const [way] = await stepOf(link.fromClient(bytesOf(call(id, 'echo'))));
      became.push(way);
      if (way === '>') await link.fromServer(answerOf(id)).step;
    }
    expect(became).toEqual(['>', '>', '>', '<', '<']);
    await guard.close();
    expect(story(place).filter((each) => each === 'success')).toHaveLength(3);
    expect(await place.verdict()).toBe('ok');
  });

  it('waits where very much is being settled', async () => {
    const place = memoryPlace();
    const { client, link, guard } = await openGuard(place, {}, { meterCaps: { calls: 400 } });
    const ids = Array.from({ length: 300 }, (_, n) => n);
    await Promise.all(ids.map((id) => client(call(id, 'echo'))));
    const held = await lock(place);
    const steps = ids.map((id) => link.fromServer(answerOf(id)).step);
    expect(steps.filter((step) => step instanceof Promise)).toHaveLength(300 - 256);
    await held.release();
    expect(new Set(await Promise.all(steps.map(async (step) => became(await step)[0])))).toEqual(
      new Set(['>']),
    );
    await guard.close();
    expect(story(place).filter((each) => each === 'success')).toHaveLength(300);
  });

  it('whose call cannot be settled is told of, its call stays open, and later calls are denied', async () => {
    const place = filePlace();
    await (await openGuard(place)).guard.close();
    const fileSystem = new FaultyFileSystem({ operation: 'write', nth: 3, errno: 'ENOSPC', mode: 'on' });
    const gate = await reopen(place, { coverage: 'proxy', fileSystem });
    const { client, guard, link, events } = guardOver(place, { open: () => Promise.resolve(gate) });
    expect((await client(call(1, 'echo')))[0]).toBe('>');
    expect((await stepOf(link.fromServer(answerOf(1))))[0]).toBe('>');
    await guard.settled();
    expect(events.at(-1)).toEqual({ event: 'unsettled', tool: 'mcp.s.echo', code: 'LEDGER_FAILED' });
    const denied = JSON.stringify(await client(call(2, 'echo')));
    expect(denied).toContain('LEDGER_FAILED');
    expect(denied).toContain('isError');
    await guard.close();
    const other = await reopen(place);
    await other.ledger.abandonOpen({ olderThanMs: 0 });
    expect(story(place)).toEqual(['allow', 'start', 'unknown']);
    expect(await place.verdict()).toBe('ok');
  });

  it('that came before the guard was closed is settled by then', async () => {
    const place = memoryPlace();
    const { client, link, guard } = await openGuard(place);
    await client(call(1, 'echo'));
    await link.fromServer(answerOf(1)).step;
    await guard.close();
    expect(story(place)).toEqual(['allow', 'start', 'success']);
  });
});
