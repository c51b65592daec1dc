/** Recording what was done under an authorization: what `northroot record` does around a command. */

import { judgeExecution } from '../bounds/judge.js';
import type { Action, Grant } from '../bounds/grant.js';
import { NorthrootError } from '../error.js';
import { printable } from '../bytes/printable.js';
import { CODE_PAGES } from '../finding/catalog.js';
import type { Digest } from '../value/digest.js';
import type { MeterVector } from '../value/meter.js';
import { formatInstant, parseTimestamp } from '../value/timestamp.js';
import type { VerifyState } from '../verify/state.js';

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

/**
 * Whether something may be executed now under an authorization, by the rules that verification will apply to it.
 *
 * @param wanted - The authorization's id, or an unambiguous prefix of it, with or without `sha-256:`.
 * @param toolName - The tool; under an action it may be left out.
 * @throws NorthrootError `AUTH_NOT_FOUND`, `AUTHORIZATION_AMBIGUOUS`, `EXECUTION_UNDER_DENY`, `AUTHORIZATION_REUSED`, or the code
 *   of the bound that an execution now would break; exit status 1.
 */
export function findPermission(
  state: VerifyState,
  wanted: string,
  toolName: string | undefined,
  now: string,
): Permission {
  const authorization = findAuthorization(state, wanted);
  const isAction = 'toolName' in authorization;
  const name = isAction ? authorization.toolName : toolName;
  const id = authorization.place.eventId;
  if (name === undefined)
    throw new NorthrootError('USAGE', `${id} is a grant: say which tool is called`, { hint: 'give --tool' });
  if (isAction && toolName !== undefined && toolName !== name)
    throw refuse('TOOL_MISMATCH', `${id} is for ${name}`);
  if (authorization.decision === 'deny') throw refuse('EXECUTION_UNDER_DENY', `${id} was denied`);
  const facts = {
    toolName: name,
    occurredAt: now,
    startedAt: now,
    endedAt: formatInstant(parseTimestamp(now) + 1n),
    meterUsed: [],
    hasOutputRef: false,
    resources: [],
    isRelease: false,
  };
  const grant = isAction ? authorization.grant : authorization;
  const action = isAction ? authorization : undefined;
  const [broken] = judgeExecution(facts, action, grant, authorization.occurredAt).findings.filter(
    ({ code }) => CODE_PAGES[code].severity === 'error',
  );
  if (broken !== undefined) throw refuse(broken.code, `expected ${broken.expected}, found ${broken.actual}`);
  return {
    authorizationId: id,
    principalId: authorization.principalId,
    toolName: name,
    intentDigest: toDigest(authorization.intent),
    paramsDigest: isAction ? toDigest(authorization.params) : undefined,
  };
}

/** The execution event's draft. What was used is recorded as it was, also where it is more than was allowed. */
export function draftExecution(permission: Permission, outcome: ExecutionOutcome): object {
  return {
    event_type: 'execution',
    principal_id: permission.principalId,
    occurred_at: outcome.endedAt,
    intents: { intent_digest: permission.intentDigest },
    auth_event_id: { alg: 'sha-256', b64: permission.authorizationId.slice('sha-256:'.length) },
    tool_name: permission.toolName,
    ...(permission.paramsDigest === undefined ? {} : { tool_params_digest: permission.paramsDigest }),
    started_at: outcome.startedAt,
    ended_at: outcome.endedAt,
    meter_used: outcome.meterUsed,
    outcome: outcome.outcome,
    ...(outcome.errorCode === undefined ? {} : { error_code: outcome.errorCode }),
    ...(outcome.outputDigest === undefined ? {} : { output_digest: outcome.outputDigest }),
  };
}

function findAuthorization(state: VerifyState, wanted: string): Action | Grant {
  const prefix = wanted.replace(/^sha-256:/, '');
  const { actions, grants } = state.links;
  const exact = actions.get(prefix) ?? grants.get(prefix);
  if (exact !== undefined) return exact;
  const spent = state.events.find(prefix);
  if (spent?.kind === 'spent') throw refuse('AUTHORIZATION_REUSED', `sha-256:${prefix} was executed already`);
  const found = [...actions, ...grants].filter(([id]) => prefix !== '' && id.startsWith(prefix));
  const [first] = found;
  if (first === undefined) throw refuse('AUTH_NOT_FOUND', `no open authorization ${printable(wanted)}`);
  if (found.length > 1)
    throw refuse('AUTHORIZATION_AMBIGUOUS', `${printable(wanted)} names ${found.length} authorizations`);
  return first[1];
}

function refuse(code: string, message: string): NorthrootError {
  const hint = Object.hasOwn(CODE_PAGES, code)
    ? `northroot explain ${code}`
    : 'northroot log --type authorization lists them';
  return new NorthrootError(code, message, { exitStatus: 1, hint });
}

function toDigest(key: string): Digest {
  const at = key.indexOf(':');
  return { alg: key.slice(0, at), b64: key.slice(at + 1) };
}
