/** `northroot key` with a passkey, and `approve` and `reject` by one in two steps. */

import { beforeAll, expect, it } from 'vitest';
import { Authenticator, type AssertionOptions } from '../key/authenticator.js';
import { expectError, expectOk, parse, Workshop } from './runner.js';

const shop = new Workshop();
const olga = new Authenticator();
const L = 'l.jsonl';
const BY_OLGA = ['--passkey', 'https://approve.example.com', '--principal', 'human:olga'];

interface Asked {
  readonly event: object;
  readonly publicKey: { readonly challenge: string };
}

/** A call that is denied for want of an approval. */
function ask(): string {
  const call = ['--principal', 'agent:a1', '--tool', 'deploy', '--reserve', 'usd=5', '--params', 'p.json'];
  const { stdout } = shop.run(['authorize', L, ...call, '--key', 'agent.pem']);
  return parse<{ event_id: string }>(stdout).event_id;
}

/** The file that comes back of the page. */
function sign(asked: Asked, options?: AssertionOptions): string {
  const credential = olga.assert(asked.publicKey.challenge, options);
  shop.write('signed.json', JSON.stringify({ event: asked.event, credential }));
  return 'signed.json';
}

beforeAll(() => {
  shop.write('p.json', '{}');
  shop.write('olga.json', olga.register());
  expectOk(shop.run(['init', L]));
  expectOk(shop.run(['keygen', '--out', 'agent.pem']));
  expectOk(shop.run(['key', 'add', L, 'agent.pem', '--role', 'event', '--for', 'agent:a1']));
  expectOk(shop.run(['key', 'add', L, 'olga.json', '--role', 'event', '--for', 'human:olga']));
  const rule = ['--approve-tool', 'deploy', '--approver', 'human:*'];
  expectOk(shop.run(['grant', L, '--to', 'agent:a1', '--tool', '*', '--cap', 'usd=1000', ...rule]));
});

it('key show and key list show what the passkey is pinned to', () => {
  const entry = parse<{ webauthn: object }>(expectOk(shop.run(['key', 'show', 'olga.json'])));
  expect(entry.webauthn).toMatchObject({ rp_id: 'example.com', origins: ['https://approve.example.com'] });
  const list = expectOk(shop.run(['key', 'list', L]));
  expect(list).toContain('passkey    of https://approve.example.com, RP id example.com, approvals alone');
  expect(list).toContain('user       present and verified');
  const own = parse<{ keyid: string }>(expectOk(shop.run(['key', 'show', `${L}.key`]))).keyid;
  expect(list).toContain(`not alone  key ${own} may approve as human:olga too`);
});

it('key list and trust show tell of further pages, and of users who need not be verified', () => {
  const entry = parse<{ webauthn: object }>(expectOk(shop.run(['key', 'show', 'olga.json'])));
  const more = { top_origins: ['https://portal.example'], user_verification: 'optional' };
  const key = {
    ...entry,
    webauthn: { ...entry.webauthn, ...more },
    principals: ['human:olga'],
    roles: ['event'],
  };
  shop.write('policy.json', JSON.stringify({ trust_version: '1', keys: [key] }));
  const rows = ['pages of https://portal.example too', 'present, and verified or not'];
  for (const row of rows) {
    expect(expectOk(shop.run(['key', 'list', L, '--trust', 'policy.json']))).toContain(row);
    expect(expectOk(shop.run(['trust', 'show', 'policy.json']))).toContain(row);
  }
});

it('verify says which other key may approve in the same name, and its verdict stays', () => {
  const { stderr, status } = shop.run(['verify', L]);
  expect([status, stderr]).toEqual([
    0,
    expect.stringContaining('may approve as human:olga without the passkey'),
  ]);
});

it('key add says whether another key may approve in the same name', () => {
  const own = parse<{ keyid: string }>(expectOk(shop.run(['key', 'show', `${L}.key`]))).keyid;
  const entry = parse<{ keyid: string }>(expectOk(shop.run(['key', 'show', 'olga.json']))).keyid;
  const note = (key: string): string =>
    `note: key ${key} may approve as human:olga without the passkey ${entry}`;
  const M = 'm.jsonl';
  expectOk(shop.run(['init', M, '--key', `${L}.key`]));
  const add = (file: string, of: string) =>
    shop.run(['key', 'add', M, file, '--key', `${L}.key`, '--for', of]).stderr;
  expect(add('olga.json', 'human:olga')).toContain(note(own));
  expectOk(shop.run(['keygen', '--out', 'other.pem']));
  const other = parse<{ keyid: string }>(expectOk(shop.run(['key', 'show', 'other.pem']))).keyid;
  expect(add('agent.pem', 'agent:*')).not.toContain('note:');
  expect(add('other.pem', 'human:*')).toContain(note(other));
});

