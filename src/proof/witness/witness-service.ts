/**
 * A witness (https://c2sp.org/tlog-witness): it cosigns a checkpoint of a known log only if it extends the last one, and never two views of
 * one log:
 *
 * - Requests about one log are processed sequentially.
 * - The checkpoint with its cosignature is on disk before the cosignature is sent.
 * - After a failed write the state in memory counts: the new cosignature was never sent.
 * - A lock allows one process per state folder.
 * - A damaged state file is refused; a missing one means that the log was never cosigned.
 *
 * The state of a log is its last served checkpoint, in a file named by the SHA-256 of the origin. HTTP is in `serve-witness.ts`. The
 * optional `sign-subtree` is not offered.
 */

import { join } from 'node:path';
import { encodeHex } from '../../base/bytes/encoding.js';
import { printable } from '../../base/bytes/printable.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { NorthrootError } from '../../base/error.js';
import { type Checkpoint, decodeCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import {
  canBeLogKey,
  cosignNote,
  makeNoteKey,
  MAX_ML_DSA_NAME_BYTES,
  type NoteKey,
} from '../../format/note/note-key.js';
import { formatNote, formatSignatureLine } from '../../format/note/signed-note.js';
import { verifyNoteSignatures } from '../../format/note/verify-note.js';
import type { Signer } from '../../format/signature/signer.js';
import { type FileSystem, nodeFileSystem, type OpenFile, replaceFile } from '../../log/fs/file-system.js';
import {
  type AddCheckpointDecision,
  decideAddCheckpoint,
  decodeAddCheckpoint,
  SIZE_CONTENT_TYPE,
} from './add-checkpoint.js';

/** A key of a log, of type 0x01 or 0x06. */
export interface LogKey extends NoteKey {
  /** The origin of its checkpoints. Default: its name, as https://c2sp.org/tlog-checkpoint recommends. */
  readonly origin?: string;
}

export interface WitnessOptions {
  /** The name under which it cosigns. */
  readonly name: string;
  /** Its key, Ed25519 or ML-DSA-44, used for nothing else. */
  readonly signer: Signer;
  /** The keys of known logs; a log may have several. */
  readonly logs: readonly LogKey[];
  /** The folder of its state; made if missing. */
  readonly stateFolder: string;
  /** The path before `/add-checkpoint`, such as `/w1`. Default: none. */
  readonly prefix?: string | undefined;
  /** The time in milliseconds since 1970. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
  readonly fileSystem?: FileSystem | undefined;
  /** Called with the outcome of each checkpoint of a known log. */
  readonly onEvent?: ((event: WitnessEvent) => void) | undefined;
}

/** The outcome of a checkpoint of a known log. */
export type WitnessEvent =
  | { readonly kind: 'cosigned'; readonly checkpoint: Checkpoint }
  /** Signed by the log, and not shown to extend the last one. */
  | { readonly kind: 'inconsistent'; readonly checkpoint: Checkpoint }
  /** Could not be recorded, and was not cosigned. */
  | { readonly kind: 'failed'; readonly error: unknown };

export interface WitnessRequest {
  readonly method: string;
  /** With the prefix, without a query. */
  readonly path: string;
  readonly body: Uint8Array;
}

export interface WitnessResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** The allowed methods, with status 405. */
  readonly allow?: string;
}

export interface Witness {
  /** Its key, of type 0x04 or 0x06. */
  readonly key: NoteKey;
  readonly logs: readonly LogKey[];
  readonly prefix: string;
  /** The last cosigned checkpoint of a log. */
  lastCheckpoint(origin: string): Checkpoint | undefined;
  /** Answers a request. Never rejects. */
  handle(request: WitnessRequest): Promise<WitnessResponse>;
  /** Waits for pending answers and releases the state folder. */
  close(): Promise<void>;
}

/** The largest request body, in bytes: a proof takes 3 KiB, a cosignature less than 4. */
export const MAX_REQUEST_BYTES = 256 * 1024;

const TEXT = 'text/plain; charset=utf-8';
/** A state file also has the cosignature, under the longest name. */
const MAX_STATE_BYTES = 2 * MAX_REQUEST_BYTES;

