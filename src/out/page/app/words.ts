/** How the page writes numbers, times and lists. */

/** `1,234`. */
export function grouped(n: number): string {
  return String(n).replace(/\B(?=(?:\d{3})+$)/g, ',');
}

/** `1 record`, `2,000 records`. */
export function count(n: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(n)} ${n === 1 ? noun : plural}`;
}

/** `a, b and c`; of long lists the first ones. */
export function listOf(items: readonly string[], limit = 4): string {
  const shown =
    items.length > limit ? [...items.slice(0, limit), `${items.length - limit} more`] : [...items];
  const last = shown.pop() ?? '';
  return shown.length === 0 ? last : `${shown.join(', ')} and ${last}`;
}

/** `2026-03-01 12:00:05`; what is no timestamp as it is. */
export function timeText(timestamp: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(timestamp);
  return match === null ? timestamp : `${match[1]} ${match[2]}`;
}

/** `3.4 MB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return count(bytes, 'byte');
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
