/** Executing under an authorization, and recording it: what `northroot record` does around a command; `start.ts` claims it before. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { type Digest, fromDigestText } from '../../base/value/digest.js';
import { formatRational } from '../../base/value/format-rational.js';
import { MAX_METERS, type Meter, type MeterVector } from '../../base/value/meter.js';
import { compareQuantities, toRational } from '../../base/value/quantity.js';
import { compareRationals, subtractRationals } from '../../base/value/rational.js';
import { matchRecord, parseRecordName } from '../../base/value/record-name.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { CODE_PAGES, isFindingCode } from '../../format/finding/catalog.js';
import type { MeterBasis } from '../../format/schema/generated/types.js';
import { sumQuantity } from '../../rules/bounds/balance.js';
import { type Action, type Grant, grantChain } from '../../rules/bounds/grant.js';
import { judgeExecution } from '../../rules/bounds/judge.js';
import { judgeTakeover, type OpenStart, withStarted } from '../../rules/bounds/started.js';
import { listRunning } from '../../rules/report/accounts.js';
import type { EventMatch } from '../../rules/verify/event-index.js';
import { MAX_OPEN_STARTS } from '../../rules/verify/starts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Appended, Entry, Ledger } from '../writer/ledger.js';
import type { AskOptions } from '../writer/withdrawal.js';
import {
  boundOf,
  type Denial,
  describeLeft,
  grantOf,
  judgeImported,
  judgeOverdraft,
  judgeSoundness,
} from './deciding-bound.js';
import { dryRun } from './dry-run.js';

/** An authorization under which something may be executed now. */
export interface Permission {
  readonly kind: 'action' | 'grant';
  /** `sha-256:…` */
  readonly authorizationId: string;
  readonly principalId: string;
  readonly toolName: string;
  readonly intentDigest: Digest;
  /** The parameters that were authorized; undefined under a grant. */
  readonly paramsDigest: Digest | undefined;
  /** What the action reserved; empty under a grant. */
  readonly reserved: MeterVector;
  /** The start that the execution settles, or that another start takes over: `sha-256:…`; undefined where there is none. */
  readonly startId: string | undefined;
  /** Of that start: when that was, and what it was known to use. */
  readonly started: Pick<OpenStart, 'startedAt' | 'meters'> | undefined;
}

/** What is to be executed, or was. */
export interface ExecutionRequest {
  /** Needed under a grant; an action has its own. */
  readonly toolName?: string;
  /** When it starts: a timestamp of SPEC §2. */
  readonly now: string;
  /** What it is known to use. */
  readonly meterUsed?: MeterVector;
  /**
   * The start that it takes over, or settles: an id, or a prefix of one; `true` for the only one that is open. With `done`, no bound is
   * asked: what was started and allowed is settled as it was.
   */
  readonly start?: string | true;
  /** Systems whose imported authority counts. Default: none. What was done already is recorded whatever it rests on. */
  readonly honourImported?: readonly string[] | undefined;
  /** What was done already is recorded also where it used more than was allowed; nothing else is forgiven it. */
  readonly done?: {
    readonly endedAt: string;
    /** Whether nothing was executed, and the reservation is given back (SPEC §8 rule 8). */
    readonly isRelease: boolean;
  };
}

/** By whom and what something was done, and where its amounts come from. */
export interface ExecutionDetails {
  /** Who says what was used (SPEC §3.2): `measured` by the recorder itself, `reported` by the tool, `estimated`, or `billed`. */
  readonly meterBasis?: MeterBasis | undefined;
  /** The model, as its provider calls it: 1 to 256 characters. */
  readonly modelId?: string | undefined;
  /** Who provides the tool or the model: 1 to 256 characters. */
  readonly provider?: string | undefined;
}

/** The types of {@link ExecutionDetails}. */
export const DETAIL_TYPES: OptionTypes<ExecutionDetails> = {
  meterBasis: 'string',
  modelId: 'string',
  provider: 'string',
};
const METER_BASES: readonly string[] = ['measured', 'reported', 'estimated', 'billed'];
const MAX_DETAIL_LENGTH = 256;

/**
 * Refuses details that no execution may have, before anything is done: afterwards it could not be recorded.
 *
 * @throws TypeError, RangeError naming the function and the option.
 */
