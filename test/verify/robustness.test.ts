/**
 * Whatever the bytes are, there is a report, always the same one, of the form that schemas/ give it: verification throws
 * nothing for what is in a ledger.
 */

import { readFileSync, readdirSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CODE_PAGES, isFindingCode } from '../../src/format/finding/catalog.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import type { JsonObject, JsonValue } from '../../src/base/json/value.js';
import { renderReport } from '../../src/out/text/report.js';
import type { Report } from '../../src/rules/report/report.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { checkReport } from '../../src/format/schema/check.js';
import { sha256Base64url } from '../../src/base/bytes/sha256.js';
import { identifyEvent } from '../../src/format/event/identity.js';
import { CASES, FIXTURES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { sample, times } from '../slow.js';
import { inChunks, ledgerOf, linesOf, rememberingBackend } from './support.js';

const backend = rememberingBackend();

const SCHEMAS = new URL('../../schemas/', import.meta.url);
const ajv = new Ajv2020({ allErrors: true, strict: false });
for (const file of readdirSync(SCHEMAS)) {
  if (file.endsWith('.json'))
    ajv.addSchema(JSON.parse(readFileSync(new URL(file, SCHEMAS), 'utf8')) as object);
}
const validator = (name: string) => {
  const validate = ajv.getSchema(`https://northroot.dev/schemas/v1/${name}.json`);
  if (validate === undefined) throw new Error(`there is no schema ${name}`);
  return validate;
};
const isReport = validator('report');
const isFinding = validator('finding');

/** Holds for every report: its form, by both validators, and that its parts agree. */
function expectSound(report: Report, bytes: number): void {
  const wire = JSON.parse(JSON.stringify(report)) as Report;
  expect(checkReport(wire)).toEqual([]);
  expect(isReport(wire), JSON.stringify(isReport.errors)).toBe(true);
  for (const finding of wire.findings) {
    expect(isFinding(finding), JSON.stringify(isFinding.errors)).toBe(true);
    expect(finding.code).toSatisfy(isFindingCode);
    const { line, byte_offset, byte_length } = finding.at;
    expect(line).toBeGreaterThan(0);
    expect(byte_offset + byte_length).toBeLessThanOrEqual(bytes);
    // Only an error may count for the verdict.
    const page = CODE_PAGES[finding.code as keyof typeof CODE_PAGES];
    expect(finding.class).toBe(finding.severity === 'error' ? page.class : 'none');
  }
  const classes = new Set(wire.findings.map((finding) => finding.class));
  const isWhole = wire.findings.length === wire.findings_total;
  const worst = classes.has('invalid') ? 'invalid' : classes.has('violation') ? 'violation' : undefined;
  if (isWhole) expect(report.verdict).toBe(worst ?? (report.ledger.records === 0 ? 'undecided' : 'ok'));
  const { by_verdict } = report.counts;
  expect(Object.values(by_verdict).reduce((sum, count) => sum + count, 0)).toBe(report.ledger.records);
  expect(report.ledger).toMatchObject({ bytes, tree_size: report.ledger.records });
  const text = renderReport(report);
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
}

async function verifyTwice(bytes: Uint8Array): Promise<Report> {
  const report = await verifyLedger(bytes, { backend });
  expectSound(report, bytes.length);
  expect(await verifyLedger(inChunks(bytes, 97), { backend })).toEqual(report);
  return report;
}

describe('fixtures', () => {
  test('have reports of the right form', async () => {
    for (const fixture of sample(CASES, times(120, 240))) {
      const path = `${FIXTURES}${fixture.ledger}`;
      const report = await verifyLedger(path, { backend, ...optionsOf(fixture) });
      const wire = JSON.parse(JSON.stringify(report)) as Report;
      expectSound(wire, report.ledger.bytes);
    }
  });
});

describe('random input', () => {
  test('bytes at random never break the verifier', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (bytes) => {
        const report = await verifyTwice(bytes);
        expect(report.verdict).toBe(bytes.length === 0 ? 'undecided' : 'invalid');
      }),
      { numRuns: times(30, 200) },
    );
  });

  test('lines of JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 8 }), async (values) => {
        const lines = values.map((value) => Buffer.from(JSON.stringify(value)));
        expect((await verifyTwice(ledgerOf(lines))).verdict).toBe('invalid');
      }),
      { numRuns: times(30, 200) },
    );
  });

  test('lines and pieces of good ledgers, in any order', async () => {
    const good = ['agent-run', 'multi-signature', 'quantities', 'bare-events'].flatMap((name) =>
      linesOf(fixtureBytes(`ledgers/${name}.jsonl`)),
    );
    const piece = fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...good) },
      fc
        .tuple(fc.constantFrom(...good), fc.nat(1_000), fc.nat(1_000))
        .map(([line, from, length]) => line.subarray(from, from + length)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 12 }), async (lines) => {
        await verifyTwice(ledgerOf(lines));
      }),
      { numRuns: times(20, 150) },
    );
  });
});

