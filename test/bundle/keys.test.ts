/** Bundles, and keys that a ledger adds, revokes or brings along: none of them vouches for more than it can. */

import { describe, expect, it } from 'vitest';
import type { BundleOptions } from '../../src/proof/bundle/export-bundle.js';
import { verifyBundle } from '../../src/proof/bundle/verify-bundle.js';
import type { BundleResult, TrustPolicy } from '../../src/format/schema/generated/types.js';
import {
  checkpoint,
  DIGEST,
  event,
  genesis,
  keyOf,
  ledger,
  makeSigner,
  type Item,
} from '../docs/ledger-kit.js';
import { linesOf } from '../verify/support.js';
import { bundleOf, eventOf, exporter, seal, type Sealed } from './support.js';

const admin = makeSigner();
const adminKey = keyOf(admin, { roles: ['event', 'admin', 'checkpoint'] });
const exporterKey = keyOf(exporter);
const by = [admin];
const first = { event: genesis([adminKey]), signers: by };
const add = { event: event('key', { action: 'add', key: exporterKey }), signers: by };
const revoke = { event: event('key', { action: 'revoke', key: exporterKey }), signers: by };

/** A ledger that {@link admin} seals, and a policy that pins it. */
function sealed(...items: readonly Item[]): Sealed {
  const made = seal(linesOf(ledger(...items)), admin);
  return { ...made, trust: pin(made, [adminKey]) };
}

function pin({ trust }: Sealed, keys: TrustPolicy['keys']): TrustPolicy {
  return { ...trust, keys };
}

async function judge(
  of: Sealed,
  { trust = of.trust, ...options }: BundleOptions & { readonly trust?: TrustPolicy },
): Promise<BundleResult> {
  const { file } = await bundleOf(of.ledger, { checkpoint: of.note, ...options });
  return verifyBundle(file, { trust });
}

const idOf = (line: Uint8Array): string =>
  `sha-256:${(eventOf(line)['event_id'] as { readonly b64: string }).b64}`;
const openCodes = ({ not_checked: open }: BundleResult): string[] => open.map(({ code }) => code);

describe('the checkpoint of a bundle of the whole', () => {
  it('is not one that the user holds', async () => {
    const of = sealed(first, { event: event('x.note'), signers: by });
    expect(openCodes(await judge(of, {}))).toContain('TRUNCATION');
    const { file } = await bundleOf(of.ledger, { checkpoint: of.note });
    const held = await verifyBundle(file, {
      trust: of.trust,
      checkpoints: [{ name: 'held', note: of.note }],
    });
    expect(openCodes(held)).not.toContain('TRUNCATION');
  });

  it('by a key that a revoked one added is not the word of somebody else', async () => {
    const other = keyOf(exporter, { roles: ['event', 'admin', 'checkpoint'] });
    const lines = linesOf(
      ledger(
        first,
        { event: event('key', { action: 'add', key: other }), signers: by },
        { event: event('x.note'), signers: by },
        { event: event('x.note', { text: 'not selected' }), signers: by },
        { event: event('key', { action: 'revoke', key: adminKey }), signers: by },
      ),
    );
    const of = seal(lines, exporter);
    for (const selection of [{}, { eventIds: new Set([idOf(lines[2])]) }]) {
      const { file } = await bundleOf(of.ledger, { checkpoint: of.note, selection });
      const result = await verifyBundle(file);
      expect(result.verdict).toBe('ok');
      expect(openCodes(result)).toContain('REVOKED_KEYS');
    }
  });
});

describe('a bundle of a selection', () => {
  const state = (): Sealed =>
    sealed(
      {
        event: genesis([adminKey], { continues: { ledger_id: DIGEST, tree_size: 3, root: DIGEST } }),
        signers: by,
      },
      { event: event('x.note'), signers: by },
      { event: checkpoint(by), signers: by },
      { event: event('x.note', { text: 'after' }), signers: by },
    );

  it('lists warnings before what is only to be known', async () => {
    const of = sealed(
      { event: genesis() },
      { event: event('foo.bar') },
      { event: event('x.note'), signers: [exporter] },
      { event: event('x.note', { text: 'not selected' }) },
    );
    const eventIds = new Set([idOf(of.lines[1]), idOf(of.lines[2])]);
    const { findings } = await judge(of, { selection: { eventIds } });
    expect(findings.map(({ code, severity }) => [code, severity])).toEqual([
      ['KEY_UNKNOWN', 'warning'],
      ['EVENT_TYPE_UNKNOWN', 'info'],
    ]);
  });

  it('says that roots of checkpoints in it, and the predecessor, were not checked', async () => {
    const of = state();
    const id = idOf(of.lines[2]);
    const result = await judge(of, { selection: { eventIds: new Set([id]) } });
    expect(result).toMatchObject({ verdict: 'ok', scope: 'selection' });
    expect(openCodes(result)).toEqual(expect.arrayContaining(['CHECKPOINT_ROOTS', 'PREDECESSOR']));
  });

  it('and of the whole are judged alike by a policy that bounds the age of checkpoints', async () => {
    const of = state();
    const trust = { ...of.trust, require: { checkpoint_max_age_seconds: 60 } };
    for (const selection of [{}, { eventIds: new Set([idOf(of.lines[1])]) }]) {
      const { file } = await bundleOf(of.ledger, { checkpoint: of.note, selection });
      const result = await verifyBundle(file, { trust, now: '2026-06-01T00:00:00Z' });
      expect(result.verdict).toBe('ok');
      expect(openCodes(result)).toContain('CHECKPOINT_AGE');
    }
  });
});

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
