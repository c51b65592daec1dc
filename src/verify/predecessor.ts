/**
 * Ledgers that go on from another (SPEC §3.3, `continues`): what a successor's genesis says of its predecessor, and whether a ledger
 * that is given as that predecessor is the one. Of the predecessor only the tree and the id of its first record are looked at: what it
 * says is for a verification of its own.
 */

import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import type { LedgerSource } from '../fs/source.js';
import type { RuleFinding } from '../finding/rule-finding.js';
import { examineLine } from '../ledger/examine-line.js';
import { LineSplitter, MAX_LINE_BYTES, type RawLine } from '../ledger/line-splitter.js';
import type { Predecessor } from '../schema/generated/types.js';
import {
  appendLeaf,
  emptyRange,
  hashToBase64url,
  leafHash,
  rangeRoot,
  type CompactRange,
} from '../tree/compact-range.js';
import { findCheckpoint } from './find-checkpoint.js';

/** A note of so many characters finds room in a genesis record beside its keys. */
const MAX_KEPT_NOTE_LENGTH = 16 * 1024;

/** How a ledger that was given as a predecessor stands to what genesis says: the one, another, or one cut off or changed since. */
export type PredecessorRelation = 'continues' | 'other-ledger' | 'truncated' | 'forked';

/** A ledger as far as a successor's genesis speaks of it. */
export interface PredecessorView {
  /** What findings call it. */
  readonly name: string;
  /** The id that its first record claims, base64url; undefined where that has none, or is a bare event. */
  readonly ledgerId: string | undefined;
  readonly records: number;
  /** Of the records asked for, base64url; undefined where there are fewer. */
  readonly root: string | undefined;
}

/**
 * Looks at a ledger as one that has had, or has, so many records.
 *
 * @param treeSize - The records to take the root over; all, unless given.
 * @throws NorthrootError when the source cannot be read.
 */
export async function viewPredecessor(
  source: LedgerSource,
  treeSize?: number,
  signal?: AbortSignal,
): Promise<PredecessorView> {
  const [name = ''] = source.paths;
  const tree: CompactRange = emptyRange();
  let ledgerId: string | undefined;
  let root = treeSize === 0 ? rangeRoot(tree) : undefined;
  const take = (line: RawLine): void => {
    if (line.length === 0) return;
    if (tree.size === 0) ledgerId = idOfFirst(line);
    appendLeaf(tree, line.longLeafHash ?? leafHash(line.bytes));
    if (tree.size === treeSize) root = rangeRoot(tree);
  };
  for await (const segment of source.segments) {
    const splitter = new LineSplitter();
    for await (const chunk of segment.chunks) {
      signal?.throwIfAborted();
      for (const line of splitter.push(chunk)) take(line);
    }
  }
  if (treeSize === undefined) root = rangeRoot(tree);
  return { name, ledgerId, records: tree.size, root: root && hashToBase64url(root) };
}

function idOfFirst({ bytes, length }: RawLine): string | undefined {
  if (length > MAX_LINE_BYTES) return undefined;
  const { layout, eventId } = examineLine(bytes, undefined);
  return layout === 'records' ? eventId : undefined;
}

/**
 * What the genesis of a successor says of a ledger as it stands: its id, its size, its root, and the note of its last checkpoint
 * where nothing but that checkpoint's own records stands after what the note covers, and it is not longer than 16 KiB. Whether the ledger verifies is not asked.
 *
 * @param open - Opens the ledger; it is read twice.
 * @throws NorthrootError `LEDGER_INVALID` when its first line is no record of which the id could be read, and as the source does.
 */
export async function describePredecessor(
  open: () => Promise<LedgerSource>,
  signal?: AbortSignal,
): Promise<Predecessor> {
  const source = await open();
  const view = await viewPredecessor(source, undefined, signal);
  const { name, ledgerId, records, root } = view;
  if (ledgerId === undefined || root === undefined) {
    throw new NorthrootError('LEDGER_INVALID', `${printable(name)} is not a ledger to continue from`, {
      exitStatus: 2,
      hint: 'its first line must be a record, whose event_id is the id of the ledger',
    });
  }
  const note = await findWholeNote(source, open, records, signal);
  return {
    ledger_id: { alg: 'sha-256', b64: ledgerId },
    tree_size: records,
    root: { alg: 'sha-256', b64: root },
    ...(note === undefined || note.length > MAX_KEPT_NOTE_LENGTH ? {} : { note }),
  };
}

async function findWholeNote(
  { published }: LedgerSource,
  open: () => Promise<LedgerSource>,
  records: number,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  // A tree is published whole.
  if (published !== undefined) return Buffer.from(published.note).toString();
  const found = await findCheckpoint(await open(), { signal });
  const isWhole = found !== undefined && found.seq + 1 + found.attestations === records;
  return isWhole ? found.note : undefined;
}

/** How the two stand to each other. */
export function relationTo(claim: Predecessor, view: PredecessorView): PredecessorRelation {
  if (view.ledgerId !== claim.ledger_id.b64) return 'other-ledger';
  if (view.root === undefined) return 'truncated';
  return view.root === claim.root.b64 ? 'continues' : 'forked';
}

/** What is wrong where a ledger was given as predecessor; pointers are from the event's root. */
export function findPredecessorProblem(
  claim: Predecessor | undefined,
  view: PredecessorView,
): RuleFinding | undefined {
  const own = view.ledgerId === undefined ? 'of no ledger' : `of the ledger sha-256:${view.ledgerId}`;
  if (claim === undefined) {
    const expected = `the predecessor, ${view.name}, ${own}`;
    return { code: 'LEDGER_MISMATCH', pointer: '/continues', expected, actual: 'none' };
  }
  const { tree_size: size, root, ledger_id: id } = claim;
  switch (relationTo(claim, view)) {
    case 'continues':
      return undefined;
    case 'other-ledger':
      return {
        code: 'LEDGER_MISMATCH',
        pointer: '/continues/ledger_id',
        expected: `a predecessor that is sha-256:${id.b64}`,
        actual: `${view.name}, ${own}`,
      };
    case 'truncated':
      return {
        code: 'TRUNCATED',
        pointer: '/continues/tree_size',
        expected: `at least ${size} records in the predecessor`,
        actual: `${view.records} in ${view.name}`,
      };
    case 'forked':
      return {
        code: 'FORKED',
        pointer: '/continues/root',
        expected: `root sha-256:${root.b64} over the predecessor's first ${size} records`,
        actual: `sha-256:${view.root ?? ''} in ${view.name}`,
      };
  }
}
