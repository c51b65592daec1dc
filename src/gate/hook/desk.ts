/** Who decides for a hook: a service on a socket, or the ledger itself. */

import { NorthrootError } from '../../base/error.js';
import type { JsonValue } from '../../base/json/value.js';

export interface DeskCall {
  readonly ref: string | undefined;
  readonly session: string;
  readonly principal: string;
  /** A ToolName (SPEC §2). */
  readonly tool: string;
  readonly params: JsonValue;
}

export interface DeskDecision {
  readonly effect: 'allow' | 'deny' | 'ask' | 'rewrite';
  readonly code: string;
  readonly reason: string | undefined;
  /** The call's id, to release it: assigned where the host has none. */
  readonly ref: string;
  /** The recorded decision, `sha-256:…`. */
  readonly authorization: string;
  /** For `rewrite`. */
  readonly params?: unknown;
  /** For `ask`: patterns of principals who may approve. */
  readonly approvers?: readonly string[] | undefined;
}

export interface DeskOutcome {
  readonly outcome: 'success' | 'failure' | 'unknown';
  /** `sha-256:…` */
  readonly outputDigest: string | undefined;
  readonly errorCode: string | undefined;
  readonly durationMs: number | undefined;
}

export interface Desk {
  /** @param waitMs - How long to wait for approvals, in milliseconds */
  decide(call: DeskCall, options: { readonly waitMs: number }, signal: AbortSignal): Promise<DeskDecision>;
  settle(call: DeskCall, outcome: DeskOutcome, signal: AbortSignal): Promise<void>;
  release(call: DeskCall, signal: AbortSignal): Promise<void>;
  /**
   * Of all its principals.
   * @param mayHaveRun - Whether its calls are settled as unknown rather than given back
   */
  releaseSession(session: string, mayHaveRun: boolean, signal: AbortSignal): Promise<void>;
}

/** Errors that are an answer: this call may not run, whatever happens where no ledger can be asked. */
const REFUSALS: ReadonlySet<string> = new Set([
  'CALL_LIMIT',
  'CALL_NOT_FOUND',
  'HOOK_INPUT_INVALID',
  'NOT_ALLOWED',
  'REQUEST_CONFLICT',
  'TOKEN_INVALID',
  'USAGE',
]);

/** Whether an error refuses the call, rather than that nobody could be asked. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError) return true;
  return error instanceof NorthrootError && REFUSALS.has(error.code);
}

/** How long a call may take: a build or a test may run for hours, and what is never reported ends with its session. In milliseconds. */
export const HOOK_TTL_MS = 24 * 3_600_000;
