/** What the tests of the gate share. */

import { onTestFinished } from 'vitest';
import type { LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import { Gate, type GateOptions } from '../../src/gate/gate.js';
import type { GrantOptions } from '../../src/log/policy/draft-grant.js';
import { signer } from '../writer/support.js';
import { AGENT, grant, openLive, type Place } from '../agent/support.js';

export interface Opened {
  readonly gate: Gate;
  readonly grantId: string;
}

/** A gate over a new ledger with a grant for the agent. */
export async function openGate(
  place: Place,
  bounds: Partial<GrantOptions> = { meterCaps: { calls: 10, usd: '1' } },
  options: GateOptions = {},
): Promise<Opened> {
  const ledger = await openLive(place);
  const grantId = await grant(ledger, bounds);
  await ledger.close();
  return { gate: await reopen(place, options), grantId };
}

/** Another gate over the same ledger, as another process would have it. */
export async function reopen(place: Place, options: GateOptions & LiveLedgerOptions = {}): Promise<Gate> {
  const gate = await Gate.open(place.open(), {
    signer,
    principalId: AGENT,
    lockTimeoutMs: 60_000,
    ...options,
  });
  onTestFinished(() => gate.close());
  return gate;
}
