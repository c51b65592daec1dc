/**
 * Steps a state over what is stored, a block of lines at a time, as `verify` does: examined at once, their signatures in batches, and of
 * scannable records no objects made. What is said of a line is what `verifyLine` says of it.
 */

import { allocateScratch } from '../../base/bytes/concat.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import type { ExaminedLine, WellFormedLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES, type RawLine } from '../../format/record/line-splitter.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import type { LineKnowledge } from '../../rules/verify/line-knowledge.js';
import type { EventVerdict, SegmentName } from '../../rules/verify/line-result.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { isFastPathOn } from '../scan/scanned-line.js';
import { EVENT_ID, ROW_WIDTH } from '../scan/scan.js';
import { B64_LENGTH } from '../scan/tables.js';
import { FastStep } from '../fast-step.js';
import { examineBlock, type Examiner, makeExaminer } from './examine-block.js';
import { BlockKnowledge } from './read-blocks.js';

const NEWLINE = 0x0a;
const BLOCK_BYTES = 512 * 1024;
/** Fewer lines are stepped over sooner than a block is prepared for. */
const MIN_LINES = 64;
/** Of so many keys the signatures are verified in batches. */
const MAX_KEYS = 1_000;

/** A state, and how lines are verified by it that the fast step does not take. */
export interface LineSteps {
  readonly state: VerifyState;
  /** Steps over such a line, by `verifyLine`. */
  step(line: RawLine, segment: SegmentName, examined?: ExaminedLine, known?: LineKnowledge): void;
  /** Called for each line that the fast step took: a scannable record, of which nothing is found. */
  readonly afterFast?: (line: RawLine, examined: WellFormedLine, verdict: EventVerdict) => void;
}

/** See the head of this file. */
export class BlockSteps {
  readonly #steps: LineSteps;
  readonly #blockBytes: number;
  readonly #minLines: number;
  /** Those that wait, one behind the other with their `\n`. */
  #bytes: Uint8Array = new Uint8Array();
  #used = 0;
  readonly #lines: RawLine[] = [];
  #segment: SegmentName = { file: '', firstSeq: undefined };
  #examiner: Examiner | undefined;
  #fastStep: FastStep | undefined;

  /** @param sizes - For tests: the bytes of a block, and how many lines are worth one. */
  constructor(steps: LineSteps, { blockBytes = BLOCK_BYTES, minLines = MIN_LINES } = {}) {
    this.#steps = steps;
    this.#blockBytes = blockBytes;
    this.#minLines = minLines;
  }

  /** How many lines were taken and not stepped over yet. */
  get waiting(): number {
    return this.#lines.length;
  }

  /** Takes the next line, which may be overwritten afterwards. */
  async apply(line: RawLine, segment: SegmentName): Promise<void> {
    const needed = line.length + 1;
    // What is nothing to examine.
    const isAlone = line.length === 0 || !line.terminated || line.length > MAX_LINE_BYTES;
    const isOther = segment.file !== this.#segment.file || segment.firstSeq !== this.#segment.firstSeq;
    if (isAlone || isOther || this.#used + needed > this.#blockBytes) await this.flush();
    if (isAlone) {
      this.#fastStep?.reset();
      this.#steps.step(line, segment);
      return;
    }
    // A new one for each block: what is said of its lines may be looked up in it for longer.
    if (this.#used === 0) this.#bytes = allocateScratch(Math.max(this.#blockBytes, needed));
    const start = this.#used;
    this.#bytes.set(line.bytes, start);
    this.#bytes[start + line.length] = NEWLINE;
    this.#used += needed;
    this.#segment = segment;
    this.#lines.push({ ...line, bytes: this.#bytes.subarray(start, start + line.length) });
  }

  /** Steps over all that waits. */
  async flush(): Promise<void> {
    const lines = this.#lines.splice(0);
    const used = this.#used;
    this.#used = 0;
    if (lines.length === 0) return;
    if (lines.length < this.#minLines && this.#examiner === undefined) {
      for (const line of lines) this.#steps.step(line, this.#segment);
      return;
    }
    await this.#stepBlock(lines, this.#bytes.subarray(0, used), this.#segment);
  }

  async #stepBlock(lines: readonly RawLine[], bytes: Uint8Array, segment: SegmentName): Promise<void> {
    const { state } = this.#steps;
    this.#examiner ??= this.#begin();
    const facts = examineBlock(bytes, this.#examiner, 'all');
    const ids: string[] = [];
    for (let base = EVENT_ID; base < facts.rows.length; base += ROW_WIDTH) {
      const at = facts.rows[base] as number;
      ids.push(decodeLatin1(bytes, at, at + B64_LENGTH));
    }
    await state.events.lookAhead?.(ids);
    const fastStep = this.#fastStep;
    try {
      for (const [index, line] of lines.entries()) {
        const known = new BlockKnowledge(facts, bytes, index);
        const examined = known.examine(state.layout, false);
        if (fastStep !== undefined && facts.rowAt[index] !== -1 && examined?.wellFormed === true) {
          const { number, offset, length } = line;
          const fast = { facts, bytes, segment, index, number, offset, length };
          const verdict = fastStep.tryApplyObserved(fast, line, examined);
          if (verdict !== undefined) {
            this.#steps.afterFast?.(line, examined, verdict);
            continue;
          }
        }
        // A line of any other kind may change what it remembers.
        fastStep?.flush();
        fastStep?.reset();
        this.#steps.step(line, segment, examined, known);
      }
    } finally {
      fastStep?.flush();
    }
  }

  #begin(): Examiner {
    const { state } = this.#steps;
    this.#fastStep = isFastPathOn() ? FastStep.of(state, { isTold: true }) : undefined;
    const { keyring } = state;
    const keys = keyring.size > MAX_KEYS ? [] : keyring.save();
    const declared = keys.map(({ key }) => ({ keyid: key.keyid, publicKey: key.public_key }));
    return makeExaminer(defaultBackend, declared);
  }
}
