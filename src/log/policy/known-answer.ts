/** SPEC §8 rule 18, live: a repeated request returns its earlier decision, and records nothing. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { formatDigest, fromDigestText, toDigestText } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { balancesOf } from '../../rules/bounds/balance.js';
import type { Action, Grant } from '../../rules/bounds/grant.js';
import { judgeExecution } from '../../rules/bounds/judge.js';
import type { IndexedEvent } from '../../rules/verify/event-index.js';
import { askedOf, type RequestEntry, requestName } from '../../rules/verify/links.js';
import { findOpenStart } from '../../rules/verify/starts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Appended } from '../writer/ledger.js';
import { reservedBy } from './record.js';
import { boundOf, type Denial, dryRun, judgeImported, judgeSoundness } from './deciding-bound.js';
import type { AuthorizationDecision, AuthorizationRequest } from './evaluator.js';

export interface KnownAnswer {
  readonly decision: AuthorizationDecision;
  readonly recorded: Appended;
}

/** Permanent reasons why an action cannot begin; passing ones, such as a rate, are checked then. */
const FINAL: ReadonlySet<string> = new Set(['ACTION_EXPIRED', 'GRANT_EXPIRED', 'GRANT_REVOKED']);

/** The grants under which a request may have been allowed; undefined for none. */
function grantsAsked(
  { links: { grants } }: VerifyState,
  { grantId, principalId }: AuthorizationRequest,
  { decision, grantId: decided }: AuthorizationDecision,
): readonly (Grant | undefined)[] {
  const find = (id: string): Grant | undefined => grants.get(fromDigestText(id));
  // A policy may decide under another grant than those requested.
  const others = decision === 'allow' ? [decided === undefined ? undefined : find(decided)] : [];
  if (grantId === undefined) return [...grants.allowedTo(principalId), undefined, ...others];
  const grant = find(grantId);
  return grant === undefined ? others : [grant, ...others];
}

/**
 * The earlier decision for a request key, or a denial if the action can no longer begin.
 * @param evaluated - The policy's decision
 * @param honoured - Systems whose imported authority counts
 * @throws NorthrootError `REQUEST_CONFLICT` if the key belongs to another tool or other parameters
 */
export function findKnownAnswer(
  state: VerifyState,
  request: AuthorizationRequest,
  evaluated: AuthorizationDecision,
  honoured: readonly string[] | undefined,
): KnownAnswer | undefined {
  const { requestKey, principalId, toolName, paramsDigest } = request;
  if (requestKey === undefined) return undefined;
  const names = new Set(
    grantsAsked(state, request, evaluated).map((grant) => requestName(principalId, grant, requestKey)),
  );
  const entries = [...names].flatMap((name) => state.links.requests.get(name) ?? []);
  const [first] = entries;
  if (first === undefined) return undefined;
  const asked = askedOf(toolName, formatDigest(paramsDigest));
  const same = entries.find((entry) => entry.asked === asked);
  if (same === undefined) throw conflict(requestKey, first, asked);
  return answer(state, request, same, honoured);
}

export interface FoundCall {
  readonly open?: KnownCall;
  /** The action that was executed, `sha-256:…`. */
  readonly spent?: string;
  /** The grant that it counts under, if it was executed. */
  readonly grantId?: string | undefined;
  /** Whether it was begun, and its execution says that its end is unknown. */
  readonly isLost?: boolean;
  /** The action that was released, `sha-256:…`. */
  readonly released?: string;
}

export interface KnownCall {
  /** The action, `sha-256:…`. */
  readonly authorizationId: string;
  readonly principalId: string;
  readonly toolName: string;
  /** `sha-256:…` */
  readonly paramsDigest: string;
  /** `sha-256:…` */
  readonly intentDigest: string;
  readonly allowedAt: string;
  /** Until when it may be begun. */
  readonly expiresAt: string | undefined;
  readonly reserved: MeterVector;
  /** Its open start, `sha-256:…`, and since when it runs. */
  readonly start: { readonly startId: string; readonly startedAt: string } | undefined;
}

