/** Guarded calls of models: what they used is metered and priced, and what cannot be priced is never free. */

import { describe, expect, it } from 'vitest';
import { readUsage } from '../../src/api/index.js';
import type { GuardContext, GuardOptions } from '../../src/log/agent/guard.js';
import type { ModelCall } from '../../src/log/agent/model-usage.js';
import { type Event, grant, leftOf, memoryPlace, openLive, usedBy } from '../agent/support.js';
import { errorOf } from '../writer/support.js';
import { imported, LITELLM, pricesOf } from './samples.js';

interface PricedEvent extends Event {
  readonly pricing_snapshot_digest?: unknown;
  readonly meter_basis_by_unit?: Readonly<Record<string, string>>;
}

const PRICES = imported(LITELLM);
const CALL = { model: 'm-1', input: 1_000, output: 100, cacheRead: 200, cacheWrite: 60, cacheWrite1h: 40 };
const RESERVE = { usd: '0.50', 'tokens.input': 5_000 };

/** Guards one call, and says how it ended, what was recorded and what is left. */
async function guardCall(run: (context: GuardContext) => unknown, options: GuardOptions = {}) {
  const place = memoryPlace();
  const ledger = await openLive(place, { prices: PRICES });
  const grantId = await grant(ledger, { meterCaps: { usd: '1', 'tokens.input': 10_000 } });
  const problems: string[] = [];
  const onMeterProblem = (problem: string): void => void problems.push(problem);
  const guarded = ledger.guard('fs.read', null, run, { reserve: RESERVE, onMeterProblem, ...options });
  const error = await guarded.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  const event = place.events().at(-1) as PricedEvent;
  expect(event.event_type).toBe('execution');
  expect(await place.verdict()).toBe('ok');
  return { error, event, problems, left: await leftOf(ledger, grantId, 'usd') };
}

describe('a call of a model', () => {
  it('is metered in tokens as reported and in usd as estimated, by a price file that is named', async () => {
    const { event, problems, left } = await guardCall(({ meter }) => meter.addUsage(CALL));
    expect(usedBy(event)).toMatchObject({
      usd: '0.004125',
      'tokens.input': '1000',
      'tokens.output': '100',
      'tokens.input.cache_read': '200',
      'tokens.input.cache_creation': '100',
      'tokens.input.cache_creation.1h': '40',
      calls: '1',
    });
    expect(event).toMatchObject({
      model_id: 'm-1',
      provider: 'acme',
      outcome: 'success',
      meter_basis: 'measured',
    });
    expect(event.pricing_snapshot_digest).toEqual(PRICES.digest);
    expect(event.meter_basis_by_unit).toEqual({
      usd: 'estimated',
      'tokens.input': 'reported',
      'tokens.output': 'reported',
      'tokens.input.cache_read': 'reported',
      'tokens.input.cache_creation': 'reported',
      'tokens.input.cache_creation.1h': 'reported',
    });
    expect(problems).toEqual([]);
    expect(left).toBe('0.995875');
  });

  it('is metered from what the provider said, several times exactly', async () => {
    const { event } = await guardCall(({ meter }) => {
      const usage = readUsage('openai-chat', { prompt_tokens: 1, completion_tokens: 1 });
      for (let n = 0; n < 3; n += 1) meter.addUsage({ model: 'm-1', provider: 'cloud', ...usage! });
    });
    expect(usedBy(event)).toMatchObject({ usd: '0.0000594', 'tokens.input': '3', 'tokens.output': '3' });
    expect(event.provider).toBe('cloud');
  });

  it('leaves the details that are given, and the basis of what else is metered', async () => {
    const { event } = await guardCall(
      ({ meter, setDetails }) => {
        meter.addUsage(CALL);
        meter.add('files', 2);
        setDetails({ modelId: 'm-1-2026' });
      },
      { meterBasis: 'billed' },
    );
    expect(event).toMatchObject({ model_id: 'm-1-2026', provider: 'acme', meter_basis: 'billed' });
    expect(event.meter_basis_by_unit).toMatchObject({ usd: 'estimated', calls: 'measured' });
    expect(event.meter_basis_by_unit).not.toHaveProperty('files');
  });

  it("may be priced by the guard's own prices", async () => {
    const cheap = pricesOf({
      provider: 'acme',
      model: 'm-1',
      periods: [
        {
          prices: [
            { unit: 'tokens.input', usd: '0.000001' },
            { unit: 'tokens.output', usd: '0' },
          ],
        },
      ],
    });
    const { event } = await guardCall(({ meter }) => meter.addUsage({ ...CALL, cacheWrite1h: 0 }), {
      prices: cheap,
    });
    expect(usedBy(event)).toMatchObject({ usd: '0.001' });
    expect(event.pricing_snapshot_digest).toEqual(cheap.digest);
  });
});

