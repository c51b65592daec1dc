/** Calls that a killed process began: they are settled as unknown after their end, and a true report that comes later is recorded. */

import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { NorthrootError } from '../../src/base/error.js';
import { formatQuantity } from '../../src/base/value/quantity.js';
import { formatPublicKey } from '../../src/format/key/public-key.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { Gate, type GateOptions, type OverdueCall, type UnsettledCall } from '../../src/gate/gate.js';
import type { LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import {
  AGENT,
  type Event,
  filePlace,
  gate as latch,
  grant,
  leftOf,
  openLive,
  usedBy,
} from '../agent/support.js';
import { expectOk, parseLines, Workshop } from '../cli/runner.js';
import { releaseSession } from '../../src/gate/release-session.js';
import { CountingFileSystem } from '../writer/file-systems.js';
import { eventsIn, newLedger, Service } from './service-process.js';
import { openGate, reopen } from './support.js';

const START = Date.parse('2026-03-01T00:00:00Z');
const MINUTE = 60_000;
const CALL = {
  ref: 'c1',
  session: 's',
  tool: 'fs.read',
  params: { path: '/x' },
  reserve: { usd: '0.4' },
  ttlMs: MINUTE,
};

/** A ledger with calls that a gate has begun which is gone, and another gate, by a clock that can be set. */
async function abandoned(calls: readonly object[], options: GateOptions = {}) {
  const place = filePlace();
  const clock = { now: START };
  const now = (): string => new Date(clock.now).toISOString();
  const bounds = { meterCaps: { calls: 10, usd: '1' }, occurredAt: now() };
  const { gate: first, grantId } = await openGate(place, bounds);
  await first.close();
  const dead = await reopen(place, { now });
  for (const call of calls) await dead.decide({ ...CALL, ...call });
  await dead.close();
  const overdue: OverdueCall[] = [];
  const gate = await reopen(place, {
    now,
    settleAfterMs: 10 * MINUTE,
    onOverdue: (call) => overdue.push(call),
    ...options,
  });
  return { place, clock, gate, grantId, overdue };
}

const kindsOf = (events: readonly Event[]): string[] => events.map(({ event_type: type }) => type);

describe('a call that a killed process began', () => {
  it('is settled as unknown, so long after its end, charged as reserved', async () => {
    const { place, clock, gate, grantId, overdue } = await abandoned([{}]);
    clock.now += 10 * MINUTE;
    await gate.sweep();
    expect(overdue).toEqual([]);
    clock.now += MINUTE;
    await gate.sweep();
    expect(overdue).toMatchObject([{ principal: AGENT, tool: 'fs.read', recorded: { verdict: 'ok' } }]);
    expect(place.events().at(-1)).toMatchObject({
      outcome: 'unknown',
      meter_basis_by_unit: { usd: 'estimated' },
    });
    expect(usedBy(place.events().at(-1))).toEqual({ calls: '1', usd: '0.4' });
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.6');
    const { length } = place.events();
    await gate.sweep();
    expect(place.events()).toHaveLength(length);
    expect(gate.listOpen()).toEqual([]);
    expect(await place.verdict()).toBe('ok');
  });

  it('is settled with all others in one write', async () => {
    const place = filePlace();
    const clock = { now: START };
    const now = (): string => new Date(clock.now).toISOString();
    const { gate: first } = await openGate(place, { meterCaps: { calls: 1_000 }, occurredAt: now() });
    await first.close();
    const refs = Array.from({ length: 200 }, (_, n) => `c${n}`);
    const dead = await reopen(place, { now });
    await Promise.all(refs.map((ref) => dead.decide({ ...CALL, reserve: {}, ref })));
    await dead.close();
    const fileSystem = new CountingFileSystem();
    const overdue: OverdueCall[] = [];
    const onOverdue = (call: OverdueCall): void => void overdue.push(call);
    const gate = await reopen(place, { now, settleAfterMs: 10 * MINUTE, onOverdue, fileSystem });
    await Promise.all(refs.map((ref) => gate.decide({ ...CALL, reserve: {}, ref: `own-${ref}` })));
    clock.now += 11 * MINUTE;
    const before = fileSystem.syncsOf(place.path);
    const warnings: string[] = [];
    const onWarning = ({ name }: Error): void => void warnings.push(name);
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    await gate.sweep();
    expect(overdue).toHaveLength(200);
    expect(await releaseSession(gate, CALL.session, { signal: new AbortController().signal })).toBe(200);
    expect(warnings).toEqual([]);
    expect(fileSystem.syncsOf(place.path) - before).toBeLessThan(100);
    expect(await place.verdict()).toBe('ok');
  });

  it.each([
    ['that has no end', { ttlMs: Infinity }, {}],
    ['where nothing says so', {}, { settleAfterMs: undefined }],
    ['where it is never to be', {}, { settleAfterMs: Infinity }],
  ])('%s stays open', async (_, call, options) => {
    const { place, clock, gate, overdue } = await abandoned([call], options);
    clock.now += 1_000 * MINUTE;
    await gate.sweep();
    expect(overdue).toEqual([]);
    expect(kindsOf(place.events()).at(-1)).toBe('x.northroot.start');
    expect((await gate.settle(CALL, { outcome: 'success' })).recorded?.verdict).toBe('ok');
  });

  it('is not taken for one that a program guards: that may run for as long as it likes', async () => {
    const { place, clock, gate, overdue } = await abandoned([]);
    const ledger = await openLive(place, { now: () => new Date(clock.now).toISOString() });
    const { opened, open } = latch();
    const running = latch();
    const guarded = ledger.guard(
      'fs.read',
      {},
      async () => {
        running.open();
        await opened;
      },
      { ttlMs: MINUTE },
    );
    await running.opened;
    clock.now += 1_000 * MINUTE;
    await gate.sweep();
    await gate.sweep();
    expect(overdue).toEqual([]);
    open();
    await guarded;
    expect(place.events().at(-1)).toMatchObject({ outcome: 'success' });
    expect(await place.verdict()).toBe('ok');
  });
});

describe('a call that cannot be settled', () => {
  const OTHER = 'agent:b1';

  /** Calls of two agents, begun by the owner's gate, which is gone; and a gate of the second agent, whose key may sign for it alone. */
  const begun = async (refs: readonly string[]) => {
    const place = filePlace();
    const clock = { now: START };
    const now = (): string => new Date(clock.now).toISOString();
    const [owner, agent] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];
    const entry = ({ publicKey }: typeof owner, roles: string[], principal: string): never =>
      ({
        keyid: publicKey.keyid,
        public_key: formatPublicKey(publicKey),
        roles,
        principals: [principal],
      }) as never;
    const keys = [
      entry(owner, ['event', 'checkpoint', 'admin', 'authority'], '*'),
      entry(agent, ['event'], OTHER),
    ];
    const create = { origin: 'example.com/tests/unsettled', keys };
    const ledger = await openLive(place, { signer: owner, create, now });
    for (const principalId of [AGENT, OTHER])
      await grant(ledger, { principalId, meterCaps: { calls: 2_000 }, occurredAt: now() });
    const dead = new Gate(ledger);
    const decide = (principal: string) => (ref: string) =>
      dead.decide({ ...CALL, ref, principal, reserve: {} });
    await Promise.all(refs.map(decide(AGENT)));
    await Promise.all(['b1', 'b2'].map(decide(OTHER)));
    await dead.close();
    const overdue: OverdueCall[] = [];
    const unsettled: UnsettledCall[] = [];
    const gate = await reopen(place, {
      ...{ signer: agent, principalId: OTHER, now, settleAfterMs: 10 * MINUTE },
      onOverdue: (call) => overdue.push(call),
      onUnsettled: (call) => unsettled.push(call),
    });
    return { place, clock, gate, overdue, unsettled };
  };

  it('keeps no other from it, is told once, and tried again', async () => {
    // More than are looked at in one sweep, and earlier.
    const refs = Array.from({ length: 260 }, (_, n) => `a${n}`);
    const { place, clock, gate, overdue, unsettled } = await begun(refs);
    await gate.decide({ ...CALL, ref: 'unbegun', start: false, reserve: {} });
    clock.now += 20 * MINUTE;
    const first = await gate.sweep();
    expect(first.refused).toHaveLength(256);
    expect(first.settled).toHaveLength(1);
    for (let count = 0; count < 3; count += 1) expect((await gate.sweep()).refused).not.toEqual([]);
    expect(overdue.map(({ principal }) => principal)).toEqual([OTHER, OTHER]);
    expect(new Set(unsettled.map(({ authorization }) => authorization)).size).toBe(refs.length);
    expect(unsettled).toHaveLength(refs.length);
    for (const { principal, error } of unsettled)
      expect([principal, (error as NorthrootError).code]).toEqual([AGENT, 'KEY_NOT_FOR_PRINCIPAL']);
    expect(await place.verdict()).toBe('ok');
  });

  it('of the gate itself likewise, nor others of its session', async () => {
    const { place, clock, gate, overdue, unsettled } = await begun([]);
    const { authorization } = await gate.decide({ ...CALL, ref: 'bad', reserve: {} });
    const refs = ['good1', 'good2', 'good3'];
    await Promise.all(refs.map((ref) => gate.decide({ ...CALL, ref, reserve: {} })));
    const late = await gate.decide({ ...CALL, session: 'late', reserve: {}, ttlMs: 1_000 * MINUTE });
    const abandon = gate.ledger.abandon.bind(gate.ledger);
    const poison = vi.spyOn(gate.ledger, 'abandon').mockImplementation((id, ...others) => {
      if (id === authorization || id === late.authorization) throw new RangeError('poisoned');
      return abandon(id, ...others);
    });
    clock.now += 20 * MINUTE;
    vi.spyOn(gate.ledger.clock, 'ticks').mockReturnValue(gate.ledger.clock.ticks() + 20 * MINUTE);
    onTestFinished(() => void vi.restoreAllMocks());
    expect((await gate.sweep()).refused).toMatchObject([{ authorizationId: authorization }]);
    expect(overdue).toHaveLength(5);
    expect(await gate.sweep()).toMatchObject({ refused: [{ authorizationId: authorization }] });
    expect(unsettled).toMatchObject([{ authorization, error: { message: 'poisoned' } }]);
    await gate.decide({ ...CALL, ref: 'own', session: 'late', reserve: {} });
    const ends = releaseSession(gate, 'late', { signal: new AbortController().signal });
    await expect(ends).rejects.toThrow('poisoned');
    expect(gate.listOpen().map((call) => call.authorization)).toEqual([authorization, late.authorization]);
    poison.mockRestore();
    expect((await gate.sweep()).refused).toEqual([]);
    expect(overdue).toHaveLength(6);
    expect(await place.verdict()).toBe('ok');
  });
});

