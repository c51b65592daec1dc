/**
 * Checkpoints that the user holds (SPEC §6): a note kept earlier, or from a witness. A ledger with another root at that size is a fork; a
 * smaller one was truncated.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { type Checkpoint, decodeCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import { type CompactRange, emptyRange, rangeRoot } from '../../format/tree/compact-range.js';
import type { NoteVerdict } from '../trust/checkpoint-judge.js';
import { findRevocationProblem, findRoleProblem } from '../trust/keyring.js';
import { judgeLedgerNote } from './checkpoint-note.js';
import type { VerifyState } from './state.js';

/** A checkpoint's note, and its name in findings: its file's. */
export interface Anchor {
  readonly name: string;
  readonly note: Uint8Array;
}

/** What a holder had before a further one: it has an outcome only where the ledger does not extend it. */
export interface EarlierAnchor {
  readonly name: string;
  readonly checkpoint: Checkpoint;
}

/** Whether a ledger extends an anchor, is shorter, has another history, or is another log. */
export type AnchorRelation = 'extends' | 'truncated' | 'forked' | 'other-origin';

export interface AnchorOutcome {
  readonly name: string;
  readonly note: SignedCheckpoint;
  /** Whether it was published with the ledger, and so proves nothing about earlier records. */
  readonly isPublished: boolean;
  readonly relation: AnchorRelation;
  /** The ledger's root at the anchor's size; undefined where it is shorter. */
  readonly root: string | undefined;
  /** Its signatures, by the keys known at the end. */
  readonly signatures: NoteVerdict;
}

/** Whether its signatures concern this ledger (SPEC §7): the ledger extends its tree, which is not empty. */
export function isOfLedger({ relation, note }: AnchorOutcome): boolean {
  return relation === 'extends' && note.checkpoint.size > 0;
}

interface Watched {
  readonly name: string;
  readonly isEarlier: boolean;
  readonly isPublished: boolean;
  readonly note: SignedCheckpoint;
  root: string | undefined;
}

/** Compares anchors with a tree as it grows. */
export class AnchorWatch {
  readonly #inOrder: readonly Watched[];
  readonly #bySize: readonly Watched[];
  #next = 0;

  /**
   * @param published - The checkpoint that the ledger is published with, if any.
   * @throws NorthrootError `NOTE_MALFORMED` when an anchor is no checkpoint
   */
  constructor(anchors: readonly Anchor[], published?: Anchor, earlier: readonly EarlierAnchor[] = []) {
    const watch = ({ name, note }: Anchor, isPublished: boolean): Watched => {
      return { name, isEarlier: false, isPublished, note: parseAnchor(name, note), root: undefined };
    };
    this.#inOrder = [
      ...(published === undefined ? [] : [watch(published, true)]),
      ...anchors.map((anchor) => watch(anchor, false)),
      ...earlier.map(({ name, checkpoint }) => {
        return { name, isEarlier: true, isPublished: false, note: unsigned(checkpoint), root: undefined };
      }),
    ];
    this.#bySize = [...this.#inOrder].sort((a, b) => a.note.checkpoint.size - b.note.checkpoint.size);
  }

  /** The tree size of the next anchor; Infinity for none. */
  get nextSize(): number {
    return this.#bySize[this.#next]?.note.checkpoint.size ?? Infinity;
  }

  /**
   * MUST be called for the empty tree, and when the tree reaches {@link AnchorWatch.nextSize}.
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
   * Replaces {@link AnchorWatch.observe} for every tree up to one that was verified before.
   *
   * @param findRoot - The root of that ledger at a checkpoint's size, where known.
   * @returns Whether all needed roots are known: nothing was changed otherwise.
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

  restart(): void {
    this.#next = 0;
    for (const anchor of this.#inOrder) anchor.root = undefined;
    this.observe(emptyRange());
  }

  /** The ledger's roots at the anchors so far, by size. */
  roots(): Map<number, string> {
    return new Map(
      this.#bySize
        .slice(0, this.#next)
        .map(({ note, root }) => [note.checkpoint.size, root as string] as const),
    );
  }

  sizes(): number[] {
    return this.#inOrder.map(({ note }) => note.checkpoint.size);
  }

  /** The outcome of each, in the given order. MUST be called at the end. */
  judge(state: VerifyState): AnchorOutcome[] {
    return this.#inOrder.flatMap(({ name, isEarlier, isPublished, note, root }) => {
      const relation = relationOf(state, note, root);
      if (isEarlier && relation === 'extends') return [];
      const { size } = note.checkpoint;
      const signatures = judgeLedgerNote(
        state,
        note,
        (key, as) =>
          (as === 'log' ? findRoleProblem(key, ['checkpoint']) : undefined) ??
          findRevocationProblem(key, size),
        size,
      );
      return { name, isPublished, note, relation, root, signatures };
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

function unsigned(checkpoint: Checkpoint): SignedCheckpoint {
  return { checkpoint, text: '', signatures: [] };
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
