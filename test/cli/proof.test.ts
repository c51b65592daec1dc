/** `northroot prove`, `northroot verify-proof` and `northroot diff`. */

import { describe, expect, it } from 'vitest';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { formatVkey } from '../../src/format/key/vkey.js';
import type { LedgerDiff } from '../../src/proof/ledger-diff.js';
import type { ConsistencyResult } from '../../src/proof/verify-consistency.js';
import type { ReceiptResult } from '../../src/proof/verify-receipt.js';
import type { ProofResult } from '../../src/proof/verify-proof.js';
import type { StatementResult } from '../../src/proof/statement/verify-statement.js';
import { ownKeyEntry } from '../../src/log/writer/genesis.js';
import { ORIGIN, makeLines, noteOf, signer, stranger, witness } from '../proof/support.js';
import { seedPem } from '../key/key-samples.js';
import { ledgerOf } from '../verify/support.js';
import { expectError, expectOk, parse, Workshop, type Run } from './runner.js';

const shop = new Workshop();
const lines = await makeLines({ events: [3, 2, 2], attested: true });

shop.write('ledger.jsonl', ledgerOf(lines));
shop.write('old.note', noteOf(lines.slice(0, 3)));
shop.write('new.note', noteOf(lines));
shop.write('other.note', noteOf([...lines.slice(1), lines[0]]));
shop.write('log.pub', formatPublicKeyAs(signer.publicKey, 'pem'));
shop.write('log.key', seedPem(Buffer.alloc(32, 1)));
shop.write('stranger.pub', formatPublicKeyAs(stranger.publicKey, 'openssh'));
shop.write('trust.json', JSON.stringify({ trust_version: '1', keys: [ownKeyEntry(signer.publicKey)] }));
shop.write(
  'elsewhere.json',
  JSON.stringify({ trust_version: '1', origins: ['example.com/b'], keys: [ownKeyEntry(signer.publicKey)] }),
);
const vkey = formatPublicKeyAs(signer.publicKey, 'vkey', ORIGIN);
const witnessVkey = formatVkey('witness.example/w1', witness.publicKey, 'cosignature');
shop.write('witnesses.txt', `log ${vkey}\nwitness w1 ${witnessVkey}\nquorum w1\n`);
shop.write('log.vkey', `${vkey}\n`);
shop.write('three.tlog-proof', expectOk(prove('3')));
shop.write('grown.proof', expectOk(prove('--consistency', 'old.note')));

function prove(...args: string[]): Run {
  return shop.run(['prove', 'ledger.jsonl', ...args]);
}

function verify(...args: string[]): Run {
  return shop.run(['verify-proof', ...args]);
}

describe('prove', () => {
  it('writes a proof to standard output, and what it is of to standard error', () => {
    const run = prove('3');
    expect(run.stdout.startsWith('c2sp.org/tlog-proof@v1\nextra ')).toBe(true);
    expect(run.stdout).toContain(`\nindex 3\n`);
    expect(run.stdout).toContain(`\n\n${ORIGIN}\n7\n`);
    expect(run.stderr).toContain(`seq 3 is in the checkpoint of 7 records of ${ORIGIN}`);
  });

  it('writes it to a new file', () => {
    expect(expectOk(prove('3', '--out', 'made.tlog-proof'))).toBe('');
    expect(shop.read('made.tlog-proof')).toBe(shop.read('three.tlog-proof'));
    const again = prove('1', '--out', 'made.tlog-proof');
    expect(again.status).toBe(2);
    expect(shop.read('made.tlog-proof')).toBe(shop.read('three.tlog-proof'));
  });

  it('proves under another checkpoint', () => {
    shop.write('nine.tlog-proof', expectOk(prove('9', '--checkpoint', 'new.note')));
    expectOk(verify('nine.tlog-proof', '--key', vkey));
  });

  it.each<[string, string[], 1 | 2, string]>([
    ['a record after the last checkpoint', ['9'], 2, 'CHECKPOINT_MISSING'],
    [
      'a record that the checkpoint does not cover',
      ['3', '--checkpoint', 'old.note'],
      2,
      'CHECKPOINT_MISSING',
    ],
    ['under a checkpoint of another history', ['3', '--checkpoint', 'other.note'], 1, 'FORKED'],
    ['what is not there', ['99'], 2, 'RECORD_NOT_FOUND'],
    ['under what is no note', ['3', '--checkpoint', 'log.pub'], 2, 'NOTE_MALFORMED'],
    ['under a note that is missing', ['3', '--checkpoint', 'none.note'], 2, 'FILE_NOT_FOUND'],
    ['nothing', [], 2, 'USAGE'],
    ['an event and the whole', ['3', '--consistency', 'old.note'], 2, 'USAGE'],
    [
      'that it extends another history',
      ['--consistency', 'other.note', '--checkpoint', 'new.note'],
      1,
      'FORKED',
    ],
  ])('does not prove %s', (_what, args, status, code) => {
    expectError(prove(...args), status, code);
  });

  it('tells what to do when there is no checkpoint', () => {
    shop.write('unsealed.jsonl', ledgerOf(lines.slice(0, 3)));
    const run = shop.run(['prove', 'unsealed.jsonl', '1']);
    expectError(run, 2, 'CHECKPOINT_MISSING');
    expect(run.stderr).toContain('northroot checkpoint');
  });

  it('tells that records are missing', () => {
    shop.write('short.jsonl', ledgerOf(lines.slice(0, 5)));
    expectError(shop.run(['prove', 'short.jsonl', '1', '--checkpoint', 'new.note']), 1, 'TRUNCATED');
  });

  it('does not read standard input', () => {
    expectError(shop.run(['prove', '-', '1'], { input: ledgerOf(lines) }), 2, 'USAGE');
  });
});