describe('a report that comes after the call was settled as unknown', () => {
  const late = async (used?: Readonly<Record<string, string>>) => {
    const made = await abandoned([{}]);
    made.clock.now += 11 * MINUTE;
    await made.gate.sweep();
    const before = made.place.events().length;
    const report = { outcome: 'success', used, output: { ok: 1 }, modelId: 'm' } as const;
    const reports = await Promise.all([1, 2].map(() => made.gate.settle(CALL, report)));
    expect(reports.filter(({ recorded }) => recorded !== undefined)).toHaveLength(1);
    expect((await made.gate.settle(CALL, report)).recorded).toBeUndefined();
    return { ...made, added: made.place.events().slice(before) };
  };

  it('is recorded once, after what it is about; nothing is given back', async () => {
    const { place, gate, grantId, added, overdue } = await late({ usd: '0.1' });
    expect(kindsOf(added)).toEqual(['x.northroot.late_report']);
    const [report] = added;
    expect(report).toMatchObject({ outcome: 'success', model_id: 'm', output_digest: { alg: 'sha-256' } });
    expect(`sha-256:${(report as unknown as { prev_event_id: { b64: string } }).prev_event_id.b64}`).toBe(
      overdue[0]?.recorded.eventId,
    );
    expect(usedBy(report)).toMatchObject({ usd: '0.1' });
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.6');
    expect(await place.verdict()).toBe('ok');
  });

  it('is debited for what it used beyond the charge', async () => {
    const { place, gate, grantId, added } = await late({ usd: '0.75' });
    expect(kindsOf(added)).toEqual(['x.northroot.late_report', 'adjustment']);
    expect(added[1]).toMatchObject({ direction: 'debit', reason: 'LATE_REPORT', meter_basis: 'reported' });
    const [meter] = (added[1] as unknown as { meters: { unit: string; amount: never }[] }).meters;
    expect([meter?.unit, formatQuantity(meter?.amount)]).toEqual(['usd', '0.35']);
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.25');
    expect(await place.verdict()).toBe('ok');
  });

  it('charges time only where it says how long the call ran', async () => {
    for (const durationMs of [undefined, 20_000]) {
      const place = filePlace();
      const clock = { now: START };
      const now = (): string => new Date(clock.now).toISOString();
      const meterCaps = { calls: 10, 'time.ms': 60_000 };
      const { gate: first, grantId } = await openGate(place, { meterCaps, occurredAt: now() });
      await first.close();
      const gate = await reopen(place, { now });
      await gate.decide({ ...CALL, reserve: { 'time.ms': 5_000 } });
      await gate.release(CALL);
      clock.now += 1_000 * MINUTE;
      await gate.settle(CALL, { outcome: 'success', durationMs });
      expect(await leftOf(gate.ledger, grantId, 'time.ms')).toBe(
        durationMs === undefined ? '55000' : '40000',
      );
      expect(await place.verdict()).toBe('ok');
    }
  });

  it('of more than the cap is a violation, as any other would be', async () => {
    const { place } = await late({ usd: '1.5' });
    expect(await place.verdict()).toBe('violation');
  });

  it('to the gate that has begun it, and did not hear of that, likewise', async () => {
    const place = filePlace();
    const { gate, grantId } = await openGate(place, { meterCaps: { calls: 10, usd: '1' } });
    await gate.decide(CALL);
    const other = await reopen(place);
    await other.release(CALL);
    const report = { outcome: 'success', used: { usd: '0.75' } } as const;
    expect((await gate.settle(CALL, report)).recorded?.verdict).toBe('ok');
    expect(kindsOf(place.events()).slice(-3)).toEqual(['execution', 'x.northroot.late_report', 'adjustment']);
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.25');
    expect((await other.settle(CALL, report)).recorded).toBeUndefined();
    expect(await place.verdict()).toBe('ok');
  });

  it('to a gate that has released it likewise', async () => {
    const place = filePlace();
    const { gate } = await openGate(place);
    await gate.decide(CALL);
    await gate.release(CALL);
    expect((await gate.settle(CALL, { outcome: 'success' })).recorded?.verdict).toBe('ok');
    expect(kindsOf(place.events()).slice(-2)).toEqual(['execution', 'x.northroot.late_report']);
    expect((await gate.settle(CALL, { outcome: 'unknown' })).recorded).toBeUndefined();
    expect(await place.verdict()).toBe('ok');
  });
});

