/**
 * Contents that a ledger names by their SHA-256 digest, kept beside it in `LEDGER.contents/`: the parameters of calls, for who approves
 * and for who audits them. A file is named by the lower-case hexadecimal SHA-256 of its bytes, and shown only if its bytes agree with its
 * name. No verdict rests on it: a file can be deleted at any time, and `verify` never reads it.
 */

import { join } from 'node:path';
import { encodeHex, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, describeValue } from '../../base/options.js';
import {
  type Digest,
  digestFromBase64url,
  fromDigestText,
  isDigest,
  SHA256,
  sha256Digest,
} from '../../base/value/digest.js';
import {
  type FileSystem,
  isTemporaryName,
  makeTemporaryName,
  nodeFileSystem,
  placeFile,
  removeIfStale,
} from '../fs/file-system.js';
import { kindOfEntry, listFolder, readPlainFile, sizesOf } from '../fs/plain-file.js';

/** The largest content that is kept, in bytes. */
export const MAX_CONTENT_BYTES = 1_048_576;
/** How much a folder of contents holds by default, in bytes. */
export const DEFAULT_MAX_CONTENTS_BYTES = 1_073_741_824;
/** What a file counts for at least, in bytes: about what it takes on a disk. So a bound in bytes bounds the number of files too. */
const LEAST_FILE_BYTES = 4_096;
/** The most names that are read of a folder whose contents are given to others. */
export const MAX_LISTED_CONTENTS = 1_048_576;

/** Only its owner reads it. */
const FOLDER_PERMISSIONS = 0o700;
const FILE_PERMISSIONS = 0o600;
const NAME = /^[0-9a-f]{64}$/;

/** How contents are kept. */
export interface ContentOptions {
  /** How much the folder may hold, in bytes; each file counts for at least 4,096. Default 1,073,741,824 (1 GiB). */
  readonly maxBytes?: number | undefined;
}

/** What is kept of a content. */
export type KeptContent =
  | { readonly status: 'attached'; readonly bytes: Uint8Array }
  /** Nothing has that name. */
  | { readonly status: 'missing' }
  /** What has that name is no file of at most 1 MiB with that digest: it is not shown. */
  | { readonly status: 'mismatch' };

/** The folder of a ledger's contents: beside it, out of a folder of segments. */
export function contentsPath(ledger: string): string {
  return `${ledger.replace(/\/+$/, '')}.contents`;
}

/** The name of the file that holds a content. @param digest - Of SHA-256 */
export function contentName({ b64 }: Pick<Digest, 'b64'>): string {
  return encodeHex(tryDecodeBase64url(b64) as Uint8Array);
}

/** The file of a content beside a ledger, there or not; undefined for a digest that is not of SHA-256. */
export function contentFile(ledger: string, digest: Digest): string | undefined {
  return digest.alg === SHA256 ? join(contentsPath(ledger), contentName(digest)) : undefined;
}

/**
 * Keeps a content beside a ledger, on disk on return. What is there already is not written again; a file that does not agree with its name
 * is replaced.
 * @param ledger - The path of an existing ledger
 * @param bytes - At most 1 MiB: of a call's parameters the canonical bytes
 * @returns Its digest, for an event
 * @throws NorthrootError `CONTENT_TOO_LARGE`, `CONTENTS_FULL`; `CONTENTS_UNUSABLE` where the folder's name is taken by something else, a
 *   symbolic link included; `FILE_NOT_FOUND` without a ledger; `DISK_FULL`, `ACCESS_DENIED` and the like
 * @throws TypeError, RangeError for malformed arguments
 * @example
 * const paramsDigest = await writeContent('ledger.jsonl', canonicalBytes(params));
 */
export async function writeContent(
  ledger: string,
  bytes: Uint8Array,
  options: ContentOptions = {},
): Promise<Digest> {
  checkOptions('writeContent', options, { maxBytes: 'number' });
  return new ContentFolder(ledger, options).write(bytes);
}

