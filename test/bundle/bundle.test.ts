/** Bundles: what they hold, what is proven of it, and that nothing of them can be changed, left out or claimed unseen. */

import { describe, expect, it } from 'vitest';
import {
  decodeBundle,
  formatBundle,
  MAX_REPORT_CHARACTERS,
  MAX_TOOL_CHARACTERS,
  replaceAttachments,
  type Bundle,
  type BundleDecoded,
  type BundleFile,
} from '../../src/proof/bundle/bundle-file.js';
import { isBundle } from '../../src/proof/bundle/bundle-start.js';
import type { BundleOptions } from '../../src/proof/bundle/export-bundle.js';
import { verifyBundle, type VerifyBundleOptions } from '../../src/proof/bundle/verify-bundle.js';
import { encodeCbor, parseCbor } from '../../src/base/cbor/codec.js';
import { MAX_CBOR_ITEMS } from '../../src/base/cbor/scan.js';
import type { CborKey, CborValue, TaggedCbor } from '../../src/base/cbor/value.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { BundleResult } from '../../src/format/schema/generated/types.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { plainPaint } from '../../src/out/text/guide.js';
import { renderBundleResult } from '../../src/out/text/bundle-result.js';
import { leafHash } from '../../src/format/tree/compact-range.js';
import { validatorOf } from '../schema/ajv.js';
import { MAX_TRUST_POLICY_BYTES } from '../../src/rules/trust/trust-policy.js';
import { samplePositions } from '../slow.js';
import { ledgerOf, rememberingBackend } from '../verify/support.js';
import { valueOf } from '../value-of.js';
import { bundleOf, eventOf, exporter, log, seal, sealFixture, type Sealed } from './support.js';

const isResult = validatorOf('bundle-result');
const backend = rememberingBackend();
const run = sealFixture('ledgers/agent-run.jsonl');
const { trust, note } = run;

async function make(options: BundleOptions = {}, of: Sealed = run): Promise<Buffer> {
  return (await bundleOf(of.ledger, { checkpoint: of.note, ...options })).file;
}

async function judge(file: Uint8Array, options: VerifyBundleOptions = { trust }): Promise<BundleResult> {
  const result = await verifyBundle(file, { backend, ...options });
  expect(isResult(result), JSON.stringify(isResult.errors)).toBe(true);
  return result;
}

const codes = ({ problems, findings }: BundleResult): string[] => [
  ...problems.map(({ code }) => code),
  ...findings.filter(({ severity }) => severity === 'error').map(({ code }) => code),
];
const openCodes = ({ not_checked: open }: BundleResult): string[] => open.map(({ code }) => code);
const read = (file: Uint8Array): BundleFile => valueOf(decodeBundle(file));

/** The bundle with some of it changed, by an exporter who signs that. */
async function forge(
  change: (bundle: Bundle) => Partial<Bundle>,
  options: BundleOptions = {},
): Promise<Buffer> {
  const { bundle } = read(await make(options));
  const changed = { ...bundle, ...change(bundle) };
  delete (changed as { exporter?: unknown }).exporter;
  return Buffer.from(formatBundle(changed, exporter));
}

const seqOf = (test: (event: ReturnType<typeof eventOf>) => boolean): number =>
  run.lines.findIndex((line) => test(eventOf(line)));
const principal = 'agent:researcher';
const grantSeq = seqOf(
  ({ authorization }) => (authorization as { kind?: string } | undefined)?.kind === 'grant',
);
const idOf = (seq: number): string =>
  `sha-256:${(eventOf(run.lines[seq])['event_id'] as { b64: string }).b64}`;

