/** `northroot init`, `keygen` and `key show`. */

import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parsePrivateKey } from '../../src/format/key/private-key.js';
import { parsePublicKey } from '../../src/format/key/public-key.js';
import { expectError, expectOk, hasProgram, parse, Workshop, type KeyJson, type Run } from './runner.js';

const shop = new Workshop();
shop.makeFolder('folder-of-others');
shop.write('folder-of-others/notes.txt', 'mine');
shop.write('notes.txt', 'mine');
expectOk(shop.run(['keygen', '--out', 'own.pem']));

function keyidIn(file: string): string {
  return parsePrivateKey(shop.bytes(file)).publicKey.keyid;
}

describe('init', () => {
  it('makes a ledger that verifies, and a key for its owner alone', () => {
    const run = shop.run(['init', 'plain.jsonl']);
    const result = parse<KeyJson>(expectOk(run));
    const [genesis, ...more] = shop.records('plain.jsonl');
    expect(more).toEqual([]);
    expect(result).toEqual({
      seq: 0,
      event_id: `sha-256:${genesis.event.event_id.b64}`,
      origin: genesis.event.origin,
      keyid: keyidIn('plain.jsonl.key'),
    });
    expect(genesis.event).toMatchObject({
      event_type: 'genesis',
      principal_id: 'service:ledger',
      signing: { events: 'required' },
    });
    expect(result.origin).toMatch(/^localhost\/ledger-[0-9a-f]{16}$/);
    expect(shop.files('plain')).toEqual(['plain.jsonl', 'plain.jsonl.key']);
    expect(shop.mode('plain.jsonl.key')).toBe('600');
    expect(run.stderr).toContain('plain.jsonl.key');
    expectOk(shop.run(['verify', 'plain.jsonl']));
  });

  it.each<[string, Readonly<Record<string, string>>, boolean]>([
    ['nothing is ignored', {}, true],
    ['other files are', { '.gitignore': '# keys\n/l.jsonl.key\nx*.key\nsub/l.jsonl.key/\n' }, true],
    ['it is taken back', { '.gitignore': '*.key\n', 'sub/.gitignore': '!l.jsonl.key\n' }, true],
    ['keys are', { '.gitignore': 'dist\r\n*.key\r\n' }, false],
    ['its folder is', { '.gitignore': '/sub/\n' }, false],
    ['it is, by name', { 'sub/.gitignore': '/l.jsonl.key\n' }, false],
    ['keys are, anywhere', { '.git/info/exclude': '**/*.key\n' }, false],
    ['that cannot be known', { '.gitignore': '*.[k]ey\n' }, false],
  ])('says that git would take the key, in a work tree where %s', (name, files, isTold) => {
    const top = `tree ${name.replaceAll(/\W/g, '-')}`;
    for (const folder of ['', '/.git', '/.git/info', '/sub']) shop.makeFolder(`${top}${folder}`);
    for (const [file, text] of Object.entries(files)) shop.write(`${top}/${file}`, text);
    const run = shop.run(['init', `${top}/sub/l.jsonl`]);
    expectOk(run);
    expect(/^note: .*l\.jsonl\.key is in the git work tree/m.test(run.stderr)).toBe(isTold);
  });

  it('begins a past that is written down later: then drafts of it are in order', () => {
    expectOk(shop.run(['init', 'past.jsonl', '--at', '2026-03-01']));
    expect(shop.records('past.jsonl')[0].event.occurred_at).toBe('2026-03-01T00:00:00Z');
    const draft = { event_type: 'x.note', principal_id: 'agent:a1', occurred_at: '2026-03-02T12:00:00Z' };
    const input = `${JSON.stringify(draft)}\n`;
    expect(expectOk(shop.run(['append', 'past.jsonl'], { input }))).not.toContain('TIME_REGRESSION');
    expectOk(shop.run(['verify', 'past.jsonl']));
    expectError(shop.run(['init', 'future.jsonl', '--at', '9999-01-01']), 2, 'USAGE');
    expect(shop.files('future')).toEqual([]);
  });

  it('takes an origin, a principal and a key', () => {
    const args = ['--origin', 'example.com/agents/prod', '--principal', 'org:example', '--key', 'own.pem'];
    const result = parse<KeyJson>(expectOk(shop.run(['init', 'options.jsonl', ...args])));
    expect(result).toMatchObject({ origin: 'example.com/agents/prod', keyid: keyidIn('own.pem') });
    expect(shop.records('options.jsonl')[0].event.principal_id).toBe('org:example');
    expect(shop.files('options')).toEqual(['options.jsonl']);
  });

  it('takes the key that NORTHROOT_KEY names', () => {
    const run = shop.run(['init', 'environment.jsonl'], { env: { NORTHROOT_KEY: 'own.pem' } });
    expect(parse<KeyJson>(expectOk(run)).keyid).toBe(keyidIn('own.pem'));
    expect(shop.files('environment')).toEqual(['environment.jsonl']);
  });

  it('makes a ledger without a key', () => {
    expect(parse<KeyJson>(expectOk(shop.run(['init', 'unsigned.jsonl', '--unsigned']))).keyid).toBeNull();
    const [{ event, signatures }] = shop.records('unsigned.jsonl');
    expect(event).toMatchObject({ keys: [], signing: { events: 'optional' } });
    expect(signatures).toEqual([]);
    expect(shop.files('unsigned')).toEqual(['unsigned.jsonl']);
  });

  it.each(['new-folder/', 'empty-folder'])('makes a folder of segments of %s', (path) => {
    if (path === 'empty-folder') shop.makeFolder(path);
    expectOk(shop.run(['init', path]));
    const name = path.replace('/', '');
    expect(shop.lines(`${name}/00000000000000000000.jsonl`)).toHaveLength(1);
    expect(shop.mode(`${name}.key`)).toBe('600');
    expectOk(shop.run(['verify', path]));
  });

  it.each([
    ['a ledger', 'plain.jsonl'],
    ['another file', 'notes.txt'],
    ['a folder of other things', 'folder-of-others'],
    ['a device', '/dev/null'],
  ])('leaves %s as it is', (_what, path) => {
    const before = [shop.read('plain.jsonl'), shop.read('notes.txt'), shop.files('')];
    expectError(shop.run(['init', path]), 2, 'LEDGER_EXISTS');
    expect([shop.read('plain.jsonl'), shop.read('notes.txt'), shop.files('')]).toEqual(before);
  });

  it('does not overwrite a key that stands where its own would, and signs with it', () => {
    shop.write('keyed.jsonl.key', shop.read('own.pem'), 0o600);
    const made = parse<KeyJson>(expectOk(shop.run(['init', 'keyed.jsonl'])));
    expect(made.keyid).toBe(keyidIn('own.pem'));
    expect(shop.read('keyed.jsonl.key')).toBe(shop.read('own.pem'));
    expectOk(shop.run(['verify', 'keyed.jsonl']));
  });

  it.each<[string, string, string]>([
    ['a file that is empty', 'killed-a.jsonl', ''],
    ['the first bytes of a genesis', 'killed-b.jsonl', '{"event":{"canonical_profile_id":"north'],
    ['an empty first segment', 'killed-c/00000000000000000000.jsonl', ''],
    ['a torn first segment', 'killed-d/00000000000000000000.jsonl', '{"event":{"canon'],
  ])('is repeated where an attempt that was killed left %s, with its key', (_what, file, text) => {
    const ledger = file.replace(/\/.*/, '/');
    mkdirSync(dirname(shop.path(file)), { recursive: true });
    shop.write(file, text);
    shop.write(`${ledger.replace(/\/$/, '')}.key`, shop.read('own.pem'), 0o600);
    const made = parse<KeyJson>(expectOk(shop.run(['init', ledger])));
    expect(made.keyid).toBe(keyidIn('own.pem'));
    expectOk(shop.run(['verify', ledger]));
    expectError(shop.run(['init', ledger]), 2, 'LEDGER_EXISTS');
  });

  it('makes no file of the name by which other commands read standard input', () => {
    expectError(shop.run(['init', '-']), 2, 'USAGE');
    expect(shop.has('-')).toBe(false);
    expectOk(shop.run(['init', './-']));
  });

  it('takes nothing else for a ledger that was begun', () => {
    shop.write('begun.jsonl', '{"event":{"canon\n');
    shop.write('text.jsonl', '{"other"');
    for (const path of ['begun.jsonl', 'text.jsonl']) {
      expectError(shop.run(['init', path]), 2, 'LEDGER_EXISTS');
    }
  });

  it.each<[string, string, string[]]>([
    ['an origin with white space', 'USAGE', ['--origin', 'two words']],
    ['an origin with a scheme', 'USAGE', ['--origin', 'https://example.com/a']],
    ['an empty origin', 'USAGE', ['--origin', '']],
    ['a principal that is none', 'USAGE', ['--principal', 'bob']],
    ['both a key and --unsigned', 'USAGE', ['--key', 'own.pem', '--unsigned']],
    ['a key that is not there', 'FILE_NOT_FOUND', ['--key', 'missing.pem']],
    ['a key that is a folder', 'IS_A_FOLDER', ['--key', '.']],
  ])('refuses %s and leaves nothing behind', (_what, code, args) => {
    expectError(shop.run(['init', 'refused.jsonl', ...args]), 2, code);
    expect(shop.files('refused')).toEqual([]);
  });

  it('refuses a path whose folder is not there', () => {
    expectError(shop.run(['init', 'nowhere/ledger.jsonl']), 2, 'FILE_NOT_FOUND');
  });
});