describe('a late report to a process that did not settle the call', () => {
  const report = (used: string) => ({ outcome: 'success', used: { usd: used }, output: { ok: 1 } }) as const;

  /** A call that one gate has begun and another, now gone, has settled. */
  const settled = async (more: object = {}) => {
    const made = await abandoned([more]);
    made.clock.now += 11 * MINUTE;
    await made.gate.sweep();
    await made.gate.close();
    const { length } = made.place.events();
    return {
      ...made,
      open: (options: LiveLedgerOptions = {}) => reopen(made.place, options),
      added: () => made.place.events().slice(length),
    };
  };

  it.each([
    ['that has the whole ledger in memory', {}],
    ['that keeps an index', { index: true }],
  ])('%s is recorded once, by whichever process is asked', async (_, options) => {
    const { place, grantId, open, added } = await settled();
    const [first, second] = [await open(options), await open(options)];
    const all = await Promise.all([first, second].map((gate) => gate.settle(CALL, report('0.75'))));
    expect(all.map(({ recorded }) => recorded?.verdict).sort()).toEqual(['ok', undefined]);
    expect(kindsOf(added())).toEqual(['x.northroot.late_report', 'adjustment']);
    expect(await leftOf(first.ledger, grantId, 'usd')).toBe('0.25');
    await first.close();
    for (const gate of [second, await open(options)]) {
      expect((await gate.settle(CALL, report('0.75'))).recorded).toBeUndefined();
      await expect(gate.settle(CALL, report('0.7'))).rejects.toMatchObject({ code: 'REQUEST_CONFLICT' });
      expect((await gate.settle(CALL, { outcome: 'unknown' })).recorded).toBeUndefined();
    }
    expect(added()).toHaveLength(2);
    expect(await place.verdict()).toBe('ok');
  });

  it('is debited where a crash has cut that off, once', async () => {
    const { place, grantId, open } = await settled();
    const dead = await open();
    await dead.settle(CALL, report('0.75'));
    await dead.close();
    const torn = filePlace();
    const lines = readFileSync(place.path, 'utf8').split('\n').slice(0, -2);
    writeFileSync(torn.path, `${lines.join('\n')}\n`);
    expect(kindsOf(torn.events()).at(-1)).toBe('x.northroot.late_report');
    const gate = await reopen(torn);
    expect((await gate.settle(CALL, report('0.75'))).recorded?.verdict).toBe('ok');
    expect((await gate.settle(CALL, report('0.75'))).recorded).toBeUndefined();
    expect(kindsOf(torn.events().slice(lines.length))).toEqual(['adjustment']);
    expect(await leftOf(gate.ledger, grantId, 'usd')).toBe('0.25');
    expect(await torn.verdict()).toBe('ok');
  });

  it('is not taken from who may not end calls of its tool', async () => {
    const { open, added } = await settled();
    const settling = (await open()).settle(CALL, report('0.1'), { mayEnd: () => false });
    await expect(settling).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
    expect(added()).toEqual([]);
  });

  it('is no other than the first of its own principal', async () => {
    const { place, open, added } = await settled();
    const [settlement] = place.events().slice(-1) as unknown as readonly Record<string, object>[];
    const gate = await open();
    const forged = {
      ...{ event_type: 'x.northroot.late_report', prev_event_id: settlement?.['event_id'] },
      ...{ auth_event_id: settlement?.['auth_event_id'], outcome: 'success' },
    };
    await gate.ledger.append({ event: { ...forged, principal_id: 'agent:other' } });
    await gate.ledger.append({ event: { ...forged, prev_event_id: settlement?.['prev_event_id'] } });
    expect((await gate.settle(CALL, report('0.1'))).recorded?.verdict).toBe('ok');
    expect(added()).toHaveLength(3);
  });
});

