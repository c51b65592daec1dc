/** In-toto statements about ledgers: made, verified here and by others' code. */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import {
  hashLedger,
  makeStatement,
  type StatementOptions,
} from '../../src/proof/statement/export-statement.js';
import { verifyStatement } from '../../src/proof/statement/verify-statement.js';
import { ownKeyEntry } from '../../src/log/writer/genesis.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { makeLines, noteOf, signer, stranger } from '../proof/support.js';
import { ledgerOf } from '../verify/support.js';

const lines = await makeLines({ events: [2, 1] });
const ledger = ledgerOf(lines);
const p256 = createSigner(generatePrivateKey('p256'));
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

function make(bytes: Uint8Array = ledger, options: Partial<StatementOptions> = {}) {
  return makeStatement(bytes, { signer, name: 'ledger.jsonl', ...options });
}

const made = await make();
const keys = [signer.publicKey];

describe('a statement', () => {
  it("has the members of in-toto's Statement and SLSA's summary, and what they have none for", async () => {
    const { statement, report } = made;
    expect(statement).toMatchObject({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name: 'ledger.jsonl', digest: { sha256: sha256(ledger) } }],
      predicateType: 'https://slsa.dev/verification_summary/v1',
      predicate: {
        verificationResult: 'PASSED',
        verifiedLevels: ['NORTHROOT_SELF_DECLARED_KEYS'],
        northroot: { verdict: 'ok', not_checked: report.not_checked, by_verdict: report.counts.by_verdict },
      },
    });
    expect(report.not_checked.length).toBeGreaterThan(0);
    expect(statement.predicate.resourceUri).toBe(
      `ni:///sha-256;${createHash('sha256').update(ledger).digest('base64url')}`,
    );
    const root = Buffer.from(statement.subject[0].digest['rfc6962Sha256'] ?? '', 'hex').toString('base64url');
    expect(`sha-256:${root}`).toBe(report.ledger.root);
    expect(await hashLedger(ledger)).toBe(sha256(ledger));
  });

  it('is the same whenever it is made, and says a time only where one is given', async () => {
    const again = await make();
    expect(Buffer.from(again.bytes).toString()).toBe(Buffer.from(made.bytes).toString());
    expect(made.statement.predicate.timeVerified).toBeUndefined();
    const timed = await make(ledger, { timeVerified: '2026-03-01T12:00:00Z' });
    expect(timed.statement.predicate.timeVerified).toBe('2026-03-01T12:00:00Z');
  });

  it('names the trust policy and the checkpoints that were used', async () => {
    const note = noteOf(lines.slice(0, 3));
    const trust = { trust_version: '1' as const, keys: [ownKeyEntry(signer.publicKey)] };
    const { statement } = await make(ledger, { trust, checkpoints: [{ name: '/home/me/kept', note }] });
    expect(statement.predicate.verifiedLevels).toEqual(['NORTHROOT_TRUST_POLICY']);
    expect(statement.predicate.policy.digest?.['sha256']).toMatch(/^[0-9a-f]{64}$/);
    expect(statement.predicate.inputAttestations).toEqual([
      { name: 'kept', digest: { sha256: sha256(note) } },
    ]);
  });

  it.each<[string, Uint8Array, string]>([
    ['broken', ledgerOf(lines.slice(1)), 'invalid'],
    ['missing an approval', fixtureBytes('broken/approval-missing.jsonl'), 'violation'],
    ['going on after a revocation', fixtureBytes('broken/grant-revoked.jsonl'), 'violation'],
    ['empty', Buffer.alloc(0), 'undecided'],
  ])('of a ledger that is %s says FAILED', async (_, bytes, verdict) => {
    const { statement, bytes: envelope } = await make(bytes);
    expect(statement.predicate).toMatchObject({
      verificationResult: 'FAILED',
      verifiedLevels: ['FAILED'],
      northroot: { verdict },
    });
    expect(Array.isArray(statement.predicate.northroot.not_checked)).toBe(true);
    expect(verifyStatement(envelope, { keys, sha256: sha256(bytes) }).verdict).toBe('ok');
  });

  it('of a ledger whose approvals and revocations were kept says PASSED', async () => {
    const { statement } = await make(fixtureBytes('ledgers/approvals-and-revocations.jsonl'));
    expect(statement.predicate.verificationResult).toBe('PASSED');
  });

  it('is not made with a key or a name that its readers could not take', async () => {
    const mlDsa = createSigner(generatePrivateKey('ml-dsa-44'));
    await expect(make(ledger, { signer: mlDsa })).rejects.toMatchObject({ code: 'KEY_UNSUPPORTED' });
    await expect(make(ledger, { verifierId: 'me' })).rejects.toThrow(RangeError);
    await expect(make(ledger, { timeVerified: 'now' })).rejects.toThrow(RangeError);
  });
});

