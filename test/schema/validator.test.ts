import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SHAPES } from '../../src/format/schema/generated/shapes.js';
import { validatorOf } from '../../src/format/schema/validator.js';
import { places, withPlace } from './mutate.js';
import * as samples from './samples.js';

/** The same schemas, compiled by ajv. */
const ajv = new Ajv2020({ strict: false, allErrors: true, discriminator: true, messages: false });
for (const [name, shape] of Object.entries(SHAPES)) ajv.addSchema(shape, `${name}.json`);

const SAMPLES: readonly [string, unknown][] = [
  ['authorization', samples.grant],
  ['authorization', samples.action],
  ['execution', samples.execution],
  ['adjustment', samples.adjustment],
  ['approval', samples.approval],
  ['revocation', samples.revocation],
  ['genesis', samples.genesis],
  ['checkpoint', samples.checkpoint],
  ['attestation', samples.attestation],
  ['key-event', samples.keyEvent],
  ['event', samples.extension],
  ['record', samples.record],
  ['key', samples.key],
  ['trust-policy', samples.trustPolicy],
  ['report', samples.report],
];

function ownErrors(ref: string, value: unknown): unknown[] {
  const validate = validatorOf(ref);
  if (validate(value)) return [];
  return (validate.errors ?? []).map(({ instancePath, keyword, member }) => [instancePath, keyword, member]);
}

function errorsOfAjv(ref: string, value: unknown): unknown[] {
  const validate = ajv.getSchema(ref) as ValidateFunction;
  if (validate(value)) return [];
  return (validate.errors ?? []).slice(0, 1000).map(({ instancePath, keyword, params }) => {
    const { missingProperty, additionalProperty, tag } = params as Record<string, string | undefined>;
    return [instancePath, keyword, missingProperty ?? additionalProperty ?? tag];
  });
}

describe('a validator', () => {
  const junk = fc.oneof(
    fc.constantFrom<unknown>(
      ...[null, true, 0, -1, 1.5, '', 'x', 'allow', 'action', '\u{1f600}'.repeat(70), 'a'.repeat(5000), []],
      ...[
        {},
        { t: 'int', v: 'x' },
        { t: 5 },
        { t: 'none' },
        { alg: 'sha-256', b64: 'x' },
        Array(1200).fill(5),
      ],
    ),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const members = fc.constantFrom('a/b', '~', 'constructor', 'n'.repeat(300), 't', 'kind', 'grant_event_id');

  it.each(SAMPLES)('of %s finds what ajv finds, in its order', (name, sample) => {
    const ref = `${name}.json`;
    expect(ownErrors(ref, sample)).toEqual([]);
    const spots = places(sample).map(({ pointer }) => pointer);
    const edit = fc.record({
      spot: fc.constantFrom(...spots),
      member: fc.option(members, { nil: undefined, freq: 2 }),
      value: fc.option(junk, { nil: undefined }),
    });
    let faulty = 0;
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 4 }), (edits) => {
        let value = sample;
        for (const each of edits) {
          const pointer = `${each.spot}${each.member === undefined ? '' : `/${each.member.replace('~', '~0').replace('/', '~1')}`}`;
          try {
            value = pointer === '' ? each.value : withPlace(value, pointer, each.value);
          } catch {
            // An earlier edit took away where this one would go.
          }
        }
        const expected = errorsOfAjv(ref, value);
        expect(ownErrors(ref, value)).toEqual(expected);
        if (expected.length > 0) faulty++;
      }),
      { numRuns: 300 },
    );
    expect(faulty).toBeGreaterThan(100);
  });

  it('looks at members that cannot be listed', () => {
    const hide = (value: object): object =>
      Object.defineProperty(value, 'event_id', { value: 42, enumerable: false });
    const { event_id: id, ...members } = samples.grant;
    expect(id).toBeDefined();
    const inherited = Object.assign(Object.create(hide({})) as object, members);
    const own = hide({ ...members });
    for (const value of [inherited, own]) {
      const expected = errorsOfAjv('authorization.json', value);
      expect(expected).toEqual([['/event_id', 'type', undefined]]);
      expect(ownErrors('authorization.json', value)).toEqual(expected);
    }
  });

  it('keeps the first thousand errors', () => {
    const validate = validatorOf('approval.json');
    const members = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`m${i}`, i]));
    expect(validate({ ...samples.approval, ...members })).toBe(false);
    expect(validate.errors).toHaveLength(1000);
    expect(validate.errors?.at(-1)).toMatchObject({ keyword: 'additionalProperties', member: 'm999' });
    expect(validate(samples.approval)).toBe(true);
    expect(validate.errors).toBeUndefined();
  });

  it('is of a schema that there is', () => {
    expect(() => validatorOf('none.json')({})).toThrow(RangeError);
  });
});