describe('a gate whose calls another process has settled', () => {
  it('ends their session without an error, and sweeps on', async () => {
    const place = filePlace();
    const { gate } = await openGate(place);
    const other = await reopen(place);
    for (const ref of ['c1', 'c2', 'c3']) await gate.decide({ ...CALL, ref, reserve: {}, ttlMs: 1 });
    await other.settle({ ...CALL, ref: 'c1' }, { outcome: 'success' });
    expect((await gate.release({ ...CALL, ref: 'c1' })).recorded).toBeUndefined();
    await other.settle({ ...CALL, ref: 'c2' }, { outcome: 'success' });
    await gate.sweep();
    expect(gate.listOpen()).toEqual([]);
    expect(kindsOf(place.events()).filter((kind) => kind === 'execution')).toHaveLength(3);
    expect(await place.verdict()).toBe('ok');
  });

  it('settles what the other has begun meanwhile', async () => {
    const place = filePlace();
    const { gate } = await openGate(place);
    const other = await reopen(place);
    await gate.decide({ ...CALL, start: false });
    await other.decide(CALL);
    expect((await gate.release(CALL)).recorded?.verdict).toBe('ok');
    expect(place.events().at(-1)).toMatchObject({ outcome: 'unknown' });
    expect(await place.verdict()).toBe('ok');
  });
});

