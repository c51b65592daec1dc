/**
 * A service whose append was refused, since another appended in its place, drops what it had decided in memory: it decides again upon what
 * the ledger has, and answers with that. `formal/leader.pml` rests on it.
 */

import { describe, expect, it } from 'vitest';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import type { LiveLedger } from '../../src/log/agent/live-ledger.js';
import type { BegunDecision } from '../../src/log/policy/authorize.js';
import { verifyChunks } from '../../src/rules/report/verify-chunks.js';
import { HeldStore, type Lines } from '../exploration/held-store.js';
import { AGENT, openLive, TIMES } from '../exploration/programs.js';

const PARAMS = { alg: 'sha-256', b64: 'A'.repeat(43) } as const;
const ONE = [{ unit: 'calls', amount: { t: 'int', v: '1' } }] as const;
const now = (): string => TIMES[0];

/** Two services over one ledger without a lock, a grant of so many calls; what the first appends waits while it is held. */
class Services {
  readonly lines: Lines = [];
  grantId = '';
  held: (() => void)[] = [];
  isHeld = true;

  async open(calls: number): Promise<[paused: LiveLedger, other: LiveLedger]> {
    const create = {
      origin: 'example.com/services',
      signing: { events: 'optional', checkpoints: 'optional' },
    } as const;
    const other = await openLive(new HeldStore(this.lines), now, { create });
    const grant = draftGrant({ principalId: AGENT, allowedTools: ['*'], meterCaps: { calls } });
    this.grantId = (await other.append({ event: grant })).eventId;
    const hold = (): Promise<void> =>
      this.isHeld ? new Promise((go) => void this.held.push(go)) : Promise.resolve();
    return [await openLive(new HeldStore(this.lines, hold), now), other];
  }

  ask(live: LiveLedger, requestKey: string): Promise<BegunDecision> {
    const asked = { principalId: AGENT, toolName: 'fs.read', paramsDigest: PARAMS, intentDigest: PARAMS };
    return live.authorize({ ...asked, meters: ONE, requestKey }, { start: {} });
  }

  /** Waits until the first has decided, and is about to append. */
  async untilHeld(): Promise<void> {
    while (this.held.length === 0) await new Promise((resolve) => setImmediate(resolve));
  }

  go(): void {
    this.isHeld = false;
    for (const each of this.held.splice(0)) each();
  }

  async verdict(): Promise<unknown> {
    const { verdict, findings } = await verifyChunks(Buffer.concat(this.lines), { threads: 1, now: now() });
    return [verdict, findings.filter(({ severity }) => severity !== 'info')];
  }

  /** What each request was answered with, as the ledger has it. */
  recorded(): unknown[] {
    const events = this.lines.map(
      (line) =>
        (JSON.parse(Buffer.from(line).toString()) as { event: Readonly<Record<string, unknown>> }).event,
    );
    return events.flatMap(({ event_type: type, decision, authorization }) => {
      const { action } = (authorization ?? {}) as { action?: { request_key?: string } };
      return type === 'authorization' && action !== undefined ? [[action.request_key, decision]] : [];
    });
  }
}

describe('a service whose append was refused', () => {
  it('allows nothing of a cap that another has spent meanwhile', async () => {
    const services = new Services();
    const [paused, other] = await services.open(1);
    const asked = services.ask(paused, 'a');
    await services.untilHeld();
    expect((await services.ask(other, 'b')).decision).toBe('allow');
    services.go();
    const late = await asked;
    expect([late.decision, late.decisionCode, late.started]).toEqual([
      'deny',
      'RESERVATION_OVER_CAP',
      undefined,
    ]);
    expect(services.recorded()).toEqual([
      ['b', 'allow'],
      ['a', 'deny'],
    ]);
    const [balances, others] = await Promise.all(
      [paused, other].map(async (live) => (await live.budget(services.grantId)).balances),
    );
    expect(balances).toEqual(others);
    expect(await services.verdict()).toEqual(['ok', []]);
  });

  it('answers a request that another has answered meanwhile as that did', async () => {
    const services = new Services();
    const [paused, other] = await services.open(2);
    const asked = services.ask(paused, 'a');
    await services.untilHeld();
    const first = await services.ask(other, 'a');
    services.go();
    const late = await asked;
    expect(late.recorded).toMatchObject({ eventId: first.recorded.eventId, status: 'exists' });
    // It is begun already: who asked again does not run it a second time.
    expect([late.started, late.refusal]).toEqual([
      undefined,
      expect.objectContaining({ code: 'AUTHORIZATION_STARTED' }),
    ]);
    expect(services.recorded()).toEqual([['a', 'allow']]);
    expect(await services.verdict()).toEqual(['ok', []]);
  });

  it('decides each of its group again, in their order', async () => {
    const services = new Services();
    const [paused, other] = await services.open(2);
    const asked = ['a', 'b', 'c'].map((key) => services.ask(paused, key));
    await services.untilHeld();
    await services.ask(other, 'd');
    services.go();
    const answers = await Promise.all(asked);
    expect(answers.map(({ decision }) => decision)).toEqual(['allow', 'deny', 'deny']);
    expect(services.recorded()).toEqual([
      ['d', 'allow'],
      ['a', 'allow'],
      ['b', 'deny'],
      ['c', 'deny'],
    ]);
    expect(await services.verdict()).toEqual(['ok', []]);
  });

  it('starts nothing under a grant that was revoked meanwhile', async () => {
    const services = new Services();
    const [paused, other] = await services.open(2);
    const asked = services.ask(paused, 'a');
    await services.untilHeld();
    await other.revoke(services.grantId, { reason: 'INCIDENT' });
    services.go();
    const late = await asked;
    expect([late.decisionCode, late.started]).toEqual(['GRANT_REVOKED', undefined]);
    expect(await services.verdict()).toEqual(['ok', []]);
  });
});
