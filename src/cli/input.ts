/** What commands read: a file or standard input whole, or in chunks; keys and trust policies. */

import { addAbortSignal } from 'node:stream';
import { printable } from '../base/bytes/printable.js';
import { NorthrootError } from '../base/error.js';
import { MAX_KEY_BYTES } from '../format/key/key-form.js';
import { parsePrivateKey } from '../format/key/private-key.js';
import { MAX_NOTE_BYTES } from '../format/note/signed-note.js';
import type { TrustPolicy } from '../format/schema/generated/types.js';
import { createSigner, type Signer } from '../format/signature/signer.js';
import { isOpenToOthers, kindOfPath, readFileChunks, readSmallFile } from '../log/fs/file-system.js';
import { refuseOtherFiles } from '../log/fs/other-file.js';
import { isStoreUrl } from '../log/fs/place.js';
import { streamSource } from '../log/fs/source.js';
import { openLedger } from '../log/tile/tile-tree.js';
import { MAX_BUNDLE_BYTES } from '../proof/bundle/bundle-file.js';
import { BUNDLE_START_BYTES, isBundle } from '../proof/bundle/bundle-start.js';
import type { LedgerSource } from '../rules/source/ledger-source.js';
import { MAX_TRUST_POLICY_BYTES, parseTrustPolicy } from '../rules/trust/trust-policy.js';
import {
  describeSkipped,
  MAX_WITNESS_POLICY_BYTES,
  parseWitnessPolicy,
  type WitnessPolicy,
} from '../rules/trust/witness-policy.js';
import type { Anchor } from '../rules/verify/anchors.js';
import { CommandError, usageError } from './command-error.js';
import type { Context } from './context.js';
import type { Terminal } from './terminal.js';

/** `-` is standard input. */
export const STDIN = '-';

/** @throws NorthrootError `USAGE` if standard input is named more than once */
export function assertStdinOnce(paths: readonly string[]): void {
  if (paths.filter((path) => path === STDIN).length > 1)
    throw usageError('standard input can be read once only');
}

/** The largest input that a command reads into memory, in bytes. */
const MAX_INPUT_BYTES = 64 * 1024 * 1024;

/** A file, or standard input for `-`, as chunks; Ctrl-C ends even a read that waits. */
export async function* openInput(
  path: string,
  { terminal, signal }: Context,
): AsyncGenerator<Uint8Array, void, void> {
  const chunks = path === STDIN ? readStdin(terminal, signal) : readFileChunks(path);
  for await (const chunk of chunks) {
    yield chunk;
    signal.throwIfAborted();
  }
}

/** Standard input of which the beginning was looked at. */
interface Peeked {
  readonly chunks: Uint8Array[];
  readonly rest: AsyncIterator<Uint8Array>;
}

const peeked = new WeakMap<object, Peeked>();

function peekable(terminal: Terminal, signal: AbortSignal): Peeked {
  const known = peeked.get(process.stdin);
  if (known !== undefined) return known;
  if (process.stdin.isTTY) terminal.say('reading from the terminal; Ctrl-D ends the input, Ctrl-C stops');
  const stream: AsyncIterable<Uint8Array> = addAbortSignal(signal, process.stdin);
  const made = { chunks: [], rest: stream[Symbol.asyncIterator]() };
  peeked.set(process.stdin, made);
  return made;
}

async function* readStdin(terminal: Terminal, signal: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
  const { chunks, rest } = peekable(terminal, signal);
  yield* chunks.splice(0);
  for (;;) {
    const next = await rest.next();
    if (next.done === true) return;
    yield next.value;
  }
}

/** The first bytes of a file, or of standard input, which is read from its beginning afterwards. Fewer where it has no more. */
export async function readStart(
  path: string,
  length: number,
  { terminal, signal }: Context,
): Promise<Uint8Array> {
  if (path !== STDIN) {
    for await (const chunk of readFileChunks(path)) return Uint8Array.from(chunk.subarray(0, length));
    return new Uint8Array();
  }
  const { chunks, rest } = peekable(terminal, signal);
  const size = (): number => chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  while (size() < length) {
    const next = await rest.next();
    if (next.done === true) break;
    chunks.push(Uint8Array.from(next.value));
  }
  return Buffer.concat(chunks).subarray(0, length);
}