it('a key that may not approve is told of the passkey that may', () => {
  const { stderr } = shop.run(['approve', L, ask(), '--principal', 'human:olga', '--key', 'agent.pem']);
  expect(stderr).toContain('KEY_NOT_FOR_PRINCIPAL');
  expect(stderr).toMatch(/sign by the passkey \S+: approve --passkey/);
});

it('approve --passkey appends nothing, approve --assertion what was signed', () => {
  const request = ask();
  const before = shop.read(L);
  const asked = parse<Asked>(expectOk(shop.run(['approve', L, request, ...BY_OLGA, '--limit', 'usd=4'])));
  expect(asked.event).toMatchObject({ principal_id: 'human:olga', decision: 'approve' });
  expectError(
    shop.run(['approve', L, request, '--assertion', sign(asked, { flags: 1 })]),
    1,
    'SIGNATURE_INVALID',
  );
  expect(shop.read(L)).toBe(before);
  expectOk(shop.run(['approve', L, request, '--assertion', sign(asked)]));
  expect(shop.records(L).at(-1)).toMatchObject({ event: asked.event, signatures: [{}] });
  expectOk(shop.run(['verify', L]));
});

it('reject likewise', () => {
  const request = ask();
  const asked = parse<Asked>(expectOk(shop.run(['reject', L, request, ...BY_OLGA])));
  expectError(shop.run(['approve', L, request, '--assertion', sign(asked)]), 1, 'SIGNATURE_INVALID');
  expectOk(shop.run(['reject', L, request, '--assertion', sign(asked)]));
  expect(shop.records(L).at(-1)).toMatchObject({ event: { decision: 'reject' } });
});

it('misuse is told', () => {
  const request = ask();
  const elsewhere = ['--passkey', 'https://evil.example', '--principal', 'human:olga'];
  expectError(shop.run(['approve', L, request, ...elsewhere]), 1, 'KEY_UNKNOWN');
  expectError(shop.run(['approve', L, request, ...BY_OLGA, '--assertion', 'signed.json']), 2, 'USAGE');
  expectError(shop.run(['approve', L, request, '--assertion', 'olga.json']), 2, 'USAGE');
  expectError(shop.run(['approve', L, request, '--assertion', 'missing.json']), 2, 'FILE_NOT_FOUND');
  expectError(shop.run(['key', 'add', L, 'olga.json', '--role', 'admin']), 1, 'SCHEMA');
});

it('verify-proof verifies an approval by the registration of its passkey, and by no plain form of that key', () => {
  const request = ask();
  const asked = parse<Asked>(expectOk(shop.run(['approve', L, request, ...BY_OLGA])));
  const { event_id: id } = parse<{ event_id: string }>(
    expectOk(shop.run(['approve', L, request, '--assertion', sign(asked)])),
  );
  expectOk(shop.run(['checkpoint', L]));
  expectOk(shop.run(['prove', L, id, '--out', 'a.proof']));
  shop.write('log.pem', expectOk(shop.run(['key', 'show', `${L}.key`, '--form', 'pem'])));
  shop.write('plain.pem', expectOk(shop.run(['key', 'show', 'olga.json', '--form', 'pem'])));
  const codes = (proof: string, key: string) => {
    const { status, stdout } = shop.run([
      'verify-proof',
      proof,
      '--key',
      'log.pem',
      '--key',
      key,
      '--format',
      'json',
    ]);
    const { event_signatures: signatures, problems } = parse<{
      event_signatures: { result: string }[];
      problems: { code: string }[];
    }>(stdout);
    return [status, signatures.map(({ result }) => result), problems.map(({ code }) => code)];
  };
  expect(codes('a.proof', 'olga.json')).toEqual([0, ['valid'], []]);
  expect(codes('a.proof', 'plain.pem')).toEqual([1, ['invalid'], ['SIGNATURE_INVALID']]);
});