/**
 * Opens the state of a witness.
 *
 * @throws RangeError for a name, prefix, log key or origin that cannot be one
 * @throws NorthrootError `KEY_UNSUPPORTED` (P-256), `KEY_MALFORMED` (a log key by which no signature is valid),
 *   `WITNESS_STATE_LOCKED`, `WITNESS_STATE_DAMAGED`, and as the file system does
 */
export async function createWitness(options: WitnessOptions): Promise<Witness> {
  const { name, signer, logs, stateFolder, prefix = '', fileSystem = nodeFileSystem } = options;
  if (!isSubmissionPrefix(prefix))
    throw new RangeError('expected a prefix such as /w1: a path of letters, digits and . _ ~ -');
  const type = signer.publicKey.alg === 'ml-dsa-44' ? 'ml-dsa-44' : 'cosignature';
  const key = makeNoteKey(name, signer.publicKey, type);
  const keysOf = groupByOrigin(logs);
  assertCanCosign(key, keysOf);
  const kind = await fileSystem.kindOf(stateFolder);
  if (kind === 'missing') await fileSystem.makeFolder(stateFolder);
  else if (kind !== 'folder')
    throw new NorthrootError(
      'NOT_A_FOLDER',
      `the state of a witness is kept in a folder: ${printable(stateFolder)} is none`,
    );
  const folder = await lockFolder(stateFolder, fileSystem);
  try {
    const states = new Map<string, LogState>();
    for (const [origin, keys] of keysOf) {
      const path = join(stateFolder, originHash(origin));
      const last = await readState(path, origin, key, keys, fileSystem);
      states.set(origin, { path, keys, last, pending: Promise.resolve() });
    }
    return new FolderWitness({ ...options, prefix, fileSystem }, key, folder, states);
  } catch (error) {
    await folder.close().catch(() => undefined);
    throw error;
  }
}

/** Whether a path may precede `/add-checkpoint`: empty, or such as `/w1`. */
export function isSubmissionPrefix(path: string): boolean {
  return /^(?:\/[A-Za-z0-9._~-]+)*$/.test(path);
}

/** The name of a log in a witness's URLs and state: the SHA-256 of its origin in hex. */
export function originHash(origin: string): string {
  return encodeHex(sha256(Buffer.from(origin)));
}

interface LastCosigned {
  readonly checkpoint: Checkpoint;
  readonly timestamp: number;
  /** The whole note, as served. */
  readonly text: string;
}

interface LogState {
  readonly path: string;
  readonly keys: readonly NoteKey[];
  last: LastCosigned | undefined;
  /** Settles when all requests so far are answered. */
  pending: Promise<unknown>;
}

class FolderWitness implements Witness {
  readonly key: NoteKey;
  readonly logs: readonly LogKey[];
  readonly prefix: string;
  readonly #options: WitnessOptions & { readonly fileSystem: FileSystem };
  readonly #folder: OpenFile;
  readonly #states: ReadonlyMap<string, LogState>;
  readonly #byHash: ReadonlyMap<string, LogState>;
  #closing: Promise<void> | undefined;

  constructor(
    options: WitnessOptions & { readonly prefix: string; readonly fileSystem: FileSystem },
    key: NoteKey,
    folder: OpenFile,
    states: ReadonlyMap<string, LogState>,
  ) {
    this.key = key;
    this.logs = options.logs;
    this.prefix = options.prefix;
    this.#options = options;
    this.#folder = folder;
    this.#states = states;
    this.#byHash = new Map([...states].map(([origin, state]) => [originHash(origin), state]));
  }

  lastCheckpoint(origin: string): Checkpoint | undefined {
    return this.#states.get(origin)?.last?.checkpoint;
  }

  async handle(request: WitnessRequest): Promise<WitnessResponse> {
    try {
      return await this.#answer(request);
    } catch (error) {
      this.#tell({ kind: 'failed', error });
      return answer(500, 'the checkpoint could not be recorded, and was not cosigned');
    }
  }

  async #answer({ method, path, body }: WitnessRequest): Promise<WitnessResponse> {
    if (this.#closing !== undefined) return answer(503, 'the witness is stopping');
    const route = path.startsWith(`${this.prefix}/`) ? path.slice(this.prefix.length) : '';
    if (route === '/add-checkpoint')
      return method === 'POST' ? this.#addCheckpoint(body) : notAllowed('POST');
    const [, hash] = /^\/([0-9a-f]{64})\/checkpoint$/.exec(route) ?? [];
    if (hash === undefined) return answer(404, 'there is nothing here');
    if (method !== 'GET') return notAllowed('GET');
    const last = this.#byHash.get(hash)?.last;
    return last === undefined
      ? answer(404, 'no checkpoint of that log has been cosigned here')
      : { status: 200, contentType: TEXT, body: last.text };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#states.values()].map(({ pending }) => pending));
    await this.#folder.close();
  }

