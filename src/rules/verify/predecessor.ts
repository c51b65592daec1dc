/**
 * Ledgers that continue another (SPEC §3.3, `continues`): whether a given predecessor is the one that genesis names. Only the
 * predecessor's tree and the id of its first record are read; it is not verified.
 */

import { toDigestText } from '../../base/value/digest.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import { examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES, type RawLine } from '../../format/record/line-splitter.js';
import type { Predecessor } from '../../format/schema/generated/types.js';
import {
  appendLeaf,
  type CompactRange,
  emptyRange,
  hashToBase64url,
  rangeRoot,
} from '../../format/tree/compact-range.js';
import type { LedgerSource } from '../source/ledger-source.js';
import { hashLine, readLines } from '../source/read-lines.js';

/** Whether a given predecessor is the one that genesis names, another, or that one cut off or changed since. */
export type PredecessorRelation = 'continues' | 'other-ledger' | 'truncated' | 'forked';

export interface PredecessorView {
  readonly name: string;
  /** The id that its first record claims, base64url; undefined for none and for a bare event. */
  readonly ledgerId: string | undefined;
  readonly records: number;
  /** Of the records asked for, base64url; undefined where there are fewer. */
  readonly root: string | undefined;
}

/**
 * Reads a ledger as a predecessor of so many records.
 *
 * @param treeSize - The records to take the root over; all, unless given.
 * @throws NorthrootError when the source cannot be read
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
  for await (const { line, takesPlace } of readLines(source, { signal })) {
    if (!takesPlace) continue;
    if (tree.size === 0) ledgerId = idOfFirst(line);
    appendLeaf(tree, hashLine(line));
    if (tree.size === treeSize) root = rangeRoot(tree);
  }
  if (treeSize === undefined) root = rangeRoot(tree);
  return { name, ledgerId, records: tree.size, root: root && hashToBase64url(root) };
}

function idOfFirst({ bytes, length }: RawLine): string | undefined {
  if (length > MAX_LINE_BYTES) return undefined;
  const { layout, eventId } = examineLine(bytes, undefined);
  return layout === 'records' ? eventId : undefined;
}

/** Compares the two. */
export function relationTo(claim: Predecessor, view: PredecessorView): PredecessorRelation {
  if (view.ledgerId !== claim.ledger_id.b64) return 'other-ledger';
  if (view.root === undefined) return 'truncated';
  return view.root === claim.root.b64 ? 'continues' : 'forked';
}

/** The problem of a given predecessor. Pointers are from the event's root. */
export function findPredecessorProblem(
  claim: Predecessor | undefined,
  view: PredecessorView,
): RuleFinding | undefined {
  const own = view.ledgerId === undefined ? 'of no ledger' : `of the ledger ${toDigestText(view.ledgerId)}`;
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
        expected: `a predecessor that is ${toDigestText(id.b64)}`,
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
        expected: `root ${toDigestText(root.b64)} over the predecessor's first ${size} records`,
        actual: `${toDigestText(view.root ?? '')} in ${view.name}`,
      };
  }
}
