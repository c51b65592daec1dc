/** Signatures that other threads make: the same ones, whatever becomes of a thread. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { signEvent } from '../../src/format/signature/signer.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { SigningThreads } from '../../src/log/writer/signing-threads.js';
import { signer, temporaryFolder } from './support.js';

const EVENTS = 700;
const events = (round: number): Uint8Array[] =>
  Array.from({ length: EVENTS }, (_, index) => canonicalBytes({ round, index }));

/** A thread's program. */
const program = (code: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`import { parentPort } from 'node:worker_threads';${code}`)}`,
  );

/** Gives events in rounds, until `isDone`; returns how many signatures came, all of which are right. */
async function sign(
  signing: SigningThreads,
  isDone: (signed: number, round: number) => boolean,
): Promise<number> {
  let signed = 0;
  for (let round = 0; !isDone(signed, round); round += 1) {
    const given = events(round);
    for (const event of given) signing.expect(event);
    await signing.ready(given);
    for (const event of given) {
      const sig = signing.take(event);
      if (sig === undefined) continue;
      expect(sig).toBe(signEvent(event, signer).sig);
      signed += 1;
    }
    await sleep(20);
  }
  await signing.close();
  return signed;
}

describe('SigningThreads', () => {
  it('gives the signatures that the signer gives', async () => {
    const signing = new SigningThreads(signer, 2);
    expect(await sign(signing, (signed) => signed > 0)).toBeGreaterThan(0);
  });

  it.each([
    ['dies when it is asked', 'parentPort.on("message", () => process.exit(1))'],
    ['throws when it is asked', 'parentPort.on("message", () => { throw new Error("no") })'],
    [
      'gives too little',
      'parentPort.on("message", ({ id }) => parentPort.postMessage({ id, signatures: new ArrayBuffer(64) }))',
    ],
    ['does not start', 'throw new Error("no")'],
  ])('gives none where a thread %s', async (_, code) => {
    const signing = new SigningThreads(signer, 1, program(code));
    expect(await sign(signing, (_signed, round) => round === 12)).toBe(0);
  });

  it('gives none, and holds nobody up, where a thread hangs', async () => {
    const signing = new SigningThreads(
      signer,
      1,
      program('parentPort.on("message", () => { for (;;); })'),
      50,
    );
    expect(await sign(signing, (_signed, round) => round === 12)).toBe(0);
  });

  it('gives none for a signer whose key is elsewhere', () => {
    const { publicKey } = signer;
    expect(SigningThreads.of({ publicKey, sign: (message) => signer.sign(message) }, 2)).toBeUndefined();
    expect(SigningThreads.of(signer, 0)).toBeUndefined();
  });
});

describe('a ledger whose events are signed by threads', () => {
  it('has the same bytes', async () => {
    const folder = temporaryFolder();
    const write = async (name: string, signingThreads: number): Promise<Buffer> => {
      const path = join(folder, name);
      const now = (): string => '2026-01-01T00:00:00Z';
      const create = { origin: 'example.com/signed' };
      const ledger = await Ledger.open(path, { signer, signingThreads, now, create, index: false });
      for (let from = 0; from < 3 * EVENTS; from += EVENTS) {
        const drafts = Array.from({ length: EVENTS }, (_, index) => ({
          event_type: 'x.note',
          principal_id: 'service:test',
          index: from + index,
        }));
        const appended = await Promise.all(drafts.map((event) => ledger.append({ event })));
        expect(appended.map(({ seq }) => seq)).toEqual(drafts.map(({ index }) => index + 1));
        await sleep(50);
      }
      await ledger.close();
      return readFileSync(path);
    };
    expect((await write('with.jsonl', 2)).equals(await write('without.jsonl', 0))).toBe(true);
  });

  it.each([-1, 17, 0.5])('refuses %d threads', async (signingThreads) => {
    await expect(Ledger.open(join(temporaryFolder(), 'none'), { signer, signingThreads })).rejects.toThrow(
      RangeError,
    );
  });
});