describe('verify-proof', () => {
  it.each<[string, string[]]>([
    ['a key file', ['--key', 'log.pub']],
    ['a vkey in a file', ['--key', 'log.vkey']],
    ['a vkey', ['--key', vkey]],
    ['several keys', ['--key', 'stranger.pub', '--key', 'log.pub']],
    ['a trust policy', ['--trust', 'trust.json']],
    ['a witness policy', ['--witness-policy', 'witnesses.txt']],
  ])('proves a record with %s', (_what, args) => {
    const text = expectOk(verify('three.tlog-proof', ...args));
    expect(text.startsWith('ok  three.tlog-proof: ')).toBe(true);
    expect(text).toContain('not checked');
    const result = parse<ProofResult>(expectOk(verify('three.tlog-proof', ...args, '--format', 'json')));
    expect(result).toMatchObject({ verdict: 'ok', exit_status: 0, index: 3, origin: ORIGIN, problems: [] });
    expect(result.event).toMatchObject({ event_type: 'x.test', n: 3 });
  });

  it('tells of the witnesses whose keys it was given', () => {
    const without = expectOk(verify('three.tlog-proof', '--key', vkey));
    expect(without).toContain('unverified');
    expect(without).toContain('WITNESSES');
    const text = expectOk(verify('three.tlog-proof', '--key', vkey, '--key', witnessVkey));
    expect(text).toContain(`${witnessVkey} at 2026-01-01T12:00:00Z`);
    expect(text).not.toContain('unverified');
    expect(text).not.toContain('WITNESSES');
  });

  it('reads standard input', () => {
    const run = shop.run(['verify-proof', '-', '--key', vkey], { input: shop.read('three.tlog-proof') });
    expectOk(run);
  });

  it.each<[string, string[]]>([
    ['without a key', []],
    ["with a stranger's key", ['--key', 'stranger.pub']],
  ])('proves nothing %s', (_what, args) => {
    const run = verify('three.tlog-proof', ...args);
    expect(run.status).toBe(2);
    expect(run.stdout.startsWith('undecided  ')).toBe(true);
    expect(run.stdout).toContain('KEY_UNKNOWN');
    const json = verify('three.tlog-proof', ...args, '--format', 'json');
    expect(json.status).toBe(2);
    expect(parse<ProofResult>(json.stdout).verdict).toBe('undecided');
  });

  it.each<[string, (proof: string) => string, string]>([
    ['no proof', () => 'nothing', 'PROOF_MALFORMED'],
    ['another index', (proof) => proof.replace('index 3', 'index 2'), 'PROOF_INVALID'],
    ['a changed root', (proof) => proof.replace(/\n7\n./, '\n7\nA'), 'CHECKPOINT_SIGNATURE_INVALID'],
    ['no checkpoint', (proof) => proof.slice(0, proof.indexOf('\n\n') + 2), 'NOTE_MALFORMED'],
  ])('refuses %s', (_what, spoil, code) => {
    shop.write('spoilt.tlog-proof', spoil(shop.read('three.tlog-proof')));
    const run = verify('spoilt.tlog-proof', '--key', vkey);
    expect(run.status).toBe(1);
    expect(run.stdout.startsWith('invalid  ')).toBe(true);
    expect(run.stdout).toContain(`${code}: `);
  });

  it('verifies a proof without its record, given beside it', () => {
    const proof = expectOk(prove('3', '--entry-out', 'three.entry'));
    shop.write('short.tlog-proof', proof);
    expect(proof).not.toContain('extra ');
    expect(shop.read('three.entry')).toBe(lines[3].toString());
    const run = verify('short.tlog-proof', '--key', 'log.pub', '--entry', 'three.entry', '--format', 'json');
    expect(parse<ProofResult>(expectOk(run))).toMatchObject({ verdict: 'ok', entry: { kind: 'record' } });
    const without = verify('short.tlog-proof', '--key', 'log.pub');
    expect(without.status).toBe(2);
    expect(without.stdout).toContain('--entry');
    expectError(prove('--consistency', 'old.note', '--entry-out', 'x'), 2, 'USAGE');
    expectError(
      verify('grown.proof', '--consistency', 'old.note', '--entry', 'three.entry', '--key', 'log.pub'),
      2,
      'USAGE',
    );
  });

  it('verifies a COSE receipt with the key and the record', () => {
    const args = ['--format', 'cose', '--key', 'log.key', '--out', 'three.cose', '--entry-out', 'cose.entry'];
    expectOk(prove('3', ...args));
    const check = ['three.cose', '--key', 'log.pub', '--entry', 'cose.entry'];
    expect(expectOk(verify(...check)).startsWith('ok  three.cose: ')).toBe(true);
    const result = parse<ReceiptResult>(expectOk(verify(...check, '--format', 'json')));
    expect(result).toMatchObject({ kind: 'cose-receipt', verdict: 'ok', index: 3, origin: ORIGIN });
    expect(verify('three.cose', '--key', 'log.pub').status).toBe(2);
    expect(verify('three.cose', '--key', 'log.pub', '--entry', 'log.pub').status).toBe(1);
    expectError(prove('3', '--format', 'cose'), 2, 'USAGE');
    expectError(prove('3', '--key', 'log.key'), 2, 'USAGE');
    expectError(prove('--consistency', 'old.note', '--format', 'cose', '--key', 'log.key'), 2, 'USAGE');
  });

  it('makes no COSE receipt with a key that does not sign for the log', () => {
    expectOk(shop.run(['init', 'roles.jsonl']));
    expectOk(shop.run(['keygen', '--out', 'a1.pem']));
    expectOk(shop.run(['key', 'add', 'roles.jsonl', 'a1.pem', '--role', 'event', '--for', 'agent:a1']));
    expectOk(shop.run(['checkpoint', 'roles.jsonl']));
    const receipt = (...args: string[]): Run =>
      shop.run(['prove', 'roles.jsonl', '1', '--format', 'cose', '--out', 'a1.cose', ...args]);
    expectError(receipt('--key', 'a1.pem', '--no-index'), 1, 'KEY_NOT_FOR_ROLE');
    expectOk(shop.run(['index', 'roles.jsonl']));
    expectError(receipt('--key', 'a1.pem'), 1, 'KEY_NOT_FOR_ROLE');
    expect(shop.has('a1.cose')).toBe(false);
    expectOk(receipt('--key', 'roles.jsonl.key'));
  });

  it('refuses another origin than the policy pins', () => {
    const run = verify('three.tlog-proof', '--trust', 'elsewhere.json');
    expect(run.status).toBe(1);
    expect(run.stdout).toContain('ORIGIN_MISMATCH: ');
  });

  it.each<[string, string[], string]>([
    ['a private key', ['--key', 'log.key'], 'KEY_IS_PRIVATE'],
    ['what is no key', ['--key', 'ledger.jsonl'], 'KEY_MALFORMED'],
    ['a vkey of another key', ['--key', vkey.replace(/\+[0-9a-f]{8}\+/, '+00000000+')], 'KEY_MALFORMED'],
    ['a key that is missing', ['--key', 'none.pub'], 'FILE_NOT_FOUND'],
    ['keys and a policy', ['--key', 'log.pub', '--trust', 'trust.json'], 'USAGE'],
  ])('does not take %s', (_what, args, code) => {
    expectError(verify('three.tlog-proof', ...args), 2, code);
  });

  it('says how the public half of a private key is written', () => {
    expect(verify('three.tlog-proof', '--key', 'log.key').stderr).toMatch(/^hint: .*key show/m);
  });

  it('proves that the ledger only grew', () => {
    const args = ['grown.proof', '--consistency', 'old.note', '--key', 'log.pub'];
    const text = expectOk(verify(...args));
    expect(text).toContain(`the tree of 7 records of ${ORIGIN} extends that of 3`);
    expect(parse<ConsistencyResult>(expectOk(verify(...args, '--format', 'json')))).toMatchObject({
      verdict: 'ok',
      old_tree: { tree_size: 3 },
      tree: { tree_size: 7 },
    });
    expect(verify('grown.proof', '--consistency', 'old.note').status).toBe(2);
    const wrong = verify('grown.proof', '--consistency', 'new.note', '--key', 'log.pub');
    expect(wrong.status).toBe(1);
    expect(wrong.stdout).toContain('PROOF_INVALID: ');
    expect(verify('three.tlog-proof', '--consistency', 'old.note', '--key', 'log.pub').status).toBe(1);
    expect(verify('grown.proof', '--key', 'log.pub').status).toBe(1);
  });
});

