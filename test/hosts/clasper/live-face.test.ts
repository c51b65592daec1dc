/** The live face: what an adapter is told, and what the ledger then says. */

import { describe, expect, it } from 'vitest';
import { authorize, COST, envelope, live, METRICS, register } from './live-kit.js';

describe('an execution', () => {
  it('is allowed, uses tools, reports, and leaves a ledger that verifies', async () => {
    const { send, ask, events, verdict } = await live();
    await register(send);
    const allowed = await ask();
    expect(allowed).toMatchObject({ status: 200, body: { allowed: true, decision: 'allow' } });
    const tool = await authorize(send);
    expect(tool).toMatchObject({ status: 200, body: { decision: 'allow' } });
    console.log(JSON.stringify(allowed.body), JSON.stringify(tool.body));
    for (const [type, payload] of [
      ['cost', COST],
      ['metrics', METRICS],
    ] as const) {
      expect(await send('POST', `/api/ingest/${type}`, envelope(type, payload))).toMatchObject({
        status: 200,
        body: { status: 'ok' },
      });
      expect(await send('POST', `/api/ingest/${type}`, envelope(type, payload))).toMatchObject({
        status: 200,
        body: { status: 'duplicate' },
      });
    }
    for (const e of events()) console.log(JSON.stringify(e).slice(0, 600));
    expect(await verdict()).toBe('ok');
  });
});
