/** Contents beside a ledger: attached to bundles, and found by their digests. */

import { describe, expect, it } from 'vitest';
import { attachContents, findContent, listNamedDigests } from '../../src/proof/bundle/disclose.js';
import { decodeBundle, formatBundle, replaceAttachments } from '../../src/proof/bundle/bundle-file.js';
import {
  digestOf,
  isSalted,
  MAX_NAMED_CHARACTERS,
  MAX_SALTED_BYTES,
} from '../../src/proof/bundle/contents.js';
import { verifyBundle } from '../../src/proof/bundle/verify-bundle.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { plainPaint } from '../../src/out/text/guide.js';
import { renderBundleResult } from '../../src/out/text/bundle-result.js';
import { sha256Digest } from '../../src/base/value/digest.js';
import { event, genesis, keyOf, ledger, makeSigner } from '../docs/ledger-kit.js';
import { linesOf } from '../verify/support.js';
import { valueOf } from '../value-of.js';
import { bundleOf, exporter, opener, seal, sealFixture } from './support.js';

const salted = { salt: 'mR2nUu0qNwGrYV3zD8p1sQ', value: 'approved' };
const plain = Buffer.from('the report\n');
const params = { path: '/etc/hosts' };
const signer = makeSigner();
const named = [plain, canonicalBytes(salted), canonicalBytes(params)].map((bytes) => ({
  event: event('x.note', { context_digest: sha256Digest(bytes) }),
  signers: [signer],
}));
const sealed = seal(linesOf(ledger({ event: genesis([keyOf(signer)]), signers: [signer] }, ...named)));
const loose = (value: object): Buffer => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
const contents = [
  { name: 'report', bytes: plain },
  { name: 'salted', bytes: loose(salted) },
  { name: 'params', bytes: loose(params) },
];

