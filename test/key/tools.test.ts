/** Keys of real tools are read, and tools read ours. Where a tool is missing its tests are skipped. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { formatPrivateKey, generatePrivateKey, parsePrivateKey } from '../../src/format/key/private-key.js';
import { formatPublicKeyAs, parsePublicKey } from '../../src/format/key/public-key.js';
import { codeOf, openSshPem } from './key-samples.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'northroot-keys-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

const has = (command: string, ...args: string[]) => spawnSync(command, args).error === undefined;
const read = (name: string) => readFileSync(join(folder, name));
function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
}

describe.skipIf(!has('ssh-keygen', '-?'))('ssh-keygen', () => {
  const types = { ed25519: ['-t', 'ed25519'], p256: ['-t', 'ecdsa', '-b', '256'] } as const;

  test.each(['ed25519', 'p256'] as const)('its %s keys are read', (alg) => {
    for (let i = 0; i < 4; i++) {
      const name = `ssh-${alg}-${i}`;
      run('ssh-keygen', '-q', '-N', '', '-C', 'me@host', '-f', name, ...types[alg]);
      const { publicKey } = parsePrivateKey(read(name));
      expect(publicKey.alg).toBe(alg);
      expect(parsePublicKey(read(`${name}.pub`))).toEqual(publicKey);
      expect(`${formatPublicKeyAs(publicKey, 'openssh', 'me@host')}\n`).toBe(read(`${name}.pub`).toString());
      expect(codeOf(() => parsePublicKey(read(name)))).toBe('KEY_IS_PRIVATE');
      expect(codeOf(() => parsePrivateKey(read(`${name}.pub`)))).toBe('KEY_IS_PUBLIC');
    }
  });

  test.each(['ed25519', 'p256'] as const)(
    'its %s keys with a passphrase are told, and read without',
    (alg) => {
      const name = `locked-${alg}`;
      run('ssh-keygen', '-q', '-N', 'secret', '-f', name, ...types[alg]);
      expect(codeOf(() => parsePrivateKey(read(name)))).toBe('KEY_ENCRYPTED');
      run('ssh-keygen', '-q', '-p', '-P', 'secret', '-N', '', '-f', name);
      expect(parsePrivateKey(read(name)).publicKey).toEqual(parsePublicKey(read(`${name}.pub`)));
    },
  );

  test('reads the keys that these tests write', () => {
    for (const alg of ['ed25519', 'p256'] as const) {
      const key = generatePrivateKey(alg);
      const { d } = JSON.parse(formatPrivateKey(key, 'jwk')) as { d: string };
      write('ours', openSshPem(alg, Buffer.from(d, 'base64url'), key.publicKey.bytes));
      expect(parsePublicKey(run('ssh-keygen', '-y', '-f', 'ours'))).toEqual(key.publicKey);
    }
  });
});

describe.skipIf(!has('openssl', 'version'))('openssl', () => {
  const types = {
    ed25519: ['-algorithm', 'ed25519'],
    p256: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  } as const;

  test.each(['ed25519', 'p256'] as const)('its %s keys are read, and it reads ours', (alg) => {
    run('openssl', 'genpkey', ...types[alg], '-out', 'theirs.pem');
    const theirs = parsePrivateKey(read('theirs.pem'));
    expect(theirs.publicKey.alg).toBe(alg);
    expect(formatPrivateKey(theirs, 'pem')).toBe(read('theirs.pem').toString());
    const pub = run('openssl', 'pkey', '-in', 'theirs.pem', '-pubout');
    expect(parsePublicKey(pub)).toEqual(theirs.publicKey);
    expect(formatPublicKeyAs(theirs.publicKey, 'pem')).toBe(pub);

    const ours = generatePrivateKey(alg);
    write('ours.pem', formatPrivateKey(ours, 'pem'));
    expect(parsePublicKey(run('openssl', 'pkey', '-in', 'ours.pem', '-pubout'))).toEqual(ours.publicKey);

    run('openssl', 'pkcs8', '-topk8', '-passout', 'pass:x', '-in', 'ours.pem', '-out', 'locked.pem');
    expect(codeOf(() => parsePrivateKey(read('locked.pem')))).toBe('KEY_ENCRYPTED');
  });

  test('its older forms of P-256 keys are told, or read when they are public', () => {
    run('openssl', 'ecparam', '-name', 'prime256v1', '-genkey', '-out', 'old.pem');
    expect(codeOf(() => parsePrivateKey(read('old.pem')))).toBe('KEY_UNSUPPORTED');
    run('openssl', 'pkcs8', '-topk8', '-nocrypt', '-in', 'old.pem', '-out', 'new.pem');
    const { publicKey } = parsePrivateKey(read('new.pem'));
    expect(
      parsePublicKey(run('openssl', 'ec', '-in', 'old.pem', '-pubout', '-conv_form', 'compressed')),
    ).toEqual(publicKey);
  });
});
