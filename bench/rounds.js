/** Measures tasks in turns, so that a slow moment of the machine hits all of them alike, and takes medians. */

/**
 * Each task once to warm up, then in `rounds` turns.
 *
 * @param tasks - `name`, `records` and perhaps `bytes` that one `run()` deals with.
 * @returns The tasks' names with the median rates; `ratio` is how many times as fast as the first task one is.
 */
export async function measureInTurns(tasks, rounds) {
  const times = tasks.map(() => []);
  for (let round = 0; round <= rounds; round += 1) {
    for (const [index, task] of tasks.entries()) {
      const start = performance.now();
      await task.run();
      if (round > 0) times[index].push((performance.now() - start) / 1000);
    }
  }
  const rows = tasks.map(({ name, records, bytes }, index) => {
    const seconds = median(times[index]);
    return { name, records_per_s: records / seconds, mb_per_s: bytes && bytes / 1e6 / seconds };
  });
  return rows.map((row) => ({ ...row, ratio: row.records_per_s / rows[0].records_per_s }));
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
