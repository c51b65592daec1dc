/** Executing under an authorization, and recording it, as `northroot record` does around a command; `start.ts` claims it first. */

import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { type Digest, fromDigestText, isDigest, parseDigest } from '../../base/value/digest.js';
import { formatRational } from '../../base/value/format-rational.js';
import { MAX_METERS, type Meter, type MeterVector } from '../../base/value/meter.js';
import { compareQuantities, toRational } from '../../base/value/quantity.js';
import { compareRationals, subtractRationals } from '../../base/value/rational.js';
import { matchRecord, parseRecordName } from '../../base/value/record-name.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { CODE_PAGES, isFindingCode } from '../../format/finding/catalog.js';
import type { MeterBasis, Source } from '../../format/schema/generated/types.js';
import { sumQuantity } from '../../rules/bounds/balance.js';
import { type Action, type Grant, grantChain } from '../../rules/bounds/grant.js';
import { judgeExecution } from '../../rules/bounds/judge.js';
import { judgeTakeover, type OpenStart, withStarted } from '../../rules/bounds/started.js';
import { SLICE_TOOL } from '../../rules/bounds/tool-set.js';
import { approvalsOf } from '../../rules/verify/approvals.js';
import { listRunning } from '../../rules/report/accounts.js';
import { type EventMatch, isUsedUp } from '../../rules/verify/event-index.js';
import { findStartOf, MAX_OPEN_STARTS } from '../../rules/verify/starts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Appended, Entry, Ledger } from '../writer/ledger.js';
import type { AskOptions } from '../writer/withdrawal.js';
import {
  boundOf,
  type Denial,
  describeLeft,
  dryRun,
  grantOf,
  judgeImported,
  judgeOverdraft,
  judgeSoundness,
} from './deciding-bound.js';
import { heldGrants } from './running-starts.js';

export interface Permission {
  readonly kind: 'action' | 'grant';
  /** `sha-256:…` */
  readonly authorizationId: string;
  readonly principalId: string;
  readonly toolName: string;
  readonly intentDigest: Digest;
  /** Undefined or empty under a grant. */
  readonly paramsDigest: Digest | undefined;
  /** Undefined or empty under a grant. */
  readonly reserved: MeterVector;
  /** The start to settle or take over, `sha-256:…`. */
  readonly startId: string | undefined;
  readonly started: Pick<OpenStart, 'startedAt' | 'meters'> | undefined;
}

export interface ExecutionRequest {
  /** Required under a grant; an action names its tool. */
  readonly toolName?: string;
  /** The start, a timestamp of SPEC §2. */
  readonly now: string;
  readonly meterUsed?: MeterVector;
  /**
   * The start to take over or settle: an id or a prefix; `true` for the only open one. With `done`, no bound applies: what was allowed and
   * started is settled as it was.
   */
  readonly start?: string | true;
  /** Systems whose imported authority counts. Default: none. Irrelevant with `done`. */
  readonly honourImported?: readonly string[] | undefined;
  /** For work that is done: recorded even above what was allowed; no other rule is waived. */
  readonly done?: {
    readonly endedAt: string;
    /** Whether nothing was executed, and the reservation is released (SPEC §8 rule 8). */
    readonly isRelease: boolean;
    /** Whether what ran is recorded whatever bound it breaks, which its finding says. */
    readonly mayBreakBounds?: boolean | undefined;
  };
}

export interface ExecutionDetails {
  /** The source of the amounts (SPEC §3.2): `measured` by the recorder, `reported` by the tool, `estimated`, or `billed`. */
  readonly meterBasis?: MeterBasis | undefined;
  /** The provider's name for the model: 1 to 256 characters. */
  readonly modelId?: string | undefined;
  /** The provider of tool or model: 1 to 256 characters. */
  readonly provider?: string | undefined;
  /** Of the price list that `usd` was estimated by. */
  readonly pricingSnapshotDigest?: Digest | undefined;
  /** Who reported it, and that system's own id of it (SPEC §3.2). */
  readonly source?: Source | undefined;
}

