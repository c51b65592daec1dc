/**
 * Copies a ledger from one store to another, byte for byte: a file, a folder of segments, a database. Each line is verified before it is
 * written; a copy that was ended continues where it ends. It takes the target's write lock, and none of the source.
 */

import { BlockSteps, type LineSteps } from '#fast/step';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, checkString, type OptionTypes } from '../../base/options.js';
import { toDigestText } from '../../base/value/digest.js';
import type { Finding } from '../../format/finding/finding.js';
import { describeFinding } from '../../format/finding/words.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { emptyRange, hashToBase64url, leafHash, rangeRoot } from '../../format/tree/compact-range.js';
import { startVerification } from '../../rules/verify/state.js';
import { verifyLine } from '../../rules/verify/verify-line.js';
import { placeName } from '../fs/place.js';
import type { Durability, LedgerStore, SavedTail } from '../store/ledger-store.js';
import { openStore } from '../store/open-store.js';
import { noteStored } from '../store/position.js';

export interface CopyOptions {
  /** How long to wait for another writer of the target, in milliseconds. Default 10,000. */
  readonly lockTimeoutMs?: number | undefined;
  /** In a folder, a segment of at least this size is followed by a new one. Default 64 MiB. */
  readonly segmentBytes?: number | undefined;
  /** What the copied records MUST survive. Default `local`. */
  readonly durability?: Durability | undefined;
  /** Of a target by its URL: as for `Ledger.open`. */
  readonly positionWitness?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the bytes verified so far, and the size of the source. */
  readonly onProgress?: ((bytes: number, size: number | undefined) => void) | undefined;
  /** Called when the target ended within a line, which was saved and cut off. */
  readonly onTornTail?: ((saved: SavedTail) => void) | undefined;
}

export interface CopiedLedger {
  readonly from: string;
  readonly to: string;
  /** Lines that were written, and how many the target has. */
  readonly copied: number;
  readonly size: number;
  /** The Merkle root of what the target has, `sha-256:…`. */
  readonly root: string;
  /** Whether the source has grown meanwhile, or ends within a line. */
  readonly isBehind: boolean;
}

const BATCH_BYTES = 1024 * 1024;
const BATCH_LINES = 1_000;
const DEFAULT_LOCK_TIMEOUT_MS = 10_000;
const NEWLINE = Uint8Array.of(0x0a);
const EMPTY_TIP = hashToBase64url(rangeRoot(emptyRange()));

const OPTIONS: OptionTypes<CopyOptions> = {
  lockTimeoutMs: 'number',
  segmentBytes: 'number',
  durability: 'string',
  positionWitness: 'string',
  signal: 'signal',
  onProgress: 'function',
  onTornTail: 'function',
};

/**
 * Copies a ledger, up to where it ends now, or continues a copy that is its beginning.
 * @param from - A file, a folder of segments, or the URL of a database
 * @param to - The same; made if missing, a folder where the path ends in `/`
 * @throws NorthrootError `LEDGER_INVALID` for a broken line, of whose batch nothing was written; `LEDGER_CONFLICT` for a target that is
 *   not the beginning of the source; `LEDGER_EMPTY`; `LEDGER_LOCKED` by another writer of the target; as the stores do; the signal's reason
 * @throws TypeError, RangeError for a bad option
 */