describe('verifyStatement', () => {
  const codes = (
    bytes: Uint8Array,
    options: Partial<Parameters<typeof verifyStatement>[1]> = {},
  ): string[] => {
    const { verdict, problems } = verifyStatement(bytes, { keys, ...options });
    return [verdict, ...problems.map(({ code }) => code)];
  };
  const envelope = JSON.parse(Buffer.from(made.bytes).toString()) as Record<string, unknown>;
  const changed = (change: object): Uint8Array => Buffer.from(JSON.stringify({ ...envelope, ...change }));

  it('gives the statement and who signed it', () => {
    const result = verifyStatement(made.bytes, { keys, sha256: sha256(ledger) });
    expect(result).toMatchObject({ verdict: 'ok', exit_status: 0, signers: [signer.publicKey.keyid] });
    expect(result.statement).toEqual(made.statement);
  });

  it('refuses to be asked about what is no hash', () => {
    for (const asked of ['junk', sha256(ledger).toUpperCase()]) {
      expect(() => verifyStatement(made.bytes, { keys, sha256: asked })).toThrow(RangeError);
    }
  });

  it('says what is left open: the ledger, and whether it is the one that is meant', () => {
    const gaps = (options: { sha256?: string }) =>
      verifyStatement(made.bytes, { keys, ...options }).not_checked.map(({ code }) => code);
    expect(gaps({ sha256: sha256(ledger) })).toEqual(['LEDGER']);
    expect(gaps({})).toEqual(['LEDGER', 'SUBJECT']);
  });

  it('wants PASSED where that is required, and takes nothing for it from those who are not known', async () => {
    const failed = (await make(ledgerOf(lines.slice(1)))).bytes;
    expect(codes(made.bytes, { requirePassed: true })).toEqual(['ok']);
    expect(codes(failed)).toEqual(['ok']);
    expect(codes(failed, { requirePassed: true })).toEqual(['invalid', 'NOT_PASSED']);
    const unknown = { requirePassed: true, keys: [stranger.publicKey] };
    expect(codes(failed, unknown)).toEqual(['undecided', 'KEY_UNKNOWN']);
  });

  it.each<[string, () => string[], string[]]>([
    [
      'by an unknown key',
      () => codes(made.bytes, { keys: [stranger.publicKey] }),
      ['undecided', 'KEY_UNKNOWN'],
    ],
    [
      'of another ledger',
      () => codes(made.bytes, { sha256: sha256(lines[0]) }),
      ['invalid', 'SUBJECT_MISMATCH'],
    ],
    [
      'with another payload',
      () =>
        codes(
          changed({
            payload: Buffer.from(JSON.stringify({ ...made.statement, subject: [] })).toString('base64'),
          }),
        ),
      ['invalid', 'SIGNATURE_INVALID'],
    ],
    [
      'of another type',
      () => codes(changed({ payloadType: 'text/plain' })),
      ['invalid', 'STATEMENT_MALFORMED'],
    ],
    ['without signatures', () => codes(changed({ signatures: [] })), ['invalid', 'STATEMENT_MALFORMED']],
    [
      'with a member twice',
      () => codes(Buffer.from(Buffer.from(made.bytes).toString().replace('{', '{"payload":"",'))),
      ['invalid', 'STATEMENT_MALFORMED'],
    ],
    ['that is no JSON', () => codes(Buffer.from('{')), ['invalid', 'STATEMENT_MALFORMED']],
    ['of a MiB and a byte', () => codes(Buffer.alloc(1024 * 1024 + 1)), ['invalid', 'STATEMENT_MALFORMED']],
  ])('an envelope %s is not ok', (_, run, expected) => {
    expect(run()).toEqual(expected);
  });
});

const python = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import cryptography'], { stdio: 'ignore' }).status === 0,
);
if (python === undefined) {
  console.log('skipped: statements read by Python; it needs the package python3-cryptography');
}

describe.skipIf(python === undefined)('Python', () => {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-statement-'));
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  it.each<[string, Signer]>([
    ['Ed25519', signer],
    ['P-256', p256],
  ])('verifies an envelope by a key of %s, and none of another ledger', async (_, by) => {
    const { bytes, statement } = await make(ledger, { signer: by });
    expect(verifyStatement(bytes, { keys: [by.publicKey] }).verdict).toBe('ok');
    const run = (of: Uint8Array) => {
      writeFileSync(join(folder, 'envelope'), bytes);
      writeFileSync(join(folder, 'key'), formatPublicKeyAs(by.publicKey, 'pem'));
      writeFileSync(join(folder, 'ledger'), of);
      const script = fileURLToPath(new URL('read-statement.py', import.meta.url));
      const paths = ['envelope', 'key', 'ledger'].map((name) => join(folder, name));
      return spawnSync(python as string, [script, ...paths], { encoding: 'utf8' });
    };
    const { stdout, stderr } = run(ledger);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual(statement);
    expect(run(Buffer.concat([ledger, Buffer.from('\n')])).status).not.toBe(0);
  });
});
