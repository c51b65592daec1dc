/** A guarded function is run only when the ledger allows it, and what it used is recorded however it ends. */

import { describe, expect, it } from 'vitest';
import { DeniedError, UnrecordedExecutionError } from '../../src/log/agent/errors.js';
import type { GuardContext, GuardedFunction, GuardOptions } from '../../src/log/agent/guard.js';
import type { LiveLedger } from '../../src/log/agent/live-ledger.js';
import type { UsageMeter } from '../../src/log/agent/usage-meter.js';
import type { Finding } from '../../src/format/finding/finding.js';
import { digestIntent } from '../../src/log/policy/draft-grant.js';
import { GrantEvaluator } from '../../src/log/policy/evaluator.js';
import { draftExecution } from '../../src/log/policy/record.js';
import type { Appended } from '../../src/log/writer/ledger.js';
import type { LedgerStore } from '../../src/log/store/ledger-store.js';
import { codeOf, errorOf } from '../writer/support.js';
import {
  AGENT,
  filePlace,
  gate,
  grant,
  leftOf,
  memoryPlace,
  openLive,
  type Place,
  usedBy,
} from './support.js';

const OUTPUT = digestIntent('output');

/** Ticks 5 ms at each look. */
function ticker(): () => number {
  let now = 0;
  return () => (now += 5);
}

/** Aborts a guard when its function runs. */
async function abortWhileRunning(ledger: LiveLedger, run: (context: GuardContext) => void): Promise<unknown> {
  const controller = new AbortController();
  const guarded = ledger.guard(
    'fs.read',
    null,
    async (context) => {
      run(context);
      controller.abort(new Error('enough'));
      await Promise.resolve();
      context.signal.throwIfAborted();
    },
    { signal: controller.signal },
  );
  return errorOf(guarded);
}

/** A place that tells how many lines each group has, before it is written. */
function onAppend(place: Place, tell: (lines: number) => unknown): Place {
  const store = new Proxy(place.open() as LedgerStore, {
    get: (target, name): unknown => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        if (name === 'appendIf') tell((args[1] as unknown[]).length);
        return Reflect.apply(member, target, args) as unknown;
      };
    },
  });
  return { ...place, open: () => store };
}

