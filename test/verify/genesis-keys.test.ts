/** The keys that genesis declares: what is wrong with their form is wrong under every policy. */

import { expect, test } from 'vitest';
import type { TrustPolicy } from '../../src/format/schema/generated/types.js';
import { genesis, keyOf, ledger, makeSigner, verify } from '../docs/ledger-kit.js';

const a = makeSigner();
const b = makeSigner();
const entry = keyOf(a, { roles: ['event', 'admin'] });
const pinned: TrustPolicy = { trust_version: '1', keys: [entry] };

test.each<[string, { trust?: TrustPolicy }]>([
  ['no policy', {}],
  ['a policy that pins the key', { trust: pinned }],
])('a key given twice, and one that is not its keyid, are refused under %s', async (_which, options) => {
  const twice = ledger({ event: genesis([entry, entry]), signers: [a] });
  expect((await verify(twice, options)).findings).toMatchObject([
    { code: 'SCHEMA', at: { pointer: '/event/keys/1/keyid' } },
  ]);
  const other = { ...keyOf(b), keyid: entry.keyid };
  const wrong = ledger({ event: genesis([other, entry]), signers: [a] });
  expect((await verify(wrong, options)).findings).toMatchObject([
    { code: 'SCHEMA', at: { pointer: '/event/keys/0/keyid' } },
  ]);
});
