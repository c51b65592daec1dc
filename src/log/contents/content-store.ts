/**
 * Bytes in a folder, by their digest: a file is named by the lower-case hexadecimal digest of its bytes, appears whole or not at all, and
 * is given back only if its bytes agree with its name. So nobody who can write the folder can pass off other bytes.
 */

import { join } from 'node:path';
import { encodeBase64url, encodeHex, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { printable } from '../../base/bytes/printable.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { NorthrootError } from '../../base/error.js';
import { describeValue } from '../../base/options.js';
import { type Digest, SHA256 } from '../../base/value/digest.js';
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

/** Only its owner reads it. */
const FOLDER_PERMISSIONS = 0o700;
const FILE_PERMISSIONS = 0o600;

export type KeptContent =
  | { readonly status: 'attached'; readonly bytes: Uint8Array }
  /** Nothing has that name. */
  | { readonly status: 'missing' }
  /** What has that name is no file of at most 1 MiB with that digest: it is not shown. */
  | { readonly status: 'mismatch' };

export interface ContentAlgorithm {
  /** As in events, such as `blake3`. */
  readonly alg: string;
  /** @returns 32 bytes */
  hash(bytes: Uint8Array): Uint8Array;
}

const BY_SHA256: ContentAlgorithm = { alg: SHA256, hash: sha256 };

export interface ContentStoreOptions {
  /** What names the contents. Default: SHA-256. */
  readonly algorithm?: ContentAlgorithm | undefined;
  /** How much the folder may hold, in bytes; each file counts for at least 4,096. Default 1,073,741,824 (1 GiB). */
  readonly maxBytes?: number | undefined;
}

interface Footing {
  readonly fileSystem?: FileSystem;
  /** Called before the folder is made. */
  readonly beforeMaking?: () => Promise<void>;
}

/** The name of the file that holds a content. */
export function contentName({ b64 }: Pick<Digest, 'b64'>): string {
  return encodeHex(tryDecodeBase64url(b64) as Uint8Array);
}

/** Whether it is there. @throws NorthrootError `CONTENTS_UNUSABLE` for anything but a folder */
export async function isContentFolder(path: string): Promise<boolean> {
  const kind = await kindOfEntry(path);
  if (kind === 'folder' || kind === 'missing') return kind === 'folder';
  throw new NorthrootError(
    'CONTENTS_UNUSABLE',
    `expected a folder at ${printable(path)}, found ${kind === 'link' ? 'a symbolic link' : 'something else'}`,
    { hint: 'contents are kept in a folder of that name: move away what is there' },
  );
}

/**
 * See the head of this file. Its size is measured once, so that a write does not depend on how many there are.
 * @example
 * const store = new ContentStore('results');
 * const digest = await store.put(new TextEncoder().encode('hello'));
 * const kept = await store.get(digest);
 */
export class ContentStore {
  readonly path: string;
  readonly #algorithm: ContentAlgorithm;
  readonly #maxBytes: number;
  readonly #fileSystem: FileSystem;
  readonly #beforeMaking: (() => Promise<void>) | undefined;
  #opening: Promise<void> | undefined;
  /** The bytes that it holds, as far as this process knows. */
  #held = 0;

  /**
   * @param path - The folder; made at the first write
   * @throws RangeError for a size below 0
   */
  constructor(
    path: string,
    { algorithm = BY_SHA256, maxBytes = DEFAULT_MAX_CONTENTS_BYTES }: ContentStoreOptions = {},
    { fileSystem = nodeFileSystem, beforeMaking }: Footing = {},
  ) {
    if (!(maxBytes >= 0)) throw new RangeError('maxBytes: expected bytes, at least 0');
    this.path = path;
    this.#algorithm = algorithm;
    this.#maxBytes = maxBytes;
    this.#fileSystem = fileSystem;
    this.#beforeMaking = beforeMaking;
  }

  /** The digest that a content has here. */
  digestOf(bytes: Uint8Array): Digest {
    return { alg: this.#algorithm.alg, b64: encodeBase64url(this.#algorithm.hash(bytes)) };
  }

  /**
   * Keeps a content, on disk on return. What is there already is not written again; a file that does not agree with its name is replaced.
   * @param bytes - At most 1 MiB
   * @throws NorthrootError `CONTENT_TOO_LARGE`, `CONTENTS_FULL`; `CONTENTS_UNUSABLE` where the folder's name is taken by something else, a
   *   symbolic link included; `DISK_FULL`, `ACCESS_DENIED` and the like
   * @throws TypeError for what is no Uint8Array
   */
  async put(bytes: Uint8Array): Promise<Digest> {
    if (!(bytes instanceof Uint8Array))
      throw new TypeError(`expected the bytes of a content, found ${describeValue(bytes)}`);
    if (bytes.length > MAX_CONTENT_BYTES)
      throw new NorthrootError(
        'CONTENT_TOO_LARGE',
        `the content has ${bytes.length} bytes, and at most ${MAX_CONTENT_BYTES} are kept`,
        { hint: 'its digest can be recorded without it' },
      );
    const digest = this.digestOf(bytes);
    await this.#open();
    const file = join(this.path, contentName(digest));
    if ((await this.get(digest)).status !== 'attached') {
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

  /**
   * What is kept of a content. No symbolic link is followed.
   * @throws NorthrootError `CONTENTS_UNUSABLE` as {@link put}; `ACCESS_DENIED` and the like
   */
  async get(digest: Digest): Promise<KeptContent> {
    if (digest.alg !== this.#algorithm.alg || !(await isContentFolder(this.path)))
      return { status: 'missing' };
    const found = await readPlainFile(join(this.path, contentName(digest)), MAX_CONTENT_BYTES);
    if (found.kind === 'missing') return { status: 'missing' };
    const agrees = found.kind === 'file' && this.digestOf(found.bytes).b64 === digest.b64;
    return agrees ? { status: 'attached', bytes: found.bytes } : { status: 'mismatch' };
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
    await this.#beforeMaking?.();
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