describe('a private key', () => {
  it.each<[string, number, boolean]>([
    ['everybody', 0o644, true],
    ['a group', 0o640, true],
    ['nobody else', 0o600, false],
    ['nobody else, not even to be changed', 0o400, false],
  ])('that %s may read is warned of where it must be', (_who, mode, isWarned) => {
    const name = `mode-${mode.toString(8)}`;
    shop.write(`${name}.pem`, shop.read('own.pem'), mode);
    const { status, stderr } = shop.run(['init', `${name}.jsonl`, '--key', `${name}.pem`]);
    expect(status).toBe(0);
    expect(stderr.includes(`warning: others may read the private key ${name}.pem`)).toBe(isWarned);
  });
});

describe('keygen', () => {
  it('writes a new file for its owner alone, and tells of the public half', () => {
    const run = shop.run(['keygen', '--out', 'made.pem']);
    const about = parse<KeyJson>(expectOk(run));
    const { publicKey } = parsePrivateKey(shop.bytes('made.pem'));
    expect(about.keyid).toBe(publicKey.keyid);
    expect(about.public_key).toMatch(/^ed25519:[\w-]{43}$/);
    expect(shop.mode('made.pem')).toBe('600');
  });

  it('writes the key to standard output when no file is named, and nothing else', () => {
    const run = shop.run(['keygen']);
    const { publicKey } = parsePrivateKey(Buffer.from(expectOk(run)));
    expect(parse<KeyJson>(run.stderr).keyid).toBe(publicKey.keyid);
  });

  it.each(['ed25519', 'p256'])('makes %s keys as JWK', (alg) => {
    const { stdout } = shop.run(['keygen', '--alg', alg, '--form', 'jwk']);
    expect(JSON.parse(stdout)).toHaveProperty('d');
    expect(parsePrivateKey(Buffer.from(stdout)).publicKey.alg).toBe(alg);
  });

  it('overwrites nothing', () => {
    const before = shop.read('own.pem');
    const taken = shop.run(['keygen', '--out', 'own.pem']);
    expectError(taken, 2, 'FILE_EXISTS');
    expect(taken.stderr).toContain('hint:');
    expect(shop.read('own.pem')).toBe(before);
  });

  it.each<[string, string[]]>([
    ['FILE_NOT_FOUND', ['--out', 'nowhere/key.pem']],
    ['USAGE', ['--alg', 'rsa']],
    ['USAGE', ['--form', 'openssh']],
    ['USAGE', ['surplus']],
  ])('answers wrong use with %s: %j', (code, args) => {
    expectError(shop.run(['keygen', ...args]), 2, code);
  });
});

