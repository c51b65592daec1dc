/** What a program that shows a text says in it of itself: how more is seen, and what to do. Without it the texts say what is. */

import type { FindingCode } from '../../format/finding/catalog.js';

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

/** Says where there is more, where somebody knows. */
export function moreOf(words: string | undefined, before: string, after = ''): string {
  return words === undefined ? '' : `${before}${words}${after}`;
}

/** What was not checked, and what would have it checked. */
export function notCheckedText(
  item: { readonly code: string; readonly message: string; readonly required?: boolean },
  guide: Guide,
): string {
  return `${item.required === true ? 'required: ' : ''}${item.message}${moreOf(guide.notChecked?.(item.code), ' (', ')')}`;
}
