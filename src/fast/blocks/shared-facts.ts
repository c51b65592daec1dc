/**
 * The facts of a block in shared memory, behind the block itself: threads transfer them without allocating or copying.
 */

import { viewBytes } from '#platform';
import type { BlockFacts } from './examine-block.js';

/** The lengths of the facts, and those that are not numbers. */
export interface SharedFacts extends Pick<BlockFacts, 'lines' | 'ordinal' | 'declared'> {
  readonly rows: number;
  readonly nodes: number;
  readonly verdicts: number;
}

const NUMBER_BYTES = 4;
const HASH_BYTES = 32;

/** The offset of each of the facts, in bytes. */
interface Places {
  readonly ends: number;
  readonly rowAt: number;
  readonly verdictsAt: number;
  readonly rows: number;
  readonly leaves: number;
  readonly nodes: number;
  readonly verdicts: number;
  readonly end: number;
}

function placesOf(from: number, { lines, rows, nodes, verdicts }: Omit<SharedFacts, 'declared'>): Places {
  const ends = Math.ceil(from / NUMBER_BYTES) * NUMBER_BYTES;
  const rowAt = ends + lines * NUMBER_BYTES;
  const verdictsAt = rowAt + lines * NUMBER_BYTES;
  const rowsFrom = verdictsAt + (lines + 1) * NUMBER_BYTES;
  const leaves = rowsFrom + rows * NUMBER_BYTES;
  const nodesFrom = leaves + lines * HASH_BYTES;
  const verdictsFrom = nodesFrom + nodes;
  return {
    ...{ ends, rowAt, verdictsAt, rows: rowsFrom, leaves, nodes: nodesFrom, verdicts: verdictsFrom },
    end: verdictsFrom + verdicts,
  };
}

/**
 * Writes facts to memory from byte `from` on.
 *
 * @returns The argument of {@link readFacts}; undefined where there is not enough room: nothing was written then.
 */
export function writeFacts(
  memory: SharedArrayBuffer,
  from: number,
  { lines, ordinal, declared, ends, rowAt, verdictsAt, rows, leaves, nodes, verdicts }: BlockFacts,
): SharedFacts | undefined {
  const counts = { lines, ordinal, rows: rows.length, nodes: nodes.length, verdicts: verdicts.length };
  const places = placesOf(from, counts);
  if (places.end > memory.byteLength) return undefined;
  const numbers = (at: number, values: Int32Array): void =>
    new Int32Array(memory, at, values.length).set(values);
  const bytes = (at: number, values: Uint8Array): void => viewBytes(memory, at, values.length).set(values);
  numbers(places.ends, ends);
  numbers(places.rowAt, rowAt);
  numbers(places.verdictsAt, verdictsAt);
  numbers(places.rows, rows);
  bytes(places.leaves, leaves);
  bytes(places.nodes, nodes);
  bytes(places.verdicts, verdicts);
  return { ...counts, declared };
}

/**
 * Views of the facts that {@link writeFacts} wrote at the same offset, valid until the room of the block is used again.
 */
export function readFacts(memory: SharedArrayBuffer, from: number, shared: SharedFacts): BlockFacts {
  const { lines, ordinal, declared, rows, nodes, verdicts } = shared;
  const places = placesOf(from, shared);
  return {
    lines,
    ordinal,
    declared,
    ends: new Int32Array(memory, places.ends, lines),
    rowAt: new Int32Array(memory, places.rowAt, lines),
    verdictsAt: new Int32Array(memory, places.verdictsAt, lines + 1),
    rows: new Int32Array(memory, places.rows, rows),
    leaves: viewBytes(memory, places.leaves, lines * HASH_BYTES),
    nodes: viewBytes(memory, places.nodes, nodes),
    verdicts: viewBytes(memory, places.verdicts, verdicts),
  };
}
