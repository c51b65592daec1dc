/** A program that acts by a live ledger and is stopped somewhere, and what must hold of what it leaves. */

import { expect } from 'vitest';
import { CODE_PAGES, type FindingCode } from '../../src/format/finding/catalog.js';
import { LiveLedger, type LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import type { LedgerStore } from '../../src/log/store/ledger-store.js';
import type { Appended } from '../../src/log/writer/ledger.js';
import { meters } from '../../src/base/value/meter.js';
import { formatQuantity } from '../../src/base/value/quantity.js';
import { codeOf, judge, readRecords, signer } from '../writer/support.js';
import { AGENT, request } from './support.js';

/** What the grant of such a program allows. */
export const CAP = { calls: 40, usd: '100' };

/** What a program was told, and what it did. */
export interface Told {
  readonly acknowledged: { readonly seq: number; readonly eventId: string }[];
  /** The starts under which its functions were called. */
  readonly ran: string[];
  /** Executions that it was told are not recorded. */
  readonly unrecorded: { readonly startId: string; readonly event: object }[];
  readonly errors: unknown[];
}

export function nothingTold(): Told {
  return { acknowledged: [], ran: [], unrecorded: [], errors: [] };
}

/**
 * Opens, authorizes, starts and records by hand, guards two functions at once, leaves something reserved and something begun, seals and
 * closes. What fails is noted, and the rest is tried all the same.
 */
export async function act(
  place: string | LedgerStore,
  told: Told,
  options: LiveLedgerOptions,
): Promise<void> {
  const attempt = async <T>(does: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await does();
    } catch (error) {
      told.errors.push(error);
      const { startId, event } = error as { readonly startId?: string; readonly event?: object };
      if (startId !== undefined && event !== undefined) told.unrecorded.push({ startId, event });
      return undefined;
    }
  };
  const noted = <T extends Pick<Appended, 'seq' | 'eventId'>>(appended: T): T => {
    told.acknowledged.push(appended);
    return appended;
  };
  const ledger = await attempt(() =>
    LiveLedger.open(place, {
      signer,
      principalId: AGENT,
      checkpoints: true,
      lockTimeoutMs: 5_000,
      ...options,
    }),
  );
  if (ledger === undefined) return;
  const allow = async (n: number): Promise<string> => {
    const { recorded, decision } = await ledger.authorize(request(n, { calls: 1, usd: 2 }));
    expect(decision).toBe('allow');
    return noted(recorded).eventId;
  };
  const start = async (id: string, n: number): Promise<string> => {
    const { startedAt, recorded } = await ledger.start(id, { paramsDigest: request(n).paramsDigest });
    noted(recorded);
    return startedAt;
  };
  const guard = (n: number): Promise<unknown> =>
    ledger.guard(
      'fs.read',
      { n },
      ({ startId, meter }) => {
        told.ran.push(startId);
        meter.add('usd', '0.5');
      },
      { reserve: { usd: '1' }, onRecorded: noted },
    );

  await attempt(async () => {
    const id = await allow(1);
    const startedAt = await start(id, 1);
    const done = { startedAt, endedAt: startedAt, outcome: 'success' } as const;
    noted(await ledger.record(id, { ...done, meterUsed: meters({ calls: 1, usd: 1 }) }));
  });
  await Promise.all([attempt(() => guard(2)), attempt(() => guard(3)), attempt(() => allow(4))]);
  await attempt(async () => noted(await ledger.checkpoint()));
  await attempt(async () => start(await allow(5), 5));
  await attempt(() => ledger.close());
}

interface Authorized {
  readonly id: string;
  readonly calls: number;
  readonly usd: number;
}

/** What stands in a ledger, by nothing but JSON.parse. */
function look(path: string): {
  readonly ids: readonly string[];
  readonly open: readonly Authorized[];
  readonly executed: readonly string[];
  readonly begun: ReadonlySet<string>;
  readonly used: { readonly calls: number; readonly usd: number };
} {
  const ids: string[] = [];
  const allowed = new Map<string, Authorized>();
  const executed: string[] = [];
  const begun = new Set<string>();
  const used = { calls: 0, usd: 0 };
  for (const { event } of readRecords(path)) {
    const id = `sha-256:${event.event_id.b64}`;
    ids.push(id);
    const under = `sha-256:${(event.auth_event_id as { b64: string } | undefined)?.b64}`;
    const { action } = (event.authorization ?? {}) as { action?: { meter_reservation: unknown } };
    if (action !== undefined) allowed.set(id, { id, ...sumOf(action.meter_reservation) });
    if (event.event_type === 'x.northroot.start') begun.add(id);
    if (event.event_type !== 'execution') continue;
    executed.push(under);
    const { calls, usd } = sumOf(event.meter_used);
    used.calls += calls;
    used.usd += usd;
  }
  const open = [...allowed.values()].filter(({ id }) => !executed.includes(id));
  return { ids, open, executed, begun, used };
}

