/** `northroot witness` as a process: what it prints, what it refuses, and how it ends. */

import { readdirSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { generatePrivateKey, formatPrivateKey } from '../../src/format/key/private-key.js';
import { parseCheckpoint } from '../../src/format/note/checkpoint.js';
import { formatNoteKey, makeNoteKey, parseNoteKey } from '../../src/format/note/note-key.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { collectCosignatures, verifyCosignatures } from '../../src/proof/witness/witness-client.js';
import { originHash } from '../../src/proof/witness/witness-service.js';
import { TestLog } from '../witness/support.js';
import { expectError, Workshop, type Running } from './runner.js';
import { times } from '../slow.js';

const workshop = new Workshop();
const log = new TestLog('log.example/a');
const other = new TestLog('log.example/b');
const key = generatePrivateKey();
const signer = createSigner(key);
const NAME = 'witness.example/w1';
workshop.write('w.key', formatPrivateKey(key, 'pem'), 0o600);
workshop.write('p256.key', formatPrivateKey(generatePrivateKey('p256'), 'pem'), 0o600);
workshop.write(
  'logs.policy',
  `log ${formatNoteKey(log.key)}\nlog ${formatNoteKey(other.key)}\nquorum none\n`,
);
workshop.write('empty.policy', 'quorum none\n');
workshop.write('bad.policy', '# a policy\nquorum W\n');

const BASE = ['witness', '--key', 'w.key', '--name', NAME];
const LOG = ['--log', formatNoteKey(log.key)];
const witnessKey = makeNoteKey(NAME, signer.publicKey, 'cosignature');

/** A witness that listens; killed at the end of the test if it is still there. */
async function start(state: string, ...args: string[]): Promise<{ running: Running; url: string }> {
  const running = workshop.start([...BASE, '--state', state, '--listen', '127.0.0.1:0', ...args]);
  onTestFinished(async () => {
    running.kill('SIGKILL');
    await running.end();
  });
  await running.until(({ stdout, stderr }) => stdout.includes('\n') || stderr.includes('error:'));
  return { running, url: running.stdout.trim() };
}

async function cosign(url: string, log: TestLog, size: number): Promise<string | number> {
  const options = { note: log.note(size), urls: [url], timeoutMs: 10_000 };
  const proofFor = (oldSize: number) => Promise.resolve(log.proof(oldSize, size));
  const [{ lines, error }] = await collectCosignatures({ ...options, proofFor });
  return error?.code ?? verifyCosignatures(log.text(size), lines, [witnessKey]).valid.length;
}

describe('northroot witness', () => {
  test.each(['SIGINT', 'SIGTERM'] as const)('serves until %s, and goes on where it was', async (signal) => {
    const state = `state-${signal}`;
    const first = await start(state, ...LOG);
    expect(first.running.stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\n$/);
    expect(first.running.stderr).toContain(`listening on ${first.url}\n`);
    expect(first.running.stderr).toContain(`knows ${log.origin}: never cosigned here\n`);
    const [, vkey = ''] = /^vkey of this witness: (.*)$/m.exec(first.running.stderr) ?? [];
    expect(parseNoteKey(vkey)).toMatchObject({ type: 'cosignature', keyId: witnessKey.keyId });
    expect(await cosign(first.url, log, 5)).toBe(1);
    expect(await cosign(first.url, other, 5)).toBe('WITNESS_REFUSED');
    expect(await cosign(first.url, log.fork('b'), 6)).toBe('WITNESS_REFUSED');
    first.running.kill(signal);
    expect(await first.running.end()).toMatchObject({ status: 0, stdout: `${first.url}\n` });
    expect(first.running.stderr).toContain(
      `cosigned ${log.origin} at size 5\nrefused ${log.origin} at size 6`,
    );
    expect(first.running.stderr).toMatch(/\nstopped\n$/);

    const second = await start(state, ...LOG);
    expect(second.running.stderr).toContain(`knows ${log.origin}: cosigned at size 5\n`);
    expect(await cosign(second.url, log, 4)).toBe('WITNESS_AHEAD');
    expect(await cosign(second.url, log, 6)).toBe(1);
  });

  test('knows the logs of a policy, and serves under a prefix', async () => {
    const { url, running } = await start('state-policy', '--policy', 'logs.policy', '--prefix', '/w1');
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/w1$/);
    expect(await cosign(url, log, 1)).toBe(1);
    expect(await cosign(url, other, 1)).toBe(1);
    expect((await fetch(`${url}/${originHash(other.origin)}/checkpoint`)).status).toBe(200);
    running.kill('SIGTERM');
    expect(await running.end()).toMatchObject({ status: 0 });
  });

  test('ends while a client keeps its connection and another is slow', async () => {
    const { url, running } = await start('state-slow', ...LOG);
    expect(await cosign(url, log, 1)).toBe(1);
    const { hostname, port } = new URL(url);
    const slow = connect(Number(port), hostname);
    const closed = once(slow, 'close');
    slow.on('error', () => undefined);
    slow.write(
      'POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\nold 0\n',
    );
    // The request has arrived, and the rest of its body is waited for.
    expect(String(await once(slow, 'data'))).toMatch(/^HTTP\/1\.1 100 /);
    running.kill('SIGTERM');
    expect(await running.end()).toMatchObject({ status: 0 });
    await closed;
  });

  test('one process at a time has the state', async () => {
    const first = await start('state-two', ...LOG);
    const second = await start('state-two', ...LOG);
    expectError(await second.running.end(), 2, 'WITNESS_STATE_LOCKED');
    expect(await cosign(first.url, log, 1)).toBe(1);
    first.running.kill('SIGKILL');
    await first.running.end();
    const third = await start('state-two', ...LOG);
    expect(await cosign(third.url, log, 1)).toBe(1);
  });

  test('kill -9 at any moment leaves one view', async () => {
    const state = 'state-killed';
    const views = [log, log.fork('b'), log.fork('c'), log.fork('d')];
    const seen = new Map<number, Set<string>>();
    for (let round = 0; round < times(5, 8); round += 1) {
      const { running, url } = await start(state, ...LOG);
      // Killed when the clients have this many cosignatures in hand, and so much later that the moment differs.
      let wanted = round;
      const kill = (): void => void sleep(round % 4).then(() => running.kill('SIGKILL'));
      if (wanted === 0) kill();
      const answers = views.map(async (_, n) => {
        const view = views[(n + round) % views.length];
        for (let size = 1; size < 200; size += 1) {
          const result = await cosign(url, view, size);
          if (result === 'WITNESS_UNREACHABLE') return;
          if (result !== 1) continue;
          seen.set(size, (seen.get(size) ?? new Set()).add(view.root(size)));
          wanted -= 1;
          if (wanted === 0) kill();
        }
      });
      await Promise.all(answers);
      expect(wanted).toBeLessThanOrEqual(0);
      await running.end();
    }
    const [file = ''] = readdirSync(workshop.path(state)).filter((name) => name === originHash(log.origin));
    const { checkpoint } = parseCheckpoint(readFileSync(workshop.path(`${state}/${file}`)));
    const last = views.find((view) => view.root(checkpoint.size) === checkpoint.root);
    expect(seen.size).toBeGreaterThan(0);
    for (const [size, roots] of seen) expect([size, ...roots]).toEqual([size, last?.root(size)]);
  });

  test('refuses a state that is damaged, and leaves it as it is', async () => {
    const first = await start('state-damaged', ...LOG);
    expect(await cosign(first.url, log, 1)).toBe(1);
    first.running.kill('SIGTERM');
    await first.running.end();
    const file = `state-damaged/${originHash(log.origin)}`;
    const whole = workshop.bytes(file);
    for (const damaged of [Buffer.alloc(0), whole.subarray(0, -1), whole.subarray(1)]) {
      workshop.write(file, damaged);
      const again = await start('state-damaged', ...LOG);
      expectError(await again.running.end(), 2, 'WITNESS_STATE_DAMAGED');
      expect(workshop.bytes(file)).toEqual(damaged);
    }
  });

  test('says that the port is in use', async () => {
    const first = await start('state-port', ...LOG);
    const { port } = new URL(first.url);
    const run = workshop.run([...BASE, ...LOG, '--state', 'state-port-2', '--listen', `127.0.0.1:${port}`]);
    expectError(run, 2, 'LISTEN_FAILED');
  });

  test.each<[string, string[], string]>([
    ['no options', ['witness'], 'USAGE'],
    ['no log', [...BASE, '--state', 's'], 'USAGE'],
    ['a policy without logs', [...BASE, '--state', 's', '--policy', 'empty.policy'], 'USAGE'],
    ['a policy that is none', [...BASE, '--state', 's', '--policy', 'bad.policy'], 'WITNESS_POLICY_INVALID'],
    ['a policy that is not there', [...BASE, '--state', 's', '--policy', 'no.policy'], 'FILE_NOT_FOUND'],
    [
      'a key that is not there',
      ['witness', '--key', 'no.key', '--name', NAME, '--state', 's', ...LOG],
      'FILE_NOT_FOUND',
    ],
    [
      'a key of another kind',
      ['witness', '--key', 'p256.key', '--name', NAME, '--state', 's', ...LOG],
      'KEY_UNSUPPORTED',
    ],
    ['a name with a space', ['witness', '--key', 'w.key', '--name', 'a b', '--state', 's', ...LOG], 'USAGE'],
    ["a witness's key for a log", [...BASE, '--state', 's', '--log', formatNoteKey(witnessKey)], 'USAGE'],
    ['a log that is no vkey', [...BASE, '--state', 's', '--log', 'log.example/a'], 'USAGE'],
    ['a prefix that is no path', [...BASE, '--state', 's', ...LOG, '--prefix', 'w1'], 'USAGE'],
    ['a port alone', [...BASE, '--state', 's', ...LOG, '--listen', '8787'], 'USAGE'],
    ['a port that is too large', [...BASE, '--state', 's', ...LOG, '--listen', '127.0.0.1:65536'], 'USAGE'],
    ['an IPv6 address without brackets', [...BASE, '--state', 's', ...LOG, '--listen', '::1:8787'], 'USAGE'],
    ['a file for a state', [...BASE, '--state', 'w.key', ...LOG], 'NOT_A_FOLDER'],
    ['an argument', [...BASE, '--state', 's', ...LOG, 'ledger.jsonl'], 'USAGE'],
  ])('refuses %s', (_what, args, code) => {
    expectError(workshop.run(args), 2, code);
    expect(workshop.has('s')).toBe(false);
  });
});