describe('a bundle of a whole ledger', () => {
  it('is verified as the ledger is', async () => {
    const result = await judge(await make({ signer: exporter }));
    const report = await verifyLedger(run.ledger, { trust, checkpoints: [{ name: 'note', note }] });
    expect(result).toMatchObject({ verdict: 'ok', exit_status: 0, scope: 'whole' });
    expect(result.report?.grants).toEqual(report.grants);
    expect(result.report?.ledger.root).toBe(report.ledger.root);
    expect(result.counts.by_verdict).toEqual(report.counts.by_verdict);
    expect(result.stretches).toMatchObject([{ from: 0, to: run.lines.length - 1, claim: 'complete' }]);
    expect(openCodes(result)).not.toContain('SELECTION');
    expect(openCodes(result)).toEqual(
      expect.arrayContaining(['AFTER_CHECKPOINT', 'REPORT_AT_EXPORT', 'EXPORTER']),
    );
  });

  it('is undecided without a key of the log, and without a checkpoint', async () => {
    const file = await make();
    const unknown = await judge(file, {});
    expect(unknown).toMatchObject({ verdict: 'undecided', exit_status: 2 });
    expect(codes(unknown)).toEqual(['KEY_UNKNOWN']);
    const bare = await judge((await bundleOf(run.ledger)).file);
    expect(bare).toMatchObject({ verdict: 'undecided', exit_status: 2, tree: { has_checkpoint: false } });
    expect(codes(bare)).toEqual(['CHECKPOINT_MISSING']);
  });

  it('tells of a broken bound, and of broken records', async () => {
    const over = sealFixture('broken/meter-cap-exceeded.jsonl');
    expect(await judge(await make({}, over), { trust: over.trust })).toMatchObject({
      verdict: 'violation',
      exit_status: 3,
    });
    const broken = sealFixture('broken/payload-digest-mismatch.jsonl');
    expect(await judge(await make({}, broken), { trust: broken.trust })).toMatchObject({
      verdict: 'invalid',
      exit_status: 1,
    });
  });

  it('is the same file each time', async () => {
    const options = { signer: exporter, createdAt: '2026-05-01T00:00:00Z' };
    const [a, b] = [await make(options), await make(options)];
    expect(a.equals(b)).toBe(true);
    expect((await judge(a)).bundle.created_at).toBe('2026-05-01T00:00:00Z');
  });

  it('says nothing of the folders that the ledger is in', async () => {
    expect((await make()).includes('ledger.jsonl')).toBe(true);
    const made = await bundleOf(run.ledger, {}, '/secret/place/ledger.jsonl');
    expect(made.file.includes('secret')).toBe(false);
  });
});

