/** Amounts computed again from their tokens: equal, different, and not to be known. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkPrices, formatDigest, verifyLedger, type Prices, type Report } from '../../src/api/index.js';
import { costOf } from '../../src/gate/price/cost.js';
import { ALL_PARTS, INPUT_PARTS, OUTPUT_PARTS } from '../../src/gate/price/units.js';
import { countUsage, usageOf } from '../../src/gate/price/usage.js';
import type { ModelCall, ModelUsage } from '../../src/log/agent/model-usage.js';
import { meters, type AmountsByUnit } from '../../src/base/value/meter.js';
import { AGENT, filePlace, grant, openLive } from '../agent/support.js';
import { defined } from '../../src/base/defined.js';
import { digestFromBase64url, fromDigestText } from '../../src/base/value/digest.js';
import { digestIntent } from '../../src/log/policy/draft-grant.js';
import { imported, LITELLM, model, pricesOf } from './samples.js';

const PRICES = imported(LITELLM);
const USED: AmountsByUnit = { usd: '0.0045', 'tokens.input': 1_000, 'tokens.output': 100 };

/** A ledger of executions that name a grant. */
interface Priced {
  readonly used?: AmountsByUnit;
  readonly [member: string]: unknown;
}

async function ledgerOf(...executions: readonly Priced[]): Promise<string> {
  const place = filePlace();
  const ledger = await openLive(place);
  const grantId = await grant(ledger, {
    allowedTools: ['*'],
    meterCaps: { usd: '100' },
    intent: 'test',
    occurredAt: '2025-01-01T00:00:00Z',
  });
  for (const { used = USED, ...more } of executions)
    await ledger.append({
      event: defined({
        event_type: 'execution',
        occurred_at: '2026-03-01T12:00:00Z',
        principal_id: AGENT,
        intents: { intent_digest: digestIntent('test') },
        auth_event_id: digestFromBase64url(fromDigestText(grantId)),
        tool_name: 'llm.chat',
        meter_used: meters(used),
        outcome: 'success',
        model_id: 'm-1',
        provider: 'acme',
        pricing_snapshot_digest: PRICES.digest,
        ...more,
      }),
    });
  return place.path;
}

async function check(path: string, ...files: readonly Prices[]): Promise<Report> {
  return verifyLedger(path, { checks: [checkPrices(files)] });
}

const gapOf = ({ not_checked: gaps }: Report): string | undefined =>
  gaps.find(({ code }) => code === 'PRICES')?.message;

