/** Whatever ledger and sources say: nothing throws, every call has one state, sums add up, and the order of the sources is of no matter. */

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { type ReconcileCall, type ReconcileReport } from '../../src/api/index.js';
import { eventsOfClaims } from '../../src/hosts/shared/claims.js';
import type { Host, HostFile } from '../../src/hosts/shared/host.js';
import { planImport } from '../../src/hosts/shared/import.js';
import { readSource, type ReconcileSource } from '../../src/hosts/shared/reconcile-sources.js';
import { reconcileLedger } from '../../src/hosts/shared/reconcile.js';
import { claudeCode } from '../../src/hosts/claude-code/index.js';
import { litellm } from '../../src/hosts/litellm/index.js';
import { otlp } from '../../src/hosts/otlp/index.js';
import { formatQuantity } from '../../src/base/value/quantity.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { plainFile, plainHost } from './plain-host.js';
import { sample } from './samples.js';

const T = 1_767_225_600_000;

const line = fc.record(
  {
    id: fc.constantFrom('a', 'b', 'c', 'd'),
    ms: fc.integer({ min: 0, max: 400_000 }).map((n) => T + n),
    allow: fc.boolean(),
    tool: fc.constantFrom('fetch', 'write', 'llm.openai/m', 'llm.chat'),
    params: fc.constantFrom({ x: 1 }, { x: 2 }),
    ran: fc.constantFrom('success', 'failure', 'unknown'),
    usd: fc.constantFrom(0.25, 0.1, 3),
  },
  { requiredKeys: ['id', 'ms'] },
);
const lines = fc.array(line, { maxLength: 8 });
const OTHERS: readonly Host[] = ['one', 'two', 'three'].map((name) => ({ ...plainHost, name }));

/** Bare events; a ledger has each id of a system once. */
function ledgerOf(given: readonly { readonly id: string }[]): Buffer {
  const { claims } = plainHost.read([plainFile(...new Map(given.map((each) => [each.id, each])).values())]);
  const { events } = eventsOfClaims(claims, { system: 'plain' });
  return Buffer.from(events.map(({ event }) => `${canonicalText(event as never)}\n`).join(''));
}

interface Reconciled {
  readonly report: ReconcileReport;
  readonly calls: readonly ReconcileCall[];
}

async function reconcile(ledger: Buffer, sources: readonly ReconcileSource[]): Promise<Reconciled> {
  const calls: ReconcileCall[] = [];
  const report = await reconcileLedger(ledger, sources, { onCall: (call) => void calls.push(call) });
  const { total, ...states } = report.calls;
  expect(Object.values(states).reduce((sum, n) => sum + n, 0)).toBe(total);
  expect(calls).toHaveLength(total);
  return { report, calls };
}

/** What does not say in which order the sources were given. */
function unordered({ report, calls }: Reconciled): unknown {
  const bySource = <T extends { readonly source: string }>(list: readonly T[]): T[] =>
    [...list].sort((a, b) => (a.source < b.source ? -1 : 1));
  const texts = (list: readonly unknown[]): string[] => list.map((each) => JSON.stringify(each)).sort();
  const shape = (call: ReconcileCall): object => ({
    ...call,
    call_ids: [...call.call_ids].sort(),
    sources: bySource(call.sources),
    codes: [...call.codes].sort(),
  });
  return {
    verdict: report.verdict,
    calls: report.calls,
    agreed: report.agreed,
    byCode: report.by_code,
    sources: [...report.sources].sort((a, b) => (a.name < b.name ? -1 : 1)),
    meters: report.meters.map((meter) => ({ ...meter, sources: bySource(meter.sources) })),
    notChecked: report.not_checked,
    listed: texts(calls.map(shape)),
  };
}

it('says the same of any lines, in whichever order the sources are given', async () => {
  await fc.assert(
    fc.asyncProperty(lines, lines, lines, lines, async (own, ...others) => {
      const ledger = ledgerOf(own);
      const sources = others.map((each, index) => readSource(OTHERS[index], [plainFile(...each)]));
      const first = await reconcile(ledger, sources);
      const again = await reconcile(ledger, sources.toReversed());
      expect(unordered(again)).toEqual(unordered(first));
      const { report, calls } = first;
      for (const { name, reading } of sources) {
        const places = calls.flatMap((call) =>
          call.sources.flatMap(({ source, at }) => (source === name ? at.map(({ line: n }) => n) : [])),
        );
        expect([...places].sort()).toEqual(reading.observations.map(({ at }) => at.line).sort());
        const usd = reading.observations.flatMap(({ meters }) =>
          meters.map(({ amount }) => Number(formatQuantity(amount))),
        );
        const sum = usd.reduce((before, each) => before + each, 0);
        const stated = report.meters[0]?.sources.find(({ source }) => source === name)?.amount ?? '0';
        expect(Number(stated)).toBeCloseTo(sum, 9);
      }
      const inLedger = calls.filter(({ ledger: records }) => records.length > 0);
      expect(inLedger).toHaveLength(report.ledger.calls);
    }),
    { numRuns: 60 },
  );
});

it('takes recordings that are broken anywhere, of several hosts at once', async () => {
  const recordings: readonly (readonly [Host, HostFile])[] = [
    [claudeCode, sample('claude-code', 'hooks.jsonl')],
    [claudeCode, sample('claude-code', 'transcript.jsonl')],
    [litellm, sample('litellm', 'spend-logs.jsonl')],
    [otlp, sample('otlp', 'traces.jsonl')],
  ];
  const edit = fc.record({
    of: fc.nat({ max: recordings.length - 1 }),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    cut: fc.nat({ max: 30 }),
    insert: fc.constantFrom('', '{', '"', 'null', '-1', '\n', '"allow"', '"\\ud800"', '1e999', '\u202e'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { maxLength: 4 }), fc.nat({ max: 3 }), async (edits, own) => {
      const broken = recordings.map(([host, { name, bytes }], index) => {
        let text = Buffer.from(bytes).toString();
        for (const { of, at, cut, insert } of edits) {
          if (of !== index) continue;
          const from = Math.floor(at * text.length);
          text = text.slice(0, from) + insert + text.slice(from + cut);
        }
        return { host, file: { name, bytes: Buffer.from(text) } };
      });
      const [host, file] = recordings[own];
      const { events } = planImport(host, [file]);
      const ledger = Buffer.from(events.map(({ event }) => `${canonicalText(event as never)}\n`).join(''));
      const sources = [claudeCode, litellm, otlp].map((each) =>
        readSource(
          each,
          broken.flatMap(({ host: its, file: one }) => (its === each ? [one] : [])),
        ),
      );
      const first = await reconcile(ledger, sources);
      expect(unordered(await reconcile(ledger, sources.toReversed()))).toEqual(unordered(first));
    }),
    { numRuns: 15 },
  );
});
