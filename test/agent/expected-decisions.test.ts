/** A decision that is expected, and made ahead of its turn, is what it would be in it. */

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sha256Digest } from '../../src/base/value/digest.js';
import { meters } from '../../src/base/value/meter.js';
import type { Entry } from '../../src/log/writer/ledger.js';
import type { LiveRequest } from '../../src/log/agent/guard.js';
import { DeniedError } from '../../src/log/agent/errors.js';
import { LiveLedger, type LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import { draftGrant, type GrantOptions } from '../../src/log/policy/draft-grant.js';
import { draftRevocation } from '../../src/log/policy/revoke.js';
import {
  draft,
  errorOf,
  judge,
  openLedger,
  readRecords,
  signer,
  temporaryFolder,
} from '../writer/support.js';

const AGENT = 'agent:a1';
const INTENT = sha256Digest(Buffer.from('what is to be done'));

async function open(
  grant: Partial<GrantOptions> = {},
  options: LiveLedgerOptions = {},
): Promise<{ readonly path: string; readonly ledger: LiveLedger; readonly grantId: string }> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const create = { origin: 'example.com/tests/expected' };
  const ledger = await LiveLedger.open(path, { signer, principalId: AGENT, create, ...options });
  const meterCaps = { calls: 10n ** 6n };
  const { eventId: grantId } = await ledger.append({
    event: draftGrant({ principalId: AGENT, allowedTools: ['fs.*'], meterCaps, ...grant }),
  });
  return { path, ledger, grantId };
}

function request(n: number, more: Partial<LiveRequest> = {}): LiveRequest {
  const paramsDigest = sha256Digest(Buffer.from(`call ${n}`));
  return {
    toolName: 'fs.read',
    paramsDigest,
    intentDigest: INTENT,
    meters: meters({ calls: 1 }),
    ttlMs: 60_000,
    ...more,
  };
}

describe.each([['without'], ['with']])('guarded calls at once, %s an index', (how) => {
  it('run as far as the cap allows, whatever was expected', async () => {
    const { path, ledger } = await open({ meterCaps: { calls: 40n } }, { index: how === 'with' });
    const ran: number[] = [];
    const call = (n: number): Promise<unknown> =>
      ledger.guard('fs.read', { n }, () => void ran.push(n)).catch((error: unknown) => error);
    await call(0);
    const ends = await Promise.all(Array.from({ length: 99 }, (_, n) => call(n + 1)));
    expect(ran).toHaveLength(40);
    expect(ends.filter((end) => end instanceof DeniedError)).toHaveLength(60);
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', codes: [] });
    const records = readRecords(path).map(
      ({ event }) => event as object as { event_type: string; decision?: string },
    );
    expect(records.filter(({ decision }) => decision === 'deny')).toHaveLength(60);
    expect(records.filter(({ event_type: type }) => type === 'execution')).toHaveLength(40);
    const times = readRecords(path).map(({ event }) => event.occurred_at);
    expect(times).toEqual(times.toSorted());
  });

  it('are told apart by tool, grant and limit of concurrency', async () => {
    const { path, ledger } = await open({ concurrencyLimit: 3 }, { index: how === 'with' });
    await ledger.append({
      event: draftGrant({ principalId: AGENT, allowedTools: ['net.*'], meterCaps: { calls: 100n } }),
    });
    let [running, most] = [0, 0];
    const call = (n: number): Promise<unknown> => {
      const run = async (): Promise<void> => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setTimeout(resolve, 1));
        running -= 1;
      };
      if (n % 2 === 0) return ledger.guard('net.fetch', { n }, () => undefined);
      return ledger.guard('fs.read', { n }, run).catch((error: unknown) => error);
    };
    for (let round = 0; round < 4; round += 1)
      await Promise.all(Array.from({ length: 40 }, (_, n) => call(100 * round + n)));
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(3);
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', codes: [] });
  });
});