export const DETAIL_TYPES: OptionTypes<ExecutionDetails> = {
  meterBasis: 'string',
  modelId: 'string',
  provider: 'string',
  pricingSnapshotDigest: 'object',
  source: 'object',
};
const METER_BASES: readonly string[] = ['measured', 'reported', 'estimated', 'billed'];
const MAX_DETAIL_LENGTH = 256;

/** Refuses malformed details before work begins, as its execution could not be recorded. @throws TypeError, RangeError naming the option */
export function checkDetails(where: string, details: ExecutionDetails): void {
  checkOptions(where, details, DETAIL_TYPES);
  const { meterBasis, modelId, provider, pricingSnapshotDigest } = details;
  if (pricingSnapshotDigest !== undefined && !isDigest(pricingSnapshotDigest))
    throw new TypeError(`${where}: pricingSnapshotDigest: expected a digest`);
  if (meterBasis !== undefined && !METER_BASES.includes(meterBasis))
    throw new RangeError(`${where}: meterBasis: expected ${METER_BASES.join(', ')}`);
  for (const [name, text] of Object.entries({ modelId, provider })) {
    if (text === undefined || isDetail(text)) continue;
    throw new RangeError(`${where}: ${name}: expected 1 to ${MAX_DETAIL_LENGTH} characters of Unicode text`);
  }
}

function isDetail(text: string): boolean {
  return text !== '' && text.length <= MAX_DETAIL_LENGTH && !/\p{Surrogate}/u.test(text);
}

export interface ExecutionOutcome extends ExecutionDetails {
  readonly startedAt: string;
  readonly endedAt: string;
  readonly meterUsed: MeterVector;
  /** The basis of single units, if not `meterBasis` (SPEC §3.2). */
  readonly meterBasisByUnit?: Readonly<Record<string, MeterBasis>> | undefined;
  readonly outcome: 'success' | 'failure' | 'unknown';
  /** Required for a failure (SPEC §3.2). */
  readonly errorCode?: string;
  readonly outputDigest?: Digest;
}

/** Releases the reservation of an action that was not executed (SPEC §8 rule 8). */
export const ABANDONED = 'ABANDONED';

/** For work that was started and ended before it did anything: no release, since it was begun; uses nothing. */
export const ABORTED = 'ABORTED';

/**
 * Whether an execution is allowed now, by the rules of verification. Started work counts as reserved, past and running; nothing may begin
 * under an invalid, violating or overdrawn grant.
 * @param wanted - The authorization's seq, id (`sha-256:…`, base64url or hex), or unambiguous prefix. Over an index a prefix needs {@link
 *   resolveAuthorization}.
 * @throws NorthrootError `AUTH_NOT_FOUND`, `AUTH_NOT_AN_AUTHORIZATION`, `AUTHORIZATION_AMBIGUOUS`, `EXECUTION_UNDER_DENY`,
 *   `AUTHORIZATION_REUSED`, `AUTHORIZATION_STARTED` (by another recorder), `START_NOT_FOUND`, `START_AMBIGUOUS`, `STARTS_UNSETTLED`,
 *   `TOOL_MISMATCH`, `GRANT_UNSOUND`, `SLICE_BEGUN` (for a slice in use that is to begin again), or the code of the broken bound; `USAGE` for a malformed `wanted` or a missing tool
 */
