/**
 * Principal patterns prepared for matching in logarithmic time: a key may have thousands (SPEC §7), and every signature is matched.
 */

export interface PrincipalSet {
  readonly ids: ReadonlySet<string>;
  /** The prefixes before a final `*`, sorted; none is a prefix of another. */
  readonly prefixes: readonly string[];
}

/** Prepares well-formed patterns. */
export function makePrincipalSet(patterns: readonly string[]): PrincipalSet {
  const isPrefix = (pattern: string): boolean => pattern.endsWith('*');
  const prefixes: string[] = [];
  const sorted = patterns
    .filter(isPrefix)
    .map((pattern) => pattern.slice(0, -1))
    .sort((a, b) => (a < b ? -1 : a === b ? 0 : 1));
  for (const prefix of sorted) {
    const last = prefixes.at(-1);
    if (last === undefined || !prefix.startsWith(last)) prefixes.push(prefix);
  }
  return { ids: new Set(patterns.filter((pattern) => !isPrefix(pattern))), prefixes };
}

/** Whether a pattern matches a well-formed PrincipalID: a final `*` matches one or more characters. */
export function coversPrincipal({ ids, prefixes }: PrincipalSet, principal: string): boolean {
  if (ids.has(principal)) return true;
  // No prefix begins with another, so only the last one that is not after the id can match.
  let low = 0;
  let high = prefixes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((prefixes[middle] as string) <= principal) low = middle + 1;
    else high = middle;
  }
  const prefix = prefixes[low - 1];
  return prefix !== undefined && principal.length > prefix.length && principal.startsWith(prefix);
}
