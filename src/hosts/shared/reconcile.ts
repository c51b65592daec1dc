/**
 * A verified ledger against what other systems recorded of the same calls: which of them agree, which are on one side only, which
 * contradict each other. The ledger is read once; what is kept of it is what a source may have, and the actions that have no execution
 * yet.
 */

import { defined } from '../../base/defined.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { VERSION } from '../../base/version.js';
import type {
  ReconcileAgreed,
  ReconcileCall,
  ReconcileCalls,
  ReconcileExpectation,
  ReconcileFinding,
  ReconcileFound,
  ReconcilePlace,
  ReconcileReport,
} from '../../format/schema/generated/types.js';
import { type LedgerInput, openVerifiable } from '../../log/read/verify-ledger.js';
import { EXPORT_OPTIONS, type ExportOptions } from '../../log/read/write-records.js';
import { EXIT_STATUS } from '../../rules/report/exit-status.js';
import { buildLazyReport, type Report } from '../../rules/report/report.js';
import { isWhole, matchesSelection, type RecordSelection } from '../../rules/selection.js';
import { runVerification } from '../../rules/verify/run-verification.js';
import { type HostVerdict, verdictOf } from './account.js';
import { Expectations } from './expectation.js';
import { rankOf, RANKS } from './findings.js';
import type { HostPlace, Observation } from './host.js';
import {
  CallAssembly,
  evidenceSourceOf,
  type LedgerCall,
  type LedgerEntry,
  ledgerEntryOf,
} from './ledger-calls.js';
import { ReconcileSums, sumLeftOut } from './usage.js';
import {
  type CallAspect,
  compareCall,
  type Comparison,
  describeReconcileFinding,
  type ReconcileCode,
} from './reconcile-compare.js';
import { type Found, type MatchedCall, Matcher, type Unclaimed } from './reconcile-match.js';
import { IndexedSource, type ReconcileSource, type Seen } from './reconcile-sources.js';

/** What a reconciliation says, whatever it finds. */
export const RECONCILE_STATEMENT =
  'This compares what the ledger and the given files recorded, and nothing else. It does not say that what none of them recorded did not happen.';

export interface ReconcileOptions {
  /** Which calls are counted. Default: all. What is compared with what does not depend on it. */
  readonly selection?: RecordSelection | undefined;
  /** What was promised beforehand; see `parseExpectation`. */
  readonly expectation?: ReconcileExpectation | undefined;
  /** What a source executed and the ledger does not have is a warning. Default: an error, of missing evidence. */
  readonly allowsMissing?: boolean | undefined;
  /** How far apart the times of what is found by content may be, in seconds. A whole number from 0; default 300. */
  readonly windowSeconds?: number | undefined;
  /** The most calls, and the most findings, that the report lists; all are counted. Default 1,000. */
  readonly maxListed?: number | undefined;
  readonly onCall?: ((call: ReconcileCall) => void) | undefined;
}

/** {@link ReconcileOptions}, and how the ledger is verified. */
export type ReconcileLedgerOptions = ReconcileOptions & Omit<ExportOptions, 'selection'>;

const OWN_OPTIONS: OptionTypes<ReconcileOptions> = {
  selection: 'object',
  expectation: 'object',
  allowsMissing: 'boolean',
  windowSeconds: 'number',
  maxListed: 'number',
  onCall: 'function',
};
const OPTIONS: OptionTypes<ReconcileLedgerOptions> = { ...EXPORT_OPTIONS, ...OWN_OPTIONS };
type ReconciledLedger = Pick<Report, 'verdict' | 'ledger' | 'not_checked'>;

type State = ReconcileCall['state'];

const STATES: readonly State[] = [
  'contradicted',
  'invalid',
  'source_only',
  'ambiguous',
  'ledger_only',
  'same_file',
  'corroborated',
];

/** How much an execution weighs that the ledger does not have. */
const MISSING: readonly [Severity, Class] = ['error', 'invalid'];
const NO_FAULT: readonly [Severity, Class] = ['warning', 'none'];
const MAX_IDS = 8;
const DEFAULT_LISTED = 1_000;

/**
 * Verifies a ledger and reconciles it with sources.
 *
 * @param sources - As `readSource` makes them, each with a name of its own.
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; `EXPECTATION_INVALID` for a promise of a source that is not given.
 */