export function findPermission(state: VerifyState, wanted: string, request: ExecutionRequest): Permission {
  const authorization = findAuthorization(state, wanted);
  const action = 'toolName' in authorization ? authorization : undefined;
  const id = authorization.place.eventId;
  const start = findStart(state, authorization, request);
  const toolName = action?.toolName ?? request.toolName ?? start?.toolName;
  if (toolName === undefined) throw new NorthrootError('USAGE', `${id} is a grant: say which tool is called`);
  if (request.toolName !== undefined && request.toolName !== (start?.toolName ?? toolName))
    throw refuse('TOOL_MISMATCH', `${id} is for ${start?.toolName ?? toolName}`);
  if (authorization.decision === 'deny') throw refuse('EXECUTION_UNDER_DENY', `${id} was denied`);
  const startId = start?.place.eventId;
  if (request.done === undefined)
    assertNoSlice({
      kind: action === undefined ? 'grant' : 'action',
      authorizationId: id,
      toolName,
      startId,
    });
  if (request.start === undefined || request.done === undefined) {
    const [broken] = [
      ...judge(state, authorization, startId, { ...request, toolName }),
      ...(request.done === undefined && start !== undefined
        ? judgeSecondTry(state, authorization, start)
        : []),
    ];
    if (broken !== undefined) {
      const left = describeLeft(boundOf(broken, undefined));
      const hint = request.done && 'appended as an event, what was done is recorded all the same';
      const rest = left === undefined ? '' : `; ${left}`;
      throw refuse(broken.code, `expected ${broken.expected}, found ${broken.actual}${rest}`, hint);
    }
  }
  const params = action?.params ?? start?.params;
  return {
    kind: action === undefined ? 'grant' : 'action',
    authorizationId: id,
    principalId: authorization.principalId,
    toolName,
    intentDigest: parseDigest(authorization.intent),
    paramsDigest: params === undefined ? undefined : parseDigest(params),
    reserved: reservedBy(action),
    startId,
    started: start && { startedAt: start.startedAt, meters: start.meters },
  };
}

/**
 * Refuses what is not for a slice that was begun (SPEC §8 rule 17): another ledger may be spending it, so that it is neither begun again nor
 * recorded as other calls are, but settled by a checkpoint of that ledger.
 * @throws NorthrootError `SLICE_BEGUN`
 */
export function assertNoSlice({
  kind,
  authorizationId,
  toolName,
  startId,
}: Pick<Permission, 'kind' | 'authorizationId' | 'toolName' | 'startId'>): void {
  if (kind !== 'action' || toolName !== SLICE_TOOL || startId === undefined) return;
  throw refuse('SLICE_BEGUN', `${authorizationId} is a slice that another ledger may be spending`);
}

/** The named start; for an action reported as done, its open one. */
function findStart(
  { links }: VerifyState,
  authorization: Action | Grant,
  { start: wanted, done }: ExecutionRequest,
): OpenStart | undefined {
  const id = authorization.place.eventId;
  const open = [...(links.starts.get(fromDigestText(id))?.values() ?? [])];
  const [first] = open;
  if (wanted === undefined) {
    if (done === undefined && open.length >= MAX_OPEN_STARTS)
      throw refuse(
        'STARTS_UNSETTLED',
        `${open.length} executions under ${id} were started and never recorded`,
      );
    if (!('toolName' in authorization) || first === undefined) return undefined;
    if (done !== undefined && !done.isRelease) return first;
    const { startedAt, recorder, place } = first;
    const message = `${id} is being executed: started at ${startedAt} by recorder ${recorder} (seq ${place.seq})`;
    const hint =
      done && 'what was started is not given back: record what it used, or that how it ended is unknown';
    throw refuse('AUTHORIZATION_STARTED', message, hint);
  }
  const isMeant = wanted === true ? () => true : matchRecord(wanted);
  const [start, other] = open.filter(({ place }) => isMeant(place));
  if (start === undefined)
    throw refuse('START_NOT_FOUND', `nothing that was started under ${id} waits to be recorded`);
  if (other === undefined) return start;
  throw refuse('START_AMBIGUOUS', `${open.length} executions under ${id} were started and are not recorded`);
}

/**
 * Drafts the execution event, even for a use above what was allowed.
 * @param recordedAt - When it is recorded, if that is after its end: the event's own time. Default: its end
 * @throws RangeError when it ended before it started
 */
export function draftExecution(
  permission: Permission,
  outcome: ExecutionOutcome,
  recordedAt?: string,
): object {
  const { startedAt, endedAt, errorCode, outputDigest } = outcome;
  if (compareTimestamps(endedAt, startedAt) < 0)
    throw new RangeError('expected endedAt not before startedAt');
  const event = {
    event_type: 'execution',
    principal_id: permission.principalId,
    occurred_at: endedAt,
    ...(permission.startId === undefined ? {} : { prev_event_id: parseDigest(permission.startId) }),
    intents: { intent_digest: permission.intentDigest },
    auth_event_id: parseDigest(permission.authorizationId),
    tool_name: permission.toolName,
    ...defined({
      tool_params_digest: permission.paramsDigest,
      error_code: errorCode,
      output_digest: outputDigest,
    }),
    started_at: startedAt,
    ended_at: endedAt,
    meter_used: outcome.meterUsed,
    outcome: outcome.outcome,
    ...detailMembers(outcome),
  };
  return recordedAt === undefined ? event : dateExecution(event, recordedAt);
}