/**
 * The call of a principal under a request key: the open one; or one that was executed (`spent`) or released, `sha-256:…`; or none.
 */
export function findCall(state: VerifyState, principalId: string, requestKey: string): FoundCall {
  const { grants, actions, requests } = state.links;
  const names = new Set(
    [...grants.allowedTo(principalId), undefined].map((grant) => requestName(principalId, grant, requestKey)),
  );
  const ids = [...names].flatMap((name) => requests.get(name)?.id ?? []);
  for (const id of ids) {
    const action = actions.get(id);
    if (action === undefined) continue;
    const { toolName, params, intent, occurredAt, expiresAt } = action;
    const start = findOpenStart(state, id);
    return {
      open: {
        authorizationId: toDigestText(id),
        principalId,
        toolName,
        paramsDigest: params,
        intentDigest: intent,
        allowedAt: occurredAt,
        expiresAt,
        reserved: reservedBy(action),
        start: start && { startId: start.place.eventId, startedAt: start.startedAt },
      },
    };
  }
  const [used] = ids;
  if (used === undefined) return {};
  const { kind, grant = -1 } = state.events.find(used) ?? {};
  if (kind === 'released') return { released: toDigestText(used) };
  const isLost = state.links.lost.has(used);
  return { spent: toDigestText(used), grantId: grants.at(grant)?.place.eventId, isLost };
}

function answer(
  state: VerifyState,
  request: AuthorizationRequest,
  { id }: RequestEntry,
  honoured: readonly string[] | undefined,
): KnownAnswer {
  const { actions, grants } = state.links;
  const eventId = toDigestText(id);
  const event = state.events.find(id) as IndexedEvent;
  const action = actions.get(id);
  const grant = action === undefined ? grants.at(event.grant) : action.grant;
  const denials =
    action === undefined
      ? [
          {
            code: 'AUTHORIZATION_REUSED',
            expected: 'an action that is open',
            actual: `${eventId}, ${event.kind === 'released' ? 'released' : 'executed'}`,
          } as const,
        ]
      : judgeBeginning(action, request.now, honoured);
  const grantId = grant?.place.eventId;
  const recorded = { seq: event.seq, eventId, status: 'exists', findings: [], verdict: undefined } as const;
  const [denial] = denials;
  if (denial !== undefined) return { decision: refuse(denial, grantId), recorded };
  return {
    decision: {
      decision: 'allow',
      decisionCode: 'ALLOW',
      checks: [],
      grantId,
      reservation: request.meters ?? [],
      remaining: grant === undefined ? [] : balancesOf(grant),
    },
    recorded,
  };
}

/** The permanent reasons why an action cannot begin. */
function judgeBeginning(action: Action, now: string, honoured: readonly string[] | undefined): Denial[] {
  const { grant, toolName } = action;
  const { findings } = judgeExecution(dryRun(toolName, now, [], action.place.seq), action, grant);
  return [
    ...(grant === undefined ? [] : judgeSoundness(grant)),
    ...judgeImported(grant, action, honoured),
    ...findings.filter(({ code }) => FINAL.has(code)),
  ];
}

function refuse(denial: Denial, grantId: string | undefined): AuthorizationDecision {
  const { code, expected, actual } = denial;
  return {
    decision: 'deny',
    decisionCode: code,
    checks: [],
    reason: `expected ${expected}, found ${actual}; the request key is used up`,
    bound: boundOf(denial, grantId),
    grantId,
    reservation: [],
    remaining: [],
  };
}

function conflict(requestKey: string, { id, asked: before }: RequestEntry, asked: string): NorthrootError {
  const message = `request key ${printable(requestKey)} is that of ${toDigestText(id)}: ${printable(before, 400)}, found ${printable(asked, 400)}`;
  return new NorthrootError('REQUEST_CONFLICT', message, {
    hint: 'one key is for one request: give another key for another tool or other parameters',
  });
}