/**
 * What is kept of a content beside a ledger. No symbolic link is followed.
 * @param digest - As events have it; of another algorithm than SHA-256 nothing is kept
 * @throws NorthrootError `CONTENTS_UNUSABLE` as {@link writeContent}; `ACCESS_DENIED` and the like; TypeError for what is no digest
 */
export async function readContent(ledger: string, digest: Digest): Promise<KeptContent> {
  if (!isDigest(digest)) throw new TypeError(`expected a digest, found ${describeValue(digest)}`);
  return readContentIn(contentsPath(ledger), digest);
}

async function readContentIn(folder: string, digest: Digest): Promise<KeptContent> {
  if (digest.alg !== SHA256 || !(await isContentFolder(folder))) return { status: 'missing' };
  const found = await readPlainFile(join(folder, contentName(digest)), MAX_CONTENT_BYTES);
  if (found.kind === 'missing') return { status: 'missing' };
  const agrees = found.kind === 'file' && sha256Digest(found.bytes).b64 === digest.b64;
  return agrees ? { status: 'attached', bytes: found.bytes } : { status: 'mismatch' };
}

/** @throws TypeError unless a content has this digest */
export function assertContentOf(digest: unknown, bytes: unknown): void {
  const isOf = bytes instanceof Uint8Array && isDigest(digest) && sha256Digest(bytes).b64 === digest.b64;
  if (!isOf || digest.alg !== SHA256)
    throw new TypeError('attach: expected the bytes of which paramsDigest is the SHA-256 digest');
}

/** Whether it is there. @throws NorthrootError `CONTENTS_UNUSABLE` for anything but a folder */
async function isContentFolder(path: string): Promise<boolean> {
  const kind = await kindOfEntry(path);
  if (kind === 'folder' || kind === 'missing') return kind === 'folder';
  throw new NorthrootError(
    'CONTENTS_UNUSABLE',
    `expected a folder at ${printable(path)}, found ${kind === 'link' ? 'a symbolic link' : 'something else'}`,
    { hint: 'contents are kept in a folder of that name: move away what is there' },
  );
}

/** Writes contents beside one ledger. Its size is measured once, so that a write does not depend on how many there are. */
export class ContentFolder {
  readonly path: string;
  readonly #ledger: string;
  readonly #maxBytes: number;
  readonly #fileSystem: FileSystem;
  #opening: Promise<void> | undefined;
  /** The bytes that it holds, as far as this process knows. */
  #held = 0;

  /** @throws RangeError for a size below 0 */
  constructor(
    ledger: string,
    { maxBytes = DEFAULT_MAX_CONTENTS_BYTES }: ContentOptions = {},
    fileSystem: FileSystem = nodeFileSystem,
  ) {
    if (!(maxBytes >= 0)) throw new RangeError('maxBytes: expected bytes, at least 0');
    this.path = contentsPath(ledger);
    this.#ledger = ledger;
    this.#maxBytes = maxBytes;
    this.#fileSystem = fileSystem;
  }

