/**
 * A verified ledger as the page shows it: taken from verification record by record into columns, and asked for in parts. A record's
 * own text is read again from the ledger's bytes when somebody looks at it.
 */

import { printable } from '../../../base/bytes/printable.js';
import { decodeUtf8 } from '../../../base/bytes/text.js';
import type { JsonObject, JsonValue } from '../../../base/json/value.js';
import { toDigestText } from '../../../base/value/digest.js';
import { formatRational } from '../../../base/value/format-rational.js';
import { isPrincipalId } from '../../../base/value/principal.js';
import { compareRationals, type Rational, subtractRationals, ZERO } from '../../../base/value/rational.js';
import { compareTimestamps, isTimestamp } from '../../../base/value/timestamp.js';
import { CODE_PAGES, type FindingCode, isFindingCode } from '../../../format/finding/catalog.js';
import { type Finding, rankOf, RANKS } from '../../../format/finding/finding.js';
import { examineLine } from '../../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../../format/record/line-splitter.js';
import type { FindingJson } from '../../../format/schema/generated/types.js';
import type { Grant } from '../../../rules/bounds/grant.js';
import { listOpenAuthorizations, nameOfKey } from '../../../rules/report/accounts.js';
import { buildReport, type Report, toFindingJson } from '../../../rules/report/report.js';
import { describeQuorum } from '../../../rules/trust/witness-policy.js';
import { findNamed, readEventId } from '../../../rules/verify/grant-above.js';
import type { EventVerdict, SignatureOutcome } from '../../../rules/verify/line-result.js';
import type { VerificationResult } from '../../../rules/verify/run-verification.js';
import type { VerifyState } from '../../../rules/verify/state.js';
import type { VerifiedRecord } from '../../../rules/verify/verified-record.js';
import { ActivityCollector } from '../../activity/collect.js';
import { AccountHistory, type GrantHistory, type Held } from './account-history.js';
import { Children, Column, Texts } from './columns.js';
import {
  type Branch,
  type Granter,
  type GranterKey,
  type GranterNode,
  type GranterNodes,
  type GrantMeter,
  type Grants,
  type GrantView,
  type Kind,
  KINDS,
  type Mark,
  type MeterStep,
  type Overview,
  type Remedies,
  type Row,
  type RowQuery,
  type Rows,
  type SignatureView,
  type Timeline,
  type Why,
} from './protocol.js';
import { listRefusals, listSpenders, listSpent } from './spent.js';
import { describeEvent, groupDigits, kindOf, listFacts } from './words.js';

const VERDICTS: readonly EventVerdict[] = ['ok', 'denied', 'violation', 'invalid'];

/** At most so many findings are kept with their records; the report counts all. */
const MAX_RECORD_FINDINGS = 100_000;
/** So many of each are shown at once. */
const PAGE_ROWS = 100;
const MAX_SPENDERS = 50;
const MAX_PRINCIPALS = 200;
const MAX_REFUSALS = 8;
const REFUSED_SHOWN = 5;
const UNAUTHORIZED_SHOWN = 5;
const MAX_GRANTERS = 20;
const GRANTS_SHOWN = 10;
const DELEGATED_SHOWN = 10;
const TOOLS_SHOWN = 12;
const MAX_NESTING = 32;
const BINS = 96;
const MAX_MARKS = 200;
const MAX_CURVE_POINTS = 120;
const MAX_LINKED = 100;

/** What an execution has that ran without an earlier authorization. */
const UNAUTHORIZED: ReadonlySet<string> = new Set<FindingCode>([
  'AUTH_NOT_FOUND',
  'AUTH_NOT_AN_AUTHORIZATION',
  'AUTH_AFTER_EXECUTION',
  'EXECUTION_UNDER_DENY',
]);

/** What a verification took beside its result. */
export interface Effort {
  readonly seconds: number;
  readonly nativeSignatures: number;
}

/** Where a record's line begins in the bytes that hold it, and how long it is. */
export interface LinePlace {
  readonly index: number;
  readonly offset: number;
  readonly size: number;
}

/** Records that hang below no other, and whose keys signed them. */
interface RootGroup {
  readonly kind: GranterNode['kind'];
  readonly keyids: readonly string[];
  readonly roots: number[];
}

/** A finding, of which only its class and its line are asked. */
interface Located extends Pick<Finding, 'class'> {
  readonly at: Pick<Finding['at'], 'file' | 'line'>;
}

/** No list of keyids. */
const NOBODY = ' ';

const ints = (length: number): Int32Array<ArrayBuffer> => new Int32Array(length);
const floats = (length: number): Float64Array<ArrayBuffer> => new Float64Array(length);
const bytes = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(length);

