import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ValueFault } from '../../src/base/fault.js';
import { CODE_PAGES } from '../../src/format/finding/catalog.js';
import { CANONICAL_PROFILE_ID } from '../../src/base/json/profile.js';
import { examineLine } from '../../src/format/record/examine-line.js';
import {
  checkEvent,
  checkKey,
  checkRecord,
  checkReport,
  checkTrustPolicy,
  type ShapeCode,
} from '../../src/format/schema/check.js';
import { schemaDocument, schemaNames } from '../../src/format/schema/documents.js';
import { isDigest } from '../../src/base/value/digest.js';
import { isUnit } from '../../src/base/value/meter.js';
import { isPrincipalId, isPrincipalPattern } from '../../src/base/value/principal.js';
import { isRateUnit } from '../../src/base/value/rate.js';
import { isTimestamp } from '../../src/base/value/timestamp.js';
import { isToolName, isToolPattern } from '../../src/base/value/tool.js';
import { times } from '../slow.js';
import { places, withPlace } from './mutate.js';
import * as samples from './samples.js';

const SCHEMAS = new URL('../../schemas/', import.meta.url);
const LEDGERS = new URL('../../../shared/vectors/ledgers/', import.meta.url);
const FIXTURES = new URL('../../fixtures/', import.meta.url);
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

/** What no schema says, as docs/spec/beyond-schemas.json lists it. */
const beyond = JSON.parse(
  readFileSync(new URL('../../docs/spec/beyond-schemas.json', import.meta.url), 'utf8'),
) as { rules: { rule: string; scope: string; codes: string[] }[] };
const codesOf = (...scopes: string[]) =>
  beyond.rules.filter(({ scope }) => scopes.includes(scope)).flatMap(({ codes }) => codes);

/** Whether a fault is one of the rules for values, or for the size of `meta`, that no schema says. */
function isBeyond({ code, pointer, expected, actual }: ValueFault): boolean {
  if (code === 'SCHEMA' && /\/approval_event_ids\/[0-9]+$/.test(pointer ?? ''))
    return expected === 'each id once';
  if (code === 'SCHEMA')
    return /\/hygiene\/warnings\/[0-9]+$/.test(pointer ?? '')
      ? /^"[A-Z0-9_]{3,64}"$/.test(actual ?? '')
      : false;
  if (code === 'QUANTITY_INVALID') return expected === 'a fraction in lowest terms';
  return code === 'METER_UNIT_DUPLICATE';
}

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
        if (/\/(?:if|then|else|not)(?:\/|$)|\$defs\/(?:allowed_|negative)/.test(pointer)) continue;
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

  it.each<[string, unknown]>([
    ['a keyword that validation does not know', { anyOf: [{ type: 'string' }] }],
    ['a rule that validation does not know', { type: 'array', uniqueItems: true }],
    ['names that validation does not know', { type: 'object', propertyNames: { maxLength: 2 } }],
    ['a limit that is no number', { type: 'string', minLength: 'x' }],
    ['an object to compare with', { enum: [{}] }],
    ['a schema within itself', { $ref: 'approval.json' }],
  ])('make no code with %s', (_, node) => {
    const folder = mkdtempSync(join(tmpdir(), 'northroot-'));
    try {
      cpSync(fileURLToPath(SCHEMAS), join(folder, 'schemas'), { recursive: true });
      symlinkSync(fileURLToPath(new URL('../node_modules', SCHEMAS)), join(folder, 'node_modules'));
      const document = structuredClone(documents.get('approval')) as Document;
      (document['properties'] as Document)['reason'] = node;
      writeFileSync(join(folder, 'schemas/approval.json'), JSON.stringify(document));
      const { status } = spawnSync(process.execPath, [join(folder, 'schemas/generate.js')]);
      expect(status).toBe(1);
      expect(existsSync(join(folder, 'src'))).toBe(false);
    } finally {
      rmSync(folder, { recursive: true });
    }
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
    ['rate_unit', isRateUnit],
    ['digest', (text: string) => isDigest({ alg: 'x', b64: text })],
  ])('and the code agree on what a %s is', (name, isOne) => {
    const validate = compiled(`common.json#/$defs/${name}`);
    const alphabet = [
      ...'aAz09_-.:/*@+~ é\n',
      'human',
      'agent:',
      'fs.',
      'hum',
      '.per_',
      '60m',
      'week',
      '=#',
      'x'.repeat(120),
    ];
    const text = fc.array(fc.constantFrom(...alphabet), { maxLength: 6 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, (candidate) => {
        expect(validate(name === 'digest' ? { alg: 'x', b64: candidate } : candidate)).toBe(isOne(candidate));
      }),
      { numRuns: times(300, 10_000) },
    );
  });

  it('and the code agree on what a timestamp is', () => {
    const validate = compiled('common.json#/$defs/timestamp');
    const part = (max: number) => fc.nat({ max }).map((n) => String(n).padStart(2, '0'));
    const year = fc.constantFrom('0000', '0004', '1600', '1900', '2000', '2023', '2024', '2100', '9999');
    const fraction = fc.constantFrom('', '.', '.1', '.123456789', '.1234567890');
    const text = fc.tuple(year, part(13), part(32), part(25), part(61), part(61), fraction);
    fc.assert(
      fc.property(text, ([year, month, day, hour, minute, second, f]) => {
        const candidate = `${year}-${month}-${day}T${hour}:${minute}:${second}${f}Z`;
        expect([candidate, validate(candidate)]).toEqual([candidate, isTimestamp(candidate)]);
      }),
      { numRuns: times(800, 20_000) },
    );
    for (let year = 0; year <= 9999; year++) {
      const candidate = `${String(year).padStart(4, '0')}-02-29T00:00:00Z`;
      if (validate(candidate) !== isTimestamp(candidate)) expect(candidate).toBe('judged alike');
    }
  });
});