export async function reconcileLedger(
  ledger: LedgerInput,
  sources: readonly ReconcileSource[],
  given: ReconcileLedgerOptions = {},
): Promise<ReconcileReport> {
  checkOptions('reconcileLedger', given, OPTIONS);
  const { selection, expectation, allowsMissing, windowSeconds, maxListed, onCall, ...options } = given;
  const reconciler = new Reconciler(sources, {
    selection,
    expectation,
    allowsMissing,
    windowSeconds,
    maxListed,
    onCall,
  });
  const result = await runVerification(await openVerifiable('reconcileLedger', ledger), {
    ...options,
    onRecord: (record) => {
      reconciler.takeRecord(record.ordinal);
      const entry = ledgerEntryOf(record, selection);
      if (entry !== undefined) reconciler.take(entry);
      else {
        const source = evidenceSourceOf(record);
        if (source !== undefined) reconciler.takeEvidence(source.system, source.digest);
      }
      return undefined;
    },
  });
  return reconciler.finish(buildLazyReport(result));
}

/** Takes what a ledger says of calls, entry by entry in its order; see the head of this file. */
export class Reconciler {
  readonly #options: ReconcileOptions;
  readonly #sources: readonly IndexedSource[];
  readonly #matcher: Matcher;
  readonly #assembly = new CallAssembly();
  readonly #sums = new ReconcileSums();
  readonly #expectations: Expectations | undefined;
  readonly #calls: ReconcileCalls = {
    total: 0,
    corroborated: 0,
    same_file: 0,
    ledger_only: 0,
    source_only: 0,
    contradicted: 0,
    ambiguous: 0,
    invalid: 0,
  };
  readonly #agreed: ReconcileAgreed = {
    tool: 0,
    params: 0,
    decision: 0,
    execution: 0,
    outcome: 0,
    meters: 0,
  };
  readonly #listed: Ranked<ReconcileCall>;
  readonly #findings: Ranked<ReconcileFinding>;
  readonly #evidence = new Set<string>();
  readonly #byCode = new Map<string, number>();
  /** By source: ids of calls of which the ledger states the decision. */
  readonly #decided = new Map<string, Set<string>>();
  readonly #sameFiles = new Map<string, number>();
  readonly #counted = { ledgerCalls: 0, ledgerExecutions: 0, byMeta: 0, byContent: 0, withoutParams: 0 };

  /** @throws TypeError, RangeError for bad options, and for sources of one name; NorthrootError as {@link reconcileLedger}. */
  constructor(sources: readonly ReconcileSource[], options: ReconcileOptions = {}) {
    checkOptions('Reconciler', options, OWN_OPTIONS);
    const { windowSeconds = 300, maxListed = DEFAULT_LISTED, expectation } = options;
    for (const [name, value] of Object.entries({ windowSeconds, maxListed }))
      if (!Number.isSafeInteger(value) || value < 0)
        throw new RangeError(`${name} must be an integer of at least 0`);
    if (new Set(sources.map(({ name }) => name)).size < sources.length)
      throw new RangeError('each source must have a name of its own');
    this.#options = { ...options, windowSeconds, maxListed };
    this.#sources = sources.map((source) => new IndexedSource(source));
    this.#matcher = new Matcher(this.#sources, BigInt(windowSeconds) * 1_000_000_000n);
    this.#expectations = expectation === undefined ? undefined : new Expectations(expectation, sources);
    this.#listed = new Ranked(STATES.length, maxListed);
    this.#findings = new Ranked(RANKS, maxListed);
  }

  /** To be called with the place of every record, whatever it says: promises may be of them all. */
  takeRecord(seq: number): void {
    this.#expectations?.record(seq);
  }

  /** To be called with every entry, in the ledger's order; see {@link ledgerEntryOf}. */
  take(entry: LedgerEntry): void {
    const call = this.#assembly.take(entry);
    if (call !== undefined) this.#takeCall(call);
  }

  /**
   * To be called with what evidence of the ledger was made from: the system, and the digest of the item. What a source shows there the
   * ledger has, though no call of it.
   */
  takeEvidence(system: string, digest: string): void {
    if (!this.#sources.some(({ source }) => source.system === system)) return;
    this.#evidence.add(`${system} ${digest}`);
  }
  finish(ledger: ReconciledLedger): ReconcileReport {
    for (const call of this.#assembly.rest()) this.#takeCall(call);
    const { calls, unclaimed } = this.#matcher.finish();
    for (const matched of calls) this.#settle(matched);
    const left = unclaimed.filter(({ seen }) => this.#isMeant(seen));
    for (const each of left) this.#settleUnclaimed(each);
    const sources = this.#sources.map((source, index) => this.#toSource(source, index));
    for (const broken of this.#expectations?.finish() ?? [])
      this.#find(broken.code, 'error', broken.class, broken);
    this.#takeVerdicts(ledger, sources);
    const verdict = this.#verdict(ledger);
    const { selection = {}, windowSeconds = 0 } = this.#options;
    const { since, until, principal, tool, grantId, eventIds } = selection;
    const { ledgerCalls, ledgerExecutions } = this.#counted;
    return {
      reconcile_version: '1',
      tool: { name: 'northroot', version: VERSION },
      verdict,
      exit_status: EXIT_STATUS[verdict],
      statement: RECONCILE_STATEMENT,
      ledger: {
        paths: [...ledger.ledger.paths],
        origin: ledger.ledger.origin,
        records: ledger.ledger.records,
        root: ledger.ledger.root,
        verdict: ledger.verdict,
        calls: ledgerCalls,
        executions: ledgerExecutions,
      },
      sources,
      selection: {
        is_whole: isWhole(selection),
        ...defined({ since, until, principal, tool, grant_event_id: grantId, events: eventIds?.size }),
      },
      window_seconds: windowSeconds,
      calls: { ...this.#calls },
      agreed: { ...this.#agreed },
      meters: this.#sums.toJson(this.#sources.map(({ source }) => source.name)),
      meters_left_out: this.#sums.leftOut,
      listed: this.#listed.list(),
      findings: this.#findings.list(),
      findings_total: this.#findings.total,
      by_code: Object.fromEntries([...this.#byCode].sort(([a], [b]) => (a < b ? -1 : 1))),
      ...defined({ expected: this.#expectations?.toJson() }),
      not_checked: this.#listNotChecked(ledger),
    };
  }

  #takeCall(call: LedgerCall): void {
    if (call.isMeant) {
      this.#counted.ledgerCalls += 1;
      if (call.outcome !== undefined) this.#counted.ledgerExecutions += 1;
      this.#sums.add('ledger', call.meters);
    }
    const matched = this.#matcher.take(call);
    if (matched !== undefined) this.#settle(matched);
  }
  #settle({ call, found }: MatchedCall): void {
    if (!call.isMeant) return;
    const compared = found.flatMap((each, index) =>
      each.kind === 'found' ? [this.#compare(call, each, index)] : [],
    );
    const isUnclear = found.some(({ kind }) => kind === 'ambiguous');
    const about = {
      call_ids: idsOf(call, compared),
      tool: call.tool,
      ledger: call.entries.map(({ seq, eventId }) => ({ seq, event_id: eventId })),
    };
    const { codes, find, findMissing } = this.#finderOf(about);
    if (call.isInvalid) find('LEDGER_RECORD_INVALID', 'error', 'invalid');
    for (const {
      source,
      comparison,
      found: { seen },
    } of compared) {
      for (const { observation } of seen) findCorrected(find, source.name, observation);
      for (const { code, class: of, expected, actual, at } of comparison.differences) {
        const place = toPlace(at.observation.at);
        find(code, 'error', of, { source: source.name, at: place, expected, actual });
      }
      if (comparison.unrecorded === undefined) continue;
      const { at, outcome } = comparison.unrecorded.observation;
      findMissing(outcome, { source: source.name, at: toPlace(at) });
    }
    const state = stateOf(call, compared, isUnclear);
    if (state === 'ambiguous') find('CALL_AMBIGUOUS', 'warning', 'none');
    if (state === 'ledger_only') find('NOT_IN_SOURCES', 'warning', 'none');
    if (state === 'corroborated') this.#countAgreed(compared);
    if (call.decision !== undefined && !call.isInvalid) this.#noteDecided(compared);
    for (const {
      comparison,
      found: { by },
    } of compared) {
      if (by === 'meta') this.#counted.byMeta += 1;
      if (by === 'content') this.#counted.byContent += 1;
      if (!comparison.agreed.has('params')) this.#counted.withoutParams += 1;
    }
    this.#promise({ tool: call.tool, occurredAt: call.occurredAt, inLedger: true }, about, codes);
    this.#list({
      state,
      ...about,
      occurred_at: call.occurredAt,
      sources: compared.map(({ source, found: { by, seen }, isSameFile }): ReconcileFound => ({
        source: source.name,
        by,
        at: seen.map(({ observation }) => toPlace(observation.at)),
        same_file: isSameFile,
      })),
      codes: [...codes],
    });
  }

  /** Finds what concerns one call, and keeps the codes. */
  #finderOf(about: FindingParts) {
    const codes = new Set<ReconcileCode>();
    const find = (code: ReconcileCode, severity: Severity, of: Class, rest: FindingParts = {}): void => {
      codes.add(code);
      this.#find(code, severity, of, { ...about, ...rest });
    };
    const weight = this.#options.allowsMissing === true ? NO_FAULT : MISSING;
    const findMissing = (outcome = '', rest: FindingParts = {}): void =>
      find('EXECUTION_NOT_IN_LEDGER', ...weight, {
        expected: 'no execution',
        actual: `executed, ${outcome}`,
        ...rest,
      });
    return { codes, find, findMissing };
  }

  #compare(call: LedgerCall, found: Extract<Found, { kind: 'found' }>, index: number): Compared {
    const indexed = this.#sources[index] as IndexedSource;
    const { source } = indexed;
    const last = call.entries.at(-1) as LedgerEntry;
    const isSameFile = indexed.isMadeFrom(last);
    if (isSameFile) this.#sameFiles.set(source.name, (this.#sameFiles.get(source.name) ?? 0) + 1);
    this.#sums.add(`compared_ledger:${index}`, call.meters);
    for (const { observation } of found.seen) this.#sums.add(`compared_source:${index}`, observation.meters);
    return { source, found, isSameFile, comparison: compareCall(call, found.seen) };
  }

  #noteDecided(compared: readonly Compared[]): void {
    for (const { source, found } of compared) {
      const ids = this.#decided.get(source.name) ?? new Set<string>();
      this.#decided.set(source.name, ids);
      for (const { observation } of found.seen) for (const id of observation.callIds) ids.add(id);
    }
  }

  /** By the rules of its host, but for decisions that it does not state and the ledger does. */
  #verdictOn({ name, reading: { items, findings } }: ReconcileSource): HostVerdict {
    const decided = this.#decided.get(name);
    return verdictOf({
      items,
      findings: findings.filter(
        ({ lacks, about = '' }) => lacks === undefined || decided?.has(about) !== true,
      ),
    });
  }

  #countAgreed(compared: readonly Compared[]): void {
    const aspects = new Set<CallAspect>();
    for (const { isSameFile, comparison } of compared)
      if (!isSameFile) for (const aspect of comparison.agreed) aspects.add(aspect);
    for (const aspect of aspects) this.#agreed[aspect] += 1;
  }
  #settleUnclaimed({ source: indexed, seen, isAmbiguous }: Unclaimed): void {
    const { source } = indexed;
    const { observation, tool } = seen;
    const isKept = indexed
      .evidenceOf(seen)
      .some((digest) => this.#evidence.has(`${source.system} ${digest}`));
    const { callIds, outcome, occurredAt, decision } = observation;
    const at = toPlace(observation.at);
    const about = { call_ids: callIds.slice(0, MAX_IDS), ...defined({ tool }) };
    const { codes, find, findMissing } = this.#finderOf({ ...about, source: source.name, at });
    if (isAmbiguous) find('CALL_AMBIGUOUS', 'warning', 'none');
    else if (isKept) this.#sameFiles.set(source.name, (this.#sameFiles.get(source.name) ?? 0) + 1);
    else if (outcome === undefined)
      find('DECISION_NOT_IN_LEDGER', 'warning', 'none', {
        expected: 'nothing',
        actual: decision ?? 'no decision',
      });
    else findMissing(outcome);
    findCorrected(find, source.name, observation);
    this.#promise({ tool, occurredAt, inLedger: false }, { ...about, source: source.name, at }, codes);
    this.#list({
      state: isAmbiguous ? 'ambiguous' : isKept ? 'same_file' : 'source_only',
      ...about,
      ...defined({ occurred_at: occurredAt }),
      ledger: [],
      sources: [{ source: source.name, by: 'source', at: [at], same_file: isKept }],
      codes: [...codes],
    });
  }

  #promise(
    call: { tool: string | undefined; occurredAt: string | undefined; inLedger: boolean },
    about: FindingParts,
    codes: Set<ReconcileCode>,
  ): void {
    for (const { code, class: of, expected, actual } of this.#expectations?.call(call) ?? []) {
      codes.add(code);
      this.#find(code, 'error', of, { ...about, expected, actual });
    }
  }

  #list(call: ReconcileCall): void {
    this.#calls.total += 1;
    this.#calls[call.state] += 1;
    this.#listed.add(STATES.indexOf(call.state), () => call);
    this.#options.onCall?.(call);
  }

  #find(code: ReconcileCode, severity: Severity, of: Class, parts: FindingParts): void {
    this.#byCode.set(code, (this.#byCode.get(code) ?? 0) + 1);
    this.#findings.add(rankOf({ severity, class: of }), () => {
      const { call_ids: ids, tool, ledger, source, at, expected, actual } = parts;
      const rest = defined({ call_ids: ids, tool, ledger, source, at, expected, actual });
      const finding = { severity, class: of, ...rest };
      return { code, ...finding, message: describeReconcileFinding(code, finding) };
    });
  }

  #isMeant({ observation: { occurredAt }, tool }: Seen): boolean {
    const { since, until, tool: pattern } = this.#options.selection ?? {};
    return matchesSelection(
      { occurredAt, toolName: tool, principalId: undefined, eventId: undefined, grantIds: [] },
      defined({ since, until, tool: pattern }),
    );
  }

  #toSource({ source, seen }: IndexedSource, index: number): ReconcileReport['sources'][number] {
    const meant = seen.filter((each) => this.#isMeant(each));
    for (const { observation } of meant) {
      this.#sums.add(`source:${index}`, observation.meters);
      this.#expectations?.observed(source.name, observation.callIds);
    }
    const { reading, files, name, system } = source;
    return {
      name,
      system,
      files: files.map((file) => ({ ...file })),
      verdict: this.#verdictOn(source),
      findings: reading.findings.length,
      items: reading.items.length,
      calls: meant.length,
      executions: meant.filter(({ observation }) => observation.outcome !== undefined).length,
      outside: seen.length - meant.length,
      left_out: sumLeftOut(reading.leftOut),
    };
  }

  /** The verdicts on the ledger and on the sources count as what was found here does. */
  #takeVerdicts(ledger: ReconciledLedger, sources: ReconcileReport['sources']): void {
    if (ledger.verdict === 'invalid') this.#find('LEDGER_INVALID', 'error', 'invalid', {});
    if (ledger.verdict === 'violation') this.#find('LEDGER_VIOLATION', 'error', 'violation', {});
    for (const { name: source, verdict } of sources) {
      if (verdict === 'invalid') this.#find('SOURCE_INVALID', 'error', 'invalid', { source });
      if (verdict === 'violation') this.#find('SOURCE_VIOLATION', 'error', 'violation', { source });
    }
    for (const [source, calls] of this.#sameFiles)
      this.#find('SAME_FILE', 'info', 'none', {
        source,
        actual: `${calls} ${calls === 1 ? 'call' : 'calls'}`,
      });
  }

  #verdict({ verdict }: ReconciledLedger): ReconcileReport['verdict'] {
    if (this.#findings.count(rankOf({ severity: 'error', class: 'invalid' })) > 0) return 'invalid';
    if (this.#findings.count(rankOf({ severity: 'error', class: 'violation' })) > 0) return 'violation';
    const { corroborated, same_file: sameFile } = this.#calls;
    return verdict === 'undecided' || corroborated + sameFile === 0 ? 'undecided' : 'ok';
  }

  #listNotChecked(ledger: ReconciledLedger): ReconcileReport['not_checked'] {
    const { byMeta, byContent, withoutParams } = this.#counted;
    const { selection = {} } = this.#options;
    const list: ReconcileReport['not_checked'] = [
      {
        code: 'SOURCES_ONLY',
        message:
          'only what the ledger and these files recorded was compared: what none of them recorded is not shown to have not happened',
      },
      {
        code: 'SOURCE_TRUST',
        message:
          'whether the files are whole, who wrote them, and whether who wrote the ledger could write them too was not checked',
      },
      {
        code: 'TIME',
        message: 'the times of both sides are claims of whoever wrote them; they were not compared',
      },
      {
        code: 'CONTENT',
        message: `contents were compared by digest only, and only where both sides have one of the same kind: calls that both have, without that: ${withoutParams}`,
      },
    ];
    const add = (when: boolean, code: string, message: string): void => {
      if (when) list.push({ code, message });
    };
    add(
      byMeta > 0,
      'META',
      `calls that were found under an id in the record's meta, which no digest and no signature covers: ${byMeta}`,
    );
    add(
      byContent > 0,
      'FOUND_BY_CONTENT',
      `calls without an id in common, found by tool, parameters and time alone: ${byContent}`,
    );
    const counts = this.#sources.flatMap(({ source: { reading } }) => reading.receipts ?? []);
    const [unverified, taken] = [
      counts.reduce((sum, each) => sum + each.broken + each.unverified, 0),
      counts.reduce((sum, each) => sum + each.ownKey, 0),
    ];
    add(
      taken > 0,
      'RECEIPTS_BY_OWN_KEY',
      `receipts that only a key that they state themselves vouches for: ${taken}`,
    );
    add(
      unverified > 0,
      'RECEIPTS_UNVERIFIED',
      `receipts that are broken or could not be verified; unless they were asked for, nothing was compared with them: ${unverified}`,
    );
    const leftOut = this.#sources.reduce((sum, { source }) => sum + (source.reading.leftOut?.length ?? 0), 0);
    add(
      leftOut > 0,
      'USAGE_LEFT_OUT',
      `amounts that sources state and no sum has, as they would count twice or nobody can say of what they are: ${leftOut}`,
    );
    add(
      this.#expectations === undefined,
      'EXPECTATION',
      'nothing says which calls there should be: no expectation was given',
    );
    add(
      selection.principal !== undefined ||
        selection.grantId !== undefined ||
        selection.eventIds !== undefined,
      'SELECTION',
      'files of sources do not say which principal or grant a call is of: what only they have is listed whosever it is',
    );
    return [...list, ...ledger.not_checked.map(({ code, message }) => ({ code, message }))];
  }
}

