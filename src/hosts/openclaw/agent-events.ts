/** The host's own stream of events of a run. A tool's start there comes before the hook that may block it, so it is no execution. */

import { canonicalBytes } from '../../base/json/canonicalize.js';
import type { SourceObject, SourceValue } from '../../base/json/source-json.js';
import type { HostPlace } from '../shared/host.js';
import { jcsDigest, numberAt, objectAt, plainJson, textAt, timeOf, valueAt } from '../shared/values.js';
import type { CallReport, Calls } from './calls.js';
import { type ClaimBase, type Context, factsOf } from './context.js';
import type { Entry } from './entries.js';
import { isSame } from './same.js';

const SEQ = /^[1-9]\d{0,14}$/;

/** One run's events, from its start to its end. A run's id may be used again by the session's next run. */
interface Segment {
  readonly key: string;
  readonly events: Map<number, { readonly at: HostPlace; readonly event: SourceValue }>;
  readonly isFirstOfFile: boolean;
  started: HostPlace | undefined;
  ended: HostPlace | undefined;
  last: number;
}

/** All agent events of one reading. */
export class AgentEvents {
  readonly #context: Context;
  readonly #calls: Calls;
  readonly #segments = new Map<string, Segment>();
  readonly #all: Segment[] = [];
  /** Results of calls that no hook announced: their hooks may still come. */
  readonly #unhooked: { readonly entry: Entry; readonly base: ClaimBase; readonly report: CallReport }[] = [];

  constructor(context: Context, calls: Calls) {
    this.#context = context;
    this.#calls = calls;
  }

