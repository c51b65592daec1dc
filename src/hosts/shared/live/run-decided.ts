/** A call that a gate has allowed, and begun: it is run, and what became of it is recorded. */

import { NorthrootError } from '../../../base/error.js';
import type { AmountsByUnit } from '../../../base/value/meter.js';
import type { CallName, Gate } from '../../../gate/gate.js';
import type { GuardedOutcome } from '../../../log/agent/errors.js';
import { codeOf } from '../../../log/agent/guard.js';

/** What a function says of its own call, all of it optional. */
export interface CallReport {
  /** What it used, by unit; the rest of what was reserved counts as used. */
  readonly used?: AmountsByUnit | undefined;
  /** Any JSON, or bytes; its digest is recorded. */
  readonly output?: unknown;
}

export interface RanCall {
  readonly outcome: 'success' | 'failure' | 'unknown';
  readonly result: Exclude<GuardedOutcome, { readonly kind: 'left' }>;
  readonly errorCode: string | undefined;
  readonly durationMs: number;
}

/** The call ran, and what became of it could not be recorded: see `cause`, whose `code` this has. It stays open until it is settled. */
export class UnsettledCallError extends NorthrootError {
  readonly outcome: GuardedOutcome;

  constructor(outcome: GuardedOutcome, cause: unknown) {
    const known = cause instanceof NorthrootError ? cause : undefined;
    super(
      known?.code ?? 'INTERNAL_ERROR',
      `what was done is not recorded: ${known?.message ?? String(cause)}`,
      {
        cause,
        hint: 'settle the call when the cause is gone',
      },
    );
    this.name = 'UnsettledCallError';
    this.outcome = outcome;
  }
}

/**
 * Runs the function of a begun call and settles it: `success`; `failure` with the error's `code`, else `ERROR`; `unknown` if it threw after
 * an abort.
 * @param report - What the function has said of the call by its end
 * @throws UnsettledCallError with the function's result
 */
export async function runDecided<T>(
  gate: Gate,
  call: CallName,
  run: () => T | PromiseLike<T>,
  report: () => CallReport,
  signal?: AbortSignal,
): Promise<RanCall> {
  const since = performance.now();
  let result: RanCall['result'];
  try {
    result = { kind: 'returned', value: await run() };
  } catch (error) {
    result = { kind: 'threw', error };
  }
  const durationMs = Math.max(0, Math.ceil(performance.now() - since));
  const failed = signal?.aborted === true ? 'unknown' : 'failure';
  const outcome = result.kind === 'returned' ? 'success' : failed;
  const errorCode = outcome === 'failure' ? codeOf(result) : undefined;
  const { used, output } = report();
  try {
    await gate.settle(call, { outcome, errorCode, durationMs, used, output });
  } catch (error) {
    throw new UnsettledCallError(result, error);
  }
  return { outcome, result, errorCode, durationMs };
}
