/** How the page writes numbers, times and lists. */

import { count } from '../../text/words.js';

export { count, countsText, grouped } from '../../text/words.js';

/** `2 grants`, `1 action`: what there is any of. */
export function counted(...counts: readonly (readonly [n: number, noun: string])[]): string[] {
  return counts.filter(([n]) => n > 0).map(([n, noun]) => count(n, noun));
}

/** `a, b and c`; of long lists the first ones. */
export function listOf(items: readonly string[], limit = 4): string {
  const shown =
    items.length > limit ? [...items.slice(0, limit), `${items.length - limit} more`] : [...items];
  const last = shown.pop() ?? '';
  return shown.length === 0 ? last : `${shown.join(', ')} and ${last}`;
}

/** `2026-03-01 12:00:05`; other text unchanged. */
export function timeText(timestamp: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(timestamp);
  return match === null ? timestamp : `${match[1]} ${match[2]}`;
}

/** `3.4 MB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return count(bytes, 'byte');
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