  /** @param isFirst - Whether nothing stands before it in its file: what it follows may have been cut off. */
  read(entry: Entry, event: SourceObject, recordedAt: string | undefined, isFirst: boolean): void {
    const context = this.#context;
    const runId = textAt(event, 'runId') ?? '~';
    const stream = textAt(event, 'stream') ?? '';
    const phase = textAt(event, 'data', 'phase');
    const seqText = numberAt(event, 'seq') ?? '';
    // Listeners get each event twice: the digest is of the event, not of the record that one of them wrote.
    const plain = plainJson(event);
    const said = context.base(
      entry,
      timeOf(numberAt(event, 'ts'), 'ms') ?? recordedAt,
      context.principalOf(event),
    );
    if (said === undefined) return;
    const base = plain === undefined ? said : { ...said, bytes: canonicalBytes(plain) };
    const seq = SEQ.test(seqText) ? Number(seqText) : 0;
    if (seq === 0) {
      context.find('SEQ_INVALID', entry.at, { about: runId, actual: seqText === '' ? 'none' : seqText });
      context.evidence(
        entry,
        base,
        `agent-event:${runId}/~${jcsDigest(event)?.b64 ?? ''}`,
        'agent_event',
        this.#facts(event, runId),
      );
      return;
    }
    let segment = this.#segments.get(runId);
    const isRestart =
      stream === 'lifecycle' && phase === 'start' && segment?.ended !== undefined && seq === 1;
    if (segment === undefined || (isRestart && !isSame(segment.events.get(1)?.event, event)))
      segment = this.#start(runId, isFirst);
    const known = segment.events.get(seq);
    if (known !== undefined) {
      if (isSame(known.event, event)) {
        context.fate(entry, 'repeated', 'SAME_EVENT');
        return;
      }
      context.find('SEQ_CONFLICT', entry.at, { about: `${segment.key}/${seq}`, related: [known.at] });
      const id = `agent-event:${segment.key}/${seq}~${jcsDigest(event)?.b64.slice(0, 22) ?? ''}`;
      context.evidence(entry, base, id, 'agent_event', this.#facts(event, runId));
      return;
    }
    segment.events.set(seq, { at: entry.at, event });
    if (seq < segment.last) {
      const details = { about: segment.key, expected: `after ${segment.last}`, actual: `${seq}` };
      context.find('SEQ_ORDER', entry.at, details);
    }
    segment.last = Math.max(segment.last, seq);
    this.#bracket(entry.at, runId, segment, stream, phase);
    this.#approval(base, event, runId);
    if (stream === 'tool' && phase === 'start')
      this.#calls.asked(entry.at, context.scopeOf(event), runId, objectAt(event, 'data'));
    if (stream === 'tool' && phase === 'result' && this.#result(entry, base, event, runId)) return;
    context.evidence(
      entry,
      base,
      // The session's next run may have the same id and numbers, in another file.
      `agent-event:${runId}/${seq}@${numberAt(event, 'ts') ?? segment.key}`,
      'agent_event',
      this.#facts(event, runId),
    );
  }

  /** OC-4 and OC-6, and the results that are alone: once all hooks are known. */
  finish(): void {
    for (const { entry, base, report } of this.#unhooked) this.#calls.report(entry, base, report);
    for (const segment of this.#all) {
      this.#checkGaps(segment);
      if (segment.started === undefined && segment.events.has(1))
        this.#context.find('RUN_NOT_STARTED', segment.events.get(1)!.at, { about: segment.key });
      if (segment.ended === undefined)
        this.#context.find('RUN_NOT_ENDED', segment.events.get(segment.last)!.at, { about: segment.key });
    }
  }

  #start(runId: string, isFirstOfFile: boolean): Segment {
    const key = this.#context.uniqueId(`run-events:${runId}`).slice('run-events:'.length);
    const segment: Segment = {
      ...{ key, events: new Map(), isFirstOfFile, started: undefined, ended: undefined, last: 0 },
    };
    this.#segments.set(runId, segment);
    this.#all.push(segment);
    return segment;
  }

  #bracket(at: HostPlace, runId: string, segment: Segment, stream: string, phase: string | undefined): void {
    const context = this.#context;
    const isStart = stream === 'lifecycle' && phase === 'start';
    const isEnd = stream === 'lifecycle' && (phase === 'end' || phase === 'error');
    // A run whose id the session's next run has, with numbers that continue.
    if (isStart && segment.ended !== undefined) segment.ended = segment.started = undefined;
    if (segment.ended !== undefined)
      context.find('EVENT_AFTER_END', at, { about: segment.key, related: [segment.ended] });
    if (isStart && segment.started !== undefined && segment.ended === undefined)
      context.find('RUN_STARTED_TWICE', at, { about: segment.key, related: [segment.started] });
    if (isStart) segment.started = at;
    if (isEnd) {
      segment.ended = at;
      this.#calls.runEnded(runId);
    }
  }

  #checkGaps(segment: Segment): void {
    const seen = [...segment.events.keys()].sort((a, b) => a - b);
    let expected = 1;
    for (const seq of seen) {
      if (seq !== expected) {
        // What a recording begins after is not missing from it.
        const isCut = expected === 1 && segment.isFirstOfFile;
        this.#context.find('SEQ_GAP', segment.events.get(seq)!.at, {
          about: segment.key,
          expected: `${expected}`,
          actual: `${seq}`,
          weight: isCut ? 'warning' : 'invalid',
        });
      }
      expected = seq + 1;
    }
  }

  #approval(base: ClaimBase, event: SourceObject, runId: string): void {
    const data = objectAt(event, 'data');
    const callId = textAt(data, 'toolCallId');
    if (
      textAt(event, 'stream') !== 'approval' ||
      textAt(data, 'phase') !== 'resolved' ||
      callId === undefined
    )
      return;
    const resolution = textAt(data, 'decision') ?? textAt(data, 'status');
    if (resolution !== undefined) this.#calls.resolve(base, runId, callId, resolution);
  }

  /** What a tool gave back. Whether the item's fate is said with it. */
  #result(entry: Entry, base: ClaimBase, event: SourceObject, runId: string): boolean {
    const context = this.#context;
    const data = objectAt(event, 'data');
    const callId = textAt(data, 'toolCallId');
    if (callId === undefined) return false;
    const report: CallReport = {
      source: 'agent_event',
      scope: context.scopeOf(event),
      runId,
      callId,
      tool: textAt(data, 'name'),
      args: undefined,
      result: valueAt(data, 'result'),
      isError: valueAt(data, 'isError') === true,
    };
    if (this.#calls.ofRun(runId, callId) === undefined) this.#unhooked.push({ entry, base, report });
    else this.#calls.report(entry, base, report);
    return true;
  }

  #facts(event: SourceObject, runId: string): ReturnType<typeof factsOf> {
    return factsOf({
      run: runId,
      stream: textAt(event, 'stream'),
      phase: textAt(event, 'data', 'phase'),
      seq: numberAt(event, 'seq'),
      tool: textAt(event, 'data', 'name'),
      call: textAt(event, 'data', 'toolCallId'),
      data_digest: jcsDigest(valueAt(event, 'data')),
    });
  }
}
