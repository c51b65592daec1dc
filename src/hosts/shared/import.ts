/**
 * Bringing what a host's files say into a ledger. Everything is read and judged before anything is written; what is written is the same
 * whenever the same files are read, so that importing them again adds nothing.
 */

import { setMaxListeners } from 'node:events';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { NorthrootError } from '../../base/error.js';
import type { JsonObject } from '../../base/json/value.js';
import { checkOptions } from '../../base/options.js';
import { readRecords } from '../../log/read/read-records.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { toDigestText } from '../../base/value/digest.js';
import type { Ledger } from '../../log/writer/ledger.js';
import { type ClaimedEvent, eventsOfClaims } from './claims.js';
import type { Host, HostFile, HostFinding, HostReading } from './host.js';
import { type HostReadOptions, readHost } from './read-host.js';
import { findingsOf } from './findings.js';

export interface KnownLedger {
  /** The id of its genesis event, `sha-256:…`: new events are bound to it. Undefined of bare events. */
  readonly ledgerId: string | undefined;
  /** Ids of events, `sha-256:…`, by `source.id`. */
  readonly sources: ReadonlyMap<string, string>;
  /** `source.id` of executions whose outcome was unknown. */
  readonly openEnds: ReadonlySet<string>;
  /** How many records were read: what {@link appendImport} knows of. */
  readonly size?: number | undefined;
  readonly ownGrants?: number | undefined;
}

/** What lets somebody act, or gives budget back, on the word of the system alone (SPEC §8, "Imported authority"). */
export interface AuthorityCounts {
  readonly grants: number;
  readonly actions: number;
  readonly credits: number;
  /** {@link KnownLedger.ownGrants}, beside which it would stand. */
  readonly ownGrants: number;
}

export interface PlanOptions extends HostReadOptions {
  /** The ledger that the events are for; see {@link readKnownLedger}. Without it they are bound to none. */
  readonly into?: KnownLedger | undefined;
}

export interface ImportPlan {
  readonly host: Host;
  readonly reading: HostReading;
  /** The reading's findings, and those of making events of it. */
  readonly findings: readonly HostFinding[];
  /** To be appended, in this order. Those that the ledger has already are not among them. */
  readonly events: readonly ClaimedEvent[];
  /** Events that the ledger has already. */
  readonly existing: number;
  /** Events whose `source.id` the ledger has with another content, which it keeps, and those that name one. They are not appended. */
  readonly conflicting: number;
  readonly unfit: number;
  readonly byType: ReadonlyMap<string, number>;
  /** Among all events, those that the ledger has already too. */
  readonly authority: AuthorityCounts;
  /** {@link KnownLedger.size} of the ledger that it was made for. */
  readonly knownSize?: number | undefined;
}

/**
 * Reads a host's files and says what an import of them would write.
 *
 * @throws TypeError, RangeError for options that are not known or of the wrong type
 */
export function planImport(host: Host, files: readonly HostFile[], options: PlanOptions = {}): ImportPlan {
  checkOptions('planImport', options, {
    into: 'object',
    occurredAt: 'string',
    aids: 'object',
    unverified: 'boolean',
    timeZone: 'string',
  });
  const { into, ...readOptions } = options;
  return planReading(host, readHost(host, files, readOptions), into);
}

