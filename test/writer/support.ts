/** What the tests of the writer share: folders that go away, keys, drafts, and naive looks at what is on disk. */

import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, vi } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import type { JsonObject } from '../../src/base/json/value.js';
import { nodeFileSystem } from '../../src/log/fs/file-system.js';
import { openLedgerSource } from '../../src/log/fs/source.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { LedgerStore } from '../../src/log/store/ledger-store.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { Ledger, type LedgerOptions, type Notice } from '../../src/log/writer/ledger.js';
import { ed25519Key } from '../key/key-samples.js';

export const signer = createSigner(ed25519Key(Buffer.alloc(32, 1)));
export const otherSigner = createSigner(ed25519Key(Buffer.alloc(32, 2)));

export const NOON = '2026-01-01T12:00:00Z';

/** A folder of the test's own. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-writer-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A draft that differs from those of other numbers. */
export function draft(n: number, more: object = {}): object {
  return { event_type: 'x.test', n, ...more };
}

const DEFAULTS = {
  create: { origin: 'example.com/tests/writer', binding: 'optional' as const },
  now: () => NOON,
  principalId: 'agent:a1',
  lockTimeoutMs: 0,
};

/** Opens with the defaults of these tests: makes what is missing, signs, stands still in time. */
export function openLedger(path: string | LedgerStore, options: LedgerOptions = {}): Promise<Ledger> {
  return openUnsigned(path, { signer, ...options });
}

/** The same without a signer: a ledger that it makes asks for no signatures. */
export async function openUnsigned(path: string | LedgerStore, options: LedgerOptions = {}): Promise<Ledger> {
  const ledger = await Ledger.open(path, { ...DEFAULTS, ...options });
  onTestFinished(() => ledger.close().catch(() => undefined));
  return ledger;
}

/** Holds a ledger's lock as a writer does in the midst of a group; the function returned gives it back. */
export async function holdLock(path: string): Promise<() => Promise<void>> {
  const file = await nodeFileSystem.open(path, path.endsWith('/') ? 'read' : 'append');
  await file.lock(10_000);
  let closing: Promise<void> | undefined;
  const release = (): Promise<void> => (closing ??= file.close());
  onTestFinished(release);
  return release;
}

/** Makes a ledger with drafts 1 to `count` and closes it. */
export async function makeLedger(path: string, count: number, options: LedgerOptions = {}): Promise<void> {
  const ledger = await openLedger(path, options);
  for (let n = 1; n <= count; n += 1) await ledger.append({ event: draft(n) });
  await ledger.close();
}

/** Waits until a second writer of this process has the file open. */
export async function untilWaiting(path: string): Promise<void> {
  const real = realpathSync(path);
  const descriptors = (): number =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`) === real;
      } catch {
        return false;
      }
    }).length;
  // Where the system does not tell, a while is long enough.
  if (!existsSync('/proc/self/fd')) await sleep(1_000);
  else await vi.waitUntil(() => descriptors() > 1, { timeout: 60_000, interval: 5 });
}

/** Collects notices: pass `onNotice`, look at `notices`. */
export function noticeBoard(): { notices: Notice[]; onNotice: (notice: Notice) => void } {
  const notices: Notice[] = [];
  return { notices, onNotice: (notice) => notices.push(notice) };
}

/** The error that a promise is rejected with. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => expect.fail('expected a rejection'),
    (error: unknown) => error,
  );
}

/** The code of the NorthrootError that a promise is rejected with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error = await errorOf(promise);
  if (error instanceof NorthrootError) return error.code;
  throw error;
}

export interface WireRecord {
  readonly event: JsonObject & { readonly event_id: { readonly b64: string } };
  readonly meta?: JsonObject;
  readonly seq: number;
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[];
}

/** The bytes of a ledger: its file, or its segments one after the other. */
export function readBytes(path: string): Buffer {
  if (!statSync(path).isDirectory()) return readFileSync(path);
  const names = readdirSync(path)
    .filter((name) => name.endsWith('.jsonl'))
    .sort();
  return Buffer.concat(names.map((name) => readFileSync(join(path, name))));
}

/** The file that a ledger ends in. */
export function lastFile(path: string): string {
  if (!statSync(path).isDirectory()) return path;
  const names = readdirSync(path).filter((name) => name.endsWith('.jsonl'));
  return join(path, names.sort().at(-1)!);
}

/** The whole lines of a ledger, by nothing but JSON.parse. */
export function readRecords(path: string): WireRecord[] {
  const lines = readBytes(path).toString('utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as WireRecord);
}

/** The verdict on a ledger and the codes of all its findings. */
export async function judge(path: string): Promise<{ verdict: string; codes: string[]; records: number }> {
  // Nobody writes any more: what is torn stays so.
  const { verdict, findings, ledger } = await verifyLedger(await openLedgerSource(path, { patienceMs: 0 }));
  return { verdict, codes: findings.map(({ code }) => code), records: ledger.records };
}

/** Asserts that a ledger verifies without a single finding and has so many records, genesis included. */
export async function expectSound(path: string, records: number): Promise<void> {
  expect(await judge(path)).toEqual({ verdict: 'ok', codes: [], records });
}