describe('guard', () => {
  it('gives the result back, and records success with what was used and the digest of the output', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place, { ticks: ticker() });
    const grantId = await grant(ledger, { meterCaps: { calls: 10, usd: '1', 'time.ms': 100 } });
    const recorded: Appended[] = [];
    const run = async ({ meter, setOutputDigest }: GuardContext): Promise<string> => {
      // The start and the reservation are on disk: nobody else has this any more.
      expect(await leftOf(ledger, grantId, 'usd')).toBe('0.5');
      meter.add('usd', '0.1');
      meter.add({ usd: '0.2' });
      setOutputDigest(OUTPUT);
      return 'text';
    };
    const onRecorded = (each: Appended): void => void recorded.push(each);
    const options: GuardOptions = { reserve: { usd: '0.50' }, onRecorded };
    expect(await ledger.guard('fs.read', { path: 'a' }, run, options)).toBe('text');
    expect(recorded).toMatchObject([{ seq: 4, verdict: 'ok', status: 'appended' }]);
    expect(place.events().map(({ event_type: type }) => type)).toEqual([
      'genesis',
      'authorization',
      'authorization',
      'x.northroot.start',
      'execution',
    ]);
    const execution = place.events().at(-1);
    expect(execution).toMatchObject({ outcome: 'success', output_digest: OUTPUT });
    expect(usedBy(execution)).toEqual({ calls: '1', 'time.ms': '5', usd: '0.3' });
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0.7');
    expect((await ledger.budget(grantId)).started).toEqual([]);
    expect(await place.verdict()).toBe('ok');
  });

  it('charges a failure with an output as it charges a success', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, { meterCaps: { calls: 10, usd: '1' } });
    const fail = ({ setOutputDigest }: GuardContext): never => {
      setOutputDigest(OUTPUT);
      throw new Error('no');
    };
    await errorOf(ledger.guard('fs.read', 1, fail, { reserve: { usd: '0.50' } }));
    expect(place.events().at(-1)).toMatchObject({ outcome: 'failure', output_digest: OUTPUT });
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0.5');
    expect(await place.verdict()).toBe('ok');
  });

  it('records by which model and provider, and where the amounts come from', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 10, usd: 1 } });
    await ledger.guard('fs.read', 1, () => undefined);
    expect(place.events().at(-1)).toMatchObject({ meter_basis: 'measured' });
    const run = ({ meter, setDetails }: GuardContext): void => {
      meter.add('usd', '0.01');
      setDetails({ modelId: 'm-2', meterBasis: undefined });
    };
    await ledger.guard('fs.read', 2, run);
    expect(place.events().at(-1)).not.toHaveProperty('meter_basis');
    const given: GuardOptions = { modelId: 'm-1', provider: 'Example', meterBasis: 'reported' };
    await ledger.guard('fs.read', 3, run, given);
    const details = { model_id: 'm-2', provider: 'Example', meter_basis: 'reported' };
    expect(place.events().at(-1)).toMatchObject({ ...details, outcome: 'success' });
    await abortWhileRunning(ledger, ({ setDetails }) => setDetails({ modelId: 'm-3' }));
    expect(place.events().at(-1)).toMatchObject({ model_id: 'm-3', outcome: 'unknown' });
    expect(await place.verdict()).toBe('ok');
  });

  it.each<GuardOptions>([
    { modelId: '' },
    { provider: 'x'.repeat(257) },
    { modelId: '\ud800' },
    { meterBasis: 'guessed' as never },
  ])('is not begun with details that could not be recorded: %j', async (details) => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 1 } });
    const refused = ledger.guard('fs.read', null, () => expect.unreachable(), details);
    expect(await errorOf(refused)).toBeInstanceOf(RangeError);
    expect(place.events()).toHaveLength(2);
  });

  it('records a failure with the code of the error, where it has one that events may have', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 10, usd: 1 } });
    const fail = (error: unknown): Promise<unknown> =>
      errorOf(
        ledger.guard('fs.read', { code: String(error) }, ({ meter }) => {
          meter.add('usd', '0.25');
          throw error;
        }),
      );
    const missing = Object.assign(new Error('gone'), { code: 'ENOENT' });
    expect(await fail(missing)).toBe(missing);
    expect(place.events().at(-1)).toMatchObject({ outcome: 'failure', error_code: 'ENOENT' });
    expect(usedBy(place.events().at(-1))).toMatchObject({ calls: '1', usd: '0.25' });
    for (const error of [Object.assign(new Error('odd'), { code: 'not a code' }), 'a text', undefined]) {
      expect(await fail(error)).toBe(error);
      expect(place.events().at(-1)).toMatchObject({ outcome: 'failure', error_code: 'ERROR' });
    }
    expect(await place.verdict()).toBe('ok');
  });

  it('does not run what is denied, and says which bound it was and what is left', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, { meterCaps: { calls: 10, usd: '0.30' } });
    let isRun = false;
    const run = (): boolean => (isRun = true);
    const error = await errorOf(ledger.guard('fs.read', {}, run, { reserve: { usd: '0.31' } }));
    expect(error).toBeInstanceOf(DeniedError);
    const { code, bound, decision } = error as DeniedError;
    expect(code).toBe(decision.decisionCode);
    expect(bound).toMatchObject({ grantId, unit: 'usd', left: { t: 'dec', m: '3', s: 1 } });
    expect(decision.recorded.seq).toBe(2);
    expect(await codeOf(ledger.guard('net.get', {}, run))).toBe('TOOL_NOT_ALLOWED');
    expect(isRun).toBe(false);
    expect(place.events().slice(2)).toMatchObject([{ decision: 'deny' }, { decision: 'deny' }]);
  });

  it('records as unknown what was aborted while it ran, with what it used', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, { meterCaps: { calls: 10, usd: 1 } });
    const error = await abortWhileRunning(ledger, ({ meter }) => meter.add('usd', '0.4'));
    expect(error).toMatchObject({ message: 'enough' });
    expect(place.events().at(-1)).toMatchObject({ event_type: 'execution', outcome: 'unknown' });
    expect(usedBy(place.events().at(-1))).toMatchObject({ calls: '1', usd: '0.4' });
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0.6');
    expect(await place.verdict()).toBe('ok');
  });

  it('begins nothing that is aborted already, and gives back what is aborted before it is run', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, { meterCaps: { calls: 10 } });
    const size = place.events().length;
    const run = (): never => expect.fail('it was run');
    const signal = AbortSignal.abort(new Error('early'));
    expect(await errorOf(ledger.guard('fs.read', {}, run, { signal }))).toMatchObject({ message: 'early' });
    expect(place.events()).toHaveLength(size);
    // Aborts while it is decided, so that it is allowed and not begun.
    const controller = new AbortController();
    const policyLedger = await openLive(place, {
      policy: (state) => {
        controller.abort(new Error('late'));
        return new GrantEvaluator(state);
      },
    });
    const guarded = policyLedger.guard('fs.read', {}, run, { signal: controller.signal });
    expect(await errorOf(guarded)).toMatchObject({ message: 'late' });
    expect(place.events().slice(size)).toMatchObject([
      { event_type: 'authorization', decision: 'allow' },
      { event_type: 'execution', error_code: 'ABANDONED' },
    ]);
    expect(await leftOf(ledger, grantId)).toBe('10');
    expect((await ledger.budget(grantId)).started).toEqual([]);
    expect(await place.verdict()).toBe('ok');
  });

  it('records that nothing was done where it is aborted once it is begun, and does not run', async () => {
    const place = memoryPlace();
    const controller = new AbortController();
    let isBegun = false;
    const ledger = await openLive(onAppend(place, () => isBegun && controller.abort(new Error('late'))));
    const grantId = await grant(ledger, { meterCaps: { calls: 10 } });
    isBegun = true;
    const run = (): never => expect.fail('it was run');
    const error = await errorOf(ledger.guard('fs.read', {}, run, { signal: controller.signal }));
    expect(error).toMatchObject({ message: 'late' });
    expect(place.events().at(-1)).toMatchObject({ outcome: 'failure', error_code: 'ABORTED' });
    expect(await leftOf(ledger, grantId)).toBe('10');
    expect(await place.verdict()).toBe('ok');
  });

  it('writes decision and start in one group, and the execution in another', async () => {
    const place = memoryPlace();
    const groups: number[] = [];
    const ledger = await openLive(onAppend(place, (lines) => groups.push(lines)));
    await grant(ledger, { meterCaps: { calls: 10 } });
    groups.length = 0;
    await ledger.guard('fs.read', {}, () => undefined);
    expect(groups).toEqual([2, 1]);
    await errorOf(ledger.guard('net.get', {}, () => undefined));
    expect(groups).toEqual([2, 1, 1]);
  });

  it('never swallows what was done and could not be recorded', async () => {
    const place = memoryPlace();
    let isBroken = false;
    const store = new Proxy(place.open() as LedgerStore, {
      get: (target, name): unknown => {
        if (name === 'appendIf' && isBroken) return () => Promise.reject(new Error('the disk is gone'));
        const member: unknown = Reflect.get(target, name);
        return typeof member === 'function' ? (member as () => unknown).bind(target) : member;
      },
    });
    const ledger = await openLive({ ...place, open: () => store });
    const grantId = await grant(ledger, { meterCaps: { calls: 10 } });
    const error = await errorOf(
      ledger.guard('fs.read', {}, () => {
        isBroken = true;
        return 'result';
      }),
    );
    expect(error).toBeInstanceOf(UnrecordedExecutionError);
    const { code, outcome, event, startId } = error as UnrecordedExecutionError;
    expect(code).toBe('LEDGER_FAILED');
    expect(outcome).toEqual({ kind: 'returned', value: 'result' });
    // Another program finds the start, and records what was done.
    const second = await openLive(place);
    expect((await second.budget(grantId)).started).toMatchObject([{ eventId: startId }]);
    expect((await second.append({ event })).verdict).toBe('ok');
    expect(await second.budget(grantId)).toMatchObject({ started: [], executions: 1 });
    expect(await place.verdict()).toBe('ok');
  });

  it('takes no use that no event may have, and none when it is recorded', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 10, usd: 100 } });
    const problems: string[] = [];
    const run: GuardedFunction<UsageMeter> = ({ meter }) => {
      meter.add('usd', '-1');
      meter.add('Not a unit', 1);
      meter.add('usd', true as never);
      meter.add({ eur: -1 });
      meter.add('usd', '9'.repeat(39));
      meter.add('usd', '9'.repeat(39));
      for (let n = 0; n < 61; n += 1) meter.add(`u${n}`, { t: 'rat', n: '1', d: '3' });
      meter.add('one.more', 1);
      meter.add('calls', 3);
      return meter as UsageMeter;
    };
    const options = {
      onMeterProblem: (problem: string) => problems.push(problem),
      onViolation: () => undefined,
    };
    const kept = await ledger.guard('fs.read', {}, run, options);
    await new Promise(setImmediate);
    expect(problems).toHaveLength(6);
    expect(() => kept.add('usd', 1)).toThrow(TypeError);
    const used = usedBy(place.events().at(-1));
    expect(Object.keys(used)).toHaveLength(64);
    expect(used).toMatchObject({ calls: '3', usd: '9'.repeat(39), u0: '1/3' });
  });

  it('never loses a result to what cannot be metered: what was reserved is charged', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, { meterCaps: { calls: 10, usd: 10, 'tokens.input': 100 } });
    const problems: string[] = [];
    const reserve = { usd: '0.5', 'tokens.input': 10 };
    const options = { reserve, onMeterProblem: (problem: string) => problems.push(problem) };
    const value = await ledger.guard(
      'fs.read',
      {},
      ({ meter }) => {
        // More decimals than a price has, and the shortest that name the number.
        meter.add('usd', 0.1 * 0.07);
        meter.add('tokens.input', NaN);
        return 'paid';
      },
      options,
    );
    await new Promise(setImmediate);
    expect(value).toBe('paid');
    expect(problems).toHaveLength(1);
    const event = place.events().at(-1);
    expect(event).toMatchObject({ outcome: 'success', meter_basis_by_unit: { 'tokens.input': 'estimated' } });
    expect(usedBy(event)).toMatchObject({ usd: '0.007000000000000001', 'tokens.input': '10' });
    expect(await leftOf(ledger, grantId, 'tokens.input')).toBe('90');
    expect(await place.verdict()).toBe('ok');
  });

  it('charges what it does not meter, unless that is to be released', async () => {
    const ledger = await openLive(memoryPlace());
    const grantId = await grant(ledger, { meterCaps: { calls: 100, usd: '0.05' } });
    const silent = (unmetered?: 'release'): Promise<unknown> =>
      ledger.guard('fs.read', {}, () => 1, { reserve: { usd: '0.01' }, unmetered });
    for (let n = 0; n < 5; n += 1) await silent();
    await expect(silent()).rejects.toMatchObject({ code: 'RESERVATION_OVER_CAP' });
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0');
    const other = await grant(ledger, { meterCaps: { calls: 100, usd: '0.01' }, principalId: 'agent:a2' });
    const options = { reserve: { usd: '0.01' }, unmetered: 'release', principalId: 'agent:a2' } as const;
    for (let n = 0; n < 3; n += 1) await ledger.guard('fs.read', {}, () => n, options);
    expect(await leftOf(ledger, other, 'usd')).toBe('0.01');
  });

  it('dates records in the order of the ledger, however many run at once', async () => {
    const place = memoryPlace();
    let ms = Date.now();
    // Each look at the clock is later than the one before.
    const now = (): string => new Date((ms += 10)).toISOString();
    const ledger = await openLive(place, { now, ticks: ticker() });
    await grant(ledger, { meterCaps: { calls: 20 } });
    const findings: string[] = [];
    const onRecorded = (recorded: Appended): void =>
      void findings.push(...recorded.findings.map(({ code }) => code));
    const call = (n: number): Promise<number> => ledger.guard('fs.read', { n }, () => n, { onRecorded });
    const run = async (n: number): Promise<void> => {
      for (let turn = 0; turn < 3; turn += 1) await call(10 * n + turn);
    };
    await Promise.all([1, 2, 3, 4].map(run));
    const dates = place.events().map((event) => (event as unknown as { occurred_at: string }).occurred_at);
    expect(dates).toEqual(dates.toSorted());
    expect(findings).toEqual([]);
    expect(await place.verdict()).toBe('ok');
  });

  it('tells of a bound that its execution breaks, and keeps the result', async () => {
    const ledger = await openLive(memoryPlace());
    await grant(ledger, { meterCaps: { calls: 10, usd: 1 } });
    const run: GuardedFunction<string> = ({ meter }) => {
      meter.add('usd', '0.02');
      return 'kept';
    };
    const told: string[][] = [];
    const listen = (findings: readonly Finding[]): void => void told.push(findings.map(({ code }) => code));
    const reserve = { usd: '0.01' };
    expect(await ledger.guard('fs.read', {}, run, { reserve, onViolation: listen })).toBe('kept');
    await new Promise(setImmediate);
    expect(told).toEqual([['RESERVATION_EXCEEDED']]);
    const error = await ledger.guard('fs.read', {}, run, { reserve, onViolation: 'throw' }).catch(String);
    expect(error).toMatch(/^ViolationError/);
    await expect(ledger.guard('fs.read', {}, run, { reserve, onViolation: 'throw' })).rejects.toMatchObject({
      code: 'RESERVATION_EXCEEDED',
      outcome: { kind: 'returned', value: 'kept' },
    });
    await expect(() => ledger.guard('fs.read', {}, run, { onViolation: 'never' as never })).rejects.toThrow(
      TypeError,
    );
  });

  it('takes parameters as frameworks type them, and an undefined member for an absent one', async () => {
    interface Params {
      readonly path: string;
      readonly limit?: number | undefined;
      readonly tags?: readonly string[];
    }
    const place = memoryPlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 100 } });
    const run = (): number => 1;
    const params: Params = { path: '/a', limit: undefined, tags: ['x'] };
    const handed: unknown = JSON.parse('{"path":"/a","tags":["x"]}');
    const input: Record<string, unknown> = { tags: ['x'], path: '/a', deep: undefined };
    const digests = async (...all: unknown[]): Promise<Set<unknown>> => {
      for (const each of all) await ledger.guard('fs.read', each, run, { intent: { of: params } });
      return new Set(
        place
          .events()
          .flatMap(({ authorization }) => authorization?.action ?? [])
          .slice(-all.length)
          .map((action) => JSON.stringify(action.tool_params_digest)),
      );
    };
    expect((await digests(params, handed, input)).size).toBe(1);
    const own = JSON.parse('{"__proto__":{"a":1},"b":[{"c":2}]}') as Record<string, unknown>;
    const more = Object.defineProperty({ b: [{ c: 2, d: undefined }] }, '__proto__', {
      value: { a: 1, e: undefined },
      enumerable: true,
    });
    expect((await digests(own, more)).size).toBe(1);
    const cycle: Record<string, unknown> = { a: undefined };
    cycle['self'] = [cycle, cycle];
    let hasRead = false;
    const getter = {
      a: undefined,
      get b() {
        hasRead = true;
        return 1;
      },
    };
    class Own {
      a = undefined;
    }
    const list = Object.assign([1], { extra: undefined });
    for (const wrong of [undefined, [undefined], cycle, getter, new Own(), list, { a: () => 1 }, { a: 1n }])
      await expect(ledger.guard('fs.read', wrong, run)).rejects.toThrow(TypeError);
    expect(hasRead).toBe(false);
    expect(await place.verdict()).toBe('ok');
  });

  it('says of calls and time that it measured them, whatever the basis of the rest', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 10, usd: 1 } });
    const run: GuardedFunction<void> = ({ meter }) => meter.add('usd', '0.1');
    await ledger.guard('fs.read', {}, run, { meterBasis: 'estimated' });
    expect(place.events().at(-1)).toMatchObject({
      meter_basis: 'estimated',
      meter_basis_by_unit: { calls: 'measured', 'time.ms': 'measured' },
    });
  });

  it('waits for what runs when it is closed, and aborts and settles it when told to', async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 10 } });
    const [running, ending] = [gate(), gate()];
    const guarded = ledger.guard('fs.read', { n: 1 }, async () => {
      running.open();
      await ending.opened;
      return 'done';
    });
    await running.opened;
    const closed = ledger.close();
    expect(await errorOf(ledger.guard('fs.read', { n: 2 }, () => 1))).toBeInstanceOf(TypeError);
    ending.open();
    expect(await guarded).toBe('done');
    await closed;
    expect(place.events().at(-1)).toMatchObject({ outcome: 'success' });

    const second = await openLive(place);
    const [deaf, mindful] = [gate(), gate()];
    const never = second.guard('fs.read', { n: 3 }, () => {
      deaf.open();
      return new Promise<never>(() => undefined);
    });
    const told = second.guard('fs.read', { n: 4 }, async ({ signal }) => {
      mindful.open();
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
    });
    await Promise.all([deaf.opened, mindful.opened]);
    const ended = Promise.all([errorOf(never), errorOf(told)]);
    await second.close({ signal: AbortSignal.abort(new Error('shutdown')), graceMs: 10 });
    expect(await ended).toMatchObject([{ message: 'shutdown' }, { message: 'stopped' }]);
    expect(place.events().slice(-2)).toMatchObject([{ outcome: 'unknown' }, { outcome: 'unknown' }]);
    expect(await place.verdict()).toBe('ok');
  });

  it('takes the grant, the principal and the intent that it is told', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 1 } });
    const other = await grant(ledger, { principalId: 'agent:a2', meterCaps: { calls: 1 } });
    const options = { principalId: 'agent:a2', grantId: other, intent: 'tidy up' };
    const grantId = await ledger.guard('fs.read', {}, ({ decision }) => decision.grantId, options);
    expect(grantId).toBe(other);
    expect(place.events().at(-1)).toMatchObject({
      principal_id: 'agent:a2',
      intents: { intent_digest: digestIntent('tidy up') },
    });
  });

  it('is not called on a ledger that does not verify', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place, { strict: false });
    await grant(ledger, { meterCaps: { calls: 1 } });
    const permission = {
      authorizationId: `sha-256:${OUTPUT.b64}`,
      principalId: AGENT,
      toolName: 'fs.read',
      intentDigest: OUTPUT,
    };
    // An execution of what was never authorized.
    const now = new Date().toISOString();
    const nothing = { startedAt: now, endedAt: now, meterUsed: [], outcome: 'success' } as const;
    await ledger.append({ event: draftExecution(permission as never, nothing) });
    const guarded = ledger.guard('fs.read', {}, () => expect.fail('it was run'));
    expect(await codeOf(guarded)).toBe('LEDGER_INVALID');
  });

  it('refuses what is not of its form, by its name', async () => {
    const ledger = await openLive(memoryPlace());
    const run = (): never => expect.fail('it was run');
    await expect(ledger.guard('fs.read', {}, run, { reserved: {} } as never)).rejects.toThrow(/reserved/);
    await expect(ledger.guard('fs.read', {}, run, { signal: {} } as never)).rejects.toThrow(/signal/);
    await expect(ledger.guard('fs.read', {}, 'run' as never)).rejects.toThrow(TypeError);
    await expect(ledger.guard(1 as never, {}, run)).rejects.toThrow(/toolName/);
    await expect(ledger.guard('fs.read', undefined as never, run)).rejects.toThrow(TypeError);
    await expect(ledger.guard('fs.read', {}, run, { reserve: { usd: -1 } })).rejects.toThrow(RangeError);
    const both = { intent: 1, intentDigest: OUTPUT };
    await expect(ledger.guard('fs.read', {}, run, both)).rejects.toThrow(TypeError);
    expect(ledger.size).toBe(1);
  });
});