describe('a bundle of a selection', () => {
  it('holds what is selected and what that links to, and is proven', async () => {
    const made = await bundleOf(run.ledger, { checkpoint: note, selection: { principal }, signer: exporter });
    const result = await judge(made.file);
    expect(result).toMatchObject({ verdict: 'ok', scope: 'selection' });
    expect(result.records).toMatchObject({ selected: made.selected, linked: made.linked });
    expect(result.records.held).toBeLessThan(run.lines.length);
    const held = read(made.file).bundle.records;
    expect(held.filter((record) => record.isSelected).map(({ seq }) => seq)).toEqual(
      run.lines.flatMap((line, seq) => (eventOf(line)['principal_id'] === principal ? [seq] : [])),
    );
    for (const { seq, line } of held) expect(run.lines[seq]?.equals(line)).toBe(true);
    expect(result.report).toBeUndefined();
    expect(result.report_at_export).toMatchObject({
      verified: false,
      verdict: 'ok',
      records: run.lines.length,
    });
  });

  it('says what rests on the word of another system', async () => {
    const imported = sealFixture('ledgers/imported.jsonl');
    const file = await make({ selection: { principal: 'agent:a1' } }, imported);
    const result = await judge(file, { trust: imported.trust });
    const item = result.not_checked.find(({ code }) => code === 'IMPORTED_AUTHORITY');
    expect(item?.message).toContain('clasper');
    expect(openCodes(await judge(await make({ selection: { principal } })))).not.toContain(
      'IMPORTED_AUTHORITY',
    );
  });

  it('never passes for the ledger', async () => {
    const result = await judge(await make({ selection: { principal } }));
    expect(openCodes(result)).toEqual(
      expect.arrayContaining(['SELECTION', 'BUDGETS', 'SINGLE_USE', 'ABSENCE', 'KEY_CHANGES']),
    );
    const [first = ''] = renderBundleResult(result, 'audit.nrb', plainPaint).split('\n');
    expect(first).toContain('selection');
  });

  it('is made by every criterion', async () => {
    const tool = run.lines.map(eventOf).find((event) => event['tool_name'] !== undefined)?.[
      'tool_name'
    ] as string;
    const selections = [
      { grantId: idOf(grantSeq) },
      { tool },
      { since: '2026-01-01T00:00:00Z', until: '2026-12-31T00:00:00Z' },
      { eventIds: new Set([idOf(grantSeq), idOf(run.lines.length - 1)]) },
    ];
    for (const selection of selections) {
      const result = await judge(await make({ selection }));
      expect(result.verdict).toBe('ok');
      expect(result.records.selected).toBeGreaterThan(0);
    }
  });

  it('finds what is broken among its records, and not what another record may explain', async () => {
    const select = (file: string): { readonly of: Sealed; readonly options: BundleOptions } => {
      const { lines } = sealFixture(file);
      // A record that is not selected makes it a selection.
      const of = seal([...lines, run.lines[3]]);
      const event = eventOf(lines.at(-1) as Buffer);
      const id = `sha-256:${(event['event_id'] as { b64: string }).b64}`;
      return { of, options: { selection: { eventIds: new Set([id]) } } };
    };
    const wrong = select('broken/tool-not-allowed.jsonl');
    const result = await judge(await make(wrong.options, wrong.of), { trust: wrong.of.trust });
    expect(result).toMatchObject({ verdict: 'violation', exit_status: 3, scope: 'selection' });
    expect(codes(result)).toContain('TOOL_NOT_ALLOWED');
    const over = select('broken/meter-cap-exceeded.jsonl');
    const budget = await judge(await make(over.options, over.of), { trust: over.of.trust });
    expect(codes(budget)).toEqual([]);
    expect(openCodes(budget)).toContain('BUDGETS');
  });

  it('holds the adjustments of its grants, and the keys', async () => {
    const adjusted = sealFixture('broken/adjustment-exceeded.jsonl');
    const types = adjusted.lines.map((line) => eventOf(line)['event_type']);
    const seq = types.indexOf('execution');
    const id = `sha-256:${(eventOf(adjusted.lines[seq])['event_id'] as { b64: string }).b64}`;
    const file = await make({ selection: { eventIds: new Set([id]) } }, adjusted);
    const held = read(file).bundle.records.map(({ line }) => eventOf(line)['event_type']);
    expect(held).toContain('adjustment');
    expect(held[0]).toBe('genesis');
  });

  it('leaves out what comes after the checkpoint, and says so', async () => {
    const early = seal(run.lines.slice(0, 10));
    const made = await bundleOf(run.ledger, { checkpoint: early.note, selection: { principal } });
    expect(made.beyond).toBeGreaterThan(0);
    const result = await judge(made.file);
    expect(result).toMatchObject({
      verdict: 'ok',
      records: { beyond: made.beyond },
      tree: { tree_size: 10 },
    });
    const named = { checkpoint: early.note, selection: { eventIds: new Set([idOf(12)]) } };
    await expect(bundleOf(run.ledger, named)).rejects.toMatchObject({ code: 'CHECKPOINT_MISSING' });
  });

  it('is refused under a checkpoint that is not of the ledger', async () => {
    const other = seal([...run.lines.slice(0, 5), ...run.lines.slice(6, 10)]);
    const longer = seal([...run.lines, run.lines[3]]);
    const foreign = sealFixture('ledgers/checkpoints.jsonl');
    const refusals = [
      [other.note, 'FORKED'],
      [longer.note, 'TRUNCATED'],
      [foreign.note, 'ORIGIN_MISMATCH'],
      [Buffer.from('no note'), 'NOTE_MALFORMED'],
    ] as const;
    for (const [checkpoint, code] of refusals) {
      await expect(bundleOf(run.ledger, { checkpoint })).rejects.toMatchObject({ code });
    }
  });
});

