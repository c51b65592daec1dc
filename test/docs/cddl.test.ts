/** docs/spec/northroot.cddl: made from the schemas, readable by a parser of others, and of one mind with the schemas. */

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { copy, places, withPlace } from '../schema/mutate.js';
import * as samples from '../schema/samples.js';
import { validatorOf } from '../schema/ajv.js';
import { matches, parseCddl } from './cddl.js';
import { readText, root } from './markdown.js';
import { peerModule } from './peer.js';

const PATH = 'docs/spec/northroot.cddl';
const rules = parseCddl(readText(PATH));

const parser = await peerModule<{ parse: (path: string) => { Name: string }[] }>('cddl');

interface SchemaError {
  readonly keyword: string;
  readonly schemaPath: string;
}

/** What the schemas say and CDDL cannot, as comments there tell: real dates, `://` in an origin, repeated warnings. */
function isUnsaid({ keyword, schemaPath }: SchemaError): boolean {
  // `if` only says again that what it leads to has failed.
  if (keyword === 'uniqueItems' || keyword === 'if') return true;
  return keyword === 'not' && /timestamp|origin/.test(schemaPath);
}

/** Whether the rule matches: what the schema says, unless its only fault is one that CDDL cannot say. */
function expectSameVerdict(schema: string, value: unknown): boolean {
  const validate = validatorOf(schema);
  const isValid = validate(value);
  const isMatch = matches(rules, schema, value);
  if (isValid || validate.errors?.every(isUnsaid) !== true) {
    expect([value, isMatch]).toEqual([value, isValid]);
  }
  return isMatch;
}

function linesOf(folder: string): string[] {
  return (readdirSync(join(root, folder), { recursive: true }) as string[])
    .filter((file) => file.endsWith('.jsonl'))
    .flatMap((file) => readText(`${folder}/${file}`).split('\n'))
    .filter((line) => line !== '' && line.length <= 65_535);
}

/** The JSON values of lines that are JSON, with the layout of each. */
function valuesOf(lines: readonly string[]): { schema: string; value: unknown }[] {
  return lines.flatMap((line) => {
    try {
      const value = JSON.parse(line) as object;
      return [{ schema: 'event_type' in value ? 'any-event' : 'record', value }];
    } catch {
      return [];
    }
  });
}

const sound = valuesOf(linesOf('fixtures/ledgers'));
const broken = valuesOf(linesOf('fixtures/broken'));

describe('docs/spec/northroot.cddl', () => {
  it('is what the schemas make', () => {
    execFileSync(process.execPath, [join(root, 'schemas/cddl.js'), '--check'], { stdio: 'pipe' });
  });

  it.skipIf(parser === undefined)('is CDDL to a parser of others', () => {
    const found = parser?.parse(join(root, PATH)).map(({ Name }) => Name);
    expect(found).toEqual([...rules.keys()]);
  });

  it('matches every record and event of the sound ledgers', () => {
    expect(sound.length).toBeGreaterThan(1_000);
    for (const { schema, value } of sound) expect(expectSameVerdict(schema, value)).toBe(true);
    for (const { value } of sound) expect(matches(rules, 'northroot', value)).toBe(true);
  });

  it('judges the lines of the broken ledgers as the schemas do', () => {
    const verdicts = broken.map(({ schema, value }) => expectSameVerdict(schema, value));
    expect(verdicts.filter((each) => !each).length).toBeGreaterThan(50);
  });

  it('judges trust policies and reports as the schemas do', () => {
    for (const file of readdirSync(join(root, 'fixtures/trust'))) {
      if (!/not-json|duplicate-key/.test(file)) {
        expectSameVerdict('trust-policy', JSON.parse(readText(`fixtures/trust/${file}`)));
      }
    }
    expect(expectSameVerdict('report', samples.report)).toBe(true);
    expect(expectSameVerdict('finding', samples.report.findings?.[0])).toBe(true);
  });

  it('says in a comment what it does not say', () => {
    const origin = withPlace(samples.genesis, '/origin', 'https://example.com');
    const day = withPlace(samples.execution, '/occurred_at', '2026-02-30T00:00:00Z');
    for (const value of [origin, day]) {
      expect([validatorOf('any-event')(value), matches(rules, 'any-event', value)]).toEqual([false, true]);
    }
    expect(readText(PATH).match(/^; Not said here: /gm)).toHaveLength(3);
  });

  const edits: readonly unknown[] = [
    ...['', 'x', '*', '1', '0', '-1', 'deny', 'allow', 'action', 'grant', 'failure', 'resume', 'agent:a1\n'],
    ...['sha-256', 'blake3', 'ml-dsa-44:', 'adjustment', 'x.note', '8000000000000000', '7ff0000000000000'],
    ...[null, true, 0, -1, 1.5, 2 ** 53, [], {}, [[]], { t: 'int', v: '-1' }, { t: 'rat', n: '2', d: '4' }],
  ];
  const members = [
    'zzz',
    '__proto__',
    'bounds',
    'action',
    'slice',
    'grant_event_id',
    'in_flight',
    'alg',
    '0',
  ];

  it.each([
    ['record', 'record', { ...samples.record, event: samples.grant }],
    ['grant', 'any-event', samples.grant],
    ['action', 'any-event', samples.action],
    ['execution', 'any-event', samples.execution],
    ['adjustment', 'any-event', samples.adjustment],
    ['approval', 'any-event', samples.approval],
    ['revocation', 'any-event', samples.revocation],
    ['genesis', 'any-event', samples.genesis],
    ['checkpoint', 'any-event', samples.checkpoint],
    ['attestation', 'any-event', samples.attestation],
    ['keyEvent', 'any-event', samples.keyEvent],
    ['extension', 'any-event', samples.extension],
    ['key', 'key', samples.key],
    ['noteKey', 'key', samples.noteKey],
    ['trustPolicy', 'trust-policy', samples.trustPolicy],
    ['report', 'report', samples.report],
  ])('judges a changed %s as the schema %s does', (_, schema, document: object) => {
    expect(expectSameVerdict(schema, document)).toBe(true);
    const spots = places(document).map(({ pointer }) => pointer);
    const edit = fc.tuple(
      fc.constantFrom(...spots),
      fc.option(fc.constantFrom(...members), { nil: undefined }),
      fc.option(fc.constantFrom(...edits), { nil: undefined }),
    );
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 2 }), (changes) => {
        let value: unknown = document;
        for (const [spot, member, content] of changes) {
          const pointer = spot + (member === undefined ? '' : `/${member}`);
          if (pointer === '') continue;
          try {
            value = withPlace(value, pointer, content);
          } catch {
            // An earlier edit took away where this one would go.
          }
        }
        // An item that was taken out leaves a hole, which JSON lacks.
        expectSameVerdict(schema, copy(value));
      }),
      { numRuns: 300 },
    );
  });
});