/** The same for files that were read, so that they need not be read again for another ledger. @param into - As {@link PlanOptions.into}. */
export function planReading(host: Host, reading: HostReading, into?: KnownLedger): ImportPlan {
  const known: KnownLedger['sources'] = into?.sources ?? new Map<string, string>();
  const made = eventsOfClaims(reading.claims, {
    system: host.name,
    ledgerId: into?.ledgerId,
    known,
  });
  const findings = [...reading.findings];
  for (const { at, id, error } of made.unfit)
    findings.push(finding('CLAIM_UNFIT', at, { about: id, actual: error.message }));
  const ids = new Map(known);
  /** Claims that the ledger has with another content, and what names them: it would name something else there. */
  const others = new Set<string>();
  /** Claims that the ledger has as another source of the host told of them. */
  const elsewhere = new Set<string>();
  /** Claims that the ledger has, from the same item or from another source. */
  const standing = new Set<string>();
  const byType = new Map<string, number>();
  const events: ClaimedEvent[] = [];
  let existing = 0;
  const isOpen = (sourceId: string): boolean => into?.openEnds.has(sourceId) === true;
  const isKnownBefore = ({ event, sourceId }: ClaimedEvent): boolean =>
    known.has(sourceId) && !isOpen(sourceId) && event['outcome'] === 'unknown';
  for (const claimed of made.events) {
    const { event, sourceId, at, restsOn, sameAs } = claimed;
    byType.set(event.event_type, (byType.get(event.event_type) ?? 0) + 1);
    const id = toDigestText(event.event_id.b64);
    const own = ids.get(sourceId);
    const other = own === undefined ? sameAs.find((each) => known.has(each)) : undefined;
    const had = own ?? (other === undefined ? undefined : known.get(other));
    const isLater = isOpen(other ?? sourceId) && event['outcome'] !== 'unknown';
    if (had === id || (other !== undefined && !isLater)) {
      standing.add(sourceId);
      if (other !== undefined) elsewhere.add(sourceId);
      existing += 1;
    } else if (
      claimed.kind === 'digests' &&
      standing.has(restsOn!) &&
      (had !== undefined || elsewhere.has(restsOn!))
    ) {
      // The ledger has digests of it. What could be computed again depends on which other files there were.
      existing += 1;
    } else if (had === undefined && (restsOn === undefined || !others.has(restsOn))) {
      ids.set(sourceId, id);
      events.push(claimed);
    } else {
      others.add(sourceId);
      if (had === undefined || (restsOn !== undefined && others.has(restsOn))) continue;
      const known = isLater ? 'OUTCOME_KNOWN_LATER' : 'SOURCE_CONFLICT';
      const code = isKnownBefore(claimed) ? 'OUTCOME_KNOWN_BEFORE' : known;
      const expected = `what was recorded of it before, ${had}`;
      findings.push(finding(code, at, { about: sourceId, expected }));
    }
  }
  const conflicting = others.size;
  const unfit = made.unfit.length;
  const authority = { ...countAuthority(made.events), ownGrants: into?.ownGrants ?? 0 };
  const counts = { existing, conflicting, unfit, byType, authority };
  return { host, reading, findings, events, ...counts, knownSize: into?.size };
}

const finding = findingsOf({
  CLAIM_UNFIT: ['INPUT', 'invalid', 'what an event can hold'],
  SOURCE_CONFLICT: ['INPUT', 'invalid', undefined, 'other content; the ledger keeps what it has'],
  OUTCOME_KNOWN_LATER: [
    'INPUT',
    'warning',
    undefined,
    'how it ended, which was not known then; the ledger keeps that',
  ],
  OUTCOME_KNOWN_BEFORE: [
    'INPUT',
    'warning',
    undefined,
    'no end, as in a log that was cut; the ledger keeps how it ended',
  ],
});

function countAuthority(events: readonly ClaimedEvent[]): Omit<AuthorityCounts, 'ownGrants'> {
  const counts = { grants: 0, actions: 0, credits: 0 };
  for (const { event } of events) {
    if (isAllowed(event, 'grant')) counts.grants += 1;
    else if (isAllowed(event, 'action')) counts.actions += 1;
    else if (event.event_type === 'adjustment' && event['direction'] === 'credit') counts.credits += 1;
  }
  return counts;
}

function isAllowed(event: Readonly<Record<string, unknown>>, kind: 'grant' | 'action'): boolean {
  const { kind: own } = (event['authorization'] ?? {}) as { readonly kind?: unknown };
  return event['event_type'] === 'authorization' && event['decision'] === 'allow' && own === kind;
}

