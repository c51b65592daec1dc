/** A desk over a gate of this process: each hook opens the ledger. */

import { parseDigest } from '../../base/value/digest.js';
import { defined } from '../../base/defined.js';
import type { CallName, Gate } from '../gate.js';
import { releaseSession } from '../release-session.js';
import { type Desk, type DeskCall, type DeskDecision, type DeskOutcome, HOOK_TTL_MS } from './desk.js';

/** Decides for hooks by a gate of this process. */
export class GateDesk implements Desk {
  readonly #gate: Gate;

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  async decide(
    call: DeskCall,
    { waitMs }: { readonly waitMs: number },
    signal: AbortSignal,
  ): Promise<DeskDecision> {
    const { ref, ...rest } = call;
    const decision = await this.#gate.decide(
      {
        ...rest,
        ...defined({ ref }),
        ttlMs: HOOK_TTL_MS,
        start: false,
        coverage: 'hook',
      },
      { signal, ...(waitMs === 0 ? {} : { waitMs }) },
    );
    return { ...decision, approvers: decision.need?.approvers };
  }

  async settle(call: DeskCall, outcome: DeskOutcome, signal: AbortSignal): Promise<void> {
    const { outputDigest, errorCode, durationMs } = outcome;
    await this.#gate.settle(
      nameOf(call),
      {
        outcome: outcome.outcome,
        ...defined({ errorCode, durationMs }),
        ...(outputDigest === undefined ? {} : { outputDigest: parseDigest(outputDigest) }),
      },
      { signal },
    );
  }

  async release(call: DeskCall, signal: AbortSignal): Promise<void> {
    await this.#gate.release(nameOf(call), { signal });
  }

  async releaseSession(session: string, mayHaveRun: boolean, signal: AbortSignal): Promise<void> {
    await releaseSession(this.#gate, session, { signal, mayHaveRun });
  }
}

function nameOf({ ref, session, principal, tool, params }: DeskCall): CallName {
  return ref === undefined ? { session, principal, tool, params } : { ref, session, principal };
}