describe('verify-proof of a statement', () => {
  const auditor = ['--key', 'stranger.pub'];
  const made = (ledger: string, file: string, ...args: string[]): Run =>
    shop.run(['export', ledger, '--in-toto', file, '--key', 'stranger.key', ...args]);
  shop.write('stranger.key', seedPem(Buffer.alloc(32, 3)), 0o600);
  shop.write('short.jsonl', ledgerOf(lines.slice(0, 5)));
  shop.write('cut.jsonl', ledgerOf(lines.slice(1)));
  expectOk(made('ledger.jsonl', 'passed.json', '--checkpoint', 'old.note'));
  expect(made('cut.jsonl', 'failed.json').status).toBe(1);
  const envelope = JSON.parse(shop.read('passed.json')) as { payload: string };
  const respell = (name: string, change: (statement: Record<string, unknown>) => object): string => {
    const statement = JSON.parse(Buffer.from(envelope.payload, 'base64').toString()) as Record<
      string,
      unknown
    >;
    const payload = Buffer.from(JSON.stringify(change(statement))).toString('base64');
    return shop.write(name, JSON.stringify({ ...envelope, payload }));
  };

  it('says who says that the ledger passed, and what it was held to', () => {
    const run = verify('passed.json', ...auditor, '--ledger', 'ledger.jsonl');
    expect(run.stderr).toBe('');
    const text = expectOk(run);
    expect(text).toMatch(/^ok {2}passed\.json: the signer says that the ledger PASSED\n/);
    expect(text).toContain(`signed by   ${stranger.publicKey.keyid}`);
    expect(text).toMatch(/held to {5}old\.note {2}sha256 [0-9a-f]{64}/);
    const json = expectOk(verify('passed.json', ...auditor, '--ledger', 'ledger.jsonl', '--format', 'json'));
    expect(parse<StatementResult>(json)).toMatchObject({
      kind: 'in-toto-statement',
      verdict: 'ok',
      exit_status: 0,
      problems: [],
      signers: [stranger.publicKey.keyid],
      not_checked: [{ code: 'LEDGER' }],
    });
  });

  it('reads the statement or the ledger from standard input, not both', () => {
    expectOk(shop.run(['verify-proof', '-', ...auditor], { input: shop.read('passed.json') }));
    const held = ['verify-proof', 'passed.json', ...auditor, '--ledger', '-'];
    expectOk(shop.run(held, { input: ledgerOf(lines) }));
    expectError(
      shop.run(['verify-proof', '-', ...auditor, '--ledger', '-'], { input: shop.read('passed.json') }),
      2,
      'USAGE',
    );
  });

  it.each<[string, string[], 1 | 2, string]>([
    ['that no given key signed', ['passed.json', '--key', 'log.pub'], 2, 'KEY_UNKNOWN'],
    ['without a key', ['passed.json'], 2, 'KEY_UNKNOWN'],
    ['with a key of a witness alone', ['passed.json', '--key', witnessVkey], 2, 'KEY_UNKNOWN'],
    ['of another ledger', ['passed.json', ...auditor, '--ledger', 'short.jsonl'], 1, 'SUBJECT_MISMATCH'],
    ['that says FAILED', ['failed.json', ...auditor, '--ledger', 'cut.jsonl'], 1, 'NOT_PASSED'],
    [
      'with another predicate',
      [
        respell('predicate.json', (all) => ({ ...all, predicateType: 'https://slsa.dev/provenance/v1' })),
        ...auditor,
      ],
      1,
      'STATEMENT_MALFORMED',
    ],
    [
      'that was changed',
      [respell('changed.json', (all) => ({ ...all, subject: [] })), ...auditor],
      1,
      'SIGNATURE_INVALID',
    ],
    [
      'with another payload type',
      [
        shop.write('event.json', expectOk(shop.run(['show', 'ledger.jsonl', '1', '--format', 'dsse']))),
        '--key',
        'log.pub',
      ],
      1,
      'STATEMENT_MALFORMED',
    ],
    ['that is only JSON', [shop.write('other.json', '{"a":1}\n'), ...auditor], 1, 'PROOF_MALFORMED'],
  ])('does not take one %s', (_what, args, status, code) => {
    const run = verify(...args);
    expect([run.status, run.stderr]).toEqual([status, '']);
    expect(run.stdout).toMatch(status === 1 ? /^invalid {2}/ : /^undecided {2}/);
    expect(run.stdout).toContain(`${code}: `);
    const json = verify(...args, '--format', 'json');
    expect(json.status).toBe(status);
    expect(parse<StatementResult>(json.stdout)).toMatchObject({ exit_status: status, problems: [{ code }] });
  });

  it.each<[string, string[], string]>([
    ['several files', ['passed.json', 'failed.json', ...auditor], 'USAGE'],
    ['what is of other proofs', ['passed.json', '--trust', 'trust.json'], 'USAGE'],
    [
      'a ledger for a proof of a record',
      ['three.tlog-proof', '--key', vkey, '--ledger', 'ledger.jsonl'],
      'USAGE',
    ],
    ['what is no ledger', ['passed.json', ...auditor, '--ledger', 'passed.json'], 'NOT_A_LEDGER'],
    ['a ledger that is missing', ['passed.json', ...auditor, '--ledger', 'none.jsonl'], 'FILE_NOT_FOUND'],
    ['a private key', ['passed.json', '--key', 'stranger.key'], 'KEY_IS_PRIVATE'],
  ])('is not given %s', (_what, args, code) => {
    expectError(verify(...args), 2, code);
  });

  it('shows nothing of it as it stands', () => {
    const hostile = '\u001b[31m\u202e';
    respell('hostile.json', (all) => ({
      ...all,
      subject: [{ name: hostile, digest: { sha256: hostile } }],
      predicate: { verificationResult: hostile, verifier: { id: hostile }, verifiedLevels: [hostile, {}] },
    }));

    expect(verify('hostile.json').stdout).not.toMatch(/\u001b|\u202e/);
  });
});

