/** Bundles, and keys that a ledger adds, revokes or brings along: none of them vouches for more than it can. */

import { describe, expect, it } from 'vitest';
import type { BundleOptions } from '../../src/bundle/export-bundle.js';
import { verifyBundle } from '../../src/bundle/verify-bundle.js';
import type { BundleResult, TrustPolicy } from '../../src/schema/generated/types.js';
import { event, genesis, keyOf, ledger, makeSigner } from '../docs/ledger-kit.js';
import { linesOf } from '../verify/support.js';
import { bundleOf, exporter, seal, type Sealed } from './support.js';

const admin = makeSigner();
const adminKey = keyOf(admin, { roles: ['event', 'admin', 'checkpoint'] });
const exporterKey = keyOf(exporter);
const by = [admin];
const first = { event: genesis([adminKey]), signers: by };
const add = { event: event('key', { action: 'add', key: exporterKey }), signers: by };
const revoke = { event: event('key', { action: 'revoke', key: exporterKey }), signers: by };

/** A ledger that {@link admin} seals, and a policy that pins it. */
function sealed(...items: Parameters<typeof ledger>): Sealed {
  const made = seal(linesOf(ledger(...items)), admin);
  return { ...made, trust: pin(made, [adminKey]) };
}

function pin({ trust }: Sealed, keys: TrustPolicy['keys']): TrustPolicy {
  return { ...trust, keys };
}

async function judge(
  of: Sealed,
  { trust = of.trust, ...options }: BundleOptions & { readonly trust?: TrustPolicy },
  now?: string,
): Promise<BundleResult> {
  const { file } = await bundleOf(of.ledger, { checkpoint: of.note, ...options });
  return verifyBundle(file, { trust, now });
}

const openCodes = ({ not_checked: open }: BundleResult): string[] => open.map(({ code }) => code);

describe('the key that signed a bundle', () => {
  it('is not one that the trust policy pins when the ledger added it', async () => {
    const result = await judge(sealed(first, add), { signer: exporter });
    expect(result).toMatchObject({ verdict: 'ok', bundle: { exporter: { known_by: 'ledger' } } });
    expect(openCodes(result)).toContain('EXPORTER');
  });

  it('is told of as revoked, pinned or not', async () => {
    const of = sealed(first, add, revoke);
    expect(openCodes(await judge(of, { signer: exporter }))).toContain('EXPORTER_REVOKED');
    const pinned = sealed(first, revoke);
    const trust = pin(pinned, [adminKey, exporterKey]);
    const result = await judge(pinned, { signer: exporter, trust });
    expect(result.bundle.exporter?.known_by).toBe('trust-policy');
    expect(openCodes(result)).toContain('EXPORTER_REVOKED');
    expect(openCodes(result)).not.toContain('EXPORTER');
  });
});
