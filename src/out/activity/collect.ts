/**
 * Sums of what was spent, allowed, refused and left open, record by record as a ledger is verified. Verification judges: what
 * counts in the accounts counts here, and what counts in no account is reported apart.
 */

import { defined } from '../../base/defined.js';
import type { JsonObject } from '../../base/json/value.js';
import { fromDigestText, isDigest, toDigestText } from '../../base/value/digest.js';
import { formatExactly } from '../../base/value/format-rational.js';
import { isPrincipalId } from '../../base/value/principal.js';
import { toRational } from '../../base/value/quantity.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import { VERSION } from '../../base/version.js';
import { basisOf } from '../../format/event/meter-basis.js';
import type { FindingCode } from '../../format/finding/catalog.js';
import type { Finding } from '../../format/finding/finding.js';
import type {
  ActivityAdjustment,
  ActivityApproval,
  ActivityBlocked,
  ActivityDecision,
  ActivityDenial,
  ActivityKey,
  ActivityOpen,
  ActivityReport,
  ActivitySample,
  ActivityRevocation,
  ActivitySigner,
  ActivityStart,
  AdjustmentEvent,
  ApprovalEvent,
  AuthorizationEvent,
  ExecutionEvent,
  Key,
  RevocationEvent,
} from '../../format/schema/generated/types.js';
import { countedAmounts, isFirstOfItsId, isTooFine, unstatedUse } from '../../log/read/counted.js';
import type { Sample } from '../../log/read/draw-sample.js';
import { NamesAskedFor, Subjects } from '../../log/read/subject.js';
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
import { LATE_REPORT_TYPE } from '../../rules/verify/late-reports.js';
import type { EventVerdict } from '../../rules/verify/line-result.js';
import type { VerificationResult } from '../../rules/verify/run-verification.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { signersOf } from '../export/table/rows.js';
import { Coverage } from './coverage.js';
import { Evidence } from './evidence.js';
import { GrantList } from './grants.js';
import { type ActivityGrouping, Groups, MAX_GROUPS } from './groups.js';
import { listLimits, MAX_LISTED } from './limits.js';
import { Problems } from './problems.js';
import { type Basis, startSumBudget, type SumPart } from './sums.js';
import { Totals } from './totals.js';
import { isUsedUp } from '../../rules/verify/event-index.js';

/** Combinations of policy, code and decision that are counted separately. */
const MAX_DECISIONS = 1_000;
const MAX_CHECKS = 16;

/** What the end of a ledger shows of all of it, and of no record alone. */
const OF_LEDGER: ReadonlySet<FindingCode> = new Set([
  ...(['TRUNCATED', 'FORKED', 'ORIGIN_MISMATCH', 'CHECKPOINT_MISSING', 'WITNESS_QUORUM'] as const),
  ...(['CHECKPOINT_SIZE_MISMATCH', 'CHECKPOINT_ROOT_MISMATCH', 'CHECKPOINT_SIGNATURE_INVALID'] as const),
  ...(['TAIL_UNSEALED', 'TILE_MISSING', 'TILE_MISMATCH', 'TILE_UNEXPECTED'] as const),
]);

/** Findings of lines that are no records. */
const NO_RECORD: ReadonlySet<FindingCode> = new Set(['LINE_TORN', 'LINE_BLANK']);

type Signers = Pick<ActivityDenial, 'signers'>;
/** Whose signers are known by keyid until the end. */
type Unsigned<T extends Signers> = Omit<T, 'signers'> & { readonly keyids: readonly string[] };

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