/** A drafted execution, dated when it is recorded, if that is after its own date. */
export function dateExecution(event: object, recordedAt: string): object {
  const { occurred_at: own } = event as { readonly occurred_at: string };
  return compareTimestamps(recordedAt, own) > 0 ? { ...event, occurred_at: recordedAt } : event;
}

/** An unmetered reservation is charged as estimated use, or released by stating 0. */
export type Unmetered = 'charge' | 'release';

/**
 * States every reserved unit (SPEC §8 rule 5: silence is not free), except for a failure without output, which releases the rest.
 * @param unsure - Units possibly metered too low: the greater amount is charged, also of a failure
 */
export function stateReserved(
  { reserved }: Pick<Permission, 'reserved'>,
  outcome: ExecutionOutcome,
  {
    unmetered = 'charge',
    unsure,
  }: { readonly unmetered?: Unmetered; readonly unsure?: ReadonlySet<string> } = {},
): ExecutionOutcome {
  const isReleased = outcome.outcome === 'failure' && outcome.outputDigest === undefined;
  const meterUsed = [...outcome.meterUsed];
  const bases: Record<string, MeterBasis> = { ...outcome.meterBasisByUnit };
  for (const { unit, amount } of reserved) {
    const at = meterUsed.findIndex((meter) => meter.unit === unit);
    const isUnsure = unsure?.has(unit) === true;
    if ((at !== -1 || isReleased) && !isUnsure) continue;
    // Further units count all the same, by rule 5.
    if (at === -1 && meterUsed.length === MAX_METERS) continue;
    const isCharged = isUnsure || unmetered === 'charge';
    const said = meterUsed[at]?.amount;
    const isMore = said !== undefined && compareQuantities(said, amount) > 0;
    const stated = { unit, amount: isMore ? said : isCharged ? amount : ZERO_QUANTITY };
    if (at === -1) meterUsed.push(stated);
    else meterUsed[at] = stated;
    if (isCharged) bases[unit] = 'estimated';
  }
  return { ...outcome, meterUsed, ...(Object.keys(bases).length === 0 ? {} : { meterBasisByUnit: bases }) };
}

/** The basis of northroot's own measurements, if the rest has another. */
export function measuredBases(
  meterBasis: MeterBasis | undefined,
  measured: MeterVector,
  used: MeterVector,
): Record<string, MeterBasis> {
  if (meterBasis === undefined || meterBasis === 'measured') return {};
  const isAsMeasured = ({ unit, amount }: Meter): boolean =>
    used.some((each) => each.unit === unit && compareQuantities(each.amount, amount) === 0);
  return Object.fromEntries(measured.filter(isAsMeasured).map(({ unit }) => [unit, 'measured' as const]));
}

const ZERO_QUANTITY = { t: 'int', v: '0' } as const;

function detailMembers({
  meterBasis,
  meterBasisByUnit,
  modelId,
  provider,
  pricingSnapshotDigest,
  source,
}: ExecutionDetails & Pick<ExecutionOutcome, 'meterBasisByUnit'>): object {
  return {
    ...(meterBasisByUnit === undefined || Object.keys(meterBasisByUnit).length === 0
      ? {}
      : { meter_basis_by_unit: meterBasisByUnit }),
    ...defined({
      model_id: modelId,
      provider,
      pricing_snapshot_digest: pricingSnapshotDigest,
      meter_basis: meterBasis,
      source,
    }),
  };
}

/**
 * Drafts the execution event for a start without a known end, with outcome `unknown`. It cannot be released (SPEC §8 rule 8): it charges
 * the known use, and the rest of the reservation as estimated.
 * @param permission - Found with `start` and `done`
 * @param now - When it is settled
 * @param meterUsed - The known use; raises the start's, never lowers it
 */
