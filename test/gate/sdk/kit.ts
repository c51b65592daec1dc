/** What every guard of tools keeps, whatever the SDK: each kit says how a tool is called through it. */

import { describe, expect, it } from 'vitest';
import type { AmountsByUnit } from '../../../src/base/value/meter.js';
import type { LiveLedger, LiveLedgerOptions } from '../../../src/log/agent/live-ledger.js';
import { sha256Digest } from '../../../src/base/value/digest.js';
import { canonicalBytes } from '../../../src/base/json/canonicalize.js';
import { type Event, gate, grant, memoryPlace, openLive, type Place } from '../../agent/support.js';

/** What a tool does when it is run. */
export type Body = (path: string, signal: AbortSignal | undefined) => unknown;

/** How a call went for the caller: `told` is what a model is told of an error. */
export interface Called {
  readonly value?: unknown;
  readonly told?: string;
}

export interface Caller {
  /** Calls the tool once, as the SDK does. */
  call(path: string, signal?: AbortSignal): Promise<Called>;
}

export interface Kit {
  /** How the tool is named in the ledger. */
  readonly tool: string;
  make(ledger: LiveLedger, body: Body): Caller;
  /** What is recorded of what throws an error with the code `ENOENT`. Default: a failure with that. */
  readonly thrown?: string;
  /** A result that is an error, and its code, where the SDK has such. */
  readonly fault?: { readonly value: object; readonly code: string };
  /** What the digest of a result is of. Default: the result. */
  readonly outputOf?: (value: unknown) => unknown;
  /** A result. Default: a text. */
  readonly resultOf?: (path: string) => unknown;
  /** What is recorded of a call that is aborted; false where the signal does not reach the guard. Default `unknown`. */
  readonly aborted?: string | false;
}

export async function openFor(
  tool: string,
  meterCaps: AmountsByUnit,
  options: LiveLedgerOptions = {},
): Promise<{ readonly place: Place; readonly ledger: LiveLedger; readonly grantId: string }> {
  const place = memoryPlace();
  const ledger = await openLive(place, options);
  return { place, ledger, grantId: await grant(ledger, { allowedTools: [tool], meterCaps }) };
}

/** Executions and denials, in the order of the ledger: `success`, `failure ENOENT`, `deny`. */
export function endsOf(place: Place): string[] {
  return place.events().flatMap((event) => {
    if (event.event_type === 'execution')
      return [[event.outcome, event.error_code].filter(Boolean).join(' ')];
    return event.decision === 'deny' ? ['deny'] : [];
  });
}

export function executionsOf(place: Place): Event[] {
  return place.events().filter(({ event_type: type }) => type === 'execution');
}

export function describeKit(name: string, kit: Kit): void {
  const { tool, resultOf = (path) => `text of ${path}`, outputOf = (value) => value } = kit;

  describe(name, () => {
    it('runs two calls of a budget of two and tells why the third is not run', async () => {
      const { place, ledger } = await openFor(tool, { calls: 2 });
      const ran: string[] = [];
      const caller = kit.make(ledger, (path) => {
        ran.push(path);
        return resultOf(path);
      });
      expect(await caller.call('a')).toEqual({ value: resultOf('a') });
      expect(await caller.call('b')).toEqual({ value: resultOf('b') });
      const { told } = await caller.call('c');
      expect(told).toContain('RESERVATION_OVER_CAP');
      expect(ran).toEqual(['a', 'b']);
      expect(endsOf(place)).toEqual(['success', 'success', 'deny']);
      expect(await place.verdict()).toBe('ok');
    });

    it('records the digest of the output, and nothing of it', async () => {
      const { place, ledger } = await openFor(tool, { calls: 2 });
      const value = resultOf('secret-path');
      await kit.make(ledger, () => value).call('secret-path');
      const { alg, b64 } = sha256Digest(canonicalBytes(outputOf(value)));
      expect(executionsOf(place)).toMatchObject([{ output_digest: { alg, b64 } }]);
      expect(JSON.stringify(place.events())).not.toContain('secret-path');
    });

    it('records how a tool ended that throws', async () => {
      const { place, ledger } = await openFor(tool, { calls: 2 });
      const caller = kit.make(ledger, () => {
        throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
      });
      expect((await caller.call('a')).told).toBeDefined();
      expect(endsOf(place)).toEqual([kit.thrown ?? 'failure ENOENT']);
      expect(await place.verdict()).toBe('ok');
    });

    it.runIf(kit.fault)('records a result that is an error as a failure, and hands it on', async () => {
      const { place, ledger } = await openFor(tool, { calls: 2 });
      const caller = kit.make(ledger, () => kit.fault?.value);
      expect((await caller.call('a')).value).toEqual(kit.fault?.value);
      expect(endsOf(place)).toEqual([`failure ${kit.fault?.code ?? ''}`]);
      // It has an output, so that what was reserved is charged (SPEC §8 rule 5).
      expect(executionsOf(place)[0]).toHaveProperty('output_digest');
      expect(await place.verdict()).toBe('ok');
    });

    it.runIf(kit.aborted !== false)('records a call that is aborted while it runs as unknown', async () => {
      const { place, ledger } = await openFor(tool, { calls: 2 });
      const controller = new AbortController();
      const caller = kit.make(ledger, () => {
        controller.abort(new Error('enough'));
        throw controller.signal.reason;
      });
      await caller.call('a', controller.signal).catch(() => undefined);
      expect(endsOf(place)).toEqual([kit.aborted ?? 'unknown']);
      expect(await place.verdict()).toBe('ok');
    });

    it('runs exactly ten of twenty calls at once under a cap of ten', async () => {
      const { place, ledger } = await openFor(tool, { calls: 10 });
      const { opened, open } = gate();
      let running = 0;
      const caller = kit.make(ledger, async (path) => {
        running += 1;
        if (running === 10) open();
        await opened;
        return resultOf(path);
      });
      const paths = Array.from({ length: 20 }, (_, index) => `p${index}`);
      const called = await Promise.all(paths.map((path) => caller.call(path)));
      expect(running).toBe(10);
      expect(called.filter(({ told }) => told === undefined)).toHaveLength(10);
      expect(endsOf(place).sort()).toEqual([
        ...Array<string>(10).fill('deny'),
        ...Array<string>(10).fill('success'),
      ]);
      expect(await place.verdict()).toBe('ok');
    });

    it('runs nothing where the ledger cannot decide', async () => {
      const { ledger } = await openFor(tool, { calls: 2 });
      let ran = 0;
      const caller = kit.make(ledger, () => (ran += 1));
      await ledger.close();
      const called = await caller.call('a').catch((error: unknown) => ({ told: String(error) }));
      expect(called.told).toBeDefined();
      expect(ran).toBe(0);
    });
  });
}