/** See the head of this file. */
export class LedgerModel {
  readonly #readLine: (at: LinePlace) => Promise<Uint8Array>;
  readonly #segmentStarts: ReadonlyMap<string, number>;
  /** Of each record its place in the ledger: in a bundle places are left out. */
  readonly #place = new Column(floats);
  readonly #isLinked = new Column(bytes);
  readonly #texts = new Texts();
  readonly #principals = new Texts();
  readonly #outcomes = new Texts();
  readonly #file = new Column(ints);
  readonly #line = new Column(ints);
  readonly #offset = new Column(floats);
  readonly #size = new Column(ints);
  readonly #kind = new Column(bytes);
  readonly #verdict = new Column(bytes);
  readonly #type = new Column(ints);
  readonly #time = new Column(ints);
  readonly #principal = new Column(ints);
  readonly #tool = new Column(ints);
  readonly #what = new Column(ints);
  readonly #signatures = new Column(ints);
  readonly #parent = new Column(ints);
  /** The latest time until there, in milliseconds: where a record stands on the timeline. */
  readonly #clock = new Column(floats);
  readonly #ids: (string | undefined)[] = [];
  readonly #byId = new Map<string, number>();
  readonly #grantIds = new Map<number, readonly string[]>();
  readonly #findings = new Map<number, (Finding | FindingJson)[]>();
  #findingsKept = 0;
  readonly #open = new Set<string>();
  readonly #late: Finding[] = [];
  readonly #told: Finding[] = [];
  readonly #accounts = new AccountHistory();
  readonly #activity = new ActivityCollector({ by: 'principal' });
  readonly #granters = new Map<
    string,
    {
      signers: string[];
      grants: number;
      delegated: number;
      actions: number;
      principals: Set<string>;
      ordinal: number;
    }
  >();
  #first: string | undefined;
  #last: string | undefined;
  #state: VerifyState | undefined;
  #scope: Why['scope'] = 'ledger';
  #children: Children | undefined;
  #groups: readonly RootGroup[] | undefined;
  #matching: { readonly key: string; readonly ordinals: Int32Array } | undefined;

  /**
   * @param readLine - The bytes of a line, which it gives when it is looked at.
   * @param segments - Where each file begins.
   */
  constructor(
    readLine: (at: LinePlace) => Promise<Uint8Array>,
    segments: ReadonlyMap<string, number> = new Map(),
  ) {
    this.#readLine = readLine;
    this.#segmentStarts = segments;
  }

  get length(): number {
    return this.#line.length;
  }

  /** To be told of each finding, before the record that it is told with. */
  tell(finding: Finding): void {
    this.#told.push(finding);
  }

