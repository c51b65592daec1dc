/**
 * The fast step (`fast-step.ts`) over records that a writer makes, one at a time. Their signatures were made or verified when they were
 * admitted. Everything else is checked as when a ledger is verified.
 */

import { writeLatin1 } from '../../base/bytes/text.js';
import { VALID } from '../blocks/verdicts.js';
import { isFastPathOn, signatureCountOf } from '../scan/scanned-line.js';
import { relate } from '../scan/relate.js';
import { ROW_WIDTH } from '../scan/row.js';
import { FastStep } from '../fast-step.js';
import type { RawLine } from '../../format/record/line-splitter.js';
import { hashToBase64url, leafHash } from '../../format/tree/compact-range.js';
import type { Judged } from '../../rules/verify/line-result.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { FastEvent } from './fast-line.js';

const HASH_BYTES = 32;
/** The step compares with the leaf of the line before. */
const LINES = 2;
/** The most signatures of a line made here. */
const MAX_SIGNATURES = 1;

export class WriterFastPath {
  readonly state: VerifyState;
  readonly #step: FastStep;
  /** The facts of two lines, as of a block. */
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

  /** The fast path of a writer; undefined where every line takes the slow path. */
  static of(state: VerifyState): WriterFastPath | undefined {
    const step = isFastPathOn() ? FastStep.of(state, { isTold: true }) : undefined;
    return step && new WriterFastPath(state, step);
  }

  /** The leaf hash of the last line, base64url; undefined where the state has it. */
  get prev(): string | undefined {
    return this.#prev;
  }

  /**
   * Applies the line of a scannable record.
   *
   * @returns Its verdict and what is found; undefined where it declines: nothing was changed then. `verifyLine` MUST be called instead, after
   *   {@link WriterFastPath.leave}.
   */
  tryApply({ rows, at, line: examined }: FastEvent, line: RawLine, file: string): Judged | undefined {
    const count = signatureCountOf(rows, at);
    if (count > MAX_SIGNATURES) return undefined;
    const index = 1 - this.#index;
    // A new object: the step remembers that of the line before.
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
    const applied = this.#step.tryApplyObserved(fast, line, examined);
    if (applied === undefined) return undefined;
    this.#index = index;
    // For an observer the state was flushed.
    this.#prev = this.state.observer === undefined ? hashToBase64url(leaf) : undefined;
    return applied;
  }

  /** Writes all counts to the state. MUST be called before the state is read elsewhere. */
  flush(): void {
    if (this.#prev === undefined) return;
    this.#step.flush();
    this.#prev = undefined;
  }

  /** Flushes and forgets. MUST be called before a line takes the slow path. */
  leave(): void {
    this.flush();
    this.#step.reset();
  }
}
