/** The ledger's span of time: where each record is in it, and what happened when. */

import { compareTimestamps, isTimestamp } from '../../../base/value/timestamp.js';
import type { Report } from '../../../rules/report/report.js';
import { Column } from './columns.js';
import type { Mark, Timeline } from './protocol.js';
import type { RecordTable } from './record-table.js';

const BINS = 96;
const MAX_MARKS = 200;

export class TimeAxis {
  readonly #records: RecordTable;
  /** The latest time up to each record, in milliseconds: time does not run back. */
  readonly #clock = new Column((length) => new Float64Array(length));
  #first: string | undefined;
  #last: string | undefined;

  constructor(records: RecordTable) {
    this.#records = records;
  }

  /** Adds the time of the next record. */
  add(occurredAt: string | undefined): void {
    this.#clock.push(Math.max(this.#clock.at(this.#clock.length - 1), this.#millisecondsOf(occurredAt)));
  }

  /** Where a record is in the ledger's span of time, from 0 to 1; by order where all have one time. */
  positionOf(ordinal: number): number {
    const [from, to] = this.#span();
    if (!(to > from)) return this.#records.length <= 1 ? 0 : ordinal / (this.#records.length - 1);
    const clock = this.#clock.at(ordinal);
    return Number.isFinite(clock) ? Math.min(1, Math.max(0, (clock - from) / (to - from))) : 0;
  }

  #span(): readonly [from: number, to: number] {
    let first = 0;
    while (first < this.#records.length - 1 && !Number.isFinite(this.#clock.at(first))) first += 1;
    return [this.#clock.at(first), this.#clock.at(this.#records.length - 1)];
  }

  /** The end of what a checkpoint seals: its own record, where that follows. */
  #sealEnd(sealed: number): number {
    if (sealed < this.#records.length && this.#records.kindAt(sealed) === 'checkpoint') return sealed;
    return Math.min(sealed, this.#records.length) - 1;
  }

  draw(report: Report): Timeline {
    const [from, to] = this.#span();
    const bins = Array.from({ length: BINS }, () => ({ ok: 0, denied: 0, violation: 0, invalid: 0 }));
    const marks: Record<'checkpoints' | 'refused' | 'violations' | 'invalid', Mark[]> = {
      checkpoints: [],
      refused: [],
      violations: [],
      invalid: [],
    };
    const mark = (list: Mark[], ordinal: number, x: number): void => {
      if (list.length < MAX_MARKS) list.push({ ordinal, x });
    };
    for (let i = 0; i < this.#records.length; i++) {
      const x = this.positionOf(i);
      const verdict = this.#records.verdictAt(i);
      const bin = bins[Math.min(BINS - 1, Math.floor(x * BINS))];
      if (bin !== undefined) bin[verdict] += 1;
      if (this.#records.kindAt(i) === 'checkpoint') mark(marks.checkpoints, i, x);
      if (verdict === 'denied') mark(marks.refused, i, x);
      if (verdict === 'violation') mark(marks.violations, i, x);
      if (verdict === 'invalid') mark(marks.invalid, i, x);
    }
    const sealed = report.checkpoints.last_tree_size;
    const isSealed = sealed !== null && sealed > 0 && this.#records.length > 0;
    return {
      from: this.#first ?? '',
      to: this.#last ?? '',
      isByTime: to > from,
      bins,
      ...marks,
      sealedX: isSealed ? this.positionOf(this.#sealEnd(sealed)) : undefined,
      sealedRecords: sealed ?? 0,
      unsealedRecords: report.checkpoints.unsealed,
    };
  }

  #millisecondsOf(occurredAt: string | undefined): number {
    if (occurredAt === undefined || !isTimestamp(occurredAt)) return -Infinity;
    if (this.#first === undefined || compareTimestamps(occurredAt, this.#first) < 0) this.#first = occurredAt;
    if (this.#last === undefined || compareTimestamps(occurredAt, this.#last) > 0) this.#last = occurredAt;
    return Date.parse(occurredAt.replace(/\.(\d{3})\d*Z$/, '.$1Z'));
  }
}