/** Sums the records of a ledger; see the head of this file. */
export class ActivityCollector {
  readonly #selection: RecordSelection;
  readonly #sample: Sample | undefined;
  readonly #subjects = new Subjects();
  readonly #names: NamesAskedFor;
  readonly #totals: Totals;
  readonly #groups: Groups | undefined;
  readonly #grants = new GrantList();
  readonly #evidence = new Evidence();
  readonly #problems = new Problems();
  #ledgerPeriod: Period | undefined;
  #period: Period | undefined;
  /** Records outside the selection that are not well-formed: they do not say what they are. */
  #unread = 0;
  #unsigned = 0;
  #seqGaps = 0;
  #chainBreaks = 0;
  readonly #principals = new Set<string>();
  #principalsBeyond = false;
  readonly #decisions = new Map<string, ActivityDecision>();
  #decisionsBeyond = 0;
  readonly #coverage = new Coverage();
  readonly #signers = new Map<string, Omit<ActivitySigner, keyof ActivityKey>>();
  readonly #denied: Unsigned<ActivityDenial>[] = [];
  readonly #blocked: ActivityBlocked[] = [];
  readonly #adjustments: Unsigned<ActivityAdjustment>[] = [];
  readonly #approvals: Unsigned<ActivityApproval>[] = [];
  readonly #revocations: Unsigned<ActivityRevocation>[] = [];
  /** Executions whose outcome is unknown, which may be reported later; by id, base64url. */
  readonly #lost = new Map<string, { readonly principal: string; readonly totals: readonly Totals[] }>();
  /** The totals that count an approval, which the end of the ledger may show to be used; by id, base64url. */
  readonly #approved = new Map<string, readonly Totals[]>();

  /**
   * @param selection - Default: all records. An adjustment belongs to the execution that it corrects, or else to its grantee.
   * @param by - Default: no groups.
   * @param sample - What `eventIds` of the selection were drawn by.
   */
  constructor(selection: RecordSelection = {}, by?: ActivityGrouping, sample?: Sample) {
    this.#selection = selection;
    this.#sample = sample;
    this.#names = new NamesAskedFor(selection);
    // Groups have a budget of their own, so that the sums of all records do not depend on them.
    this.#totals = new Totals(startSumBudget());
    this.#groups = by === undefined ? undefined : new Groups(by);
  }

