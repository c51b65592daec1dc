/**
 * Applies stored lines to a state block by block, as `verify` does: examined together, signatures in batches, and no objects made for
 * scannable records. The result is that of `verifyLine`.
 */

import { allocateScratch } from '../../base/bytes/concat.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import type { ExaminedLine, WellFormedLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES, type RawLine } from '../../format/record/line-splitter.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import type { LineKnowledge } from '../../rules/verify/line-knowledge.js';
import type { Judged, SegmentName } from '../../rules/verify/line-result.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { isFastPathOn } from '../scan/scanned-line.js';
import { EVENT_ID, ROW_WIDTH } from '../scan/scan.js';
import { B64_LENGTH } from '../scan/tables.js';
import { FastStep } from '../fast-step.js';
import { examineBlock, type Examiner, makeExaminer } from './examine-block.js';
import { BlockKnowledge } from './read-blocks.js';

const NEWLINE = 0x0a;
const BLOCK_BYTES = 512 * 1024;
/** Fewer lines take less time than preparing a block. */
const MIN_LINES = 64;
/** With more keys, signatures are not verified in batches. */
const MAX_KEYS = 1_000;

/** A state, and the step for lines that the fast path declines. */
export interface LineSteps {
  readonly state: VerifyState;
  step(line: RawLine, segment: SegmentName, examined?: ExaminedLine, known?: LineKnowledge): void;
  /** Called for each line that the fast path applied. */
  readonly afterFast?: (line: RawLine, examined: WellFormedLine, judged: Judged) => void;
}

export class BlockSteps {
  readonly #steps: LineSteps;
  readonly #blockBytes: number;
  readonly #minLines: number;
  /** The lines that wait, with their `\n`. */
  #bytes: Uint8Array = new Uint8Array();
  #used = 0;
  readonly #lines: RawLine[] = [];
  #segment: SegmentName = { file: '', firstSeq: undefined };
  #examiner: Examiner | undefined;
  #fastStep: FastStep | undefined;

  /** @param sizes - For tests: the bytes of a block, and the fewest lines for one. */
  constructor(steps: LineSteps, { blockBytes = BLOCK_BYTES, minLines = MIN_LINES } = {}) {
    this.#steps = steps;
    this.#blockBytes = blockBytes;
    this.#minLines = minLines;
  }

  get waiting(): number {
    return this.#lines.length;
  }

  /** Adds the next line. It is copied. */
  async apply(line: RawLine, segment: SegmentName): Promise<void> {
    const needed = line.length + 1;
    // There is nothing to examine in it.
    const isAlone = line.length === 0 || !line.terminated || line.length > MAX_LINE_BYTES;
    const isOther = segment.file !== this.#segment.file || segment.firstSeq !== this.#segment.firstSeq;
    if (isAlone || isOther || this.#used + needed > this.#blockBytes) await this.flush();
    if (isAlone) {
      this.#fastStep?.reset();
      this.#steps.step(line, segment);
      return;
    }
    // A new one for each block: the examined lines refer to it.
    if (this.#used === 0) this.#bytes = allocateScratch(Math.max(this.#blockBytes, needed));
    const start = this.#used;
    this.#bytes.set(line.bytes, start);
    this.#bytes[start + line.length] = NEWLINE;
    this.#used += needed;
    this.#segment = segment;
    this.#lines.push({ ...line, bytes: this.#bytes.subarray(start, start + line.length) });
  }

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
          const judged = fastStep.tryApplyObserved(fast, line, examined);
          if (judged !== undefined) {
            this.#steps.afterFast?.(line, examined, judged);
            continue;
          }
        }
        // Any other line may change what it remembers.
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
