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
  northroot_forwarded_total: 'Requests forwarded to the leader, by outcome.',
  northroot_takeovers_total: 'How often this service began to lead.',
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

  /** Adds own lines to the families of {@link writeMetrics}. */
  list({ gauges, labels }: Omit<MetricsSource, 'metrics'>, families: Families): void {
    for (const [name, series] of this.#counters) {
      const lines = families.of(name, 'counter', HELP[name]);
      for (const [own, value] of series) lines.push(`${name}${join(labels, own)} ${value}`);
    }
    const name = 'northroot_decision_seconds';
    const lines = families.of(name, 'histogram', 'How long decisions took.');
    for (const [index, bound] of BUCKETS.entries())
      lines.push(`${name}_bucket${join(labels, `{le="${bound}"}`)} ${this.#buckets[index]}`);
    lines.push(`${name}_bucket${join(labels, '{le="+Inf"}')} ${this.#decided}`);
    const own = join(labels, '{}');
    lines.push(`${name}_sum${own} ${this.#seconds}`, `${name}_count${own} ${this.#decided}`);
    for (const [gauge, value] of Object.entries(gauges))
      families.of(gauge, 'gauge').push(`${gauge}${own} ${value}`);
  }
}

export interface MetricsSource {
  readonly metrics: Metrics;
  /** Present values by name. */
  readonly gauges: Readonly<Record<string, number>>;
  /** Of all its lines. */
  readonly labels: Labels;
}

/** Lines by the metric's name: all of one stand together, whosever they are. */
class Families {
  readonly #families = new Map<string, string[]>();

  of(name: string, type: 'counter' | 'gauge' | 'histogram', help?: string): string[] {
    let lines = this.#families.get(name);
    if (lines === undefined) {
      lines = [...(help === undefined ? [] : [`# HELP ${name} ${help}`]), `# TYPE ${name} ${type}`];
      this.#families.set(name, lines);
    }
    return lines;
  }

  write(): string {
    return `${[...this.#families.values()].flat().join('\n')}\n`;
  }
}

export function writeMetrics(sources: readonly MetricsSource[]): string {
  const families = new Families();
  for (const { metrics, ...own } of sources) metrics.list(own, families);
  return families.write();
}

/** Labels before those that are written already. */
function join(labels: Labels, written: string): string {
  const parts = [format(labels), written].map((text) => text.slice(1, -1)).filter((text) => text !== '');
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}

function format(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replace(/[^A-Za-z0-9_.:/* -]/g, '_').slice(0, 64)}"`,
  );
  return `{${pairs.join(',')}}`;
}