  /** Adds a record. MUST be called with every record, in order (`onRecord`). */
  take(record: VerifiedRecord): void {
    const { examined } = record;
    this.#takeOfLedger(record);
    const subject = this.#subjects.take(record);
    this.#names.take(subject);
    if (matchesSelection(subject, this.#selection)) this.#takeSelected(record, subject);
    else if (examined?.wellFormed !== true) this.#unread += 1;
  }

  /** What the report says of the whole ledger, whatever is selected. */
  #takeOfLedger(record: VerifiedRecord): void {
    const { examined, findings } = record;
    this.#ledgerPeriod = extend(this.#ledgerPeriod, examined?.occurredAt);
    if (findings.some(({ code }) => code === 'SEQ_GAP')) this.#seqGaps += 1;
    if (findings.some(({ code }) => code === 'PREV_MISMATCH')) this.#chainBreaks += 1;
    if (isFirstOfItsId(record)) this.#grants.take(record);
  }

  #takeSelected(record: VerifiedRecord, subject: SelectableEvent): void {
    const { examined, verdict, findings } = record;
    const isCounted = examined?.wellFormed === true && isFirstOfItsId(record);
    this.#period = extend(this.#period, examined?.occurredAt);
    const totals = this.#totalsOf(subject);
    for (const each of totals) {
      each.records += 1;
      each.verdicts[verdict] += 1;
      if (!isCounted) each.uncounted += 1;
    }
    this.#grants.touch(subject.grantIds);
    const signers = this.#countSigners(record);
    this.#problems.addRecord(findings);
    if (!isCounted) return;
    if (examined.eventType.startsWith('x.')) this.#evidence.take(examined.json() ?? {});
    if (examined.eventType === LATE_REPORT_TYPE && verdict !== 'invalid')
      this.#takeLateReport(examined.json() ?? {});
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
    } else if (examined.type === 'approval') {
      this.#addApproval(counted, examined.event());
    } else if (examined.type === 'revocation') {
      this.#addRevocation(counted, examined.event());
    } else {
      this.#addUnstated(counted);
    }
  }

  /** The report, when the ledger is verified to its end. */
  finish(result: VerificationResult, report: LazyReport = buildLazyReport(result)): ActivityReport {
    const { state, ending } = result;
    const keyOf = keyReader(state);
    const open = this.#addOpen(state);
    const starts = this.#addStarts(state);
    this.#addEnding(result);
    this.#addUsed(state);
    const totals = this.#totals.toJson();
    if (isWhole(this.#selection)) totals.verdicts = { ...report.counts.by_verdict };
    const { leftOut: groupAmountsLeftOut = 0, ...groups } = this.#listGroups(state);
    const { grants, total: grantsTotal, cut: grantsCut } = this.#grants.list(state, keyOf);
    const evidence = this.#evidence.list();
    const sign = <T>({
      keyids,
      ...rest
    }: T & { keyids: readonly string[] }): Omit<T, 'keyids'> & Signers => ({
      ...rest,
      signers: keyids.map(keyOf),
    });
    const draft: Omit<ActivityReport, 'limits'> = {
      activity_version: '1',
      tool: { name: 'northroot', version: VERSION },
      ledger: this.#describeLedger(result, report),
      verdict: report.verdict,
      exit_status: report.exit_status,
      trust: report.trust.mode,
      selection: this.#describeSelection(totals.records),
      principals: [...this.#principals].slice(0, MAX_LISTED),
      principals_total: this.#principals.size,
      totals,
      ...groups,
      grants,
      grants_total: grantsTotal,
      decisions: [...this.#decisions.values()].sort((a, b) => b.count - a.count),
      ...defined({ coverage: this.#coverage.toJson() }),
      signers: this.#listSigners(state, keyOf),
      unsigned: this.#unsigned,
      denied: this.#denied.map(sign),
      blocked: this.#blocked,
      open,
      starts,
      adjustments: this.#adjustments.map(sign),
      approvals: this.#approvals.map((each) => ({ ...sign(each), ...usedBy(state, each.event_id) })),
      revocations: this.#revocations.map(sign),
      ...(evidence.length === 0 ? {} : { evidence }),
      problems: this.#problems.list(),
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
        grantsBeyond: this.#grants.isCut,
        grantsCut,
        groupAmountsLeftOut,
        delegatedLeftOut: this.#grants.delegatedLeftOut,
        principalsBeyond: this.#principalsBeyond,
        evidenceBeyond: this.#evidence.beyond,
      }),
    };
  }

  /** The problems that only the end shows, and those of lines that are no records: they concern the whole ledger. */
  #addEnding({ state, ending, kept }: VerificationResult): void {
    this.#problems.settle(state);
    for (const finding of kept) {
      if (!NO_RECORD.has(finding.code)) continue;
      this.#problems.add(finding, { isOfLedger: true });
      if (!isWhole(this.#selection)) this.#unread += 1;
    }
    for (const finding of ending.findings) {
      // Noted when its record came.
      if (finding.code === 'AUTH_NOT_FOUND') continue;
      const isOfLedger = OF_LEDGER.has(finding.code);
      if (isOfLedger || this.#isSelected(finding)) this.#problems.add(finding, { isOfLedger });
    }
  }

  #listGroups(state: VerifyState): Pick<ActivityReport, 'by' | 'groups' | 'others'> & { leftOut?: number } {
    if (this.#groups === undefined) return {};
    const grantOf = (id: string): Grant | undefined => state.links.grants.get(fromDigestText(id));
    const groups = this.#groups.toJson(
      (id) => chainIds(grantOf(id)),
      (id) => grantOf(id)?.place.seq ?? Infinity,
    );
    return { by: this.#groups.by, ...groups };
  }

  #describeLedger(
    { ending }: VerificationResult,
    { ledger, checkpoints }: LazyReport,
  ): ActivityReport['ledger'] {
    return {
      paths: [...ledger.paths],
      origin: ledger.origin,
      records: ledger.records,
      bytes: ledger.bytes,
      root: ledger.root,
      checkpoints: checkpoints.count,
      sealed: ending.sealedSize,
      unsealed: ending.afterSealed,
      anchors: ending.anchors
        .filter(({ isPublished }) => !isPublished)
        .map(({ name, note, relation }) => ({ path: name, tree_size: note.checkpoint.size, relation })),
      seq_gaps: this.#seqGaps,
      chain_breaks: this.#chainBreaks,
      ...defined({ period: this.#ledgerPeriod }),
    };
  }

  #describeSelection(records: number): ActivityReport['selection'] {
    const selection = this.#selection;
    const unmatched = this.#names.list().map(({ known, ...name }) => ({ ...name, known: [...known] }));
    return {
      is_whole: isWhole(selection),
      records,
      ...defined({
        since: selection.since,
        until: selection.until,
        principal: selection.principal,
        tool: selection.tool,
        grant_event_id: selection.grantId,
        events: selection.eventIds?.size,
        sample: this.#sample && sampleOf(this.#sample),
        period: this.#period,
      }),
      ...(unmatched.length === 0 ? {} : { unmatched }),
    };
  }

  #listSigners(state: VerifyState, keyOf: (keyid: string) => ActivityKey): ActivitySigner[] {
    return state.keyring.save().flatMap(({ key: { keyid } }) => {
      const counts = this.#signers.get(keyid);
      return counts === undefined ? [] : [{ ...keyOf(keyid), ...counts }];
    });
  }

  #totalsOf(subject: SelectableEvent): readonly Totals[] {
    return this.#groups === undefined
      ? [this.#totals]
      : [this.#totals, this.#groups.totalsOf(this.#within(subject))];
  }

  /** Without the grants above the selected one. */
  #within(subject: SelectableEvent): SelectableEvent {
    const { grantId } = this.#selection;
    const index = grantId === undefined ? -1 : subject.grantIds.indexOf(grantId);
    return index === -1 ? subject : { ...subject, grantIds: subject.grantIds.slice(0, index + 1) };
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
    const { state } = record;
    const id = event.auth_event_id.b64;
    const authorization = state.links.actions.get(id) ?? state.links.grants.get(id);
    const isSpent = authorization === undefined && isUsedUp(state.events.find(id)?.kind);
    const isLinked = authorization !== undefined || isSpent;
    if (authorization?.decision === 'deny' && !codes.has('EXECUTION_UNDER_DENY')) {
      for (const { executions } of totals) executions.blocked += 1;
      pushBounded(this.#blocked, () => ({
        ...placeOf(record, event),
        tool_name: event.tool_name,
        auth_event_id: toDigestText(id),
        ...defined({ error_code: event.error_code }),
      }));
      return;
    }
    if (!isLinked && !codes.has('AUTH_NOT_AN_AUTHORIZATION')) this.#problems.wait(record, id);
    if (isSpent && !codes.has('AUTHORIZATION_REUSED') && hasFormOfRelease(event)) {
      for (const { executions } of totals) executions.released += 1;
      this.#addUnstated(counted);
      return;
    }
    this.#addRun(counted, event, !isLinked || authorization?.decision === 'deny');
  }

  #addRun(counted: Counted, event: ExecutionEvent, isUnauthorized: boolean): void {
    const { record, totals } = counted;
    if (this.#principals.size < MAX_GROUPS) this.#principals.add(event.principal_id);
    else this.#principalsBeyond ||= !this.#principals.has(event.principal_id);
    for (const { executions } of totals) {
      executions[event.outcome] += 1;
      if (isUnauthorized) executions.unauthorized += 1;
    }
    const id = record.examined?.eventId;
    const mayBeLate = event.outcome === 'unknown' && event.error_code === undefined;
    if (mayBeLate && id !== undefined && record.verdict !== 'invalid' && this.#lost.size < MAX_GROUPS)
      this.#lost.set(id, { principal: event.principal_id, totals });
    const rest: SumPart[] = [
      ...wrongness(record.verdict),
      ...(isUnauthorized ? (['unauthorized'] as const) : []),
    ];
    this.#addUnstated(counted);
    for (const [index, { unit, amount }] of event.meter_used.entries()) {
      if (!isTooFine(record, `/meter_used/${index}/amount`)) {
        this.#addAmount(counted, unit, toRational(amount), [basisOf(event, unit) ?? 'unstated', ...rest]);
      } else {
        for (const { sums } of totals) sums.leftOut += 1;
      }
    }
  }

  /** The first report of an execution by its principal counts. */
  #takeLateReport({ principal_id: principal, prev_event_id: of }: JsonObject): void {
    const id = isDigest(of) ? of.b64 : '';
    const lost = this.#lost.get(id);
    if (lost === undefined || lost.principal !== principal) return;
    this.#lost.delete(id);
    for (const each of lost.totals) each.reportedLate += 1;
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
    this.#coverage.add(event);
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

  /** As SPEC §8 rule 11 applies it: a refused adjustment counts for nothing. */
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
      ...grantOf(record, event),
      ...(execution === undefined
        ? {}
        : {
            execution_event_id: toDigestText(execution),
            ...defined({ execution_seq: corrected?.kind === 'execution' ? corrected.seq : undefined }),
          }),
      reason: event.reason,
      ...defined({ basis: event.meter_basis }),
      amounts,
      keyids: signersOf(record),
    }));
  }

  #addApproval({ record, totals }: Counted, event: ApprovalEvent): void {
    const isApproval = event.decision === 'approve';
    for (const { approvals } of totals) approvals[isApproval ? 'approved' : 'rejected'] += 1;
    if (isApproval) this.#approved.set(event.event_id.b64, totals);
    pushBounded(this.#approvals, () => ({
      ...placeOf(record, event),
      decision: event.decision,
      decision_code: event.decision_code,
      tool_name: event.tool_name,
      ...grantOf(record, event),
      keyids: signersOf(record),
    }));
  }

  #addUsed({ links }: VerifyState): void {
    for (const [id, totals] of this.#approved)
      if (links.approvals.get(id)?.usedBy !== undefined)
        for (const { approvals } of totals) approvals.used += 1;
  }

  #addRevocation({ record, totals }: Counted, event: RevocationEvent): void {
    const { effect } = event;
    const isCounted =
      record.verdict !== 'invalid' &&
      record.state.links.grants.get(event.grant_event_id.b64)?.decision === 'allow';
    const name = ({ revoke: 'revoked', suspend: 'suspended', resume: 'resumed' } as const)[effect];
    for (const { revocations } of totals) {
      revocations[name] += 1;
      if (!isCounted) revocations.refused += 1;
    }
    pushBounded(this.#revocations, () => ({
      ...placeOf(record, event),
      effect,
      ...defined({ in_flight: event.in_flight }),
      reason: event.reason,
      ...grantOf(record, event),
      counted: isCounted,
      keyids: signersOf(record),
    }));
  }

  /** Actions that are allowed and not executed at the end of the ledger. */
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
        ...defined({ grant_event_id: action.grant?.place.eventId }),
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

  /** Whether a finding is of a selected record; where all are selected, also of none. */
  #isSelected({ context, eventId }: Finding): boolean {
    const { occurredAt, principalId, toolName, grantIds = [] } = context;
    const id = eventId === undefined ? undefined : fromDigestText(eventId);
    return matchesSelection({ occurredAt, principalId, toolName, eventId: id, grantIds }, this.#selection);
  }
}

