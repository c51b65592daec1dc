/** Patterns of principals, prepared: they match what each alone does, and the cost is not their number. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { coversPrincipal, makePrincipalSet } from '../../src/base/value/principal-set.js';
import { matchesPrincipalPattern } from '../../src/base/value/principal.js';

const name = fc.string({ unit: fc.constantFrom('a', 'b', ':', '~', 'Z'), maxLength: 4 });
const principal = fc.tuple(fc.constantFrom('agent:', 'org:'), name).map(([kind, rest]) => `${kind}a${rest}`);
const pattern = fc.oneof(
  principal,
  principal.map((prefix) => `${prefix}*`),
  fc.constantFrom('*', 'agent:*', 'org:*', 'a*', 'agent*'),
);

it('matches what one of the patterns matches', () => {
  fc.assert(
    fc.property(fc.array(pattern, { maxLength: 8 }), fc.array(principal), (patterns, ids) => {
      const set = makePrincipalSet(patterns);
      for (const id of [...ids, ...patterns.map((each) => each.replace('*', ''))])
        expect(coversPrincipal(set, id)).toBe(patterns.some((each) => matchesPrincipalPattern(each, id)));
    }),
    { numRuns: 2_000 },
  );
});

it('looks at few of many patterns', () => {
  const { ids, prefixes } = makePrincipalSet(Array.from({ length: 4_000 }, (_, n) => `agent:x${n}y*`));
  let looks = 0;
  const counted = new Proxy(prefixes, {
    get(target, member) {
      looks += 1;
      return Reflect.get(target, member) as unknown;
    },
  });
  for (const id of ['agent:x3999y', 'agent:x17yz', 'agent:', 'service:s'])
    coversPrincipal({ ids, prefixes: counted }, id);
  expect(looks).toBeLessThan(100);
});
