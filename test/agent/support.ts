/** What the tests of live ledgers share: a grant, a ledger in memory or in a file, and what its records say. */

import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { LiveLedger, type LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import type { LiveRequest } from '../../src/log/agent/guard.js';
import { digestIntent, draftGrant, type GrantOptions } from '../../src/log/policy/draft-grant.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { verifyChunks } from '../../src/rules/report/verify-chunks.js';
import type { Key } from '../../src/format/schema/generated/types.js';
import type { LedgerStore } from '../../src/log/store/ledger-store.js';
import { MemoryStore } from '../store/memory-store.js';
import { sha256Digest } from '../../src/base/value/digest.js';
import { meters, type AmountsByUnit } from '../../src/base/value/meter.js';
import { formatQuantity } from '../../src/base/value/quantity.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { readRecords, signer, temporaryFolder } from '../writer/support.js';

export const AGENT = 'agent:a1';

/** Where a ledger of a test is kept. */
export interface Place {
  /** What another writer of the same ledger opens. */
  readonly open: () => string | LedgerStore;
  /** The payloads of all events. */
  readonly events: () => Event[];
  readonly verdict: () => Promise<string>;
}

/** Members of events that the tests look at. */
export interface Event {
  readonly event_type: string;
  readonly decision?: string;
  readonly outcome?: string;
  readonly error_code?: string;
  readonly output_digest?: unknown;
  readonly model_id?: string;
  readonly provider?: string;
  readonly meter_basis?: string;
  readonly authorization?: {
    readonly action?: { readonly expires_at?: string; readonly tool_params_digest?: object };
  };
  readonly meter_used?: readonly { readonly unit: string; readonly amount: never }[];
}

export function memoryPlace(hasLocks = true): Place {
  const store = new MemoryStore({ hasLocks });
  return {
    open: () => store.open(),
    events: () =>
      Buffer.from(store.bytes())
        .toString()
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { event: Event }).event),
    verdict: async () => (await verifyChunks(store.bytes())).verdict,
  };
}

export function filePlace(): Place & { readonly path: string } {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  return {
    path,
    open: () => path,
    events: () => readRecords(path).map(({ event }) => event as unknown as Event),
    verdict: async () => (await verifyLedger(path)).verdict,
  };
}

/** Opens a ledger, making it where it is not there. */
export async function openLive(place: Place, options: LiveLedgerOptions = {}): Promise<LiveLedger> {
  const ledger = await LiveLedger.open(place.open(), {
    signer,
    principalId: AGENT,
    create: { origin: 'example.com/tests/live' },
    lockTimeoutMs: 60_000,
    ...options,
  });
  onTestFinished(() => ledger.close());
  return ledger;
}

/** The keys that a ledger declares. */
export async function keysOf(path: string): Promise<Key[]> {
  const ledger = await Ledger.open(path);
  const keys = await ledger.listKeys();
  await ledger.close();
  return keys;
}

/** Grants an agent the tools `fs.*`. @returns the grant's id */
export async function grant(ledger: LiveLedger, options: Partial<GrantOptions> = {}): Promise<string> {
  const draft = draftGrant({ principalId: AGENT, allowedTools: ['fs.*'], ...options });
  return (await ledger.append({ event: draft })).eventId;
}

/** A request that differs from those of other numbers. */
export function request(n: number, amounts: AmountsByUnit = { calls: 1 }): LiveRequest {
  return {
    toolName: 'fs.read',
    paramsDigest: sha256Digest(Buffer.from(String(n))),
    intentDigest: digestIntent('test'),
    meters: meters(amounts),
  };
}

/** What is left of one unit of a grant. */
export async function leftOf(ledger: LiveLedger, grantId: string, unit = 'calls'): Promise<string> {
  const { balances } = await ledger.budget(grantId);
  const balance = balances.find((each) => each.unit === unit);
  expect(balance).toBeDefined();
  return formatQuantity(balance!.left);
}

/** What an execution says that it used: amounts by unit, as texts. */
export function usedBy(event: Event | undefined): Record<string, string> {
  return Object.fromEntries(
    (event?.meter_used ?? []).map(({ unit, amount }) => [unit, formatQuantity(amount)]),
  );
}

/** A promise, and what settles it. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
