import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { makePublicKey } from '../../src/format/key/public-key.js';
import { parseCheckpoint } from '../../src/format/note/checkpoint.js';
import { verifyNoteSignatures } from '../../src/format/note/verify-note.js';
import { formatNote, parseNote, readSignatureLine } from '../../src/format/note/signed-note.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { createSigner } from '../../src/format/signature/signer.js';
import type { FileSystem } from '../../src/log/fs/file-system.js';
import { formatConsistencyProof } from '../../src/proof/consistency-proof.js';
import {
  createWitness,
  MAX_REQUEST_BYTES,
  originHash,
  type WitnessEvent,
  type WitnessResponse,
} from '../../src/proof/witness/witness-service.js';
import { FaultyFileSystem, OPERATIONS, soundFileSystem } from '../writer/file-systems.js';
import { ForgetfulFileSystem } from './forgetful-file-system.js';
import {
  NOW,
  openWitness,
  submit,
  temporaryFolder,
  TestLog,
  WITNESS_NAME,
  witnessKey,
  witnessSigner,
} from './support.js';

const log = new TestLog('log.example/a');
const other = new TestLog('log.example/b');

/** The time of a right cosignature of a checkpoint's text in an answer. */
function timestampOf({ status, body }: WitnessResponse, text: string): number {
  expect(status).toBe(200);
  const signature = readSignatureLine(body.slice(0, -1));
  if (signature === undefined) throw new Error(body);
  const { valid } = verifyNoteSignatures({ text, signatures: [signature] }, [witnessKey]);
  expect(valid).toHaveLength(1);
  return valid[0].timestamp!;
}

const get = (witness: Awaited<ReturnType<typeof openWitness>>, origin: string) =>
  witness.handle({ method: 'GET', path: `/${originHash(origin)}/checkpoint`, body: Buffer.alloc(0) });

