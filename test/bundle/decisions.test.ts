/** Bundles of single records take in what decides on these: approvals, rejects, earlier uses and revocations. */

import { describe, expect, it } from 'vitest';
import { decodeBundle, formatBundle } from '../../src/proof/bundle/bundle-file.js';
import { verifyBundle } from '../../src/proof/bundle/verify-bundle.js';
import type { BundleResult } from '../../src/format/schema/generated/types.js';
import { leafHash } from '../../src/format/tree/compact-range.js';
import { multiProofRanges } from '../../src/format/tree/multi-proof.js';
import { RangeHasher } from '../../src/format/tree/proof.js';
import { runVerification } from '../../src/rules/verify/run-verification.js';
import type { VerifiedRecord } from '../../src/rules/verify/verified-record.js';
import { bytesSource } from '../bytes-source.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { sample } from '../slow.js';
import { valueOf } from '../value-of.js';
import { linesOf, rememberingBackend } from '../verify/support.js';
import { makeChained } from './chained.js';
import { bundleOf, eventOf, seal, sealFixture, type Sealed } from './support.js';

const backend = rememberingBackend();

const cases = [...new Map(FILE_CASES.map((each) => [each.ledger, each])).values()].filter(({ ledger }) =>
  /approv|reject|revoke|suspen|resum|stopped|start/.test(ledger),
);

/** The codes of a record that approvals and revocations decide on. */
function decided({ findings }: VerifiedRecord): string {
  const codes = findings.map(({ code }) => code);
  return codes.filter((code) => code === 'GRANT_REVOKED' || code.startsWith('APPROVAL_')).join(' ');
}

describe.each(sample(cases, 30).map((each) => [each.ledger, each] as const))('%s', (file, fixture) => {
  it('gives bundles of each record that say of it what the ledger says', async () => {
    const { trust, witnessPolicy } = optionsOf(fixture);
    const options = { trust, witnessPolicy };
    const ledger = fixtureBytes(file);
    const inLedger = new Map<string, string>();
    const { state } = await runVerification(bytesSource(ledger, file), {
      ...options,
      backend,
      onRecord: (record) => {
        const id = record.examined?.eventId;
        if (id !== undefined && !inLedger.has(id)) inLedger.set(id, decided(record));
        return undefined;
      },
    });
    if (state.layout !== 'records') return;
    const { note: checkpoint } = seal(linesOf(ledger));
    for (const [id, expected] of inLedger) {
      const selection = { eventIds: new Set([`sha-256:${id}`]) };
      const made = await bundleOf(ledger, { ...options, checkpoint, selection });
      const found: string[] = [];
      const onRecord = (record: VerifiedRecord, isSelected: boolean): undefined => {
        if (isSelected) found.push(decided(record));
      };
      await verifyBundle(made.file, { ...options, backend, onRecord });
      expect(found[0], id).toBe(expected);
    }
  });
});

const openCodes = ({ not_checked: open }: BundleResult): string[] => open.map(({ code }) => code);

const typesOf = (lines: readonly Uint8Array[]): unknown[] =>
  lines.map((line) => {
    const { event_type: type, decision, effect } = eventOf(line);
    return decision ?? effect ?? type;
  });

async function bundleOfSeq(of: Sealed, seq: number): Promise<Buffer> {
  const { b64 } = eventOf(of.lines[seq])['event_id'] as { b64: string };
  const selection = { eventIds: new Set([`sha-256:${b64}`]) };
  return (await bundleOf(of.ledger, { checkpoint: of.note, selection })).file;
}

const linesIn = (file: Uint8Array): Uint8Array[] =>
  valueOf(decodeBundle(file)).bundle.records.map(({ line }) => line);

/** The bundle without some of its records, with a proof that is right. */
function leaveOut(of: Sealed, file: Uint8Array, seqs: readonly number[]): Buffer {
  const { bundle } = valueOf(decodeBundle(file));
  const records = bundle.records.filter(({ seq }) => !seqs.includes(seq));
  const hasher = new RangeHasher(
    multiProofRanges(
      records.map(({ seq }) => seq),
      of.lines.length,
    ),
  );
  for (const line of of.lines) hasher.push(leafHash(line));
  return Buffer.from(formatBundle({ ...bundle, records, hashes: hasher.roots() }));
}

const judge = (of: Sealed, file: Uint8Array): Promise<BundleResult> =>
  verifyBundle(file, { backend, trust: of.trust });

const found = ({ problems, findings }: BundleResult): string[] =>
  [...problems, ...findings].map(({ code }) => code);

describe('a bundle of one record', () => {
  it('holds its action, both approvals, and their grant', async () => {
    const of = sealFixture('ledgers/approvals-of-two.jsonl');
    const file = await bundleOfSeq(of, 5);
    expect(typesOf(linesIn(file))).toEqual(['genesis', 'allow', 'approve', 'approve', 'allow', 'execution']);
    expect(await judge(of, file)).toMatchObject({ verdict: 'ok', records: { selected: 1, linked: 5 } });
    expect(file.length).toBeLessThan(15_000);
  });

  it('holds the request that an approval answers', async () => {
    const of = sealFixture('ledgers/approvals.jsonl');
    const file = await bundleOfSeq(of, 5);
    const held = linesIn(file);
    expect(typesOf(held).slice(0, 6)).toEqual(['genesis', 'allow', 'deny', 'approve', 'allow', 'execution']);
    expect((await judge(of, file)).verdict).toBe('ok');
  });

  it('without an approval that its action names is invalid', async () => {
    const of = sealFixture('ledgers/approvals-of-two.jsonl');
    const result = await judge(of, leaveOut(of, await bundleOfSeq(of, 5), [3]));
    expect(result.verdict).toBe('invalid');
    expect(found(result)).toEqual(['APPROVAL_NOT_FOUND', 'APPROVAL_MISSING']);
  });

  it.each<[string, string, number, number, string]>([
    ['a reject', 'broken/approval-missing-taken-back.jsonl', 5, 4, 'APPROVAL_MISSING'],
    ['a revocation', 'broken/grant-revoked.jsonl', 5, 3, 'GRANT_REVOKED'],
    ['an earlier use', 'broken/approval-reused-alone.jsonl', 5, 3, 'APPROVAL_REUSED'],
  ])('holds %s, and without it says that it cannot know', async (_, name, seq, decisive, code) => {
    const of = sealFixture(name);
    const file = await bundleOfSeq(of, seq);
    const result = await judge(of, file);
    expect(result.verdict).toBe('violation');
    expect(found(result)).toContain(code);
    const less = await judge(of, leaveOut(of, file, [decisive]));
    expect(found(less)).not.toContain(code);
    expect(openCodes(less)).toContain('WITHDRAWALS');
  });

  it('lets approvals, rejects and revocations count that follow what is not there', async () => {
    const of = seal(makeChained());
    const judged = async (seq: number): Promise<unknown> => {
      const result = await judge(of, await bundleOfSeq(of, seq));
      expect(openCodes(result)).toContain('LINKS');
      return { verdict: result.verdict, found: found(result) };
    };
    expect(await judged(4)).toEqual({ verdict: 'ok', found: [] });
    expect(await judged(8)).toEqual({ verdict: 'violation', found: ['APPROVAL_MISSING'] });
    expect(await judged(12)).toEqual({ verdict: 'violation', found: ['GRANT_REVOKED'] });
  });
});