it('a malformed request is refused alike, whether an answer to its like is known or not', async () => {
  const { path, ledger } = await open();
  const malformed: Partial<LiveRequest>[] = [
    { meters: [{ unit: 'no unit', amount: { t: 'int', v: '1' } }] },
    { meters: [{ unit: 'calls', amount: { t: 'int', v: '01' } }] },
    { ttlMs: undefined, expiresAt: 'tomorrow' },
    { requestKey: 'a key' },
    { resources: [{ kind: 'path' } as never] },
    { contextDigest: { alg: 'sha-256', b64: 'short' } as never },
    { grantId: 'nothing' },
    { grantId: '' },
  ].map((each) => each as Partial<LiveRequest>);
  const refusals = async (): Promise<unknown[]> => {
    const found = [];
    for (const more of malformed) {
      const error = await errorOf(ledger.authorize(request(1, more)));
      found.push(error instanceof Error ? [error.constructor.name, error.message] : error);
    }
    return found;
  };
  const before = await refusals();
  for (let n = 0; n < 3; n += 1) await ledger.authorize(request(n));
  expect(await refusals()).toEqual(before);
  expect(before.filter((each) => /^(?:Type|Range)Error$/.test((each as string[])[0] ?? ''))).toHaveLength(
    malformed.length,
  );
  await ledger.close();
  expect(await judge(path)).toMatchObject({ verdict: 'ok' });
});

it('a grant that is revoked in the same group denies what was expected', async () => {
  const { path, ledger, grantId } = await open();
  for (let n = 0; n < 3; n += 1) await ledger.authorize(request(n));
  const revocation = draftRevocation(grantId, { effect: 'revoke', reason: 'INCIDENT', principalId: AGENT });
  const [before, , ...after] = await Promise.all([
    ledger.authorize(request(10)),
    ledger.append({ event: revocation }),
    ledger.authorize(request(11)),
    ledger.authorize(request(12)),
  ]);
  expect(before.decision).toBe('allow');
  const denied = { decision: 'deny', decisionCode: 'GRANT_REVOKED' };
  expect(after).toMatchObject([denied, denied]);
  await ledger.close();
  expect(await judge(path)).toMatchObject({ verdict: 'ok' });
});

describe('entries that a caller expects', () => {
  it('are appended where they are made, and others where they are not', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path, { decides: true });
    const ids: string[] = [];
    const ask = (n: number, isExpected: boolean): Promise<{ readonly eventId: string }> => {
      let entry: Entry | undefined;
      return ledger.decide(() => (isExpected && entry ? entry : { event: draft(100 + n) }), {
        expects: (complete) => {
          entry = { event: draft(n) };
          ids[n] = complete(entry);
        },
      });
    };
    const decided = await Promise.all([0, 1, 2, 3, 4].map((n) => ask(n, n !== 2)));
    await ledger.close();
    expect(decided.map(({ eventId }, n) => eventId === ids[n])).toEqual([true, true, false, true, true]);
    const events = readRecords(path).map(({ event }) => (event as unknown as { n?: number }).n);
    expect(events.slice(1)).toEqual([0, 1, 102, 3, 4]);
    expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 6 });
  });

  it('are appended once, and followed where they must be new', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path, { decides: true });
    const ask = (isAnew: boolean): Promise<{ readonly status: string }> => {
      const entry: Entry = { event: draft(1), isAnew };
      return ledger.decide(() => entry, { expects: (complete) => void complete(entry) });
    };
    const decided = await Promise.all([ask(false), ask(false), ask(true), ask(true)]);
    expect(decided.map(({ status }) => status)).toEqual(['appended', 'exists', 'appended', 'appended']);
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 4 });
  });

  it('that cannot be made have no effect', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path, { decides: true });
    const ask = (expects: (complete: (entry: Entry) => string) => void): Promise<unknown> =>
      ledger.decide(() => ({ event: draft(1) }), { expects });
    await ask(() => {
      throw new Error('no');
    });
    await ask((complete) => void complete({ event: { event_type: 'execution' } }));
    await ledger.close();
    expect(await judge(path)).toMatchObject({ verdict: 'ok', records: 2 });
  });
});