function sumOf(vector: unknown): { readonly calls: number; readonly usd: number } {
  const amount = (wanted: string): number => {
    const found = (vector as { unit: string; amount: never }[]).find(({ unit }) => unit === wanted);
    return found === undefined ? 0 : Number(formatQuantity(found.amount));
  };
  return { calls: amount('calls'), usd: amount('usd') };
}

/** What was acknowledged is there, what ran was claimed before, and what is there verifies, perhaps but for a torn tail. */
export async function expectKept(path: string, { acknowledged, ran }: Told): Promise<void> {
  const { verdict, codes } = await judge(path);
  const errors = codes.filter((code) => CODE_PAGES[code as FindingCode].severity === 'error');
  expect([verdict, errors]).toEqual(verdict === 'invalid' ? ['invalid', ['LINE_TORN']] : ['ok', []]);
  const { ids, executed, begun } = look(path);
  for (const { seq, eventId } of acknowledged) expect(ids[seq]).toBe(eventId);
  for (const startId of ran) expect(begun).toContain(startId);
  expect(new Set(executed).size).toBe(executed.length);
}

/** Whoever comes next finds the budget that the records give, settles what was left, and goes on. */
export async function expectSettled(
  path: string,
  grantId: string,
  told: Told,
  options: LiveLedgerOptions = {},
): Promise<void> {
  const ledger = await LiveLedger.open(path, {
    signer,
    principalId: AGENT,
    lockTimeoutMs: 60_000,
    ...options,
  });
  const left = async (): Promise<{ calls: number; usd: number; started: number }> => {
    const { balances, started } = await ledger.budget(grantId);
    const of = (unit: string): number =>
      Number(formatQuantity(balances.find((each) => each.unit === unit)!.left));
    return { calls: of('calls'), usd: of('usd'), started: started.length };
  };
  const expected = (): { calls: number; usd: number } => {
    const { used, open } = look(path);
    const sum = (unit: 'calls' | 'usd'): number =>
      open.reduce((total, each) => total + each[unit], used[unit]);
    return { calls: Number(CAP.calls) - sum('calls'), usd: Number(CAP.usd) - sum('usd') };
  };
  expect(await left()).toMatchObject(expected());
  await Promise.all(told.unrecorded.map(({ event }) => ledger.append({ event })));
  const { started } = await ledger.budget(grantId);
  const now = new Date().toISOString();
  const released = { startedAt: now, endedAt: now, meterUsed: [], outcome: 'failure' } as const;
  const begun = new Set(started.map(({ authorizationId }) => authorizationId));
  await Promise.all([
    ...started.map((each) => ledger.abandon(each.authorizationId, { start: each.eventId })),
    ...look(path)
      .open.filter(({ id }) => !begun.has(id))
      .map(({ id }) => ledger.record(id, { ...released, errorCode: 'ABANDONED' })),
  ]);
  const { used, open } = look(path);
  expect(open).toEqual([]);
  expect(await left()).toEqual({
    calls: Number(CAP.calls) - used.calls,
    usd: Number(CAP.usd) - used.usd,
    started: 0,
  });
  // It was settled as what it was, and not given back as well.
  const again = told.unrecorded.map(({ startId, event }) =>
    codeOf(ledger.abandon(authorizationOf(event), { start: startId })),
  );
  for (const code of await Promise.all(again)) expect(code).toBe('AUTHORIZATION_REUSED');
  expect(await ledger.guard('fs.read', { next: true }, () => 'runs')).toBe('runs');
  await ledger.close();
  expect((await judge(path)).verdict).toBe('ok');
}

function authorizationOf(event: object): string {
  return `sha-256:${(event as { auth_event_id: { b64: string } }).auth_event_id.b64}`;
}
