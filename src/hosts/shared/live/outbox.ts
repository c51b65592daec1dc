/**
 * What another system must still be told, kept on disk until it was: in order, after restarts too, as often as it takes. It is told of an
 * entry at least once, so what is sent must be harmless to repeat. Of several processes with one outbox one sends at a time.
 */

import { NorthrootError } from '../../../base/error.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { ingestJson } from '../../../base/json/ingest.js';
import { isJsonObject, type JsonObject } from '../../../base/json/value.js';
import type { FileSystem } from '../../../log/fs/file-system.js';
import { QueueFolder } from '../../../log/fs/queue-folder.js';

/**
 * What became of an entry: it was taken; it never will be; nobody answered, or not now; the other system failed at it, so that after some
 * times it is given up.
 */
export type Delivery = 'taken' | 'refused' | 'later' | 'failed';

export interface OutboxOptions {
  /** Sends an entry; what it throws means `later`. */
  readonly send: (kind: string, body: JsonObject) => Promise<Delivery>;
  /** Called with an entry that is given up: it was refused, or cannot be read. `body` is undefined then. */
  readonly onRefused: (kind: string | undefined, body: JsonObject | undefined) => void;
  /** Default 10,000. */
  readonly maxEntries?: number | undefined;
  readonly fileSystem?: FileSystem | undefined;
}

const DEFAULT_MAX_ENTRIES = 10_000;
const MAX_ENTRY_BYTES = 4 * 1024 * 1024;
/** With the pauses between them, about nine minutes. */
const MAX_FAILURES = 20;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

export class Outbox {
  readonly #folder: QueueFolder;
  readonly #options: OutboxOptions;
  /** How many entries there are, or a few more. */
  #count: number;
  /** Entries that were to be kept, and those that were or failed. */
  #begun = 0;
  #ended = 0;
  /** How often the entry was failed at that is next. */
  #failed: { readonly name: string; readonly times: number } | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  /** Whether something came after the queue was last looked at. */
  #isWanted = false;
  #isClosed = false;

  private constructor(folder: QueueFolder, options: OutboxOptions, count: number) {
    this.#folder = folder;
    this.#options = options;
    this.#count = count;
  }

  /**
   * Opens an outbox, made if missing, and goes on with what was left in it.
   * @throws NorthrootError as files give it
   */
  static async open(path: string, options: OutboxOptions): Promise<Outbox> {
    const folder = await QueueFolder.open(path, options.fileSystem);
    const { length } = await folder.list();
    const outbox = new Outbox(folder, options, length);
    if (length > 0) outbox.#wake();
    return outbox;
  }

  /**
   * Keeps an entry: it is on disk on return, and is sent in the background.
   * @throws NorthrootError `OUTBOX_FULL`: nothing is kept; as files give it
   */
  async put(kind: string, body: JsonObject): Promise<void> {
    if (this.#isClosed) throw new TypeError('the outbox is closed');
    const bytes = encodeUtf8(JSON.stringify({ kind, body }));
    if (bytes.length > MAX_ENTRY_BYTES)
      throw new NorthrootError('OUTBOX_FULL', `the entry has more than ${MAX_ENTRY_BYTES} bytes`);
    const { maxEntries = DEFAULT_MAX_ENTRIES } = this.#options;
    if (this.#count >= maxEntries) {
      // Another process may have sent some.
      await this.#list();
      if (this.#count >= maxEntries)
        throw new NorthrootError('OUTBOX_FULL', `${this.#count} entries wait to be sent`, {
          hint: 'make the other system reachable',
        });
    }
    this.#count += 1;
    this.#begun += 1;
    try {
      await this.#folder.add(bytes);
    } finally {
      this.#ended += 1;
    }
    this.#wake();
  }

  /** Tries each entry now, until one is not taken. @returns how many are left. @throws NorthrootError as files give it */
  async flush(): Promise<number> {
    // What is being sent may already have met an answer that has changed since.
    await this.#sending;
    do {
      if (this.#sending === undefined) this.#start();
      await this.#sending;
    } while (this.#isWanted || this.#sending !== undefined);
    return (await this.#folder.list()).length;
  }

  /** Ends sending; what is left is sent by whoever opens the outbox next. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#isWanted = false;
    await this.#sending;
    clearTimeout(this.#timer);
  }

  #wake(): void {
    this.#isWanted = true;
    // While nobody answers, entries wait for the pause to end.
    if (this.#sending === undefined && this.#timer === undefined) this.#start();
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending = this.#send()
      .catch(() => false)
      .then((isDone) => {
        this.#sending = undefined;
        if (this.#isClosed) return;
        if (isDone) {
          this.#pauseMs = FIRST_PAUSE_MS;
          if (this.#isWanted) this.#start();
          return;
        }
        this.#isWanted = false;
        this.#timer = setTimeout(() => this.#start(), this.#pauseMs);
        this.#timer.unref();
        this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
      });
  }

  /** Counts, too, what was being kept meanwhile, which may be listed or not. */
  async #list(): Promise<string[]> {
    const before = this.#ended;
    const names = await this.#folder.list();
    this.#count = names.length + this.#begun - before;
    return names;
  }

  /** @returns whether nothing is left to be sent by this process */
  async #send(): Promise<boolean> {
    this.#isWanted = false;
    if (!(await this.#folder.take())) return false;
    try {
      for (;;) {
        const names = await this.#list();
        if (names.length === 0) return true;
        for (const name of names) {
          if (this.#isClosed || !(await this.#deliver(name))) return false;
          this.#count -= 1;
        }
      }
    } finally {
      await this.#folder.release();
    }
  }

  async #deliver(name: string): Promise<boolean> {
    const { send, onRefused } = this.#options;
    const entry = readEntry(await this.#folder.read(name, MAX_ENTRY_BYTES));
    if (entry === undefined) return true;
    const delivery =
      entry === 'broken' ? 'refused' : await send(entry.kind, entry.body).catch(() => 'later' as const);
    if (delivery === 'later' || (delivery === 'failed' && !this.#isGivenUp(name))) return false;
    await this.#folder.remove(name);
    if (entry === 'broken') onRefused(undefined, undefined);
    else if (delivery !== 'taken') onRefused(entry.kind, entry.body);
    return true;
  }

  #isGivenUp(name: string): boolean {
    const times = (this.#failed?.name === name ? this.#failed.times : 0) + 1;
    this.#failed = { name, times };
    return times >= MAX_FAILURES;
  }
}

function readEntry(
  bytes: Uint8Array | undefined,
): { readonly kind: string; readonly body: JsonObject } | 'broken' | undefined {
  if (bytes === undefined) return undefined;
  try {
    const { value } = ingestJson(bytes, { numbers: 'double' });
    if (!isJsonObject(value)) return 'broken';
    const { kind, body } = value;
    return typeof kind === 'string' && body !== undefined && isJsonObject(body) ? { kind, body } : 'broken';
  } catch {
    return 'broken';
  }
}
