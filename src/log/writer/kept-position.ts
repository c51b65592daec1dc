/**
 * The last acknowledged position, kept outside the ledger, so that a rollback is found when the ledger is opened.
 * A line is appended after the records are on disk, before callers are notified: the file may lag behind the ledger, never lead. It is
 * synced once a second and at closing, so a system crash may lose the last lines. The furthest line counts, whoever wrote it; a torn one
 * does not.
 */

import { printable } from '../../base/bytes/printable.js';
import { type Clock, systemClock } from '../../base/clock.js';
import { NorthrootError } from '../../base/error.js';
import { fromDigestText, SHA256, toDigestText, tryParseDigest } from '../../base/value/digest.js';
import {
  type FileSystem,
  nodeFileSystem,
  type OpenFile,
  placeFile,
  readSmallFileOf,
} from '../fs/file-system.js';
import { besidePath, isStoreUrl, stateFolder } from '../fs/place.js';
import { FileStore } from '../store/file-store.js';
import type { LedgerStore, StorePosition } from '../store/ledger-store.js';
import type { OpeningOptions } from './options.js';

/** A longer file is rewritten with its last line. */
const MAX_LINES_BYTES = 64 * 1024;
const MAX_BYTES = 2 * MAX_LINES_BYTES;
const SYNC_MS = 1_000;
/** Errors tolerated for a file at its default place. */
const NOT_WRITABLE = new Set(['ACCESS_DENIED', 'READ_ONLY']);

interface Kept extends Omit<StorePosition, 'file'> {
  readonly ledgerId: string;
  /** A segment's name; empty for a single file. */
  readonly segment: string;
}

/** Keeps the acknowledged position. All methods but `close` require the write lock. */
export class PositionKeeper {
  readonly #store: LedgerStore;
  readonly #place: string;
  /** Whether the user chose the place. */
  readonly #isNamed: boolean;
  readonly #fileSystem: FileSystem;
  readonly #clock: Clock;
  readonly #onNotice: OpeningOptions['onNotice'];
  #path: string | undefined;
  /** Kept open between lines. */
  #file: OpenFile | undefined;
  #ledgerId = '';
  #size = -1;
  /** Whether the file must be created. */
  #isNew = false;
  #bytes = 0;
  #syncedAt = -Infinity;
  #isUnsynced = false;

  private constructor(store: LedgerStore, place: string, isNamed: boolean, options: OpeningOptions) {
    this.#store = store;
    this.#place = place;
    this.#isNamed = isNamed;
    this.#fileSystem = options.fileSystem ?? nodeFileSystem;
    this.#clock = options.clock ?? systemClock;
    this.#onNotice = options.onNotice;
  }

  /** The file, once open. */
  get path(): string | undefined {
    return this.#path;
  }

  /** Undefined if no position is kept. @param hasPlace - Whether the store was opened by its place */
  static of(store: LedgerStore, options: OpeningOptions, hasPlace: boolean): PositionKeeper | undefined {
    const { decides = false, position = decides } = options;
    if (typeof position === 'string') return new PositionKeeper(store, position, true, options);
    const isDatabase = hasPlace && isStoreUrl(store.name);
    if (!position || !(isDatabase || store instanceof FileStore)) return undefined;
    return new PositionKeeper(store, besidePath(store.name, '.position'), false, options);
  }

  /**
   * For a ledger without records: checks that it never had any.
   * @throws NorthrootError `LEDGER_ROLLED_BACK`, `POSITION_MALFORMED`; as reading does
   */
  async assertNothingKept(): Promise<void> {
    if (this.#place.endsWith('/') || (await this.#fileSystem.kindOf(this.#place)) === 'folder') return;
    const kept = await this.#read(this.#place);
    if (kept === undefined) return;
    throw this.#rolledBack(
      `${printable(this.#store.name)} has no records any more: ${kept.size} were acknowledged`,
    );
  }

