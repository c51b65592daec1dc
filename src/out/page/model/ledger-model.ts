/**
 * A verified ledger as the page shows it: filled record by record during verification, and queried in parts. A record's
 * text is read again from the ledger's bytes on request.
 */

import { printable } from '../../../base/bytes/printable.js';
import { decodeUtf8 } from '../../../base/bytes/text.js';
import { defined } from '../../../base/defined.js';
import type { JsonObject } from '../../../base/json/value.js';
import { fromDigestText, toDigestText } from '../../../base/value/digest.js';
import { CODE_PAGES, type FindingCode, isFindingCode } from '../../../format/finding/catalog.js';
import { type Finding, rankOf, RANKS } from '../../../format/finding/finding.js';
import { examineLine } from '../../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../../format/record/line-splitter.js';
import type { FindingJson } from '../../../format/schema/generated/types.js';
import type { Grant } from '../../../rules/bounds/grant.js';
import { findWithdrawal } from '../../../rules/bounds/withdrawal.js';
import { listOpenAuthorizations } from '../../../rules/report/accounts.js';
import { buildReport, type Report, toFindingJson } from '../../../rules/report/report.js';
import { describeQuorum } from '../../../rules/trust/witness-policy.js';
import { readEventId } from '../../../rules/verify/grant-above.js';
import type { VerificationResult } from '../../../rules/verify/run-verification.js';
import type { VerifyState } from '../../../rules/verify/state.js';
import type { VerifiedRecord } from '../../../rules/verify/verified-record.js';
import { ActivityCollector } from '../../activity/collect.js';
import { signersOf } from '../../export/table/rows.js';
import { list, object } from '../../text/json.js';
import { AccountHistory, type GrantHistory } from './account-history.js';
import { amount, viewMeters, viewSteps } from './account-views.js';
import { Children } from './columns.js';
import { Granters, nameKey } from './granters.js';
import {
  type Branch,
  type GranterKey,
  type GranterNode,
  type GranterNodes,
  type Grants,
  type GrantView,
  type Kind,
  KINDS,
  type Oversight,
  type Overview,
  type Remedies,
  type Row,
  type RowQuery,
  type Rows,
  type SignatureView,
  UNAUTHORIZED,
  type Why,
} from './protocol.js';
import { type LinePlace, type Located, RecordTable } from './record-table.js';
import { TimeAxis } from './time-axis.js';
import { Withdrawals } from './withdrawals.js';
import { listFacts } from './words.js';

/** The most that is shown at once of each. */
const PAGE_ROWS = 100;
const MAX_PRINCIPALS = 200;
const REFUSED_SHOWN = 5;
const UNAUTHORIZED_SHOWN = 5;
const GRANTS_SHOWN = 10;
const DELEGATED_SHOWN = 10;
const OVERSIGHT_SHOWN = 5;
const TOOLS_SHOWN = 12;
const MAX_NESTING = 32;
const MAX_LINKED = 100;

/** The findings of calls that lack approvals that they need, or go beyond them. */
const UNAPPROVED: ReadonlySet<FindingCode> = new Set([
  'APPROVAL_MISSING',
  'APPROVAL_EXCEEDED',
  'APPROVAL_REUSED',
]);

/** Records that are under no other, by who signed them. */
interface RootGroup {
  readonly kind: GranterNode['kind'];
  readonly keyids: readonly string[];
  readonly roots: number[];
}

/** The key of the group of records that no signature allows; no list of keyids is like it. */
const NOBODY = ' ';

