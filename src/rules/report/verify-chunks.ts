/** Verifies bytes without files, as in a browser. */

import type { LedgerSource } from '../source/ledger-source.js';
import { ParentLedger } from '../verify/parents.js';
import { runVerification, type VerifyOptions } from '../verify/run-verification.js';
import { buildReport, type Report } from './report.js';

/** A stream of the Streams Standard: `ReadableStream` of any host. */
export interface ByteStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
    cancel(): Promise<void>;
  };
}

/** Bytes to read from the beginning: `Blob` or `File`. */
export interface ByteBlob {
  readonly size: number;
  stream(): ByteStream;
}

/** A ledger's bytes: whole, in chunks of any length, as a stream, or as a blob or file of the web. */
export type LedgerBytes =
  | Uint8Array
  | Iterable<Uint8Array>
  | AsyncIterable<Uint8Array>
  | ByteStream
  | ByteBlob;

/** {@link VerifyOptions}, with the predecessor and the parents in the form of the ledger. */
export type VerifyChunksOptions = Omit<VerifyOptions, 'predecessor' | 'parents'> & {
  /** The ledger's name in findings; default `-`. */
  readonly name?: string;
  readonly predecessor?: LedgerBytes | LedgerSource;
  /** Named `parent 1`, `parent 2`, … unless they are sources. */
  readonly parents?: readonly (LedgerBytes | LedgerSource | ParentLedger)[];
};

/**
 * Verifies a ledger of bytes offline (SPEC §8). Faults of the ledger are in the report, never thrown. A ledger of several segments is a
 * {@link LedgerSource}, whose `segments` have their names and bytes.
 *
 * @example
 * ```ts
 * const report = await verifyChunks(file, { name: file.name }); // a File that was chosen or dropped
 * if (report.verdict !== 'ok') for (const finding of report.findings) console.error(finding.message);
 * ```
 * @throws TypeError for anything but bytes; RangeError for a bad option; the stream's error when that fails
 */
export async function verifyChunks(
  ledger: LedgerBytes | LedgerSource,
  { name = '-', predecessor, parents, ...options }: VerifyChunksOptions = {},
): Promise<Report> {
  const result = await runVerification(toChunkSource(ledger, name), {
    ...options,
    ...(predecessor === undefined ? {} : { predecessor: toChunkSource(predecessor, 'predecessor') }),
    ...(parents === undefined
      ? {}
      : {
          parents: parents.map((parent, index) =>
            parent instanceof ParentLedger ? parent : toChunkSource(parent, `parent ${index + 1}`),
          ),
        }),
  });
  return buildReport(result);
}

/**
 * The source of a ledger's bytes; a source is returned unchanged.
 *
 * @param name - The ledger's name in findings.
 * @throws TypeError for what is no bytes
 */
export function toChunkSource(ledger: LedgerBytes | LedgerSource, name: string): LedgerSource {
  if (typeof ledger !== 'object' || ledger === null) throw notBytes();
  if ('segments' in ledger) return ledger;
  return {
    paths: [name],
    size: ArrayBuffer.isView(ledger) ? ledger.length : 'size' in ledger ? ledger.size : undefined,
    segments: iterate([{ file: name, firstSeq: undefined, chunks: readChunks(chunksOf(ledger)) }]),
  };
}

function chunksOf(ledger: LedgerBytes): Iterable<Uint8Array> | AsyncIterable<Uint8Array> {
  if (ArrayBuffer.isView(ledger)) return [ledger];
  if (Symbol.asyncIterator in ledger || Symbol.iterator in ledger) return ledger;
  if ('getReader' in ledger) return readStream(ledger);
  if ('stream' in ledger) return readStream(ledger.stream());
  throw notBytes();
}

/** Some hosts' streams cannot be iterated. */
async function* readStream(stream: ByteStream): AsyncGenerator<Uint8Array, void, void> {
  const reader = stream.getReader();
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isDone = done;
      if (done) return;
      if (value === undefined) throw notBytes();
      yield value;
    }
  } finally {
    if (!isDone) await reader.cancel();
  }
}

async function* readChunks(
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const chunk of chunks) {
    // Also from another realm, such as a frame or worker.
    if (!ArrayBuffer.isView(chunk) || chunk.BYTES_PER_ELEMENT !== 1) throw notBytes();
    yield chunk;
  }
}

async function* iterate<T>(items: readonly T[]): AsyncGenerator<T, void, void> {
  for (const item of items) yield await Promise.resolve(item);
}

function notBytes(): TypeError {
  return new TypeError('expected the bytes of a ledger: Uint8Array, chunks of them, a stream or a blob');
}
