import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { EventError } from '../../src/format/event/validate.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { ownKeyEntry } from '../../src/log/writer/genesis.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import {
  codeOf,
  draft,
  errorOf,
  expectSound,
  makeLedger,
  noticeBoard,
  NOON,
  openLedger,
  openUnsigned,
  otherSigner,
  readBytes,
  readRecords,
  signer,
  temporaryFolder,
} from './support.js';

describe('a new ledger', () => {
  test('has a genesis with what was asked for', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const { notices, onNotice } = noticeBoard();
    const ledger = await openLedger(path, {
      create: {
        origin: 'example.com/agents/prod',
        checkpoints: 'required',
        signatures: 'optional',
        principalId: 'org:example',
        keys: [ownKeyEntry(signer.publicKey), { ...ownKeyEntry(otherSigner.publicKey), name: 'second' }],
      },
      onNotice,
    });
    expect(ledger.origin).toBe('example.com/agents/prod');
    expect(ledger.size).toBe(1);
    expect(ledger.path).toBe(path);
    const [{ event, seq, signatures }] = readRecords(path);
    expect(ledger.genesisId).toBe(`sha-256:${event.event_id.b64}`);
    expect(seq).toBe(0);
    expect(signatures.map(({ keyid }) => keyid)).toEqual([signer.publicKey.keyid]);
    expect(event).toMatchObject({
      event_type: 'genesis',
      origin: 'example.com/agents/prod',
      signing: { events: 'optional', checkpoints: 'required' },
      principal_id: 'org:example',
      occurred_at: NOON,
      ledger_version: '1',
    });
    expect((event['keys'] as { keyid: string }[]).map(({ keyid }) => keyid)).toEqual([
      signer.publicKey.keyid,
      otherSigner.publicKey.keyid,
    ]);
    expect(notices).toEqual([{ code: 'LEDGER_CREATED', path, origin: 'example.com/agents/prod' }]);
    await ledger.close();
    await expectSound(path, 1);
  });

  test('by default declares its signer, requires signatures, and has a name of its own', async () => {
    const folder = temporaryFolder();
    const events = [];
    for (const name of ['a', 'b']) {
      const ledger = await openLedger(join(folder, name), { create: {} });
      expect(ledger.origin).toMatch(/^localhost\/ledger-[0-9a-f]{16}$/);
      await ledger.close();
      await expectSound(join(folder, name), 1);
      events.push(readRecords(join(folder, name))[0].event);
    }
    expect(events[0]).toMatchObject({
      signing: { events: 'required', checkpoints: 'optional', binding: 'required' },
      principal_id: 'service:ledger',
      keys: [
        {
          keyid: signer.publicKey.keyid,
          roles: ['event', 'authority', 'checkpoint', 'admin'],
          principals: ['*'],
        },
      ],
    });
    expect(events[0]['origin']).not.toBe(events[1]['origin']);
  });

  test('without a signer declares no key and requires no signature', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openUnsigned(path);
    await ledger.append({ event: draft(1) });
    await ledger.close();
    const [genesis, first] = readRecords(path);
    expect(genesis).toMatchObject({ event: { keys: [], signing: { events: 'optional' } }, signatures: [] });
    expect(first.signatures).toEqual([]);
    await expectSound(path, 2);
  });

  test('is made of an empty file', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    writeFileSync(path, '');
    await makeLedger(path, 1);
    await expectSound(path, 2);
  });

  test('takes the present where it is told no other', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const before = new Date().toISOString();
    const ledger = await Ledger.open(path, { create: {}, principalId: 'agent:a1' });
    await ledger.append({ event: draft(1) });
    await ledger.close();
    for (const { event } of readRecords(path)) {
      const time = event['occurred_at'] as string;
      expect(time >= before && time <= new Date().toISOString()).toBe(true);
    }
  });

  test.each([
    ['an origin with white space', { origin: 'my ledger' }, 'SCHEMA'],
    ['an origin that is a URL', { origin: 'https://example.com/a' }, 'SCHEMA'],
    ['a principal of no kind', { principalId: 'nobody' }, 'SCHEMA'],
    ['a key without roles', { keys: [{ ...ownKeyEntry(signer.publicKey), roles: [] }] }, 'KEY_NOT_FOR_ROLE'],
    [
      'a key under the name of another',
      { keys: [{ ...ownKeyEntry(signer.publicKey), keyid: otherSigner.publicKey.keyid }] },
      'KEY_MALFORMED',
    ],
    [
      'a key twice',
      { keys: [ownKeyEntry(signer.publicKey), ownKeyEntry(signer.publicKey)] },
      'KEY_MALFORMED',
    ],
    ['keys among which the signer is not', { keys: [ownKeyEntry(otherSigner.publicKey)] }, 'KEY_UNKNOWN'],
    [
      'a signer that may only witness',
      { keys: [{ ...ownKeyEntry(signer.publicKey), roles: ['witness' as const] }] },
      'KEY_NOT_FOR_ROLE',
    ],
    [
      'a signer for others only',
      { keys: [{ ...ownKeyEntry(signer.publicKey), principals: ['agent:*'] }] },
      'KEY_NOT_FOR_PRINCIPAL',
    ],
    [
      'a signer that is out of date',
      { keys: [{ ...ownKeyEntry(signer.publicKey), valid_until: '2025-01-01T00:00:00Z' }] },
      'KEY_NOT_VALID_HERE',
    ],
  ])('is not made with %s, and leaves no file', async (_name, create, code) => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    expect(await codeOf(openLedger(path, { create }))).toBe(code);
    expect(existsSync(path)).toBe(false);
  });

  test('is not made when signatures are required and there is nobody to sign', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    expect(await codeOf(openUnsigned(path, { create: { signatures: 'required' } }))).toBe(
      'SIGNATURE_MISSING',
    );
    expect(existsSync(path)).toBe(false);
  });

  test('with keys that are too many for a line says so and leaves no file', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const principals = Array.from({ length: 64 }, (_, i) => `agent:${'a'.repeat(200)}${i}`);
    const own = ownKeyEntry(signer.publicKey);
    const others = Array.from({ length: 5 }, () => ownKeyEntry(generatePrivateKey().publicKey));
    const keys = [own, ...others].map((key) => ({ ...key, principals: [...key.principals, ...principals] }));
    expect(await codeOf(openLedger(path, { create: { keys } }))).toBe('LINE_TOO_LONG');
    expect(existsSync(path)).toBe(false);
  });
});