describe('a witness', () => {
  test('cosigns checkpoints that extend each other, and serves the last', async () => {
    const stateFolder = join(temporaryFolder(), 'new/state');
    const events: WitnessEvent[] = [];
    const witness = await openWitness({
      logs: [log.key, other.key],
      stateFolder,
      onEvent: (event) => events.push(event),
    });
    expect(await get(witness, log.origin)).toMatchObject({ status: 404 });
    expect(timestampOf(await submit(witness, log.request(0, 3)), log.text(3))).toBe(NOW);
    expect(timestampOf(await submit(witness, log.request(3, 8)), log.text(8))).toBe(NOW);
    expect(await submit(witness, log.request(3, 9))).toEqual({
      status: 409,
      contentType: 'text/x.tlog.size',
      body: '8\n',
    });
    expect(await submit(witness, log.fork('b').request(8, 9))).toMatchObject({ status: 422 });
    expect(timestampOf(await submit(witness, other.request(0, 1)), other.text(1))).toBe(NOW);

    const served = await get(witness, log.origin);
    expect(served).toMatchObject({ status: 200, contentType: 'text/plain; charset=utf-8' });
    const note = parseNote(Buffer.from(served.body));
    expect(note.text).toBe(log.text(8));
    expect(verifyNoteSignatures(note, [log.key, witnessKey]).valid.map(({ key }) => key)).toEqual([
      log.key,
      witnessKey,
    ]);
    expect(readFileSync(join(stateFolder, originHash(log.origin)), 'utf8')).toBe(served.body);
    expect(readdirSync(stateFolder)).toHaveLength(2);
    expect(witness.lastCheckpoint(log.origin)).toMatchObject({ size: 8 });
    expect(events.map(({ kind }) => kind)).toEqual(['cosigned', 'cosigned', 'inconsistent', 'cosigned']);
  });

  test('keeps of a note only the log that it verified, and the whole text', async () => {
    const witness = await openWitness({ logs: [log.key], stateFolder: temporaryFolder() });
    const text = log.text(4, ['an extension', 'another']);
    const note = parseNote(Buffer.from(log.sign(text)));
    const junk = Array.from({ length: 99 }, (_, n) => ({
      name: `w${n}.example`,
      keyId: '01020304',
      signature: Buffer.alloc(72),
    }));
    const body = formatConsistencyProof({
      oldSize: 0,
      hashes: [],
      note: Buffer.from(formatNote({ text, signatures: [...junk, ...note.signatures] })),
    });
    expect(timestampOf(await submit(witness, body), text)).toBe(NOW);
    const served = parseNote(Buffer.from((await get(witness, log.origin)).body));
    expect(served.text).toBe(text);
    expect(served.signatures.map(({ name }) => name)).toEqual([log.origin, WITNESS_NAME]);
  });

  test('answers what is wrong, and repeats none of it', async () => {
    const witness = await openWitness({ logs: [log.key], stateFolder: temporaryFolder(), prefix: '/a/w1' });
    const ask = (method: string, path: string, body: Uint8Array = Buffer.alloc(0)) =>
      witness.handle({ method, path, body });
    const hash = originHash(log.origin);
    expect(await ask('POST', '/a/w1/add-checkpoint', log.request(0, 1))).toMatchObject({ status: 200 });
    expect(await ask('GET', `/a/w1/${hash}/checkpoint`)).toMatchObject({ status: 200 });
    expect(await ask('POST', '/a/w1/add-checkpoint', Buffer.from('<script>'))).toMatchObject({ status: 400 });
    expect(await ask('POST', '/a/w1/add-checkpoint', Buffer.alloc(MAX_REQUEST_BYTES + 1))).toMatchObject({
      status: 413,
    });
    expect(await ask('POST', '/a/w1/add-checkpoint', new TestLog(log.origin).request(1, 2))).toMatchObject({
      status: 403,
    });
    expect(await ask('POST', '/a/w1/add-checkpoint', other.request(0, 1))).toMatchObject({ status: 404 });
    expect(await ask('GET', '/a/w1/add-checkpoint')).toMatchObject({ status: 405, allow: 'POST' });
    for (const method of ['POST', 'HEAD', 'DELETE', 'OPTIONS']) {
      expect(await ask(method, `/a/w1/${hash}/checkpoint`)).toMatchObject({ status: 405, allow: 'GET' });
    }
    for (const path of [
      '/',
      '',
      '*',
      '/a/w1',
      '/a/w1/',
      '/add-checkpoint',
      '/a/w1/add-checkpoint/',
      '/a/w1/add-checkpoint?x',
      '/a/w1/sign-subtree',
      `/a/w1/${hash.toUpperCase()}/checkpoint`,
      `/a/w1/${hash}`,
      `/a/w1/${hash}/checkpoint/..`,
      `/a/w1/${originHash(other.origin)}/checkpoint`,
      '/a/w1/../../etc/passwd',
    ]) {
      const answer = await ask('GET', path);
      expect(answer).toMatchObject({ status: 404 });
      expect(answer.body).toMatch(/^[a-z ]+\n$/);
    }
  });

  test('never signs with an earlier time than before, nor with none', async () => {
    const stateFolder = temporaryFolder();
    let seconds = NOW;
    const options = { logs: [log.key], stateFolder, now: () => seconds * 1000 };
    const first = await openWitness(options);
    expect(timestampOf(await submit(first, log.request(0, 1)), log.text(1))).toBe(NOW);
    seconds = NOW - 1_000;
    expect(timestampOf(await submit(first, log.request(1, 2)), log.text(2))).toBe(NOW);
    await first.close();
    const second = await openWitness(options);
    expect(timestampOf(await submit(second, log.request(2, 2)), log.text(2))).toBe(NOW);
    seconds = NOW + 5;
    expect(timestampOf(await submit(second, log.request(2, 2)), log.text(2))).toBe(NOW + 5);
    const early = await openWitness({ logs: [log.key], stateFolder: temporaryFolder(), now: () => 0 });
    expect(timestampOf(await submit(early, log.request(0, 1)), log.text(1))).toBe(1);
    const broken = await openWitness({ logs: [log.key], stateFolder: temporaryFolder(), now: () => NaN });
    expect(await submit(broken, log.request(0, 1))).toMatchObject({ status: 500 });
  });

  test('signs one view only, however many are shown at once', async () => {
    const stateFolder = temporaryFolder();
    const witness = await openWitness({ logs: [log.key, other.key], stateFolder });
    await submit(witness, log.request(0, 5));
    const views = Array.from({ length: 100 }, (_, n) => log.fork(`view ${n}`, n < 50 ? 5 : 4));
    const answers = await Promise.all(views.map((view) => submit(witness, view.request(5, 9))));
    const statuses = answers.map(({ status }) => status);
    expect(statuses).toEqual([200, ...Array<number>(99).fill(409)]);
    const again = await Promise.all(views.map((view) => submit(witness, view.request(9, 9))));
    expect(again.map(({ status }) => status)).toEqual([200, ...Array<number>(99).fill(409)]);
    expect(await submit(witness, other.request(0, 1))).toMatchObject({ status: 200 });
  });

  test('takes one of many that extend the same tree, and lets the others come after it', async () => {
    const witness = await openWitness({ logs: [log.key], stateFolder: temporaryFolder() });
    await submit(witness, log.request(0, 1));
    const sizes = Array.from({ length: 100 }, (_, n) => 2 + ((n * 37) % 100));
    const answers = await Promise.all(sizes.map((size) => submit(witness, log.request(1, size))));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(
      answers.every(({ status, body }) => status === 200 || (status === 409 && body === `${sizes[0]}\n`)),
    ).toBe(true);
  });

  test('goes on after a restart where it was', async () => {
    const stateFolder = temporaryFolder();
    const first = await openWitness({ logs: [log.key], stateFolder });
    const answering = submit(first, log.request(0, 5));
    const closing = first.close();
    expect(await answering).toMatchObject({ status: 200 });
    await closing;
    expect(await submit(first, log.request(5, 6))).toMatchObject({ status: 503 });
    const second = await openWitness({ logs: [other.key, log.key], stateFolder });
    expect(second.lastCheckpoint(log.origin)).toMatchObject({ size: 5 });
    expect(await submit(second, log.fork('b').request(0, 5))).toMatchObject({ status: 409, body: '5\n' });
    expect(await submit(second, log.fork('b').request(5, 5))).toMatchObject({
      status: 409,
      contentType: expect.stringContaining('text/plain') as string,
    });
    expect(await submit(second, log.request(5, 6))).toMatchObject({ status: 200 });
  });

  test('goes on when the key of a log is replaced', async () => {
    const stateFolder = temporaryFolder();
    const first = await openWitness({ logs: [log.key], stateFolder });
    await submit(first, log.request(0, 5));
    await first.close();
    const replaced = new TestLog(log.origin);
    const second = await openWitness({ logs: [replaced.key], stateFolder });
    expect(await submit(second, log.request(5, 6))).toMatchObject({ status: 403 });
    expect(await submit(second, replaced.request(5, 6))).toMatchObject({ status: 200 });
  });
});