  async #addCheckpoint(body: Uint8Array): Promise<WitnessResponse> {
    if (body.length > MAX_REQUEST_BYTES) return answer(413, `expected at most ${MAX_REQUEST_BYTES} bytes`);
    const decoded = decodeAddCheckpoint(body);
    if (!decoded.ok) {
      const { origin, expected } = decoded.fault;
      // A note with malformed signature lines has no signature by a known key.
      const isKnown = origin !== undefined && this.#states.has(origin);
      const status = origin === undefined ? 400 : isKnown ? 403 : 404;
      return answer(status, `expected ${expected}`);
    }
    const request = decoded.value;
    const { note } = request;
    const state = this.#states.get(note.checkpoint.origin);
    const decide = async (): Promise<WitnessResponse> => {
      const decision = decideAddCheckpoint(request, state?.keys, state?.last?.checkpoint);
      if (decision.status !== 200) {
        if (decision.isInconsistent === true || decision.status === 422)
          this.#tell({ kind: 'inconsistent', checkpoint: note.checkpoint });
        return toResponse(decision);
      }
      return this.#cosign(state as LogState, { ...note, signatures: decision.logSignatures });
    };
    if (state === undefined) return decide();
    const answered = state.pending.then(decide);
    state.pending = answered.catch(() => undefined);
    return answered;
  }

  async #cosign(
    state: LogState,
    { checkpoint, text, signatures }: SignedCheckpoint,
  ): Promise<WitnessResponse> {
    const { name, signer, fileSystem, stateFolder, now = Date.now } = this.#options;
    // 0 would mean no time; a clock that was set back is not followed.
    const timestamp = Math.max(Math.floor(now() / 1000), state.last?.timestamp ?? 1);
    const cosignature = cosignNote(text, name, signer, timestamp);
    const whole = formatNote({ text, signatures: [...signatures, cosignature] });
    if (!(await this.#folder.isInPlace()))
      throw new NorthrootError(
        'FILE_CHANGED',
        `${printable(stateFolder)} is not the folder that was locked`,
        {
          hint: 'start the witness again with the folder that has its state',
        },
      );
    const temporary = `${state.path}.new`;
    await replaceFile(state.path, Buffer.from(whole), { temporary, fileSystem });
    state.last = { checkpoint, timestamp, text: whole };
    this.#tell({ kind: 'cosigned', checkpoint });
    return { status: 200, contentType: TEXT, body: `${formatSignatureLine(cosignature)}\n` };
  }

  /** Asynchronous, so that an error of the listener is not taken for a failed request. */
  #tell(event: WitnessEvent): void {
    queueMicrotask(() => this.#options.onEvent?.(event));
  }
}

/** The origin of the checkpoints that a key signs. */
export function originOf({ name, origin = name }: LogKey): string {
  return origin;
}

/** ML-DSA-44 cosignatures limit names to 255 bytes. A witness MUST NOT use a key of a log. */
function assertCanCosign(key: NoteKey, keysOf: ReadonlyMap<string, readonly NoteKey[]>): void {
  for (const [origin, keys] of keysOf) {
    if (keys.some((logKey) => logKey.name === key.name && logKey.keyId === key.keyId))
      throw new RangeError('expected a key of the witness that is no key of a log, under another name');
    if (key.type === 'ml-dsa-44' && Buffer.byteLength(origin) > MAX_ML_DSA_NAME_BYTES)
      throw new RangeError(
        `expected origins of at most ${MAX_ML_DSA_NAME_BYTES} bytes to cosign with ml-dsa-44`,
      );
  }
  if (key.type === 'ml-dsa-44' && Buffer.byteLength(key.name) > MAX_ML_DSA_NAME_BYTES)
    throw new RangeError(
      `expected a name of at most ${MAX_ML_DSA_NAME_BYTES} bytes to cosign with ml-dsa-44`,
    );
}

function groupByOrigin(logs: readonly LogKey[]): Map<string, NoteKey[]> {
  const keysOf = new Map<string, NoteKey[]>();
  for (const key of logs) {
    if (!canBeLogKey(key)) throw new RangeError('expected log keys of type 0x01 or 0x06');
    if (!key.verification.usable)
      throw new NorthrootError('KEY_MALFORMED', `no signature by the key of ${printable(key.name)} is valid`);
    const origin = originOf(key);
    if (!/^[^\u0000-\u001f]+$/.test(origin)) throw new RangeError('expected an origin in one line');
    const keys = keysOf.get(origin) ?? [];
    if (!keys.some(({ keyId, name }) => keyId === key.keyId && name === key.name)) keys.push(key);
    keysOf.set(origin, keys);
  }
  return keysOf;
}

async function lockFolder(path: string, fileSystem: FileSystem): Promise<OpenFile> {
  const folder = await fileSystem.open(path, 'read');
  try {
    await folder.lock(0);
    return folder;
  } catch (error) {
    await folder.close().catch(() => undefined);
    if (!(error instanceof NorthrootError && error.code === 'LEDGER_LOCKED')) throw error;
    throw new NorthrootError('WITNESS_STATE_LOCKED', `another witness has the state in ${printable(path)}`, {
      hint: 'stop it first, or give this witness a state folder and a key of its own',
      cause: error,
    });
  }
}

/** Reads a state file; undefined if missing. */
async function readState(
  path: string,
  origin: string,
  key: NoteKey,
  logKeys: readonly NoteKey[],
  fileSystem: FileSystem,
): Promise<LastCosigned | undefined> {
  if ((await fileSystem.kindOf(path)) === 'missing') return undefined;
  const bytes = await readSynced(path, fileSystem);
  const decoded = decodeCheckpoint(bytes);
  if (!decoded.ok) throw damaged(path, decoded.fault.expected, decoded.fault.actual);
  const note = decoded.value;
  if (note.checkpoint.origin !== origin) throw damaged(path, printable(origin), 'another log');
  const { valid, invalid } = verifyNoteSignatures(note, [key, ...logKeys]);
  if (invalid.length > 0) throw damaged(path, 'valid signatures', 'an invalid one');
  // The log's keys may have been replaced since, so its signature may be by an unknown key.
  const timestamp = valid.find((signer) => signer.key === key)?.timestamp;
  if (typeof timestamp !== 'number') throw damaged(path, "this witness's own cosignature", 'none');
  return { checkpoint: note.checkpoint, timestamp, text: Buffer.from(bytes).toString() };
}

/** Reads a file and syncs it and its name: its writer may have been killed before it did. */
async function readSynced(path: string, fileSystem: FileSystem): Promise<Uint8Array> {
  const file = await fileSystem.open(path, 'read');
  try {
    const bytes = new Uint8Array(MAX_STATE_BYTES + 1);
    let size = 0;
    for (;;) {
      const count = await file.read(bytes.subarray(size), size);
      size += count;
      if (count === 0) break;
    }
    if (size > MAX_STATE_BYTES) throw damaged(path, `at most ${MAX_STATE_BYTES} bytes`, 'more');
    await file.datasync();
    await fileSystem.syncFolderOf(path);
    return bytes.subarray(0, size);
  } finally {
    await file.close();
  }
}

function damaged(path: string, expected: string, found: string): NorthrootError {
  return new NorthrootError(
    'WITNESS_STATE_DAMAGED',
    `${printable(path)} is not what this witness wrote: expected ${expected}, found ${found}`,
    {
      hint: 'bring back the file as it last was; never remove it, or the witness could cosign another view of that log. Each key needs a folder of its own',
    },
  );
}

function toResponse(decision: Exclude<AddCheckpointDecision, { status: 200 }>): WitnessResponse {
  const { status, body, isInconsistent } = decision;
  // Who is told a size asks again with it.
  const contentType = status === 409 && isInconsistent !== true ? SIZE_CONTENT_TYPE : TEXT;
  return { status, contentType, body };
}

function answer(status: number, words: string): WitnessResponse {
  return { status, contentType: TEXT, body: `${words}\n` };
}

function notAllowed(allow: string): WitnessResponse {
  return { ...answer(405, `expected ${allow}`), allow };
}
