/** How the texts of reports write rows and numbers. */

import type { ChangedRecord } from '../../rules/report/causes.js';

/** A labelled row. */
export function row(name: string, text: string): string {
  return `  ${name.padEnd(11)} ${text}`;
}

/** `1 record`, `2,000 records`. */
export function count(n: number, noun: string): string {
  return `${grouped(n)} ${noun}${n === 1 ? '' : 's'}`;
}

/** That a record was changed, and what is of that. */
export function describeChange({ own, consequences }: ChangedRecord): string {
  const follow =
    consequences === 0
      ? ''
      : `, ${grouped(consequences)} more ${consequences === 1 ? 'follows' : 'follow'} from it`;
  return `was changed first: ${count(own, 'finding')} on it${follow}`;
}

/** With thousands separators, the same in every locale. */
export function grouped(n: number): string {
  return String(n).replace(/\B(?=(?:\d{3})+$)/g, ',');
}
