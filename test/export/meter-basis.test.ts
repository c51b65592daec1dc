/** Where an amount comes from, unit by unit, wherever amounts are shown; and what counts as used though nobody stated it. */

import { describe, expect, it } from 'vitest';
import {
  exportCsv,
  exportFocus,
  exportOcsf,
  exportOtlp,
  reportActivity,
  verifyLedger,
  type AnyEvent,
} from '../../src/api/index.js';
import { explainEvent } from '../../src/log/read/event-history.js';
import { readSource } from '../../src/hosts/shared/reconcile-sources.js';
import { reconcileLedger } from '../../src/hosts/shared/reconcile.js';
import { renderEventHistory } from '../../src/out/text/event-history.js';
import { plainPaint } from '../../src/out/text/guide.js';
import { bytesSource } from '../bytes-source.js';
import { action, execution, grant, int, unsigned, usd } from '../docs/grant-kit.js';
import { DIGEST, event } from '../docs/ledger-kit.js';
import { plainFile, plainHost } from '../hosts/plain-host.js';
import { openOnPage } from '../page/support.js';
import { csvObjects, MemorySink, pick } from '../table/kit.js';

const root = grant({
  allowed_tools: ['fs.*'],
  meter_caps: [...usd(10), { unit: 'tokens.input', amount: int(9000) }],
});
const used = [
  { unit: 'usd', amount: int(2) },
  { unit: 'tokens.input', amount: int(80) },
];
const guessed = execution(root, 0, {
  meter_used: used,
  meter_basis: 'reported',
  meter_basis_by_unit: { usd: 'estimated' },
  source: { system: 'other', id: 'call-1' },
});
const ledger = unsigned(root, guessed);

async function csv(bytes: Buffer) {
  const sinks = { events: new MemorySink(), meters: new MemorySink(), verification: new MemorySink() };
  await exportCsv(bytes, sinks);
  return { events: csvObjects(sinks.events.text), meters: csvObjects(sinks.meters.text) };
}

async function focus(bytes: Buffer) {
  const sinks = { costs: new MemorySink(), verification: new MemorySink() };
  await exportFocus(bytes, sinks);
  return csvObjects(sinks.costs.text);
}

async function lastSpan(bytes: Buffer): Promise<Record<string, unknown>> {
  interface Value {
    readonly stringValue?: string;
    readonly boolValue?: boolean;
  }
  interface Spans {
    readonly spans: { readonly attributes: { readonly key: string; readonly value: Value }[] }[];
  }
  const sink = new MemorySink();
  await exportOtlp(bytes, sink);
  const { resourceSpans } = JSON.parse(sink.text) as { resourceSpans: [{ scopeSpans: [Spans] }] };
  const attributes = resourceSpans[0].scopeSpans[0].spans.at(-1)?.attributes ?? [];
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.boolValue] as const),
  );
}