describe('what it refuses to start with', () => {
  const failure = async (options: Partial<Parameters<typeof createWitness>[0]>): Promise<unknown> =>
    openWitness({ logs: [log.key], stateFolder: temporaryFolder(), ...options }).then(
      () => undefined,
      (error: unknown) => error,
    );

  test.each(['', 'two words', 'a+b', 'a\nb'])('the name %j', async (name) => {
    expect(await failure({ name })).toBeInstanceOf(RangeError);
  });

  test.each(['w1', '/', '/w1/', '//w1', '/w 1', '/w1?', '/%41'])('the prefix %j', async (prefix) => {
    expect(await failure({ prefix })).toBeInstanceOf(RangeError);
  });

  test('keys of other kinds', async () => {
    expect(await failure({ logs: [witnessKey] })).toBeInstanceOf(RangeError);
    expect(await failure({ signer: createSigner(generatePrivateKey('p256')) })).toHaveProperty(
      'code',
      'KEY_UNSUPPORTED',
    );
    const smallOrder = makePublicKey('ed25519', Uint8Array.of(1, ...new Uint8Array(31)));
    const unusable = { ...log.key, verification: nodeBackend.importKey(smallOrder) };
    expect(await failure({ logs: [unusable] })).toHaveProperty('code', 'KEY_MALFORMED');
  });

  test('a file for a folder', async () => {
    const stateFolder = join(temporaryFolder(), 'file');
    writeFileSync(stateFolder, '');
    expect(await failure({ stateFolder })).toHaveProperty('code', 'NOT_A_FOLDER');
  });

  test('a state folder that another witness has, until that is closed', async () => {
    const stateFolder = temporaryFolder();
    const first = await openWitness({ logs: [log.key], stateFolder });
    expect(await failure({ stateFolder })).toHaveProperty('code', 'WITNESS_STATE_LOCKED');
    expect(await submit(first, log.request(0, 1))).toMatchObject({ status: 200 });
    await first.close();
    expect(await failure({ stateFolder })).toBe(undefined);
  });

  test('a state that is damaged in any byte, or in part', async () => {
    const stateFolder = temporaryFolder();
    const path = join(stateFolder, originHash(log.origin));
    const first = await openWitness({ logs: [log.key], stateFolder });
    await submit(first, log.request(0, 5));
    await first.close();
    const whole = readFileSync(path);
    const logLine = whole.indexOf(`— ${log.origin} `);
    const ownLine = whole.indexOf(`— ${WITNESS_NAME} `);
    const states: [string, Uint8Array][] = [];
    for (let at = 0; at < whole.length; at += 5) {
      const changed = Uint8Array.from(whole);
      changed[at] ^= 0x01;
      // Changed into a signature by an unknown key, the log's line is as good as one by a key that was replaced.
      const isName = at >= logLine && at < logLine + log.origin.length + 13;
      if (!isName) states.push([`byte ${at} changed`, changed]);
      states.push([`cut at ${at}`, whole.subarray(0, at)]);
    }
    states.push(
      ['without the cosignature', whole.subarray(0, ownLine)],
      ['with more', Buffer.concat([whole, Buffer.from('x')])],
    );
    states.push(['twice', Buffer.concat([whole, whole])], ['too large', Buffer.alloc(3 * MAX_REQUEST_BYTES)]);
    for (const [what, bytes] of states) {
      writeFileSync(path, bytes);
      expect([what, await failure({ stateFolder })]).toEqual([
        what,
        expect.objectContaining({ code: 'WITNESS_STATE_DAMAGED' }),
      ]);
    }
    expect(states.length).toBeGreaterThan(100);
    writeFileSync(path, whole);
    expect(await failure({ stateFolder })).toBe(undefined);
  });

  test("another log's state, another witness's, a folder", async () => {
    const stateFolder = temporaryFolder();
    const first = await openWitness({ logs: [log.key], stateFolder });
    await submit(first, log.request(0, 5));
    await first.close();
    const damaged = expect.objectContaining({ code: 'WITNESS_STATE_DAMAGED' }) as unknown;
    expect(await failure({ stateFolder, name: 'witness.example/w2' })).toEqual(damaged);
    expect(await failure({ stateFolder, signer: createSigner(generatePrivateKey()) })).toEqual(damaged);
    copyFileSync(join(stateFolder, originHash(log.origin)), join(stateFolder, originHash(other.origin)));
    expect(await failure({ stateFolder, logs: [other.key] })).toEqual(damaged);
    const third = new TestLog('log.example/c');
    mkdirSync(join(stateFolder, originHash(third.origin)));
    expect(await failure({ stateFolder, logs: [third.key] })).toHaveProperty('code', 'IS_A_FOLDER');
  });
});

