/** `northroot import --from agent-receipts` and `--from aar`: what is verified is taken, what is not is told of, and the exit status says so. */

import { describe, expect, it } from 'vitest';
import { ALICE, MALLORY } from '../hosts/receipts/kit.js';
import { aarReceipt, chainOf, changed } from '../hosts/receipts/samples.js';
import { expectError, expectOk, parse, Workshop } from './runner.js';

interface Report {
  readonly verdict: string;
  readonly receipts: object;
  readonly events: { readonly appended?: number; readonly existing: number };
  readonly findings: readonly {
    readonly code: string;
    readonly at: { readonly file: string; readonly line?: number; readonly pointer?: string };
    readonly expected?: string;
    readonly actual?: string;
  }[];
}

const lines = (receipts: readonly unknown[]) => receipts.map((each) => `${JSON.stringify(each)}\n`).join('');
const standing = (verified: number, ownKey: number, unverified: number, broken: number) => ({
  verified,
  own_key: ownKey,
  unverified,
  broken,
});

describe('import of receipts', () => {
  const shop = new Workshop();
  const chain = chainOf(ALICE, 3);
  shop.write('keys.txt', `did:agent:builder ${ALICE.bytes.toString('hex')}\n`);
  shop.write('receipts.jsonl', lines(chain));
  const broken = chain.map((each, i) =>
    i === 1 ? changed(each, ['credentialSubject', 'action', 'type'], 'x') : each,
  );
  shop.write('broken.jsonl', lines(broken));
  shop.write('aar.json', JSON.stringify([aarReceipt(ALICE), aarReceipt(ALICE, 2)]));
  const from = ['import', '--from', 'agent-receipts', '--format', 'json'];
  const keys = ['--aid', 'keys=keys.txt'];
  const reportOf = (...args: string[]) => {
    const run = shop.run(args);
    return { status: run.status, report: parse<Report>(run.stdout) };
  };

  it('takes what is verified, once, in a ledger that verifies', () => {
    const into = [...from, ...keys, '--ledger', 'taken.jsonl', '--create', 'receipts.jsonl'];
    const first = reportOf(...into);
    expect(first.status).toBe(0);
    expect(first.report.receipts).toEqual(standing(3, 0, 0, 0));
    expect(first.report.events.appended).toBe(3);
    const again = reportOf(...into);
    expect(again.report.events).toMatchObject({ appended: 0, existing: 3 });
    expectOk(shop.run(['verify', 'taken.jsonl']));
    const authorize = [
      'authorize',
      'taken.jsonl',
      '--tool',
      'filesystem.file.read',
      '--principal',
      'agent:a',
    ];
    expect(shop.run(authorize).status).not.toBe(0);
  });

  it('tells where a receipt is broken, what was expected, and exits with 1', () => {
    const { status, report } = reportOf(...from, ...keys, '--check', 'broken.jsonl');
    expect([status, report.verdict]).toEqual([1, 'invalid']);
    expect(report.receipts).toEqual(standing(1, 0, 1, 1));
    expect(report.findings.find(({ code }) => code === 'SIGNATURE_INVALID')).toMatchObject({
      at: { file: 'broken.jsonl', line: 2, pointer: '/proof/proofValue' },
      expected: expect.stringContaining('a valid signature') as string,
    });
  });

  it('takes what is not verified only when asked to, and again when it is', () => {
    const into = ['--ledger', 'later.jsonl', '--create', 'receipts.jsonl'];
    const refused = reportOf(...from, ...into);
    expect([refused.status, refused.report.receipts]).toEqual([1, standing(0, 0, 3, 0)]);
    const asked = reportOf(...from, '--unverified', ...into);
    expect([asked.status, asked.report.events.appended]).toEqual([0, 3]);
    const ledger = shop.read('later.jsonl');
    expect(ledger).toContain('"standing":"not_verified"');
    expect(ledger).not.toContain('"standing":"verified"');
    expect(reportOf(...from, ...keys, ...into).report.events.appended).toBe(3);
    expect(reportOf(...from, '--unverified', ...into).report.events).toMatchObject({ appended: 0 });
    expectOk(shop.run(['verify', 'later.jsonl']));
  });

  it('says that a key was stated by the receipt alone, and holds it to one that is given', () => {
    const own = reportOf('import', '--from', 'aar', '--format', 'json', '--check', 'aar.json');
    expect([own.status, own.report.receipts]).toEqual([0, standing(0, 2, 0, 0)]);
    shop.write('mallory.pem', MALLORY.pem);
    const other = ['--aid', 'keys=mallory.pem', '--check', 'aar.json'];
    const held = reportOf('import', '--from', 'aar', '--format', 'json', ...other);
    expect([held.status, held.report.receipts]).toEqual([1, standing(0, 0, 0, 2)]);
  });

  it('are recognised by reconcile, which counts only those that are verified', () => {
    const reconcile = ['reconcile', 'taken.jsonl', '--format', 'json'];
    const run = shop.run([...reconcile, 'receipts.jsonl', ...keys]);
    expect(parse<{ calls: object }>(run.stdout).calls).toMatchObject({ same_file: 3 });
    const without = shop.run([...reconcile, 'receipts.jsonl']);
    expect(without.status).toBe(1);
    expect(parse<{ calls: { total: number } }>(without.stdout).calls.total).toBe(0);
  });

  it('--unverified is for systems that have receipts', () => {
    expectError(shop.run(['import', '--from', 'litellm', '--unverified', 'aar.json']), 2, 'USAGE');
  });
});
