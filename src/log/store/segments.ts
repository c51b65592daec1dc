/** Names of segments (SPEC §4): the `seq` of the first record. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { FileSystem } from '../fs/file-system.js';
import { isMixed, mixedFolder, SEGMENT_NAME } from '../fs/source.js';

export function segmentName(seq: number): string {
  return `${String(seq).padStart(20, '0')}.jsonl`;
}

export function firstSeqOf(path: string): number {
  return Number(path.slice(-'.jsonl'.length - 20, -'.jsonl'.length));
}

/** The path of a file in `folder`, which may end in `/`. */
export function joinPath(folder: string, name: string): string {
  return folder.endsWith('/') ? `${folder}${name}` : `${folder}/${name}`;
}

/** For a segment that does not continue the previous one. */
export function misplacedSegment(path: string, expected: number): NorthrootError {
  const name = segmentName(expected);
  const found = firstSeqOf(path);
  const [code, message] =
    found > expected
      ? ['SEGMENT_MISSING', `${name} is missing: the segment after seq ${expected - 1} is ${printable(path)}`]
      : [
          'SEGMENT_MISPLACED',
          `expected the segment after seq ${expected - 1} to be ${name}, found ${printable(path)}`,
        ];
  return new NorthrootError(code, message, {
    hint: 'get the folder back from a backup, whole; nothing was changed',
  });
}

/**
 * The segments' paths, in order.
 * @throws NorthrootError `NOT_A_LEDGER` for a folder of other things, or an empty one unless `mayBeEmpty`; as the file system does
 */
export async function listSegments(
  fileSystem: FileSystem,
  folder: string,
  mayBeEmpty: boolean,
): Promise<string[]> {
  const all = await fileSystem.list(folder);
  if (isMixed(all)) throw mixedFolder(folder);
  const names = all.filter((name) => SEGMENT_NAME.test(name));
  if (names.length === 0 && (all.length > 0 || !mayBeEmpty))
    throw new NorthrootError('NOT_A_LEDGER', `${printable(folder)} is a folder without ledger segments`, {
      hint: 'a new ledger needs a folder that is empty or not there yet',
    });
  return names.map((name) => joinPath(folder, name));
}
