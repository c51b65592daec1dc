/** How a ledger is opened, what is appended, and what is told of it. */

import type { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import type { Finding } from '../../format/finding/finding.js';
import type { SignatureEntry } from '../../format/record/examine-line.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { assertSignsRecords, type Signer } from '../../format/signature/signer.js';
import type { EventVerdict } from '../../rules/verify/line-result.js';
import type { IndexNotice } from '../cache/ledger-index.js';
import type { FileSystem } from '../fs/file-system.js';
import type { SavedTail } from '../store/ledger-store.js';
import { assertSchedule, type CheckpointSchedule } from './checkpoint.js';
import type { GenesisOptions } from './genesis.js';
import type { StateCache } from './state-cache.js';

/** Something that the user should hear of, though it is no failure. */
export type Notice =
  | { readonly code: 'LEDGER_CREATED'; readonly path: string; readonly origin: string }
  | ({ readonly code: 'TORN_TAIL_SAVED' } & SavedTail)
  | { readonly code: 'LEDGER_WAITING'; readonly path: string }
  | { readonly code: 'LEDGER_DAMAGED'; readonly path: string; readonly lines: number }
  /** The position that is acknowledged cannot be written where it is kept by default: a rollback will not be found. */
  | { readonly code: 'POSITION_NOT_KEPT'; readonly path: string; readonly error: NorthrootError }
  | { readonly code: 'CHECKPOINT_FAILED'; readonly path: string; readonly error: NorthrootError }
  | IndexNotice;

/** How a ledger is opened for appending. */
export interface OpeningOptions {
  /** Signs every event appended. Without it events go in with the signatures that they bring. */
  readonly signer?: Signer | undefined;
  /**
   * How many threads sign where hundreds of events wait, at most 16; the writer signs what they do not. Default: 1, and 0 on a machine
   * with one processor. Only for signers of `createSigner`: whose key is elsewhere signs where it is.
   */
  readonly signingThreads?: number | undefined;
  /** Makes the ledger when it is not there (or is empty), with this genesis; without it that is an error. */
  readonly create?: GenesisOptions | undefined;
  /** How long to wait for other writers, at opening and for each group, in milliseconds. Default 10,000. */
  readonly lockTimeoutMs?: number | undefined;
  /**
   * For how long the lock may be kept for the next append, in milliseconds: appends that follow each other closely share it, as long
   * as nobody else writes. Default 30, at most 1,000. 0 gives it back after each group, for a program whose thread may stand still
   * right after an append, such as one that runs another writer synchronously.
   */
  readonly lingerMs?: number | undefined;
  /** Aborting ends a wait for another writer, and the verification before a checkpoint, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether nothing is appended after an event that was refused: those that were given after it are refused too, as
   * `NOT_REACHED`. For streams, whose sender mends the event and goes on from it.
   */
  readonly stopsAtRefusal?: boolean | undefined;
  /**
   * Whether an event is refused that would make the ledger invalid, such as an execution of an authorization that is not there.
   * Evidence of a broken bound is taken all the same: that is what a ledger is for.
   */
  readonly strict?: boolean | undefined;
  /** For `occurred_at` where a draft has none: the present as a timestamp of SPEC §2. */
  readonly now?: (() => string) | undefined;
  /** For `principal_id` where a draft has none. */
  readonly principalId?: string | undefined;
  /** In a folder, a segment of at least so many bytes is followed by a new one. Default 64 MiB. */
  readonly segmentBytes?: number | undefined;
  /** Whether {@link Ledger.checkpoint} will be asked for: opening then verifies every signature. */
  readonly checkpoints?: boolean | undefined;
  /** Whether {@link Ledger.decide} will be asked for: opening then verifies every signature. */
  readonly decides?: boolean | undefined;
  /** Decisions rest on what this policy says of the ledger; without it, on the keys that the ledger declares. */
  readonly trust?: TrustPolicy | undefined;
  /**
   * Where the last position that was acknowledged is kept, outside the ledger: a file, or a folder that is there or ends in `/`, in which
   * each ledger has a file of its own. Opening refuses, as `LEDGER_ROLLED_BACK`, a ledger that does not have those records any more.
   * true: `LEDGER.position` beside a ledger in files, as far as that can be written (`POSITION_NOT_KEPT` otherwise). false: nowhere.
   * Default: true where `decides` is.
   */
  readonly position?: string | boolean | undefined;
  /** Makes checkpoints by itself, when they are due; the signer's key must be one that may. */
  readonly checkpointEvery?: CheckpointSchedule | undefined;
  /**
   * The keys that sign the notes of checkpoints, Ed25519 or ML-DSA-44, each once: with one of either kind a note is hybrid. Records
   * are signed by `signer` all the same. Default: `signer`.
   */
  readonly noteSigners?: readonly Signer[] | undefined;
  readonly onNotice?: ((notice: Notice) => void) | undefined;
  /**
   * Whether the index beside a large ledger is used, and made. Default: true. Without it the ledger is read when it is opened, and what
   * is remembered of it is in memory.
   */
  readonly index?: boolean | undefined;
  /** Where the state of the verification is kept between turns. Default: in the index, or in memory. */
  readonly stateCache?: StateCache | undefined;
  /** For tests: every operation on files goes through it. */
  readonly fileSystem?: FileSystem | undefined;
}

/** What is appended: an event, and what travels beside it. */
export interface Entry {
  /** A draft (without ids, see `buildEvent`), or a whole event, which is checked. */
  readonly event: object;
  /** At most 4,096 bytes, strings only; outside every digest of the event. */
  readonly meta?: Readonly<Record<string, string>>;
  /** Signatures made before; the ledger's signer adds its own. */
  readonly signatures?: readonly SignatureEntry[];
  /**
   * Whether it has to be a record of its own, even where another says the same: the same content has the same id (SPEC §3), and
   * appending it again would be a no-op. A draft that the ledger has already is then followed, by `prev_event_id`, by another one.
   */
  readonly isAnew?: boolean;
  /** Whether it is refused, as `EVENT_DUPLICATE`, where the ledger has it already: that is no no-op then. */
  readonly refusesExisting?: boolean;
}

/** Where an event stands, on disk, when an append is acknowledged. */
export interface Appended {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
  /** `exists`: the ledger had the event already, and nothing was written. */
  readonly status: 'appended' | 'exists';
  /** What verification says of the record, by the ledger's own keys; nothing of one that was there already. */
  readonly findings: readonly Finding[];
  /** Of a record that was appended. */
  readonly verdict: EventVerdict | undefined;
}

/** A checkpoint that was made. */
export interface CheckpointResult extends Appended {
  /** The signed note, as it stands in the record: to be published, or kept elsewhere. */
  readonly note: string;
  readonly treeSize: number;
}

const DEFAULT_LOCK_TIMEOUT_MS = 10_000;
const DEFAULT_LINGER_MS = 30;
const MAX_LINGER_MS = 1_000;
/** The most threads that may sign ahead for one ledger. */
export const MAX_SIGNING_THREADS = 16;

/** What each option of `Ledger.open` may be. */
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
  principalId: 'string',
  segmentBytes: 'number',
  checkpoints: 'boolean',
  decides: 'boolean',
  trust: 'object',
  position: ['string', 'boolean'],
  checkpointEvery: 'object',
  noteSigners: 'array',
  onCheckpoint: 'function',
  onNotice: 'function',
  index: 'boolean',
  stateCache: 'object',
  fileSystem: 'object',
};

