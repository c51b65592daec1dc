/**
 * What ran with other parameters than authorized. The action's execution cannot say so: an execution with other parameters is broken
 * evidence (SPEC §8 rule 2, `TOOL_PARAMS_MISMATCH`), and upon an invalid ledger nothing is decided, so that one host could stop all. What
 * ran was never allowed: it is recorded as an execution under a denial of it, which is a violation (rule 1).
 */

import type { Digest } from '../base/value/digest.js';
import type { LiveLedger } from '../log/agent/live-ledger.js';
import { draftExecution, type ExecutionOutcome, type Permission } from '../log/policy/record.js';
import type { Appended } from '../log/writer/ledger.js';
import type { AskOptions } from '../log/writer/withdrawal.js';

/** Of the denial; and of the execution of what was authorized, whose outcome is unknown. */
export const OTHER_PARAMS = 'TOOL_PARAMS_MISMATCH';

export interface OtherParams {
  readonly permission: Permission;
  readonly requestKey: string;
  /** Of what ran. */
  readonly paramsDigest: Digest;
  readonly outcome: ExecutionOutcome;
}

/**
 * Records a denial of what ran, and that it ran.
 * @returns The execution, a violation (`EXECUTION_UNDER_DENY`)
 * @throws as `LiveLedger.authorize` and `LiveLedger.append`
 */
export async function recordOtherParams(
  ledger: LiveLedger,
  { permission, requestKey, paramsDigest, outcome }: OtherParams,
  options: AskOptions,
): Promise<Appended> {
  const { principalId, toolName, intentDigest, authorizationId } = permission;
  const denial = { code: OTHER_PARAMS, reason: `${authorizationId} was for other parameters` };
  const { recorded } = await ledger.authorize(
    {
      principalId,
      toolName,
      intentDigest,
      paramsDigest,
      meters: outcome.meterUsed,
      resources: [],
      requestKey: `${requestKey}/ran`,
      advice: { checks: [], denial },
    },
    options,
  );
  const { kind, reserved } = permission;
  const ran: Permission = {
    ...{ kind, principalId, toolName, intentDigest, paramsDigest, reserved },
    authorizationId: recorded.eventId,
    startId: undefined,
    started: undefined,
  };
  return ledger.append({ event: draftExecution(ran, outcome, ledger.now()) }, options);
}
