/**
 * What the ways turn on: how lines are examined in place of the usual way. The bundle that runs the ways has this file in place of some
 * modules (`differential-bundle.ts`), whose exports these wrap.
 */

import * as lineScanner from '../../src/fast/blocks/line-scanner.js';
import type { LineScanner } from '../../src/fast/blocks/line-scanner.js';
import * as blocks from '../../src/fast/blocks/read-blocks.js';
import type { KnownLines, ReadBlocksOptions, FastLine } from '../../src/fast/blocks/read-blocks.js';
import type { KnownLine } from '../../src/rules/verify/line-knowledge.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { LineSplitter } from '../../src/format/record/line-splitter.js';
import * as platform from '../../src/base/platform/node.js';
import type { Equation } from '../../src/base/platform/platform.js';
import * as batches from '../../src/fast/signature/batch-verifier.js';

export const examining = {
  /** How blocks are read; `lines`: there are none, and nothing is known ahead. */
  blocks: undefined as Partial<ReadBlocksOptions> | 'lines' | undefined,
  /** Who scans the lines, whatever the size of their block. */
  scanner: undefined as 'wasm' | 'plain' | undefined,
  /** `at once`: a key has a table from its first signature on, and each verdict of a table is held against the backend's. */
  tables: undefined as 'at once' | undefined,
};

export type Examining = typeof examining;

/** Does something with lines examined in another way. */
export async function withExamining<T>(how: Partial<Examining>, work: () => Promise<T>): Promise<T> {
  Object.assign(examining, how);
  try {
    return await work();
  } finally {
    Object.assign(examining, { blocks: undefined, scanner: undefined, tables: undefined });
  }
}

export function readBlocks(
  source: LedgerSource,
  options: ReadBlocksOptions,
): AsyncGenerator<KnownLines, void, void> {
  return examining.blocks === 'lines'
    ? linesOneByOne(source)
    : wiped(blocks.readBlocks(source, { ...options, ...examining.blocks }));
}

const NOT_MEANT = 0x58;

/** What is known of a block is good until the next is asked for: then all of it is overwritten, in whatever way it was made. */
async function* wiped(read: AsyncIterable<KnownLines>): AsyncGenerator<KnownLines, void, void> {
  for await (const lines of read) {
    yield lines;
    const { bytes, facts } = lines as unknown as Partial<FastLine>;
    // Of a line that is longer than a block there is nothing.
    if (bytes === undefined || facts === undefined) continue;
    bytes.fill(NOT_MEANT);
    for (const numbers of [facts.ends, facts.rowAt, facts.rows, facts.verdictsAt]) numbers.fill(NOT_MEANT);
    for (const hashes of [facts.leaves, facts.nodes, facts.verdicts]) hashes.fill(NOT_MEANT);
  }
}

/** Lines of which nothing is known: `verifyLine` finds out all that it says, each signature by the backend. */
async function* linesOneByOne(source: LedgerSource): AsyncGenerator<KnownLines, void, void> {
  let ordinal = 0;
  for await (const segment of source.segments) {
    const splitter = new LineSplitter();
    const asKnown = (line: ReturnType<LineSplitter['finish']> & object): KnownLine => {
      const takesPlace = line.terminated && line.length > 0;
      const known: KnownLine = { line, segment, ordinal, takesPlace, known: undefined };
      if (takesPlace) ordinal += 1;
      return known;
    };
    for await (const chunk of segment.chunks)
      for (const line of splitter.push(chunk)) yield new OneLine(asKnown(line));
    const last = splitter.finish();
    if (last !== undefined) yield new OneLine(asKnown(last));
  }
}

class OneLine implements KnownLines {
  readonly line: KnownLine;
  readonly fast = undefined;
  #isPassed = false;

  constructor(line: KnownLine) {
    this.line = line;
  }

  next(): boolean {
    if (this.#isPassed) return false;
    this.#isPassed = true;
    return true;
  }
}

/** What rows say is of the block that was begun: what they said before is overwritten. */
class OtherRows implements LineScanner {
  readonly #scanner: LineScanner;

  constructor(scanner: LineScanner) {
    this.#scanner = scanner;
  }

  get rows(): Int32Array {
    return this.#scanner.rows;
  }

  begin(bytes: Uint8Array): Int32Array {
    const ends = this.#scanner.begin(bytes);
    this.rows.fill(NOT_MEANT);
    return ends;
  }

  leafHash(start: number, end: number): string {
    return this.#scanner.leafHash(start, end);
  }

  scan(start: number, end: number, at: number): boolean {
    return this.#scanner.scan(start, end, at);
  }

  relate(rowAt: Int32Array, leaves: Uint8Array): void {
    this.#scanner.relate(rowAt, leaves);
  }

  hashNodes(leaves: Uint8Array, ordinal: number): Uint8Array {
    return this.#scanner.hashNodes(leaves, ordinal);
  }
}

/** Made when they are first asked for: modules that stand in for each other may be run before those that they import. */
let scanners: { readonly wasm: LineScanner | undefined; readonly plain: LineScanner } | undefined;

export function scannerFor(length: number): LineScanner {
  if (examining.scanner === undefined) return new OtherRows(lineScanner.scannerFor(length));
  scanners ??= { wasm: lineScanner.makeWasmScanner(), plain: lineScanner.makePlainScanner() };
  const { wasm, plain } = scanners;
  return new OtherRows(examining.scanner === 'wasm' && wasm !== undefined ? wasm : plain);
}

export class BatchVerifier extends batches.BatchVerifier {
  constructor(options: batches.BatchVerifierOptions = {}) {
    super(examining.tables === undefined ? options : { ...options, uses: 0, sample: 1 });
  }
}

// Whether a signature is valid is asked of the platform once, and a key is made of its bytes once: what differs is who asks, and when.
export const importEd25519 = once(platform.importEd25519);
export const importP256 = once(platform.importP256);

/** Keys that ledgers have in common are kept, and so many answers about each: more than a ledger has signatures. */
const MAX_ANSWERS = 1_000;

function once(importKey: (bytes: Uint8Array) => Equation): (bytes: Uint8Array) => Equation {
  const equations = new Map<string, Equation>();
  const toText = (bytes: Uint8Array): string =>
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
  return (bytes) => {
    const known = equations.get(toText(bytes));
    if (known !== undefined) return known;
    const real = importKey(bytes);
    const answers = new Map<string, boolean>();
    const equation: Equation = (message, signature) => {
      const question = toText(signature) + toText(message);
      const answer = answers.get(question) ?? real(message, signature);
      if (answers.size > MAX_ANSWERS) answers.clear();
      answers.set(question, answer);
      return answer;
    };
    equations.set(toText(bytes), equation);
    return equation;
  };
}
