/** `northroot key` and `trust`: keys that come to a ledger and go, and the policy that pins them. */

import { describe, expect, it } from 'vitest';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import type { Report } from '../../src/rules/report/report.js';
import type { Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import { ndjson, note } from './drafts.js';
import { CLI, expectCode, expectError, expectOk, hasProgram, parse, Workshop, type Run } from './runner.js';

const shop = new Workshop();
const ORIGIN = 'example.com/tests/keys';

interface Changed {
  readonly seq: number;
  readonly event_id: string;
  readonly status: string;
  readonly action: 'add' | 'revoke';
  readonly key: Key;
}

function init(name: string, ...args: string[]): void {
  expectOk(shop.run(['init', name, '--origin', ORIGIN, ...args]));
}

/** Makes a key file; its keyid and public key. */
function keygen(name: string, ...args: string[]): { keyid: string; public_key: string } {
  return parse(expectOk(shop.run(['keygen', '--out', name, ...args])));
}

function append(ledger: string, n: unknown, ...args: string[]): Run {
  return shop.run(['append', ledger, ...args], { input: ndjson([note(n)]) });
}

function ownKeyid(ledger: string): string {
  return parse<{ keyid: string }>(expectOk(shop.run(['key', 'show', `${ledger}.key`]))).keyid;
}

function verify(path: string, ...args: string[]): Report {
  return parse<Report>(shop.run(['verify', path, '--format', 'json', ...args]).stdout);
}

function expectSound(path: string, ...args: string[]): Report {
  const report = verify(path, ...args);
  const codes = (report.findings ?? []).filter(({ severity }) => severity !== 'info').map(({ code }) => code);
  expect({ verdict: report.verdict, codes }).toEqual({ verdict: 'ok', codes: [] });
  return report;
}

/** Runs what must be refused and leave the ledger as it was. */
function expectRefused(ledger: string, status: 1 | 2, code: string, args: readonly string[]): Run {
  const before = shop.read(ledger);
  const run = shop.run(args);
  expectError(run, status, code);
  expect(shop.read(ledger)).toBe(before);
  return run;
}

describe('key add', () => {
  init('a.jsonl');
  const added = keygen('added.pem');

  it('records a key with its roles, principals, name and time', () => {
    const args = ['--role', 'event', '--role', 'checkpoint', '--for', 'agent:*', '--for', 'service:ci'];
    const times = ['--valid-from', '2026-01-01', '--valid-until', '2099-01-01T00:00:00Z'];
    const others = ['--name', 'Anna’s', '--principal', 'human:anna', '--reason', 'a second machine'];
    const run = shop.run(['key', 'add', 'a.jsonl', 'added.pem', ...args, ...times, ...others]);
    const changed = parse<Changed>(expectOk(run));
    const key = {
      ...added,
      roles: ['event', 'checkpoint'],
      principals: ['agent:*', 'service:ci'],
      name: 'Anna’s',
      valid_from: '2026-01-01T00:00:00Z',
      valid_until: '2099-01-01T00:00:00Z',
    };
    const [, { event }] = shop.records('a.jsonl');
    const event_id = `sha-256:${event.event_id.b64}`;
    expect(changed).toEqual({ seq: 1, event_id, status: 'appended', action: 'add', key });
    expect(event).toMatchObject({
      event_type: 'key',
      action: 'add',
      key,
      principal_id: 'human:anna',
      reason: 'a second machine',
    });
    expect(run.stderr).toBe('');
    const row = `add ${added.keyid.slice(0, 12)} (Anna’s) event,checkpoint for agent:*,service:ci`;
    expect(
      expectOk(shop.run(['log', 'a.jsonl', '--type', 'key']))
        .trimEnd()
        .endsWith(row),
    ).toBe(true);
    expectSound('a.jsonl');
  });

  it('lets that key sign, for its principals and no others', () => {
    expectOk(append('a.jsonl', 1, '--key', 'added.pem'));
    expectError(
      shop.run(['append', 'a.jsonl', '--key', 'added.pem'], {
        input: ndjson([note(2, { principal_id: 'human:bob' })]),
      }),
      1,
      'KEY_NOT_FOR_PRINCIPAL',
      'stdin:1',
    );
    const seal = ['checkpoint', 'a.jsonl', '--key', 'added.pem'];
    expectOk(shop.run([...seal, '--principal', 'service:ci']));
    const report = expectSound('a.jsonl');
    expect(report.trust.signers.map(({ keyid }) => keyid)).toContain(added.keyid);
  });

  it('has defaults, and takes any form of a public key', () => {
    for (const form of ['pem', 'openssh', 'did', 'jwk', 'wire'] as const) {
      const { publicKey } = generatePrivateKey();
      const { keyid } = publicKey;
      shop.write(`${form}.pub`, formatPublicKeyAs(publicKey, form));
      const { key } = parse<Changed>(expectOk(shop.run(['key', 'add', 'a.jsonl', `${form}.pub`])));
      expect(key).toMatchObject({ keyid, roles: ['event'], principals: ['*'] });
      expect(Object.keys(key).sort()).toEqual(['keyid', 'principals', 'public_key', 'roles']);
    }
    const { keyid } = keygen('p256.key', '--alg', 'p256');
    expect(parse<Changed>(expectOk(shop.run(['key', 'add', 'a.jsonl', 'p256.key']))).key.keyid).toBe(keyid);
    expectOk(append('a.jsonl', 'p256', '--key', 'p256.key'));
    expectSound('a.jsonl');
  });

  it('writes roles and principals once', () => {
    keygen('twice.pem');
    const args = ['--role', 'event', '--role', 'event', '--for', 'agent:a1', '--for', 'agent:a1'];
    const { key } = parse<Changed>(expectOk(shop.run(['key', 'add', 'a.jsonl', 'twice.pem', ...args])));
    expect(key).toMatchObject({ roles: ['event'], principals: ['agent:a1'] });
  });

  keygen('new.pem');
  shop.write('none.pem', 'no key\n');
  it.each<[string, 1 | 2, string, string[]]>([
    ['a role that is none', 2, 'USAGE', ['new.pem', '--role', 'boss']],
    ['a pattern that is none', 2, 'USAGE', ['new.pem', '--for', 'a*b']],
    ['a witness without a name', 2, 'USAGE', ['new.pem', '--role', 'witness']],
    ['a time that is none', 2, 'USAGE', ['new.pem', '--valid-until', 'soon']],
    ['a principal that is none', 2, 'USAGE', ['new.pem', '--principal', 'me']],
    ['a file that is no key', 2, 'KEY_MALFORMED', ['none.pem']],
    ['a file that is not there', 2, 'FILE_NOT_FOUND', ['nowhere.pem']],
    ['a key that is known', 1, 'SCHEMA', ['added.pem']],
    ['the key of an admin that is known', 1, 'SCHEMA', ['a.jsonl.key']],
    ['to sign with a key that is no admin', 1, 'KEY_NOT_FOR_ROLE', ['new.pem', '--key', 'added.pem']],
    ['to sign with a key that is not known', 1, 'KEY_UNKNOWN', ['new.pem', '--key', 'new.pem']],
    ['a witness whose name no note can have', 2, 'USAGE', ['new.pem', '--role', 'witness', '--name', 'a b']],
  ])('refuses %s, and changes nothing', (_what, status, code, args) => {
    expectRefused('a.jsonl', status, code, ['key', 'add', 'a.jsonl', ...args]);
  });

  it('needs a ledger, and a key', () => {
    expectError(shop.run(['key', 'add', 'missing.jsonl', 'new.pem']), 2, 'FILE_NOT_FOUND');
    expect(shop.has('missing.jsonl')).toBe(false);
    expectOk(append('unsigned.jsonl', 1, '--unsigned', '--create'));
    const before = shop.read('unsigned.jsonl');
    const run = shop.run(['key', 'add', 'unsigned.jsonl', 'new.pem']);
    expect(run.stdout).toBe('');
    expectCode(run, 'SIGNATURE_MISSING');
    expect(shop.read('unsigned.jsonl')).toBe(before);
  });

  it('names the file that is no key, and other commands that are no policy and no tokens', () => {
    shop.write('text.txt', 'hello');
    for (const [code, ...args] of [
      ['KEY_MALFORMED', 'key', 'show', 'text.txt'],
      [
        'KEY_MALFORMED',
        'grant',
        'unsigned.jsonl',
        '--to',
        'agent:a',
        '--tool',
        'x',
        '--cap',
        'usd=1',
        '--key',
        'text.txt',
      ],
      ['TRUST_POLICY_INVALID', 'verify', 'unsigned.jsonl', '--trust', 'text.txt'],
      ['TOKENS_MALFORMED', 'gate', 'token', 'text.txt', 'n', '--principal', 'agent:a'],
    ] as const) {
      const run = shop.run(args);
      expectError(run, 2, code);
      expect(run.stderr).toContain('text.txt');
    }
  });
});

describe('key revoke', () => {
  init('r.jsonl');
  const { keyid } = keygen('r.pem');
  expectOk(shop.run(['key', 'add', 'r.jsonl', 'r.pem']));
  expectOk(append('r.jsonl', 1, '--key', 'r.pem'));

  it.each<[string, string]>([
    ['which begins no keyid', 'zzz-none'],
    ['of no letters', ''],
  ])('refuses a keyid %s', (_what, prefix) => {
    const run = expectRefused('r.jsonl', 2, 'USAGE', ['key', 'revoke', 'r.jsonl', prefix]);
    expect(run.stderr).toContain(keyid);
  });

  it('refuses one that begins several keyids', () => {
    const first = keyid.charAt(0);
    let added = 0;
    while (!verifyKeyids('r.jsonl').some((each) => each !== keyid && each.startsWith(first))) {
      // One keyid in 64 begins with the same letter: keys are made until one does.
      let made = { keyid: '' };
      for (let n = 0; n < 2_000 && !made.keyid.startsWith(first); n += 1)
        made = makeKeyFile(`more-${added}.jwk`);
      expectOk(shop.run(['key', 'add', 'r.jsonl', `more-${added}.jwk`]));
      added += 1;
    }
    const run = expectRefused('r.jsonl', 2, 'USAGE', ['key', 'revoke', 'r.jsonl', first]);
    expect(run.stderr).toContain('more than one');
  });

  it('takes a prefix, and ends the key here and in later processes', () => {
    expectOk(shop.run(['checkpoint', 'r.jsonl']));
    const run = shop.run(['key', 'revoke', 'r.jsonl', keyid.slice(0, 12), '--reason', 'lost']);
    const changed = parse<Changed>(expectOk(run));
    expect(changed).toMatchObject({ status: 'appended', action: 'revoke', key: { keyid } });
    expect(shop.records('r.jsonl').at(-1)?.event).toMatchObject({ action: 'revoke', reason: 'lost' });
    expectSound('r.jsonl');
    const before = shop.read('r.jsonl');
    expectError(append('r.jsonl', 2, '--key', 'r.pem'), 1, 'KEY_NOT_VALID_HERE', 'stdin:1');
    expect(shop.read('r.jsonl')).toBe(before);
  });

  it('warns where the revoked key is the one that commands sign with by default', () => {
    init('own.jsonl');
    keygen('next.pem');
    expectOk(shop.run(['key', 'add', 'own.jsonl', 'next.pem']));
    const [own = ''] = verifyKeyids('own.jsonl');
    const run = shop.run(['key', 'revoke', 'own.jsonl', own]);
    expectOk(run);
    for (const text of ['own.jsonl.key', '--key']) expect(run.stderr).toContain(text);
    const other = shop.run(['key', 'revoke', 'r.jsonl', verifyKeyids('r.jsonl').at(-1) ?? '']);
    expect(other.stderr).not.toContain('r.jsonl.key');
  });

  it('takes the file of a key, and says that its records need a seal', () => {
    init('file.jsonl');
    const leaked = keygen('leaked.pem');
    expectOk(shop.run(['key', 'add', 'file.jsonl', 'leaked.pem']));
    expectOk(append('file.jsonl', 1, '--key', 'leaked.pem'));
    expectRefused('file.jsonl', 2, 'USAGE', ['key', 'revoke', 'file.jsonl', 'r.pem']);
    const run = shop.run(['key', 'revoke', 'file.jsonl', 'leaked.pem']);
    expect(parse<Changed>(expectOk(run)).key.keyid).toBe(leaked.keyid);
    expect(run.stderr).toContain('checkpoint');
    expect(verify('file.jsonl').verdict).toBe('invalid');
    expectOk(shop.run(['checkpoint', 'file.jsonl']));
    expectSound('file.jsonl');
  });

  it('once, and for good', () => {
    expectRefused('r.jsonl', 2, 'USAGE', ['key', 'revoke', 'r.jsonl', keyid]);
    expectRefused('r.jsonl', 1, 'SCHEMA', ['key', 'add', 'r.jsonl', 'r.pem']);
  });

  it.each(['-', '--', '-q', '-V', '-h'])('takes a keyid that begins with %s', (start) => {
    const name = `dash${start}.jsonl`;
    init(name);
    // Keys with two given letters are too rare to be made here.
    const dashed = start === '-' ? findKey(start) : undefined;
    if (dashed === undefined) {
      const unknown = `${start}${'A'.repeat(43 - start.length)}`;
      const run = expectRefused(name, 2, 'USAGE', ['key', 'revoke', name, unknown, '--reason', 'x']);
      expect(run.stderr).toContain(`no key ${unknown}`);
      return;
    }
    expectOk(shop.run(['key', 'add', name, dashed.file]));
    const args = ['key', 'revoke', name, dashed.keyid, '--reason', 'x'];
    expect(parse<Changed>(expectOk(shop.run(args))).key.keyid).toBe(dashed.keyid);
  });

  it.each(['-q', '-V', '-7', '-_'])('takes the beginning of a keyid, from %s on', (start) => {
    const unknown = `${start}JqeDM-_`;
    const args = ['key', 'revoke', 'a.jsonl', unknown, '--reason', 'x'];
    expect(expectRefused('a.jsonl', 2, 'USAGE', args).stderr).toContain(`no key ${unknown}`);
    const short = ['key', 'revoke', 'a.jsonl', '--reason', 'x', '--', start];
    expect(expectRefused('a.jsonl', 2, 'USAGE', short).stderr).toContain(`no key ${start}`);
  });

  it('takes a reason that begins with a dash', () => {
    init('reason.jsonl');
    const { keyid: other } = keygen('reason.pem');
    expectOk(shop.run(['key', 'add', 'reason.jsonl', 'reason.pem']));
    expectOk(shop.run(['key', 'revoke', 'reason.jsonl', other, '--reason', '-compromised-']));
    expect(shop.records('reason.jsonl').at(-1)?.event).toMatchObject({ reason: '-compromised-' });
  });

  it('of the last admin leaves nobody who could change keys', () => {
    init('last.jsonl');
    keygen('last.pem');
    expectOk(shop.run(['key', 'add', 'last.jsonl', 'last.pem', '--role', 'event', '--role', 'checkpoint']));
    expectOk(shop.run(['checkpoint', 'last.jsonl']));
    expectOk(shop.run(['key', 'revoke', 'last.jsonl', ownKeyid('last.jsonl')]));
    expectOk(append('last.jsonl', 1, '--key', 'last.pem'));
    expectRefused('last.jsonl', 1, 'KEY_NOT_VALID_HERE', ['key', 'add', 'last.jsonl', 'r.pem']);
    const args = ['key', 'add', 'last.jsonl', 'r.pem', '--key', 'last.pem'];
    expectRefused('last.jsonl', 1, 'KEY_NOT_FOR_ROLE', args);
    expectSound('last.jsonl');
  });

  it('after which only a checkpoint saves what the key signed', () => {
    init('late.jsonl');
    keygen('late.pem');
    const roles = ['--role', 'event', '--role', 'checkpoint', '--role', 'admin'];
    expectOk(shop.run(['key', 'add', 'late.jsonl', 'late.pem', ...roles]));
    const own = ownKeyid('late.jsonl');
    expectOk(shop.run(['key', 'revoke', 'late.jsonl', own, '--key', 'late.pem']));
    const { verdict, findings = [] } = verify('late.jsonl');
    expect([verdict, findings.map(({ code }) => code)]).toEqual([
      'invalid',
      expect.arrayContaining(['KEY_NOT_VALID_HERE']),
    ]);
  });

  /** The keyids that key events and genesis of a ledger enter. */
  function verifyKeyids(ledger: string): string[] {
    return shop.records(ledger).flatMap(({ event }) => {
      const keys = (event['keys'] ?? (event['action'] === 'add' ? [event['key']] : [])) as Key[];
      return keys.map((key) => key.keyid);
    });
  }

  function findKey(start: string): { keyid: string; file: string } {
    for (;;) {
      const { keyid } = makeKeyFile('found.jwk');
      if (keyid.startsWith(start)) return { keyid, file: 'found.jwk' };
    }
  }

  /** A public key without a private half; made here, since a process for each would take long. */
  function makeKeyFile(name: string): { keyid: string } {
    const pair = generatePrivateKey();
    shop.write(name, formatPublicKeyAs(pair.publicKey, 'jwk'));
    return { keyid: pair.publicKey.keyid };
  }
});

describe('rotation', () => {
  it.each([
    ['under a policy', ['--trust', 'rot.json']],
    ['self-declared', []],
  ])('verifies from end to end, %s', (_what, args) => {
    const name = `rot-${args.length}.jsonl`;
    init(name);
    expectOk(append(name, 1));
    shop.run(['trust', 'init', name, '--out', 'rot.json', '--yes']);
    keygen(`${name}.next`);
    const roles = ['--role', 'event', '--role', 'checkpoint', '--role', 'admin', '--reason', 'rotation'];
    expectOk(shop.run(['key', 'add', name, `${name}.next`, ...roles]));
    const revoked = shop.run(['key', 'revoke', name, ownKeyid(name), '--key', `${name}.next`]);
    expectOk(revoked);
    // What all commands sign with unless they are told otherwise.
    expect(revoked.stderr).toContain(`${name}.key`);
    expectError(append(name, 2), 1, 'KEY_NOT_VALID_HERE', 'stdin:1');
    expectOk(append(name, 2, '--key', `${name}.next`));
    // What the old key signed is covered by the checkpoint, which comes after it was revoked.
    expectOk(shop.run(['checkpoint', name, '--key', `${name}.next`]));
    expectSound(name, ...args);
  });
});

describe('key show', () => {
  it('as a cosigner has another key ID than as a log', () => {
    keygen('show.pem');
    const [log, witness] = ['vkey', 'cosigner'].map((form) =>
      expectOk(shop.run(['key', 'show', 'show.pem', '--form', form, '--name', 'w.example/1'])).trim(),
    );
    const [log0, log1, log2] = log.split('+');
    const [witness0, witness1, witness2] = witness.split('+');
    expect([log0, witness0]).toEqual(['w.example/1', 'w.example/1']);
    expect(log1).not.toBe(witness1);
    const [logBytes, witnessBytes] = [log2, witness2].map((text) => Buffer.from(text, 'base64'));
    expect([logBytes[0], witnessBytes[0]]).toEqual([1, 4]);
    expect(logBytes.subarray(1)).toEqual(witnessBytes.subarray(1));
  });

  it.each<[string, string[]]>([
    ['without a name', ['--form', 'cosigner']],
    ['of another algorithm', ['--form', 'cosigner', '--name', 'w.example/1', '--p256']],
  ])('as a cosigner is refused %s', (_what, args) => {
    keygen(`cosigner-${args.length}.pem`, '--alg', args.includes('--p256') ? 'p256' : 'ed25519');
    const given = args.filter((arg) => arg !== '--p256');
    const run = shop.run(['key', 'show', `cosigner-${args.length}.pem`, ...given]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^error: (?:USAGE|KEY_UNSUPPORTED): /);
  });
});

describe('trust init', () => {
  init('t.jsonl');
  expectOk(append('t.jsonl', 1));

  it('asks, and writes nothing where nobody can answer', () => {
    const run = shop.run(['trust', 'init', 't.jsonl', '--out', 't.json']);
    expectError(run, 2, 'USAGE');
    expect(run.stderr).toContain(ownKeyid('t.jsonl'));
    expect(run.stderr).toContain('--yes');
    expect(shop.has('t.json')).toBe(false);
    expectError(shop.run(['trust', 'init', 't.jsonl'], { input: 'y\n' }), 2, 'USAGE');
  });

  it('writes a policy that pins what genesis declares', () => {
    const run = shop.run(['trust', 'init', 't.jsonl', '--out', 't.json', '--yes']);
    expect(run).toMatchObject({ status: 0, stdout: '' });
    const policy = parse<TrustPolicy>(shop.read('t.json'));
    const [genesis] = shop.records('t.jsonl');
    expect(policy).toEqual({
      trust_version: '1',
      origins: [ORIGIN],
      keys: genesis.event['keys'],
      require: genesis.event['signing'] === undefined ? {} : requirementsOf(genesis.event['signing']),
    });
    const report = expectSound('t.jsonl', '--trust', 't.json');
    expect(report.trust.mode).toBe('policy');
    expect(parse(expectOk(shop.run(['trust', 'init', 't.jsonl', '--yes'])))).toEqual(policy);
  });

  it('overwrites nothing', () => {
    shop.write('mine.json', 'mine');
    expectError(shop.run(['trust', 'init', 't.jsonl', '--out', 'mine.json', '--yes']), 2, 'FILE_EXISTS');
    expect(shop.read('mine.json')).toBe('mine');
  });

  it('does not trust another ledger', () => {
    expectOk(shop.run(['init', 'x.jsonl', '--origin', 'example.com/tests/x']));
    const { verdict, findings = [] } = verify('x.jsonl', '--trust', 't.json');
    expect(verdict).toBe('invalid');
    expect(findings.map(({ code }) => code)).toContain('ORIGIN_MISMATCH');
  });

  it.each<[string, 1 | 2, string, string]>([
    ['a ledger that does not verify', 1, 'LEDGER_INVALID', 't-broken.jsonl'],
    ['an empty file', 2, 'LEDGER_EMPTY', 't-empty.jsonl'],
    ['a ledger without keys', 2, 'KEY_UNKNOWN', 't-unsigned.jsonl'],
    ['standard input', 2, 'USAGE', '-'],
    ['nothing', 2, 'FILE_NOT_FOUND', 't-missing.jsonl'],
  ])('is not made of %s', (_what, status, code, path) => {
    shop.write('t-broken.jsonl', shop.read('t.jsonl').replace('"n":1', '"n":2'));
    shop.write('t-empty.jsonl', '');
    if (!shop.has('t-unsigned.jsonl')) expectOk(append('t-unsigned.jsonl', 1, '--unsigned', '--create'));
    const run = shop.run(['trust', 'init', path, '--out', 'never.json', '--yes']);
    expectError(run, status, code);
    expect(shop.has('never.json')).toBe(false);
  });

  it.runIf(hasProgram('script')).each<[string, boolean]>([
    ['y', true],
    ['YES', true],
    ['n', false],
    ['', false],
    ['yellow', false],
  ])('on a terminal takes %j for an answer: %s', async (answer, isYes) => {
    const out = `asked-${answer}.json`;
    const command = `northroot trust init t.jsonl --out ${out}`;
    shop.write('asked.sh', `exec '${process.execPath}' '${CLI}' ${command.slice('northroot '.length)}\n`);
    const running = shop.startProgram(['script', '-qec', 'sh asked.sh', '/dev/null']);
    await running.until(({ stdout }) => stdout.includes('[y/N]'));
    await running.feed(`${answer}\n`);
    const run = await running.end();
    expect(run.stdout).toContain('[y/N]');
    expect([run.status, shop.has(out)]).toEqual(isYes ? [0, true] : [2, false]);
    if (!isYes) expect(run.stdout).toContain('NOT_CONFIRMED');
  });
});

describe('trust show', () => {
  const hostile: Key = {
    keyid: ownKeyid('t.jsonl'),
    public_key: parse<{ public_key: string }>(expectOk(shop.run(['key', 'show', 't.jsonl.key']))).public_key,
    roles: ['event', 'checkpoint', 'admin'],
    principals: ['*'],
    name: 'Ann\u202ea\u200b',
    valid_until: '2099-01-01T00:00:00Z',
  };
  const policy: TrustPolicy = {
    trust_version: '1',
    origins: [ORIGIN, 'example.com/\u202etxet'],
    keys: [hostile],
    require: { checkpoint_max_records: 100 },
  };
  shop.write('hostile.json', JSON.stringify(policy));

  it('says what is pinned, and nothing that could deceive', () => {
    const text = expectOk(shop.run(['trust', 'show', 'hostile.json']));
    expect(text).toContain(hostile.keyid);
    expect(text).toContain(ORIGIN);
    expect(text).toMatch(/SHA256:[A-Za-z0-9+/]{43}/);
    expect(text).toContain('2099-01-01T00:00:00Z');
    expect(text).toContain('100');
    expect(text).not.toMatch(/[\u202e\u200b\u001b]/);
  });

  it('shows the fingerprint that other tools show', () => {
    const { fingerprints } = parse<{ fingerprints: { keyid: string; openssh: string; vkey: string }[] }>(
      expectOk(shop.run(['trust', 'show', 'hostile.json', '--format', 'json'])),
    );
    const vkey = expectOk(
      shop.run(['key', 'show', 't.jsonl.key', '--form', 'vkey', '--name', ORIGIN]),
    ).trim();
    expect(fingerprints).toEqual([
      { keyid: hostile.keyid, openssh: expect.stringMatching(/^SHA256:[A-Za-z0-9+/]{43}$/) as string, vkey },
    ]);
    if (!hasProgram('ssh-keygen')) return;
    shop.write(
      't.pub',
      expectOk(shop.run(['key', 'show', 't.jsonl.key', '--form', 'openssh', '--name', 'x'])),
    );
    expect(expectOk(shop.shell('ssh-keygen -lf t.pub'))).toContain(fingerprints[0].openssh);
  });

  it('as JSON is the policy, and escapes what could deceive', () => {
    const text = expectOk(shop.run(['trust', 'show', 'hostile.json', '--format', 'json']));
    const { fingerprints, ...shown } = parse<TrustPolicy & { fingerprints: unknown }>(text);
    expect(shown).toEqual(policy);
    expect(fingerprints).toHaveLength(1);
    expect(text).not.toMatch(/[\u202e\u200b]/);
  });

  it.each<[string, string]>([
    ['a file that is not there', 'nowhere.json'],
    ['what is no policy', 't.jsonl'],
    ['a folder', '.'],
  ])('could not decide by %s', (_what, path) => {
    const run = shop.run(['trust', 'show', path]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
  });
});

/** What genesis promises, as a policy demands it. */
function requirementsOf(signing: unknown): object {
  const { events, checkpoints } = signing as { events: string; checkpoints: string };
  return { event_signatures: events, checkpoints };
}
