/** Packed open calls equal those that were set. */

import { describe, expect, it } from 'vitest';
import { meters } from '../../src/base/value/meter.js';
import { type KeptCall, OpenCalls } from '../../src/gate/open-calls.js';

const DIGEST = 'sha-256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
const CALL: KeptCall = {
  ref: 'c1',
  session: 's1',
  principal: 'agent:a1',
  requestKey: 's1:c1',
  tool: 'fs.read',
  authorization: DIGEST,
  start: DIGEST.replace('AA', 'BC'),
  since: '2026-01-01T12:00:00.5Z',
  sinceTicks: 0,
  expires: '2026-01-01T12:15:00Z',
  paramsDigest: DIGEST.replace('AA', 'DE'),
  intentDigest: 'sha-512:AAAA',
  reserved: meters({ calls: 1, usd: '0.05' }),
  keptUntil: 1_000,
};

describe('open calls', () => {
  it.each<[string, Partial<KeptCall>]>([
    ['with a session', {}],
    ['without one, of another process', { session: undefined, requestKey: 'c1', sinceTicks: undefined }],
    ['whose key is digested', { requestKey: 'ref:abc', ref: 'ü/1', session: 'a b' }],
    ['of a further try, much later', { requestKey: 's1:c1/2', sinceTicks: 2 ** 40 }],
    ['without an id', { ref: 'nth:x/1', session: undefined, requestKey: 'nth:x/1' }],
    ['not begun, without end', { start: undefined, expires: undefined, keptUntil: Infinity }],
    ['that reserves nothing, of a long name', { reserved: [], tool: 'x'.repeat(500) }],
  ])('%s are as they were', (_, more) => {
    const calls = new OpenCalls();
    const call = { ...CALL, ...more };
    calls.set(call);
    expect(calls.get(call.principal, call.requestKey)).toEqual(call);
    expect([...calls.values()]).toEqual([call]);
    expect(calls.has('agent:a2', call.requestKey)).toBe(false);
    calls.delete(call.principal, call.requestKey);
    expect([calls.size, calls.get(call.principal, call.requestKey)]).toEqual([0, undefined]);
  });

  it('end when their time has come, the earlier set first', () => {
    const calls = new OpenCalls();
    for (const [n, keptUntil] of [3_000, 1_000, Infinity, 2_000.5].entries())
      calls.set({ ...CALL, requestKey: `s1:c${n}`, ref: `c${n}`, keptUntil });
    const endedAt = (now: number): string[] => calls.listEnded(now).map(({ ref }) => ref);
    expect(endedAt(999)).toEqual([]);
    expect(endedAt(2_001)).toEqual(['c1', 'c3']);
    calls.delete(CALL.principal, 's1:c1');
    calls.delete(CALL.principal, 's1:c3');
    expect(endedAt(2_999)).toEqual([]);
    expect(endedAt(1e9)).toEqual(['c0']);
    calls.set({ ...CALL, keptUntil: 5 });
    expect(endedAt(6)).toEqual(['c1']);
  });
});