type Severity = ReconcileFinding['severity'];
type Class = ReconcileFinding['class'];
type FindingParts = Partial<Omit<ReconcileFinding, 'code' | 'severity' | 'class' | 'message'>>;

interface Compared {
  readonly source: ReconcileSource;
  readonly found: Extract<Found, { kind: 'found' }>;
  readonly isSameFile: boolean;
  readonly comparison: Comparison;
}

function stateOf(call: LedgerCall, compared: readonly Compared[], isUnclear: boolean): State {
  if (call.isInvalid) return 'invalid';
  if (compared.some(({ comparison }) => comparison.differences.length > 0)) return 'contradicted';
  if (compared.some(({ comparison }) => comparison.unrecorded !== undefined)) return 'source_only';
  const confirming = compared.filter(({ comparison }) => comparison.confirms);
  if (confirming.some(({ isSameFile }) => !isSameFile)) return 'corroborated';
  if (confirming.length > 0) return 'same_file';
  return isUnclear ? 'ambiguous' : 'ledger_only';
}

function idsOf({ entries }: LedgerCall, compared: readonly Compared[]): string[] {
  const seen = compared.flatMap(({ found }) => found.seen.flatMap(({ observation }) => observation.callIds));
  const own = entries.flatMap(({ source, metaIds }) => [
    ...(source === undefined ? [] : [source.id]),
    ...metaIds,
  ]);
  return [...new Set([...seen, ...own])].slice(0, MAX_IDS);
}

