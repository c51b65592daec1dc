/**
 * What was spent, allowed, refused and left open: added up record by record as a ledger is verified. It judges nothing itself; what
 * counts in the accounts counts here, and what counts in none of them is told apart.
 */

import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { formatExactly } from '../../base/value/format-rational.js';
import { isPrincipalId } from '../../base/value/principal.js';
import { toRational } from '../../base/value/quantity.js';
import {
  addRationals,
  exceedsDenominatorLimit,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import { isToolName } from '../../base/value/tool.js';
import { VERSION } from '../../base/version.js';
import { basisOf } from '../../format/event/meter-basis.js';
import type { FindingCode } from '../../format/finding/catalog.js';
import type { Finding } from '../../format/finding/finding.js';
import { describeFinding } from '../../format/finding/words.js';
import type {
  ActivityAdjustment,
  ActivityBlocked,
  ActivityDecision,
  ActivityDenial,
  ActivityGrant,
  ActivityKey,
  ActivityOpen,
  ActivityProblem,
  ActivityReport,
  ActivitySigner,
  ActivityStart,
  AdjustmentEvent,
  AuthorizationEvent,
  ExecutionEvent,
  Key,
} from '../../format/schema/generated/types.js';
import {
  countedAmounts,
  countedUse,
  isFirstOfItsId,
  isTooFine,
  unstatedUse,
} from '../../log/read/counted.js';
import { NamesAskedFor, Subjects } from '../../log/read/subject.js';
import { balancesOf } from '../../rules/bounds/balance.js';
import { type Action, chainIds, type Grant } from '../../rules/bounds/grant.js';
import { listOpenStarts } from '../../rules/report/accounts.js';
import { buildLazyReport, type LazyReport } from '../../rules/report/report.js';
import {
  isWhole,
  matchesSelection,
  type RecordSelection,
  type SelectableEvent,
} from '../../rules/selection.js';
import { hasFormOfRelease } from '../../rules/verify/authorizations.js';
import type { EventVerdict } from '../../rules/verify/line-result.js';
import type { VerificationResult } from '../../rules/verify/run-verification.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { signersOf } from '../export/table/rows.js';
import { Evidence } from './evidence.js';
import { type ActivityGrouping, Groups, MAX_GROUPS } from './groups.js';
import { listLimits } from './limits.js';
import { type Basis, startSumBudget, type SumPart } from './sums.js';
import { Totals } from './totals.js';

/** What an {@link ActivityCollector} adds up. */
export interface ActivityScope {
  /** Default: all records. An adjustment is whose execution it corrects, or else its grantee's, whoever made it. */
  readonly selection?: RecordSelection | undefined;
  /** Default: no groups. */
  readonly by?: ActivityGrouping | undefined;
}

/** The most entries of each list of examples: denials, blocked attempts, open actions, starts, adjustments, problems. */
export const MAX_LISTED = 100;
/** Of each code that many of the listed problems. */
const MAX_LISTED_PER_CODE = 10;
/** Characters of the amounts of the grants that are listed; one grant may go beyond it. */
export const MAX_GRANT_CHARACTERS = 64 * 1024 * 1024;
/** Combinations of policy, code and decision that are told apart. */
const MAX_DECISIONS = 1_000;
const MAX_PATTERNS = 16;
const MAX_CHECKS = 16;

/** What the end of a ledger shows of all of it, and of no record alone. */
const OF_LEDGER: ReadonlySet<FindingCode> = new Set([
  ...(['TRUNCATED', 'FORKED', 'ORIGIN_MISMATCH', 'CHECKPOINT_MISSING', 'WITNESS_QUORUM'] as const),
  ...(['CHECKPOINT_SIZE_MISMATCH', 'CHECKPOINT_ROOT_MISMATCH', 'CHECKPOINT_SIGNATURE_INVALID'] as const),
  ...(['TAIL_UNSEALED', 'TILE_MISSING', 'TILE_MISMATCH', 'TILE_UNEXPECTED'] as const),
]);

/** What is wrong with lines that are no records. */
const NO_RECORD: ReadonlySet<FindingCode> = new Set(['LINE_TORN', 'LINE_BLANK']);

/** What a grant's own record says beyond what verification remembers of it. */
interface GrantWords {
  readonly policyId: string;
  readonly decisionCode: string;
  readonly tools: readonly string[];
  readonly toolsTotal: number;
  readonly verdict: 'ok' | 'violation' | 'invalid';
}

interface Period {
  first: string;
  last: string;
}

/** An event that counts: well-formed, and the first of its id. */
interface Counted {
  readonly record: VerifiedRecord;
  readonly subject: SelectableEvent;
  readonly totals: readonly Totals[];
  readonly codes: ReadonlySet<string>;
}

/** Takes every record of a ledger, in order; see the head of this file. */
export class ActivityCollector {
  readonly #selection: RecordSelection;
  readonly #subjects = new Subjects();
  readonly #names: NamesAskedFor;
  readonly #totals: Totals;
  readonly #groups: Groups | undefined;
  #ledgerPeriod: Period | undefined;
  #period: Period | undefined;
  /** Records that no selection can take, as they do not say what they are. */
  #unread = 0;
  #unsigned = 0;
  #seqGaps = 0;
  #chainBreaks = 0;
  readonly #principals = new Set<string>();
  #principalsBeyond = false;
  readonly #touched = new Set<string>();
  #grantsBeyond = false;
  readonly #words = new Map<string, GrantWords>();
  readonly #decisions = new Map<string, ActivityDecision>();
  #decisionsBeyond = 0;
  readonly #signers = new Map<string, Omit<ActivitySigner, keyof ActivityKey>>();
  readonly #evidence = new Evidence();
  readonly #denied: (Omit<ActivityDenial, 'signers'> & { keyids: readonly string[] })[] = [];
  /** Of each grant, what was used of a unit under those delegated from it. */
  readonly #delegated = new Map<string, Map<string, Rational>>();
  #delegatedLeftOut = 0;
  readonly #blocked: ActivityBlocked[] = [];
  readonly #adjustments: (Omit<ActivityAdjustment, 'signers'> & { keyids: readonly string[] })[] = [];
  readonly #problems = new Map<string, ActivityProblem>();
  #listedProblems = 0;
  /** Executions of which only the end shows whether what they name comes later, by what they name. */
  readonly #waiting = new Map<string, { readonly finding: Finding; records: number }>();

  constructor({ selection = {}, by }: ActivityScope = {}) {
    this.#selection = selection;
    this.#names = new NamesAskedFor(selection);
    // What all records come to does not depend on whether they are grouped, too.
    this.#totals = new Totals(startSumBudget());
    this.#groups = by === undefined ? undefined : new Groups(by);
  }

  /** To be called with each record as verification gives it (`onRecord`). */
  take(record: VerifiedRecord): void {
    const { examined, verdict, findings } = record;
    const isFirst = isFirstOfItsId(record);
    const occurredAt = examined?.occurredAt;
    this.#ledgerPeriod = extend(this.#ledgerPeriod, occurredAt);
    if (isFirst) this.#noteGrant(record);
    if (findings.some(({ code }) => code === 'SEQ_GAP')) this.#seqGaps += 1;
    if (findings.some(({ code }) => code === 'PREV_MISMATCH')) this.#chainBreaks += 1;
    if (isFirst) this.#noteDelegated(record);
    const subject = this.#subjects.take(record);
    this.#names.take(subject);
    if (!matchesSelection(subject, this.#selection)) {
      if (examined?.wellFormed !== true) this.#unread += 1;
      return;
    }
    this.#period = extend(this.#period, occurredAt);
    const totals = this.#totalsOf(subject);
    for (const each of totals) {
      each.records += 1;
      each.verdicts[verdict] += 1;
      if (examined?.wellFormed !== true || !isFirst) each.uncounted += 1;
    }
    this.#touch(subject.grantIds);
    const signers = this.#countSigners(record);
    const found = new Set<string>();
    for (const finding of findings) {
      if (found.has(finding.code)) continue;
      found.add(finding.code);
      this.#addProblem(finding);
    }
    if (examined?.wellFormed !== true || !isFirst) return;
    if (examined.eventType.startsWith('x.')) this.#evidence.take(examined.json() ?? {});
    const codes = new Set(findings.map(({ code }) => code));
    const counted: Counted = { record, subject, totals, codes };
    if (examined.type === 'execution') {
      for (const signer of signers) signer.executions += 1;
      this.#addExecution(counted, examined.event());
    } else if (examined.type === 'authorization') {
      const event = examined.event();
      const kind = event.authorization.kind === 'grant' ? 'grants' : 'actions';
      for (const signer of signers) signer[kind] += 1;
      this.#addAuthorization(counted, event);
    } else if (examined.type === 'adjustment') {
      for (const signer of signers) signer.adjustments += 1;
      this.#addAdjustment(counted, examined.event());
    } else {
      this.#addUnstated(counted);
    }
  }

  /** The report, when the ledger is verified to its end. */
  finish(result: VerificationResult, report: LazyReport = buildLazyReport(result)): ActivityReport {
    const { state, ending } = result;
    const open = this.#addOpen(state);
    const starts = this.#addStarts(state);
    this.#settleWaiting(state);
    this.#addLines(result.kept);
    for (const finding of ending.findings) {
      if (finding.code === 'AUTH_NOT_FOUND') continue;
      const isOfLedger = OF_LEDGER.has(finding.code);
      if (isOfLedger || this.#isMeant(finding)) this.#addProblem(finding, { isOfLedger });
    }
    const totals = this.#totals.toJson();
    const selection = this.#selection;
    const unmatched = this.#names.list().map(({ known, ...name }) => ({ ...name, known: [...known] }));
    const isWholeLedger = isWhole(selection);
    if (isWholeLedger) totals.verdicts = { ...report.counts.by_verdict };
    const { leftOut: groupAmountsLeftOut = 0, ...groups } =
      this.#groups?.toJson(
        (id) => chainIds(state.links.grants.get(fromDigestText(id))),
        (id) => state.links.grants.get(fromDigestText(id))?.place.seq ?? Infinity,
      ) ?? {};
    const pinned = new Set(state.policy?.keys.map(({ keyid }) => keyid));
    const keyOf = (keyid: string): ActivityKey => {
      const key = state.keyring.find(keyid)?.key;
      return {
        keyid,
        ...given('name', key?.name),
        ...given('owner', key && ownerOf(key)),
        pinned: pinned.has(keyid),
      };
    };
    const { grants, cut: grantsCut } = this.#listGrants(state, keyOf);
    const evidence = this.#evidence.list();
    const draft: Omit<ActivityReport, 'limits'> = {
      activity_version: '1',
      tool: { name: 'northroot', version: VERSION },
      ledger: {
        paths: [...report.ledger.paths],
        origin: report.ledger.origin,
        records: report.ledger.records,
        bytes: report.ledger.bytes,
        root: report.ledger.root,
        checkpoints: report.checkpoints.count,
        sealed: ending.sealedSize,
        unsealed: ending.afterSealed,
        anchors: ending.anchors
          .filter(({ isPublished }) => !isPublished)
          .map(({ name, note, relation }) => ({ path: name, tree_size: note.checkpoint.size, relation })),
        seq_gaps: this.#seqGaps,
        chain_breaks: this.#chainBreaks,
        ...(this.#ledgerPeriod === undefined ? {} : { period: this.#ledgerPeriod }),
      },
      verdict: report.verdict,
      exit_status: report.exit_status,
      trust: report.trust.mode,
      selection: {
        is_whole: isWholeLedger,
        records: totals.records,
        ...given('since', selection.since),
        ...given('until', selection.until),
        ...given('principal', selection.principal),
        ...given('tool', selection.tool),
        ...given('grant_event_id', selection.grantId),
        ...given('events', selection.eventIds?.size),
        ...given('period', this.#period),
        ...(unmatched.length === 0 ? {} : { unmatched }),
      },
      principals: [...this.#principals].slice(0, MAX_LISTED),
      principals_total: this.#principals.size,
      totals,
      ...(this.#groups === undefined ? {} : { by: this.#groups.by, ...groups }),
      grants,
      grants_total: this.#touchedGrants(state).length,
      decisions: [...this.#decisions.values()].sort((a, b) => b.count - a.count),
      signers: state.keyring.save().flatMap(({ key: { keyid } }) => {
        const counts = this.#signers.get(keyid);
        return counts === undefined ? [] : [{ ...keyOf(keyid), ...counts }];
      }),
      unsigned: this.#unsigned,
      denied: this.#denied.map(({ keyids, ...denial }) => ({ ...denial, signers: keyids.map(keyOf) })),
      blocked: this.#blocked,
      open,
      starts,
      adjustments: this.#adjustments.map(({ keyids, ...adjustment }) => ({
        ...adjustment,
        signers: keyids.map(keyOf),
      })),
      ...(evidence.length === 0 ? {} : { evidence }),
      problems: [...this.#problems.values()].sort(
        (a, b) => (a.class === b.class ? 0 : a.class === 'invalid' ? -1 : 1) || b.records - a.records,
      ),
      not_checked: report.not_checked,
    };
    return {
      ...draft,
      limits: listLimits(draft, {
        report,
        unread: this.#unread,
        brokenAnchors: ending.anchors.filter(({ relation }) => relation !== 'extends').length,
        late: Object.values(ending.uncovered).reduce((all, n) => all + n, 0),
        decisionsBeyond: this.#decisionsBeyond,
        grantsBeyond: this.#grantsBeyond,
        grantsCut,
        groupAmountsLeftOut,
        delegatedLeftOut: this.#delegatedLeftOut,
        principalsBeyond: this.#principalsBeyond,
        evidenceBeyond: this.#evidence.beyond,
      }),
    };
  }

  #totalsOf(subject: SelectableEvent): readonly Totals[] {
    return this.#groups === undefined
      ? [this.#totals]
      : [this.#totals, this.#groups.totalsOf(this.#within(subject))];
  }

  /** Grants above the one that was asked for are nobody's question. */
  #within(subject: SelectableEvent): SelectableEvent {
    const { grantId } = this.#selection;
    const index = grantId === undefined ? -1 : subject.grantIds.indexOf(grantId);
    return index === -1 ? subject : { ...subject, grantIds: subject.grantIds.slice(0, index + 1) };
  }

  #touch(grantIds: readonly string[]): void {
    for (const id of grantIds) {
      if (this.#touched.has(id)) continue;
      if (this.#touched.size < MAX_GROUPS) this.#touched.add(id);
      else this.#grantsBeyond = true;
    }
  }

  #addAmount(
    { subject, totals }: Pick<Counted, 'subject' | 'totals'>,
    unit: string,
    amount: ReturnType<typeof toRational>,
    parts: readonly SumPart[],
  ): void {
    for (const { sums } of totals) sums.add(unit, amount, parts);
    for (const sums of this.#groups?.sumsAbove(this.#within(subject)) ?? []) sums.add(unit, amount, parts);
  }

  #addExecution(counted: Counted, event: ExecutionEvent): void {
    const { record, totals, codes } = counted;
    const { state, verdict } = record;
    const id = event.auth_event_id.b64;
    const authorization = state.links.actions.get(id) ?? state.links.grants.get(id);
    const isSpent = authorization === undefined && state.events.find(id)?.kind === 'spent';
    const isLinked = authorization !== undefined || isSpent;
    if (authorization?.decision === 'deny' && !codes.has('EXECUTION_UNDER_DENY')) {
      for (const { executions } of totals) executions.blocked += 1;
      pushBounded(this.#blocked, () => ({
        ...placeOf(record, event),
        tool_name: event.tool_name,
        auth_event_id: toDigestText(id),
        ...given('error_code', event.error_code),
      }));
      return;
    }
    if (!isLinked && !codes.has('AUTH_NOT_AN_AUTHORIZATION')) this.#wait(record, id);
    if (isSpent && !codes.has('AUTHORIZATION_REUSED') && hasFormOfRelease(event)) {
      for (const { executions } of totals) executions.released += 1;
      this.#addUnstated(counted);
      return;
    }
    if (this.#principals.size < MAX_GROUPS) this.#principals.add(event.principal_id);
    else this.#principalsBeyond ||= !this.#principals.has(event.principal_id);
    const isUnauthorized = !isLinked || authorization?.decision === 'deny';
    for (const { executions } of totals) {
      executions[event.outcome] += 1;
      if (isUnauthorized) executions.unauthorized += 1;
    }
    const rest: SumPart[] = [...wrongness(verdict), ...(isUnauthorized ? (['unauthorized'] as const) : [])];
    this.#addUnstated(counted);
    for (const [index, { unit, amount }] of event.meter_used.entries()) {
      if (!isTooFine(record, `/meter_used/${index}/amount`)) {
        this.#addAmount(counted, unit, toRational(amount), [basisOf(event, unit) ?? 'unstated', ...rest]);
      } else {
        for (const { sums } of totals) sums.leftOut += 1;
      }
    }
  }

  /** What counts as used and is not stated: what an execution keeps silent about, and the first try of what was taken over. */
  #addUnstated(counted: Counted): void {
    const parts: SumPart[] = ['estimated', ...wrongness(counted.record.verdict)];
    for (const { unit, amount } of unstatedUse(counted.record)) this.#addAmount(counted, unit, amount, parts);
  }

  #addAuthorization({ record, totals }: Counted, event: AuthorizationEvent): void {
    const { authorization, decision, policy_id: policyId, decision_code: code } = event;
    const isAllowed = decision === 'allow';
    for (const each of totals) {
      const counts = authorization.kind === 'grant' ? each.grants : each.actions;
      if (isAllowed) counts.allowed += 1;
      else counts.denied += 1;
    }
    const key = JSON.stringify([decision, authorization.kind, policyId, code]);
    const known = this.#decisions.get(key);
    if (known !== undefined) known.count += 1;
    else if (this.#decisions.size >= MAX_DECISIONS) this.#decisionsBeyond += 1;
    else {
      const { kind } = authorization;
      this.#decisions.set(key, { decision, kind, policy_id: policyId, decision_code: code, count: 1 });
    }
    if (isAllowed) return;
    pushBounded(this.#denied, () => {
      const failed = (event.checks ?? []).filter(({ result }) => result === 'fail').slice(0, MAX_CHECKS);
      return {
        ...placeOf(record, event),
        kind: authorization.kind,
        ...(authorization.kind === 'action' ? { tool_name: authorization.action.tool_name } : {}),
        ...(authorization.grant_event_id === undefined
          ? {}
          : { grant_event_id: toDigestText(authorization.grant_event_id.b64) }),
        policy_id: policyId,
        decision_code: code,
        keyids: signersOf(record),
        failed_checks: failed.map((each) =>
          each.code === undefined ? each.check : `${each.check}: ${each.code}`,
        ),
      };
    });
  }

  /** As rule 11 applies it: what is refused counts for nothing. */
  #addAdjustment(counted: Counted, event: AdjustmentEvent): void {
    const { record, totals } = counted;
    const isCredit = event.direction === 'credit';
    const applied = countedAmounts(record, event);
    const basis: Basis = event.meter_basis ?? 'unstated';
    const parts: SumPart[] = isCredit ? ['credited'] : [basis, 'debited', ...wrongness(record.verdict)];
    const amounts = event.meters.map(({ unit, amount: quantity }, index) => {
      const amount = toRational(quantity);
      const isCounted = applied[index] === true;
      if (isCounted) this.#addAmount(counted, unit, amount, parts);
      return { unit, amount: formatExactly(amount), counted: isCounted };
    });
    const counts = amounts.some((each) => each.counted);
    for (const { adjustments } of totals) {
      adjustments[isCredit ? 'credits' : 'debits'] += 1;
      if (!counts) adjustments.refused += 1;
    }
    const execution = event.execution_event_id?.b64;
    const corrected = execution === undefined ? undefined : record.state.events.find(execution);
    pushBounded(this.#adjustments, () => ({
      ...placeOf(record, event),
      direction: event.direction,
      grant_event_id: toDigestText(event.grant_event_id.b64),
      ...given('grant_seq', record.state.links.grants.get(event.grant_event_id.b64)?.place.seq),
      ...(execution === undefined
        ? {}
        : {
            execution_event_id: toDigestText(execution),
            ...given('execution_seq', corrected?.kind === 'execution' ? corrected.seq : undefined),
          }),
      reason: event.reason,
      ...given('basis', event.meter_basis),
      amounts,
      keyids: signersOf(record),
    }));
  }

  /** What is allowed and not executed at the end of the ledger. */
  #addOpen(state: VerifyState): ActivityOpen[] {
    const list: ActivityOpen[] = [];
    for (const action of state.links.actions.values()) {
      if (action.decision !== 'allow') continue;
      const subject = subjectOfAction(action);
      if (!matchesSelection(subject, this.#selection)) continue;
      const totals = this.#totalsOf(subject);
      for (const { open } of totals) open.authorizations += 1;
      const reserved = [...action.reservation];
      for (const [unit, amount] of reserved) this.#addAmount({ subject, totals }, unit, amount, ['reserved']);
      pushBounded(list, () => ({
        seq: action.place.seq,
        event_id: action.place.eventId,
        occurred_at: action.occurredAt,
        principal_id: action.principalId,
        tool_name: action.toolName,
        ...given('grant_event_id', action.grant?.place.eventId),
        reserved: reserved.map(([unit, amount]) => ({ unit, amount: formatExactly(amount) })),
      }));
    }
    return list;
  }

  #addStarts(state: VerifyState): ActivityStart[] {
    const list: ActivityStart[] = [];
    for (const start of listOpenStarts(state)) {
      const { grantId, principalId, toolName, startedAt, eventId } = start;
      const grant = grantId === undefined ? undefined : state.links.grants.get(fromDigestText(grantId));
      const subject = {
        occurredAt: startedAt,
        principalId,
        toolName,
        eventId: fromDigestText(eventId),
        grantIds: chainIds(grant),
      };
      if (!matchesSelection(subject, this.#selection)) continue;
      for (const { open } of this.#totalsOf(subject)) open.starts += 1;
      pushBounded(list, () => ({
        seq: start.seq,
        event_id: eventId,
        started_at: startedAt,
        principal_id: principalId,
        tool_name: toolName,
        auth_event_id: start.authorizationId,
      }));
    }
    return list;
  }

  /** The policy and the code of a grant stand in its record alone. Verification remembers all grants, and so does this. */
  #noteGrant({ examined, verdict }: VerifiedRecord): void {
    if (examined?.type !== 'authorization') return;
    const { authorization, decision, policy_id: policyId, decision_code: decisionCode } = examined.event();
    if (authorization.kind !== 'grant' || decision !== 'allow') return;
    const tools = authorization.bounds?.allowed_tools ?? [];
    this.#words.set(toDigestText(examined.eventId), {
      policyId,
      decisionCode,
      tools: tools.slice(0, MAX_PATTERNS),
      toolsTotal: tools.length,
      verdict: verdict === 'denied' ? 'ok' : verdict,
    });
  }

  /** As the accounts have it: of every record, selected or not. */
  #noteDelegated(record: VerifiedRecord): void {
    const { examined, grantIds, state } = record;
    if (grantIds.length < 2 || examined?.wellFormed !== true) return;
    const add = (unit: string, amount: Rational): void => {
      for (const id of grantIds.slice(1)) {
        if (state.links.grants.get(fromDigestText(id))?.accounts.has(unit) !== true) continue;
        let units = this.#delegated.get(id);
        if (units === undefined) this.#delegated.set(id, (units = new Map<string, Rational>()));
        const sum = addRationals(units.get(unit) ?? ZERO, amount);
        if (exceedsDenominatorLimit(sum)) this.#delegatedLeftOut += 1;
        else units.set(unit, sum);
      }
    };
    for (const { unit, amount } of unstatedUse(record)) add(unit, amount);
    if (examined.type === 'execution') {
      const event = examined.event();
      const counted = countedUse(record, event);
      for (const [i, { unit, amount }] of event.meter_used.entries()) {
        if (counted[i] === true) add(unit, toRational(amount));
      }
    } else if (examined.type === 'adjustment') {
      const event = examined.event();
      const counted = countedAmounts(record, event);
      for (const [i, { unit, amount }] of event.meters.entries()) {
        const exact = toRational(amount);
        if (counted[i] !== true) continue;
        add(unit, event.direction === 'credit' ? subtractRationals(ZERO, exact) : exact);
      }
    }
  }

  #touchedGrants(state: VerifyState): Grant[] {
    return [...state.links.grants.values()].filter(
      ({ decision, place }) => decision === 'allow' && this.#touched.has(place.eventId),
    );
  }

  /** Those whose amounts are short enough together, in ledger order; and how many others there are. */
  #listGrants(
    state: VerifyState,
    keyOf: (keyid: string) => ActivityKey,
  ): { readonly grants: ActivityGrant[]; readonly cut: number } {
    const grants: ActivityGrant[] = [];
    let characters = 0;
    let cut = 0;
    for (const grant of this.#touchedGrants(state)) {
      const { eventId, seq } = grant.place;
      const words = this.#words.get(eventId);
      if (words === undefined) continue;
      if (characters > MAX_GRANT_CHARACTERS) {
        cut += 1;
        continue;
      }
      const listed: ActivityGrant = {
        seq,
        event_id: eventId,
        occurred_at: grant.occurredAt,
        principal_id: grant.principalId,
        ...given('parent_event_id', grant.parent?.place.eventId),
        ...given('not_before', grant.notBefore),
        ...given('expires_at', grant.expiresAt),
        allowed_tools: [...words.tools],
        allowed_tools_total: words.toolsTotal,
        policy_id: words.policyId,
        decision_code: words.decisionCode,
        verdict: words.verdict,
        signers: grant.signers.map(keyOf),
        executions: grant.executions,
        action_caps: [...grant.actionCaps].map(([unit, amount]) => ({ unit, amount: formatExactly(amount) })),
        meters: balancesOf(grant).map(({ unit, cap, used, estimated, reserved, left }) => ({
          unit,
          cap: formatExactly(toRational(cap)),
          used: formatExactly(toRational(used)),
          ...(estimated === undefined ? {} : { estimated: formatExactly(toRational(estimated)) }),
          ...delegatedOf(this.#delegated.get(eventId)?.get(unit)),
          reserved: formatExactly(toRational(reserved)),
          left: formatExactly(toRational(left)),
        })),
      };
      for (const meter of [...listed.meters, ...listed.action_caps]) {
        for (const text of Object.values(meter)) characters += text.length;
      }
      grants.push(listed);
    }
    return { grants, cut };
  }

  #countSigners(record: VerifiedRecord): Omit<ActivitySigner, keyof ActivityKey>[] {
    const keyids = signersOf(record);
    if (keyids.length === 0) this.#unsigned += 1;
    return keyids.map((keyid) => {
      let signer = this.#signers.get(keyid);
      if (signer === undefined) {
        signer = { records: 0, grants: 0, actions: 0, executions: 0, adjustments: 0 };
        this.#signers.set(keyid, signer);
      }
      signer.records += 1;
      return signer;
    });
  }

  /** To be called with each code once a record. */
  #addProblem(finding: Finding, { records = 1, isOfLedger = false } = {}): void {
    if (finding.class === 'none') return;
    const { code, at, seq, eventId, context } = finding;
    let problem = this.#problems.get(code);
    if (problem === undefined) {
      problem = {
        code,
        class: finding.class,
        records: 0,
        first: [],
      };
      this.#problems.set(code, problem);
    }
    if (isOfLedger) problem.of_ledger = true;
    problem.records += records;
    if (problem.first.length >= MAX_LISTED_PER_CODE || this.#listedProblems >= MAX_LISTED) return;
    this.#listedProblems += 1;
    const { principalId, toolName } = context;
    problem.first.push({
      file: at.file,
      line: at.line,
      ...given('seq', seq),
      ...given('event_id', eventId),
      ...(principalId !== undefined && isPrincipalId(principalId) ? { principal_id: principalId } : {}),
      ...(toolName !== undefined && isToolName(toolName) ? { tool_name: toolName } : {}),
      ...given('over', excessOf(finding)),
      message: describeFinding(finding),
    });
  }

  /** Whether the end's word is about a selected record; about no record it is only where all are. */
  #isMeant({ context, eventId }: Finding): boolean {
    const { occurredAt, principalId, toolName, grantIds = [] } = context;
    const id = eventId === undefined ? undefined : fromDigestText(eventId);
    return matchesSelection({ occurredAt, principalId, toolName, eventId: id, grantIds }, this.#selection);
  }

  /** What an execution names has not come yet: its finding is told later, and perhaps folded under another. */
  #wait(record: VerifiedRecord, id: string): void {
    const known = this.#waiting.get(id);
    if (known !== undefined) {
      known.records += 1;
      return;
    }
    const { examined, file, line, byteOffset, byteLength, ordinal } = record;
    const finding: Finding = {
      code: 'AUTH_NOT_FOUND',
      severity: 'error',
      class: 'invalid',
      at: {
        file,
        line,
        byteOffset,
        byteLength,
        pointer: examined?.layout === 'bare' ? '/auth_event_id' : '/event/auth_event_id',
      },
      seq: examined?.seq ?? ordinal,
      eventId: examined?.eventId === undefined ? undefined : toDigestText(examined.eventId),
      expected: 'the id of an earlier authorization',
      actual: toDigestText(id),
      context: {
        ...given('principalId', examined?.principalId),
        ...given('toolName', examined?.toolName),
      },
    };
    // As many ids as groups; what the rest names is then not asked again.
    const key = this.#waiting.size < MAX_GROUPS ? id : '';
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, { finding, records: 1 });
    else waiting.records += 1;
  }

  /** What no record stands in is never taken: it is about the whole ledger. */
  #addLines(findings: readonly Finding[]): void {
    for (const finding of findings) {
      if (!NO_RECORD.has(finding.code)) continue;
      this.#addProblem(finding, { isOfLedger: true });
      if (!isWhole(this.#selection)) this.#unread += 1;
    }
  }

  #settleWaiting(state: VerifyState): void {
    for (const [id, { finding, records }] of this.#waiting) {
      const kind = state.events.find(id)?.kind;
      const isElse = kind === 'other' || kind === 'execution';
      const late: FindingCode = isElse ? 'AUTH_NOT_AN_AUTHORIZATION' : 'AUTH_AFTER_EXECUTION';
      this.#addProblem(kind === undefined ? finding : { ...finding, code: late }, { records });
    }
  }
}

