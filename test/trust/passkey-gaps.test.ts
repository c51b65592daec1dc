/** Which passkeys are not the only way to approve in a name. */

import { expect, it } from 'vitest';
import { listPasskeyGaps } from '../../src/rules/trust/passkey-gaps.js';
import type { Key } from '../../src/format/schema/generated/types.js';

type Role = Key['roles'][number];

/** Entries need not be usable keys for this. */
function key(keyid: string, principals: string[], roles: Role[] = ['event'], more: Partial<Key> = {}): Key {
  return { keyid, principals, roles, public_key: 'p256:', ...more };
}

const passkey = (keyid: string, ...principals: string[]): Key =>
  key(keyid, principals, ['event'], { webauthn: { rp_id: 'example.com', origins: ['https://example.com'] } });

const gapsOf = (...keys: Key[]) => listPasskeyGaps(keys).map((gap) => Object.values(gap));

it.each<[string, Key, boolean]>([
  ['the same principal', key('k', ['human:olga']), true],
  ['a pattern that covers it', key('k', ['human:*']), true],
  ['everybody', key('k', ['*'], ['authority']), true],
  ['another principal', key('k', ['human:olga2', 'human:ol', 'agent:*']), false],
  ['a pattern of others', key('k', ['human:olga/*']), false],
  ['no role that approves', key('k', ['*'], ['checkpoint', 'witness', 'admin']), false],
  ['another passkey', passkey('k', '*'), false],
])('a key for %s', (_name, other, isGap) => {
  const gaps = gapsOf(passkey('p', 'human:olga'), other).filter(([of]) => of === 'p');
  expect(gaps).toEqual(isGap ? [['p', 'human:olga', 'k']] : []);
});

it('patterns of passkeys meet what they overlap', () => {
  const team = passkey('p', 'org:x', 'human:team/*');
  expect(gapsOf(team, key('k', ['human:team/ben']))).toEqual([['p', 'human:team/*', 'k']]);
  expect(gapsOf(team, key('k', ['human:team/ops/*']))).toEqual([['p', 'human:team/*', 'k']]);
  expect(gapsOf(team, key('k', ['human:teams']))).toEqual([]);
  const others = ['human:a', 'human:team', 'human:team.', 'human:team0*', 'zoo:*'];
  expect(gapsOf(team, key('k', others))).toEqual([]);
  expect(gapsOf(team, key('k', others), key('l', ['human:team/']))).toEqual([['p', 'human:team/*', 'l']]);
});

it('many keys are looked at once each, whatever their patterns', () => {
  const plain = Array.from({ length: 10_000 }, (_, n) => key(`k${n}`, [`agent:a${n}`, `agent:b${n}/*`]));
  const people = Array.from({ length: 10_000 }, (_, n) => passkey(`p${n}`, `human:h${n}`, `org:${n}/*`));
  expect(gapsOf(...plain, ...people)).toEqual([]);
  expect(gapsOf(...plain, ...people, key('one', ['human:h4999']))).toEqual([['p4999', 'human:h4999', 'one']]);
});
