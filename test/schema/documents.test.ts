import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { CANONICAL_PROFILE_ID } from '../../src/json/profile.js';
import {
  checkEvent,
  checkKey,
  checkRecord,
  checkReport,
  checkTrustPolicy,
  type ShapeIssue,
} from '../../src/schema/check.js';
import { schemaDocument, schemaNames } from '../../src/schema/documents.js';
import { isDigest } from '../../src/value/digest.js';
import { isUnit } from '../../src/value/meter.js';
import { isPrincipalId, isPrincipalPattern } from '../../src/value/principal.js';
import { isTimestamp } from '../../src/value/timestamp.js';
import { isToolName, isToolPattern } from '../../src/value/tool.js';
import { places, withPlace } from './mutate.js';
import * as samples from './samples.js';

const SCHEMAS = new URL('../../schemas/', import.meta.url);
const LEDGERS = new URL('../../../shared/vectors/ledgers/', import.meta.url);
const BASE = 'https://northroot.dev/schemas/v1/';

type Document = Record<string, unknown> & { $defs?: Record<string, Record<string, unknown>> };

/** The schemas as anyone else would use them: read from the files, compiled by ajv with nothing added. */
const ajv = new Ajv2020({ strict: true });
const files = readdirSync(SCHEMAS).filter((file) => file.endsWith('.json'));
const documents = new Map(
  files.map((file) => [
    file.slice(0, -5),
    JSON.parse(readFileSync(new URL(file, SCHEMAS), 'utf8')) as Document,
  ]),
);
for (const document of documents.values()) ajv.addSchema(document);
const compiled = (name: string) => ajv.getSchema(`${BASE}${name}`) as ValidateFunction;