describe('an existing ledger', () => {
  test('is taken up where it ends, whatever create says', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 3);
    const [{ event: genesis }] = readRecords(path);
    const { notices, onNotice } = noticeBoard();
    const ledger = await openLedger(path, { create: { origin: 'example.com/another' }, onNotice });
    expect(ledger.origin).toBe('example.com/tests/writer');
    expect(ledger.genesisId).toBe(`sha-256:${genesis.event_id.b64}`);
    expect(ledger.size).toBe(4);
    expect(await ledger.append({ event: draft(4) })).toMatchObject({ seq: 4, status: 'appended' });
    expect(ledger.size).toBe(5);
    await ledger.close();
    expect(notices).toEqual([]);
    await expectSound(path, 5);
  });

  test('is opened through a symbolic link', async () => {
    const folder = temporaryFolder();
    await makeLedger(join(folder, 'ledger.jsonl'), 1);
    symlinkSync('ledger.jsonl', join(folder, 'link'));
    await makeLedger(join(folder, 'link'), 2);
    await expectSound(join(folder, 'ledger.jsonl'), 3);
  });

  test('is not changed by being opened and closed', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 2);
    const before = readBytes(path);
    const ledger = await openLedger(path);
    await ledger.close();
    expect(readBytes(path)).toEqual(before);
  });

  test('may be opened by someone without a key, who then cannot append what must be signed', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 1);
    const ledger = await openUnsigned(path);
    expect(await codeOf(ledger.append({ event: draft(2) }))).toBe('SIGNATURE_MISSING');
    await ledger.close();
    await expectSound(path, 2);
  });
});

describe('opening refuses', () => {
  test('a ledger that is not there, unless it is to be made', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    expect(await codeOf(Ledger.open(path))).toBe('FILE_NOT_FOUND');
    expect(existsSync(path)).toBe(false);
  });

  test('an empty file, unless it is to be made a ledger', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    writeFileSync(path, '');
    expect(await codeOf(Ledger.open(path))).toBe('LEDGER_EMPTY');
    expect(readFileSync(path)).toHaveLength(0);
  });

  test('a file in a folder that is not there, or below a file', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'file'), '');
    expect(await codeOf(openLedger(join(folder, 'no', 'ledger.jsonl')))).toBe('FILE_NOT_FOUND');
    expect(await codeOf(openLedger(join(folder, 'file', 'ledger.jsonl')))).toBe('FILE_NOT_FOUND');
  });

  test('what is a device and no file', async () => {
    expect(await codeOf(openLedger('/dev/null'))).toBe('NOT_A_LEDGER');
  });

  test('options out of range', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    for (const options of [{ segmentBytes: 0 }, { segmentBytes: NaN }, { lockTimeoutMs: -1 }]) {
      expect(await errorOf(openLedger(path, options))).toBeInstanceOf(RangeError);
    }
    expect(existsSync(path)).toBe(false);
  });

  test('a clock that gives no timestamps', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const error = await errorOf(openLedger(path, { now: () => 'noon' }));
    expect(error).toBeInstanceOf(EventError);
    expect(existsSync(path)).toBe(false);
  });
});

describe('closing', () => {
  test('waits for what was appended, and may be done twice', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    const appended = [1, 2, 3].map((n) => ledger.append({ event: draft(n) }));
    await Promise.all([ledger.close(), ledger.close()]);
    expect((await Promise.all(appended)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    await ledger.close();
    await expectSound(path, 4);
  });

  test('ends appending: what comes later is refused', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    const closing = ledger.close();
    expect(await errorOf(ledger.append({ event: draft(1) }))).toBeInstanceOf(TypeError);
    await closing;
    expect(await errorOf(ledger.append({ event: draft(1) }))).toBeInstanceOf(TypeError);
    await expectSound(path, 1);
  });

  test('gives the lock back', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    for (let round = 0; round < 3; round += 1) await makeLedger(path, round);
    expect((await verifyLedger(path)).verdict).toBe('ok');
  });
});

describe('two ledgers', () => {
  test('in one folder do not disturb each other', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'sub'));
    const ledgers = await Promise.all(['a', 'b', 'sub/a'].map((name) => openLedger(join(folder, name))));
    await Promise.all(ledgers.map((ledger) => ledger.append({ event: draft(1) })));
    for (const ledger of ledgers) {
      await ledger.close();
      await expectSound(ledger.path, 2);
    }
  });
});