/** Whose own key it is: that of the one principal that it signs for. An authority's principals are those it may grant to. */
function ownerOf({ roles, principals }: Key): string | undefined {
  const [only, other] = principals;
  if (only === undefined || other !== undefined || !isPrincipalId(only) || only.endsWith('*'))
    return undefined;
  return roles.includes('event') && !roles.includes('authority') ? only : undefined;
}

function delegatedOf(amount: Rational | undefined): { delegated?: string } {
  return amount === undefined || amount.n === 0n ? {} : { delegated: formatExactly(amount) };
}

type Excess = NonNullable<ActivityProblem['first'][number]['over']>;

/** As the rules of bounds word it: `usd at most 0.5 …`, `…: 0.05 over`. */
function excessOf({ expected = '', actual = '', related }: Finding): Excess | undefined {
  const [, unit] = /^(\S+) at most /.exec(expected) ?? [];
  const [, amount] = /(\S+) over$/.exec(actual) ?? [];
  if (unit === undefined || amount === undefined) return undefined;
  return { unit, amount, ...given('grant_event_id', related?.[0]?.eventId) };
}

function subjectOfAction({ place, occurredAt, principalId, toolName, grant }: Action): SelectableEvent {
  const eventId = fromDigestText(place.eventId);
  return { occurredAt, principalId, toolName, eventId, grantIds: chainIds(grant) };
}

