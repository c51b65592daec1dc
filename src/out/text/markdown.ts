/** Text as Markdown (CommonMark, and the tables of GitHub and GitLab). */

import { printable } from '../../base/bytes/printable.js';

/**
 * The project's own words, so that nothing in them is markup. Not for outside text: hosts look for mentions, addresses and numbers of
 * issues after Markdown is parsed. Use {@link markdownCode} for that.
 */
export function escapeMarkdown(text: string): string {
  return printable(text, Infinity)
    .replace(/[\\`*_{}[\]()#+!|~]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replace(/^(\s*(?:-|\d+[.)]))(?=\s|$)/, (mark) => `${mark.slice(0, -1)}\\${mark.slice(-1)}`);
}

/**
 * Outside text as a span of code, in which nothing is markup, no host links anything, and which no table's cell ends early. It is one
 * line, cut to `limit` characters.
 */
export function markdownCode(text: string, limit = 200): string {
  // No escape holds in a span but that of a cell's end, which GitHub takes off before it looks for spans.
  const line = printable(text, limit).replaceAll('|', '\\u{7c}');
  if (line === '') return '';
  const runs = line.match(/`+/g) ?? [];
  const fence = '`'.repeat(Math.max(0, ...runs.map(({ length }) => length)) + 1);
  const isPadded = /^[` ]|[` ]$/.test(line);
  return isPadded ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`;
}
