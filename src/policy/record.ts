/** Recording what was done under an authorization: what `northroot record` does around a command. */

import { judgeExecution } from '../bounds/judge.js';
import type { Action, Grant } from '../bounds/grant.js';
import { NorthrootError } from '../error.js';
import { printable } from '../bytes/printable.js';
import { CODE_PAGES } from '../finding/catalog.js';
import type { RuleFinding } from '../finding/rule-finding.js';
import type { Digest } from '../value/digest.js';
import type { MeterVector } from '../value/meter.js';
import { compareTimestamps } from '../value/timestamp.js';
import { matchRecord } from '../verify/find-record.js';
import type { VerifyState } from '../verify/state.js';
import { executeAtOnce } from './at-once.js';

/** An authorization under which something may be executed now. */
export interface Permission {
  /** `sha-256:…` */
  readonly authorizationId: string;
  readonly principalId: string;
  readonly toolName: string;
  readonly intentDigest: Digest;
  /** The parameters that were authorized; undefined under a grant. */
  readonly paramsDigest: Digest | undefined;
}

/** What is to be executed, or was. */
export interface ExecutionRequest {
  /** Needed under a grant; an action has its own. */
  readonly toolName?: string;
  /** When it starts: a timestamp of SPEC §2. */
  readonly now: string;
  /** What it is known to use. */
  readonly meterUsed?: MeterVector;
  /** What was done already is recorded also where it used more than was allowed; nothing else is forgiven it. */
  readonly done?: {
    readonly endedAt: string;
    /** Whether nothing was executed, and the reservation is given back (SPEC §8 rule 8). */
    readonly isRelease: boolean;
  };
}

/** What was done. */
export interface ExecutionOutcome {
  readonly startedAt: string;
  readonly endedAt: string;
  readonly meterUsed: MeterVector;
  readonly outcome: 'success' | 'failure';
  /** Required for a failure (SPEC §3.2). */
  readonly errorCode?: string;
  readonly outputDigest?: Digest;
}

/** What gives a reservation back when the action is not executed (SPEC §8 rule 8). */
export const ABANDONED = 'ABANDONED';

/**
 * Whether something may be executed under an authorization, by the rules that verification will apply to it.
 *
 * @param wanted - The authorization's seq, its id (`sha-256:…`, base64url or hex), or an unambiguous prefix of it.
 * @throws NorthrootError `AUTH_NOT_FOUND`, `AUTH_NOT_AN_AUTHORIZATION`, `AUTHORIZATION_AMBIGUOUS`, `EXECUTION_UNDER_DENY`, `AUTHORIZATION_REUSED`,
 *   `TOOL_MISMATCH`, or the code of the bound that the execution would break; exit status 1. `USAGE` when `wanted` is no id, or a tool is needed.
 */
export function findPermission(state: VerifyState, wanted: string, request: ExecutionRequest): Permission {
  const authorization = findAuthorization(state, wanted);
  const action = 'toolName' in authorization ? authorization : undefined;
  const id = authorization.place.eventId;
  const toolName = action?.toolName ?? request.toolName;
  if (toolName === undefined) {
    throw new NorthrootError('USAGE', `${id} is a grant: say which tool is called`, { hint: 'give --tool' });
  }
  if (request.toolName !== undefined && request.toolName !== toolName) {
    throw refuse('TOOL_MISMATCH', `${id} is for ${toolName}`);
  }
  if (authorization.decision === 'deny') throw refuse('EXECUTION_UNDER_DENY', `${id} was denied`);
  const [broken] = judge(authorization, { ...request, toolName });
  if (broken !== undefined) {
    const hint = request.done && 'northroot append records what was done all the same';
    throw refuse(broken.code, `expected ${broken.expected}, found ${broken.actual}`, hint);
  }
  return {
    authorizationId: id,
    principalId: authorization.principalId,
    toolName,
    intentDigest: toDigest(authorization.intent),
    paramsDigest: action && toDigest(action.params),
  };
}

/**
 * The execution event's draft. What was used is recorded as it was, also where it is more than was allowed.
 *
 * @throws RangeError when it ended before it started.
 */