export function draftSettlement(
  permission: Permission,
  now: string,
  meterUsed: MeterVector = [],
  details: ExecutionDetails & Pick<ExecutionOutcome, 'meterBasisByUnit'> = {},
  options: Parameters<typeof stateReserved>[2] = {},
): object {
  const { started } = permission;
  if (started === undefined) throw new TypeError('expected the permission of something that was started');
  assertNoSlice(permission);
  const { startedAt, meters } = started;
  const endedAt = compareTimestamps(now, startedAt) < 0 ? startedAt : now;
  const used = raiseMeters(meters, meterUsed);
  const outcome = { ...details, startedAt, endedAt, meterUsed: used, outcome: 'unknown' } as const;
  return draftExecution(permission, stateReserved(permission, outcome, options));
}

/**
 * Drafts the execution event for an abandoned authorization: releases an action that was not started, and settles a start as unknown.
 * `start` as in {@link ExecutionRequest}.
 * @throws NorthrootError as {@link findPermission}
 */
export function draftAbandonment(
  state: VerifyState,
  id: string,
  {
    now,
    start = true,
    toolName,
    meterUsed = [],
    ...details
  }: Pick<ExecutionRequest, 'now' | 'start' | 'toolName' | 'meterUsed'> & ExecutionDetails,
): { readonly permission: Permission; readonly draft: object } {
  const authorization = findAuthorization(state, id);
  const isOpenAction = 'toolName' in authorization && authorization.decision === 'allow';
  const isStarted = state.links.starts.has(fromDigestText(authorization.place.eventId));
  if (start === true && meterUsed.length === 0 && isOpenAction && !isStarted)
    return draftReleaseOf(state, authorization, now, toolName);
  const done = { endedAt: now, isRelease: true };
  const permission = findPermission(state, id, { now, done, start, ...defined({ toolName }) });
  return { permission, draft: draftSettlement(permission, now, meterUsed, details) };
}

/**
 * Drafts the execution event that releases an action that has not begun (SPEC §8 rule 8).
 * @throws NorthrootError as {@link findPermission}: `AUTHORIZATION_STARTED` if another recorder has begun it
 */
export function draftRelease(state: VerifyState, id: string, now: string): object {
  return draftReleaseOf(state, findAuthorization(state, id), now).draft;
}

function draftReleaseOf(
  state: VerifyState,
  authorization: Action | Grant,
  now: string,
  toolName?: string,
): { readonly permission: Permission; readonly draft: object } {
  // Where the clock was set back since, it is not released before it was allowed.
  const at = [authorization, ...grantChain(grantOf(authorization))]
    .map(({ occurredAt }) => occurredAt)
    .reduce((one, other) => (compareTimestamps(one, other) < 0 ? other : one), now);
  const request = { now: at, done: { endedAt: at, isRelease: true }, ...defined({ toolName }) };
  const permission = findPermission(state, authorization.place.eventId, request);
  const nothing = { meterUsed: [], outcome: 'failure', errorCode: ABANDONED } as const;
  return { permission, draft: draftExecution(permission, { startedAt: at, endedAt: at, ...nothing }) };
}

/** The greater amount of each unit: what was measured is never lowered. */
export function raiseMeters(measured: MeterVector, said: MeterVector): Meter[] {
  const raised = measured.map((own) => {
    const other = said.find(({ unit }) => unit === own.unit);
    return other !== undefined && compareQuantities(other.amount, own.amount) > 0 ? other : own;
  });
  return [...raised, ...said.filter(({ unit }) => !measured.some((own) => own.unit === unit))];
}