export class LedgerModel {
  readonly #readLine: (at: LinePlace) => Promise<Uint8Array>;
  readonly #records: RecordTable;
  readonly #axis: TimeAxis;
  readonly #grantIds = new Map<number, readonly string[]>();
  readonly #open = new Set<string>();
  readonly #late: Finding[] = [];
  readonly #told: Finding[] = [];
  readonly #accounts = new AccountHistory();
  readonly #activity = new ActivityCollector({}, 'principal');
  readonly #granters = new Granters();
  readonly #withdrawals = new Withdrawals();
  /** Findings of {@link UNAPPROVED}, and of calls under a grant that was withdrawn. */
  #unapproved = 0;
  #defied = 0;
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
    this.#records = new RecordTable(segments);
    this.#axis = new TimeAxis(this.#records);
  }

  /** MUST be called with each finding, before its record is added. */
  tell(finding: Finding): void {
    this.#told.push(finding);
  }

  /** Adds a record. @param isLinked - In a bundle: not selected, but linked to by selected records. */
  add(record: VerifiedRecord, isLinked = false): void {
    const { examined, state } = record;
    const ordinal = this.#records.length;
    const event = examined?.json();
    const kind = this.#records.add(record, isLinked, event);
    const id = examined?.eventId;
    this.#axis.add(examined?.occurredAt);
    for (const finding of this.#told.splice(0))
      if (finding.at.line !== record.line || finding.at.file !== record.file) this.#late.push(finding);
    this.#activity.take(record);
    // The report lists only so many findings.
    for (const { code } of record.findings) {
      if (UNAPPROVED.has(code)) this.#unapproved += 1;
      else if (code === 'GRANT_REVOKED') this.#defied += 1;
    }
    if (event === undefined) return;
    if (kind === 'grant' && id !== undefined) {
      const grant = state.links.grants.get(id);
      if (grant?.place.line === record.line && grant.place.file === record.file)
        this.#accounts.open(toDigestText(id), grant, ordinal);
    }
    if (record.grantIds.length > 0) this.#grantIds.set(ordinal, record.grantIds);
    for (const grantId of record.grantIds) this.#accounts.note(grantId, ordinal);
    this.#granters.count(record, kind, event);
    this.#withdrawals.take(record, ordinal);
  }

  /** Completes the model with what only the end shows. */
  finish(result: VerificationResult, seconds: number): Overview {
    const { state, ending } = result;
    this.#state = state;
    for (const { eventId } of listOpenAuthorizations(state)) this.#open.add(eventId);
    for (const finding of [...this.#late, ...ending.findings]) {
      const ordinal = this.#records.findLine(finding);
      if (ordinal === undefined) continue;
      this.#records.keep(ordinal, [finding]);
      if (finding.class === 'invalid') this.#records.setInvalid(ordinal);
    }
    this.#markUncovered(state, ending.findings);
    const report = buildReport(result);
    const { totals, groups, decisions } = this.#activity.finish(result, report);
    return {
      report,
      remedies: remediesFor(report.findings),
      quorum: state.witnessPolicy && describeQuorum(state.witnessPolicy),
      seconds,
      bytes: state.bytes,
      warnings: result.warnings,
      activity: { totals, ...defined({ groups }), decisions },
      kinds: this.#countKinds(),
      unauthorized: this.#findUnauthorized(),
      ...this.#findRefused(),
      granters: this.#granters.list(),
      principals: this.#listPrincipals(),
      timeline: this.#axis.draw(report),
      grants: this.grants({ offset: 0 }),
      oversight: this.#oversee(report),
    };
  }

  #oversee({ approvals, revocations, grants }: Report): Oversight {
    const used = approvals.filter(({ used_by: action }) => action !== null);
    const asks = ({ event_id: id }: Report['grants'][number]): boolean =>
      (this.#accounts.get(id)?.grant.approvals.length ?? 0) > 0;
    return {
      approvals: used.slice(0, OVERSIGHT_SHOWN).flatMap(({ event_id: id, used_by: action }) => {
        const ordinal = this.#records.findId(id);
        const row = ordinal === undefined ? undefined : this.row(ordinal);
        return row === undefined ? [] : [{ row, action: this.#records.findId(action ?? '') }];
      }),
      used: used.length,
      given: approvals.length,
      unapproved: this.#unapproved,
      isAskedFor: grants.some(asks),
      withdrawals: revocations
        .slice(0, OVERSIGHT_SHOWN)
        .flatMap(({ event_id: id, grant_event_id: grant }) => {
          const ordinal = this.#records.findId(id);
          if (ordinal === undefined) return [];
          const { total, first } = this.#withdrawals.ranAfter(id);
          return [
            { row: this.row(ordinal), grant: this.#records.findId(grant), ranLater: total, ran: first },
          ];
        }),
      withdrawalsTotal: revocations.length,
      defied: this.#defied,
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
      const index = this.#records.findLine(finding);
      if (index === undefined) continue;
      const isKnown = this.#records
        .findingsAt(index)
        .some(({ code, at }) => code === finding.code && at.pointer === finding.at.pointer);
      if (!isKnown) this.#records.keep(index, [finding]);
      if (finding.class === 'invalid') this.#records.setInvalid(index);
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
    if (this.#matching?.key !== key) this.#matching = { key, ordinals: this.#records.match(filter) };
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

  /** Granters: known ones first, in the order of their first record. */
  granters({ offset }: { readonly offset: number }): GranterNodes {
    const groups = this.#groupRoots();
    const shown = groups.slice(offset, offset + GRANTS_SHOWN);
    return {
      total: groups.length,
      granters: shown.map(({ kind, keyids, roots }, index) => ({
        number: offset + index,
        kind,
        keys: keyids.map((keyid) => this.#viewKey(keyid)),
        grants: roots.filter((ordinal) => this.#records.kindAt(ordinal) === 'grant').length,
        records: roots.length,
      })),
    };
  }

  /** Records under a record or a granter; under a record, delegated grants come first. */
  branch(at: Branch): Rows {
    const { offset } = at;
    const all = 'of' in at ? this.#belowRecord(at.of) : (this.#groupRoots()[at.granter]?.roots ?? []);
    const rows = [...all.slice(offset, offset + PAGE_ROWS)];
    return { total: all.length, rows: rows.map((ordinal) => this.row(ordinal)) };
  }

  /** A record with everything about it, by its place in the ledger. */
  async why(place: number): Promise<Why | undefined> {
    const ordinal = this.#records.findPlace(place);
    if (ordinal === undefined) return undefined;
    const { file, line, ...bytes } = this.#records.linePlaceAt(ordinal);
    const text = await this.#readLine({ ...bytes, size: Math.min(bytes.size, MAX_LINE_BYTES) });
    const event = bytes.size > MAX_LINE_BYTES ? undefined : examineLine(text, this.#state?.layout).json();
    const id = this.#records.idAt(ordinal);
    const findings = this.#records
      .findingsAt(ordinal)
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
      file,
      line,
      id: id === undefined ? undefined : toDigestText(id),
      findings,
      remedies: remediesFor(findings),
      signatures: this.#signaturesAt(ordinal),
      facts: event === undefined ? [] : listFacts(event),
      links: event === undefined ? [] : this.#linksOf(event),
      grants: this.#grantsAbove(ordinal),
      under: this.branch({ of: ordinal, offset: 0 }),
      text: toText(text),
    };
  }

  row(ordinal: number): Row {
    return {
      ...this.#records.rowAt(ordinal),
      signers: this.#signersAt(ordinal),
      children: this.#childrenOf().count(ordinal),
    };
  }

  #findRefused(): Pick<Overview, 'refused' | 'brokenGrants'> {
    const refused: Row[] = [];
    let brokenGrants = 0;
    for (let i = 0; i < this.#records.length; i++) {
      const verdict = this.#records.verdictAt(i);
      if (verdict === 'denied' && refused.length < REFUSED_SHOWN) refused.push(this.row(i));
      if (verdict === 'invalid' && this.#records.kindAt(i) === 'grant') brokenGrants += 1;
    }
    return { refused, brokenGrants };
  }

  #findUnauthorized(): Row[] {
    const rows: Row[] = [];
    for (const ordinal of this.#records.withFindings()) {
      const isUnauthorized = this.#records.findingsAt(ordinal).some(({ code }) => UNAUTHORIZED.has(code));
      if (this.#records.kindAt(ordinal) === 'execution' && isUnauthorized) rows.push(this.row(ordinal));
    }
    return rows.sort((a, b) => a.ordinal - b.ordinal).slice(0, UNAUTHORIZED_SHOWN);
  }

  #countKinds(): Record<Kind, number> {
    const kinds = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<Kind, number>;
    for (let i = 0; i < this.#records.length; i++) kinds[this.#records.kindAt(i)] += 1;
    return kinds;
  }

  #listPrincipals(): string[] {
    return this.#records
      .principals()
      .filter((principal) => principal !== '')
      .slice(0, MAX_PRINCIPALS);
  }

  #childrenOf(): Children {
    return (this.#children ??= new Children(this.#records.length, (i) => this.#records.parentAt(i)));
  }

  #belowRecord(ordinal: number): Int32Array {
    const all = this.#childrenOf().of(ordinal);
    const grants = all.filter((child) => this.#records.kindAt(child) === 'grant');
    if (grants.length === 0) return all;
    const others = all.filter((child) => this.#records.kindAt(child) !== 'grant');
    const sorted = new Int32Array(all.length);
    sorted.set(grants);
    sorted.set(others, grants.length);
    return sorted;
  }

  /** Grants and other acts that are under no record, grouped by signers. */
  #groupRoots(): readonly RootGroup[] {
    if (this.#groups !== undefined) return this.#groups;
    const groups = new Map<string, RootGroup>();
    const keyidsOf = new Map<number, string>();
    for (const ordinal of this.#childrenOf().roots) {
      const kind = this.#records.kindAt(ordinal);
      const isGranted = kind === 'grant' || kind === 'action';
      if (!isGranted && kind !== 'execution' && kind !== 'adjustment') continue;
      const signatures = this.#records.outcomesNumberAt(ordinal);
      let keyids = keyidsOf.get(signatures);
      if (keyids === undefined) {
        keyids = this.#validSigners(ordinal).sort().join();
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
    return this.#records.kindAt(ordinal) === 'grant' && this.#historyAt(ordinal)?.grant.decision === 'allow';
  }

  #historyAt(ordinal: number): GrantHistory | undefined {
    const id = this.#records.idAt(ordinal);
    const history = id === undefined ? undefined : this.#accounts.get(toDigestText(id));
    return history?.ordinal === ordinal ? history : undefined;
  }

  /** One finding reports all records that rest on a revoked key and on no checkpoint, at the first of them. */
  #markUncovered(state: VerifyState, findings: readonly Located[]): void {
    for (const { at, class: of } of findings) {
      if (of !== 'invalid') continue;
      for (const group of state.seals.unsealed.values()) {
        if (group.first.file !== at.file || group.first.line !== at.line) continue;
        const keyids = new Set(group.keyids);
        for (let ordinal = group.begin; ordinal <= group.last && ordinal < this.#records.length; ordinal++) {
          const signers = this.#validSigners(ordinal);
          if (signers.length === keyids.size && signers.every((keyid) => keyids.has(keyid)))
            this.#records.setInvalid(ordinal);
        }
      }
    }
  }

  #validSigners(ordinal: number): string[] {
    return signersOf({ signatures: this.#records.outcomesAt(ordinal) });
  }

  #signersAt(ordinal: number): string[] {
    return this.#validSigners(ordinal).map((keyid) => this.#keyName(keyid));
  }

  #keyName(keyid: string): string {
    return this.#state === undefined ? keyid : nameKey(this.#state, keyid);
  }

  #signaturesAt(ordinal: number): SignatureView[] {
    return this.#records.outcomesAt(ordinal).map(({ keyid, outcome, code, roles = [] }) => {
      const name = this.#state && nameKey(this.#state, keyid);
      return { keyid: printable(keyid), name, outcome, code, roles };
    });
  }

  #linksOf(event: JsonObject): Why['links'] {
    const links: [string, string | undefined][] = [
      ['Authorized by', readEventId(event['auth_event_id'])],
      ['Under grant', readEventId(object(event['authorization'])['grant_event_id'])],
      ['Of grant', readEventId(event['grant_event_id'])],
      ['Of execution', readEventId(event['execution_event_id'])],
      ['Of checkpoint', readEventId(event['checkpoint_event_id'])],
      ['Follows', readEventId(event['prev_event_id'])],
      ['Asked for by', readEventId(event['request_event_id'])],
      ...list(object(object(event['authorization'])['action'])['approval_event_ids'])
        .slice(0, MAX_LINKED)
        .map((id): [string, string | undefined] => ['Approved by', readEventId(id)]),
      ['Used by', this.#userOf(event)],
    ];
    return links.flatMap(([label, id]) => {
      if (id === undefined) return [];
      const ordinal = this.#records.findId(id);
      return [{ label, id: printable(id), row: ordinal === undefined ? undefined : this.row(ordinal) }];
    });
  }

  /** The action that used up an approval. */
  #userOf(event: JsonObject): string | undefined {
    const id = event['event_type'] === 'approval' ? readEventId(event['event_id']) : undefined;
    return id === undefined ? undefined : this.#state?.links.approvals.get(fromDigestText(id))?.usedBy;
  }

  #grantsAbove(ordinal: number): Why['grants'] {
    return (this.#grantIds.get(ordinal) ?? []).slice(0, MAX_LINKED).flatMap((id) => {
      const place = this.#records.findId(id);
      const history = this.#accounts.get(id);
      if (place === undefined || history === undefined) return [];
      // A selection does not say what was left of anything.
      const around = this.#scope === 'selection' ? undefined : this.#accounts.around(id, ordinal);
      const meters = around && viewSteps(history, around.before, around.after);
      return [{ row: this.row(place), meters }];
    });
  }

  #viewWithdrawal(grant: Grant): GrantView['withdrawn'] {
    const { effect, place } = findWithdrawal(grant) ?? {};
    const ordinal = place && this.#records.findId(place.eventId);
    return ordinal === undefined ? undefined : { isRevoked: effect === 'revoke', ordinal };
  }

  #viewGrant(ordinal: number, depth: number): GrantView {
    const history = this.#historyAt(ordinal) as GrantHistory;
    const { grant } = history;
    const children = this.#childrenOf();
    const delegated = [...children.of(ordinal)].filter((child) => this.#isAllowedGrant(child));
    const shown = depth >= MAX_NESTING ? [] : delegated.slice(0, DELEGATED_SHOWN);
    return {
      ordinal,
      principal: printable(grant.principalId),
      verdict: this.#records.verdictAt(ordinal),
      tools: listTools(grant.tools)
        .slice(0, TOOLS_SHOWN)
        .map((tool) => printable(tool)),
      expiresAt: grant.expiresAt,
      signers: this.#signersAt(ordinal),
      executions: grant.executions,
      withdrawn: this.#viewWithdrawal(grant),
      approvalRules: grant.approvals.map(
        ({ words, count, tools }) =>
          `${listTools(tools)
            .map((tool) => printable(tool))
            .join(', ')}: ${count} of ${printable(words)}`,
      ),
      meters: viewMeters(history, (index) => this.#axis.positionOf(index)),
      otherActionCaps: [...grant.actionCaps]
        .filter(([unit]) => !grant.accounts.has(unit))
        .map(([unit, cap]) => `${amount(cap)} ${printable(unit)}`),
      delegated: shown.map((child) => this.#viewGrant(child, depth + 1)),
      delegatedTotal: delegated.length,
    };
  }
}

function listTools(tools: Grant['tools']): string[] {
  return [...tools.names, ...[...tools.prefixes].map((prefix) => `${prefix}*`)];
}

function remediesFor(findings: readonly FindingJson[]): Remedies {
  const codes = new Set(findings.map(({ code }) => code).filter(isFindingCode));
  return Object.fromEntries(
    [...codes].map((code) => [code, { title: CODE_PAGES[code].title, remedy: CODE_PAGES[code].remedy }]),
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
    // Not JSON: shown unchanged.
  }
  return indented
    .split('\n')
    .map((each) => printable(each, MAX_LINE_BYTES))
    .join('\n');
}
