/**
 * The last position that a decider acknowledged, kept in a file outside the ledger, so that a ledger that was put back to an earlier
 * state is found when it is opened again. The file is written after the records are on disk and before their callers are told: it may
 * be behind the ledger, and is never ahead of it.
 */

import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import { nodeFileSystem, placeFile, readSmallFile, type FileSystem } from '../fs/file-system.js';
import type { StorePosition } from '../store/ledger-store.js';
import { fromDigestText, SHA256, toDigestText, tryParseDigest } from '../value/digest.js';

const MAX_BYTES = 4_096;

/** The file of a ledger of which the position is kept; in a folder of segments its own name, else nothing. */
function segmentOf(name: string, file: string): string {
  return file === name ? '' : file.slice(file.lastIndexOf('/') + 1);
}

/**
 * The position that was kept of a ledger; undefined where none was, and where it is of another ledger.
 *
 * @param name - The path of the ledger as it is opened.
 * @param ledgerId - `sha-256:…`
 * @throws NorthrootError `POSITION_MALFORMED`, and as reading does.
 */
export async function readPosition(
  path: string,
  name: string,
  ledgerId: string,
  fileSystem: FileSystem = nodeFileSystem,
): Promise<StorePosition | undefined> {
  if ((await fileSystem.kindOf(path)) === 'missing') return undefined;
  const kept = parse(Buffer.from(await readSmallFile(path, MAX_BYTES)).toString());
  if (kept === undefined) {
    throw new NorthrootError('POSITION_MALFORMED', `${printable(path)} is not a position`, {
      hint: 'give another file, or remove it if you know that the ledger is whole',
    });
  }
  if (kept.ledgerId !== ledgerId) return undefined;
  const { segment, line, byteOffset, size, tip } = kept;
  const file = segment === '' ? name : `${name.replace(/\/+$/, '')}/${segment}`;
  return { file, line, byteOffset, size, tip };
}

/** Keeps a position. @throws as writing does */
export async function writePosition(
  path: string,
  name: string,
  ledgerId: string,
  { file, line, byteOffset, size, tip }: StorePosition,
  fileSystem: FileSystem = nodeFileSystem,
): Promise<void> {
  const kept = {
    ledger_id: ledgerId,
    size,
    tip: toDigestText(tip),
    file: segmentOf(name, file),
    line,
    byte_offset: byteOffset,
  };
  await placeFile(path, Buffer.from(`${JSON.stringify(kept)}\n`), { fileSystem });
}

interface Kept extends Omit<StorePosition, 'file'> {
  readonly ledgerId: string;
  readonly segment: string;
}

function parse(text: string): Kept | undefined {
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
  if (typeof ledgerId !== 'string' || typeof tip !== 'string' || tryParseDigest(tip)?.alg !== SHA256)
    return undefined;
  if (typeof file !== 'string' || file.includes('/')) return undefined;
  return { ledgerId, segment: file, size, tip: fromDigestText(tip), line, byteOffset };
}
