/** Whatever a file holds: nothing is thrown, every item is accounted for, and the same files give the same reading. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cgf } from '../../../src/hosts/cgf/index.js';
import {
  evaluatePolicy,
  policyInput,
  type PolicyResult,
  readPolicyBundle,
} from '../../../src/hosts/cgf/policy.js';
import { SearchBudget } from '../../../src/hosts/cgf/regex.js';
import { eventsOfClaims } from '../../../src/hosts/shared/claims.js';
import { decodeSourceJson, type SourceObject } from '../../../src/base/json/source-json.js';
import { inTime } from '../../in-time.js';
import { hasRecordings, recordedText } from '../recorded.js';
import { DOWN, fileOf, HTTP, LANGGRAPH, LIVE, linesOf, PACK, read, SERVER } from './kit.js';

/** Texts that replace members of recorded lines. */
const VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  1e308,
  '',
  'x'.repeat(2000),
  '__proto__',
  '\u0000\u{1F600}',
  [],
  {},
  [[{}]],
  'ALLOW',
  'BLOCK',
  'dec-1',
];

type Path = readonly string[];

function pathsOf(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([name, member]) => pathsOf(member, [...at, name]))];
}

function replaced(value: unknown, path: Path, by: unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return by;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }) as Record<
    string,
    unknown
  >;
  if (by === undefined && rest.length === 0) delete copy[name];
  else copy[name] = replaced(copy[name], rest, by);
  return copy;
}

/** A recording with some members of some lines missing or replaced, lines repeated, in another order. */
function mutated(lines: readonly unknown[]): fc.Arbitrary<unknown[]> {
  const line = fc.nat({ max: lines.length - 1 }).chain((i) => {
    const paths = pathsOf(lines[i]);
    return fc
      .record({
        path: fc.constantFrom(...paths),
        by: fc.option(fc.constantFrom(...VALUES), { nil: undefined }),
        isSame: fc.boolean(),
      })
      .map(({ path, by, isSame }) => (isSame || path.length === 0 ? lines[i] : replaced(lines[i], path, by)));
  });
  return fc.array(line, { maxLength: 24 });
}

function expectSound(files: readonly { name: string; bytes: Uint8Array }[]): void {
  const reading = read(files);
  const ids = reading.claims.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { rule, code } of reading.findings) {
    expect([...cgf.rules.map(({ id }) => id), 'INPUT']).toContain(rule);
    expect(code).toMatch(/^[A-Z0-9_]{1,64}$/);
  }
  const seen = new Set<string>();
  for (const claim of reading.claims) {
    if (claim.kind === 'execution' && claim.authorization !== undefined)
      expect(seen).toContain(claim.authorization);
    seen.add(claim.id);
  }
  eventsOfClaims(reading.claims, { system: 'cgf' });
  expect(read(files)).toEqual(reading);
}

describe.skipIf(!hasRecordings)('mutated recordings', () => {
  it.each([LANGGRAPH, SERVER, LIVE, DOWN, HTTP])('of %s are read', (path) => {
    const lines = recordedText(path)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    fc.assert(
      fc.property(mutated(lines), (edited) => {
        expectSound([linesOf(edited as object[])]);
      }),
      { numRuns: 60 },
    );
  });

  it('of a replay pack are read', () => {
    const pack: unknown = JSON.parse(recordedText(PACK));
    fc.assert(
      fc.property(fc.constantFrom(...pathsOf(pack)), fc.constantFrom(...VALUES), (path, by) => {
        expectSound([fileOf(JSON.stringify(replaced(pack, path, by), null, 1))]);
      }),
      { numRuns: 60 },
    );
  });
});