describe('northroot serve --settle-after', () => {
  const shop = new Workshop();

  it('settles what a killed service began, and says so in its log', async () => {
    const ledger = newLedger(shop, 'calls=2');
    const service = await Service.start(shop, ledger);
    const call = { ref: 'c1', tool: 'fs.read', params: { secret: 'PASSWORD' }, ttl_ms: 500 };
    const { authorization } = (await service.ask('/v1/decide', call)).body;
    await service.kill();
    const next = await Service.start(shop, ledger, { args: ['--settle-after', '1s'] });
    await next.process.until(({ stderr }) => stderr.includes('"settled"'));
    const { stderr } = await next.stop();
    const [line = ''] = stderr.split('\n').filter((each) => each.includes('"settled"'));
    expect(parseLines(`${line}\n`)).toMatchObject([{ settled: 'unknown', tool: 'fs.read', authorization }]);
    expect(stderr).not.toContain('PASSWORD');
    expect(eventsIn(shop, ledger, 'execution')).toMatchObject([{ outcome: 'unknown' }]);
    const unreported = (): unknown[] =>
      [['--no-index'], ['--index', `${ledger}.own`]].map((how) => {
        const { stdout } = shop.run(['gate', 'status', ledger, '--format', 'json', ...how]);
        return (JSON.parse(stdout) as { unreported: number }).unreported;
      });
    expect(unreported()).toEqual([1, 1]);
    const last = await Service.start(shop, ledger);
    expect((await last.ask('/v1/settle', { ref: 'c1', outcome: 'success' })).status).toBe(200);
    await last.stop();
    expect(unreported()).toEqual([0, 0]);
    expectOk(shop.run(['verify', ledger]));
  });

  it('refuses what is no span', () => {
    expect(shop.run(['serve', newLedger(shop, 'calls=1'), '--settle-after', 'soon'])).toMatchObject({
      status: 2,
    });
  });
});