/**
 * Refuses options that are none.
 *
 * @throws TypeError for an unknown option and one of another type, by its name; RangeError for a number that is out of range
 * @throws NorthrootError `KEY_UNSUPPORTED` for a signer whose key signs no records
 */
export function assertLedgerOptions(options: OpeningOptions): void {
  checkOptions('Ledger.open', options, LEDGER_OPTIONS);
  const { segmentBytes = 1, signer, signingThreads = 0, checkpointEvery } = options;
  if (options.position === '') throw new RangeError('position must be a path, true or false');
  if (!(segmentBytes > 0)) throw new RangeError('segmentBytes must be above 0');
  if (!(lockTimeoutOf(options) >= 0)) throw new RangeError('lockTimeoutMs must be at least 0');
  const linger = lingerOf(options);
  if (!(linger >= 0 && linger <= MAX_LINGER_MS)) {
    throw new RangeError(`lingerMs must be from 0 to ${MAX_LINGER_MS}`);
  }
  if (!Number.isInteger(signingThreads) || signingThreads < 0 || signingThreads > MAX_SIGNING_THREADS) {
    throw new RangeError(`signingThreads must be from 0 to ${MAX_SIGNING_THREADS}`);
  }
  if (signer !== undefined) assertSignsRecords(signer.publicKey);
  if (checkpointEvery !== undefined) assertSchedule(checkpointEvery);
}

/** How long to wait for other writers, in milliseconds. */
export function lockTimeoutOf({ lockTimeoutMs = DEFAULT_LOCK_TIMEOUT_MS }: OpeningOptions): number {
  return lockTimeoutMs;
}

/** For how long the turn may be kept for the next append, in milliseconds. */
export function lingerOf({ lingerMs = DEFAULT_LINGER_MS }: OpeningOptions): number {
  return lingerMs;
}

/** Whether checkpoints will be asked for. */
export function willSeal({ checkpoints = false, checkpointEvery }: OpeningOptions): boolean {
  return checkpoints || checkpointEvery !== undefined;
}

let lastMs = NaN;
let lastText = '';

/** The present; asked for with every append, and written anew when the clock has moved. */
export function nowOf(options: OpeningOptions): string {
  const told = options.now?.();
  if (told !== undefined) return told;
  const ms = Date.now();
  if (ms !== lastMs) {
    lastMs = ms;
    lastText = new Date(ms).toISOString();
  }
  return lastText;
}