function judge(
  state: VerifyState,
  authorization: Action | Grant,
  startId: string | undefined,
  { toolName, now, meterUsed = [], done, honourImported }: ExecutionRequest & { readonly toolName: string },
): Denial[] {
  const action = 'toolName' in authorization ? authorization : undefined;
  const own = grantOf(authorization);
  // Work that is done does not compete with what runs now.
  const isNew = done === undefined;
  const grant = isNew && own ? holdOthers(state, own, startId) : own;
  const errorsOf = (used: MeterVector): Denial[] => {
    const { endedAt, isRelease } = done ?? {};
    const id = fromDigestText(authorization.place.eventId);
    const facts = dryRun(toolName, now, used, action?.place.seq);
    return judgeExecution(
      {
        ...facts,
        ...(endedAt === undefined ? {} : { endedAt }),
        // Only an action has a reservation to release, and only if it took no time.
        isRelease: isRelease === true && action !== undefined && isSameInstant(now, endedAt),
        // A second try is begun now, whenever the first was.
        start: isNew || startId === undefined ? undefined : findStartOf(state, id, fromDigestText(startId)),
      },
      action,
      grant,
      action && approvalsOf(state, id),
    ).findings.filter(({ code }) => CODE_PAGES[code].severity === 'error');
  };
  // The whole reservation may be used, so it must fit the rates.
  const errors = errorsOf(isNew ? raiseMeters(meterUsed, reservedBy(action)) : meterUsed);
  if (isNew) {
    const imported = judgeImported(own, action, honourImported);
    if (own === undefined) return [...imported, ...errors];
    return [...judgeSoundness(own), ...imported, ...errors, ...judgeOverdraft(own)];
  }
  const isInvalid = ({ code }: Denial): boolean =>
    isFindingCode(code) && CODE_PAGES[code].class === 'invalid';
  return [...(done.mayBreakBounds === true ? [] : errorsOf([])), ...errors.filter(isInvalid)];
}

/** The grant with everything that runs counted, except a start that is taken over. */
function holdOthers(state: VerifyState, own: Grant, startId: string | undefined): Grant {
  return startId === undefined
    ? heldGrants(state)(own)
    : withStarted(own, listRunning(state, fromDigestText(startId)));
}

/** A takeover counts the earlier try's possible use too (SPEC §3.8). */
function judgeSecondTry(state: VerifyState, authorization: Action | Grant, start: OpenStart): Denial[] {
  const own = grantOf(authorization);
  const others = listRunning(state, fromDigestText(start.place.eventId));
  const action = 'toolName' in authorization ? authorization : undefined;
  return [...judgeTakeover(start, action, own && withStarted(own, others)).findings];
}

/** What an action has reserved. */
export function reservedBy(action: Action | undefined): Meter[] {
  return [...(action?.reservation ?? [])].map(([unit, amount]) => ({ unit, amount: sumQuantity(amount) }));
}

interface SpentBound {
  /** `sha-256:…` */
  readonly grantId: string;
  readonly unit: string;
  readonly isOverspent: boolean;
  /** Such as `5.5 of 5 usd used, 0.5 over`. */
  readonly text: string;
}

/**
 * The used units that are exhausted or overspent under the grants above.
 * @param state - Of the ledger with the execution
 * @param authorizationId - The execution's authorization, `sha-256:…`, spent or not
 */
export function findSpent(state: VerifyState, authorizationId: string, meterUsed: MeterVector): SpentBound[] {
  const { actions, grants } = state.links;
  const id = fromDigestText(authorizationId);
  const grant = grants.get(id) ?? actions.get(id)?.grant ?? grants.at(state.events.find(id)?.grant ?? -1);
  return [...grantChain(grant)].flatMap(({ accounts, place }) =>
    meterUsed.flatMap(({ unit, amount }) => {
      const account = accounts.get(unit);
      if (account === undefined || toRational(amount).n === 0n) return [];
      const { cap, used } = account;
      const order = compareRationals(used, cap);
      if (order < 0) return [];
      const over = order === 0 ? 'nothing left' : `${formatRational(subtractRationals(used, cap))} over`;
      const text = `${formatRational(used)} of ${formatRational(cap)} ${unit} used, ${over}`;
      return { grantId: place.eventId, unit, isOverspent: order > 0, text };
    }),
  );
}

function isSameInstant(start: string, end: string | undefined): boolean {
  return end === undefined || compareTimestamps(start, end) === 0;
}

/**
 * The id of the authorization that `wanted` names, `sha-256:…`.
 * @param asked - The ledger, or its verification state, in memory or over an index
 * @param wanted - Its seq, id (`sha-256:…`, base64url or hex), or unambiguous prefix. A whole id is returned unchecked.
 * @throws NorthrootError `AUTH_NOT_FOUND`, `AUTH_NOT_AN_AUTHORIZATION`, `AUTHORIZATION_AMBIGUOUS`, `AUTHORIZATION_REUSED`, `USAGE`; as
 *   {@link Ledger.append}
 */
