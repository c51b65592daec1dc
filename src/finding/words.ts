/**
 * The one module that turns findings into words. Whatever comes from a ledger is made printable here; the codes are the
 * contract, the words are not.
 */

import { printable } from '../bytes/printable.js';
import { CODE_PAGES } from './catalog.js';
import type { Finding } from './finding.js';

/** One line saying what was found, without its place: lower case, no full stop. */
export function describeFinding(finding: Finding): string {
  let message: string = CODE_PAGES[finding.code].title;
  if (finding.at.pointer !== undefined && finding.at.pointer !== '')
    message += ` at ${printable(finding.at.pointer)}`;
  if (finding.expected !== undefined) message += `: expected ${printable(finding.expected)}`;
  if (finding.actual !== undefined) {
    message += `${finding.expected === undefined ? ':' : ','} found ${printable(finding.actual)}`;
  }
  const [related] = finding.related ?? [];
  if (related !== undefined) message += ` (see ${printable(related.file)}:${related.line})`;
  return message;
}

/** What to do about a finding, as one line. */
export function hintFor(finding: Finding): string {
  return CODE_PAGES[finding.code].remedy;
}