describe('a stretch', () => {
  it('without a selection has all of its records, and says whose they are', async () => {
    const result = await judge(await make({ complete: [{ from: 5, to: 12 }] }));
    expect(result).toMatchObject({
      verdict: 'ok',
      scope: 'selection',
      records: { selected: 8, hashes_only: 0 },
    });
    const [stretch] = result.stretches;
    expect(stretch).toMatchObject({ from: 5, to: 12, records: 8, held: 8, claim: 'complete' });
    expect(stretch?.principals?.reduce((sum, each) => sum + each.records, 0)).toBe(8);
    expect(openCodes(result)).not.toContain('HASHES_ONLY');
  });

  it('with a selection has the others as hashes, of which nothing can be said', async () => {
    const complete = [{ from: 5, to: 12 }];
    const result = await judge(await make({ complete, selection: { principal } }));
    expect(result.verdict).toBe('ok');
    expect(result.stretches).toMatchObject([{ claim: 'positions', records: 8 }]);
    expect(result.stretches[0]).not.toHaveProperty('principals');
    expect(openCodes(result)).toContain('HASHES_ONLY');
    expect(result.records.hashes_only).toBeGreaterThan(0);
  });

  it('is refused where no checkpoint covers it', async () => {
    const complete = [{ from: 0, to: run.lines.length }];
    await expect(make({ complete })).rejects.toMatchObject({ code: 'CHECKPOINT_MISSING' });
    await expect(make({ complete: [{ from: 3, to: 2 }] })).rejects.toThrow(RangeError);
    await expect(
      make({
        complete: [
          { from: 0, to: 2 },
          { from: 2, to: 3 },
        ],
      }),
    ).rejects.toThrow(RangeError);
  });
});