/** What a ledger has of a system. @throws NorthrootError when the source cannot be read */
export async function readKnownLedger(
  source: LedgerSource,
  system: string,
  signal?: AbortSignal,
): Promise<KnownLedger> {
  const sources = new Map<string, string>();
  const openEnds = new Set<string>();
  let ledgerId: string | undefined;
  let size = 0;
  let ownGrants = 0;
  for await (const { event, eventId, seq } of readRecords(source, { signal })) {
    size = seq + 1;
    if (seq === 0 && event['event_type'] === 'genesis') ledgerId = eventId;
    const { system: of, id } = sourceOf(event);
    if (of === undefined && isAllowed(event, 'grant')) ownGrants += 1;
    // What came first stands, as it does in a plan.
    if (of !== system || typeof id !== 'string' || sources.has(id)) continue;
    sources.set(id, eventId);
    if (event['outcome'] === 'unknown') openEnds.add(id);
  }
  return { ledgerId, sources, openEnds, size, ownGrants };
}

function sourceOf(event: JsonObject): { readonly system?: unknown; readonly id?: unknown } {
  return (event['source'] ?? {}) as object;
}

/** The earliest time that files state of what is to be recorded: for the genesis of a ledger that is made for it. */
export function firstTimeOf({ claims }: Pick<HostReading, 'claims'>): string | undefined {
  let first: string | undefined;
  for (const { occurredAt } of claims)
    if (first === undefined || compareTimestamps(occurredAt, first) < 0) first = occurredAt;
  return first;
}

/** So many appends wait for the disk at once. */
const MAX_WAITING = 2_000;

export interface ImportResult {
  readonly appended: number;
  /** Events that were there by then: another process imported the same. */
  readonly existing: number;
}

/** What a plan goes by is not what the ledger says any more (`IMPORT_OUTDATED`). */
export class ImportOutdatedError extends NorthrootError {
  /** What was done before. */
  readonly result: ImportResult;

  constructor(result: ImportResult) {
    super('IMPORT_OUTDATED', 'another process has recorded something else of the same', {
      hint: 'import again',
    });
    this.name = 'ImportOutdatedError';
    this.result = result;
  }
}

/**
 * Appends a plan's events. Where one is refused nothing after it is written, and what is before it stays; the same import then continues
 * from there.
 *
 * @param ledger - Opened with `stopsAtRefusal`; the plan was made for it.
 * @param options - `signal`: aborting ends it with the signal's reason; what is appended by then stays, whole.
 * @throws ImportOutdatedError, nothing of the rest written, when another process has recorded something else of what the plan is about:
 *   open the ledger anew, read what it has, and plan anew; as {@link Ledger.append}.
 */
export async function appendImport(
  ledger: Ledger,
  { host, events, knownSize }: Pick<ImportPlan, 'host' | 'events' | 'knownSize'>,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<ImportResult> {
  checkOptions('appendImport', options, { signal: 'signal' });
  const { signal: stop } = options;
  stop?.throwIfAborted();
  const planned = new Map<string, string>();
  for (const { sourceId, event } of events) planned.set(sourceId, toDigestText(event.event_id.b64));
  const outdated = new AbortController();
  // Each append that waits listens to it.
  setMaxListeners(0, outdated.signal);
  const abort = (): void => outdated.abort();
  stop?.addEventListener('abort', abort);
  const end = ledger.onOther(({ event, eventId }) => {
    const { system, id } = sourceOf(event);
    const own = system === host.name && typeof id === 'string' ? planned.get(id) : undefined;
    if (own !== undefined && own !== eventId) abort();
  });
  // No caller was told what came between reading the ledger and opening it.
  if (knownSize !== undefined && events.length > 0 && ledger.size > knownSize) abort();
  const { signal } = outdated;
  let appended = 0;
  let existing = 0;
  try {
    for (let from = 0; from < events.length; from += MAX_WAITING) {
      const group = events.slice(from, from + MAX_WAITING);
      const settled = await Promise.allSettled(
        group.map(({ event }) => ledger.append({ event }, { signal })),
      );
      const refused: unknown[] = [];
      for (const result of settled) {
        if (result.status === 'rejected') refused.push(result.reason);
        else if (result.value.status === 'appended') appended += 1;
        else existing += 1;
      }
      stop?.throwIfAborted();
      // The first refusal is the cause of those after it.
      if (refused.length > 0)
        throw signal.aborted ? new ImportOutdatedError({ appended, existing }) : refused[0];
    }
  } finally {
    end();
    stop?.removeEventListener('abort', abort);
  }
  return { appended, existing };
}