describe('key show', () => {
  const show = (...args: string[]): Run => shop.run(['key', 'show', ...args]);

  it('gives an entry for trust policies', () => {
    const entry = parse<KeyJson>(expectOk(show('own.pem')));
    expect(entry).toMatchObject({ keyid: keyidIn('own.pem'), roles: ['event'], principals: ['*'] });
    expect(entry.public_key).toMatch(/^ed25519:/);
  });

  it.each(['wire', 'pem', 'openssh', 'vkey', 'did', 'jwk'])('gives and reads the form %s', (form) => {
    const text = expectOk(show('own.pem', '--form', form, '--name', 'example.com/log'));
    expect(text.endsWith('\n')).toBe(true);
    expect(parsePublicKey(Buffer.from(text)).keyid).toBe(keyidIn('own.pem'));
    shop.write(`form.${form}`, text);
    expect(parse<KeyJson>(expectOk(show(`form.${form}`))).keyid).toBe(keyidIn('own.pem'));
  });

  it.each<[string, string[]]>([
    ['USAGE', ['own.pem', '--form', 'vkey']],
    ['USAGE', ['own.pem', '--form', 'der']],
    ['USAGE', []],
    ['KEY_MALFORMED', ['notes.txt']],
    ['FILE_NOT_FOUND', ['missing.pem']],
    ['IS_A_FOLDER', ['.']],
  ])('answers wrong use with %s: %j', (code, args) => {
    expectError(show(...args), 2, code);
  });

  it.skipIf(!hasProgram('openssl'))('never takes an encrypted key for another fault', () => {
    const pkcs8 = ['pkcs8', '-topk8', '-in', shop.path('own.pem'), '-passout', 'pass:secret'];
    const { stdout } = spawnSync('openssl', pkcs8, { encoding: 'utf8' });
    shop.write('encrypted.pem', stdout);
    expectError(shop.run(['init', 'refused.jsonl', '--key', 'encrypted.pem']), 2, 'KEY_ENCRYPTED');
    expect(shop.files('refused')).toEqual([]);
  });
});