export async function copyLedger(from: string, to: string, options: CopyOptions = {}): Promise<CopiedLedger> {
  checkString('copyLedger', 'the source', from);
  checkString('copyLedger', 'the target', to);
  checkOptions('copyLedger', options, OPTIONS);
  const { segmentBytes, durability: requires, positionWitness, signal } = options;
  if (!((segmentBytes ?? 1) > 0)) throw new RangeError('segmentBytes must be above 0');
  if (placeName(from) === placeName(to))
    throw new NorthrootError('USAGE', 'the source and the target of a copy are the same');
  const source = await openStore(from, defined({ signal }));
  try {
    const target = await openStore(to, {
      create: true,
      ...defined({ segmentBytes, requires, positionWitness, signal }),
    });
    try {
      return await new Copy(source, target, options).run();
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** Verifies lines; keeps the first finding of one that is broken. */
class Verifier implements LineSteps {
  readonly state = startVerification(undefined, defaultBackend);
  broken: Finding | undefined;

  step(...[line, segment, examined, known]: Parameters<LineSteps['step']>): void {
    const { own, folded } = verifyLine(this.state, line, segment, examined, known);
    this.broken ??= own.find(isBreak) ?? folded.map(({ finding }) => finding).find(isBreak);
  }
}

class Copy {
  readonly #source: LedgerStore;
  readonly #target: LedgerStore;
  readonly #options: CopyOptions;
  readonly #verifier = new Verifier();
  readonly #steps = new BlockSteps(this.#verifier);
  /** Verified, and not yet written, each with its `\n`. */
  #lines: Uint8Array[] = [];
  #waiting = 0;
  /** What the target has. */
  #size = 0;
  #tip = EMPTY_TIP;
  #copied = 0;

  constructor(source: LedgerStore, target: LedgerStore, options: CopyOptions) {
    this.#source = source;
    this.#target = target;
    this.#options = options;
  }

  async run(): Promise<CopiedLedger> {
    const { lockTimeoutMs: timeoutMs = DEFAULT_LOCK_TIMEOUT_MS, signal } = this.#options;
    const lock = await this.#target.acquire({ timeoutMs, signal });
    const there = linesOf(this.#target);
    try {
      return await this.#copy(there);
    } catch (error) {
      // The first error says more.
      if (this.#size === 0) await this.#target.discard().catch(() => undefined);
      throw error;
    } finally {
      await there.return(undefined);
      await lock.release();
    }
  }

  async #copy(there: ReturnType<typeof linesOf>): Promise<CopiedLedger> {
    const { signal, onProgress, onTornTail } = this.#options;
    const { state } = this.#verifier;
    // What is appended from now on is left: a busy writer could be followed forever.
    const { size: end = Infinity } = await this.#source.source();
    let isThere = true;
    let isTorn = false;
    let bytes = 0;
    const next = async (): Promise<Uint8Array | undefined> => {
      if (!isThere) return undefined;
      const { value, done } = await there.next();
      if (done !== true) return value;
      isThere = false;
      const saved = await this.#target.settleTornTail();
      if (saved !== undefined) onTornTail?.(saved);
      return undefined;
    };
    for await (const stored of this.#source.read()) {
      signal?.throwIfAborted();
      if (stored.kind !== 'lines') {
        await this.#steps.flush();
        noteStored(state, stored);
        isTorn ||= stored.kind === 'torn';
        this.#assertSound();
        continue;
      }
      for (const line of stored.lines) {
        if (bytes >= end) break;
        bytes += line.length + 1;
        await this.#steps.apply(line, { file: stored.file, firstSeq: stored.firstSeq });
        const other = await next();
        if (other !== undefined) {
          if (Buffer.compare(other, line.bytes) !== 0)
            throw this.#otherwise(`its line ${this.#size + 1} is another`);
          this.#size += 1;
          this.#tip = hashToBase64url(leafHash(other));
          continue;
        }
        this.#lines.push(Buffer.concat([line.bytes, NEWLINE]));
        this.#waiting += line.length + 1;
        if (this.#waiting >= BATCH_BYTES || this.#lines.length >= BATCH_LINES) await this.#write();
      }
      onProgress?.(bytes, Number.isFinite(end) ? end : undefined);
      if (bytes >= end) break;
    }
    await this.#write();
    if ((await next()) !== undefined) throw this.#otherwise('it has more records');
    if (this.#size === 0)
      throw new NorthrootError('LEDGER_EMPTY', `${printable(this.#source.name)} has no records`);
    await this.#target.confirm();
    const { size: now = bytes } = await this.#source.source();
    return {
      from: this.#source.name,
      to: this.#target.name,
      copied: this.#copied,
      size: this.#size,
      root: toDigestText(hashToBase64url(rangeRoot(state.tree))),
      isBehind: isTorn || now > bytes,
    };
  }

  /** Writes what waits, once all of it was verified. */
  async #write(): Promise<void> {
    await this.#steps.flush();
    this.#assertSound();
    const lines = this.#lines;
    const last = lines.at(-1);
    if (last === undefined) return;
    await this.#target.nextPlace(this.#size);
    await this.#target.appendIf({ size: this.#size, tip: this.#tip }, lines);
    this.#size += lines.length;
    this.#copied += lines.length;
    this.#tip = hashToBase64url(leafHash(last.subarray(0, -1)));
    [this.#lines, this.#waiting] = [[], 0];
  }

  /** @throws NorthrootError `LEDGER_INVALID` */
  #assertSound(): void {
    const { broken, state } = this.#verifier;
    const { segment, files, file } = state.damage;
    const what =
      broken === undefined
        ? segment === undefined
          ? files > 0 && `${printable(file ?? '')} ends within a line`
          : `${printable(segment.file)} does not begin with the record that its name says`
        : `${printable(broken.at.file)}:${broken.at.line}: ${broken.code}: ${describeFinding(broken)}`;
    if (what === false) return;
    throw new NorthrootError('LEDGER_INVALID', `the source is broken: ${what}`, {
      hint: 'nothing from there on was copied; verify the source',
    });
  }

  #otherwise(why: string): NorthrootError {
    const [to, from] = [printable(this.#target.name), printable(this.#source.name)];
    return new NorthrootError('LEDGER_CONFLICT', `${to} is not the beginning of ${from}: ${why}`, {
      hint: 'nothing was changed; copy to another place, or find out which of the two is right',
    });
  }
}

/** The lines of a store, each to be used before the next is taken. */
async function* linesOf(store: LedgerStore): AsyncGenerator<Uint8Array, undefined, void> {
  for await (const stored of store.read())
    if (stored.kind === 'lines') for (const { bytes } of stored.lines) yield bytes;
  return undefined;
}

function isBreak(finding: Finding): boolean {
  return finding.class === 'invalid';
}
