/** Keys that come and go within a ledger: from where they count, what a revocation leaves standing, and what that rests on. */

import { describe, expect, test } from 'vitest';
import type { Report } from '../../src/rules/report/report.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import type { Signer } from '../../src/format/signature/signer.js';
import { parseWitnessPolicy } from '../../src/rules/trust/witness-policy.js';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import type { VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { brief, genesis, keyOf, makeSigner, note } from '../docs/ledger-kit.js';
import { LedgerMaker, attestationOf, keyEvent, logLine, witnessLine } from './seal-kit.js';
import { rememberingBackend } from './support.js';

const backend = rememberingBackend();
const [a, b, c, d] = Array.from({ length: 4 }, () => makeSigner()) as [Signer, Signer, Signer, Signer];
const ALL: Key['roles'] = ['event', 'checkpoint', 'admin'];
const all = (signer: Signer): Key => keyOf(signer, { roles: ALL });
const TAIL = /^TAIL_UNSEALED/;

const verify = (maker: LedgerMaker, options: VerifyOptions = {}): Promise<Report> =>
  verifyLedger(maker.bytes, { backend, ...options });

/** Findings without that there is a tail. */
async function codes(maker: LedgerMaker, options: VerifyOptions = {}): Promise<string[]> {
  return (await verify(maker, options)).findings.map(brief).filter((code) => !TAIL.test(code));
}

function begun(...keys: readonly Key[]): LedgerMaker {
  const maker = new LedgerMaker();
  maker.append(genesis([all(a), ...keys]), a);
  return maker;
}

const policyOf = (...keys: readonly Key[]): TrustPolicy => ({ trust_version: '1', keys: [...keys] });

describe('what the records of a revoked key rest on', () => {
  const basisOf = async (maker: LedgerMaker, options: VerifyOptions = {}): Promise<unknown[]> => {
    const report = await verify(maker, options);
    const told = report.not_checked.some(({ code }) => code === 'REVOKED_KEYS');
    return [...(report.trust.revoked ?? []).map(({ rests_on: basis }) => basis), told, report.verdict];
  };

  test('another key’s checkpoint', async () => {
    const maker = begun(all(b));
    maker.append(note(1), b);
    maker.seal(a);
    maker.append(keyEvent('revoke', all(b)), a);
    expect(await basisOf(maker)).toEqual(['checkpoints_by_others', false, 'ok']);
  });

  test('its own checkpoint, whose record needs no cover itself', async () => {
    const maker = begun(all(b));
    maker.append(note(1), b);
    maker.seal(b);
    maker.append(keyEvent('revoke', all(b)), b);
    expect(await basisOf(maker)).toEqual(['own_checkpoints', true, 'ok']);
  });

  test('the checkpoint of a key that it added itself, which is no better than its own', async () => {
    const maker = begun(all(b));
    maker.append(keyEvent('add', all(c)), b);
    maker.append(keyEvent('add', all(d)), c);
    maker.seal(d);
    maker.append(keyEvent('revoke', all(b)), a);
    expect(await basisOf(maker)).toEqual(['own_checkpoints', true, 'ok']);
    // One that an admin of its own standing vouches for as well is.
    const both = begun(all(b));
    both.append(keyEvent('add', all(c)), b, a);
    both.seal(c);
    both.append(keyEvent('revoke', all(b)), a);
    expect(await basisOf(both)).toEqual(['checkpoints_by_others', false, 'ok']);
  });

  test('what the user pins or holds', async () => {
    const maker = begun(all(b));
    maker.append(keyEvent('add', all(c)), b);
    maker.seal(c);
    maker.append(keyEvent('revoke', all(b)), a);
    expect(await basisOf(maker, { trust: policyOf(all(a), all(b), all(c)) })).toEqual([
      'checkpoints_by_others',
      false,
      'ok',
    ]);
    expect(await basisOf(maker, { checkpoints: [maker.anchor(c)] })).toEqual([
      'checkpoints_by_others',
      false,
      'ok',
    ]);
  });

  test('the cosignature of a witness that the user named', async () => {
    const maker = begun(all(b));
    maker.append(note(1), b);
    const sealed = maker.seal(b);
    maker.append(attestationOf(sealed, witnessLine('w.example', c)), a);
    maker.append(keyEvent('revoke', all(b)), a);
    expect(await basisOf(maker)).toEqual(['own_checkpoints', true, 'ok']);
    const vkey = formatPublicKeyAs(c.publicKey, 'cosigner', 'w.example');
    const witnessPolicy = parseWitnessPolicy(Buffer.from(`witness W ${vkey}\nquorum W\n`));
    expect(await basisOf(maker, { witnessPolicy })).toEqual(['checkpoints_by_others', false, 'ok']);
  });

  test('nothing, and then the ledger is invalid', async () => {
    const maker = begun(all(b));
    maker.append(note(1), b);
    maker.append(keyEvent('revoke', all(b)), a);
    expect(await basisOf(maker)).toEqual(['nothing', false, 'invalid']);
  });

  test('of one that signed no more than revocations nothing needs cover', async () => {
    const maker = begun(all(b), all(c));
    maker.append(keyEvent('revoke', all(c)), b);
    maker.append(keyEvent('revoke', all(b)), b);
    expect(await basisOf(maker)).toEqual([undefined, undefined, false, 'ok']);
  });
});

describe('a revocation', () => {
  test('leaves what each set of signers signed as one finding, at the first that is not covered', async () => {
    const maker = begun(all(b), all(c));
    maker.append(note(1), b);
    maker.seal(a);
    maker.append(note(2), c);
    maker.append(note(3), c, b);
    maker.append(maker.checkpoint(logLine(d)(maker.text())), a);
    maker.append(note(4), b, c);
    maker.append(note(5), b, a);
    maker.append(note(6), c);
    maker.append(keyEvent('revoke', all(b)), a);
    maker.append(keyEvent('revoke', all(c)), a);
    const report = await verify(maker);
    const uncovered = report.findings.filter(({ code }) => code === 'KEY_NOT_VALID_HERE');
    expect(uncovered.map((each) => [each.at.line, each.folded])).toEqual([
      [4, 1],
      [5, 1],
    ]);
    expect(report.counts.by_verdict).toEqual({ ok: 7, denied: 0, violation: 0, invalid: 4 });
    maker.seal(a);
    expect(await codes(maker)).toEqual(['KEY_UNKNOWN warning in 6']);
  });

  test('of the only admin leaves no key that can change keys', async () => {
    const maker = begun(keyOf(b));
    maker.append(note(1), b);
    maker.seal(a);
    maker.append(keyEvent('revoke', all(a)), a);
    maker.append(note(2), b);
    expect(await codes(maker)).toEqual([]);
    maker.append(keyEvent('add', all(c)), a);
    maker.append(note(3), c);
    expect(await codes(maker)).toEqual(['KEY_NOT_VALID_HERE in 6', 'KEY_UNKNOWN in 7']);
  });

  test('ends cosigning too', async () => {
    const w = keyOf(c, { roles: ['witness'], name: 'w.example' });
    const trust = { ...policyOf(all(a), w), require: { witness_threshold: 1 } };
    const cosigned = (isRevoked: boolean): LedgerMaker => {
      const maker = begun();
      if (isRevoked) maker.append(keyEvent('revoke', w), a);
      const lines = [...logLine(a)(maker.text()), ...witnessLine('w.example', c)(maker.text())];
      maker.append(maker.checkpoint(lines), a);
      return maker;
    };
    expect(await codes(cosigned(false), { trust })).toEqual([]);
    expect(await codes(cosigned(true), { trust })).toEqual([
      'WITNESS_QUORUM in 3',
      'KEY_NOT_VALID_HERE warning in 3',
    ]);
  });

  test('holds against a witness policy that names the key', async () => {
    const vkey = formatPublicKeyAs(b.publicKey, 'vkey', 'example.com/test');
    const witnessPolicy = parseWitnessPolicy(Buffer.from(`log ${vkey}\nquorum none\n`));
    const sealed = (isRevoked: boolean): LedgerMaker => {
      const maker = begun(all(b));
      if (isRevoked) maker.append(keyEvent('revoke', all(b)), a);
      maker.append(maker.checkpoint(logLine(b)(maker.text())), a);
      return maker;
    };
    expect(await codes(sealed(false), { witnessPolicy })).toEqual([]);
    expect(await codes(sealed(true), { witnessPolicy })).toEqual([
      'KEY_NOT_VALID_HERE in 3',
      'CHECKPOINT_MISSING in 4',
    ]);
    // Signed beside a key that stands: a warning, and still not by the log of the policy.
    const both = begun(all(b));
    both.append(keyEvent('revoke', all(b)), a);
    both.append(both.checkpoint(logLine(a, b)(both.text())), a);
    expect(await codes(both, { witnessPolicy })).toEqual([
      'CHECKPOINT_MISSING in 3',
      'KEY_NOT_VALID_HERE warning in 3',
    ]);
  });
});

describe('an addition', () => {
  test('changes nothing when its record is not signed by an admin', async () => {
    for (const by of [[c], [d], []] as const) {
      const maker = begun(keyOf(c));
      maker.append(keyEvent('add', all(b)), ...by);
      maker.append(note(1), b);
      const [first = '', second] = await codes(maker);
      expect(first).toMatch(/^(?:KEY_NOT_FOR_ROLE|KEY_UNKNOWN|SIGNATURE_MISSING) in 2$/);
      expect(second).toBe('KEY_UNKNOWN in 3');
    }
  });

  test('counts where an admin signed beside others that did not count', async () => {
    const maker = begun();
    maker.append(keyEvent('add', all(b)), d, a);
    maker.append(note(1), b);
    expect(await codes(maker)).toEqual(['KEY_UNKNOWN warning in 2']);
  });

  test('of a witness is the ledger’s own word', async () => {
    const maker = begun();
    maker.append(keyEvent('add', keyOf(c, { roles: ['witness'], name: 'w.example' })), a);
    const lines = [...logLine(a)(maker.text()), ...witnessLine('w.example', c)(maker.text())];
    maker.append(maker.checkpoint(lines), a);
    for (const options of [{}, { trust: policyOf(all(a)) }]) {
      const report = await verify(maker, options);
      expect(report.findings).toEqual([]);
      expect(report.not_checked.map(({ code }) => code)).toContain('WITNESSES');
    }
    const pinned = policyOf(all(a), keyOf(c, { roles: ['witness'], name: 'w.example' }));
    const report = await verify(maker, { trust: pinned });
    expect(report.not_checked.map(({ code }) => code)).toEqual(['TRUNCATION']);
  });

  test('does not change what the policy says of the key, but a revocation does', async () => {
    const trust = policyOf(all(a), keyOf(b, { principals: ['human:*'] }));
    const maker = begun();
    maker.append(keyEvent('add', all(b)), a);
    maker.append(note(1), b);
    expect(await codes(maker, { trust })).toEqual(['KEY_NOT_FOR_PRINCIPAL in 3']);
    const revoked = begun();
    revoked.append(keyEvent('revoke', all(b)), a);
    revoked.append(note(1, { principal_id: 'human:ada' }), b);
    expect(await codes(revoked, { trust })).toEqual(['KEY_NOT_VALID_HERE in 3']);
  });

  test('of a chain of keys, each by the one before', async () => {
    const maker = begun();
    let last = a;
    for (let n = 0; n < 40; n += 1) {
      const next = makeSigner();
      maker.append(keyEvent('add', all(next)), last);
      maker.append(keyEvent('revoke', all(last)), next);
      last = next;
    }
    maker.seal(last);
    const report = await verify(maker);
    expect(report).toMatchObject({ verdict: 'ok', findings: [] });
    // Whoever had the first could have made all of the others.
    expect(new Set(report.trust.revoked?.map(({ rests_on: basis }) => basis))).toEqual(
      new Set(['own_checkpoints']),
    );
  });
});