describe('a call that cannot be priced', () => {
  const cases: readonly (readonly [code: string, call: object])[] = [
    ['MODEL_UNKNOWN', { ...CALL, model: 'm-9' }],
    ['MODEL_UNKNOWN', { ...CALL, provider: 'nobody' }],
    ['PRICE_UNKNOWN', { ...CALL, images: 1 }],
  ];

  it.each(cases)('as %s is charged as reserved, and fails the call: %j', async (code, call) => {
    const { error, event, problems, left } = await guardCall(({ meter }) =>
      meter.addUsage(call as ModelCall),
    );
    expect(error).toMatchObject({ code });
    expect(event).toMatchObject({
      outcome: 'failure',
      error_code: code,
      model_id: (call as ModelCall).model,
    });
    // The tokens are known.
    expect(usedBy(event)).toMatchObject({ usd: '0.5', 'tokens.input': '1000' });
    expect(event.meter_basis_by_unit).toMatchObject({ usd: 'estimated', 'tokens.input': 'reported' });
    expect(event).not.toHaveProperty('pricing_snapshot_digest');
    expect([problems.length, left]).toEqual([1, '0.5']);
  });

  it.each(cases)('as %s is charged as reserved where the error is caught, too: %j', async (_, call) => {
    const { error, event, left } = await guardCall(({ meter }) => {
      expect(() => meter.addUsage(call as ModelCall)).toThrow();
      meter.add('usd', '0.01');
    });
    expect(error).toBeUndefined();
    expect(event.outcome).toBe('success');
    expect([usedBy(event)['usd'], left]).toEqual(['0.5', '0.5']);
  });

  it.each<[object, new () => Error]>([
    [{ ...CALL, input: NaN }, RangeError],
    [{ ...CALL, input: -5 }, RangeError],
    [{ ...CALL, cacheRead: 2_000 }, RangeError],
    [{ model: 'm-1' }, TypeError],
    [{ ...CALL, model: '' }, RangeError],
    [{ ...CALL, cost: 0 }, TypeError],
  ])('since it is malformed is charged as reserved in all units: %j', async (call, type) => {
    const { error, event } = await guardCall(({ meter }) => meter.addUsage(call as ModelCall));
    expect(error).toBeInstanceOf(type);
    expect(usedBy(event)).toMatchObject({ usd: '0.5', 'tokens.input': '5000' });
  });

  it('since its usage cannot be read is charged as reserved', async () => {
    const { error, event, left } = await guardCall(({ meter }) => {
      meter.addUsage({ model: 'm-1', ...readUsage('openai-chat', { prompt_tokens: 1 })! });
    });
    expect(error).toMatchObject({ code: 'MODEL_USAGE_INVALID' });
    expect(event).toMatchObject({ outcome: 'failure', error_code: 'MODEL_USAGE_INVALID' });
    expect(usedBy(event)).toMatchObject({ usd: '0.5', 'tokens.input': '5000' });
    expect(left).toBe('0.5');
    // A stream that was cut has no usage.
    const cut = await guardCall(({ meter }) => {
      meter.addUsage({ model: 'm-1', ...readUsage('openai-chat', null)! });
    });
    expect([cut.error, cut.left]).toEqual([expect.any(TypeError), '0.5']);
  });

  it('for want of prices is charged as reserved', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, { meterCaps: { usd: '1' } });
    const guarded = ledger.guard('fs.read', null, ({ meter }) => meter.addUsage(CALL), {
      reserve: { usd: '0.50' },
    });
    expect(await errorOf(guarded)).toBeInstanceOf(TypeError);
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0.5');
  });

  it('after its end is refused', async () => {
    let kept: GuardContext['meter'] | undefined;
    await guardCall(({ meter }) => void (kept = meter));
    expect(() => kept?.addUsage(CALL)).toThrow(TypeError);
  });
});

it('the digest of prices can be given with an execution, and must be one', async () => {
  const place = memoryPlace();
  const ledger = await openLive(place);
  const grantId = await grant(ledger, { meterCaps: { usd: '1' } });
  const done = {
    toolName: 'fs.read',
    startedAt: '2100-03-01T00:00:00Z',
    endedAt: '2100-03-01T00:00:00Z',
    meterUsed: [],
    outcome: 'success',
  } as const;
  await ledger.record(grantId, { ...done, pricingSnapshotDigest: PRICES.digest });
  expect((place.events().at(-1) as PricedEvent).pricing_snapshot_digest).toEqual(PRICES.digest);
  const wrong = { ...done, pricingSnapshotDigest: { alg: 'sha-256', b64: 'short' } };
  expect(await errorOf(ledger.record(grantId, wrong))).toBeInstanceOf(TypeError);
});