describe('diff', () => {
  shop.write('longer.jsonl', ledgerOf([...lines, lines[1]]));
  shop.write(
    'forked.jsonl',
    ledgerOf(lines.with(2, Buffer.from(lines[2].toString().replace('"n":2', '"n":7')))),
  );

  const diff = (...args: string[]): Run => shop.run(['diff', ...args]);

  it('finds the same', () => {
    const text = expectOk(diff('ledger.jsonl', 'ledger.jsonl'));
    expect(text.startsWith('identical')).toBe(true);
    expect(text).toContain('neither was verified');
  });

  it('finds that one extends the other', () => {
    expect(expectOk(diff('ledger.jsonl', 'longer.jsonl')).startsWith('b extends a')).toBe(true);
    expect(expectOk(diff('longer.jsonl', 'ledger.jsonl')).startsWith('a extends b')).toBe(true);
    const run = shop.run(['diff', '-', 'longer.jsonl', '--format', 'json'], { input: ledgerOf(lines) });
    expect(parse<LedgerDiff>(expectOk(run))).toMatchObject({
      relation: 'b_extends_a',
      exit_status: 0,
      fork: null,
    });
  });

  it('finds where they part', () => {
    const run = diff('ledger.jsonl', 'forked.jsonl');
    expect(run.status).toBe(1);
    expect(run.stdout.startsWith('forked')).toBe(true);
    expect(run.stdout).toContain('/event/n');
    const json = diff('ledger.jsonl', 'forked.jsonl', '--format', 'json');
    expect(json.status).toBe(1);
    expect(parse<LedgerDiff>(json.stdout)).toMatchObject({
      relation: 'forked',
      verified: false,
      common: { records: 2 },
      fork: { a: { seq: 2, line: 3 }, b: { seq: 2, line: 3 }, differs: ['/event/n'] },
    });
  });

  it('reads both or says why not', () => {
    expectError(diff('ledger.jsonl', 'none.jsonl'), 2, 'FILE_NOT_FOUND');
    expectError(diff('none.jsonl', 'ledger.jsonl'), 2, 'FILE_NOT_FOUND');
    expectError(diff('-', '-'), 2, 'USAGE');
  });
});
