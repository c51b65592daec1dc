/** Which ledgers a fleet has: those in a folder, or of a list. */

import { join } from 'node:path';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { toDigestText } from '../../base/value/digest.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import { examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { readLines } from '../../rules/source/read-lines.js';
import { nodeFileSystem } from '../fs/file-system.js';
import { isStoreUrl } from '../fs/place.js';
import { type EntryKind, listFolder } from '../fs/plain-file.js';
import { segmentName } from '../store/segments.js';
import { isTileTree, openLedger } from '../tile/tile-tree.js';

/** The most ledgers of one run. */
export const MAX_FLEET = 100_000;
/** The most entries of a folder: a ledger may have a key, a note, a position, an index and contents beside it. */
const MAX_ENTRIES = 8 * MAX_FLEET;

/** How every record begins: its members are in canonical order. */
const RECORD_START = '{"event":{';

/** Files that are ledgers whatever they begin with: who changes their first byte does not hide them. */
const LEDGER_ENDING = '.jsonl';
/** Files beside a ledger that others may not read. */
const KEY_ENDING = '.key';

/**
 * The ledgers in a folder, by name: files that begin with a record, or whose name ends in `.jsonl`; folders of segments; tile trees; and
 * what cannot be read, keys excepted, since it may be one. Links of those names are followed. Folders in it are not searched.
 * @throws NorthrootError `FLEET_EMPTY` for none; `INPUT_TOO_LARGE` for too many of them, or of entries; as the file system does
 */
export async function listFleet(folder: string): Promise<string[]> {
  const { entries, more } = await listFolder(folder, MAX_ENTRIES);
  if (more > 0)
    throw new NorthrootError('INPUT_TOO_LARGE', `${printable(folder)} has more than ${MAX_ENTRIES} entries`);
  const paths: string[] = [];
  for (const { name, kind } of entries) {
    const path = join(folder, name);
    if (!name.startsWith('.') && (await isLedger(path, kind))) paths.push(path);
  }
  if (paths.length === 0)
    throw new NorthrootError('FLEET_EMPTY', `${printable(folder)} has no ledger in it`, {
      hint: 'name the folder that holds the ledgers, or a file that lists their paths',
    });
  assertNotTooMany(paths, printable(folder));
  return paths;
}

/**
 * The paths of a list, one a line. Blank lines count for nothing.
 * @throws NorthrootError `FLEET_EMPTY` for none; `INPUT_TOO_LARGE` for too many
 */
export function parseFleetList(text: string): string[] {
  const paths = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  assertNotTooMany(paths, 'the list');
  if (paths.length > 0) return paths;
  throw new NorthrootError('FLEET_EMPTY', 'the list names no ledger', {
    hint: 'expected one path on each line',
  });
}

function assertNotTooMany({ length }: readonly string[], name: string): void {
  if (length <= MAX_FLEET) return;
  throw new NorthrootError(
    'INPUT_TOO_LARGE',
    `${name} has ${length} ledgers, expected at most ${MAX_FLEET}`,
    {
      hint: 'verify the fleet in parts: children together with their parents',
    },
  );
}

async function isLedger(path: string, kind: EntryKind): Promise<boolean> {
  if (kind !== 'folder' && path.endsWith(LEDGER_ENDING)) return true;
  try {
    return kind === 'file' ? await beginsWithRecord(path) : kind === 'folder' && (await isLedgerFolder(path));
  } catch (error) {
    if (!(error instanceof NorthrootError)) throw error;
    return !path.endsWith(KEY_ENDING);
  }
}

async function isLedgerFolder(path: string): Promise<boolean> {
  return (await nodeFileSystem.kindOf(join(path, segmentName(0)))) === 'file' || isTileTree(path);
}

async function beginsWithRecord(path: string): Promise<boolean> {
  return (await readBytes(path, RECORD_START.length)).toString('latin1') === RECORD_START;
}

/** What the first record of a ledger claims, to put ledgers in order. */
export interface FleetHead {
  readonly path: string;
  /** `sha-256:…` */
  readonly ledgerId: string | undefined;
  readonly occurredAt: string | undefined;
}

/** Nothing is verified, and what cannot be read is unknown. */
export async function readHead(path: string): Promise<FleetHead> {
  try {
    const kind = await nodeFileSystem.kindOf(path);
    const file = kind === 'folder' ? join(path, segmentName(0)) : path;
    // A pipe could be waited for without end.
    await assertNoPipe(file);
    const bytes = await readBytes(file, MAX_LINE_BYTES);
    const end = bytes.indexOf(0x0a);
    const { type, eventId, occurredAt } = examineLine(bytes.subarray(0, Math.max(0, end)), 'records');
    const isGenesis = type === 'genesis' && eventId !== undefined;
    return {
      path,
      ledgerId: isGenesis ? toDigestText(eventId) : undefined,
      occurredAt: isGenesis && isTimestamp(occurredAt) ? occurredAt : undefined,
    };
  } catch {
    // Whatever it is, its verification says it.
    return { path, ledgerId: undefined, occurredAt: undefined };
  }
}

/** The id that the first record of a ledger claims, `sha-256:…`: of a file, a tile tree, a database. Undefined where there is none to read. */
export async function findLedgerId(path: string, signal?: AbortSignal): Promise<string | undefined> {
  const { ledgerId } = await readHead(path);
  if (ledgerId !== undefined) return ledgerId;
  try {
    await assertNoPipe(path);
    return await readLedgerId(await openLedger(path), signal);
  } catch {
    signal?.throwIfAborted();
    // Whatever it is, its verification says it.
    return undefined;
  }
}

/** The id that the first record of a ledger claims, `sha-256:…`; undefined for what does not begin as a ledger. @throws as reading does */
export async function readLedgerId(source: LedgerSource, signal?: AbortSignal): Promise<string | undefined> {
  for await (const { line, takesPlace } of readLines(source, { signal })) {
    if (!takesPlace) continue;
    const { type, eventId } = examineLine(line.bytes.subarray(0, MAX_LINE_BYTES), 'records');
    return type === 'genesis' && eventId !== undefined ? toDigestText(eventId) : undefined;
  }
  return undefined;
}

/** @throws NorthrootError `NOT_A_LEDGER` for a pipe or a device; as the file system does */
export async function assertNoPipe(path: string): Promise<void> {
  if (isStoreUrl(path) || (await nodeFileSystem.kindOf(path)) !== 'other') return;
  throw new NorthrootError('NOT_A_LEDGER', `${printable(path)} is a pipe or a device`, {
    hint: 'a ledger of a fleet is a file, a folder, or in a database',
  });
}

async function readBytes(path: string, length: number): Promise<Buffer> {
  const file = await nodeFileSystem.open(path, 'read');
  try {
    const buffer = Buffer.alloc(length);
    let size = 0;
    while (size < length) {
      const count = await file.read(buffer.subarray(size), size);
      if (count === 0) break;
      size += count;
    }
    return buffer.subarray(0, size);
  } finally {
    await file.close();
  }
}
