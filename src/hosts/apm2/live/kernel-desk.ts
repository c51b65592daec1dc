/**
 * The kernel's side of an episode: it takes an agent's lines, decides on its requests through the gate, executes what is allowed, and
 * answers. Every request is answered once; what cannot be recorded is not answered, and stops the episode.
 */

import { encodeBase64url, encodeHex, tryDecodeBase64url } from '../../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { abortCode, startDeadline } from '../../../base/deadline.js';
import { NorthrootError } from '../../../base/error.js';
import type { AmountsByUnit } from '../../../base/value/meter.js';
import type { Digest } from '../../../base/value/digest.js';
import type { Check } from '../../../format/schema/generated/types.js';
import type { Gate, GateDecision } from '../../../gate/gate.js';
import {
  isDenied,
  type KernelDenial,
  type KernelPlan,
  type KernelResult,
  type KernelTools,
} from '../../../gate/kernel/kernel-tool.js';
import { replan } from '../../../gate/kernel/replan.js';
import { contentName, type ContentStore } from '../../../log/contents/content-store.js';
import { blake3Hex } from '../../shared/forms/cac.js';
import { codeOf, toolOf } from '../../shared/names.js';
import { MAX_RECEIPT_HASHES } from '../receipt.js';
import type { ToolBridge } from './launch-profile.js';
import { type Frame, type FrameRequest, readFrame } from './read-frame.js';
import type { EpisodeNames, Recording } from './recording.js';

/** Why an episode is stopped: the reason of its blocked review, and in which way. */
export interface Stop {
  readonly reason:
    | 'ADAPTER_MISCONFIGURED'
    | 'ADAPTER_PROTOCOL_VIOLATION'
    | 'TIMEOUT'
    | 'TOOL_FAILED'
    | (string & {});
  readonly detail: string;
}

/** Where results are kept for the agent, by their digest. */
export type ResultStore = Pick<ContentStore, 'put'>;

export interface DeskOptions {
  readonly gate: Gate;
  readonly grantId: string;
  readonly principal: string;
  readonly names: EpisodeNames;
  readonly nonce: string;
  readonly bridge: ToolBridge | undefined;
  /** Tools of the kernel by the names that the agent has for them. */
  readonly capabilities: ReadonlyMap<string, string>;
  readonly tools: KernelTools;
  readonly results: ResultStore;
  readonly recording: Recording;
  /** Recorded with every decision. */
  readonly checks: readonly Check[];
  /** What the budget allows of each unit that it caps. */
  readonly caps: Readonly<Partial<Record<'time.ms' | 'bytes.evidence', number>>>;
  /** How long to wait for approvals, in milliseconds. */
  readonly waitMs: number | undefined;
  /** The longest excerpt of a result, in bytes; 0 for none. */
  readonly excerptBytes: number;
  /** Aborted when the episode is stopped. */
  readonly signal: AbortSignal;
  readonly onStop: (stop: Stop, cause?: unknown) => void;
}

export interface DeskCounts {
  requests: number;
  allowed: number;
  denied: number;
  duplicates: number;
  guesses: number;
  forged: number;
  successful: number;
  failed: number;
  bytesIo: bigint;
  wallMs: bigint;
}

/** So many requests with another nonce are guesses. */
const MAX_GUESSES = 3;
/** The most requests of an episode: its index has room for so many receipts. */
export const MAX_REQUESTS = MAX_RECEIPT_HASHES;
const MAX_DUPLICATES = 100;
/** How long after its tool's own end a call is settled at the latest, in milliseconds. */
const SETTLE_MS = 60_000;
const MAX_CODE = /^[A-Z0-9_]{1,64}$/;