describe('hostile files', () => {
  it.each([
    ['nothing', ''],
    ['blank lines', '\n \n\t\n'],
    ['no JSON', '{"event_type":\n}'],
    ['a key twice', '{"event_type":"errors","event_type":"errors","timestamp":1,"payload":{}}\n'],
    ['an array', '[1,{"event_type":"decision_made","timestamp":1,"payload":{}}]'],
    ['deep nesting', `${'['.repeat(70)}${']'.repeat(70)}\n`],
    [
      'prototypes',
      '{"event_type":"__proto__","timestamp":1,"payload":{"__proto__":1,"proposal_id":"constructor"}}\n',
    ],
  ])('%s', (_, text) => {
    expectSound([fileOf(text)]);
  });

  it('any text', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expectSound([{ name: 'any', bytes }]);
        cgf.recognises({ name: 'any', bytes });
      }),
      { numRuns: 200 },
    );
  });

  it('the same file twice gives nothing more', () => {
    const line = {
      event_type: 'errors',
      schema_version: '0.3.0',
      adapter_id: 'a',
      timestamp: 1,
      payload: { stage: 'x' },
    };
    const once = read([linesOf([line])]);
    const twice = read([linesOf([line], 'a'), linesOf([line], 'b')]);
    expect(twice.claims.map(({ id }) => id)).toEqual(once.claims.map(({ id }) => id));
    expect(twice.items.map(({ fate }) => fate)).toEqual(['evidence', 'repeated']);
  });

  it('a hundred thousand lines about one proposal', () => {
    const event = { schema_version: '0.3.0', adapter_id: 'a', proposal_id: 'p', decision_id: 'd' };
    const lines = ['action_allowed', 'outcome_logged', 'decision_made', 'constraint_failed'].map(
      (event_type, i) => `${JSON.stringify({ ...event, event_type, timestamp: i, payload: { n: i } })}\n`,
    );
    const reading = read([fileOf(lines.join('').repeat(25_000))]);
    expect(reading.items).toHaveLength(100_000);
    expect(reading.items.filter(({ reason }) => reason === 'TOO_MANY_STATEMENTS')).toHaveLength(99_488);
  });

  it('nine thousand rules that are slow to search for are not all searched for, and hide no other decision', () => {
    const valueOf = (value: object): SourceObject => {
      const decoded = decodeSourceJson(Buffer.from(JSON.stringify(value)));
      return (decoded.ok ? decoded.value : undefined) as SourceObject;
    };
    const when = [{ field: 'proposal.target_path', op: 'regex', value: '(?:a?){300}z' }];
    const rules = Array.from({ length: 9_000 }, (_, n) => ({ id: `r${n}`, decision: 'BLOCK', when }));
    const bundle = readPolicyBundle(valueOf({ policy_version: '1', rules }))!;
    const budget = new SearchBudget();
    const decide = (path: string): PolicyResult => {
      const input = policyInput(valueOf({ action_params: { target_path: path } }), undefined);
      return inTime(() => evaluatePolicy(bundle, input, budget));
    };
    for (let n = 0; n < 100; n++) expect(decide('a'.repeat(4_000))).toMatchObject({ decided: false });
    expect(decide('z')).toMatchObject({ decided: true, rule: { id: 'r0' } });
  });

  it('a bundle of other types is no bundle', () => {
    for (const text of ['1', '{}', '{"rules":[1]}', '{"rules":[{"id":"a"}]}', '{"rules":{}}']) {
      const decoded = decodeSourceJson(Buffer.from(text));
      expect(decoded.ok && readPolicyBundle(decoded.value)).toBeUndefined();
    }
  });

  it('refuses options and aids that it does not know', () => {
    expect(() => cgf.read([], { aid: {} } as never)).toThrow(TypeError);
    expect(() => cgf.read([], { aids: { profile: fileOf('{}') } })).toThrow(RangeError);
  });
});

it('a request whose path names endpoints again and again costs what its length does', () => {
  const path = `${'/v1/health?'.repeat(200_000)}\n`;
  const file = linesOf([{ path, request: {}, response: {} }]);
  expect(inTime(() => read([file])).items).toHaveLength(1);
});
