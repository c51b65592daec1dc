import { existsSync, readFileSync } from 'node:fs';

import { describe, expect, test } from 'vitest';

import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { formatPublicKey, makePublicKey } from '../../src/format/key/public-key.js';
import { decodeWireKey } from '../../src/format/key/wire-key.js';
import { ed25519Key, p256Key } from './key-samples.js';

const keys = [ed25519Key(Buffer.alloc(32, 1)).publicKey, p256Key(Buffer.alloc(32, 1)).publicKey];
const LEDGER = new URL('../../../shared/vectors/ledgers/good-basic.jsonl', import.meta.url);

describe('decodeWireKey', () => {
  test.each(keys)('gives the key', (key) => {
    expect(decodeWireKey({ keyid: key.keyid, public_key: formatPublicKey(key), roles: [] })).toEqual({
      ok: true,
      value: key,
    });
  });

  test.each(keys)('tells a keyid that is not its thumbprint', (key) => {
    const keyid = key.keyid.replace(/^./, (char) => (char === 'A' ? 'B' : 'A'));
    expect(decodeWireKey({ keyid, public_key: formatPublicKey(key), roles: [] })).toEqual({
      ok: false,
      fault: { code: 'SCHEMA', pointer: '/keyid', expected: key.keyid, actual: keyid },
    });
  });

  test('tells text that is no wire key, whatever other form it has', () => {
    const text = formatPublicKey(keys[0]);
    for (const bad of ['', 'ed25519:', text.slice(8), ` ${text}`, `${text}=`, `x25519${text.slice(7)}`]) {
      expect(decodeWireKey({ keyid: keys[0].keyid, public_key: bad, roles: [] })).toMatchObject({
        ok: false,
        fault: { pointer: '/public_key', actual: bad },
      });
    }
  });

  test('tells keys by which no signature is valid', () => {
    const small = makePublicKey('ed25519', new Uint8Array(32));
    const off = makePublicKey('p256', new Uint8Array(65).fill(4));
    for (const key of [small, off]) {
      const decoded = decodeWireKey({ keyid: key.keyid, public_key: formatPublicKey(key), roles: [] });
      expect(decoded).toMatchObject({ ok: false, fault: { pointer: '/public_key' } });
    }
  });

  test('tells roles that an ml-dsa-44 key has not', () => {
    const { publicKey } = generatePrivateKey('ml-dsa-44');
    const key = { keyid: publicKey.keyid, public_key: formatPublicKey(publicKey) };
    expect(decodeWireKey({ ...key, roles: ['checkpoint', 'witness'] })).toEqual({
      ok: true,
      value: publicKey,
    });
    for (const role of ['event', 'authority', 'admin']) {
      expect(decodeWireKey({ ...key, roles: ['checkpoint', role] })).toMatchObject({
        fault: { pointer: '/roles' },
      });
    }
  });

  test.skipIf(!existsSync(LEDGER))('reads the keys of a genesis that another program wrote', () => {
    const [line] = readFileSync(LEDGER, 'utf8').split('\n');
    const { event } = JSON.parse(line) as {
      event: { keys: { keyid: string; public_key: string; roles: string[] }[] };
    };
    expect(event.keys.map(decodeWireKey)).toEqual([{ ok: true, value: keys[0] }]);
  });
});