describe('amounts of a ledger', () => {
  it('are equal where a guard priced the call, parts of the input and all', async () => {
    const place = filePlace();
    const ledger = await openLive(place, { prices: PRICES });
    await grant(ledger, { meterCaps: { usd: '1', 'tokens.input': 10_000 } });
    const call: ModelCall = {
      model: 'm-1',
      input: 1_000,
      output: 100,
      cacheRead: 200,
      cacheWrite: 60,
      cacheWrite1h: 40,
    };
    await ledger.guard('fs.read', null, ({ meter }) => meter.addUsage(call), {
      reserve: { usd: '0.5', 'tokens.input': 5_000 },
    });
    const report = await check(place.path, PRICES);
    expect(report.prices).toEqual({ executions: 1, equal: 1, different: 0, undecided: 0 });
    expect(gapOf(report)).toBeUndefined();
  });

  it('differ by an exact amount', async () => {
    const path = await ledgerOf(
      { used: { ...USED, usd: '0.0045000000000000000001' } },
      { used: { ...USED, usd: 0 } },
      {},
    );
    const report = await check(path, PRICES);
    expect([report.verdict, report.prices]).toEqual([
      'ok',
      { executions: 3, equal: 1, different: 2, undecided: 0 },
    ]);
    const found = report.findings.filter(({ code }) => code === 'PRICE_MISMATCH');
    const words = `0.0045 usd, the price of m-1 of acme in ${formatDigest(PRICES.digest)}`;
    expect(
      found.map(({ expected, actual, severity, class: of }) => [expected, actual, severity, of]),
    ).toEqual([
      [words, '0.0045000000000000000001, 0.0000000000000000000001 more', 'warning', 'none'],
      [words, '0, 0.0045 less', 'warning', 'none'],
    ]);
    expect(found[0]?.at.pointer).toBe('/event/meter_used/2/amount');
  });

  it('are held each against the file that it names, of several', async () => {
    const other = pricesOf(model({ model: 'm-9' }));
    const path = await ledgerOf(
      {},
      { model_id: 'm-9', pricing_snapshot_digest: other.digest },
      { model_id: 'm-9' },
    );
    expect((await check(path, PRICES, other)).prices).toEqual({
      executions: 3,
      equal: 2,
      different: 0,
      undecided: 1,
    });
    const one = await check(path, other);
    expect(one.prices).toMatchObject({ equal: 1, undecided: 2 });
    expect(gapOf(one)).toContain(`2 name a price file that was not given (${formatDigest(PRICES.digest)})`);
  });

  it.each<[string, Priced]>([
    ['name no price file', { pricing_snapshot_digest: undefined }],
    ['name no model that their price file has once', { model_id: 'm-1x' }],
    ['name no model that their price file has once', { model_id: undefined }],
    ['name no model that their price file has once', { provider: 'other' }],
    ['used what their model has no price of', { used: { ...USED, images: 1 } }],
    ['do not state all input and output tokens', { used: { usd: '0.0045', 'tokens.input': 1_000 } }],
    ['do not state all input and output tokens', { used: { ...USED, 'tokens.output': '0.5' } }],
    ['do not state all input and output tokens', { used: { ...USED, 'tokens.output': 1_000_000_001 } }],
    ['do not state all input and output tokens', { used: { ...USED, 'tokens.input.cache_read': 1_001 } }],
    [
      'state less than their estimated tokens cost',
      { used: { ...USED, usd: '0.004' }, meter_basis: 'estimated' },
    ],
  ])('are not known where they %s', async (words, execution) => {
    const report = await check(await ledgerOf(execution), PRICES);
    expect(report.prices).toEqual({ executions: 1, equal: 0, different: 0, undecided: 1 });
    expect(gapOf(report)).toContain(words);
  });

  it('may have the price of when a call began, ended or was recorded, and none before the first', async () => {
    const at = (from: string | undefined, usd: string) => ({
      ...(from === undefined ? {} : { from }),
      prices: [
        { unit: 'tokens.input' as const, usd },
        { unit: 'tokens.output' as const, usd: '0' },
      ],
    });
    const changing = pricesOf(
      model({ periods: [at('2026-03-01T11:00:00Z', '0.001'), at('2026-03-01T12:00:00Z', '0.002')] }),
    );
    const named = { pricing_snapshot_digest: changing.digest };
    const path = await ledgerOf(
      { ...named, used: { ...USED, usd: '1' }, started_at: '2026-03-01T11:59:59Z' },
      { ...named, used: { ...USED, usd: '2' }, started_at: '2026-03-01T11:59:59Z' },
      { ...named, used: { ...USED, usd: '1' } },
      { ...named, occurred_at: '2026-03-01T10:00:00Z' },
    );
    const report = await check(path, changing);
    expect(report.prices).toEqual({ executions: 4, equal: 2, different: 1, undecided: 1 });
    expect(gapOf(report)).toContain('from before the prices of their model');
  });

  it('without a model, a price file or usd are not looked at', async () => {
    const path = await ledgerOf(
      { model_id: undefined, pricing_snapshot_digest: undefined },
      { used: { 'tokens.input': 1 } },
    );
    expect((await check(path, PRICES)).prices?.executions).toBe(0);
  });
});

describe('the usage of meters', () => {
  const count = fc.option(fc.integer({ min: 0, max: 1_000 }), { nil: undefined });
  const usages = fc
    .record(Object.fromEntries(ALL_PARTS.map(({ member }) => [member, count])))
    .chain((parts) => {
      const sum = (of: typeof INPUT_PARTS): number =>
        of.reduce((all, { member }) => all + (parts[member] ?? 0), 0);
      return fc
        .record({ input: fc.nat(1_000), output: fc.nat(1_000) })
        .map(({ input, output }): ModelUsage => ({
          ...parts,
          input: input + sum(INPUT_PARTS),
          output: output + sum(OUTPUT_PARTS),
        }));
    });

  it('costs what the usage costs that was counted', () => {
    const prices = ['tokens.input', 'tokens.output', ...ALL_PARTS.map(({ unit }) => unit)].map(
      (unit, index) => ({ unit, usd: `0.${index + 1}`, tiers: [{ above: 3_000, usd: `${index + 1}` }] }),
    );
    const price = {
      provider: 'p',
      model: 'm',
      found: 'name',
      from: undefined,
      prices: prices as never,
    } as const;
    fc.assert(
      fc.property(usages, (usage) => {
        const again = usageOf(countUsage(usage));
        expect(again).toBeDefined();
        expect(costOf(price, again!)).toEqual(costOf(price, usage));
      }),
    );
  });
});
