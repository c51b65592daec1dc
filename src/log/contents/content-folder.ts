/**
 * Contents that a ledger names by their SHA-256 digest, kept beside it in `LEDGER.contents/`: the parameters of calls, for who approves
 * and for who audits them. A file is named by the lower-case hexadecimal SHA-256 of its bytes, and shown only if its bytes agree with its
 * name. No verdict rests on it: a file can be deleted at any time, and `verify` never reads it.
 */

import { join } from 'node:path';
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
import { type FileSystem, nodeFileSystem } from '../fs/file-system.js';
import { besidePath, isStoreUrl, stateFolder } from '../fs/place.js';
import { listFolder } from '../fs/plain-file.js';
import {
  ContentStore,
  contentName,
  DEFAULT_MAX_CONTENTS_BYTES,
  isContentFolder,
  type KeptContent,
} from './content-store.js';

/** The most names that are read of a folder whose contents are given to others. */
export const MAX_LISTED_CONTENTS = 1_048_576;

const NAME = /^[0-9a-f]{64}$/;

export interface ContentOptions {
  /** How much the folder may hold, in bytes; each file counts for at least 4,096. Default 1,073,741,824 (1 GiB). */
  readonly maxBytes?: number | undefined;
}

/** The folder of a ledger's contents: beside it, out of a folder of segments. */
export function contentsPath(ledger: string): string {
  return besidePath(ledger, '.contents');
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
 *   symbolic link included; `FILE_NOT_FOUND` for a path without a ledger; `DISK_FULL`, `ACCESS_DENIED` and the like
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
  return new ContentStore(folder).get(digest);
}

/** @throws TypeError unless a content has this digest */
export function assertContentOf(digest: unknown, bytes: unknown): void {
  const isOf = bytes instanceof Uint8Array && isDigest(digest) && sha256Digest(bytes).b64 === digest.b64;
  if (!isOf || digest.alg !== SHA256)
    throw new TypeError('attach: expected the bytes of which paramsDigest is the SHA-256 digest');
}

/** Writes contents beside one ledger. Its size is measured once, so that a write does not depend on how many there are. */
export class ContentFolder {
  readonly path: string;
  readonly #store: ContentStore;

  /** @throws RangeError for a size below 0 */
  constructor(
    ledger: string,
    { maxBytes = DEFAULT_MAX_CONTENTS_BYTES }: ContentOptions = {},
    fileSystem: FileSystem = nodeFileSystem,
  ) {
    this.path = contentsPath(ledger);
    const beforeMaking = async (): Promise<void> => {
      if (isStoreUrl(ledger)) await fileSystem.makeFolder(stateFolder(), 0o700);
      else if ((await fileSystem.kindOf(ledger)) === 'missing')
        throw new NorthrootError('FILE_NOT_FOUND', `there is no ledger ${printable(ledger)}`);
    };
    this.#store = new ContentStore(this.path, { maxBytes }, { fileSystem, beforeMaking });
  }

  /** As {@link writeContent}. */
  async write(bytes: Uint8Array): Promise<Digest> {
    return this.#store.put(bytes);
  }
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