/** The bundle at a path, or on standard input for `-`; undefined for anything else. */
export async function readBundleInput(path: string, context: Context): Promise<Uint8Array | undefined> {
  if (path !== STDIN && (await kindOfPath(path)) !== 'file') return undefined;
  const start = await readStart(path, BUNDLE_START_BYTES, context);
  return isBundle(start) ? readInput(path, context, MAX_BUNDLE_BYTES) : undefined;
}

/** A file, or standard input for `-`, whole. */
export async function readInput(
  path: string,
  context: Context,
  limit = MAX_INPUT_BYTES,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of openInput(path, context)) {
    size += chunk.length;
    if (size > limit) throw new CommandError('INPUT_TOO_LARGE', `the input has more than ${limit} bytes`);
    chunks.push(Uint8Array.from(chunk));
  }
  return Buffer.concat(chunks);
}

/** The ledger at a path, or on standard input for `-`. */
export async function openLedgerInput(path: string, context: Context): Promise<LedgerSource> {
  if (path !== STDIN) {
    assertNoUrl(path);
    return openLedger(path);
  }
  return streamSource(refuseOtherFiles(openInput(path, context), STDIN), STDIN);
}

/** The same, for commands that take a record after the ledger. */
export async function openLedgerOf(
  path: string,
  record: string | undefined,
  context: Context,
): Promise<LedgerSource> {
  try {
    return await openLedgerInput(path, context);
  } catch (error) {
    const isSwapped = record !== undefined && (await kindOfPath(record)) !== 'missing';
    if (!(error instanceof NorthrootError && error.code === 'FILE_NOT_FOUND' && isSwapped)) throw error;
    throw new CommandError(error.code, error.message, {
      cause: error,
      hint: `the ledger comes first: ${printable(record)} ${printable(path)}`,
    });
  }
}

function assertNoUrl(path: string): void {
  if (isStoreUrl(path) || !/^[a-z][a-z0-9+.-]{1,20}:\/\//i.test(path)) return;
  throw usageError(
    `northroot reads files and databases only, not ${printable(path)}`,
    'download it first, or pipe it in: curl … | northroot verify -',
  );
}

/** What `parse` makes of a small file. @throws as {@link ofFile} */
export async function parseFile<T>(path: string, limit: number, parse: (bytes: Uint8Array) => T): Promise<T> {
  const bytes = await readSmallFile(path, limit);
  return ofFile(path, () => parse(bytes));
}

/** What `read` gives, of what a file has. @throws what it throws; a NorthrootError names the file */
export function ofFile<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof NorthrootError)) throw error;
    const { code, message, hint } = error;
    throw new NorthrootError(code, `${printable(path)}: ${message}`, { cause: error, hint });
  }
}

/** The signer of a key file in any form that keys have. Warns of one that others than its owner may read. */
export async function readSigner(terminal: Terminal, path: string): Promise<Signer> {
  const signer = createSigner(await parseFile(path, MAX_KEY_BYTES, parsePrivateKey));
  if (await isOpenToOthers(path))
    terminal.say(`warning: others may read the private key ${printable(path)}: chmod 600 it`);
  return signer;
}

export async function readTrustPolicy(path: string | undefined): Promise<TrustPolicy | undefined> {
  return path === undefined ? undefined : parseFile(path, MAX_TRUST_POLICY_BYTES, parseTrustPolicy);
}

/** A C2SP tlog-policy file. */
export async function readWitnessPolicy(
  path: string | undefined,
  terminal: Terminal,
): Promise<WitnessPolicy | undefined> {
  if (path === undefined) return undefined;
  const policy = await parseFile(path, MAX_WITNESS_POLICY_BYTES, parseWitnessPolicy);
  for (const line of describeSkipped(policy)) terminal.say(`${printable(path)}, ${line}`);
  return policy;
}

/** The checkpoints in files, which are named by their paths. */
export async function readAnchors(paths: readonly string[]): Promise<Anchor[]> {
  const anchors: Anchor[] = [];
  for (const path of paths) anchors.push({ name: path, note: await readSmallFile(path, MAX_NOTE_BYTES) });
  return anchors;
}
