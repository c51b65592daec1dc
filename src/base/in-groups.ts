/** What is asked of a ledger together shares one write and one sync. */

/** No more is asked at once, and begins after an abort. */
const GROUP_SIZE = 500;

/**
 * Does something for each item, many at once, in their order; what has begun is waited for. What fails for one keeps no other from being
 * done.
 * @returns How each ended, in their order
 * @throws the signal's reason
 */
export async function tryInGroups<T, R>(
  items: readonly T[],
  act: (item: T) => Promise<R>,
  signal?: AbortSignal,
): Promise<PromiseSettledResult<R>[]> {
  const ends: PromiseSettledResult<R>[] = [];
  for (let at = 0; at < items.length; at += GROUP_SIZE) {
    signal?.throwIfAborted();
    ends.push(...(await Promise.allSettled(items.slice(at, at + GROUP_SIZE).map(act))));
  }
  return ends;
}

/**
 * As {@link tryInGroups}.
 * @throws after all of them, what it threw for the first that failed; the signal's reason
 */
export async function inGroups<T, R>(
  items: readonly T[],
  act: (item: T) => Promise<R>,
  signal?: AbortSignal,
): Promise<R[]> {
  return (await tryInGroups(items, act, signal)).map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
}