describe('patterns', () => {
  interface Pattern {
    readonly place: string;
    readonly pattern: string;
    readonly not: string | undefined;
  }
  const LINE_ENDS = '[\n\r\u0085\u2028\u2029]';
  const patterns: Pattern[] = [...documents].flatMap(([name, document]) =>
    places(document).flatMap(({ pointer, value }) => {
      const { pattern, not } = (value ?? {}) as { pattern?: unknown; not?: { pattern?: unknown } };
      if (typeof pattern !== 'string') return [];
      return [{ place: `${name}${pointer}`, pattern, not: not?.pattern as string | undefined }];
    }),
  );

  it('use nothing that a dialect of regular expressions lacks, or reads in another way', () => {
    expect(patterns.length).toBeGreaterThan(30);
    for (const { place, pattern } of patterns) {
      // Groups that capture nothing are the only extension; escapes are of punctuation; RE2 repeats at most 1,000 times.
      expect([place, pattern.replace(/\\[^A-Za-z0-9]/g, 'x').match(/\(\?(?!:)|\\|[*+?}][?+]/g)]).toEqual([
        place,
        null,
      ]);
      for (const [, most] of pattern.matchAll(/\{(?:[0-9]+,)?([0-9]+)\}/g)) {
        expect([place, Number(most) <= 1000]).toEqual([place, true]);
      }
    }
  });

  it('are anchored, and never end before a line end', () => {
    for (const { place, pattern, not } of patterns) {
      if (/\/(?:not|if|anyOf\/[0-9]+)(?:\/|$)/.test(place)) continue;
      expect([place, /^\^.*\$$/s.test(pattern)]).toEqual([place, true]);
      // `$` may also stand before a final line end: in Python, Java, Perl, .NET.
      expect([place, not?.split('|').at(-1)]).toEqual([place, LINE_ENDS]);
    }
  });

  const hasPython = spawnSync('python3', ['-c', ''], { stdio: 'ignore' }).status === 0;
  it.skipIf(!hasPython)('take the same texts in Python', () => {
    const strings = Object.values(samples).flatMap((sample) =>
      places(sample).flatMap(({ value }) => (typeof value === 'string' ? [value] : [])),
    );
    const extra = [
      'usd.per_60m',
      '-12',
      '0',
      '7ff0000000000000',
      '2023-02-29T00:00:00Z',
      '2023-02-28',
      'fs.*',
      'CODE_1',
    ];
    const texts = [...new Set([...strings, ...extra])].flatMap((text) => [
      text,
      ...['\n', '\r\n', '\r', '\u0085', '\u2028', '\n\n', ' '].map((end) => text + end),
      `\n${text}`,
      `x\n${text}`,
    ]);
    const program = `
import json, re, sys
patterns, texts = json.load(sys.stdin)
def takes(p, text):
    return bool(re.search(p['pattern'], text)) and not ('not' in p and re.search(p['not'], text))
json.dump([[takes(p, text) for text in texts] for p in patterns], sys.stdout)`;
    const { stdout, stderr } = spawnSync('python3', ['-W', 'error', '-c', program], {
      input: JSON.stringify([patterns, texts]),
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    const verdicts = JSON.parse(stdout) as boolean[][];
    patterns.forEach(({ place, pattern, not }, i) => {
      const takes = (text: string) =>
        new RegExp(pattern, 'u').test(text) && !(not !== undefined && new RegExp(not, 'u').test(text));
      const [here, there] = [texts.filter(takes), texts.filter((_, j) => verdicts[i]?.[j])];
      expect([place, there]).toEqual([place, here]);
      expect([place, here.length > 0]).toEqual([place, true]);
      if (not?.endsWith(LINE_ENDS) === true)
        expect([place, here.filter((text) => /[\n\r\u0085\u2028]/.test(text))]).toEqual([place, []]);
    });
  });
});

describe('docs/spec/beyond-schemas.json', () => {
  it('names every code that a schema does not say', () => {
    const bySchema = ['SCHEMA', 'TIMESTAMP_INVALID', 'QUANTITY_INVALID', 'METER_NEGATIVE', 'PROFILE_UNKNOWN'];
    const said = new Set([
      ...bySchema,
      'EVENT_VERSION_UNKNOWN',
      ...beyond.rules.flatMap(({ codes }) => codes),
    ]);
    expect([...said].sort()).toEqual(Object.keys(CODE_PAGES).sort());
    expect(new Set(beyond.rules.map(({ rule }) => rule)).size).toBe(beyond.rules.length);
    for (const { scope } of beyond.rules) expect(['bytes', 'value', 'identity', 'ledger']).toContain(scope);
  });
});

describe('the validators', () => {
  const {
    grant,
    action,
    execution,
    adjustment,
    approval,
    revocation,
    genesis,
    checkpoint,
    attestation,
    keyEvent,
    extension,
  } = samples;
  const checkLine: (value: unknown) => ValueFault<ShapeCode>[] = (value) => [
    ...checkRecord(value),
    ...checkEvent((value as { event?: unknown } | null)?.event).map((fault) => ({
      ...fault,
      pointer: `/event${fault.pointer}`,
    })),
  ];
  const cases: [string, (value: unknown) => ValueFault<ShapeCode>[], object][] = [
    ['authorization', checkEvent, grant],
    ['authorization', checkEvent, action],
    ['execution', checkEvent, execution],
    ['adjustment', checkEvent, adjustment],
    ['approval', checkEvent, approval],
    ['revocation', checkEvent, revocation],
    ['genesis', checkEvent, genesis],
    ['checkpoint', checkEvent, checkpoint],
    ['attestation', checkEvent, attestation],
    ['key-event', checkEvent, keyEvent],
    ['event', checkEvent, extension],
    ['record', checkLine, { ...samples.record, event: grant }],
    ['record', checkLine, { ...samples.record, event: execution }],
    ['record', checkLine, { ...samples.record, event: extension }],
    ['key', checkKey, samples.key],
    ['key', checkKey, samples.noteKey],
    ['trust-policy', checkTrustPolicy, samples.trustPolicy],
    ['report', checkReport, samples.report],
    [
      'finding',
      (value) => checkReport({ ...samples.report, findings: [value] }),
      samples.report.findings?.[0] ?? {},
    ],
  ];
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
      '2026-02-28T00:00:00Z\n',
      'agent:a1\n',
      'sha-256',
      'adjustment',
      'approval',
      'execution',
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
      { t: 'dec', m: '-1', s: 38 },
      { t: 'rat', n: '2', d: '4' },
      { t: 'rat', n: '-1', d: '4' },
      { t: 'f64', bits: '8000000000000000' },
      { t: 'f64', bits: 'bff0000000000000' },
      { t: 'f64', bits: '7ff0000000000000' },
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
        const faults = check(value);
        expect(JSON.stringify(value)).toBe(before);
        expect(check(value)).toEqual(faults);
        // A record that is no object, or has no event, is told of twice here.
        if (name !== 'record') expect(new Set(faults.map(({ pointer }) => pointer)).size).toBe(faults.length);
        // The schema's verdict is ours, but for the rules that no schema says.
        const expected = faults.every(isBeyond);
        if (check === checkEvent)
          expect([faults, compiled('any-event.json')(value)]).toEqual([faults, expected]);
        const isTyped = !('event_type' in document) || isOfType(value, document);
        if (isTyped) expect([faults, plain(value)]).toEqual([faults, expected]);
      }),
      { numRuns: times(120, 10_000) },
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
      { numRuns: times(100, 3_000) },
    );
  });
});