export function draftExecution(permission: Permission, outcome: ExecutionOutcome): object {
  const { startedAt, endedAt, errorCode, outputDigest } = outcome;
  if (compareTimestamps(endedAt, startedAt) < 0)
    throw new RangeError('expected endedAt not before startedAt');
  return {
    event_type: 'execution',
    principal_id: permission.principalId,
    occurred_at: endedAt,
    intents: { intent_digest: permission.intentDigest },
    auth_event_id: toDigest(permission.authorizationId),
    tool_name: permission.toolName,
    ...(permission.paramsDigest === undefined ? {} : { tool_params_digest: permission.paramsDigest }),
    started_at: startedAt,
    ended_at: endedAt,
    meter_used: outcome.meterUsed,
    outcome: outcome.outcome,
    ...(errorCode === undefined ? {} : { error_code: errorCode }),
    ...(outputDigest === undefined ? {} : { output_digest: outputDigest }),
  };
}

/** The rules that the execution would break. */
function judge(
  authorization: Action | Grant,
  { toolName, now, meterUsed = [], done }: ExecutionRequest & { readonly toolName: string },
): RuleFinding[] {
  const [action, grant] =
    'toolName' in authorization ? [authorization, authorization.grant] : [undefined, authorization];
  const errorsOf = (used: MeterVector): RuleFinding[] => {
    const { endedAt, isRelease } = done ?? {};
    const facts = executeAtOnce(toolName, now, used);
    return judgeExecution(
      {
        ...facts,
        ...(endedAt === undefined ? {} : { endedAt }),
        // Only of an action is there something to give back, and only by what took no time.
        isRelease: isRelease === true && action !== undefined && isSameInstant(now, endedAt),
      },
      action,
      grant,
    ).findings.filter(({ code }) => CODE_PAGES[code].severity === 'error');
  };
  const errors = errorsOf(meterUsed);
  if (done === undefined) return errors;
  return [...errorsOf([]), ...errors.filter(({ code }) => CODE_PAGES[code].class === 'invalid')];
}

function isSameInstant(start: string, end: string | undefined): boolean {
  return end === undefined || compareTimestamps(start, end) === 0;
}

function findAuthorization(state: VerifyState, wanted: string): Action | Grant {
  const { actions, grants } = state.links;
  const isMeant = matchRecord(wanted);
  const found = [...actions.values(), ...grants.values()].filter(({ place }) => isMeant(place));
  const [first] = found;
  if (first === undefined) throw refuseEvent(state, wanted);
  if (found.length > 1) {
    throw refuse('AUTHORIZATION_AMBIGUOUS', `${printable(wanted)} names ${found.length} authorizations`);
  }
  return first;
}

/** Why there is no authorization to act under, where one was asked for by `wanted`. */
function refuseEvent(state: VerifyState, wanted: string): NorthrootError {
  const isMeant = matchRecord(wanted);
  let other: string | undefined;
  for (const { seq, eventId, kind } of state.events.entries()) {
    if (!isMeant({ seq, eventId })) continue;
    if (kind === 'spent') return refuse('AUTHORIZATION_REUSED', `${eventId} was executed already`);
    other ??= eventId;
  }
  return other === undefined
    ? refuse('AUTH_NOT_FOUND', `no authorization ${printable(wanted)}`)
    : refuse('AUTH_NOT_AN_AUTHORIZATION', `${other} is no authorization`);
}

const HINTS: Readonly<Record<string, string>> = {
  AUTH_NOT_FOUND: 'northroot log LEDGER --type authorization lists them',
  AUTH_NOT_AN_AUTHORIZATION: 'northroot log LEDGER --type authorization lists them',
  AUTHORIZATION_AMBIGUOUS: 'give more of the id',
  AUTHORIZATION_REUSED: 'an action authorizes one execution: northroot authorize asks for another',
  EXECUTION_UNDER_DENY: 'northroot why LEDGER ID says why it was denied',
};

function refuse(code: string, message: string, hint?: string): NorthrootError {
  return new NorthrootError(code, message, {
    exitStatus: 1,
    hint: hint ?? HINTS[code] ?? `northroot explain ${code}`,
  });
}

function toDigest(key: string): Digest {
  const at = key.indexOf(':');
  return { alg: key.slice(0, at), b64: key.slice(at + 1) };
}
