/**
 * Checkpoints that the user holds (SPEC §6): a note kept earlier, or got from a witness. A ledger whose tree has another root at
 * that size is not the one that the checkpoint is of; one that is smaller was truncated.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { decodeCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import { type CompactRange, emptyRange, rangeRoot } from '../../format/tree/compact-range.js';
import type { NoteVerdict } from '../trust/checkpoint-judge.js';
import { findRevocationProblem, findRoleProblem } from '../trust/keyring.js';
import { judgeLedgerNote } from './checkpoint-note.js';
import type { VerifyState } from './state.js';

/** A checkpoint's note, and the name that findings call it by: its file's. */
export interface Anchor {
  readonly name: string;
  readonly note: Uint8Array;
}

/** How a ledger stands to an anchor: it extends it, is shorter, has another history, or is another log. */
export type AnchorRelation = 'extends' | 'truncated' | 'forked' | 'other-origin';

/** What became of an anchor. */
export interface AnchorOutcome {
  readonly name: string;
  readonly note: SignedCheckpoint;
  /** Whether it was published with the ledger, and so shows nothing of what was there before. */
  readonly isPublished: boolean;
  readonly relation: AnchorRelation;
  /** The ledger's root at the anchor's size; undefined where it is shorter. */
  readonly root: string | undefined;
  /** Whose signatures on it count, by the keys known at the end. */
  readonly signatures: NoteVerdict;
}

/** Whether its signatures say anything of this ledger (SPEC §7): the ledger extends its tree, which is not the empty one that all extend. */
export function isOfLedger({ relation, note }: AnchorOutcome): boolean {
  return relation === 'extends' && note.checkpoint.size > 0;
}

interface Watched {
  readonly name: string;
  readonly isPublished: boolean;
  readonly note: SignedCheckpoint;
  root: string | undefined;
}

/** Holds anchors against a tree as it grows. */
export class AnchorWatch {
  readonly #inOrder: readonly Watched[];
  readonly #bySize: readonly Watched[];
  #next = 0;

  /**
   * @param published - The checkpoint that the ledger is published with, if there is one.
   * @throws NorthrootError `NOTE_MALFORMED` when an anchor is no checkpoint
   */
  constructor(anchors: readonly Anchor[], published?: Anchor) {
    const watch = ({ name, note }: Anchor, isPublished: boolean): Watched => {
      return { name, isPublished, note: parseAnchor(name, note), root: undefined };
    };
    this.#inOrder = [
      ...(published === undefined ? [] : [watch(published, true)]),
      ...anchors.map((anchor) => watch(anchor, false)),
    ];
    this.#bySize = [...this.#inOrder].sort((a, b) => a.note.checkpoint.size - b.note.checkpoint.size);
  }

  /** How many leaves the tree has where the next anchor ends that was not observed; Infinity where there is none. */
  get nextSize(): number {
    return this.#bySize[this.#next]?.note.checkpoint.size ?? Infinity;
  }

  /**
   * Call for the empty tree, and after each leaf; it is enough to call at {@link AnchorWatch.nextSize}.
   *
   * @returns Whether an anchor ends there.
   */
  observe(tree: CompactRange): boolean {
    const before = this.#next;
    for (;;) {
      const anchor = this.#bySize[this.#next];
      if (anchor === undefined || anchor.note.checkpoint.size > tree.size) return this.#next > before;
      anchor.root = rangeRoot(tree);
      this.#next += 1;
    }
  }

  /**
   * Call in place of {@link AnchorWatch.observe} for every tree up to one that was verified before.
   *
   * @param findRoot - The root of that ledger's tree at a checkpoint's size, where it is known.
   * @returns Whether all are known at which anchors end; nothing has happened otherwise.
   */
  skipTo(tree: CompactRange, findRoot: (note: SignedCheckpoint) => string | undefined): boolean {
    const covered = this.#bySize.filter(({ note }) => note.checkpoint.size <= tree.size);
    const known = covered.map(({ note }) => {
      const { size } = note.checkpoint;
      if (size === tree.size) return rangeRoot(tree);
      return size === 0 ? rangeRoot(emptyRange()) : findRoot(note);
    });
    if (known.includes(undefined)) return false;
    covered.forEach((anchor, index) => (anchor.root = known[index]));
    this.#next = covered.length;
    return true;
  }

  /** Begins again with the empty tree. */
  restart(): void {
    this.#next = 0;
    for (const anchor of this.#inOrder) anchor.root = undefined;
    this.observe(emptyRange());
  }

  /** The ledger's roots at which anchors have ended, by size. */
  roots(): Map<number, string> {
    return new Map(
      this.#bySize
        .slice(0, this.#next)
        .map(({ note, root }) => [note.checkpoint.size, root as string] as const),
    );
  }

  /** How many records each covers. */
  sizes(): number[] {
    return this.#inOrder.map(({ note }) => note.checkpoint.size);
  }

  /** What became of each, in the order in which they were given. Call at the end. */
  judge(state: VerifyState): AnchorOutcome[] {
    return this.#inOrder.map(({ name, isPublished, note, root }) => {
      const { size } = note.checkpoint;
      const signatures = judgeLedgerNote(
        state,
        note,
        (key, as) =>
          (as === 'log' ? findRoleProblem(key, ['checkpoint']) : undefined) ??
          findRevocationProblem(key, size),
        size,
      );
      return { name, isPublished, note, relation: relationOf(state, note, root), root, signatures };
    });
  }
}

function relationOf(
  state: VerifyState,
  { checkpoint }: SignedCheckpoint,
  root: string | undefined,
): AnchorRelation {
  if (state.origin !== undefined && checkpoint.origin !== state.origin) return 'other-origin';
  if (root === undefined) return 'truncated';
  return root === checkpoint.root ? 'extends' : 'forked';
}

function parseAnchor(name: string, bytes: Uint8Array): SignedCheckpoint {
  const decoded = decodeCheckpoint(bytes);
  if (decoded.ok) return decoded.value;
  const { expected, actual } = decoded.fault;
  throw new NorthrootError(
    'NOTE_MALFORMED',
    `${printable(name)} is not a valid checkpoint: expected ${printable(expected)}, found ${printable(actual)}`,
    { hint: 'give the signed note of a checkpoint' },
  );
}