/** A correction contradicts nothing: what it says instead is in words. */
function findCorrected(
  find: (code: ReconcileCode, severity: Severity, of: Class, rest: FindingParts) => void,
  source: string,
  { at, correctedAt }: Observation,
): void {
  if (correctedAt === undefined) return;
  const { file, line, pointer } = correctedAt;
  const actual = `corrected by ${file}${line === undefined ? '' : `:${line}`}${pointer ?? ''}`;
  find('SOURCE_CORRECTED', 'warning', 'none', { source, at: toPlace(at), actual });
}

function toPlace({ file, line, pointer }: HostPlace): ReconcilePlace {
  return { file, ...defined({ line, pointer }) };
}

class Ranked<T> {
  readonly #ranks: { readonly kept: T[]; count: number }[];
  readonly #limit: number;

  constructor(ranks: number, limit: number) {
    this.#ranks = Array.from({ length: ranks }, () => ({ kept: [], count: 0 }));
    this.#limit = limit;
  }

  get total(): number {
    return this.#ranks.reduce((sum, { count }) => sum + count, 0);
  }

  /** @param make - Called where the value is kept. */
  add(rank: number, make: () => T): void {
    const of = this.#ranks[rank];
    if (of === undefined) return;
    of.count += 1;
    if (of.kept.length < this.#limit) of.kept.push(make());
  }

  count(rank: number): number {
    return this.#ranks[rank]?.count ?? 0;
  }

  list(): T[] {
    return this.#ranks.flatMap(({ kept }) => kept).slice(0, this.#limit);
  }
}
