/** The first record of a ledger (SPEC §3.3): origin, signing rules and first keys. */

import { randomBytes } from 'node:crypto';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { CANONICAL_PROFILE_ID } from '../../base/json/profile.js';
import { buildGenesis } from '../../format/event/build.js';
import { formatPublicKey, type PublicKey } from '../../format/key/public-key.js';
import { examineLine } from '../../format/record/examine-line.js';
import type { GenesisEvent, Key, Predecessor } from '../../format/schema/generated/types.js';
import { findKeyFault } from '../../rules/verify/genesis.js';
import { type FileSystem, nodeFileSystem } from '../fs/file-system.js';
import { isStoreUrl, openStore } from '../store/open-store.js';
import { joinPath, segmentName } from '../store/segments.js';

export interface GenesisOptions {
  /** A unique URL without a scheme, such as `example.com/agents/prod`. Default: `localhost/` and a random name. */
  readonly origin?: string;
  /** Whether every record must be signed. Default: `required` if there are keys. */
  readonly signatures?: 'required' | 'optional';
  /** Whether the ledger promises checkpoints. Default `optional`. */
  readonly checkpoints?: 'required' | 'optional';
  /** Whether every event must name this ledger. Default `required`. */
  readonly binding?: 'required' | 'optional';
  /** Default: the signer's key, with every role but witness, for every principal. */
  readonly keys?: readonly Key[];
  /** The predecessor, from `describePredecessor`. */
  readonly continues?: Predecessor;
  /** Default `service:ledger`. */
  readonly principalId?: string;
}

/** A new origin, with 64 random bits. */
export function makeOrigin(): string {
  return `localhost/ledger-${randomBytes(8).toString('hex')}`;
}

/** The entry for a ledger's own key: it signs everything, but MUST NOT witness itself. */
export function ownKeyEntry(publicKey: PublicKey): Key {
  return {
    keyid: publicKey.keyid,
    principals: ['*'],
    public_key: formatPublicKey(publicKey),
    roles: ['event', 'authority', 'checkpoint', 'admin'],
  };
}

/** @throws EventError for an option not of the form of SPEC §3.3 */
export function makeGenesis(
  options: GenesisOptions,
  signerKey: PublicKey | undefined,
  occurredAt: string,
): GenesisEvent {
  const keys = options.keys ?? (signerKey === undefined ? [] : [ownKeyEntry(signerKey)]);
  return buildGenesis({
    origin: options.origin ?? makeOrigin(),
    ledger_version: '1',
    signing: {
      events: options.signatures ?? (keys.length > 0 ? 'required' : 'optional'),
      checkpoints: options.checkpoints ?? 'optional',
      binding: options.binding ?? 'required',
    },
    keys: keys as GenesisEvent['keys'],
    ...(options.continues === undefined ? {} : { continues: options.continues }),
    principal_id: options.principalId ?? 'service:ledger',
    occurred_at: occurredAt,
  });
}

/** In canonical order `event` comes first, and `canonical_profile_id` within it. */
const GENESIS_START = `{"event":{"canonical_profile_id":"${CANONICAL_PROFILE_ID}",`;

/** @throws NorthrootError `NOT_A_LEDGER` for any other line */
export function parseGenesis(name: string, firstLine: Uint8Array): GenesisEvent {
  const first = examineLine(firstLine, 'records');
  if (first.type === 'genesis') return first.event();
  throw notALedger(name, 'its first record is no genesis');
}

/** Whether bytes without a newline may be a torn genesis. */
export function isStartOfGenesis(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes).toString('latin1', 0, GENESIS_START.length);
  return GENESIS_START.startsWith(text);
}

/**
 * Refuses a file that begins with anything but a genesis. Whatever else a path leads to is left to its opening.
 * @throws NorthrootError `NOT_A_LEDGER`; as the file system does
 */
export async function assertStartsWithGenesis(
  path: string,
  fileSystem: FileSystem = nodeFileSystem,
): Promise<void> {
  if ((await fileSystem.kindOf(path)) !== 'file') return;
  const start = new Uint8Array(GENESIS_START.length);
  const file = await fileSystem.open(path, 'read');
  try {
    const size = await file.read(start, 0);
    if (!isStartOfGenesis(start.subarray(0, size)))
      throw notALedger(path, 'it does not begin with a genesis');
  } finally {
    await file.close();
  }
}

export function notALedger(name: string, why: string): NorthrootError {
  return new NorthrootError('NOT_A_LEDGER', `${printable(name)} is not a ledger: ${why}`, {
    hint: 'check the path; nothing was changed',
  });
}

/** @throws NorthrootError `KEY_MALFORMED` for an inconsistent or repeated key */
export function assertGenesisKeys({ keys }: GenesisEvent): void {
  const seen = new Set<string>();
  for (const key of keys) {
    const fault = findKeyFault(key, seen);
    seen.add(key.keyid);
    if (fault === undefined) continue;
    const { pointer, expected, actual } = fault;
    throw new NorthrootError(
      'KEY_MALFORMED',
      `genesis key ${pointer}: expected ${expected}, found ${actual}`,
    );
  }
}

/** Above any genesis, in bytes. */
const MAX_START_BYTES = 65_536;

/**
 * Whether a path has no more than a writer killed before acknowledging a genesis leaves: nothing, an empty file, a torn genesis, an empty
 * folder, or such a file as its only segment.
 * @param path - A path, or the URL of a database
 * @throws NorthrootError as the file system or the database does
 */
export async function isEmptyLedger(path: string, fileSystem: FileSystem = nodeFileSystem): Promise<boolean> {
  if (isStoreUrl(path)) return isEmptyStore(path);
  switch (await fileSystem.kindOf(path)) {
    case 'missing':
      return true;
    case 'file':
      return hasNoRecord(path, fileSystem);
    case 'folder': {
      const first = segmentName(0);
      const names = await fileSystem.list(path);
      const isOurs = names.every((name) => name === first || name.startsWith(`${first}.torn-0`));
      return isOurs && (!names.includes(first) || (await hasNoRecord(joinPath(path, first), fileSystem)));
    }
    case 'other':
      return false;
  }
}

async function isEmptyStore(url: string): Promise<boolean> {
  try {
    const store = await openStore(url);
    try {
      for await (const stored of store.read()) {
        if (stored.kind !== 'lines') continue;
        if (stored.lines[Symbol.iterator]().next().done !== true) return false;
      }
      return true;
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof NorthrootError && error.code === 'FILE_NOT_FOUND') return true;
    throw error;
  }
}

async function hasNoRecord(path: string, fileSystem: FileSystem): Promise<boolean> {
  const file = await fileSystem.open(path, 'read');
  try {
    const buffer = Buffer.alloc(MAX_START_BYTES);
    let size = 0;
    for (;;) {
      const count = await file.read(buffer.subarray(size), size);
      size += count;
      if (count === 0) break;
    }
    const start = buffer.subarray(0, size);
    return size < MAX_START_BYTES && !start.includes('\n') && isStartOfGenesis(start);
  } finally {
    await file.close();
  }
}