describe('attachContents', () => {
  it('attaches what records name, in the form that they name, and leaves the signature right', async () => {
    const { file } = await bundleOf(sealed.ledger, { checkpoint: sealed.note, signer: exporter });
    const attached = attachContents(file, contents);
    const result = await verifyBundle(attached, { trust: sealed.trust });
    expect(result).toMatchObject({ verdict: 'ok', bundle: { exporter: { signature: 'valid' } } });
    expect(
      result.contents.map(({ digest, salted: isSalted, named_by: by }) => [digest, isSalted, by[0]?.seq]),
    ).toEqual(
      [
        [digestOf(plain), false, 1],
        [digestOf(canonicalBytes(salted)), true, 2],
        [digestOf(canonicalBytes(params)), false, 3],
      ].sort(([a], [b]) => Buffer.compare(bytesOf(a as string), bytesOf(b as string))),
    );
    // Attaching the same again changes nothing, whatever the order.
    expect(Buffer.from(attachContents(attached, contents.toReversed())).equals(attached)).toBe(true);
  });

  it('makes of a bundle with contents what attaching them afterwards makes', async () => {
    const { file } = await bundleOf(sealed.ledger, { checkpoint: sealed.note, signer: exporter });
    const byDigest = new Map([plain, canonicalBytes(params)].map((bytes) => [digestOf(bytes), bytes]));
    const find = (digest: string): Promise<Uint8Array | undefined> => Promise.resolve(byDigest.get(digest));
    const made = await bundleOf(sealed.ledger, {
      checkpoint: sealed.note,
      signer: exporter,
      contents: find,
    });
    expect(made.contents).toBe(2);
    const afterwards = attachContents(
      file,
      contents.filter(({ name }) => name !== 'salted'),
    );
    expect(Buffer.from(made.file).equals(afterwards)).toBe(true);
    const some = await bundleOf(sealed.ledger, {
      checkpoint: sealed.note,
      contents: find,
      complete: [{ from: 1, to: 1 }],
    });
    expect(some.contents).toBe(1);
    expect(listNamedDigests(some.file).has(digestOf(plain))).toBe(true);
    expect(listNamedDigests(some.file).has(digestOf(canonicalBytes(params)))).toBe(false);
    const lie = bundleOf(sealed.ledger, { contents: () => Promise.resolve(Buffer.from('another')) });
    await expect(lie).rejects.toThrow(TypeError);
  });

  it('attaches the parameters of a call once, for its action and its approvals', async () => {
    const of = sealFixture('ledgers/approvals-of-two.jsonl');
    const selection = { principal: 'agent:a1' };
    const { file } = await bundleOf(of.ledger, { checkpoint: of.note, selection });
    const attached = attachContents(file, [{ name: 'params', bytes: Buffer.from('p') }]);
    const { verdict, contents: found } = await verifyBundle(attached, { trust: of.trust });
    expect(verdict).toBe('ok');
    const approvals = found[0]?.named_by.filter(({ pointer }) => pointer === '/tool_params_digest');
    expect(approvals?.map(({ seq }) => seq)).toEqual(expect.arrayContaining([2, 3]));
  });

  it('lists no more of where contents are named than a report has room for, and counts it all', async () => {
    const many = Array.from({ length: 300 }, (_, n) => Buffer.from(`content ${n}`));
    const digests = many.map((bytes) => sha256Digest(bytes));
    let deep: object = digests;
    for (let depth = 0; depth < 40; depth += 1) deep = { ['n'.repeat(250)]: deep };
    const long = { event: event('x.note', { deep }), signers: [signer] };
    const first = { event: genesis([keyOf(signer)]), signers: [signer] };
    const wide = seal(
      linesOf(ledger(first, long, { ...long, event: event('x.note', { deep, text: 'again' }) })),
    );
    const { file } = await bundleOf(wide.ledger, { checkpoint: wide.note });
    const attached = attachContents(
      file,
      many.map((bytes, n) => ({ name: `${n}`, bytes })),
    );
    const result = await verifyBundle(attached, { trust: wide.trust });
    expect(result.verdict).toBe('ok');
    expect(result.contents.map(({ named_total: total }) => total)).toEqual(many.map(() => 2));
    const pointers = result.contents.flatMap(({ named_by: by }) => by.map(({ pointer }) => pointer));
    const characters = pointers.reduce((sum, { length }) => sum + length, 0);
    expect(characters).toBeLessThanOrEqual(MAX_NAMED_CHARACTERS);
    expect(characters).toBeGreaterThan(MAX_NAMED_CHARACTERS - 11_000);
    // Whose places are not listed is named all the same.
    expect(result.contents.some(({ named_by: by }) => by.length === 0)).toBe(true);
    expect(renderBundleResult(result, 'wide.nrb', plainPaint)).not.toContain('by no record');
  });

  it('refuses what no record of the bundle names, and what is no bundle', async () => {
    const { file } = await bundleOf(sealed.ledger, {
      checkpoint: sealed.note,
      complete: [{ from: 1, to: 1 }],
    });
    expect(() => attachContents(file, contents.slice(0, 1))).not.toThrow();
    const refused = (code: string): Error => expect.objectContaining({ code }) as Error;
    expect(() => attachContents(file, contents)).toThrow(refused('CONTENT_NOT_NAMED'));
    expect(() => attachContents(sealed.ledger, contents)).toThrow(refused('BUNDLE_MALFORMED'));
  });

  it('refuses a damaged bundle, of which it would make one with the right digest', async () => {
    const { file } = await bundleOf(sealed.ledger, { checkpoint: sealed.note });
    const damaged = Buffer.from(file);
    const at = damaged.indexOf('"findings_total":') + '"findings_total":'.length;
    damaged.write('7', at);
    const mismatch: unknown = expect.objectContaining({ code: 'BUNDLE_DIGEST_MISMATCH' });
    expect(() => attachContents(damaged, contents)).toThrow(mismatch);
    await expect(findContent(damaged, contents)).rejects.toEqual(mismatch);
  });

  it('is found out where somebody attaches something else', async () => {
    const { file } = await bundleOf(sealed.ledger, { checkpoint: sealed.note });
    const result = await verifyBundle(replaceAttachments(file, [Buffer.from('another')]), {
      trust: sealed.trust,
    });
    expect(result.verdict).toBe('invalid');
    expect(result.problems.map(({ code }) => code)).toEqual(['CONTENT_NOT_NAMED']);
  });

  it('leaves the rest of the file as it is', async () => {
    const { file } = await bundleOf(sealed.ledger, { checkpoint: sealed.note, signer: exporter });
    const { bundle } = valueOf(decodeBundle(attachContents(file, contents)));
    expect(Buffer.from(formatBundle(bundle, exporter)).equals(file)).toBe(true);
  });
});

it('isSalted takes no content apart that is too large to be guessed', () => {
  const of = (length: number): Buffer => {
    const [start, end] = ['{"salt":"mR2nUu0qNwGrYV3zD8p1sQ","value":"', '"}'];
    return Buffer.from(`${start}${'x'.repeat(length - start.length - end.length)}${end}`);
  };
  expect(isSalted(of(MAX_SALTED_BYTES))).toBe(true);
  expect(isSalted(of(MAX_SALTED_BYTES + 1))).toBe(false);
});

describe('findContent', () => {
  it('says which records of a ledger or a bundle name a content, and where', async () => {
    const { file } = await bundleOf(sealed.ledger, { checkpoint: sealed.note });
    for (const from of [opener(sealed.ledger), file]) {
      const found = await findContent(from, [...contents, { name: 'other', bytes: Buffer.from('other') }]);
      expect(found.map(({ total }) => total)).toEqual([1, 1, 1, 0]);
      expect(found[2]?.places).toMatchObject([
        { seq: 3, pointer: '/context_digest', digest: digestOf(canonicalBytes(params)) },
      ]);
    }
  });
});

function bytesOf(digest: string): Buffer {
  return Buffer.from(digest.slice('sha-256:'.length), 'base64url');
}