/** Whether our verdict of a line, as far as its shape and values go, is the schema's. */
function expectSameVerdict(line: string): void {
  const { layout, faults } = examineLine(Buffer.from(line), undefined);
  const bytesOnly = codesOf('bytes').filter((code) => code !== 'SCHEMA');
  if (faults.some(({ code }) => bytesOnly.includes(code))) return;
  const identity = codesOf('identity').filter((code) => code !== 'SCHEMA');
  const isMetaSize = ({ pointer, expected }: { pointer?: string; expected?: string }) =>
    pointer === '/meta' && expected?.endsWith(' bytes') === true;
  const expected = faults.every(
    (fault) => identity.includes(fault.code) || isMetaSize(fault) || isBeyond(fault),
  );
  const validate = compiled(layout === 'bare' ? 'any-event.json' : 'record.json');
  expect([line, faults, validate(JSON.parse(line))]).toEqual([line, faults, expected]);
}

describe('a plain validator with the schemas alone', () => {
  const lines = [
    ...new Set(
      ['ledgers/', 'broken/'].flatMap((folder) =>
        readdirSync(new URL(folder, FIXTURES), { recursive: true, encoding: 'utf8' })
          .filter((file) => file.endsWith('.jsonl'))
          .flatMap((file) => readFileSync(new URL(folder + file, FIXTURES), 'latin1').split('\n')),
      ),
    ),
  ]
    .filter((line) => line !== '' && line.length <= 65_535)
    .map((line) => Buffer.from(line, 'latin1').toString('utf8'));

  it('judges every line of the fixtures as northroot does', () => {
    expect(lines.length).toBeGreaterThan(500);
    for (const line of lines) expectSameVerdict(line);
  });

  it('judges them when they are changed', () => {
    const records = lines.filter((line) => line.startsWith('{"event":'));
    const swap = fc.constantFrom(
      ['Z"', '\\n"'],
      ['"v":"', '"v":"-'],
      ['-01-', '-02-'],
      ['"execution"', '"adjustment"'],
      ['"genesis"', '"x.genesis"'],
      ['"allow"', '"deny"'],
      ['sha-256', 'sha-512'],
      ['"usd', '"usd\\n'],
      ['"agent:', '"robot:'],
      ['"seq":', '"seq":-'],
      ['"1"', '"2"'],
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...records),
        fc.array(swap, { minLength: 1, maxLength: 2 }),
        (line, swaps) => {
          expectSameVerdict(swaps.reduce((text, [from = '', to = '']) => text.replace(from, to), line));
        },
      ),
      { numRuns: times(500, 15_000) },
    );
  });

  it.each([
    ['a negative amount', '/event/meter_used/0/amount', { t: 'int', v: '-1' }],
    ['a negative fraction', '/event/meter_used/2/amount', { t: 'rat', n: '-1', d: '3' }],
    ['a negative double', '/event/meter_used/3/amount', { t: 'f64', bits: 'bff0000000000000' }],
    ['a double that is not finite', '/event/meter_used/3/amount', { t: 'f64', bits: '7ff8000000000000' }],
    ['a date that does not exist', '/event/occurred_at', '2026-02-29T00:00:00Z'],
    ['a final newline', '/event/principal_id', 'agent:a1\n'],
    ['a member too many', '/event/zzz', 1],
    ['an event of another type', '/event/event_type', 'genesis'],
  ])('refuses a line with %s', (_, pointer, value) => {
    const record = { ...samples.record, event: samples.execution };
    expect(compiled('record.json')(record)).toBe(true);
    expect(compiled('record.json')(withPlace(record, pointer, value))).toBe(false);
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
