/**
 * The history of one event: its verdict, who decided under which policy, the grants above it with their accounts before and after, and what
 * followed.
 */

import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { type JsonObject, type JsonValue, membersOf } from '../../base/json/value.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { type Finding, withoutFolded } from '../../format/finding/finding.js';
import { examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { FindingJson, TrustPolicy } from '../../format/schema/generated/types.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { type Balance, toBalance } from '../../rules/bounds/balance.js';
import type { Approval } from '../../rules/bounds/approval.js';
import { type Account, chainIds, grantChain } from '../../rules/bounds/grant.js';
import { findGrant, listOpenStarts, nameOfKey } from '../../rules/report/accounts.js';
import { toFindingJson } from '../../rules/report/report.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { type LedgerLine, readLines } from '../../rules/source/read-lines.js';
import { hasFormOfRelease } from '../../rules/verify/authorizations.js';
import { finishVerification } from '../../rules/verify/ending.js';
import { findGrantAbove, findNamed, readEventId } from '../../rules/verify/grant-above.js';
import type { EventVerdict, LineResult, SignatureOutcome } from '../../rules/verify/line-result.js';
import { startVerification, type VerifyState } from '../../rules/verify/state.js';
import { verifyLine } from '../../rules/verify/verify-line.js';
import { IndexFault, IndexGap } from '../cache/entry-store.js';
import type { RecordReader } from '../cache/record-reader.js';
import { type ReadRecord, readRecords } from './read-records.js';

export interface HistoryEvent {
  readonly file: string;
  readonly line: number;
  readonly seq: number;
  readonly event_id: string;
  readonly event: JsonObject;
}

export interface HistoryKey {
  readonly keyid: string;
  readonly name?: string;
}

export interface HistorySignature extends HistoryKey {
  readonly outcome: SignatureOutcome['outcome'];
  readonly code?: string;
  readonly roles?: readonly string[];
  /** The index of the repeated signature. */
  readonly copy_of?: number;
}

/** With the keys whose signatures count. */
export interface HistorySigned extends HistoryEvent {
  readonly signers: readonly HistoryKey[];
}

export interface HistoryAdjustment extends HistoryEvent {
  readonly verdict: EventVerdict;
  /** Whose signatures count. */
  readonly signers: readonly HistoryKey[];
}

/** A grant above the event, with its accounts just before and after it. */
export interface HistoryGrant extends HistoryEvent {
  /** Whose signatures count. */
  readonly signers: readonly HistoryKey[];
  readonly before: readonly Balance[];
  readonly after: readonly Balance[];
}

export interface HistoryStart {
  readonly seq: number;
  readonly event_id: string;
  readonly auth_event_id: string;
  readonly tool_name: string;
  readonly started_at: string;
  readonly recorder: string;
}

/** The wire form, as `why --format json` prints it. */
export interface EventHistory extends HistoryEvent {
  readonly verdict: EventVerdict;
  readonly findings: readonly FindingJson[];
  /** In record order. */
  readonly signatures: readonly HistorySignature[];
  /** For an execution. */
  readonly authorization: HistoryEvent | undefined;
  /** Nearest first. */
  readonly grants: readonly HistoryGrant[];
  /** For a grant: its accounts at the end of the ledger. */
  readonly account: readonly Balance[] | undefined;
  /** For a grant: the first ones. */
  readonly adjustments: readonly HistoryAdjustment[];
  readonly adjustments_total: number;
  /** For an approval: the denied action that asked for it. */
  readonly request: HistoryEvent | undefined;
  /** For an approval: the action that used it up. */
  readonly used_by: HistoryEvent | undefined;
  /** For an action, and for an execution of one: the approvals that it used up. */
  readonly approvals: readonly HistorySigned[];
  /** For a grant: the first revocations, suspensions and resumptions of it and of the grants above it. */
  readonly withdrawals: readonly HistorySigned[];
  readonly withdrawals_total: number;
  /** For a grant: the first executions under it that are recorded while it is stopped. */
  readonly after_stop: readonly HistoryEvent[];
  readonly after_stop_total: number;
  /** For an authorization: the first starts open at the end of the ledger. */
  readonly starts: readonly HistoryStart[];
  /** For an authorization: the first executions that name it. */
  readonly executions: readonly HistoryEvent[];
  readonly executions_total: number;
}

const MAX_EXECUTIONS = 100;

const MAX_STARTS = 100;

const MAX_ADJUSTMENTS = 100;

const MAX_WITHDRAWALS = 100;

const MAX_AFTER_STOP = 100;

/** The event by id, `sha-256:…`, and by its place if the ledger has several copies. */
type HistoryOf = Pick<ReadRecord, 'eventId'> & Partial<Pick<ReadRecord, 'file' | 'line'>>;

type HistoryPlace = Pick<HistoryEvent, 'file' | 'line'>;

interface Seen {
  readonly file: string;
  readonly line: number;
  readonly ids: ReadonlySet<string>;
  readonly verdict: EventVerdict;
  readonly signatures: readonly HistorySignature[];
  readonly before: ReadonlyMap<string, readonly Balance[]>;
  readonly after: ReadonlyMap<string, readonly Balance[]>;
}

interface Watched {
  readonly seen: Seen;
  readonly findings: readonly Finding[];
  readonly account: readonly Balance[] | undefined;
  readonly signersOfGrants: ReadonlyMap<string, readonly HistoryKey[]>;
  readonly adjustments: readonly HistoryAdjustment[];
  readonly adjustmentsTotal: number;
  readonly starts: readonly HistoryStart[];
  readonly oversight: Oversight;
  readonly afterStop: ReadonlySet<string>;
  readonly afterStopTotal: number;
}

/** What approvals and revocations have to do with an event, by ids, `sha-256:…`. */
interface Oversight {
  readonly usedBy: string | undefined;
  readonly approvals: readonly SignedPlace[];
  readonly withdrawals: readonly SignedPlace[];
  readonly withdrawalsTotal: number;
}

interface SignedPlace {
  readonly id: string;
  readonly signers: readonly HistoryKey[];
}

/**
 * The history of one event.
 * @param open - Opens the ledger, which is read twice
 * @throws NorthrootError `RECORD_NOT_FOUND`, and as the source does; the signal's reason
 */
export async function explainEvent(
  open: () => Promise<LedgerSource>,
  of: HistoryOf,
  trust?: TrustPolicy,
  signal?: AbortSignal,
): Promise<EventHistory> {
  const { eventId } = of;
  const { seen, findings, account, ...watched } = await watch(await open(), of, trust, signal);
  const { usedBy, approvals, withdrawals, withdrawalsTotal } = watched.oversight;
  const related = new Set([
    ...seen.ids,
    ...(usedBy === undefined ? [] : [usedBy]),
    ...[...approvals, ...withdrawals].map(({ id }) => id),
  ]);
  const records = new Map<string, ReadRecord>();
  const afterStop: HistoryEvent[] = [];
  const executions: HistoryEvent[] = [];
  let total = 0;
  let told: ReadRecord | undefined;
  for await (const record of readRecords(await open(), { signal })) {
    if (record.file === seen.file && record.line === seen.line) told = record;
    if (related.has(record.eventId) && !records.has(record.eventId)) records.set(record.eventId, record);
    if (watched.afterStop.has(record.eventId)) afterStop.push(toEvent(record));
    if (record.event['event_type'] !== 'execution' || readEventId(record.event['auth_event_id']) !== eventId)
      continue;
    total += 1;
    if (executions.length < MAX_EXECUTIONS) executions.push(toEvent(record));
  }
  if (told === undefined) throw notFound(eventId);
  const find = (id: string | undefined): HistoryEvent | undefined => {
    const record = records.get(id ?? '');
    return record && toEvent(record);
  };
  const findSigned = ({ id, signers }: SignedPlace): HistorySigned[] => {
    const event = find(id);
    return event === undefined ? [] : [{ ...event, signers }];
  };
  return {
    ...toEvent(told),
    verdict: worstOf(seen.verdict, findings),
    findings: findings.map(toFindingJson),
    signatures: seen.signatures,
    authorization: find(readEventId(told.event['auth_event_id'])),
    request: find(readEventId(told.event['request_event_id'])),
    used_by: find(usedBy),
    approvals: approvals.flatMap(findSigned),
    withdrawals: withdrawals.flatMap(findSigned),
    withdrawals_total: withdrawalsTotal,
    after_stop: afterStop,
    after_stop_total: watched.afterStopTotal,
    grants: [...seen.before].flatMap(([id, before]) => {
      const grant = records.get(id);
      const signers = watched.signersOfGrants.get(id) ?? [];
      const after = seen.after.get(id) ?? [];
      return grant === undefined ? [] : [{ ...toEvent(grant), signers, before, after }];
    }),
    account,
    adjustments: watched.adjustments,
    adjustments_total: watched.adjustmentsTotal,
    starts: watched.starts,
    executions,
    executions_total: total,
  };
}

/**
 * As {@link explainEvent}, from an index.
 * @param state - The index's state at the end of the ledger
 * @param ordinal - The record's, from 0
 * @throws IndexGap if the ledger must be read; IndexFault
 */
export async function explainIndexedEvent(
  records: RecordReader,
  state: VerifyState,
  ordinal: number,
): Promise<EventHistory> {
  const told = records.isRegular ? await records.describe(ordinal) : undefined;
  const { record, findings: own, above } = told ?? {};
  if (told === undefined || record === undefined || own === undefined || above === undefined)
    throw new IndexGap();
  const { eventId, event } = record;
  // What ran after a stop is known by its place alone.
  if (wasStopped(state, eventId)) throw new IndexGap();
  // The record's own entry covers waiting links.
  const ending = finishVerification({ ...state, links: { ...state.links, pending: new Map() } });
  const atEnd = ending.findings.filter(({ at }) => at.file === record.file && at.line === record.line);
  const findings = [...own, ...atEnd].map(withoutFolded);
  const keyAt = keyNamer(state, ordinal);
  const keyOf = keyNamer(state);
  const find = async (id: string | undefined): Promise<HistoryEvent | undefined> => {
    const found = id === undefined ? undefined : await records.readEvent(id);
    return found && toEvent(found);
  };
  const authorization = await find(readEventId(event['auth_event_id']));
  // Only a grant has withdrawals.
  if (state.links.grants.get(fromDigestText(eventId)) !== undefined) await state.links.revocations.load?.();
  const approvals = findApprovals(state, (authorization?.event ?? event)['authorization']);
  const oversight = oversee(state, eventId, event, keyOf, approvals);
  const findSigned = async (all: readonly SignedPlace[]): Promise<HistorySigned[]> => {
    const list: HistorySigned[] = [];
    for (const { id, signers } of all) {
      const found = await find(id);
      if (found !== undefined) list.push({ ...found, signers });
    }
    return list;
  };
  const grants: HistoryGrant[] = [];
  for (const { grantId, before, after } of above) {
    const grant = await records.readEvent(grantId);
    if (grant === undefined) continue;
    const signers = (findGrant(state, grantId)?.signers ?? []).map(keyOf);
    grants.push({ ...toEvent(grant), signers, before: toBalances(before), after: toBalances(after) });
  }
  const corrections = records.adjustmentsOf(eventId);
  const adjustments: HistoryAdjustment[] = [];
  for (const place of corrections.ordinals) {
    // A claimed id may name its own adjustment; the count is then unknown.
    const adjustment = place === ordinal ? undefined : await records.describe(place);
    if (adjustment === undefined) throw new IndexGap();
    const { verdict, signatures } = adjustment;
    const signers = listSigners(signatures).map(keyNamer(state, place));
    adjustments.push({ ...toEvent(adjustment.record), verdict, signers });
  }
  const attempts = records.executionsOf(eventId);
  const executions: HistoryEvent[] = [];
  for (const place of attempts.ordinals) {
    const execution = await records.read(place);
    if (execution === undefined) throw new IndexFault('an execution is not where its entry says');
    executions.push(toEvent(execution));
  }
  return {
    ...toEvent(record),
    verdict: worstOf(told.verdict, findings),
    findings: findings.map(toFindingJson),
    signatures: told.signatures.map((signature) => toHistorySignature(signature, keyAt)),
    authorization,
    request: await find(readEventId(event['request_event_id'])),
    used_by: await find(oversight.usedBy),
    approvals: await findSigned(oversight.approvals),
    withdrawals: await findSigned(oversight.withdrawals),
    withdrawals_total: oversight.withdrawalsTotal,
    after_stop: [],
    after_stop_total: 0,
    grants,
    account: findGrant(state, eventId)?.balances,
    adjustments,
    adjustments_total: corrections.total,
    starts: startsUnder(state, eventId),
    executions,
    executions_total: attempts.total,
  };
}

/** Names a key as of a record's ordinal; later keys have no name. */
function keyNamer(state: VerifyState, ordinal = Infinity): (keyid: string) => HistoryKey {
  return (keyid) => {
    const isKnown = (state.keyring.find(keyid)?.addedAt?.seq ?? -1) <= ordinal;
    return { keyid, ...defined({ name: isKnown ? nameOfKey(state, keyid) : undefined }) };
  };
}

function toHistorySignature(
  { copyOf, keyid, ...outcome }: SignatureOutcome,
  keyOf: (keyid: string) => HistoryKey,
): HistorySignature {
  return { ...keyOf(keyid), ...outcome, ...defined({ copy_of: copyOf }) };
}

function listSigners(signatures: readonly SignatureOutcome[]): string[] {
  return [...new Set(signatures.filter(({ outcome }) => outcome === 'valid').map(({ keyid }) => keyid))];
}

function toBalances(accounts: ReadonlyMap<string, Account>): Balance[] {
  return [...accounts].map(([unit, account]) => toBalance(unit, account));
}

/** The end of the ledger may show broken evidence. */
function worstOf(verdict: EventVerdict, findings: readonly Finding[]): EventVerdict {
  return findings.some(({ class: of }) => of === 'invalid') ? 'invalid' : verdict;
}

/** Verifies the whole ledger, and captures the accounts just before and after the event. */
async function watch(
  source: LedgerSource,
  of: HistoryOf,
  trust: TrustPolicy | undefined,
  signal: AbortSignal | undefined,
): Promise<Watched> {
  const state = startVerification(trust, defaultBackend);
  const findings: Finding[] = [];
  let seen: Seen | undefined;
  let told: JsonObject | undefined;
  const adjustments: HistoryAdjustment[] = [];
  let adjustmentsTotal = 0;
  const keyOf = keyNamer(state);
  const takeAdjustment = ({ examined, verdict, signatures }: LineResult, at: HistoryPlace): void => {
    if (examined?.eventType !== 'adjustment') return;
    const { eventId, seq = state.records - 1 } = examined;
    const event = examined.json();
    if (event === undefined || eventId === undefined) return;
    if (readEventId(event['grant_event_id']) !== of.eventId) return;
    adjustmentsTotal += 1;
    if (adjustments.length >= MAX_ADJUSTMENTS) return;
    adjustments.push({
      ...at,
      seq,
      event_id: toDigestText(eventId),
      event,
      verdict,
      signers: listSigners(signatures).map(keyOf),
    });
  };
  const afterStop = new Set<string>();
  let afterStopTotal = 0;
  const takeAfterStop = ({ examined, context }: LineResult): void => {
    if (examined?.type !== 'execution' || context.grantIds?.includes(of.eventId) !== true) return;
    const grant = state.links.grants.get(fromDigestText(of.eventId));
    if (grant === undefined || !grantChain(grant).some(({ withdrawal }) => withdrawal?.stop !== undefined))
      return;
    if (hasFormOfRelease(examined.event())) return;
    const id = toDigestText(examined.eventId);
    if (afterStop.has(id)) return;
    afterStopTotal += 1;
    if (afterStop.size < MAX_AFTER_STOP) afterStop.add(id);
  };
  const take = (list: readonly Finding[]): void => {
    for (const finding of list) {
      if (finding.at.file !== seen?.file || finding.at.line !== seen.line) continue;
      // Similar findings elsewhere are reported on their own.
      findings.push(withoutFolded(finding));
    }
  };
  const takeLine = ({ line, segment, takesPlace }: LedgerLine): void => {
    const { file } = segment;
    const { number } = line;
    const isHere = (of.file ?? file) === file && (of.line ?? number) === number;
    const isReadable = takesPlace && line.length <= MAX_LINE_BYTES;
    const peek =
      seen === undefined && isHere && isReadable ? examineLine(line.bytes, state.layout) : undefined;
    if (peek?.eventId === undefined || toDigestText(peek.eventId) !== of.eventId) {
      const result = verifyLine(state, line, segment);
      take(result.findings);
      takeAdjustment(result, { file, line: number });
      takeAfterStop(result);
      return;
    }
    // Removed so that this event's findings are reported in full, not folded or held back.
    const named = findNamed(peek);
    if (named !== undefined) state.links.pending.delete(fromDigestText(named));
    const ids = chainIds(findGrantAbove(state, peek));
    const before = balancesOf(state, ids);
    const { own, verdict, signatures } = verifyLine(state, line, segment);
    const request = readEventId(peek.json()?.['request_event_id']);
    told = peek.json();
    const related = [named, request, ...ids].filter((id) => id !== undefined);
    seen = {
      file,
      line: number,
      ids: new Set(related),
      verdict,
      signatures: signatures.map((signature) => toHistorySignature(signature, keyOf)),
      before,
      after: balancesOf(state, ids),
    };
    take(own);
  };
  for await (const line of readLines(source, { signal })) takeLine(line);
  take(finishVerification(state).findings);
  if (seen === undefined) throw notFound(of.eventId);
  const signersOf = (id: string): HistoryKey[] => (findGrant(state, id)?.signers ?? []).map(keyOf);
  return {
    seen,
    findings,
    account: findGrant(state, of.eventId)?.balances,
    signersOfGrants: new Map([...seen.before.keys()].map((id) => [id, signersOf(id)])),
    adjustments,
    adjustmentsTotal,
    starts: startsUnder(state, of.eventId),
    oversight: oversee(state, of.eventId, told ?? {}, keyOf, state.links.approvals.values()),
    afterStop,
    afterStopTotal,
  };
}

function wasStopped({ links }: VerifyState, grantId: string): boolean {
  return grantChain(links.grants.get(fromDigestText(grantId))).some(
    ({ withdrawal, stopped }) => withdrawal?.stop !== undefined || stopped !== undefined,
  );
}

/** The approvals that an action names: it uses up no others. */
function findApprovals({ links }: VerifyState, authorization: JsonValue | undefined): Approval[] {
  const { approval_event_ids: named } = membersOf(membersOf(authorization)['action']);
  return (Array.isArray(named) ? named : []).flatMap((each) => {
    const id = readEventId(each);
    return (id === undefined ? undefined : links.approvals.get(fromDigestText(id))) ?? [];
  });
}

/**
 * What has approved an event, or used it up, and what has withdrawn it, as known at the end of the ledger.
 * @param given - Approvals, with all that the event's action has used up
 */
function oversee(
  { links }: VerifyState,
  eventId: string,
  event: JsonObject,
  keyOf: (keyid: string) => HistoryKey,
  given: Iterable<Approval>,
): Oversight {
  const action = readEventId(event['auth_event_id']) ?? eventId;
  const approvals = [...given]
    .filter(({ usedBy }) => usedBy === action)
    .sort((a, b) => a.place.seq - b.place.seq)
    .map(({ place, signers }) => ({ id: place.eventId, signers: signers.map(keyOf) }));
  const chain = chainIds(links.grants.get(fromDigestText(eventId)));
  const withdrawals: SignedPlace[] = [];
  let withdrawalsTotal = 0;
  for (const { grantId, place, signers } of chain.length === 0 ? [] : links.revocations) {
    if (!chain.includes(grantId)) continue;
    withdrawalsTotal += 1;
    if (withdrawals.length < MAX_WITHDRAWALS)
      withdrawals.push({ id: place.eventId, signers: signers.map(keyOf) });
  }
  const usedBy = links.approvals.get(fromDigestText(eventId))?.usedBy;
  return { usedBy, approvals, withdrawals, withdrawalsTotal };
}

function startsUnder(state: VerifyState, eventId: string): HistoryStart[] {
  return listOpenStarts(state)
    .filter(({ authorizationId, grantId }) => authorizationId === eventId || grantId === eventId)
    .slice(0, MAX_STARTS)
    .map((start) => ({
      seq: start.seq,
      event_id: start.eventId,
      auth_event_id: start.authorizationId,
      tool_name: start.toolName,
      started_at: start.startedAt,
      recorder: start.recorder,
    }));
}

function notFound(eventId: string): NorthrootError {
  return new NorthrootError('RECORD_NOT_FOUND', `no event ${eventId} in the ledger`);
}

function balancesOf(state: VerifyState, ids: readonly string[]): Map<string, readonly Balance[]> {
  return new Map(ids.map((id) => [id, findGrant(state, id)?.balances ?? []]));
}

function toEvent({ file, line, seq, eventId, event }: ReadRecord): HistoryEvent {
  return { file, line, seq, event_id: eventId, event };
}
