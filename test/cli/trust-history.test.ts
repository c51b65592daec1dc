/** `northroot trust init` on a ledger whose keys came and went, and `init --continues`: what users hold of a ledger. */

import { describe, expect, it } from 'vitest';
import type { GenesisEvent, Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import type { Report } from '../../src/rules/report/report.js';
import { draftTrustPolicy, runVerification } from '../../src/api/index.js';
import { listKeys } from '../../src/rules/report/accounts.js';
import { bytesSource } from '../bytes-source.js';
import { genesis, keyOf, makeSigner, note } from '../docs/ledger-kit.js';
import { LedgerMaker, keyEvent } from '../verify/seal-kit.js';
import { expectError, expectOk, parse, Workshop } from './runner.js';

const shop = new Workshop();
const ROLES: Key['roles'] = ['event', 'authority', 'checkpoint', 'admin'];
const [old, kept, added] = [makeSigner(), makeSigner(), makeSigner()];
const idOf = ({ publicKey }: typeof old): string => publicKey.keyid;
const keys = [keyOf(old, { roles: ROLES }), keyOf(kept, { roles: ROLES })];
const first = genesis(keys);

function rotated(): LedgerMaker {
  const maker = new LedgerMaker();
  maker.append(first, old);
  maker.append(note(1), old);
  maker.append(keyEvent('add', keyOf(added, { roles: ['event'] })), old);
  maker.append(keyEvent('revoke', keyOf(old), { reason: 'laptop \u001b[2J stolen' }), kept);
  maker.seal(kept);
  return maker;
}

const ledger = rotated();
shop.write('rotated.jsonl', ledger.bytes);
const trustInit = (...args: string[]) => shop.run(['trust', 'init', 'rotated.jsonl', '--yes', ...args]);

describe('a drafted policy', () => {
  it('pins no revoked key unless told to, and keeps roles as declared', async () => {
    const { state } = await runVerification(bytesSource(ledger.bytes, '-'));
    const known = listKeys(state);
    expect(
      known.map(({ key, addedAt, addedBy, revokedBy }) => [key.keyid, addedAt?.seq, addedBy, revokedBy?.seq]),
    ).toEqual([
      [idOf(old), undefined, undefined, 3],
      [idOf(kept), undefined, undefined, undefined],
      [idOf(added), 2, [idOf(old)], undefined],
    ]);
    expect(known[0]?.revokedBy).toMatchObject({ signers: [idOf(kept)], reason: 'laptop \u001b[2J stolen' });
    const draft = (includeRevoked: string[]): Key[] =>
      draftTrustPolicy(first as unknown as GenesisEvent, { keys: known, includeRevoked }).keys;
    expect(draft([])).toEqual([keys[1]]);
    expect(draft([idOf(old)])).toEqual(keys);
  });
});

describe('trust init', () => {
  it('says which keys were revoked, where and why, and which were added by whom', () => {
    const run = trustInit();
    const { keys: pinned } = parse<TrustPolicy>(expectOk(run));
    expect(pinned).toEqual([keys[1]]);
    expect(run.stderr).toContain(`at seq 3 by ${idOf(kept)}: laptop \\u{1b}[2J stolen`);
    expect(run.stderr).toContain(`at seq 2 by ${idOf(old)}`);
    expect(run.stderr).toContain(`--include-revoked ${idOf(old)}`);
    expect(run.stderr).toContain('authority');
    expect(run.stderr).toContain('--anchor-out');
  });

  it('pins a revoked key when told to, and keeps the anchor', () => {
    expectOk(trustInit('--include-revoked', idOf(old), '--out', 'both.json', '--anchor-out', 'kept.note'));
    expect(parse<TrustPolicy>(shop.read('both.json')).keys).toEqual(keys);
    const args = ['--trust', 'both.json', '--checkpoint', 'kept.note', '--format', 'json'];
    const whole = parse<Report>(expectOk(shop.run(['verify', 'rotated.jsonl', ...args])));
    expect(whole.checkpoints.anchors).toMatchObject([{ relation: 'extends', tree_size: 4 }]);
    shop.write('cut.jsonl', `${shop.lines('rotated.jsonl').slice(0, 3).join('\n')}\n`);
    expect(shop.run(['verify', 'cut.jsonl', ...args]).status).toBe(1);
  });

  it('refuses to pin what is no revoked key of genesis, and to keep what is not there', () => {
    expectError(trustInit('--include-revoked', idOf(kept), '--out', 'never.json'), 2, 'USAGE');
    expectError(trustInit('--include-revoked', idOf(added), '--out', 'never.json'), 2, 'USAGE');
    const maker = new LedgerMaker();
    maker.append(first, old);
    shop.write('unsealed.jsonl', maker.bytes);
    const run = shop.run([
      'trust',
      'init',
      'unsealed.jsonl',
      '--yes',
      '--anchor-out',
      'n',
      '--out',
      'never.json',
    ]);
    expectError(run, 2, 'CHECKPOINT_MISSING');
    expect([shop.has('never.json'), shop.has('n')]).toEqual([false, false]);
  });
});

describe('init --continues', () => {
  it('writes where the old ledger ended, which verify --predecessor checks', () => {
    expectOk(shop.run(['init', 'next.jsonl', '--continues', 'rotated.jsonl']));
    const { event } = shop.records('next.jsonl')[0];
    expect(event['continues']).toMatchObject({ ledger_id: first.event_id, tree_size: 5 });
    expect((event['continues'] as { note: string }).note).toContain('example.com/test\n4\n');
    const verify = (...args: string[]) => {
      const run = shop.run(['verify', 'next.jsonl', '--format', 'json', ...args]);
      return { status: run.status, report: parse<Report>(run.stdout) };
    };
    const alone = verify();
    expect(alone.report.not_checked.map(({ code }) => code)).toContain('PREDECESSOR');
    const grown = rotated();
    grown.append(note(2), kept);
    shop.write('grown.jsonl', grown.bytes);
    const both = verify('--predecessor', 'grown.jsonl');
    expect([both.status, both.report.not_checked.some(({ code }) => code === 'PREDECESSOR')]).toEqual([
      0,
      false,
    ]);
    const cut = verify('--predecessor', 'cut.jsonl');
    expect([cut.status, cut.report.findings?.map(({ code }) => code)]).toEqual([1, ['TRUNCATED']]);
  });

  it.each<[string, string]>([
    ['what is no ledger', 'NOT_A_LEDGER'],
    ['what is not there', 'FILE_NOT_FOUND'],
  ])('makes nothing of %s', (which, code) => {
    shop.write('text.txt', '{}\n');
    const path = which === 'what is no ledger' ? 'text.txt' : 'nowhere.jsonl';
    expectError(shop.run(['init', 'never.jsonl', '--continues', path]), 2, code);
    expect(shop.files('never')).toEqual([]);
  });

  it('reads standard input once', () => {
    expectError(shop.run(['verify', '-', '--predecessor', '-'], { input: '' }), 2, 'USAGE');
  });
});