export function checkDetails(where: string, details: ExecutionDetails): void {
  checkOptions(where, details, DETAIL_TYPES);
  const { meterBasis, modelId, provider } = details;
  if (meterBasis !== undefined && !METER_BASES.includes(meterBasis)) {
    throw new RangeError(`${where}: meterBasis: expected ${METER_BASES.join(', ')}`);
  }
  for (const [name, text] of Object.entries({ modelId, provider })) {
    if (text === undefined || isDetail(text)) continue;
    throw new RangeError(`${where}: ${name}: expected 1 to ${MAX_DETAIL_LENGTH} characters of Unicode text`);
  }
}

function isDetail(text: string): boolean {
  return text !== '' && text.length <= MAX_DETAIL_LENGTH && !/\p{Surrogate}/u.test(text);
}

/** What was done. */
export interface ExecutionOutcome extends ExecutionDetails {
  readonly startedAt: string;
  readonly endedAt: string;
  readonly meterUsed: MeterVector;
  /** The basis of single units, where that differs from `meterBasis` (SPEC §3.2). */
  readonly meterBasisByUnit?: Readonly<Record<string, MeterBasis>> | undefined;
  readonly outcome: 'success' | 'failure' | 'unknown';
  /** Required for a failure (SPEC §3.2). */
  readonly errorCode?: string;
  readonly outputDigest?: Digest;
}

/** What gives a reservation back when the action is not executed (SPEC §8 rule 8). */
export const ABANDONED = 'ABANDONED';

/** The code of what was started and ended before it did anything: that is no release, since it was begun, and uses nothing. */
export const ABORTED = 'ABORTED';

/**
 * Whether something may be executed under an authorization, by the rules that verification will apply to it. What was started and is not
 * recorded counts as reserved, as having happened and as going on; nothing is begun under a grant that is itself invalid or in violation,
 * or of which any unit is overdrawn.
 *
 * @param wanted - The authorization's seq, its id (`sha-256:…`, base64url or hex), or an unambiguous prefix of it. Over an index a
 *   prefix takes reading: {@link resolveAuthorization} gives the whole id.
 * @throws NorthrootError `AUTH_NOT_FOUND`, `AUTH_NOT_AN_AUTHORIZATION`, `AUTHORIZATION_AMBIGUOUS`, `EXECUTION_UNDER_DENY`, `AUTHORIZATION_REUSED`,
 *   `AUTHORIZATION_STARTED` (another recorder has begun to execute the action), `START_NOT_FOUND`, `START_AMBIGUOUS`, `STARTS_UNSETTLED`,
 *   `TOOL_MISMATCH`, `GRANT_UNSOUND`, or the code of the bound that the execution would break; `USAGE` when `wanted` is no
 *   id, or a tool is needed.
 */
export function findPermission(state: VerifyState, wanted: string, request: ExecutionRequest): Permission {
  const authorization = findAuthorization(state, wanted);
  const action = 'toolName' in authorization ? authorization : undefined;
  const id = authorization.place.eventId;
  const start = findStart(state, authorization, request);
  const toolName = action?.toolName ?? request.toolName ?? start?.toolName;
  if (toolName === undefined) {
    throw new NorthrootError('USAGE', `${id} is a grant: say which tool is called`);
  }
  if (request.toolName !== undefined && request.toolName !== (start?.toolName ?? toolName)) {
    throw refuse('TOOL_MISMATCH', `${id} is for ${start?.toolName ?? toolName}`);
  }
  if (authorization.decision === 'deny') throw refuse('EXECUTION_UNDER_DENY', `${id} was denied`);
  const startId = start?.place.eventId;
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
    intentDigest: toDigest(authorization.intent),
    paramsDigest: params === undefined ? undefined : toDigest(params),
    reserved: reservedBy(action),
    startId,
    started: start && { startedAt: start.startedAt, meters: start.meters },
  };
}

/** The start that is meant; of an action that is reported as done, the one that is open. */
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
    ...(permission.startId === undefined ? {} : { prev_event_id: toDigest(permission.startId) }),
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
    ...detailMembers(outcome),
  };
}

/** What becomes of what was reserved and not metered: it is charged as estimated use, or released by stating 0. */
export type Unmetered = 'charge' | 'release';

/**
 * An outcome that states every unit that was reserved (SPEC §8 rule 5: silence is not free), but for a failure that left nothing, which
 * gives back what it does not state.
 *
 * @param unsure - Units of which more may have been used than was metered: the greater of both amounts is charged.
 */
