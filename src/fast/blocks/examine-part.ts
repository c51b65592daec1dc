/** Examines one part of a ledger, on any machine. */

import { allocateBytes } from '../../base/bytes/concat.js';
import { printable } from '../../base/bytes/printable.js';
import { decodeLatin1, encodeLatin1 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { Key } from '../../format/schema/generated/types.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { leafHash } from '../../format/tree/compact-range.js';
import type { LedgerSource, Segment } from '../../rules/source/ledger-source.js';
import { type Block, openBlocks } from './block-reader.js';
import { examineBlock, makeExaminer } from './examine-block.js';
import { keysDeclaredBy, type KnownKeys } from './known-keys.js';
import { MAX_PARTS, PartEncoder } from './part-file.js';

export interface PartOptions {
  /** From 1 on. */
  readonly part: number;
  /** At most 10,000. */
  readonly of: number;
  /** Keys of the trust policy by which the ledger will be verified, beside those that it declares. */
  readonly keys?: readonly Pick<Key, 'keyid' | 'public_key'>[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

const OPTIONS: OptionTypes<PartOptions> = { part: 'number', of: 'number', keys: 'array', signal: 'signal' };

const BLOCK_BYTES = 256 * 1024;

/**
 * Makes a part file: the lines that begin in the `part`th of `of` equal stretches of a ledger, and which of their signatures are valid.
 * {@link openParts} merges all parts into a ledger whose report is that of one run.
 *
 * @returns The file's bytes. Each piece MUST be consumed before the next is requested.
 * @throws NorthrootError when the source cannot be read; `SIZE_UNKNOWN` for a stream, and `NOT_A_LEDGER` for a tile tree, which have no
 *   parts. TypeError and RangeError for a bad option.
 */
export async function* examinePart(
  source: LedgerSource,
  options: PartOptions,
): AsyncGenerator<Uint8Array, void, void> {
  checkOptions('examinePart', options, OPTIONS);
  const { part, of, signal } = options;
  const isCount = (value: number, least: number, most: number): boolean =>
    Number.isSafeInteger(value) && value >= least && value <= most;
  if (!isCount(of, 1, MAX_PARTS) || !isCount(part, 1, of))
    throw new RangeError(`expected a part from 1 to the number of parts, which is at most ${MAX_PARTS}`);
  const { size, paths } = source;
  const [path = ''] = paths;
  if (size === undefined)
    throw new NorthrootError(
      'SIZE_UNKNOWN',
      `the size of ${printable(path)} is not known, so it has no parts`,
    );
  if (source.published !== undefined || source.findFaults !== undefined)
    throw new NorthrootError('NOT_A_LEDGER', `${printable(path)} is a tile tree, which has no parts`);
  const encoder = new PartEncoder();
  yield encoder.header({ northroot_part: '1', part, of, path, size });
  const from = Math.floor((size * (part - 1)) / of);
  // Records appended since are in the last part.
  const to = part === of ? Infinity : Math.floor((size * part) / of);
  const declared = (options.keys ?? []).map(({ keyid, public_key: publicKey }) => ({ keyid, publicKey }));
  const examiner = makeExaminer(defaultBackend, declared);
  const blocks = openBlocks(source, signal);
  // Free once the frame of its block, a copy, was yielded.
  const room = allocateBytes(BLOCK_BYTES);
  let segment: Segment | undefined;
  try {
    for (let begin = 0; begin < to; begin = blocks.given) {
      const block = await blocks.read(room);
      if (block === undefined) break;
      const lines = 'bytes' in block ? cut(block, from - begin, to - begin) : undefined;
      if ('bytes' in block && begin < from) learnKeys(block.bytes, examiner.keys);
      const isIn = lines === undefined ? begin >= from : lines.length > 0;
      if (!isIn) continue;
      if (segment !== block.segment) {
        segment = block.segment;
        yield encoder.frame({ kind: 'segment', segment });
      }
      if (lines !== undefined) {
        const { verdicts } = examineBlock(lines, examiner, 'all');
        yield encoder.frame({ kind: 'lines', bytes: lines, verdicts });
      } else if ('line' in block) {
        const { length, terminated, longLeafHash, bytes } = block.line;
        const leaf = encodeLatin1(longLeafHash ?? leafHash(bytes));
        yield encoder.frame({ kind: 'long', length, terminated, leaf });
      }
    }
  } finally {
    await blocks.close();
  }
  yield encoder.end();
}

const NEWLINE = 0x0a;

/** The lines of a block that begin between two offsets. */
function cut({ bytes }: Block, from: number, to: number): Uint8Array {
  return bytes.subarray(lineFrom(bytes, from), lineFrom(bytes, to));
}

/** The first beginning of a line at or after `place`. */
function lineFrom(bytes: Uint8Array, place: number): number {
  if (place <= 0) return 0;
  if (place > bytes.length) return bytes.length;
  const newline = bytes.indexOf(NEWLINE, place - 1);
  return newline === -1 ? bytes.length : newline + 1;
}

/** Texts that are in every line that declares a key, and in few others. */
const DECLARING = /"event_type":"(?:genesis|key)"/g;

/** Adds the keys that lines before the stretch declare, without parsing the other lines. */
function learnKeys(bytes: Uint8Array, keys: KnownKeys): void {
  const text = decodeLatin1(bytes);
  for (const { index } of text.matchAll(DECLARING)) {
    const start = text.lastIndexOf('\n', index) + 1;
    const newline = text.indexOf('\n', index);
    const end = newline === -1 ? text.length : newline;
    if (end - start <= MAX_LINE_BYTES)
      keys.add(keysDeclaredBy(examineLine(bytes.subarray(start, end), undefined)));
  }
}