describe('a bundle that says more than it holds is invalid', () => {
  const complete = [{ from: 5, to: 12 }];
  const last = 12;

  it.each<[string, string, (bundle: Bundle) => Partial<Bundle>, BundleOptions]>([
    [
      'a record of a stretch dropped',
      'BUNDLE_INCOMPLETE',
      ({ records }) => ({ records: records.filter(({ seq }) => seq !== last) }),
      { complete },
    ],
    ['a stretch lengthened', 'BUNDLE_INCOMPLETE', () => ({ stretches: [{ from: 5, to: 18 }] }), { complete }],
    [
      'genesis dropped',
      'BUNDLE_INCOMPLETE',
      ({ records }) => ({ records: records.slice(1) }),
      { selection: { principal } },
    ],
    [
      'genesis as a hash only, and a report of no origin',
      'BUNDLE_INCOMPLETE',
      ({ records, leaves, report }) => ({
        records: records.slice(1),
        leaves: [{ index: 0, leafHash: leafHash(run.lines[0]) }, ...leaves],
        report: report.replace(/"origin":"[^"]*"/, '"origin":null'),
      }),
      { selection: { eventIds: new Set([idOf(grantSeq)]) } },
    ],
    [
      'a grant that is not there',
      'BUNDLE_INCOMPLETE',
      ({ records }) => ({ records: records.filter(({ seq }) => seq !== grantSeq) }),
      { selection: { grantId: idOf(grantSeq) } },
    ],
    [
      'an event that is not there',
      'BUNDLE_INCOMPLETE',
      () => ({ selection: { eventIds: new Set([idOf(3), idOf(20)]) } }),
      { selection: { eventIds: new Set([idOf(3)]) } },
    ],
    [
      'a record selected that does not fit',
      'SELECTION_MISMATCH',
      ({ records }) => ({ records: records.map((each) => ({ ...each, isSelected: true })) }),
      { selection: { principal } },
    ],
    [
      'a record of a stretch not selected that fits',
      'SELECTION_MISMATCH',
      ({ records }) => ({ records: records.map((each) => ({ ...each, isSelected: false })) }),
      { complete },
    ],
    [
      'a report of fewer records',
      'BUNDLE_INCOMPLETE',
      ({ report }) => ({ report: report.replace(/"records":\d+,"root"/, '"records":1,"root"') }),
      {},
    ],
    [
      'a report of another ledger',
      'BUNDLE_INCOMPLETE',
      ({ report }) => ({ report: report.replace(/"origin":"[^"]*"/, '"origin":"example.com/other"') }),
      {},
    ],
    ['no report', 'BUNDLE_MALFORMED', () => ({ report: '{}' }), {}],
    ['a report that is not canonical', 'BUNDLE_MALFORMED', ({ report }) => ({ report: `${report} ` }), {}],
    ['a policy that is none', 'BUNDLE_MALFORMED', () => ({ policy: '{}' }), {}],
    [
      'a record in the place of another',
      'PROOF_INVALID',
      ({ records }) => ({
        records: records.map((each) => (each.seq === last ? { ...each, line: run.lines[3] } : each)),
      }),
      { complete },
    ],
    [
      'a leaf hash for a record that is not there',
      'PROOF_INVALID',
      ({ records }) => ({
        records: records.filter(({ seq }) => seq !== last),
        leaves: [{ index: last, leafHash: leafHash(Buffer.from('x')) }],
      }),
      { complete },
    ],
    [
      'a hash too few',
      'PROOF_INVALID',
      ({ hashes }) => ({ hashes: hashes.slice(1) }),
      { selection: { principal } },
    ],
    [
      'another tree than the checkpoint',
      'CHECKPOINT_SIZE_MISMATCH',
      ({ tree }) => ({ tree: { ...tree, size: tree.size + 1 } }),
      { selection: { principal } },
    ],
    [
      'another root than the checkpoint',
      'CHECKPOINT_ROOT_MISMATCH',
      ({ tree }) => ({ tree: { ...tree, root: leafHash(Buffer.from('x')) } }),
      { selection: { principal } },
    ],
    [
      'a note that is none',
      'NOTE_MALFORMED',
      () => ({ note: Buffer.from('x') }),
      { selection: { principal } },
    ],
  ])('%s: %s', async (_, code, change, options) => {
    const result = await judge(await forge(change, options));
    expect(result).toMatchObject({ verdict: 'invalid', exit_status: 1 });
    expect(codes(result)).toContain(code);
  });

  it('a grant above left out', async () => {
    const file = await forge(({ records }) => ({ records: records.filter(({ seq }) => seq !== grantSeq) }), {
      selection: { principal },
    });
    const result = await judge(file);
    expect(result.verdict).toBe('invalid');
    expect(codes(result)).toEqual(expect.arrayContaining(['PROOF_INVALID', 'GRANT_NOT_FOUND']));
  });
});

describe('one changed byte', () => {
  const small = seal(run.lines.slice(0, 2));

  it.each<[string, Signer | undefined]>([
    ['signed', exporter],
    ['unsigned', undefined],
  ])('of a %s bundle is found', async (_, signer) => {
    const file = await make({ complete: [{ from: 0, to: 1 }], signer }, small);
    const whole = replaceAttachments(file, [Buffer.from('attached')]);
    expect((await judge(file, { trust: small.trust })).verdict).toBe('ok');
    for (const at of samplePositions(whole.length, 80)) {
      const changed = Uint8Array.from(at < file.length - 1 ? file : whole);
      changed[at] = changed[at] ^ (1 << (at % 8));
      const { verdict } = await verifyBundle(changed, { backend, trust: small.trust });
      expect(verdict, `byte ${at}`).toBe('invalid');
    }
  });

  it('cut off or put after it is found', async () => {
    const file = await make({}, small);
    for (const bytes of [file.subarray(0, -1), Buffer.concat([file, Buffer.of(0)]), Buffer.of()]) {
      expect(codes(await judge(bytes))).toEqual(['BUNDLE_MALFORMED']);
    }
  });

  it('a signature without its tag is found', async () => {
    const file = await make({ signer: exporter }, small);
    const parts = parseCbor(file.subarray(3), new Set([18])) as CborValue[];
    const { value } = parts[4] as TaggedCbor;
    const untagged = Buffer.concat([
      file.subarray(0, 3),
      encodeCbor([...parts.slice(0, 4), value, ...parts.slice(5)]),
    ]);
    expect(codes(await judge(untagged))).toEqual(['BUNDLE_MALFORMED']);
  });

  it('the signature taken off, and one by another key, are found', async () => {
    const file = await make({ signer: exporter }, small);
    const parts = parseCbor(file.subarray(3), new Set([18])) as CborValue[];
    const without = Buffer.concat([file.subarray(0, 3), encodeCbor([...parts.slice(0, 4), null, []])]);
    expect(codes(await judge(without))).toEqual(['BUNDLE_MALFORMED']);
    const other = parseCbor((await make({ signer: log }, small)).subarray(3), new Set([18])) as CborValue[];
    const swapped = [...parts.slice(0, 4), other[4], []];
    const result = await judge(Buffer.concat([file.subarray(0, 3), encodeCbor(swapped)]));
    expect(codes(result)).toContain('BUNDLE_SIGNATURE_INVALID');
    expect(result.bundle.exporter?.signature).toBe('invalid');
  });
});

describe('the exporter', () => {
  it('is told of as pinned, as of the ledger, or as nobody known', async () => {
    const knownBy = async (signer: Signer, options: VerifyBundleOptions): Promise<unknown> =>
      (await judge(await make({ signer }), options)).bundle.exporter?.known_by;
    expect(await knownBy(log, { trust })).toBe('trust-policy');
    expect(await knownBy(exporter, { trust })).toBe('nobody');
    expect(openCodes(await judge(await make({ signer: log })))).not.toContain('EXPORTER');
  });

  it('may have a P-256 key', async () => {
    const result = await judge(await make({ signer: createSigner(generatePrivateKey('p256')) }));
    expect(result).toMatchObject({ verdict: 'ok', bundle: { exporter: { signature: 'valid' } } });
  });
});

describe('a checkpoint that the user holds', () => {
  it('of the same size must have the same root; others are not checked against a selection', async () => {
    const file = await make({ selection: { principal } });
    const forked = seal([...run.lines.slice(0, -1), run.lines[2]]);
    const at = (held: Buffer): VerifyBundleOptions => ({
      trust,
      checkpoints: [{ name: 'held', note: held }],
    });
    expect((await judge(file, at(note))).verdict).toBe('ok');
    expect(codes(await judge(file, at(forked.note)))).toContain('FORKED');
    expect(openCodes(await judge(file, at(seal(run.lines.slice(0, 4)).note)))).toContain('ANCHORS');
    expect((await judge(await make(), at(seal(run.lines.slice(0, 4)).note))).verdict).toBe('ok');
  });
});

describe('decodeBundle', () => {
  const content = async (): Promise<Map<CborKey, CborValue>> =>
    new Map(
      parseCbor(read(await make({ complete: [{ from: 2, to: 3 }] })).content) as Map<CborKey, CborValue>,
    );
  const build = async (parts: CborValue[]): Promise<BundleDecoded> => {
    const file = await make();
    return decodeBundle(Buffer.concat([file.subarray(0, 3), encodeCbor(parts)]));
  };
  const withContent = async (changed: CborValue, attachments: CborValue[] = []): Promise<BundleDecoded> => {
    const bytes = encodeCbor(changed);
    return build(['northroot-bundle', 1, new Uint8Array(32), bytes, null, attachments]);
  };

  it('reads what formatBundle wrote', async () => {
    expect(await withContent(await content())).toHaveProperty('ok', true);
  });

  it('is given nothing by formatBundle that it would not read', async () => {
    const { bundle } = read(await make({ complete: [{ from: 2, to: 3 }] }));
    const leaves = Array.from({ length: Math.ceil(MAX_CBOR_ITEMS / 3) }, () => ({ index: 4, leafHash: '' }));
    expect(() => formatBundle({ ...bundle, leaves })).toThrow(
      expect.objectContaining({ code: 'BUNDLE_TOO_LARGE' }) as Error,
    );
  });

  it.each<[string, CborKey, CborValue]>([
    ['a member that is not known', 'more', 1],
    [
      'a place twice',
      'records',
      [
        [0, true, Buffer.from('{}')],
        [0, true, Buffer.from('{}')],
      ],
    ],
    ['a place outside the tree', 'records', [[99, true, Buffer.from('{}')]]],
    ['a line of no bytes', 'records', [[0, true, new Uint8Array()]]],
    ['a line that is two', 'records', [[0, true, Buffer.from('{}\n{}')]]],
    ['a line that is too long', 'records', [[0, true, new Uint8Array(65_536)]]],
    ['a record of two parts', 'records', [[0, true]]],
    ['a leaf for a record that is there', 'leaves', [[0, new Uint8Array(32)]]],
    ['a hash of 31 bytes', 'hashes', [new Uint8Array(31)]],
    [
      'stretches that overlap',
      'stretches',
      [
        [0, 3],
        [3, 4],
      ],
    ],
    ['a stretch that runs backwards', 'stretches', [[3, 2]]],
    ['a stretch beyond the tree', 'stretches', [[3, 99]]],
    ['more stretches than there may be', 'stretches', Array.from({ length: 1_001 }, (_, i) => [i, i])],
    ['a selection of another kind', 'selection', new Map([['who', 'agent:a1']])],
    ['a principal that is none', 'selection', new Map([['principal', 'x']])],
    ['events out of order', 'selection', new Map([['events', [idOf(3), idOf(1)].sort().reverse()]])],
    ['a grant that is no id', 'selection', new Map([['grant', 'sha-256:x']])],
    ['a time that is none', 'created_at', 'today'],
    ['a number less than 0', 'beyond', -1],
    ['a tree without a root', 'tree', [3]],
    ['an exporter without a signature', 'exporter', 'ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'],
    ['a key that is none', 'exporter', 'ed25519:x'],
    ['a report that is no text', 'report', new Map()],
    ['a report that is too long', 'report', ' '.repeat(MAX_REPORT_CHARACTERS + 1)],
    ['a policy that is too long', 'policy', ' '.repeat(MAX_TRUST_POLICY_BYTES + 1)],
    ['a tool with a name that is too long', 'tool', ['x'.repeat(MAX_TOOL_CHARACTERS + 1), '1']],
    ['a tool with a version that is too long', 'tool', ['x', 'x'.repeat(MAX_TOOL_CHARACTERS + 1)]],
  ])('refuses %s', async (_, key, value) => {
    const changed = await content();
    changed.set(key, value instanceof Uint8Array ? new Uint8Array(value) : value);
    expect(await withContent(changed)).toHaveProperty('fault.code', 'BUNDLE_MALFORMED');
  });

  it('refuses another version, a content without a member, and contents out of order', async () => {
    const bytes = encodeCbor(await content());
    const digest = new Uint8Array(32);
    expect(await build(['northroot-bundle', 2, digest, bytes, null, []])).toHaveProperty(
      'fault.code',
      'BUNDLE_MALFORMED',
    );
    expect(await build(['northroot-bundle', 1, digest, bytes, null])).toHaveProperty(
      'fault.code',
      'BUNDLE_MALFORMED',
    );
    const less = await content();
    less.delete('hashes');
    expect(await withContent(less)).toHaveProperty('fault.code', 'BUNDLE_MALFORMED');
    const contents = [Buffer.from('a'), Buffer.from('b')].map((each) => new Uint8Array(each));
    const results = [
      await withContent(await content(), contents),
      await withContent(await content(), contents.reverse()),
    ];
    expect(results.filter(({ ok }) => !ok)).toHaveLength(1);
  });

  it('isBundle tells a bundle by its first bytes, and nothing else', async () => {
    const file = await make();
    expect(isBundle(file.subarray(0, 21))).toBe(true);
    expect(isBundle(file.subarray(0, 20))).toBe(false);
    expect(isBundle(ledgerOf(run.lines))).toBe(false);
  });
});

it('a bundle of as many leaf hashes as it may hold is judged', async () => {
  const size = 300_000;
  const [record] = valueOf(decodeBundle(await make())).bundle.records;
  const leaves = Array.from({ length: size - 1 }, (_, n) => ({ index: n + 1, leafHash: 'x'.repeat(32) }));
  const bundle: Bundle = {
    ...valueOf(decodeBundle(await make())).bundle,
    tree: { size, root: 'x'.repeat(32) },
    records: [record],
    leaves,
    hashes: [],
    stretches: [{ from: 0, to: size - 1 }],
  };
  const { problems, stretches } = await judge(formatBundle(bundle), {});
  expect(problems.map(({ code }) => code)).toContain('PROOF_INVALID');
  expect(stretches).toMatchObject([{ records: size, held: 1, claim: 'positions' }]);
});
