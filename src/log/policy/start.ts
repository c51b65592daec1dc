/** Claims an authorization before work begins (SPEC §3.8). */

import { randomBytes } from 'node:crypto';
import { type Digest, formatDigest, parseDigest } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { toRational } from '../../base/value/quantity.js';
import { START_TYPE } from '../../rules/verify/starts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Appended, Entry, Ledger } from '../writer/ledger.js';
import {
  decideUnder,
  draftExecution,
  type ExecutionRequest,
  findPermission,
  type Permission,
  refuse,
} from './record.js';
import { sweepExpired } from './sweep.js';

export interface StartRequest extends Omit<ExecutionRequest, 'now' | 'done'> {
  /** The parameters; MUST be those authorized. */
  readonly paramsDigest: Digest;
  /** The start, or a function called under the write lock. Default: the present, then. */
  readonly now?: string | (() => string);
  /** Aborting withdraws the request; nothing is started then. */
  readonly signal?: AbortSignal | undefined;
}

/** Started under `permission.startId`. */
export interface StartedExecution {
  readonly permission: Permission;
  readonly startedAt: string;
  readonly recorded: Appended;
}

/**
 * Claims an authorization: appends a start (`x.northroot.start`), which every decision counts until an execution settles it. Once the
 * promise resolves, do the work and record it with {@link draftExecution}.
 * @throws NorthrootError as {@link findPermission}, and `TOOL_PARAMS_MISMATCH`; as {@link Ledger.decide}. Nothing is started then.
 */
export async function startExecution(
  ledger: Ledger,
  wanted: string,
  { paramsDigest, now = () => new Date().toISOString(), signal, ...request }: StartRequest,
): Promise<StartedExecution> {
  let started: Omit<StartedExecution, 'recorded'> | undefined;
  const makeStart = (state: VerifyState, id: string): Entry => {
    const startedAt = typeof now === 'string' ? now : now();
    const found = findPermission(state, id, { ...request, now: startedAt });
    if (found.paramsDigest !== undefined && formatDigest(found.paramsDigest) !== formatDigest(paramsDigest))
      throw refuse('TOOL_PARAMS_MISMATCH', 'another command was authorized than this one');
    const permission = { ...found, paramsDigest };
    started = { permission, startedAt };
    const { meterUsed = [] } = request;
    // Find now whatever would prevent recording the execution later.
    const endedAt = startedAt;
    ledger.assertAdmissible({
      event: draftExecution(permission, { startedAt, endedAt, meterUsed, outcome: 'unknown' }),
    });
    return { event: draftStart(permission, startedAt, meterUsed) };
  };
  const before = (state: VerifyState, id: string): Entry[] =>
    sweepExpired(ledger, state, typeof now === 'string' ? now : now(), id);
  const recorded = await decideUnder(ledger, wanted, makeStart, { signal, before });
  const { permission, startedAt } = started as unknown as StartedExecution;
  const own = { startId: recorded.eventId, started: { startedAt, meters: request.meterUsed ?? [] } };
  return { permission: { ...permission, ...own }, startedAt, recorded };
}

/** The start's draft; follows the start that it takes over. */
function draftStart(permission: Permission, startedAt: string, meterUsed: MeterVector): object {
  const { startId } = permission;
  return {
    event_type: START_TYPE,
    principal_id: permission.principalId,
    occurred_at: startedAt,
    ...(startId === undefined ? {} : { prev_event_id: parseDigest(startId) }),
    intents: { intent_digest: permission.intentDigest },
    auth_event_id: parseDigest(permission.authorizationId),
    tool_name: permission.toolName,
    tool_params_digest: permission.paramsDigest,
    started_at: startedAt,
    meter_known: meterUsed.filter(({ amount }) => toRational(amount).n !== 0n),
    recorder: randomBytes(16).toString('base64url'),
  };
}
