/**
 * What is reported of a call after it was settled as unknown, by whichever process. An action has one execution (SPEC §8 rule 2), so that
 * the report is an event of its own, and what was used beyond what was charged is a debit. Nothing is given back: nobody refunds itself
 * (rule 11).
 */

import { NorthrootError } from '../base/error.js';
import { fromDigestText, parseDigest, toDigestText } from '../base/value/digest.js';
import type { AmountsByUnit, MeterVector } from '../base/value/meter.js';
import { formatQuantity, toRational } from '../base/value/quantity.js';
import { compareRationals, subtractRationals, ZERO } from '../base/value/rational.js';
import type { LiveLedger } from '../log/agent/live-ledger.js';
import { toMeters } from '../log/policy/approve.js';
import { draftAdjustment } from '../log/policy/draft-adjustment.js';
import { draftExecution, type ExecutionOutcome } from '../log/policy/record.js';
import type { Appended, Entry } from '../log/writer/ledger.js';
import type { AskOptions } from '../log/writer/withdrawal.js';
import { sumQuantity } from '../rules/bounds/balance.js';
import { digestReport, LATE_REPORT_REASON, LATE_REPORT_TYPE } from '../rules/verify/late-reports.js';
import type { LostCall } from '../rules/verify/lost-calls.js';
import type { VerifyState } from '../rules/verify/state.js';

/** A call that was settled as unknown, as its execution is drafted from it. */
export interface LateCall {
  readonly tool: string;
  readonly since: string;
  readonly reserved: MeterVector;
}

export interface LateOutcome {
  readonly outcome: ExecutionOutcome;
  /** Of what it ran with. Default: what was authorized. */
  readonly paramsDigest?: string | undefined;
}

/**
 * Records a report that came late: as its own event, shaped as an execution, that follows the settlement, and its debit in the same write.
 * The same report again records nothing, but the debit where a crash has cut it off.
 * @param authorization - `sha-256:…`
 * @param describe - Called with the call, within the decision
 * @returns What was appended; undefined where all of it was known
 * @throws NorthrootError `REQUEST_CONFLICT` where something else was reported of it; what `describe` throws; as `Ledger.decide`
 */
export async function recordLate(
  ledger: LiveLedger,
  authorization: string,
  describe: (call: LateCall) => LateOutcome,
  options: AskOptions,
): Promise<Appended | undefined> {
  let debit: object | undefined;
  const makes = (state: VerifyState): Entry => {
    const call = state.links.lost.get(fromDigestText(authorization));
    if (call === undefined) throw new NothingNew();
    const reserved = toMeters(call.reservation);
    const { outcome, paramsDigest } = describe({ tool: call.toolName, since: call.startedAt, reserved });
    const report = draftReport(authorization, call, outcome, paramsDigest);
    debit = draftDebit(state, authorization, call, outcome);
    if (call.reported === undefined) return { event: report };
    if (call.reported !== digestReport(report)) throw conflict(authorization, call);
    if (debit === undefined || call.isDebited) throw new NothingNew();
    const event = debit;
    debit = undefined;
    return { event };
  };
  const after = (): Entry[] => (debit === undefined ? [] : [{ event: debit }]);
  try {
    const { followers, refusal, ...recorded } = await ledger.use((own) =>
      own.decide(makes, { ...options, after }),
    );
    void followers;
    // The report stands; who reports again makes up for the debit.
    if (refusal !== undefined) throw refusal as Error;
    return recorded;
  } catch (error) {
    if (error instanceof NothingNew) return undefined;
    throw error;
  }
}

/** Ends a decision that records nothing. */
class NothingNew extends Error {}

function draftReport(
  authorization: string,
  { principalId, toolName, intent, params, settlement }: LostCall,
  outcome: ExecutionOutcome,
  paramsDigest = params,
): object {
  const permission = {
    ...({ kind: 'action', authorizationId: authorization, principalId, toolName } as const),
    intentDigest: parseDigest(intent),
    paramsDigest: parseDigest(paramsDigest),
    reserved: [],
    startId: toDigestText(settlement),
    started: undefined,
  };
  return { ...draftExecution(permission, outcome), event_type: LATE_REPORT_TYPE };
}

/** Undefined where nothing was used beyond what was charged. */
function draftDebit(
  { events, links: { grants } }: VerifyState,
  authorization: string,
  call: LostCall,
  { meterUsed, meterBasis = 'reported' }: ExecutionOutcome,
): object | undefined {
  const grant = grants.at(events.find(fromDigestText(authorization))?.grant ?? -1);
  if (grant === undefined) return undefined;
  const debit: AmountsByUnit = Object.fromEntries(
    meterUsed.flatMap(({ unit, amount }) => {
      const [all, charged] = [toRational(amount), call.used.get(unit) ?? call.reservation.get(unit) ?? ZERO];
      if (!grant.accounts.has(unit) || compareRationals(all, charged) <= 0) return [];
      return [[unit, formatQuantity(sumQuantity(subtractRationals(all, charged)))]];
    }),
  );
  if (Object.keys(debit).length === 0) return undefined;
  const drafted = draftAdjustment({
    grantId: grant.place.eventId,
    debit,
    reason: LATE_REPORT_REASON,
    executionId: toDigestText(call.settlement),
    principalId: call.principalId,
    meterBasis,
  });
  return { ...drafted, prev_event_id: parseDigest(authorization) };
}

function conflict(authorization: string, { settlement }: LostCall): NorthrootError {
  return new NorthrootError(
    'REQUEST_CONFLICT',
    `something else was reported of ${authorization}, which ${toDigestText(settlement)} settled as unknown`,
    { hint: 'the first report stands' },
  );
}