describe('when the disk fails', () => {
  const VIEWS = [log, log.fork('b'), log.fork('c')];

  /** Runs a witness, looks at what it serves, and shows it several views, this one first; gives the roots that it let out. */
  async function attack(
    stateFolder: string,
    first: number | undefined,
    fileSystem: FileSystem = soundFileSystem,
  ): Promise<string[]> {
    const witness = await createWitness({
      name: WITNESS_NAME,
      signer: witnessSigner,
      now: () => NOW * 1000,
      logs: [log.key],
      stateFolder,
      fileSystem,
    }).catch(() => undefined);
    if (witness === undefined) return [];
    const roots: string[] = [];
    const look = async (): Promise<void> => {
      const { status, body } = await get(witness, log.origin);
      if (status === 200) roots.push(parseCheckpoint(Buffer.from(body)).checkpoint.root);
    };
    await look();
    const views = first === undefined ? [] : [...VIEWS.slice(first), ...VIEWS.slice(0, first)];
    for (const view of views) {
      for (const oldSize of [0, 5]) {
        const { status } = await submit(witness, view.request(oldSize, 5));
        if (status === 200) roots.push(view.root(5));
        await look();
      }
    }
    await witness.close().catch(() => undefined);
    return roots;
  }

  test('one view is signed, whichever operation fails', async () => {
    let fired = 0;
    let signed = 0;
    for (const operation of OPERATIONS) {
      for (const nth of [1, 2, 3, 4, 5, 6]) {
        for (const mode of operation === 'write'
          ? (['once', 'on', 'short'] as const)
          : (['once', 'on'] as const)) {
          const fault = new FaultyFileSystem({ operation, nth, errno: 'EIO', mode });
          const stateFolder = temporaryFolder();
          const cosigned = [...(await attack(stateFolder, 0, fault)), ...(await attack(stateFolder, 1))];
          if (!fault.fired) break;
          fired += 1;
          signed += cosigned.length;
          expect([operation, nth, mode, new Set(cosigned).size]).toEqual([operation, nth, mode, 1]);
        }
      }
    }
    expect(fired).toBeGreaterThan(30);
    expect(signed).toBeGreaterThan(fired);
  });

  test('one view is signed, whenever the process is killed and the power fails', async () => {
    let unanswered = 0;
    let takenBack = 0;
    for (const power of ['stays', 'fails', 'fails after a restart']) {
      for (let lifetime = 0; ; lifetime += 1) {
        const stateFolder = temporaryFolder();
        const path = join(stateFolder, originHash(log.origin));
        const machine = new ForgetfulFileSystem();
        machine.startProcess(lifetime);
        const seen = await attack(stateFolder, 0, machine);
        const isOver = machine.operations <= lifetime;
        if (existsSync(path) && seen.length === 0) unanswered += 1;
        if (power === 'fails after a restart') {
          machine.startProcess();
          seen.push(...(await attack(stateFolder, undefined, machine)));
        }
        const wasThere = existsSync(path);
        if (power !== 'stays') machine.failPower();
        if (wasThere && !existsSync(path)) takenBack += 1;
        seen.push(...(await attack(stateFolder, 1)), ...(await attack(stateFolder, 2)));
        expect([power, lifetime, new Set(seen).size]).toEqual([power, lifetime, 1]);
        if (isOver) break;
      }
    }
    expect([unanswered > 0, takenBack > 0]).toEqual([true, true]);
  });

  test('says that it failed, and goes on when the disk does', async () => {
    const events: WitnessEvent[] = [];
    const stateFolder = temporaryFolder();
    const fileSystem = new FaultyFileSystem({ operation: 'write', nth: 1, errno: 'ENOSPC', mode: 'once' });
    const witness = await openWitness({
      logs: [log.key],
      stateFolder,
      fileSystem,
      onEvent: (event) => events.push(event),
    });
    const answer = await submit(witness, log.request(0, 5));
    expect(answer).toMatchObject({ status: 500 });
    expect(answer.body).not.toContain('ENOSPC');
    expect(events).toEqual([
      { kind: 'failed', error: expect.objectContaining({ code: 'DISK_FULL' }) as unknown },
    ]);
    expect(await get(witness, log.origin)).toMatchObject({ status: 404 });
    expect(await submit(witness, log.request(0, 5))).toMatchObject({ status: 200 });
    expect(readdirSync(stateFolder)).toEqual([originHash(log.origin)]);
  });

  test('signs nothing when its folder was moved away', async () => {
    const folder = temporaryFolder();
    const stateFolder = join(folder, 'state');
    const witness = await openWitness({ logs: [log.key], stateFolder });
    expect(await submit(witness, log.request(0, 5))).toMatchObject({ status: 200 });
    renameSync(stateFolder, join(folder, 'moved'));
    expect(await submit(witness, log.request(5, 6))).toMatchObject({ status: 500 });
    const second = await openWitness({ logs: [log.key], stateFolder });
    expect(await submit(witness, log.request(5, 6))).toMatchObject({ status: 500 });
    await second.close();
  });
});