describe('the schema documents', () => {
  it.each([...documents.keys()])('%s is strict JSON Schema 2020-12', (name) => {
    const document = documents.get(name) as Document;
    expect(document['$schema']).toBe('https://json-schema.org/draft/2020-12/schema');
    expect(document['$id']).toBe(`${BASE}${name}.json`);
    expect(compiled(`${name}.json`)).toBeTypeOf('function');
    for (const key of Object.keys(document.$defs ?? {})) {
      expect(compiled(`${name}.json#/$defs/${key}`)).toBeTypeOf('function');
    }
  });

  it('are closed, every object of them, but where members have no names', () => {
    const open: string[] = [];
    for (const [name, document] of documents) {
      for (const { pointer, value } of places(document)) {
        const node = value as Document | null;
        if (typeof node !== 'object' || node === null || node['properties'] === undefined) continue;
        // Conditions only add to an object that is closed elsewhere.
        if (/\/(?:if|then|else)(?:\/|$)|\$defs\/allowed_/.test(pointer)) continue;
        if (node['additionalProperties'] !== false) open.push(`${name}${pointer}`);
      }
    }
    expect(open).toEqual(['event']);
  });

  it('are what the generated code was made from', () => {
    execFileSync(process.execPath, [fileURLToPath(new URL('generate.js', SCHEMAS)), '--check'], {
      stdio: 'pipe',
    });
  });

  it('are there as values', () => {
    expect(schemaNames()).toEqual([...documents.keys()].sort());
    for (const [name, document] of documents) expect(schemaDocument(name)).toEqual(document);
    (schemaDocument('key') as Document)['type'] = 'changed';
    expect(schemaDocument('key')).toEqual(documents.get('key'));
    for (const name of ['', 'none', 'constructor', '__proto__']) expect(schemaDocument(name)).toBeUndefined();
  });

  it('name the one canonical profile', () => {
    expect(documents.get('common')?.$defs?.['canonical_profile_id'].const).toBe(CANONICAL_PROFILE_ID);
  });

  it.each([
    ['principal_id', isPrincipalId],
    ['principal_pattern', isPrincipalPattern],
    ['tool_name', isToolName],
    ['tool_pattern', isToolPattern],
    ['unit', isUnit],
    ['digest', (text: string) => isDigest({ alg: 'x', b64: text })],
  ])('and the code agree on what a %s is', (name, isOne) => {
    const validate = compiled(`common.json#/$defs/${name}`);
    const alphabet = [...'aAz09_-.:/*@+~ é\n', 'human', 'agent:', 'fs.', 'hum', 'x'.repeat(120)];
    const text = fc.array(fc.constantFrom(...alphabet), { maxLength: 6 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, (candidate) => {
        expect(validate(name === 'digest' ? { alg: 'x', b64: candidate } : candidate)).toBe(isOne(candidate));
      }),
      { numRuns: 1000 },
    );
  });

  it('take every timestamp that the code takes', () => {
    const validate = compiled('common.json#/$defs/timestamp');
    const part = (max: number) => fc.nat({ max }).map((n) => String(n).padStart(2, '0'));
    const fraction = fc.constantFrom('', '.', '.1', '.123456789', '.1234567890');
    const text = fc.tuple(part(13), part(32), part(25), part(61), part(61), fraction);
    fc.assert(
      fc.property(text, ([month, day, hour, minute, second, f]) => {
        const candidate = `2023-${month}-${day}T${hour}:${minute}:${second}${f}Z`;
        const isForm = validate(candidate);
        // Only the length of a month is beyond a pattern.
        expect(isTimestamp(candidate)).toBe(
          isForm && Number(day) <= new Date(2023, Number(month), 0).getDate(),
        );
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the compiled validators', () => {
  const { grant, action, execution, genesis, checkpoint, attestation, keyEvent, extension } = samples;
  const cases: [string, (value: unknown) => ShapeIssue[], object][] = [
    ['authorization', checkEvent, grant],
    ['authorization', checkEvent, action],
    ['execution', checkEvent, execution],
    ['genesis', checkEvent, genesis],
    ['checkpoint', checkEvent, checkpoint],
    ['attestation', checkEvent, attestation],
    ['key-event', checkEvent, keyEvent],
    ['event', checkEvent, extension],
    ['record', checkRecord, samples.record],
    ['key', checkKey, samples.key],
    ['trust-policy', checkTrustPolicy, samples.trustPolicy],
    ['report', checkReport, samples.report],
    [
      'finding',
      (value) => checkReport({ ...samples.report, findings: [value] }),
      samples.report.findings?.[0] ?? {},
    ],
  ];
  /** What a value rule alone may find in a document that its schema takes. */
  const VALUE_CODES = new Set([
    'TIMESTAMP_INVALID',
    'QUANTITY_INVALID',
    'METER_UNIT_DUPLICATE',
    'METER_NEGATIVE',
  ]);
  const values = fc.oneof(
    fc.constantFrom<unknown>(
      '',
      'x',
      '*',
      '1',
      '0',
      '-1',
      'int',
      'deny',
      'action',
      'success',
      '2',
      '2026-02-30T00:00:00Z',
      'sha-256',
    ),
    fc.constantFrom<unknown>(
      null,
      true,
      0,
      -1,
      1.5,
      2 ** 53,
      [],
      {},
      [[]],
      { t: 'int', v: '-1' },
      { t: 'rat', n: '2', d: '4' },
    ),
    fc.jsonValue({ maxDepth: 3 }),
  );

  it.each(cases)('%s says what the plain schema says', (name, check, document) => {
    const plain = compiled(`${name}.json`);
    expect(plain(document)).toBe(true);
    const spots = places(document).map(({ pointer }) => pointer);
    const names = fc.constantFrom(
      'zzz',
      '__proto__',
      'constructor',
      'bounds',
      'action',
      't',
      'v',
      '0',
      'alg',
    );
    const edit = fc.tuple(
      fc.nat(),
      fc.option(names, { nil: undefined }),
      fc.option(values, { nil: undefined }),
    );
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
        let value: unknown = document;
        for (const [spot, member, replacement] of edits) {
          const pointer = spots[spot % spots.length] + (member === undefined ? '' : `/${member}`);
          if (pointer === '') continue;
          try {
            value = withPlace(value, pointer, replacement);
          } catch {
            // An earlier edit took away where this one would go.
          }
        }
        const before = JSON.stringify(value);
        const issues = check(value);
        expect(JSON.stringify(value)).toBe(before);
        expect(check(value)).toEqual(issues);
        expect(new Set(issues.map(({ pointer }) => pointer)).size).toBe(issues.length);
        const isTyped = name === 'event' || !('event_type' in document) || isOfType(value, document);
        if (!isTyped) return;
        if (plain(value)) {
          // Warnings out of order are SCHEMA, and beyond a schema.
          for (const { code, pointer } of issues) {
            expect([
              pointer,
              code,
              VALUE_CODES.has(code) || pointer.startsWith('/hygiene/warnings/'),
            ]).toEqual([pointer, code, true]);
          }
        } else {
          expect(issues.length).toBeGreaterThan(0);
        }
      }),
      { numRuns: 600 },
    );
  });

  function isOfType(value: unknown, document: object): boolean {
    const { event_type: type, event_version: version } = value as Record<string, unknown>;
    return version === '1' && type === (document as Record<string, unknown>)['event_type'];
  }

  it('take any value without throwing', () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withNullPrototype: true,
          withSparseArray: true,
          withDate: true,
          withMap: true,
        }),
        (value) => {
          for (const [, check, document] of cases) {
            check(value);
            check({
              ...document,
              event: value,
              keys: value,
              authorization: value,
              meter_used: value,
              intents: value,
            });
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe.skipIf(!existsSync(LEDGERS))('ledgers written by an independent program', () => {
  let records: { event: Record<string, unknown> }[] = [];
  beforeAll(() => {
    const lines = readdirSync(LEDGERS)
      .filter((file) => file.endsWith('.jsonl'))
      .flatMap((file) => readFileSync(new URL(file, LEDGERS), 'utf8').trimEnd().split('\n'));
    records = lines.map((line) => JSON.parse(line) as { event: Record<string, unknown> });
  });

  it('have records and events of the right shape', () => {
    expect(records.length).toBeGreaterThan(40);
    for (const record of records) {
      expect(checkRecord(record)).toEqual([]);
      expect(checkEvent(record.event)).toEqual([]);
    }
  });
});
