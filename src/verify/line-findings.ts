/** Collects the findings of one line: knows the line's place, and folds findings that repeat an earlier cause. */

import { CODE_PAGES, type FindingCode } from '../finding/catalog.js';
import type { Finding, Place, RelatedRecord, Severity } from '../finding/finding.js';
import type { ExaminedLine, LineIssue } from '../ledger/examine-line.js';
import type { RawLine } from '../ledger/line-splitter.js';
import type { VerifyState } from './state.js';

/** What a rule says of the line that it judges. */
export interface RuleFinding extends LineIssue {
  readonly related?: readonly RelatedRecord[];
  /** Overrides the code's own severity; anything less than an error does not touch the verdict. */
  readonly severity?: Severity;
  /** Findings with the same cause after the first only add to its count. */
  readonly cause?: string;
}

/** No more causes than this are remembered; further ones are listed one by one. */
const MAX_FOLD_ROOTS = 4_096;

export class LineFindings {
  /** The findings to list, in the order of the rules. */
  readonly listed: Finding[] = [];
  invalid = false;
  violation = false;
  readonly #state: VerifyState;
  readonly #line: RawLine;
  readonly #file: string;
  #examined: ExaminedLine | undefined;

  constructor(state: VerifyState, line: RawLine, file: string) {
    this.#state = state;
    this.#line = line;
    this.#file = file;
  }

  /** From here on findings name the record that the line was read as. */
  setRecord(examined: ExaminedLine): void {
    this.#examined = examined;
  }

  add(code: FindingCode, detail: Omit<RuleFinding, 'code'> = {}): void {
    const page = CODE_PAGES[code];
    const severity = detail.severity ?? page.severity;
    const findingClass = severity === 'error' ? page.class : 'none';
    if (findingClass === 'invalid') this.invalid = true;
    if (findingClass === 'violation') this.violation = true;
    const cause = detail.cause === undefined ? undefined : `${code} ${severity} ${detail.cause}`;
    const root = cause === undefined ? undefined : this.#state.foldRoots.get(cause);
    if (root !== undefined) {
      root.folded = (root.folded ?? 0) + 1;
      return;
    }
    const finding: Finding = {
      code,
      severity,
      class: findingClass,
      at: this.#place(detail),
      seq: this.#examined?.seq,
      eventId: this.#examined?.eventId === undefined ? undefined : `sha-256:${this.#examined.eventId}`,
      ...(detail.expected === undefined ? {} : { expected: detail.expected }),
      ...(detail.actual === undefined ? {} : { actual: detail.actual }),
      ...(detail.related === undefined ? {} : { related: detail.related }),
    };
    if (cause !== undefined && this.#state.foldRoots.size < MAX_FOLD_ROOTS)
      this.#state.foldRoots.set(cause, finding);
    this.listed.push(finding);
  }

  #place(detail: LineIssue | Omit<RuleFinding, 'code'>): Place {
    const offset = detail.offset;
    return {
      file: this.#file,
      line: this.#line.number,
      byteOffset: this.#line.offset + (offset ?? 0),
      byteLength: offset === undefined ? this.#line.length : Math.min(1, this.#line.length - offset),
      ...(detail.pointer === undefined ? {} : { pointer: detail.pointer }),
    };
  }
}