export class KernelDesk {
  readonly counts: DeskCounts = {
    requests: 0,
    allowed: 0,
    denied: 0,
    duplicates: 0,
    guesses: 0,
    forged: 0,
    successful: 0,
    failed: 0,
    bytesIo: 0n,
    wallMs: 0n,
  };
  readonly #options: DeskOptions;
  readonly #seen = new Set<string>();
  #evidenceBytes = 0;

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  /** Takes a line of the agent. @returns the lines that answer it; none for what is no request */
  async take(line: string, isWhole = true): Promise<readonly string[]> {
    const { nonce, bridge, recording, signal } = this.#options;
    if (signal.aborted || !isWhole) {
      await recording.output(line);
      return [];
    }
    const frame = readFrame(line, nonce, bridge?.maxArgsSize ?? 0);
    if (frame.kind === 'output' || frame.kind === 'forged') {
      if (frame.kind === 'forged') this.counts.forged += 1;
      await recording.output(line);
      return [];
    }
    await recording.frame(line);
    if (bridge === undefined) return this.#stop('ADAPTER_MISCONFIGURED', 'TOOL_BRIDGE_DISABLED');
    return this.#frame(frame, bridge);
  }

  async #frame(
    frame: Exclude<Frame, { kind: 'output' | 'forged' }>,
    bridge: ToolBridge,
  ): Promise<readonly string[]> {
    const { counts } = this;
    if (frame.kind === 'guess') {
      counts.guesses += 1;
      return counts.guesses < MAX_GUESSES ? [] : this.#stop('ADAPTER_PROTOCOL_VIOLATION', 'NONCE_GUESSING');
    }
    if (frame.kind === 'unreadable') return this.#stop('ADAPTER_PROTOCOL_VIOLATION', 'MALFORMED_FRAME');
    const { requestId } = frame;
    if (this.#seen.has(requestId)) {
      counts.duplicates += 1;
      if (counts.duplicates > MAX_DUPLICATES)
        return this.#stop('ADAPTER_PROTOCOL_VIOLATION', 'DUPLICATE_REQUEST_ID');
      return this.#deny(requestId, 'DUPLICATE_REQUEST_ID');
    }
    if (this.#seen.size >= MAX_REQUESTS) return this.#stop('ADAPTER_PROTOCOL_VIOLATION', 'TOO_MANY_REQUESTS');
    this.#seen.add(requestId);
    counts.requests += 1;
    if (frame.kind === 'refused') {
      await this.#decide(frame, {}, { denial: { code: frame.code, reason: 'the request cannot be read' } });
      return this.#deny(requestId, frame.code);
    }
    return this.#request(frame, bridge);
  }

  async #request(request: FrameRequest, bridge: ToolBridge): Promise<readonly string[]> {
    const { recording, names, capabilities, tools } = this.#options;
    const { requestId, toolName, args, argsBytes } = request;
    const about = { episode_id: names.episodeId, session_id: names.sessionId, request_id: requestId };
    const argsHash = blake3Hex(argsBytes);
    await recording.row('tool_requested', { ...about, tool_name: toolName, tool_args_hash: argsHash });
    const kernelClass = capabilities.get(toolName);
    const plan =
      kernelClass === undefined
        ? { denied: 'TI1_UNKNOWN_TOOL', reason: 'the profile maps no such tool' }
        : tools.plan(kernelClass, args);
    const reserve = isDenied(plan) ? {} : this.#reserveOf(plan, bridge);
    const decision = await this.#decide(
      { ...request, kernelClass },
      reserve,
      isDenied(plan)
        ? { denial: { code: codeOf(plan.denied), reason: plan.reason } }
        : { resources: plan.resources, timeoutMs: bridge.toolTimeoutMs },
    );
    if (decision === undefined) return [];
    const isAllowed = decision.effect === 'allow' || decision.effect === 'rewrite';
    const code = MAX_CODE.test(decision.code) ? decision.code : codeOf(decision.code);
    await recording.row('tool_decided', {
      ...about,
      decision: isAllowed ? 'ALLOW' : 'DENY',
      rule_id: 'northroot',
      rationale_code: code,
      policy_hash: this.#policyHash,
    });
    if (!isAllowed || isDenied(plan)) return this.#deny(requestId, code);
    this.counts.allowed += 1;
    const toolClass = kernelClass ?? toolName;
    const decided =
      decision.effect === 'rewrite' ? replan(plan, tools.plan(toolClass, decision.params)) : plan;
    return this.#execute(request, toolClass, decided, reserve, bridge, argsHash);
  }

  /** Undefined where the episode was stopped meanwhile. */
  async #decide(
    request: {
      readonly requestId: string;
      readonly toolName: string;
      readonly args?: unknown;
      readonly kernelClass?: string | undefined;
    },
    reserve: AmountsByUnit,
    more: {
      readonly denial?: { readonly code: string; readonly reason: string };
      readonly resources?: KernelPlan['resources'];
      readonly timeoutMs?: number;
    },
  ): Promise<GateDecision | undefined> {
    const { gate, grantId, principal, names, checks, signal, waitMs } = this.#options;
    const { requestId, toolName, args = {}, kernelClass } = request;
    try {
      return await gate.decide(
        {
          ref: requestId,
          session: names.episodeId,
          principal,
          tool: toolOf(kernelClass ?? toolName),
          params: args,
          reserve,
          grantId,
          coverage: 'kernel',
          resources: more.resources,
          ttlMs: more.timeoutMs === undefined ? undefined : more.timeoutMs + SETTLE_MS,
          found: more.denial === undefined ? { checks } : { checks, denial: more.denial },
        },
        waitMs === undefined ? { signal } : { signal, waitMs },
      );
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
      return undefined;
    }
  }

  async #execute(
    request: FrameRequest,
    toolClass: string,
    plan: KernelPlan | KernelDenial,
    reserve: AmountsByUnit,
    bridge: ToolBridge,
    argsHash: string,
  ): Promise<readonly string[]> {
    const { recording, names, results, gate, principal } = this.#options;
    const { requestId, toolName, argsBytes } = request;
    const startedAtNs = recording.nowNs();
    const run = await this.#run(plan, bridge, Number(reserve['bytes.evidence'] ?? Infinity));
    const call = { ref: requestId, session: names.episodeId, principal };
    let outputDigest: Digest;
    try {
      outputDigest = await results.put(run.output);
    } catch (error) {
      await gate
        .settle(call, { outcome: 'failure', errorCode: 'RESULT_NOT_STORED', durationMs: run.ms })
        .catch(() => undefined);
      this.#options.onStop({ reason: 'ADAPTER_MISCONFIGURED', detail: 'RESULT_NOT_STORED' }, error);
      return [];
    }
    const resultHash = contentName(outputDigest);
    this.#evidenceBytes += run.evidenceBytes;
    this.counts.wallMs += BigInt(run.ms);
    this.counts.bytesIo += BigInt(argsBytes.length + run.output.length);
    if (run.outcome === 'success') this.counts.successful += 1;
    else this.counts.failed += 1;
    let execution: string | undefined;
    try {
      const { recorded } = await gate.settle(call, {
        outcome: run.outcome,
        errorCode: run.errorCode,
        used: { 'bytes.evidence': run.evidenceBytes },
        durationMs: run.ms,
        outputDigest,
      });
      execution = recorded?.eventId;
    } catch (error) {
      this.#fail(error);
      return [];
    }
    const isTimeout = run.errorCode === 'TIMEOUT';
    await recording.row('tool_executed', {
      episode_id: names.episodeId,
      session_id: names.sessionId,
      request_id: requestId,
      outcome: run.outcome === 'failure' ? (isTimeout ? 'TIMEOUT' : 'FAILURE') : run.outcome.toUpperCase(),
      result_hash: resultHash,
      duration_ms: BigInt(run.ms),
    });
    await recording.receipt({
      requestId,
      capabilityId: toolName,
      toolClass,
      argsHash,
      resultHash,
      timeEnvelopeRef: hexOfEvent(execution),
      startedAtNs,
      durationNs: BigInt(run.ms) * 1_000_000n,
    });
    const { nonce, excerptBytes } = this.#options;
    const answer = `\u27E6TR1 ${nonce}\u27E7 ${requestId} ok ${resultHash}`;
    await recording.answer(answer);
    if (excerptBytes === 0) return [answer];
    const excerpt = `\u27E6TX1 ${nonce}\u27E7 ${requestId} ${encodeBase64url(run.output.subarray(0, excerptBytes))}`;
    await recording.output(excerpt);
    return [answer, excerpt];
  }

  async #run(
    plan: KernelPlan | KernelDenial,
    { toolTimeoutMs, maxResultSize }: ToolBridge,
    maxEvidenceBytes: number,
  ): Promise<{
    readonly outcome: KernelResult['outcome'];
    readonly errorCode: string | undefined;
    readonly output: Uint8Array;
    readonly evidenceBytes: number;
    readonly ms: number;
  }> {
    const since = performance.now();
    const failed = (errorCode: string, ms: number) => ({
      outcome: 'failure' as const,
      errorCode,
      output: encodeUtf8(JSON.stringify({ error: errorCode })),
      evidenceBytes: 0,
      ms,
    });
    // It was allowed, and cannot be done as it was rewritten.
    if (isDenied(plan)) return failed(codeOf(plan.denied), 0);
    const limit = startDeadline(toolTimeoutMs, [this.#options.signal]);
    const result = await plan.run(limit.signal).finally(limit.clear);
    const measured = result.used['time.ms'];
    const ms = Math.max(0, Math.ceil(measured === undefined ? performance.now() - since : Number(measured)));
    const { outcome, errorCode, output } = result;
    if (outcome !== 'success' && abortCode(limit.signal) === 'TIMEOUT') return failed('TIMEOUT', ms);
    if (output.length > Math.min(maxResultSize, maxEvidenceBytes)) return failed('RESULT_TOO_LARGE', ms);
    const code = outcome === 'failure' ? (errorCode ?? 'ERROR') : errorCode;
    return { outcome, errorCode: code, output, evidenceBytes: output.length, ms };
  }

  /** What the tool may use at most, within what the budget has left of it. */
  #reserveOf({ reserve }: KernelPlan, { toolTimeoutMs, maxResultSize }: ToolBridge): AmountsByUnit {
    const { caps } = this.#options;
    const left = (unit: 'time.ms' | 'bytes.evidence', used: number, most: number): number => {
      const asked = Math.min(Number(reserve[unit] ?? most), most);
      const cap = caps[unit];
      return Math.max(1, cap === undefined ? asked : Math.min(asked, cap - used));
    };
    return {
      ...reserve,
      'time.ms': left('time.ms', Number(this.counts.wallMs), toolTimeoutMs + SETTLE_MS),
      'bytes.evidence': left('bytes.evidence', this.#evidenceBytes, maxResultSize),
    };
  }

  async #deny(requestId: string, code: string): Promise<readonly string[]> {
    const { nonce, recording, signal } = this.#options;
    if (signal.aborted) return [];
    this.counts.denied += 1;
    const answer = `\u27E6TR1 ${nonce}\u27E7 ${requestId} denied ${code}`;
    await recording.answer(answer);
    return [answer];
  }

  #stop(reason: Stop['reason'], detail: string): readonly string[] {
    this.#options.onStop({ reason, detail });
    return [];
  }

  #fail(error: unknown): void {
    const detail = error instanceof NorthrootError ? error.code : 'LEDGER_FAILED';
    this.#options.onStop({ reason: 'ADAPTER_MISCONFIGURED', detail }, error);
  }

  get #policyHash(): string {
    return this.#options.recording.policy;
  }
}

/** The digest of an event, `sha-256:…`, as hexadecimal: by it a receipt names the ledger's own record of the call. */
function hexOfEvent(eventId: string | undefined): string {
  const bytes = tryDecodeBase64url(eventId?.replace(/^sha-256:/, '') ?? '');
  return bytes?.length === 32 ? encodeHex(bytes) : '0'.repeat(64);
}