  /** To be told of each record. @param isLinked - Of a bundle: it is there only since selected records link to it. */
  add(record: VerifiedRecord, isLinked = false): void {
    const { examined, state, verdict, findings } = record;
    const ordinal = this.length;
    const event = examined?.json();
    const kind = kindOf(event);
    const id = examined?.eventId;
    this.#place.push(record.ordinal);
    this.#isLinked.push(isLinked ? 1 : 0);
    this.#file.push(this.#texts.numberOf(record.file));
    this.#line.push(record.line);
    this.#offset.push((this.#segmentStarts.get(record.file) ?? 0) + record.byteOffset);
    this.#size.push(record.byteLength);
    this.#kind.push(KINDS.indexOf(kind));
    this.#verdict.push(VERDICTS.indexOf(verdict));
    this.#type.push(this.#textOf(examined?.eventType));
    this.#time.push(this.#textOf(examined?.occurredAt));
    this.#principal.push(this.#principals.numberOf(printable(examined?.principalId ?? '')));
    this.#tool.push(this.#textOf(examined?.toolName));
    this.#what.push(this.#texts.numberOf(describeEvent(kind, event)));
    this.#signatures.push(this.#outcomes.numberOf(JSON.stringify(record.signatures)));
    this.#clock.push(Math.max(this.#clock.at(ordinal - 1), this.#noteTime(examined?.occurredAt)));
    const named = examined && findNamed(examined);
    this.#parent.push(named === undefined ? -1 : (this.#byId.get(named.slice('sha-256:'.length)) ?? -1));
    this.#ids.push(id);
    if (id !== undefined && !this.#byId.has(id)) this.#byId.set(id, ordinal);
    if (findings.length > 0) this.#keep(ordinal, findings);
    for (const finding of this.#told.splice(0))
      if (finding.at.line !== record.line || finding.at.file !== record.file) this.#late.push(finding);
    this.#activity.take(record);
    if (event === undefined) return;
    if (kind === 'grant' && id !== undefined) {
      const grant = state.links.grants.get(id);
      if (grant?.place.line === record.line && grant.place.file === record.file)
        this.#accounts.open(toDigestText(id), grant, ordinal);
    }
    if (record.grantIds.length > 0) this.#grantIds.set(ordinal, record.grantIds);
    for (const grantId of record.grantIds) this.#accounts.note(grantId, ordinal);
    this.#countGranter(record, kind, event);
  }

  /** Closes the model: what only the end shows. */
  finish(result: VerificationResult, effort: Effort): Overview {
    const { state, ending } = result;
    this.#state = state;
    for (const { eventId } of listOpenAuthorizations(state)) this.#open.add(eventId);
    for (const finding of [...this.#late, ...ending.findings]) {
      const ordinal = this.#placeOf(finding);
      if (ordinal === undefined) continue;
      this.#keep(ordinal, [finding]);
      if (finding.class === 'invalid') this.#verdict.set(ordinal, VERDICTS.indexOf('invalid'));
    }
    this.#markUncovered(state, ending.findings);
    const report = buildReport(result);
    const { totals, groups = [], decisions } = this.#activity.finish(result, report);
    const spenders = listSpenders(groups);
    return {
      report,
      remedies: remediesFor(report.findings),
      quorum: state.witnessPolicy && describeQuorum(state.witnessPolicy),
      ...effort,
      bytes: state.bytes,
      warnings: result.warnings,
      spent: listSpent(totals.meters),
      spenders: spenders.slice(0, MAX_SPENDERS),
      spendersTotal: spenders.length,
      amountsLeftOut: totals.amounts_left_out ?? 0,
      kinds: this.#countKinds(),
      refusedGrants: totals.grants.denied,
      refusedActions: totals.actions.denied,
      blocked: totals.executions.blocked,
      refusals: listRefusals(decisions).slice(0, MAX_REFUSALS),
      unauthorizedTotal: totals.executions.unauthorized,
      unauthorized: this.#findUnauthorized(),
      ...this.#findRefused(),
      granters: this.#listGranters(),
      principals: this.#listPrincipals(),
      timeline: this.#drawTimeline(report),
      grants: this.grants({ offset: 0 }),
    };
  }

  /** Closes the model of a bundle's records. @param findings - What its verification found, of which some is known only at its end. */
  finishBundle(
    scope: 'whole' | 'selection',
    state: VerifyState | undefined,
    findings: readonly FindingJson[],
  ): Pick<Overview, 'remedies' | 'kinds' | 'principals'> {
    this.#scope = scope;
    this.#state = state;
    for (const finding of findings) {
      const index = this.#placeOf(finding);
      if (index === undefined) continue;
      const isKnown = this.#findings
        .get(index)
        ?.some(({ code, at }) => code === finding.code && at.pointer === finding.at.pointer);
      if (isKnown !== true) this.#keep(index, [finding]);
      if (finding.class === 'invalid') this.#verdict.set(index, VERDICTS.indexOf('invalid'));
    }
    if (scope === 'whole' && state !== undefined) this.#markUncovered(state, findings);
    return {
      remedies: remediesFor(findings),
      kinds: this.#countKinds(),
      principals: this.#listPrincipals(),
    };
  }

  /** The rows that a query asks for, in ledger order. */
  rows(query: RowQuery): Rows {
    const { offset, limit, ...filter } = query;
    const key = JSON.stringify(filter);
    if (this.#matching?.key !== key) this.#matching = { key, ordinals: this.#match(filter) };
    const { ordinals } = this.#matching;
    const rows = [...ordinals.subarray(offset, offset + Math.min(limit, PAGE_ROWS))];
    return { total: ordinals.length, rows: rows.map((ordinal) => this.row(ordinal)) };
  }

  /** Grants that were not delegated, with their accounts and what was delegated from them. */
  grants({ offset }: { readonly offset: number }): Grants {
    const children = this.#childrenOf();
    const roots = children.roots.filter((ordinal) => this.#isAllowedGrant(ordinal));
    const shown = roots.slice(offset, offset + GRANTS_SHOWN);
    return { total: roots.length, grants: shown.map((ordinal) => this.#viewGrant(ordinal, 0)) };
  }

  /** Who let somebody act: the known ones first, in the order of their first record. */
  granters({ offset }: { readonly offset: number }): GranterNodes {
    const groups = this.#groupRoots();
    const shown = groups.slice(offset, offset + GRANTS_SHOWN);
    return {
      total: groups.length,
      granters: shown.map(({ kind, keyids, roots }, index) => ({
        number: offset + index,
        kind,
        keys: keyids.map((keyid) => this.#viewKey(keyid)),
        grants: roots.filter((ordinal) => this.#kindAt(ordinal) === 'grant').length,
        records: roots.length,
      })),
    };
  }

  /** What hangs below a record or a granter; of a record delegated grants first. */
  branch(at: Branch): Rows {
    const { offset } = at;
    const all = 'of' in at ? this.#belowRecord(at.of) : (this.#groupRoots()[at.granter]?.roots ?? []);
    const rows = [...all.slice(offset, offset + PAGE_ROWS)];
    return { total: all.length, rows: rows.map((ordinal) => this.row(ordinal)) };
  }

  /** All that is known of one record, by its place in the ledger. */
  async why(place: number): Promise<Why | undefined> {
    const ordinal = this.#indexOf(place);
    if (ordinal === undefined) return undefined;
    const size = Math.min(this.#size.at(ordinal), MAX_LINE_BYTES);
    const line = await this.#readLine({ index: ordinal, offset: this.#offset.at(ordinal), size });
    const event = this.#size.at(ordinal) > MAX_LINE_BYTES ? undefined : this.#eventOf(line);
    const id = this.#ids[ordinal];
    const findings = (this.#findings.get(ordinal) ?? [])
      .map((finding) => {
        const own = { ...toJson(finding) };
        delete own.folded;
        return own;
      })
      .sort((a, b) => RANKS.indexOf(rankOf(a)) - RANKS.indexOf(rankOf(b)));
    return {
      scope: this.#scope,
      row: this.row(ordinal),
      isOpen: id !== undefined && this.#open.has(toDigestText(id)),
      file: printable(this.#texts.at(this.#file.at(ordinal))),
      line: this.#line.at(ordinal),
      id: id === undefined ? undefined : toDigestText(id),
      findings,
      remedies: remediesFor(findings),
      signatures: this.#signaturesAt(ordinal),
      facts: event === undefined ? [] : listFacts(event),
      links: event === undefined ? [] : this.#linksOf(event),
      grants: this.#grantsAbove(ordinal),
      under: this.branch({ of: ordinal, offset: 0 }),
      text: toText(line),
    };
  }

  row(ordinal: number): Row {
    const type = this.#texts.at(this.#type.at(ordinal));
    return {
      ordinal: this.#place.at(ordinal),
      kind: this.#kindAt(ordinal),
      type,
      occurredAt: this.#texts.at(this.#time.at(ordinal)),
      principal: this.#principals.at(this.#principal.at(ordinal)),
      tool: this.#texts.at(this.#tool.at(ordinal)),
      what: this.#texts.at(this.#what.at(ordinal)),
      verdict: this.#verdictAt(ordinal),
      findings: this.#findings.get(ordinal)?.length ?? 0,
      signers: this.#signersAt(ordinal),
      children: this.#childrenOf().count(ordinal),
      isLinked: this.#isLinked.at(ordinal) === 1,
    };
  }

  /** Where a record stands in the columns; undefined where it is not there. */
  #indexOf(place: number): number | undefined {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#place.at(middle) < place) low = middle + 1;
      else high = middle;
    }
    return low < this.length && this.#place.at(low) === place ? low : undefined;
  }

  #findRefused(): Pick<Overview, 'refused' | 'brokenGrants'> {
    const refused: Row[] = [];
    let brokenGrants = 0;
    for (let i = 0; i < this.length; i++) {
      const verdict = this.#verdictAt(i);
      if (verdict === 'denied' && refused.length < REFUSED_SHOWN) refused.push(this.row(i));
      if (verdict === 'invalid' && this.#kindAt(i) === 'grant') brokenGrants += 1;
    }
    return { refused, brokenGrants };
  }

  #findUnauthorized(): Row[] {
    const rows: Row[] = [];
    for (const [ordinal, findings] of this.#findings) {
      if (this.#kindAt(ordinal) === 'execution' && findings.some(({ code }) => UNAUTHORIZED.has(code)))
        rows.push(this.row(ordinal));
    }
    return rows.sort((a, b) => a.ordinal - b.ordinal).slice(0, UNAUTHORIZED_SHOWN);
  }

  #countKinds(): Record<Kind, number> {
    const kinds = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<Kind, number>;
    for (let i = 0; i < this.length; i++) kinds[this.#kindAt(i)] += 1;
    return kinds;
  }

  #listPrincipals(): string[] {
    return this.#principals
      .all()
      .filter((principal) => principal !== '')
      .slice(0, MAX_PRINCIPALS);
  }

  #textOf(outside: string | undefined): number {
    return this.#texts.numberOf(printable(outside ?? ''));
  }

  #kindAt(ordinal: number): Kind {
    return KINDS[this.#kind.at(ordinal)] ?? 'unreadable';
  }

  #verdictAt(ordinal: number): EventVerdict {
    return VERDICTS[this.#verdict.at(ordinal)] ?? 'invalid';
  }

  #childrenOf(): Children {
    return (this.#children ??= new Children(this.length, (i) => this.#parent.at(i)));
  }

  #belowRecord(ordinal: number): Int32Array {
    const all = this.#childrenOf().of(ordinal);
    const grants = all.filter((child) => this.#kindAt(child) === 'grant');
    if (grants.length === 0) return all;
    const others = all.filter((child) => this.#kindAt(child) !== 'grant');
    const sorted = new Int32Array(all.length);
    sorted.set(grants);
    sorted.set(others, grants.length);
    return sorted;
  }

  /** The grants and other acts that hang below no record, by whoever signed what lets them be. */
  #groupRoots(): readonly RootGroup[] {
    if (this.#groups !== undefined) return this.#groups;
    const groups = new Map<string, RootGroup>();
    const keyidsOf = new Map<number, string>();
    for (const ordinal of this.#childrenOf().roots) {
      const kind = this.#kindAt(ordinal);
      const isGranted = kind === 'grant' || kind === 'action';
      if (!isGranted && kind !== 'execution' && kind !== 'adjustment') continue;
      const signatures = this.#signatures.at(ordinal);
      let keyids = keyidsOf.get(signatures);
      if (keyids === undefined) {
        keyids = validSigners(this.#outcomesAt(ordinal)).sort().join();
        keyidsOf.set(signatures, keyids);
      }
      const key = isGranted ? keyids : NOBODY;
      let group = groups.get(key);
      if (group === undefined) {
        const rank = key === NOBODY ? 'nobody' : key === '' ? 'unknown' : 'known';
        group = { kind: rank, keyids: rank === 'known' ? key.split(',') : [], roots: [] };
        groups.set(key, group);
      }
      group.roots.push(ordinal);
    }
    const of = (kind: GranterNode['kind']): RootGroup[] =>
      [...groups.values()].filter((group) => group.kind === kind);
    return (this.#groups = [...of('known'), ...of('unknown'), ...of('nobody')]);
  }

  #viewKey(keyid: string): GranterKey {
    const known = this.#state?.keyring.find(keyid);
    const { name, roles = [], principals = [] } = known?.key ?? {};
    return {
      keyid: printable(keyid),
      name: name === undefined ? undefined : printable(name),
      roles,
      principals: principals.slice(0, TOOLS_SHOWN).map((pattern) => printable(pattern)),
      principalsTotal: principals.length,
      isPinned: this.#state?.policy?.keys.some((key) => key.keyid === keyid) ?? false,
      isRevoked: known?.revokedBy !== undefined,
    };
  }

  #isAllowedGrant(ordinal: number): boolean {
    return this.#kindAt(ordinal) === 'grant' && this.#historyAt(ordinal)?.grant.decision === 'allow';
  }

  #historyAt(ordinal: number): GrantHistory | undefined {
    const id = this.#ids[ordinal];
    const history = id === undefined ? undefined : this.#accounts.get(toDigestText(id));
    return history?.ordinal === ordinal ? history : undefined;
  }

  #noteTime(occurredAt: string | undefined): number {
    if (occurredAt === undefined || !isTimestamp(occurredAt)) return -Infinity;
    if (this.#first === undefined || compareTimestamps(occurredAt, this.#first) < 0) this.#first = occurredAt;
    if (this.#last === undefined || compareTimestamps(occurredAt, this.#last) > 0) this.#last = occurredAt;
    return Date.parse(occurredAt.replace(/\.(\d{3})\d*Z$/, '.$1Z'));
  }

  #keep(ordinal: number, findings: readonly (Finding | FindingJson)[]): void {
    const list = this.#findings.get(ordinal) ?? [];
    for (const finding of findings) {
      if (this.#findingsKept >= MAX_RECORD_FINDINGS) return;
      if (
        list.some(
          (other) =>
            other.code === finding.code &&
            other.at.pointer === finding.at.pointer &&
            other.actual === finding.actual,
        )
      )
        continue;
      list.push(finding);
      this.#findingsKept += 1;
    }
    this.#findings.set(ordinal, list);
  }

  #countGranter(record: VerifiedRecord, kind: Kind, event: JsonObject): void {
    const { examined, verdict, signatures, state } = record;
    if (examined?.wellFormed !== true || verdict === 'invalid' || examined.type !== 'authorization') return;
    if (examined.event().decision === 'deny') return;
    const isUnder = readEventId(objectOf(event['authorization'])['grant_event_id']) !== undefined;
    // What is allowed under a grant was let by whoever signed that.
    if (kind === 'grant') this.#noteGranter(state, signatures, isUnder ? 'delegated' : 'grants', record);
    else if (!isUnder) this.#noteGranter(state, signatures, 'actions', record);
  }

  #noteGranter(
    state: VerifyState,
    signatures: readonly SignatureOutcome[],
    what: 'grants' | 'delegated' | 'actions',
    { ordinal, examined }: VerifiedRecord,
  ): void {
    const keyids = validSigners(signatures);
    const key = keyids.join();
    let granter = this.#granters.get(key);
    if (granter === undefined) {
      if (this.#granters.size > MAX_GRANTERS) return;
      const signers = keyids.map((keyid) => nameKey(state, keyid));
      granter = { signers, grants: 0, delegated: 0, actions: 0, principals: new Set(), ordinal };
      this.#granters.set(key, granter);
    }
    granter[what] += 1;
    if (granter.principals.size < MAX_GRANTERS)
      granter.principals.add(printable(examined?.principalId ?? ''));
  }

  #listGranters(): Granter[] {
    return [...this.#granters.values()]
      .slice(0, MAX_GRANTERS)
      .map((granter) => ({ ...granter, principals: [...granter.principals] }));
  }

  /** Places are in the order of files and lines. */
  #placeOf({ at }: Located): number | undefined {
    const file = this.#texts.numberOf(at.file);
    let low = 0;
    let high = this.length;
    const starts = this.#segmentStarts;
    const startOf = (number: number): number => starts.get(this.#texts.at(number)) ?? 0;
    const isBefore = (ordinal: number): boolean => {
      const other = this.#file.at(ordinal);
      return other === file ? this.#line.at(ordinal) < at.line : startOf(other) < startOf(file);
    };
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(middle)) low = middle + 1;
      else high = middle;
    }
    return low < this.length && this.#file.at(low) === file && this.#line.at(low) === at.line
      ? low
      : undefined;
  }

  /** Of records that rest on a revoked key and on no checkpoint one finding tells, at the first of them. */
  #markUncovered(state: VerifyState, findings: readonly Located[]): void {
    for (const { at, class: of } of findings) {
      if (of !== 'invalid') continue;
      for (const group of state.seals.unsealed.values()) {
        if (group.first.file !== at.file || group.first.line !== at.line) continue;
        const keyids = new Set(group.keyids);
        for (let ordinal = group.begin; ordinal <= group.last && ordinal < this.length; ordinal++) {
          const signers = validSigners(this.#outcomesAt(ordinal));
          if (signers.length === keyids.size && signers.every((keyid) => keyids.has(keyid)))
            this.#verdict.set(ordinal, VERDICTS.indexOf('invalid'));
        }
      }
    }
  }

  #match({ text: wanted, kind, verdict, principal }: Omit<RowQuery, 'offset' | 'limit'>): Int32Array {
    const needle = wanted.trim().toLowerCase();
    const seq = /^#?(?:seq-)?(\d{1,15})$/.exec(needle)?.[1];
    const principalNumber = principal === '' ? undefined : this.#principals.numberOf(principal);
    const id = needle.startsWith('sha-256:') ? wanted.trim().slice('sha-256:'.length) : wanted.trim();
    const found = new Int32Array(this.length);
    let count = 0;
    for (let i = 0; i < this.length; i++) {
      const own = this.#verdictAt(i);
      const ownKind = this.#kindAt(i);
      // Each guarded call has a start beside its execution: they would be a quarter of the table.
      if (kind === '' && needle === '' && ownKind === 'start' && own === 'ok' && !this.#findings.has(i))
        continue;
      if (kind !== '' && kind !== 'any' && ownKind !== kind) continue;
      if (verdict !== '' && own !== (verdict === 'refused' ? 'denied' : verdict)) continue;
      if (principalNumber !== undefined && this.#principal.at(i) !== principalNumber) continue;
      if (needle !== '' && !this.#contains(i, needle, seq, id)) continue;
      found[count] = i;
      count += 1;
    }
    return found.slice(0, count);
  }

  #contains(i: number, needle: string, seq: string | undefined, id: string): boolean {
    if (seq !== undefined && String(this.#place.at(i)) === seq) return true;
    if (id.length >= 6 && this.#ids[i]?.startsWith(id) === true) return true;
    const texts = [this.#what, this.#tool, this.#time, this.#type].map((column) =>
      this.#texts.at(column.at(i)),
    );
    if (texts.some((each) => each.toLowerCase().includes(needle))) return true;
    if (this.#principals.at(this.#principal.at(i)).toLowerCase().includes(needle)) return true;
    return this.#findings.get(i)?.some(({ code }) => code.toLowerCase().includes(needle)) ?? false;
  }

  #outcomesAt(ordinal: number): readonly SignatureOutcome[] {
    return JSON.parse(this.#outcomes.at(this.#signatures.at(ordinal)) || '[]') as readonly SignatureOutcome[];
  }

  #signersAt(ordinal: number): string[] {
    return validSigners(this.#outcomesAt(ordinal)).map((keyid) => this.#keyName(keyid));
  }

  #keyName(keyid: string): string {
    return this.#state === undefined ? keyid : nameKey(this.#state, keyid);
  }

  #signaturesAt(ordinal: number): SignatureView[] {
    return this.#outcomesAt(ordinal).map(({ keyid, outcome, code, roles = [] }) => {
      const name = this.#state && nameKey(this.#state, keyid);
      return {
        keyid: printable(keyid),
        name,
        outcome,
        code,
        roles,
      };
    });
  }

  #eventOf(line: Uint8Array): JsonObject | undefined {
    return examineLine(line, this.#state?.layout).json();
  }

  #linksOf(event: JsonObject): Why['links'] {
    const links: [string, string | undefined][] = [
      ['Authorized by', readEventId(event['auth_event_id'])],
      ['Under grant', readEventId(objectOf(event['authorization'])['grant_event_id'])],
      ['Of grant', readEventId(event['grant_event_id'])],
      ['Of execution', readEventId(event['execution_event_id'])],
      ['Of checkpoint', readEventId(event['checkpoint_event_id'])],
      ['Follows', readEventId(event['prev_event_id'])],
    ];
    return links.flatMap(([label, id]) => {
      if (id === undefined) return [];
      const ordinal = this.#byId.get(id.slice('sha-256:'.length));
      return [{ label, id: printable(id), row: ordinal === undefined ? undefined : this.row(ordinal) }];
    });
  }

  #grantsAbove(ordinal: number): Why['grants'] {
    return (this.#grantIds.get(ordinal) ?? []).slice(0, MAX_LINKED).flatMap((id) => {
      const place = this.#byId.get(id.slice('sha-256:'.length));
      const history = this.#accounts.get(id);
      if (place === undefined || history === undefined) return [];
      // A selection does not say what was left of anything.
      const around = this.#scope === 'selection' ? undefined : this.#accounts.around(id, ordinal);
      const meters =
        around &&
        history.units.map((unit, index): MeterStep => {
          const cap = history.caps[index] ?? ZERO;
          const amountsOf = (held: readonly Held[]): MeterStep['before'] => {
            const { used, reserved } = held[index] ?? { used: ZERO, reserved: ZERO };
            return {
              used: amount(used),
              reserved: amount(reserved),
              left: amount(leftOf(cap, used, reserved)),
            };
          };
          return { unit, cap: amount(cap), before: amountsOf(around.before), after: amountsOf(around.after) };
        });
      return [{ row: this.row(place), meters }];
    });
  }

  #viewGrant(ordinal: number, depth: number): GrantView {
    const { grant, ...history } = this.#historyAt(ordinal) as GrantHistory;
    const children = this.#childrenOf();
    const delegated = [...children.of(ordinal)].filter((child) => this.#isAllowedGrant(child));
    const shown = depth >= MAX_NESTING ? [] : delegated.slice(0, DELEGATED_SHOWN);
    return {
      ordinal,
      principal: printable(grant.principalId),
      verdict: this.#verdictAt(ordinal),
      tools: toolsOf(grant)
        .slice(0, TOOLS_SHOWN)
        .map((tool) => printable(tool)),
      expiresAt: grant.expiresAt,
      signers: this.#signersAt(ordinal),
      executions: grant.executions,
      meters: this.#viewMeters(grant, { grant, ...history }),
      otherActionCaps: [...grant.actionCaps]
        .filter(([unit]) => !grant.accounts.has(unit))
        .map(([unit, cap]) => `${amount(cap)} ${printable(unit)}`),
      delegated: shown.map((child) => this.#viewGrant(child, depth + 1)),
      delegatedTotal: delegated.length,
    };
  }

  #viewMeters(grant: Grant, { units, steps }: GrantHistory): GrantMeter[] {
    return [...grant.accounts].map(([unit, { cap, used, estimated, reserved }]) => {
      const index = units.indexOf(unit);
      const left = leftOf(cap, used, reserved);
      const guessed = compareRationals(estimated, used) > 0 ? used : estimated;
      const points = steps.map(({ ordinal, held }): readonly [number, number] => {
        const { used: then, reserved: set } = held[index] ?? { used: ZERO, reserved: ZERO };
        return [this.#positionOf(ordinal), shareOf(leftOf(cap, then, set), cap)];
      });
      return {
        unit: printable(unit),
        cap: amount(cap),
        perAction: amountOf(grant.actionCaps.get(unit)),
        used: amount(used),
        estimated: guessed.n === 0n ? undefined : amount(guessed),
        reserved: amount(reserved),
        left: amount(left),
        isOver: left.n < 0n,
        usedShare: shareOf(used, cap),
        reservedShare: shareOf(reserved, cap),
        burnDown: thinOut(points),
      };
    });
  }

  /** Where a record stands along the ledger's span of time, from 0 to 1; by order where there is no such span. */
  #positionOf(ordinal: number): number {
    const [from, to] = this.#span();
    if (!(to > from)) return this.length <= 1 ? 0 : ordinal / (this.length - 1);
    const clock = this.#clock.at(ordinal);
    return Number.isFinite(clock) ? Math.min(1, Math.max(0, (clock - from) / (to - from))) : 0;
  }

  #span(): readonly [from: number, to: number] {
    let first = 0;
    while (first < this.length - 1 && !Number.isFinite(this.#clock.at(first))) first += 1;
    return [this.#clock.at(first), this.#clock.at(this.length - 1)];
  }

  /** The record of the checkpoint itself, where it stands there: nothing is between it and what it covers. */
  #sealEnd(sealed: number): number {
    if (sealed < this.length && this.#kindAt(sealed) === 'checkpoint') return sealed;
    return Math.min(sealed, this.length) - 1;
  }

  #drawTimeline(report: Report): Timeline {
    const [from, to] = this.#span();
    const bins = Array.from({ length: BINS }, () => ({ ok: 0, denied: 0, violation: 0, invalid: 0 }));
    const marks: Record<'checkpoints' | 'refused' | 'violations' | 'invalid', Mark[]> = {
      checkpoints: [],
      refused: [],
      violations: [],
      invalid: [],
    };
    const mark = (list: Mark[], ordinal: number, x: number): void => {
      if (list.length < MAX_MARKS) list.push({ ordinal, x });
    };
    for (let i = 0; i < this.length; i++) {
      const x = this.#positionOf(i);
      const verdict = this.#verdictAt(i);
      const bin = bins[Math.min(BINS - 1, Math.floor(x * BINS))];
      if (bin !== undefined) bin[verdict] += 1;
      if (this.#kindAt(i) === 'checkpoint') mark(marks.checkpoints, i, x);
      if (verdict === 'denied') mark(marks.refused, i, x);
      if (verdict === 'violation') mark(marks.violations, i, x);
      if (verdict === 'invalid') mark(marks.invalid, i, x);
    }
    const sealed = report.checkpoints.last_tree_size;
    const isSealed = sealed !== null && sealed > 0 && this.length > 0;
    return {
      from: this.#first ?? '',
      to: this.#last ?? '',
      isByTime: to > from,
      bins,
      ...marks,
      sealedX: isSealed ? this.#positionOf(this.#sealEnd(sealed)) : undefined,
      sealedRecords: sealed ?? 0,
      unsealedRecords: report.checkpoints.unsealed,
    };
  }
}

function toolsOf({ tools }: Grant): string[] {
  return [...tools.names, ...[...tools.prefixes].map((prefix) => `${prefix}*`)];
}

function remediesFor(findings: readonly FindingJson[]): Remedies {
  const codes = new Set(findings.map(({ code }) => code).filter(isFindingCode));
  return Object.fromEntries(
    [...codes].map((code) => [code, { title: CODE_PAGES[code].title, remedy: CODE_PAGES[code].remedy }]),
  );
}

function validSigners(signatures: readonly SignatureOutcome[]): string[] {
  return [...new Set(signatures.filter(({ outcome }) => outcome === 'valid').map(({ keyid }) => keyid))];
}

function nameKey(state: VerifyState, keyid: string): string {
  const short = `${keyid.slice(0, 12)}…`;
  return printable(nameOfKey(state, keyid) ?? ownerName(state, keyid, short) ?? short);
}

/** A key without a name is somebody's where it signs for that principal alone. */
function ownerName({ keyring }: VerifyState, keyid: string, short: string): string | undefined {
  const { principals = [] } = keyring.find(keyid)?.key ?? {};
  const [owner = ''] = principals;
  return principals.length === 1 && isPrincipalId(owner) ? `key ${short} of ${owner}` : undefined;
}

function leftOf(cap: Rational, used: Rational, reserved: Rational): Rational {
  return subtractRationals(subtractRationals(cap, used), reserved);
}

function amount(value: Rational): string {
  return groupDigits(formatRational(value));
}

function amountOf(value: Rational | undefined): string | undefined {
  return value && amount(value);
}

/** For drawing alone. */
function shareOf(part: Rational, whole: Rational): number {
  if (whole.n <= 0n) return part.n > 0n ? 1 : 0;
  const thousandths = (part.n * whole.d * 1_000n) / (part.d * whole.n);
  const bound = 10_000n;
  return Number(thousandths > bound ? bound : thousandths < -bound ? -bound : thousandths) / 1_000;
}

/** So many points as a small curve shows; the first and the last are kept. */
function thinOut(points: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  if (points.length <= MAX_CURVE_POINTS) return [...points];
  const step = (points.length - 1) / (MAX_CURVE_POINTS - 1);
  return Array.from(
    { length: MAX_CURVE_POINTS },
    (_, i) => points[Math.round(i * step)] as readonly [number, number],
  );
}

function toJson(finding: Finding | FindingJson): FindingJson {
  return 'message' in finding ? finding : toFindingJson(finding);
}

function toText(line: Uint8Array): string {
  const whole = decodeUtf8(line);
  let indented = whole;
  try {
    indented = JSON.stringify(JSON.parse(whole), undefined, 2);
  } catch {
    // It is shown as it stands.
  }
  return indented
    .split('\n')
    .map((each) => printable(each, MAX_LINE_BYTES))
    .join('\n');
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}