/** One place in a JSON value, by its path, with what is to be done there. */
interface Mutation {
  readonly pick: number;
  readonly kind: 'delete' | 'replace' | 'rename' | 'copy' | 'wrap' | 'nest';
  readonly value: JsonValue;
}

/** Every container of a value with the keys in it. */
function placesIn(value: JsonValue): [container: JsonObject | JsonValue[], key: string][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]): [JsonObject | JsonValue[], string][] => [
    [value, key],
    ...placesIn(inner),
  ]);
}

function mutate(record: JsonObject, { pick, kind, value }: Mutation): void {
  const places = placesIn(record);
  const [container, key] = places[pick % places.length] as [JsonObject, string];
  const old = container[key];
  const [other, otherKey] = places[(pick * 7) % places.length] as [JsonObject, string];
  switch (kind) {
    case 'delete':
      if (Array.isArray(container)) container.splice(Number(key), 1);
      else delete container[key];
      break;
    case 'replace':
      container[key] = value;
      break;
    case 'rename':
      if (Array.isArray(container)) container.push(old);
      else container[`${key}x`] = old;
      break;
    case 'copy':
      container[key] = structuredClone<JsonValue>(other[otherKey]);
      break;
    case 'wrap':
      container[key] = [old];
      break;
    case 'nest':
      container[key] = { [key]: old };
      break;
  }
}

/** Puts ids and chain right again, so that the mutated members are looked at for themselves. */
function mend(records: readonly JsonObject[]): Buffer {
  const lines: Buffer[] = [];
  for (const record of records) {
    const event = record['event'];
    if (typeof event === 'object' && event !== null && !Array.isArray(event)) {
      const { eventId, payloadDigest } = identifyEvent(event);
      if ('event_id' in event) event['event_id'] = { alg: 'sha-256', b64: eventId };
      if ('payload_digest' in event) event['payload_digest'] = { alg: 'sha-256', b64: payloadDigest };
    }
    const last = lines.at(-1);
    const leaf = last === undefined ? '' : Buffer.concat([Buffer.of(0), last]);
    if ('prev' in record) record['prev'] = { alg: 'sha-256', b64: sha256Base64url(Buffer.from(leaf)) };
    lines.push(Buffer.from(canonicalText(record)));
  }
  return ledgerOf(lines);
}

describe('mutated records', () => {
  const originals = ['agent-run', 'key-event', 'quantities', 'foreign-digests'].flatMap((name) =>
    linesOf(fixtureBytes(`ledgers/${name}.jsonl`)).map((line) => line.toString()),
  );
  const mutation: fc.Arbitrary<Mutation> = fc.record({
    pick: fc.nat(10_000),
    kind: fc.constantFrom('delete', 'replace', 'rename', 'copy', 'wrap', 'nest'),
    value: fc.oneof(
      fc.constantFrom<JsonValue>(null, true, '', '-1', '0', 0, -1, 1.5, 9_007_199_254_740_991, [], {}),
      fc.string({ unit: 'binary' }).filter((text) => !/\p{Surrogate}/u.test(text)),
      fc.constantFrom<JsonValue>('__proto__', 'constructor', 'sha-256', 'x'.repeat(5_000)),
    ),
  });

  test.each([
    ['as they are', false],
    ['with ids and chain made right', true],
  ])('events changed at random, %s, never break the verifier', async (_, isMended) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(originals.length - 1), fc.array(mutation, { minLength: 1, maxLength: 3 })), {
          minLength: 1,
          maxLength: 6,
        }),
        async (picks) => {
          const genesis = JSON.parse(originals[0]) as JsonObject;
          const records = picks.map(([index, mutations]) => {
            const record = JSON.parse(originals[index]) as JsonObject;
            for (const each of mutations) mutate(record, each);
            return record;
          });
          const all = [genesis, ...records];
          const text = (record: JsonObject): Buffer => Buffer.from(canonicalText(record));
          await verifyTwice(isMended ? mend(all) : ledgerOf(all.map(text)));
        },
      ),
      { numRuns: times(30, 200) },
    );
  });
});
