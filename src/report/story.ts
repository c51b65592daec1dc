/**
 * The whole story of one event, put together from a ledger: what it says, the verdict on it, who decided and under which
 * policy, the grants above it with their accounts before and after, and what came of it.
 */

import { chainIds } from '../bounds/grant.js';
import { NorthrootError } from '../error.js';
import type { Finding } from '../finding/finding.js';
import type { LedgerSource } from '../fs/source.js';
import type { JsonObject, JsonValue } from '../json/value.js';
import { examineLine, type ExaminedLine } from '../ledger/examine-line.js';
import { LineSplitter, MAX_LINE_BYTES } from '../ledger/line-splitter.js';
import type { FindingJson, TrustPolicy } from '../schema/generated/types.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import { readRecords, type ReadRecord } from '../verify/read-records.js';
import { startVerification, type EventVerdict, type VerifyState } from '../verify/state.js';
import { finishVerification, verifyLine } from '../verify/verify-line.js';
import { findGrant, type Balance } from './accounts.js';
import { toFindingJson } from './report.js';

/** An event in a story. */
export interface StoryEvent {
  readonly file: string;
  readonly line: number;
  readonly seq: number;
  readonly event_id: string;
  readonly event: JsonObject;
}

/** A grant above the event, with its accounts just before and just after the event. */
export interface StoryGrant extends StoryEvent {
  readonly before: readonly Balance[];
  readonly after: readonly Balance[];
}

/** The story of one event. */
export interface Story extends StoryEvent {
  readonly verdict: EventVerdict;
  readonly findings: readonly FindingJson[];
  readonly keyids: readonly string[];
  /** Of an execution: what authorized it. */
  readonly authorization: StoryEvent | undefined;
  /** Nearest first. */
  readonly grants: readonly StoryGrant[];
  /** Of an authorization: the executions that name it. */
  readonly executions: readonly StoryEvent[];
}

/** The most executions that a story lists. */
const MAX_EXECUTIONS = 100;

interface Seen {
  /** The events that the story needs. */
  readonly ids: ReadonlySet<string>;
  readonly verdict: EventVerdict;
  readonly before: ReadonlyMap<string, readonly Balance[]>;
  readonly after: ReadonlyMap<string, readonly Balance[]>;
}

/**
 * Tells the story of the event of an id.
 *
 * @param open - Opens the ledger; it is read twice.
 * @param eventId - `sha-256:…`, whole.
 * @throws NorthrootError `RECORD_NOT_FOUND`, and as the source does.
 */
export async function tellStory(
  open: () => Promise<LedgerSource>,
  eventId: string,
  trust?: TrustPolicy,
): Promise<Story> {
  const findings: Finding[] = [];
  const seen = await watch(await open(), eventId, trust, findings);
  if (seen === undefined) {
    throw new NorthrootError('RECORD_NOT_FOUND', `no event ${eventId} in the ledger`, {
      hint: 'northroot log lists the records',
    });
  }
  const records = new Map<string, ReadRecord>();
  const executions: StoryEvent[] = [];
  for await (const record of readRecords(await open())) {
    if (seen.ids.has(record.eventId) && !records.has(record.eventId)) records.set(record.eventId, record);
    const isExecution = record.event['event_type'] === 'execution';
    if (
      isExecution &&
      idOf(record.event['auth_event_id']) === eventId &&
      executions.length < MAX_EXECUTIONS
    ) {
      executions.push(toEvent(record));
    }
  }
  const record = records.get(eventId) as ReadRecord;
  const authorization = records.get(idOf(record.event['auth_event_id']) ?? '');
  return {
    ...toEvent(record),
    verdict: seen.verdict,
    findings: findings.map(toFindingJson),
    keyids: record.signatures.map(({ keyid }) => keyid),
    authorization: authorization && toEvent(authorization),
    grants: [...seen.before].flatMap(([id, before]) => {
      const grant = records.get(id);
      return grant === undefined ? [] : [{ ...toEvent(grant), before, after: seen.after.get(id) ?? [] }];
    }),
    executions,
  };
}

/** Verifies the ledger to its end, and looks at the accounts just before and just after the event. */
async function watch(
  source: LedgerSource,
  eventId: string,
  trust: TrustPolicy | undefined,
  findings: Finding[],
): Promise<Seen | undefined> {
  const state = startVerification(trust, nodeVerifier);
  let seen: Seen | undefined;
  const take = (list: readonly Finding[]): void => {
    findings.push(...list.filter((finding) => finding.eventId === eventId));
  };
  for await (const segment of source.segments) {
    const splitter = new LineSplitter();
    for await (const chunk of segment.chunks) {
      for (const line of splitter.push(chunk)) {
        const isReadable = line.length > 0 && line.length <= MAX_LINE_BYTES;
        const peek = seen === undefined && isReadable ? examineLine(line.bytes, state.layout) : undefined;
        const isIt = peek?.eventId !== undefined && `sha-256:${peek.eventId}` === eventId;
        const ids = isIt ? grantIdsOf(state, peek) : [];
        const before = balancesOf(state, ids);
        const result = verifyLine(state, line, segment);
        take(result.findings);
        if (isIt) {
          const related = [eventId, namedBy(peek), ...ids].filter((id) => id !== undefined);
          seen = { ids: new Set(related), verdict: result.verdict, before, after: balancesOf(state, ids) };
        }
      }
    }
  }
  take(finishVerification(state));
  return seen;
}

/** The grants that an event is under, nearest first. */
function grantIdsOf(state: VerifyState, line: ExaminedLine): string[] {
  const { grants, actions } = state.links;
  const named = namedBy(line);
  if (named === undefined) return [];
  const id = named.slice('sha-256:'.length);
  const spent = state.events.find(id)?.grant ?? -1;
  return chainIds(grants.get(id) ?? actions.get(id)?.grant ?? state.links.grantList[spent]);
}

/** What an execution names as its authorization, or an authorization as its grant. */
function namedBy({ event }: ExaminedLine): string | undefined {
  return idOf(event?.['auth_event_id']) ?? idOf(objectOf(event?.['authorization'])['grant_event_id']);
}

function balancesOf(state: VerifyState, ids: readonly string[]): Map<string, readonly Balance[]> {
  return new Map(ids.map((id) => [id, findGrant(state, id)?.balances ?? []]));
}

function toEvent({ file, line, seq, eventId, event }: ReadRecord): StoryEvent {
  return { file, line, seq, event_id: eventId, event };
}

function idOf(value: JsonValue | undefined): string | undefined {
  const { b64 } = objectOf(value);
  return typeof b64 === 'string' ? `sha-256:${b64}` : undefined;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}
