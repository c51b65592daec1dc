/** Suggestions for an unknown name. */

const MAX_SUGGESTIONS = 3;

/** The known names of which `text` is a prefix or a part, or at most two edits away; nearest first, at most three. */
export function suggest(text: string, known: readonly string[]): string[] {
  if (text === '' || text.length > 64) return [];
  const wanted = text.toLowerCase();
  const ranked = known
    .map((name) => ({ name, rank: rankOf(wanted, name.toLowerCase()) }))
    .filter(({ rank }) => rank < Infinity)
    .sort((a, b) => a.rank - b.rank);
  return ranked.slice(0, MAX_SUGGESTIONS).map(({ name }) => name);
}

/** `did you mean A, B or C?`; undefined if no known name is near. */
export function didYouMean(text: string, known: readonly string[]): string | undefined {
  const names = suggest(text, known);
  const last = names.pop();
  if (last === undefined) return undefined;
  return `did you mean ${names.length === 0 ? '' : `${names.join(', ')} or `}${last}?`;
}

function rankOf(wanted: string, name: string): number {
  const distance = editDistance(wanted, name);
  if (distance <= Math.min(2, Math.floor(name.length / 3))) return distance;
  if (name.startsWith(wanted)) return 3;
  return wanted.length > 2 && name.includes(wanted) ? 4 : Infinity;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 0; i < a.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1) {
      const replaced = (row[j] as number) + (a[i] === b[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] as number) + 1, (next[j] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
