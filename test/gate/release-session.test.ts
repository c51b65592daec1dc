/** A session that ends: what was allowed to it and not begun is given back, by whichever process is asked. */

import { describe, expect, test } from 'vitest';
import { releaseSession } from '../../src/gate/release-session.js';
import { AGENT, filePlace, grant, openLive } from '../agent/support.js';
import { openGate, reopen } from './support.js';

const CALL = { tool: 'fs.read', params: {}, start: false };
const OTHER = 'agent:b1';
const { signal } = new AbortController();

describe('a session that ends', () => {
  test.each([true, false])(
    'releases its calls, however many of others are open after them (index: %s)',
    async (index) => {
      const place = filePlace();
      const { gate: dead } = await openGate(place, { meterCaps: { calls: 1_000 } });
      const ledger = await openLive(place);
      await grant(ledger, { principalId: OTHER, meterCaps: { calls: 1_000 } });
      await ledger.close();
      await dead.decide({ ...CALL, session: 's', ref: 'own' });
      const others = Array.from({ length: 300 }, (_, n) => ({ ...CALL, principal: OTHER, ref: `c${n}` }));
      await Promise.all(others.map((call) => dead.decide({ ...call, session: 't' })));
      await dead.close();
      const gate = await reopen(place, { index });
      const mayRelease = (principal: string): boolean => principal === AGENT;
      expect(await releaseSession(gate, 's', { signal, mayRelease })).toBe(1);
      expect(await releaseSession(gate, 's', { signal, mayRelease })).toBe(0);
      expect(await place.verdict()).toBe('ok');
    },
  );

  test('charges what may have run, whoever allowed it', async () => {
    const place = filePlace();
    const { gate: dead } = await openGate(place, { meterCaps: { calls: 3 } });
    for (const ref of ['a', 'b']) await dead.decide({ ...CALL, session: 's', ref });
    await dead.close();
    const gate = await reopen(place);
    await gate.decide({ ...CALL, session: 's', ref: 'c' });
    expect(await releaseSession(gate, 's', { signal, mayHaveRun: true })).toBe(3);
    const ends = place.events().filter((event) => event.event_type === 'execution');
    expect(ends).toMatchObject(Array(3).fill({ outcome: 'unknown', error_code: 'SESSION_ENDED' }));
    expect((await gate.decide({ ...CALL, session: 't', ref: 'd' })).code).toBe('RESERVATION_OVER_CAP');
    expect(await place.verdict()).toBe('ok');
  });
});