  /**
   * The kept position, if any. @param ledgerId - `sha-256:…`
   * @throws NorthrootError `LEDGER_ROLLED_BACK` if it is of another ledger; `POSITION_MALFORMED`; as reading does
   */
  async open(ledgerId: string): Promise<StorePosition | undefined> {
    this.#ledgerId = ledgerId;
    const path = await this.#pathFor(ledgerId);
    this.#path = path;
    const kept = await this.#read(path);
    this.#isNew = kept === undefined;
    if (kept === undefined) return undefined;
    const { name } = this.#store;
    if (kept.ledgerId !== ledgerId)
      throw this.#rolledBack(
        `${printable(name)} is another ledger than the one whose records were acknowledged`,
      );
    const { segment, line, byteOffset, size, tip } = kept;
    this.#size = size;
    const file = segment === '' ? name : `${name.replace(/\/+$/, '')}/${segment}`;
    return { file, line, byteOffset, size, tip };
  }

  /** Keeps a position if it is further than the last. @throws as writing does, if the user chose the place */
  async keep(position: StorePosition): Promise<void> {
    const path = this.#path;
    if (path === undefined || position.size <= this.#size) return;
    const line = Buffer.from(this.#lineOf(position));
    try {
      if (this.#isNew || this.#bytes > MAX_LINES_BYTES) {
        await this.#closeFile();
        if (this.#isNew && !this.#isNamed && isStoreUrl(this.#store.name))
          await this.#fileSystem.makeFolder(stateFolder(), 0o700);
        await placeFile(await this.#fileSystem.followLinks(path), line, { fileSystem: this.#fileSystem });
        if (this.#isNew) await this.#fileSystem.syncFolderOf(path);
        this.#isNew = false;
        this.#bytes = line.length;
      } else await this.#append(path, line);
      this.#size = position.size;
    } catch (error) {
      const mayDoWithout = !this.#isNamed && error instanceof NorthrootError && NOT_WRITABLE.has(error.code);
      await this.#closeFile().catch(() => undefined);
      if (!mayDoWithout) throw error;
      this.#path = undefined;
      this.#onNotice?.({ code: 'POSITION_NOT_KEPT', path, error });
    }
  }

  /** Syncs the file. @throws as the file system does, if the user chose the place */
  async close(): Promise<void> {
    const isUnsynced = this.#isUnsynced && this.#path !== undefined;
    this.#isUnsynced = false;
    try {
      if (isUnsynced) await this.#file?.datasync();
    } catch (error) {
      if (this.#isNamed) throw error;
    } finally {
      await this.#closeFile().catch(() => undefined);
    }
  }

  async #append(path: string, line: Uint8Array): Promise<void> {
    // Another process may have replaced the file.
    if (this.#file !== undefined && !(await this.#file.isInPlace())) await this.#closeFile();
    const file = (this.#file ??= await this.#fileSystem.open(path, 'create'));
    for (let done = 0; done < line.length;) done += await file.write(line.subarray(done));
    this.#bytes = await file.size();
    this.#isUnsynced = this.#clock.ticks() - this.#syncedAt < SYNC_MS;
    if (this.#isUnsynced) return;
    await file.datasync();
    this.#syncedAt = this.#clock.ticks();
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #pathFor(ledgerId: string): Promise<string> {
    const place = this.#place;
    const kind = await this.#fileSystem.kindOf(place);
    if (kind !== 'folder' && !place.endsWith('/')) return place;
    if (kind === 'missing') await this.#fileSystem.makeFolder(place);
    const id = Buffer.from(fromDigestText(ledgerId), 'base64url').toString('hex');
    return `${place.replace(/\/+$/, '')}/${id}.position`;
  }

  async #read(path: string): Promise<Kept | undefined> {
    const kind = await this.#fileSystem.kindOf(path);
    if (kind === 'missing') return undefined;
    const bytes =
      kind === 'file' ? await readSmallFileOf(this.#fileSystem, path, MAX_BYTES) : new Uint8Array();
    const texts = Buffer.from(bytes).toString().split('\n');
    // A torn line MUST NOT be extended.
    this.#bytes = texts.pop() === '' ? bytes.length : Infinity;
    const all = texts.flatMap((text) => parseLine(text) ?? []);
    const furthest = all.reduce<Kept | undefined>(
      (most, each) => (most === undefined || each.size >= most.size ? each : most),
      undefined,
    );
    if (furthest !== undefined) return furthest;
    throw new NorthrootError('POSITION_MALFORMED', `${printable(path)} is not the position of a ledger`, {
      hint: 'keep the position in another file, or remove this one if the ledger is known to be whole',
    });
  }

  #lineOf({ file, line, byteOffset, size, tip }: StorePosition): string {
    const kept = {
      ledger_id: this.#ledgerId,
      size,
      tip: toDigestText(tip),
      file: file === this.#store.name ? '' : file.slice(file.lastIndexOf('/') + 1),
      line,
      byte_offset: byteOffset,
    };
    return `${JSON.stringify(kept)}\n`;
  }

  #rolledBack(message: string): NorthrootError {
    return new NorthrootError('LEDGER_ROLLED_BACK', message, {
      hint: `restore the ledger; where another one is meant to begin here, remove ${printable(this.#path ?? this.#place)}`,
    });
  }
}

function parseLine(text: string): Kept | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const {
    ledger_id: ledgerId,
    size,
    tip,
    file,
    line,
    byte_offset: byteOffset,
  } = value as Record<string, unknown>;
  const isCount = (count: unknown): count is number => Number.isSafeInteger(count) && (count as number) >= 0;
  if (!isCount(size) || !isCount(line) || !isCount(byteOffset)) return undefined;
  const digest = typeof tip === 'string' ? tryParseDigest(tip) : undefined;
  if (typeof ledgerId !== 'string' || digest?.alg !== SHA256) return undefined;
  if (typeof file !== 'string' || file.includes('/')) return undefined;
  return { ledgerId, segment: file, size, tip: digest.b64, line, byteOffset };
}