describe('a ledger that is not there', () => {
  const BOUNDS = ['--to', 'agent:a1', '--tool', 'x', '--cap', 'usd=1'];

  it.each([
    ['grant', (ledger: string) => ['grant', ledger, ...BOUNDS]],
    ['append', (ledger: string) => ['append', ledger]],
    ['hook install', (ledger: string) => ['hook', 'install', 'claude-code', '--print', '--ledger', ledger]],
    ['mcp', (ledger: string) => ['mcp', ledger, '--server', 'files', '--', 'true']],
  ])('is made by what %s says, where there is a folder for it', (_command, args) => {
    const missing = shop.run(args('not there.jsonl'));
    expectError(missing, 2, 'FILE_NOT_FOUND');
    expect(missing.stderr).toContain("northroot init 'not there.jsonl'");
    const homeless = shop.run(args('no-folder/l.jsonl'));
    expectError(homeless, 2, 'FILE_NOT_FOUND');
    expect(homeless.stderr).toContain('folder');
    expect(homeless.stderr).not.toContain('northroot init');
  });

  it('is named where it is not the first argument', () => {
    expectOk(shop.run(['init', 'parent.jsonl']));
    const run = shop.run(['settle', 'parent.jsonl', 'child.jsonl']);
    expectError(run, 2, 'FILE_NOT_FOUND');
    expect(run.stderr).toContain('northroot init child.jsonl');
  });
});
