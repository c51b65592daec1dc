/** What the calling program gives to texts: words, how to see more and what to do, and colours. */

import type { FindingCode } from '../../format/finding/catalog.js';

interface NotChecked {
  readonly code: string;
  readonly message: string;
  readonly required?: boolean;
}

/** Words of a program for the texts of reports. What it does not say is left out. */
export interface Guide {
  /** What to do about a finding. Default: the catalogue's remedy. */
  readonly finding?: (code: FindingCode) => string;
  /** What would have something checked that was not, by its code. */
  readonly notChecked?: (code: string) => string | undefined;
  /** What is missing for a proof to be verified, by the problem's code. */
  readonly proof?: (code: string) => string | undefined;
  /** How a record is shown: by its seq, or the beginning of its id. */
  readonly record?: (ledger: string, reference: string) => string | undefined;
  /** Where there is more of what a text cuts short. */
  readonly more?: {
    readonly denied?: string;
    readonly diff?: string;
    readonly findings?: string;
    readonly grants?: string;
    readonly status?: string;
  };
}

/** Where there is more, if the program says so. */
export function moreOf(words: string | undefined, before: string, after = ''): string {
  return words === undefined ? '' : `${before}${words}${after}`;
}

/** What was not checked, and what would have it checked. */
export function notCheckedText(item: NotChecked, guide: Guide): string {
  return `${item.required === true ? 'required: ' : ''}${item.message}${moreOf(guide.notChecked?.(item.code), ' (', ')')}`;
}

/** A heading and a line for each thing that was not checked; nothing where there is none. */
export function notCheckedLines(list: readonly NotChecked[], paint: Paint, guide: Guide = {}): string[] {
  if (list.length === 0) return [];
  const width = Math.max(...list.map(({ code }) => code.length));
  return [
    '',
    paint('bold', 'not checked'),
    ...list.map((item) => `  ${paint('yellow', item.code.padEnd(width))}  ${notCheckedText(item, guide)}`),
  ];
}

/** Wraps text in a terminal style, or returns it unchanged. */
export type Paint = (style: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string) => string;

export const plainPaint: Paint = (_style, text) => text;
