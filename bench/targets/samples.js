/** Samples of one task, of all rounds together. */

/** Of times the least, of rates and memory the most. */
export function bestOf(known, sample) {
  const isMore = (name) => ['rate', 'rss'].includes(name);
  const choose = (name, a, b) => (isMore(name) ? Math.max(a, b) : Math.min(a, b));
  return Object.fromEntries(
    Object.entries(sample)
      .filter(([, value]) => typeof value === 'number')
      .map(([name, value]) => [name, choose(name, known?.[name] ?? value, value)]),
  );
}
