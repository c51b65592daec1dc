/** Merges part files into a ledger whose signatures have verdicts already. */

import { printable } from '../../base/bytes/printable.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import type { GivenLines, GivenLongLine, LedgerSource, Segment } from '../../rules/source/ledger-source.js';
import { decodePart, type PartFrame, type PartHeader, type PartSegment } from './part-file.js';

/** A part file: its name for errors, and its bytes, from the beginning at each call. */
export interface PartInput {
  readonly name: string;
  readonly open: () => AsyncIterable<Uint8Array>;
}

/**
 * Opens the ledger of some parts, to be verified like any other. The report is that of one run over the ledger itself.
 *
 * @param parts - All of them, in any order.
 * @throws NorthrootError `PART_MALFORMED` for a file that is not a part; `PARTS_INCOMPLETE` where one is missing or given twice;
 *   `PART_WRONG` where they are of different ledgers, or of one that grew between them. Reading the ledger throws `PART_WRONG` for a
 *   sampled verdict that is wrong.
 */
export async function openParts(parts: readonly PartInput[]): Promise<LedgerSource> {
  const headers = await Promise.all(parts.map(readHeader));
  const ordered = orderParts(headers);
  const { path, size } = (ordered[0] as OpenPart).header;
  return {
    paths: [path],
    size,
    segments: {
      [Symbol.asyncIterator]: () => {
        throw new TypeError('the lines of parts are given');
      },
    },
    given: { [Symbol.asyncIterator]: () => readParts(ordered) },
  };
}

interface OpenPart extends PartInput {
  readonly header: PartHeader;
}

async function readHeader(part: PartInput): Promise<OpenPart> {
  const frames = decodePart(part.open(), part.name);
  try {
    const { value } = await frames.next();
    return { ...part, header: value as PartHeader };
  } finally {
    await frames.return();
  }
}

function orderParts(parts: readonly OpenPart[]): OpenPart[] {
  const [first] = parts;
  if (first === undefined) throw new RangeError('expected at least one part');
  const { of, path, size } = first.header;
  for (const { header, name } of parts) {
    if (header.of === of && header.path === path && header.size === size) continue;
    const theirs = `${header.part} of ${header.of} of ${printable(header.path)} with ${header.size} bytes`;
    throw new NorthrootError(
      'PART_WRONG',
      `${printable(name)} is part ${theirs}, ${printable(first.name)} one of ${of} of ${printable(path)} with ${size} bytes`,
      { hint: 'make all parts of the same ledger, while nobody appends to it' },
    );
  }
  const ordered = [...parts].sort((a, b) => a.header.part - b.header.part);
  const missing = Array.from({ length: of }, (_, index) => index + 1).filter(
    (number) => !ordered.some(({ header }) => header.part === number),
  );
  const [twice] = ordered.filter(({ header }, index) => header.part === ordered[index + 1]?.header.part);
  if (missing.length > 0 || twice !== undefined) {
    const what =
      twice === undefined
        ? `part ${missing.slice(0, 10).join(', ')} of ${of} is missing`
        : `part ${twice.header.part} of ${of} is there twice`;
    throw new NorthrootError('PARTS_INCOMPLETE', what, { hint: 'name each part once' });
  }
  return ordered;
}

/** A frame of lines and its segment, the same object for all frames of a file. */
async function* readParts(
  parts: readonly OpenPart[],
): AsyncGenerator<GivenLines | GivenLongLine, void, void> {
  let segment: Segment | undefined;
  for (const { name, open } of parts) {
    const frames = decodePart(open(), name);
    await frames.next();
    for await (const frame of frames as AsyncIterable<PartFrame>) {
      if (frame.kind === 'segment') {
        if (!isSame(segment, frame.segment)) segment = toSegment(frame.segment);
        continue;
      }
      if (segment === undefined)
        throw new NorthrootError(
          'PART_MALFORMED',
          `${printable(name)} does not say of which file its lines are`,
        );
      if (frame.kind === 'lines') yield { segment, bytes: frame.bytes, verdicts: frame.verdicts };
      else
        yield { segment, length: frame.length, terminated: frame.terminated, leaf: decodeLatin1(frame.leaf) };
    }
  }
}

function isSame(segment: Segment | undefined, { file, firstSeq }: PartSegment): boolean {
  return segment?.file === file && segment.firstSeq === firstSeq;
}

/** Lines come from `given` instead. */
function toSegment({ file, firstSeq }: PartSegment): Segment {
  return {
    file,
    firstSeq,
    chunks: {
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.reject(new TypeError('the lines of parts are given')),
      }),
    },
  };
}