function placeOf(
  { examined, ordinal }: VerifiedRecord,
  event: AuthorizationEvent | ExecutionEvent | AdjustmentEvent,
): { seq: number; event_id: string; occurred_at: string; principal_id: string } {
  return {
    seq: examined?.seq ?? ordinal,
    event_id: toDigestText(event.event_id.b64),
    occurred_at: event.occurred_at,
    principal_id: event.principal_id,
  };
}

/** What counts though it is wrong is told apart. */
function wrongness(verdict: EventVerdict): SumPart[] {
  return verdict === 'violation' || verdict === 'invalid' ? [verdict] : [];
}

function extend(period: Period | undefined, occurredAt: string | undefined): Period | undefined {
  if (occurredAt === undefined || !isTimestamp(occurredAt)) return period;
  if (period === undefined) return { first: occurredAt, last: occurredAt };
  if (compareTimestamps(occurredAt, period.last) >= 0) period.last = occurredAt;
  else if (compareTimestamps(occurredAt, period.first) < 0) period.first = occurredAt;
  return period;
}

function pushBounded<T>(list: T[], make: () => T): void {
  if (list.length < MAX_LISTED) list.push(make());
}

function given<K extends string, T>(name: K, value: T | undefined): { [P in K]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { [P in K]?: T };
}
