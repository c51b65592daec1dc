/** The log of an adapter's events: lines of JSON, in the order in which they happened, written beside the calls. */

import type { JsonObject } from '../../../base/json/value.js';
import { LineLog } from '../../../log/fs/line-log.js';
import { type Told } from './tell.js';

/** Where events go: a file, which is added to, or a function. */
export type EventSink = string | ((event: JsonObject) => void);

/** In which vocabulary events are written: the ratified one of 19 types, or the draft's of 18. */
export type LiveVocabulary = 'ratified' | 'draft';

const SCHEMA_VERSION = '0.3.0';
const MILLISECONDS = 1_000;
/** Proposals whose last time is remembered. */
const MAX_TIMES = 10_000;

export class EventLog {
  readonly #vocabulary: LiveVocabulary;
  readonly #take: (event: JsonObject) => void;
  readonly #log: LineLog | undefined;
  /** By proposal: what happened later is not told to be earlier, whatever the clock does. */
  readonly #times = new Map<string, number>();

  constructor(sink: EventSink | undefined, vocabulary: LiveVocabulary, onProblem: (error: unknown) => void) {
    this.#vocabulary = vocabulary;
    const log = typeof sink === 'string' ? new LineLog(sink, onProblem) : undefined;
    this.#log = log;
    this.#take = (event) => {
      if (log !== undefined) log.add(JSON.stringify(event));
      else if (typeof sink === 'function') {
        // A listener's errors must not reach the call.
        try {
          sink(event);
        } catch (error) {
          onProblem(error);
        }
      }
    };
  }

  add(adapterId: string, told: readonly Told[], proposalId?: string, decisionId?: string): void {
    for (const [type, payload] of told) {
      const timestamp = this.#timeOf(proposalId);
      this.#take(
        this.#vocabulary === 'draft'
          ? {
              ...{ event_type: type, event_type_enum: type.toUpperCase(), adapter_id: adapterId, timestamp },
              payload,
              correlation_id: proposalId ?? null,
            }
          : {
              ...{ schema_version: SCHEMA_VERSION, event_type: type, adapter_id: adapterId, timestamp },
              ...{ proposal_id: proposalId ?? null, decision_id: decisionId ?? null },
              payload,
            },
      );
    }
  }

  flush(): Promise<void> {
    return this.#log?.flush() ?? Promise.resolve();
  }

  async close(): Promise<void> {
    await this.#log?.close();
  }

  #timeOf(proposalId: string | undefined): number {
    const now = Date.now() / MILLISECONDS;
    if (proposalId === undefined) return now;
    const time = Math.max(now, this.#times.get(proposalId) ?? 0);
    this.#times.set(proposalId, time);
    const [oldest] = this.#times.keys();
    if (this.#times.size > MAX_TIMES && oldest !== undefined) this.#times.delete(oldest);
    return time;
  }
}