export function stateReserved(
  { reserved }: Pick<Permission, 'reserved'>,
  outcome: ExecutionOutcome,
  {
    unmetered = 'charge',
    unsure,
  }: { readonly unmetered?: Unmetered; readonly unsure?: ReadonlySet<string> } = {},
): ExecutionOutcome {
  if (outcome.outcome === 'failure' && outcome.outputDigest === undefined) return outcome;
  const meterUsed = [...outcome.meterUsed];
  const bases: Record<string, MeterBasis> = { ...outcome.meterBasisByUnit };
  for (const { unit, amount } of reserved) {
    const at = meterUsed.findIndex((meter) => meter.unit === unit);
    const isUnsure = unsure?.has(unit) === true;
    if (at !== -1 && !isUnsure) continue;
    // What does not fit counts all the same, by the rule.
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

/** The basis of what northroot measured itself, where another one is stated for the rest. */
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
}: ExecutionDetails & Pick<ExecutionOutcome, 'meterBasisByUnit'>): object {
  return {
    ...(meterBasisByUnit === undefined || Object.keys(meterBasisByUnit).length === 0
      ? {}
      : { meter_basis_by_unit: meterBasisByUnit }),
    ...(modelId === undefined ? {} : { model_id: modelId }),
    ...(provider === undefined ? {} : { provider }),
    ...(meterBasis === undefined ? {} : { meter_basis: meterBasis }),
  };
}

/**
 * The execution event's draft that settles a start of which nobody recorded the end: how it ended is unknown. What was begun is not
 * given back (SPEC §8 rule 8): it counts what was known to be used, and what the action reserved beside that as estimated use.
 *
 * @param permission - Found with `start` and `done`.
 * @param now - When it is settled.
 * @param meterUsed - What it used, where that is known; what was known at the start can only be raised.
 * @param details - Of what was done, where that is known.
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
  const { startedAt, meters } = started;
  const endedAt = compareTimestamps(now, startedAt) < 0 ? startedAt : now;
  const used = raiseMeters(meters, meterUsed);
  const outcome = { ...details, startedAt, endedAt, meterUsed: used, outcome: 'unknown' } as const;
  return draftExecution(permission, stateReserved(permission, outcome, options));
}

/**
 * The execution event's draft that settles what nobody else will: an action that was never started is released, and of what was started
 * it is said that how it ended is unknown.
 *
 * @param start - As of {@link ExecutionRequest}.
 * @throws NorthrootError as {@link findPermission}.
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
  const request = {
    now,
    done: { endedAt: now, isRelease: true },
    ...(toolName === undefined ? {} : { toolName }),
  };
  const authorization = findAuthorization(state, id);
  const isOpenAction = 'toolName' in authorization && authorization.decision === 'allow';
  const isStarted = state.links.starts.has(fromDigestText(authorization.place.eventId));
  if (start === true && meterUsed.length === 0 && isOpenAction && !isStarted) {
    const permission = findPermission(state, id, request);
    return { permission, draft: releaseUnder(permission, now) };
  }
  const permission = findPermission(state, id, { ...request, start });
  return { permission, draft: draftSettlement(permission, now, meterUsed, details) };
}

/**
 * The execution event's draft that gives back what an action reserved which nobody has begun (SPEC §8 rule 8).
 *
 * @throws NorthrootError as {@link findPermission}: `AUTHORIZATION_STARTED` where somebody has begun it.
 */
export function draftRelease(state: VerifyState, id: string, now: string): object {
  return releaseUnder(findPermission(state, id, { now, done: { endedAt: now, isRelease: true } }), now);
}

function releaseUnder(permission: Permission, now: string): object {
  const nothing = { meterUsed: [], outcome: 'failure', errorCode: ABANDONED } as const;
  return draftExecution(permission, { startedAt: now, endedAt: now, ...nothing });
}

/** Of each unit the greater amount: what was measured can be raised by what is said, never lowered. */
export function raiseMeters(measured: MeterVector, said: MeterVector): Meter[] {
  const raised = measured.map((own) => {
    const other = said.find(({ unit }) => unit === own.unit);
    return other !== undefined && compareQuantities(other.amount, own.amount) > 0 ? other : own;
  });
  return [...raised, ...said.filter(({ unit }) => !measured.some((own) => own.unit === unit))];
}

