/** Options for opening, entries and results of appends. */

import { type Clock, presentTime } from '../../base/clock.js';
import type { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import type { Finding } from '../../format/finding/finding.js';
import type { SignatureEntry } from '../../format/record/examine-line.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { assertSignsRecords, type Signer } from '../../format/signature/signer.js';
import type { EventVerdict } from '../../rules/verify/line-result.js';
import type { IndexNotice } from '../cache/ledger-index.js';
import type { FileSystem } from '../fs/file-system.js';
import type { Durability, SavedTail } from '../store/ledger-store.js';
import { assertSchedule, type CheckpointSchedule } from './checkpoint.js';
import type { GenesisOptions } from './genesis.js';
import type { StateCache } from './state-cache.js';

/** Events that a user should know of, though nothing failed. */
export type Notice =
  | { readonly code: 'LEDGER_CREATED'; readonly path: string; readonly origin: string }
  | ({ readonly code: 'TORN_TAIL_SAVED' } & SavedTail)
  | { readonly code: 'LEDGER_WAITING'; readonly path: string }
  | { readonly code: 'LEDGER_DAMAGED'; readonly path: string; readonly lines: number }
  /** The default position file cannot be written: a rollback will not be detected. */
  | { readonly code: 'POSITION_NOT_KEPT'; readonly path: string; readonly error: NorthrootError }
  | { readonly code: 'CHECKPOINT_FAILED'; readonly path: string; readonly error: NorthrootError }
  | IndexNotice;

export interface OpeningOptions {
  /** Signs every appended event. Without it events keep the signatures that they bring. */
  readonly signer?: Signer | undefined;
  /**
   * Threads that sign ahead when hundreds of events wait, at most 16. Only for signers of `createSigner`. Default 1; 0 with one processor.
   */
  readonly signingThreads?: number | undefined;
  /** The genesis of a missing or empty ledger; without it that is an error. */
  readonly create?: GenesisOptions | undefined;
  /** How long to wait for other writers, in milliseconds. Default 10,000. */
  readonly lockTimeoutMs?: number | undefined;
  /**
   * How long the write lock may be kept for the next append, in milliseconds, unless others write. Default 30, at most 1,000. 0 releases it
   * after each group: for programs that may block right after an append, such as for another writer.
   */
  readonly lingerMs?: number | undefined;
  /** Aborting ends waits for other writers, and the verification before a checkpoint, with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** After a refused event, refuse those that follow it (`NOT_REACHED`), for streams that resume from the mended event. */
  readonly stopsAtRefusal?: boolean | undefined;
  /**
   * Refuse events that would make the ledger invalid, such as an execution without its authorization. Evidence of a broken bound is still
   * recorded.
   */
  readonly strict?: boolean | undefined;
  /** The default of `occurred_at`, as a timestamp of SPEC §2. */
  readonly now?: (() => string) | undefined;
  /** For tests: timers, and the default of `now`. */
  readonly clock?: Clock | undefined;
  /** The default of `principal_id`. */
  readonly principalId?: string | undefined;
  /** In a folder, a segment of at least this size is followed by a new one. Default 64 MiB. */
  readonly segmentBytes?: number | undefined;
  /** Enables {@link Ledger.checkpoint}: opening then verifies every signature. */
  readonly checkpoints?: boolean | undefined;
  /** Enables {@link Ledger.decide}: opening then verifies every signature. */
  readonly decides?: boolean | undefined;
  /** Decisions rest on this policy. Default: the keys that the ledger declares. */
  readonly trust?: TrustPolicy | undefined;
  /**
   * Where the last acknowledged position is kept: a file, or a folder (existing, or ending in `/`) with a file per ledger. Opening refuses
   * a ledger without those records (`LEDGER_ROLLED_BACK`). true: `LEDGER.position`, if it can be written (else `POSITION_NOT_KEPT`); false:
   * nowhere. For the URL of a database, true is a file in the user's state folder. Default: `decides`.
   */
  readonly position?: string | boolean | undefined;
  /**
   * Of a ledger by its URL: where all its writers keep the furthest acknowledged position, outside of the database. A file; a folder,
   * existing or ending in `/`, with a file for each ledger; or the URL of another database. Required where standbys follow that no commit
   * waits for.
   */
  readonly positionWitness?: string | undefined;
  /** Makes checkpoints when due; the signer's key MUST be entitled to. */
  readonly checkpointEvery?: CheckpointSchedule | undefined;
  /** Keys that sign checkpoint notes, Ed25519 or ML-DSA-44, each once; one of each makes a hybrid note. Default: `signer`. */
  readonly noteSigners?: readonly Signer[] | undefined;
  readonly onNotice?: ((notice: Notice) => void) | undefined;
  /**
   * The folder of the ledger's index, a copy that this machine keeps. true: beside a large ledger in files, else none; false: none, so
   * that the ledger is read at opening, and its state kept in memory. Default true.
   */
  readonly index?: string | boolean | undefined;
  /** What acknowledged records MUST survive. Default: a crash of the machine that keeps them, `local`. */
  readonly durability?: Durability | undefined;
  /** Keeps verification states between locks. Default: the index, or memory. */
  readonly stateCache?: StateCache | undefined;
  /** For tests. */
  readonly fileSystem?: FileSystem | undefined;
}

export interface Entry {
  /** A draft without ids (see `buildEvent`), or a whole event, which is checked. */
  readonly event: object;
  /** At most 4,096 bytes, strings only; outside every digest of the event. */
  readonly meta?: Readonly<Record<string, string>>;
  /** Existing signatures; the ledger's signer adds its own, unless one is a passkey's: that person's word stands alone. */
  readonly signatures?: readonly SignatureEntry[];
  /**
   * Requires a record of its own: a draft that exists already is followed, by `prev_event_id`, by another. Otherwise the same content has
   * the same id (SPEC §3), and appending it again is a no-op.
   */
  readonly isAnew?: boolean;
  /** Refuses an existing event as `EVENT_DUPLICATE`. */
  readonly refusesExisting?: boolean;
}

/** The position of an acknowledged event, on disk. */
export interface Appended {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
  /** `exists`: nothing was written. */
  readonly status: 'appended' | 'exists';
  /** By the ledger's own keys; empty for an existing event. */
  readonly findings: readonly Finding[];
  /** Of an appended record. */
  readonly verdict: EventVerdict | undefined;
}

export interface CheckpointResult extends Appended {
  /** The signed note, to be published. */
  readonly note: string;
  readonly treeSize: number;
}

const DEFAULT_LOCK_TIMEOUT_MS = 10_000;
const DEFAULT_LINGER_MS = 30;
const MAX_LINGER_MS = 1_000;
export const MAX_SIGNING_THREADS = 16;

export const LEDGER_OPTIONS: OptionTypes<OpeningOptions & { onCheckpoint?: object }> = {
  signer: 'object',
  signingThreads: 'number',
  create: 'object',
  lockTimeoutMs: 'number',
  lingerMs: 'number',
  signal: 'signal',
  stopsAtRefusal: 'boolean',
  strict: 'boolean',
  now: 'function',
  clock: 'object',
  principalId: 'string',
  segmentBytes: 'number',
  checkpoints: 'boolean',
  decides: 'boolean',
  trust: 'object',
  position: ['string', 'boolean'],
  positionWitness: 'string',
  checkpointEvery: 'object',
  noteSigners: 'array',
  onCheckpoint: 'function',
  onNotice: 'function',
  index: ['string', 'boolean'],
  durability: 'string',
  stateCache: 'object',
  fileSystem: 'object',
};

/** @throws TypeError, RangeError naming a bad option; NorthrootError `KEY_UNSUPPORTED` for a signer whose key cannot sign records */
export function assertLedgerOptions(options: OpeningOptions): void {
  checkOptions('Ledger.open', options, LEDGER_OPTIONS);
  const { segmentBytes = 1, signer, signingThreads = 0, checkpointEvery } = options;
  if (options.positionWitness === '')
    throw new RangeError('positionWitness must be a file, a folder or a URL');
  if (options.position === '') throw new RangeError('position must be a path, true or false');
  if (options.index === '') throw new RangeError('index must be a folder, true or false');
  if (![undefined, 'local', 'replicated'].includes(options.durability))
    throw new RangeError('durability must be local or replicated');
  if (!(segmentBytes > 0)) throw new RangeError('segmentBytes must be above 0');
  if (!(lockTimeoutOf(options) >= 0)) throw new RangeError('lockTimeoutMs must be at least 0');
  const linger = lingerOf(options);
  if (!(linger >= 0 && linger <= MAX_LINGER_MS))
    throw new RangeError(`lingerMs must be from 0 to ${MAX_LINGER_MS}`);
  if (!Number.isInteger(signingThreads) || signingThreads < 0 || signingThreads > MAX_SIGNING_THREADS)
    throw new RangeError(`signingThreads must be from 0 to ${MAX_SIGNING_THREADS}`);
  if (signer !== undefined) assertSignsRecords(signer.publicKey);
  if (checkpointEvery !== undefined) assertSchedule(checkpointEvery);
}

export function lockTimeoutOf({ lockTimeoutMs = DEFAULT_LOCK_TIMEOUT_MS }: OpeningOptions): number {
  return lockTimeoutMs;
}

export function lingerOf({ lingerMs = DEFAULT_LINGER_MS }: OpeningOptions): number {
  return lingerMs;
}

export function willSeal({ checkpoints = false, checkpointEvery }: OpeningOptions): boolean {
  return checkpoints || checkpointEvery !== undefined;
}

/** The present, as a timestamp of SPEC §2. */
export function nowOf({ now, clock }: OpeningOptions): string {
  return now?.() ?? presentTime(clock);
}
