/**
 * `northroot/otel`: a span processor for OpenTelemetry that records tool calls from spans of the GenAI conventions (`execute_tool`). Seen:
 * `@opentelemetry/sdk-trace-base` 2.12.1. It is evidence, no guard: a span cannot be stopped. What the grants deny has run all the same;
 * then the denial is recorded, and a warning says so.
 */

import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { describeValue } from '../../base/options.js';
import { escapeToolName } from '../../base/value/tool.js';
import type { Gate, GateCall, GateDecision } from '../gate.js';
import { checkMethod, tryDigest } from './shared.js';

export interface EvidenceOptions extends Pick<GateCall, 'principal' | 'userIntentDigest' | 'grantId'> {
  /** Called for a call that the grants deny, and that runs all the same. Default: the process warning `NORTHROOT_NOT_STOPPED`. */
  readonly onDenied?: ((decision: GateDecision, tool: string) => void) | undefined;
  /** Called where a span could not be recorded. Default: the process warning `NORTHROOT_UNRECORDED`. */
  readonly onUnrecorded?: ((message: string) => void) | undefined;
}

export interface EvidenceSpan {
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  spanContext(): { readonly traceId: string; readonly spanId: string };
}

/** What is used of a span that has ended: `status.code` is 2 for an error, `duration` seconds and nanoseconds. */
export interface EndedSpan extends EvidenceSpan {
  readonly status: { readonly code: number };
  readonly duration: readonly [number, number];
}

/** The most spans that are open or waiting at a time; others are not recorded, which is told. */
export const MAX_OPEN_SPANS = 10_000;

const NAME = /^execute_tool (.+)$/s;
const STATUS_ERROR = 2;
const CODE = /^[A-Z0-9_]{1,64}$/;

/**
 * For `spanProcessors` of a tracer provider. The call is recorded when its span starts, under the trace's and the span's id, and settled when
 * it ends. Parameters and result are those of `gen_ai.tool.call.arguments`, as known at the start, and `gen_ai.tool.call.result`: their
 * digests only. Nothing is said of spans that are not sampled, that have another name, or that never end.
 * @example
 * const provider = new BasicTracerProvider({ spanProcessors: [new EvidenceProcessor(gate)] });
 */
export class EvidenceProcessor {
  readonly #gate: Gate;
  readonly #options: EvidenceOptions;
  /** Whether their calls were recorded as begun, of spans that have not ended. */
  readonly #open = new Map<string, Promise<boolean>>();
  /** What is being recorded. */
  readonly #waiting = new Set<Promise<unknown>>();

  /** @throws TypeError unless it is given a gate */
  constructor(gate: Gate, options: EvidenceOptions = {}) {
    checkMethod('EvidenceProcessor', 'a gate', gate, 'decide');
    this.#gate = gate;
    this.#options = options;
  }

  /** Records that the call of an `execute_tool` span begins. */
  onStart(span: EvidenceSpan, _context?: unknown): void {
    const tool = toolOf(span);
    if (tool === undefined) return;
    const { session, ref } = idOf(span);
    if (this.#open.size + this.#waiting.size >= MAX_OPEN_SPANS) {
      this.#tell(tool, new RangeError(`more than ${MAX_OPEN_SPANS} spans are open`));
      return;
    }
    this.#open.set(`${session} ${ref}`, this.#keep(this.#decide(span, tool)));
  }

  onEnd(span: EndedSpan): void {
    const { session, ref } = idOf(span);
    const name = `${session} ${ref}`;
    const began = this.#open.get(name);
    if (began === undefined) return;
    this.#open.delete(name);
    void this.#keep(this.#settle(span, began));
  }

  /** Resolves when all that has happened is recorded. */
  async forceFlush(): Promise<void> {
    while (this.#waiting.size > 0) await Promise.all(this.#waiting);
  }

  /** As {@link EvidenceProcessor.forceFlush}. The gate stays open: close it after. */
  async shutdown(): Promise<void> {
    await this.forceFlush();
  }

  async #decide(span: EvidenceSpan, tool: string): Promise<boolean> {
    const { onDenied, onUnrecorded, ...rest } = this.#options;
    void onUnrecorded;
    try {
      const params = paramsOf(span.attributes['gen_ai.tool.call.arguments']);
      const decision = await this.#gate.decide({
        ...rest,
        ...idOf(span),
        tool: escapeToolName(tool),
        params,
        coverage: 'sdk',
      });
      if (decision.start !== undefined) return true;
      if (onDenied !== undefined) queueMicrotask(() => onDenied(decision, tool));
      else
        process.emitWarning(`${printable(tool, 80)} runs though it was denied: ${decision.code}`, {
          code: 'NORTHROOT_NOT_STOPPED',
        });
    } catch (error) {
      this.#tell(tool, error);
    }
    return false;
  }

  async #settle(span: EndedSpan, began: Promise<boolean>): Promise<void> {
    if (!(await began)) return;
    const { status, attributes, duration } = span;
    const [seconds, nanoseconds] = duration;
    const failed = status.code === STATUS_ERROR;
    const type = attributes['error.type'];
    const kind = typeof type === 'string' ? type.toUpperCase() : '';
    try {
      const { principal } = this.#options;
      await this.#gate.settle(
        { ...idOf(span), principal },
        {
          outcome: failed ? 'failure' : 'success',
          durationMs: seconds * 1000 + nanoseconds / 1e6,
          ...defined({
            errorCode: failed ? (CODE.test(kind) ? kind : 'ERROR') : undefined,
            outputDigest: tryDigest(attributes['gen_ai.tool.call.result']),
          }),
        },
      );
    } catch (error) {
      this.#tell(toolOf(span) ?? span.name, error);
    }
  }

  /** Never rejects: what it waits for tells of its errors itself. */
  #keep<T>(work: Promise<T>): Promise<T> {
    this.#waiting.add(work);
    void work.finally(() => this.#waiting.delete(work));
    return work;
  }

  #tell(tool: string, error: unknown): void {
    const why = error instanceof Error ? error.message : describeValue(error);
    const message = `a call of ${printable(tool, 80)} is not recorded: ${printable(why, 400)}`;
    const { onUnrecorded } = this.#options;
    // A listener's errors must not reach the processor.
    if (onUnrecorded !== undefined) queueMicrotask(() => onUnrecorded(message));
    else process.emitWarning(message, { code: 'NORTHROOT_UNRECORDED' });
  }
}

function idOf(span: EvidenceSpan): { readonly session: string; readonly ref: string } {
  const { traceId, spanId } = span.spanContext();
  return { session: traceId, ref: spanId };
}

/** The tool of an `execute_tool` span, by its attributes or by its name; undefined for other spans. */
function toolOf({ name, attributes }: EvidenceSpan): string | undefined {
  const [, named] = NAME.exec(name) ?? [];
  const tool = attributes['gen_ai.tool.name'];
  if (named === undefined && attributes['gen_ai.operation.name'] !== 'execute_tool') return undefined;
  return typeof tool === 'string' && tool !== '' ? tool : named;
}

/** Attributes carry JSON as a text. */
function paramsOf(stated: unknown): unknown {
  if (typeof stated !== 'string') return {};
  try {
    return JSON.parse(stated);
  } catch {
    return stated;
  }
}