/** Whose own key it is: that of the one principal that it signs for. An authority's principals are those it may grant to. */
function ownerOf({ roles, principals }: Key): string | undefined {
  const [only, other] = principals;
  if (only === undefined || other !== undefined || !isPrincipalId(only) || only.endsWith('*'))
    return undefined;
  return roles.includes('event') && !roles.includes('authority') ? only : undefined;
}

function keyReader(state: VerifyState): (keyid: string) => ActivityKey {
  const pinned = new Set(state.policy?.keys.map(({ keyid }) => keyid));
  return (keyid) => {
    const key = state.keyring.find(keyid)?.key;
    return {
      keyid,
      ...defined({ name: key?.name, owner: key && ownerOf(key) }),
      pinned: pinned.has(keyid),
    };
  };
}

function subjectOfAction({ place, occurredAt, principalId, toolName, grant }: Action): SelectableEvent {
  const eventId = fromDigestText(place.eventId);
  return { occurredAt, principalId, toolName, eventId, grantIds: chainIds(grant) };
}

function placeOf(
  { examined, ordinal }: VerifiedRecord,
  event: AuthorizationEvent | ExecutionEvent | AdjustmentEvent | ApprovalEvent | RevocationEvent,
): { seq: number; event_id: string; occurred_at: string; principal_id: string } {
  return {
    seq: examined?.seq ?? ordinal,
    event_id: toDigestText(event.event_id.b64),
    occurred_at: event.occurred_at,
    principal_id: event.principal_id,
  };
}

function grantOf(
  { state }: VerifiedRecord,
  { grant_event_id: id }: Pick<AdjustmentEvent, 'grant_event_id'>,
): { grant_event_id: string; grant_seq?: number } {
  return {
    grant_event_id: toDigestText(id.b64),
    ...defined({ grant_seq: state.links.grants.get(id.b64)?.place.seq }),
  };
}

function usedBy(
  { links, events }: VerifyState,
  approvalId: string,
): { used_by?: string; used_by_seq?: number } {
  const action = links.approvals.get(fromDigestText(approvalId))?.usedBy;
  return defined({
    used_by: action,
    used_by_seq: action === undefined ? undefined : events.find(fromDigestText(action))?.seq,
  });
}

function sampleOf({ treeSize, root, nonce, of, executions }: Sample): ActivitySample {
  const list = executions.map(({ seq, eventId }) => ({ seq, event_id: eventId }));
  return { tree_size: treeSize, root, ...defined({ nonce }), of, executions: list };
}

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
