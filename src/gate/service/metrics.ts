/** Counters of the service in the text format of Prometheus, version 0.0.4. */

type Labels = Readonly<Record<string, string>>;

/** Upper bounds in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** The most label sets of one name; further ones count as `other`. */
const MAX_SERIES = 1_000;

const HELP = {
  northroot_decisions_total: 'Decisions, by effect and code.',
  northroot_settled_total: 'Settled calls, by outcome.',
  northroot_requests_total: 'HTTP requests, by route and status.',
} as const;

type Counter = keyof typeof HELP;

export class Metrics {
  readonly #counters = new Map<Counter, Map<string, number>>();
  readonly #buckets = BUCKETS.map(() => 0);
  #seconds = 0;
  #decided = 0;

  count(name: Counter, labels: Labels): void {
    let series = this.#counters.get(name);
    if (series === undefined) this.#counters.set(name, (series = new Map<string, number>()));
    const own = format(labels);
    const key =
      series.has(own) || series.size < MAX_SERIES
        ? own
        : format(Object.fromEntries(Object.keys(labels).map((label) => [label, 'other'])));
    series.set(key, (series.get(key) ?? 0) + 1);
  }

  /** A decision took so long. */
  observe(seconds: number): void {
    this.#decided += 1;
    this.#seconds += seconds;
    for (const [index, bound] of BUCKETS.entries())
      if (seconds <= bound) this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
  }

  /** @param gauges - Present values by name. */
  write(gauges: Readonly<Record<string, number>>): string {
    const lines: string[] = [];
    for (const [name, series] of this.#counters) {
      lines.push(`# HELP ${name} ${HELP[name]}`, `# TYPE ${name} counter`);
      for (const [labels, value] of series) lines.push(`${name}${labels} ${value}`);
    }
    const name = 'northroot_decision_seconds';
    lines.push(`# HELP ${name} How long decisions took.`, `# TYPE ${name} histogram`);
    for (const [index, bound] of BUCKETS.entries())
      lines.push(`${name}_bucket{le="${bound}"} ${this.#buckets[index]}`);
    lines.push(`${name}_bucket{le="+Inf"} ${this.#decided}`);
    lines.push(`${name}_sum ${this.#seconds}`, `${name}_count ${this.#decided}`);
    for (const [gauge, value] of Object.entries(gauges))
      lines.push(`# TYPE ${gauge} gauge`, `${gauge} ${value}`);
    return `${lines.join('\n')}\n`;
  }
}

function format(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replace(/[^A-Za-z0-9_.:/* -]/g, '_').slice(0, 64)}"`,
  );
  return `{${pairs.join(',')}}`;
}
