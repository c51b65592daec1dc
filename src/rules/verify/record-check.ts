/**
 * Further checks of verified records, made only where a caller asks for them. Their findings never change a verdict, nor the state: they are
 * counted and listed with the others.
 */

import type { Finding } from '../../format/finding/finding.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import type { RawLine } from '../../format/record/line-splitter.js';
import type { ReportJson } from '../../format/schema/generated/types.js';
import { LineFindings } from './line-findings.js';
import type { EventVerdict } from './line-result.js';
import type { VerifiedRecord } from './verified-record.js';

/** A check of records. It serves one verification. */
export interface RecordCheck {
  /**
   * Whether it sees a record with this verdict. It is asked of each, and those that no check sees cost little more.
   * @param bytes - The line, without its newline.
   */
  readonly wants: (verdict: EventVerdict, bytes: () => Uint8Array) => boolean;
  /** What it finds, with pointers from the event's root. MUST change nothing of the record's state. */
  readonly check: (record: VerifiedRecord) => readonly RuleFinding[];
  /** Called once, after the last record. */
  readonly finish: () => FurtherResult;
}

export interface FurtherResult {
  readonly notChecked: readonly { readonly code: 'DECISIONS' | 'PRICES'; readonly message: string }[];
  readonly report: Pick<ReportJson, 'decisions' | 'prices'>;
}

export class FurtherChecks {
  /** How many findings there were. */
  total = 0;
  /** How many of them were warnings. */
  warnings = 0;
  readonly #checks: readonly RecordCheck[];

  constructor(checks: readonly RecordCheck[]) {
    this.#checks = checks;
  }

  wants(verdict: EventVerdict, bytes: () => Uint8Array): boolean {
    return this.#checks.some((each) => each.wants(verdict, bytes));
  }

  check(record: VerifiedRecord, line: RawLine): Finding[] {
    const { examined, state, file, verdict } = record;
    const bytes = (): Uint8Array => line.bytes;
    const found = this.#checks.flatMap((each) => (each.wants(verdict, bytes) ? each.check(record) : []));
    if (found.length === 0 || examined === undefined) return [];
    const findings = new LineFindings(state, line, file);
    findings.setRecord(examined);
    Object.assign(findings.context, { grantIds: record.grantIds });
    const root = findings.eventRoot;
    const made = found.map((each) =>
      findings.make(each.code, each, each.pointer === undefined ? undefined : `${root}${each.pointer}`),
    );
    this.total += made.length;
    this.warnings += made.filter(({ severity }) => severity === 'warning').length;
    return made;
  }

  finish(): FurtherResult[] {
    return this.#checks.map((each) => each.finish());
  }
}
