/**
 * The fast step (`fast-step.ts`) over records that are made here, one at a time. Their signatures were made or verified when they
 * were admitted; everything else the step asks of the line, as it does when a ledger is verified.
 */

import { writeLatin1 } from '../../base/bytes/text.js';
import { VALID } from '../blocks/verdicts.js';
import { isFastPathOn, signatureCountOf } from '../scan/scanned-line.js';
import { relate } from '../scan/relate.js';
import { ROW_WIDTH } from '../scan/row.js';
import { FastStep } from '../fast-step.js';
import type { RawLine } from '../../format/record/line-splitter.js';
import { hashToBase64url, leafHash } from '../../format/tree/compact-range.js';
import type { EventVerdict } from '../../rules/verify/line-result.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { FastEvent } from './fast-line.js';

const HASH_BYTES = 32;
/** The step looks at the leaf of the line before: two lines take turns. */
const LINES = 2;
/** So many signatures a made line has at most. */
const MAX_SIGNATURES = 1;

/** See the head of this file. */
export class WriterFastPath {
  readonly state: VerifyState;
  readonly #step: FastStep;
  /** What is known of the two lines, as of those of a block. */
  readonly #facts = {
    lines: LINES,
    ends: new Int32Array(LINES),
    leaves: new Uint8Array(LINES * HASH_BYTES),
    nodes: new Uint8Array(),
    ordinal: 0,
    rowAt: new Int32Array(LINES),
    rows: new Int32Array(ROW_WIDTH),
    verdictsAt: new Int32Array(LINES + 1),
    verdicts: new Uint8Array(MAX_SIGNATURES).fill(VALID),
    declared: [],
  };
  readonly #rowBytes = new Uint8Array(this.#facts.rows.buffer);
  #index = 0;
  #prev: string | undefined;

  private constructor(state: VerifyState, step: FastStep) {
    this.state = state;
    this.#step = step;
  }

  /** The steps over lines that follow a state; undefined where each is `verifyLine`'s. */
  static of(state: VerifyState): WriterFastPath | undefined {
    const step = isFastPathOn() ? FastStep.of(state, { isTold: true }) : undefined;
    return step && new WriterFastPath(state, step);
  }

  /** The leaf hash of the last line, base64url; undefined where the state says it itself. */
  get prev(): string | undefined {
    return this.#prev;
  }

  /**
   * Steps over the line of a scannable record that was placed.
   *
   * @returns Its verdict; undefined where `verifyLine` is to be asked, after {@link WriterFastPath.leave}: nothing was changed then.
   */
  tryApply({ rows, at, line: examined }: FastEvent, line: RawLine, file: string): EventVerdict | undefined {
    const count = signatureCountOf(rows, at);
    if (count > MAX_SIGNATURES) return undefined;
    const index = 1 - this.#index;
    // Others than those of the line before: the step remembers what it read of these.
    const facts = { ...this.#facts };
    const { bytes, number, offset, length } = line;
    const leaf = leafHash(bytes);
    writeLatin1(facts.leaves, leaf, index * HASH_BYTES);
    facts.rows.set(rows.subarray(at * ROW_WIDTH, (at + 1) * ROW_WIDTH));
    relate(bytes, facts.rows, this.#rowBytes, facts.rowAt, facts.leaves, 1);
    facts.verdictsAt[index] = 0;
    facts.verdictsAt[index + 1] = count;
    const segment = { file, firstSeq: undefined };
    const fast = { facts, bytes, segment, index, number, offset, length };
    const verdict = this.#step.tryApplyObserved(fast, line, examined);
    if (verdict === undefined) return undefined;
    this.#index = index;
    // Whoever is told of the line sees the state as it is after it.
    this.#prev = this.state.observer === undefined ? hashToBase64url(leaf) : undefined;
    return verdict;
  }

  /** Puts what was counted into the state, before anybody else looks at it. */
  flush(): void {
    if (this.#prev === undefined) return;
    this.#step.flush();
    this.#prev = undefined;
  }

  /** The same before somebody else steps over a line. */
  leave(): void {
    this.flush();
    this.#step.reset();
  }
}
