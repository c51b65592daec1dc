/** What is asked of a ledger together shares one write and one sync. */

/** No more is asked at once, and begins after an abort or a failure. */
const GROUP_SIZE = 500;

/**
 * Does something for each item, many at once, in their order; what has begun is waited for.
 * @throws what it threw for the first that failed; the signal's reason
 */
export async function inGroups<T, R>(
  items: readonly T[],
  act: (item: T) => Promise<R>,
  signal?: AbortSignal,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += GROUP_SIZE) {
    signal?.throwIfAborted();
    for (const end of await Promise.allSettled(items.slice(at, at + GROUP_SIZE).map(act))) {
      if (end.status === 'rejected') throw end.reason;
      results.push(end.value);
    }
  }
  return results;
}