export async function resolveAuthorization(
  asked: Ledger | VerifyState,
  wanted: string,
  options: AskOptions = {},
): Promise<string> {
  const name = parseRecordName(wanted);
  if ('eventId' in name) return name.eventId;
  const look = async (state: VerifyState): Promise<string> => {
    const events = (await state.events.match(name)) ?? [];
    return chooseAuthorization(state, wanted, events).place.eventId;
  };
  return 'inspect' in asked ? asked.inspect(look, options) : look(asked);
}

/**
 * Appends what `makes` returns for a named authorization. A whole id needs no lookup, so calls keep their order.
 * @throws NorthrootError as {@link resolveAuthorization} and {@link Ledger.decide}
 */
export async function decideUnder(
  ledger: Ledger,
  wanted: string,
  makes: (state: VerifyState, id: string) => Entry,
  {
    before,
    ...options
  }: AskOptions & { readonly before?: (state: VerifyState, id: string) => readonly Entry[] } = {},
): Promise<Appended> {
  const name = parseRecordName(wanted);
  const id = 'eventId' in name ? name.eventId : await resolveAuthorization(ledger, wanted, options);
  return ledger.decide((state) => makes(state, id), {
    ...options,
    before: before && ((state) => before(state, id)),
  });
}

function findAuthorization(state: VerifyState, wanted: string): Action | Grant {
  const events = state.events.matchNow(parseRecordName(wanted));
  if (events === undefined)
    throw new NorthrootError('USAGE', `${printable(wanted)} has to be looked up in the index`, {
      hint: 'give the whole id: resolveAuthorization finds it',
    });
  return chooseAuthorization(state, wanted, events);
}

/** @param events - Those named, in ledger order */
function chooseAuthorization(
  { links: { actions, grants } }: VerifyState,
  wanted: string,
  events: readonly EventMatch[],
): Action | Grant {
  const found = events.flatMap(({ eventId }) => {
    const id = fromDigestText(eventId);
    return actions.get(id) ?? grants.get(id) ?? [];
  });
  const [first] = found;
  if (first === undefined) throw refuseEvent(wanted, events);
  if (found.length > 1)
    throw refuse('AUTHORIZATION_AMBIGUOUS', `${printable(wanted)} names ${found.length} authorizations`);
  return first;
}

/** Why `wanted` names no usable authorization. */
function refuseEvent(wanted: string, events: readonly EventMatch[]): NorthrootError {
  const spent = events.find(({ kind }) => isUsedUp(kind));
  if (spent !== undefined) {
    const how = spent.kind === 'spent' ? 'executed' : 'released';
    return refuse('AUTHORIZATION_REUSED', `${spent.eventId} was ${how} already`);
  }
  const [other] = events;
  return other === undefined
    ? refuse('AUTH_NOT_FOUND', `no authorization ${printable(wanted)}`)
    : refuse('AUTH_NOT_AN_AUTHORIZATION', `${other.eventId} is no authorization`);
}

const HINTS: Readonly<Record<string, string>> = {
  AUTH_NOT_FOUND: 'name an authorization of the ledger',
  AUTH_NOT_AN_AUTHORIZATION: 'name an authorization of the ledger',
  AUTHORIZATION_AMBIGUOUS: 'give more of the id',
  AUTHORIZATION_STARTED:
    'wait for it; when its recorder was killed, take its start over, or settle what was begun',
  START_AMBIGUOUS: 'name one of them',
  START_NOT_FOUND: 'name what was started and is not recorded',
  SLICE_BEGUN: 'settle it by a checkpoint of that ledger at which its grant is stopped and nothing is open',
  STARTS_UNSETTLED: 'settle those whose recorders were killed',
  TOOL_PARAMS_MISMATCH: 'give what was authorized, or ask for this to be authorized',
  GRANT_UNSOUND: 'ask for another grant',
  AUTHORIZATION_REUSED: 'an action authorizes one execution: ask for another',
  EXECUTION_UNDER_DENY: 'the reason stands in the authorization',
};

export function refuse(code: string, message: string, hint = HINTS[code]): NorthrootError {
  return new NorthrootError(code, message, { hint });
}
