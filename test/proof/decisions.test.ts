/** Proofs and receipts of approvals and revocations: who may sign these, as far as one record shows. */

import { describe, expect, it } from 'vitest';
import { makeProof } from '../../src/proof/make-proof.js';
import { makeReceipt } from '../../src/proof/make-receipt.js';
import type { ProofTrust } from '../../src/proof/proof-keys.js';
import { type ProofResult, verifyProof } from '../../src/proof/verify-proof.js';
import { type ReceiptResult, verifyReceipt } from '../../src/proof/verify-receipt.js';
import type { Key } from '../../src/format/schema/generated/types.js';
import { eventOf, log, sealFixture, type Sealed } from '../bundle/support.js';
import { rememberingBackend } from '../verify/support.js';
import { opener } from './support.js';

const backend = rememberingBackend();

interface Judged {
  readonly proof: ProofResult;
  readonly receipt: ReceiptResult;
}

/** The proof and the receipt of the first record of a type, judged by the keys of genesis, changed as said. */
async function judge(
  of: Sealed,
  type: string,
  change: (key: Key, signer: string) => Key | undefined = (key) => key,
): Promise<Judged> {
  const seq = of.lines.findIndex((line) => eventOf(line)['event_type'] === type);
  const { signatures } = JSON.parse(of.lines[seq].toString()) as { signatures: { keyid: string }[] };
  const keys = of.trust.keys.flatMap((key) => {
    if (key.keyid === log.publicKey.keyid) return [key];
    return change(key, signatures[0]?.keyid ?? '') ?? [];
  });
  const trust: ProofTrust = { policy: { ...of.trust, keys }, backend };
  const open = opener(of.lines);
  const { bytes } = await makeProof(open, `${seq}`, { checkpoint: of.note });
  const made = await makeReceipt(open, `${seq}`, { checkpoint: of.note, signer: log });
  const { entry } = made;
  return { proof: verifyProof(bytes, trust), receipt: verifyReceipt(made.bytes, trust, { entry }) };
}

const codesOf = ({ proof, receipt }: Judged): unknown => {
  const [first, second] = [proof, receipt].map(({ verdict, problems }) => [
    verdict,
    ...problems.map(({ code }) => code),
  ]);
  expect(second).toEqual(first);
  return first;
};

const approved = sealFixture('ledgers/approvals.jsonl');
const revoked = sealFixture('ledgers/suspensions.jsonl');

describe.each([
  ['an approval', 'approval', approved],
  ['a revocation', 'revocation', revoked],
] as const)('a proof of %s', (_, type, of) => {
  it('is right by a key that may sign it', async () => {
    const judged = await judge(of, type);
    expect(codesOf(judged)).toEqual(['ok']);
    expect(judged.proof.event_signatures).toMatchObject([{ result: 'valid' }]);
  });

  it.each<[string, Partial<Key>, string]>([
    ['for other principals', { principals: ['agent:other'] }, 'KEY_NOT_FOR_PRINCIPAL'],
    ['without a role for it', { roles: ['witness'] }, 'KEY_NOT_FOR_ROLE'],
    ['that is no longer valid', { valid_until: '2020-01-01T00:00:00Z' }, 'KEY_NOT_VALID_HERE'],
  ])('is wrong by a key %s', async (_what, changed, code) => {
    const judged = await judge(of, type, (key, signer) =>
      key.keyid === signer ? { ...key, ...changed } : key,
    );
    expect(codesOf(judged)).toEqual(['invalid', code]);
    expect(judged.proof.event_signatures).toMatchObject([{ result: 'invalid', code }]);
  });

  it('by a key that is not known says so', async () => {
    const judged = await judge(of, type, (key, signer) => (key.keyid === signer ? undefined : key));
    expect(codesOf(judged)).toEqual(['ok']);
    expect(judged.proof.event_signatures).toMatchObject([{ result: 'unverified' }]);
    expect(judged.proof.not_checked.map(({ code }) => code)).toContain('SIGNATURES_UNVERIFIED');
  });
});

describe('a proof of an approval that nobody signed', () => {
  const of = sealFixture('broken/signature-missing-approval.jsonl');

  it('is wrong where the policy has a key with authority', async () => {
    expect(codesOf(await judge(of, 'approval'))).toEqual(['invalid', 'SIGNATURE_MISSING']);
  });

  it('says so where it has none', async () => {
    const judged = await judge(of, 'approval', (key) =>
      key.roles.includes('authority') ? { ...key, roles: ['event'] } : key,
    );
    expect(codesOf(judged)).toEqual(['ok']);
    expect(judged.proof.not_checked.map(({ code }) => code)).toContain('SIGNATURES_MISSING');
  });
});
