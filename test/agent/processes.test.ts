/** Agents in several processes share one budget, to the last unit; one that is killed leaves what it had begun to be seen. */

import { expect, it } from 'vitest';
import { DeniedError } from '../../src/log/agent/errors.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { Agents } from './agents.js';
import { filePlace, grant, leftOf, openLive } from './support.js';

it('five processes with five agents each use up a cap, and never exceed it', async () => {
  const place = filePlace();
  const ledger = await openLive(place);
  const grantId = await grant(ledger, { meterCaps: { calls: 100, usd: '6.1' } });
  const task = { path: place.path, agents: 5, reserve: { usd: '0.1' } };
  const processes = Array.from({ length: 5 }, () => new Agents(task));
  await Promise.all(processes.map((each) => each.until('ready')));
  for (const each of processes) each.begin();
  expect(await Promise.all(processes.map(({ ended }) => ended))).toEqual([0, 0, 0, 0, 0]);
  const said = processes.flatMap((each) => each.said);
  const done = said.flatMap((each) => each.done ?? []);
  expect(new Set(done).size).toBe(61);
  expect(said.filter(({ denied }) => denied !== undefined)).toHaveLength(25);
  expect(await leftOf(ledger, grantId, 'usd')).toBe('0');
  expect(await leftOf(ledger, grantId)).toBe('39');
  expect(await verifyLedger(place.path)).toMatchObject({ verdict: 'ok' });
});

it('one that is killed loses nothing acknowledged, and its starts can be settled', async () => {
  const place = filePlace();
  const ledger = await openLive(place);
  const grantId = await grant(ledger, { meterCaps: { calls: 5 } });
  await ledger.guard('fs.read', { own: true }, () => undefined);
  const agents = new Agents({ path: place.path, agents: 5, reserve: { calls: 1 }, hangs: true });
  await agents.until('ready');
  agents.begin();
  await agents.until('running', 4);
  await agents.until('denied');
  await agents.kill();
  const running = agents.said.flatMap((each) => each.running ?? []);
  const { started, executions } = await ledger.budget(grantId);
  expect(executions).toBe(1);
  expect(started.map(({ eventId }) => eventId).sort()).toEqual(running.sort());
  expect(await leftOf(ledger, grantId)).toBe('0');
  for (const { authorizationId, eventId } of started) {
    await ledger.abandon(authorizationId, { start: eventId });
  }
  // Nobody knows whether they ran.
  expect(await leftOf(ledger, grantId)).toBe('0');
  await expect(ledger.guard('fs.read', {}, () => 'runs')).rejects.toThrow(DeniedError);
  expect(await verifyLedger(place.path)).toMatchObject({ verdict: 'ok' });
});

it('nothing starts after a stop is on disk, among 51 agents of three processes', async () => {
  const place = filePlace();
  const ledger = await openLive(place);
  const grantId = await grant(ledger, { meterCaps: { calls: 100_000 } });
  const processes = Array.from(
    { length: 3 },
    () => new Agents({ path: place.path, agents: 17, reserve: { calls: 1 } }),
  );
  await Promise.all(processes.map((each) => each.until('ready')));
  for (const each of processes) each.begin();
  await Promise.all(processes.map((each) => each.until('done', 5)));
  await ledger.suspend(grantId, { reason: 'INCIDENT', inFlight: 'stop' });
  expect(await Promise.all(processes.map(({ ended }) => ended))).toEqual([0, 0, 0]);
  const events = place.events();
  const stop = events.findIndex(({ event_type: type }) => type === 'revocation');
  const after = events.slice(stop).filter(({ event_type: type }) => type === 'x.northroot.start');
  expect(stop).toBeGreaterThan(0);
  expect(after).toEqual([]);
  expect(await verifyLedger(place.path)).toMatchObject({ verdict: 'ok' });
});