  /** As {@link writeContent}. */
  async write(bytes: Uint8Array): Promise<Digest> {
    if (!(bytes instanceof Uint8Array))
      throw new TypeError(`expected the bytes of a content, found ${describeValue(bytes)}`);
    if (bytes.length > MAX_CONTENT_BYTES)
      throw new NorthrootError(
        'CONTENT_TOO_LARGE',
        `the content has ${bytes.length} bytes, and at most ${MAX_CONTENT_BYTES} are kept`,
        { hint: 'its digest can be recorded without it' },
      );
    const digest = sha256Digest(bytes);
    await this.#open();
    const file = join(this.path, contentName(digest));
    if ((await readContentIn(this.path, digest)).status !== 'attached') {
      const added = countedSize(bytes.length);
      // What was deleted since makes room.
      if (this.#held + added > this.#maxBytes) await this.#measure();
      if (this.#held + added > this.#maxBytes) throw this.#full(this.#held);
      this.#held += added;
      const options = { temporary: makeTemporaryName(file), permissions: FILE_PERMISSIONS };
      await placeFile(file, bytes, { ...options, fileSystem: this.#fileSystem });
    }
    // Also what another process placed has its name on disk only from here on.
    await this.#fileSystem.syncFolderOf(file);
    return digest;
  }

  /** Makes the folder where it is missing, and measures it once. */
  async #open(): Promise<void> {
    if (!(await isContentFolder(this.path))) this.#opening = undefined;
    this.#opening ??= this.#make();
    try {
      await this.#opening;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  async #make(): Promise<void> {
    const fileSystem = this.#fileSystem;
    if ((await fileSystem.kindOf(this.#ledger)) === 'missing')
      throw new NorthrootError('FILE_NOT_FOUND', `there is no ledger ${printable(this.#ledger)}`);
    await fileSystem.makeFolder(this.path, FOLDER_PERMISSIONS);
    // Another process that made it may not have come so far.
    await fileSystem.syncFolderOf(this.path);
    await this.#measure();
  }

  async #measure(): Promise<void> {
    const { entries, more } = await listFolder(this.path, Math.ceil(this.#maxBytes / LEAST_FILE_BYTES));
    const paths = entries.map(({ name }) => join(this.path, name));
    for (const path of paths.filter(isTemporaryName)) await removeIfStale(path, this.#fileSystem);
    const sizes = await sizesOf(paths);
    this.#held = more > 0 ? Infinity : sizes.reduce((sum, each) => sum + countedSize(each), 0);
  }

  #full(size: number): NorthrootError {
    const found = Number.isFinite(size) ? `${size} bytes` : 'more files than it may';
    return new NorthrootError(
      'CONTENTS_FULL',
      `${printable(this.path)} may hold ${this.#maxBytes} bytes, and has ${found}`,
      { hint: 'delete contents that nobody needs any more, or allow more' },
    );
  }
}

function countedSize(bytes: number): number {
  return Math.max(bytes, LEAST_FILE_BYTES);
}

/** The contents of a folder, to be given to others. */
export class KeptContents {
  /** How many were asked for that do not agree with their names. */
  mismatched = 0;
  readonly #folder: string;
  readonly #names: ReadonlySet<string>;

  private constructor(folder: string, names: ReadonlySet<string>) {
    this.#folder = folder;
    this.#names = names;
  }

  /**
   * @param folder - Such as {@link contentsPath} of a ledger; a missing one has none
   * @throws NorthrootError `CONTENTS_UNUSABLE`; `INPUT_TOO_LARGE` for more than 1,048,576 names; `ACCESS_DENIED` and the like
   */
  static async open(folder: string): Promise<KeptContents> {
    if (!(await isContentFolder(folder))) return new KeptContents(folder, new Set());
    const { entries, more } = await listFolder(folder, MAX_LISTED_CONTENTS);
    if (more > 0)
      throw new NorthrootError(
        'INPUT_TOO_LARGE',
        `${printable(folder)} has more than ${MAX_LISTED_CONTENTS} files`,
      );
    return new KeptContents(
      folder,
      new Set(entries.map(({ name }) => name).filter((name) => NAME.test(name))),
    );
  }

  get size(): number {
    return this.#names.size;
  }

  /** @param text - `sha-256:…`. @returns Undefined for what is not there, or does not agree with its name */
  async find(text: string): Promise<Uint8Array | undefined> {
    const digest = digestFromBase64url(fromDigestText(text));
    if (!this.#names.has(contentName(digest))) return undefined;
    const kept = await readContentIn(this.#folder, digest);
    if (kept.status === 'attached') return kept.bytes;
    if (kept.status === 'mismatch') this.mismatched += 1;
    return undefined;
  }
}