/** The rules that the execution would break. */
function judge(
  state: VerifyState,
  authorization: Action | Grant,
  startId: string | undefined,
  { toolName, now, meterUsed = [], done, honourImported }: ExecutionRequest & { readonly toolName: string },
): Denial[] {
  const action = 'toolName' in authorization ? authorization : undefined;
  const own = grantOf(authorization);
  // What was done is not held against what runs now.
  const isNew = done === undefined;
  const grant = isNew && own ? withStarted(own, listRunning(state, startId && fromDigestText(startId))) : own;
  const errorsOf = (used: MeterVector): Denial[] => {
    const { endedAt, isRelease } = done ?? {};
    const facts = dryRun(toolName, now, used);
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
  // What is reserved may be used: it has to fit its rates still.
  const errors = errorsOf(isNew ? raiseMeters(meterUsed, reservedBy(action)) : meterUsed);
  if (isNew) {
    const imported = judgeImported(own, action, honourImported);
    if (own === undefined) return [...imported, ...errors];
    return [...judgeSoundness(own), ...imported, ...errors, ...judgeOverdraft(own)];
  }
  return [
    ...errorsOf([]),
    ...errors.filter(({ code }) => isFindingCode(code) && CODE_PAGES[code].class === 'invalid'),
  ];
}

/** Who takes a start over counts what the earlier try may have used as well (SPEC §3.8): there must be room for it. */
function judgeSecondTry(state: VerifyState, authorization: Action | Grant, start: OpenStart): Denial[] {
  const own = grantOf(authorization);
  const others = listRunning(state, fromDigestText(start.place.eventId));
  const action = 'toolName' in authorization ? authorization : undefined;
  return [...judgeTakeover(start, action, own && withStarted(own, others)).findings];
}

function reservedBy(action: Action | undefined): Meter[] {
  return [...(action?.reservation ?? [])].map(([unit, amount]) => ({ unit, amount: sumQuantity(amount) }));
}

/** A bound that an execution has used up, or gone over. */
export interface SpentBound {
  /** `sha-256:…` */
  readonly grantId: string;
  readonly unit: string;
  readonly isOverspent: boolean;
  /** In words, such as `5.5 of 5 usd used, 0.5 over`. */
  readonly text: string;
}

/**
 * Which units that were used are used up under the grants above, or overspent.
 *
 * @param state - Of the ledger with the execution in it.
 * @param authorizationId - What it was executed under, `sha-256:…`; of an action, also when it is spent.
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
 * The id of the authorization that is meant, `sha-256:…`.
 *
 * @param asked - The ledger, or what verification says of it, in memory or over an index.
 * @param wanted - Its seq, its id (`sha-256:…`, base64url or hex), or an unambiguous prefix of it. A whole id is given back as it is.
 * @param options - A `signal` withdraws the question while it waits.
 * @throws NorthrootError `AUTH_NOT_FOUND`, `AUTH_NOT_AN_AUTHORIZATION`, `AUTHORIZATION_AMBIGUOUS`, `AUTHORIZATION_REUSED`, `USAGE`; as
 *   {@link Ledger.append}.
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
 * Appends what is made under an authorization, however people name that. A whole id is not looked for: calls keep their order.
 *
 * @param makes - As of {@link Ledger.decide}, given the id too, as is what comes before.
 * @throws NorthrootError as {@link resolveAuthorization} and {@link Ledger.decide}.
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
  if (events === undefined) {
    throw new NorthrootError('USAGE', `${printable(wanted)} has to be looked up in the index`, {
      hint: 'give the whole id: resolveAuthorization finds it',
    });
  }
  return chooseAuthorization(state, wanted, events);
}

/** @param events - Those that are meant, in ledger order. */
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
  if (found.length > 1) {
    throw refuse('AUTHORIZATION_AMBIGUOUS', `${printable(wanted)} names ${found.length} authorizations`);
  }
  return first;
}

/** Why there is no authorization to act under, where one was asked for by `wanted`. */
function refuseEvent(wanted: string, events: readonly EventMatch[]): NorthrootError {
  const spent = events.find(({ kind }) => kind === 'spent');
  if (spent !== undefined) return refuse('AUTHORIZATION_REUSED', `${spent.eventId} was executed already`);
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
  STARTS_UNSETTLED: 'settle those whose recorders were killed',
  TOOL_PARAMS_MISMATCH: 'give what was authorized, or ask for this to be authorized',
  GRANT_UNSOUND: 'ask for another grant',
  AUTHORIZATION_REUSED: 'an action authorizes one execution: ask for another',
  EXECUTION_UNDER_DENY: 'the reason stands in the authorization',
};

/** Why something may not be executed, with what to do. */
export function refuse(code: string, message: string, hint = HINTS[code]): NorthrootError {
  return new NorthrootError(code, message, { hint });
}

/** @param key - As text, `sha-256:…`. */
export function toDigest(key: string): Digest {
  const at = key.indexOf(':');
  return { alg: key.slice(0, at), b64: key.slice(at + 1) };
}