describe('the basis of a unit that has one of its own', () => {
  it('stands in the rows of the tables', async () => {
    const { events, meters } = await csv(ledger);
    expect(pick(events.at(-1), 'meter_basis', 'meter_basis_by_unit')).toEqual(['reported', 'usd=estimated']);
    expect(meters.slice(-2).map((row) => pick(row, 'unit', 'basis', 'estimated'))).toEqual([
      ['usd', 'estimated', 'true'],
      ['tokens.input', 'reported', 'false'],
    ]);
  });

  it('stands in cost rows', async () => {
    const rows = await focus(ledger);
    expect(rows.map((row) => pick(row, 'x_MeterUnit', 'x_MeterBasis', 'x_Estimated'))).toEqual([
      ['usd', 'estimated', 'true'],
      ['tokens.input', 'reported', 'false'],
    ]);
  });

  it('stands in spans, which are estimated where any amount is', async () => {
    expect(await lastSpan(ledger)).toMatchObject({
      'northroot.meter_basis': 'reported',
      'northroot.meter_basis.usd': 'estimated',
      'northroot.estimated': true,
    });
    const measured = { usd: 'measured' };
    const half = execution(root, 0, { meter_used: used, meter_basis_by_unit: measured });
    expect(await lastSpan(unsigned(root, half))).not.toHaveProperty('northroot.estimated');
    const corrected = execution(root, 0, {
      meter_used: used.slice(0, 1),
      meter_basis: 'estimated',
      meter_basis_by_unit: measured,
    });
    expect(await lastSpan(unsigned(root, corrected))).toMatchObject({ 'northroot.estimated': false });
  });

  it('stands in OCSF events', async () => {
    interface Enrichments {
      readonly enrichments: { readonly type: string; readonly data: unknown }[];
    }
    const sink = new MemorySink();
    await exportOcsf(ledger, sink);
    const [, , last = '{}'] = sink.text.split('\n');
    const { enrichments } = JSON.parse(last) as Enrichments;
    const meters = enrichments.find(({ type }) => type === 'meters')?.data as object[];
    expect(meters).toMatchObject([
      { unit: 'usd', basis: 'estimated', estimated: true },
      { unit: 'tokens.input', basis: 'reported', estimated: false },
    ]);
  });

  it('stands in the history of its event', async () => {
    const open = () => Promise.resolve(bytesSource(ledger, '-'));
    const history = await explainEvent(open, { eventId: `sha-256:${guessed.event_id.b64}` });
    expect(renderEventHistory(history, plainPaint)).toMatch(/^ +basis +reported, usd estimated$/m);
  });

  it('stands among what the page says of it', async () => {
    const { engine } = await openOnPage(ledger);
    const why = await engine.why({ ordinal: 2 });
    expect(why?.facts).toContainEqual(['Basis', 'reported, usd estimated']);
  });

  it('keeps a guess from being contradicted, and only the guess', async () => {
    const other = { ...plainHost, name: 'other' };
    const call = { id: 'call-1', ms: Date.parse(guessed.occurred_at), allow: true, tool: 'fs.read' };
    const meters = async (bases: object) => {
      const basis = { ...bases, meter_used: usd(2), source: { system: 'other', id: 'call-1' } };
      const run = execution(root, 0, basis);
      const source = readSource(other, [plainFile({ ...call, ran: 'success', usd: 3 })]);
      const { findings } = await reconcileLedger(unsigned(root, run), [source]);
      return findings.map(({ code }) => code).filter((code) => code === 'METERS_DIFFER');
    };
    expect(await meters({ meter_basis: 'reported' })).toHaveLength(1);
    expect(await meters({ meter_basis: 'reported', meter_basis_by_unit: { usd: 'estimated' } })).toEqual([]);
    expect(await meters({ meter_basis: 'estimated', meter_basis_by_unit: { usd: 'billed' } })).toHaveLength(
      1,
    );
  });
});

describe('what counts as used and is not stated', () => {
  const reserved = action(root, 3);
  const silent = execution(reserved, 0);
  const start = (members: object = {}): AnyEvent =>
    event('x.northroot.start', {
      intents: { intent_digest: DIGEST },
      auth_event_id: reserved.event_id,
      tool_name: 'fs.read',
      tool_params_digest: DIGEST,
      started_at: '2026-01-02T00:00:00Z',
      meter_known: [],
      recorder: 'a-recorder-of-its-own',
      ...members,
    });
  const first = start();
  const again = start({ recorder: 'another-recorder-of-its', prev_event_id: first.event_id });

  it.each([
    ['an execution that says nothing', [silent], '3'],
    ['the first try of what was taken over', [first, again, execution(reserved, 2)], '5'],
    [
      'what was begun and then released',
      [
        first,
        execution(reserved, 0, {
          outcome: 'failure',
          error_code: 'ABANDONED',
        }),
      ],
      '3',
    ],
    ['a record that stands there twice, once', [silent, silent], '3'],
  ] as const)("is a row of its own, so that all sums are the account's: %s", async (_, events, total) => {
    const bytes = unsigned(root, reserved, ...events);
    const { grants } = await verifyLedger(bytes);
    expect(grants[0]?.decimals?.['usd']?.used).toBe(total);
    const { meters } = await csv(bytes);
    const sum = (rows: readonly Record<string, string>[], amount: string): string =>
      String(rows.reduce((all, row) => all + Number(row[amount]), 0));
    expect(
      sum(
        meters.filter((row) => row['counted'] === 'true'),
        'amount',
      ),
    ).toBe(total);
    const unstated = meters.filter(({ role }) => role === 'unstated');
    expect(unstated.map((row) => pick(row, 'unit', 'amount', 'basis', 'estimated', 'counted'))).toEqual([
      ['usd', '3', 'estimated', 'true', 'true'],
    ]);
    const costs = await focus(bytes);
    expect(sum(costs, 'BilledCost')).toBe(total);
    const { totals } = await reportActivity(bytes);
    expect(totals.meters.find(({ unit }) => unit === 'usd')?.spent).toBe(total);
  });
});
