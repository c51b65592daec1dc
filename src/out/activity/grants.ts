/** The grants of an activity report: what their records say, and what was used under those delegated from them. */

import { defined } from '../../base/defined.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { formatExactly } from '../../base/value/format-rational.js';
import { toRational } from '../../base/value/quantity.js';
import {
  addRationals,
  exceedsDenominatorLimit,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import type {
  ActivityApprovalRule,
  ActivityGrant,
  ActivityKey,
  ApprovalRule,
} from '../../format/schema/generated/types.js';
import { countedAmounts, countedUse, unstatedUse } from '../../log/read/counted.js';
import { balancesOf } from '../../rules/bounds/balance.js';
import type { Grant } from '../../rules/bounds/grant.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { MAX_GROUPS } from './groups.js';

/** Characters of the amounts and rules of approval of the grants that are listed; one grant may exceed it. */
const MAX_GRANT_CHARACTERS = 64 * 1024 * 1024;
const MAX_PATTERNS = 16;

/** What a grant's own record says beyond what verification remembers of it. */
interface GrantWords {
  readonly policyId: string;
  readonly decisionCode: string;
  readonly tools: readonly string[];
  readonly toolsTotal: number;
  readonly approvals: readonly ActivityApprovalRule[];
  readonly verdict: 'ok' | 'violation' | 'invalid';
}

export class GrantList {
  readonly #touched = new Set<string>();
  readonly #words = new Map<string, GrantWords>();
  /** Of each grant, by unit, what was used under those delegated from it. */
  readonly #delegated = new Map<string, Map<string, Rational>>();
  /** Whether there were more than {@link MAX_GROUPS}. */
  isCut = false;
  /** Amounts that no sum of delegated use has. */
  delegatedLeftOut = 0;

  /** Adds a record that is the first of its id, selected or not. */
  take(record: VerifiedRecord): void {
    this.#noteGrant(record);
    this.#noteDelegated(record);
  }

  /** Marks the grants that a selected record is under. */
  touch(grantIds: readonly string[]): void {
    for (const id of grantIds) {
      if (this.#touched.has(id)) continue;
      if (this.#touched.size < MAX_GROUPS) this.#touched.add(id);
      else this.isCut = true;
    }
  }

  /** The grants of selected records in ledger order, up to {@link MAX_GRANT_CHARACTERS}; `cut` counts the others. */
  list(
    state: VerifyState,
    keyOf: (keyid: string) => ActivityKey,
  ): { readonly grants: ActivityGrant[]; readonly total: number; readonly cut: number } {
    const touched = [...state.links.grants.values()].filter(
      ({ decision, place }) => decision === 'allow' && this.#touched.has(place.eventId),
    );
    const grants: ActivityGrant[] = [];
    let characters = 0;
    let cut = 0;
    for (const grant of touched) {
      const words = this.#words.get(grant.place.eventId);
      if (words === undefined) continue;
      if (characters > MAX_GRANT_CHARACTERS) {
        cut += 1;
        continue;
      }
      const listed = this.#toJson(grant, words, keyOf);
      for (const meter of [...listed.meters, ...listed.action_caps])
        for (const text of Object.values(meter) as string[]) characters += text.length;
      for (const rule of words.approvals) characters += lengthOf(rule);
      grants.push(listed);
    }
    return { grants, total: touched.length, cut };
  }

  #toJson(grant: Grant, words: GrantWords, keyOf: (keyid: string) => ActivityKey): ActivityGrant {
    const { eventId, seq } = grant.place;
    const delegated = this.#delegated.get(eventId);
    return {
      seq,
      event_id: eventId,
      occurred_at: grant.occurredAt,
      principal_id: grant.principalId,
      ...defined({
        parent_event_id: grant.parent?.place.eventId,
        not_before: grant.notBefore,
        expires_at: grant.expiresAt,
      }),
      allowed_tools: [...words.tools],
      allowed_tools_total: words.toolsTotal,
      policy_id: words.policyId,
      decision_code: words.decisionCode,
      verdict: words.verdict,
      signers: grant.signers.map(keyOf),
      executions: grant.executions,
      action_caps: [...grant.actionCaps].map(([unit, amount]) => ({ unit, amount: formatExactly(amount) })),
      ...(words.approvals.length === 0 ? {} : { approvals: [...words.approvals] }),
      meters: balancesOf(grant).map(({ unit, cap, used, estimated, reserved, left }) => ({
        unit,
        cap: formatExactly(toRational(cap)),
        used: formatExactly(toRational(used)),
        ...(estimated === undefined ? {} : { estimated: formatExactly(toRational(estimated)) }),
        ...delegatedOf(delegated?.get(unit)),
        reserved: formatExactly(toRational(reserved)),
        left: formatExactly(toRational(left)),
      })),
    };
  }

  /** Keeps the policy and the code of a grant: verification does not. */
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
      approvals: (authorization.bounds?.approvals ?? []).map(toRule),
      verdict: verdict === 'denied' ? 'ok' : verdict,
    });
  }

  /** Adds the use of a record to the grants above its own, as the accounts do. */
  #noteDelegated(record: VerifiedRecord): void {
    const { examined, grantIds } = record;
    if (grantIds.length < 2 || examined?.wellFormed !== true) return;
    const add = (unit: string, amount: Rational): void => this.#addDelegated(record, unit, amount);
    for (const { unit, amount } of unstatedUse(record)) add(unit, amount);
    if (examined.type === 'execution') {
      const event = examined.event();
      const counted = countedUse(record, event);
      for (const [i, { unit, amount }] of event.meter_used.entries())
        if (counted[i] === true) add(unit, toRational(amount));
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

  #addDelegated({ grantIds, state }: VerifiedRecord, unit: string, amount: Rational): void {
    for (const id of grantIds.slice(1)) {
      if (state.links.grants.get(fromDigestText(id))?.accounts.has(unit) !== true) continue;
      let units = this.#delegated.get(id);
      if (units === undefined) this.#delegated.set(id, (units = new Map<string, Rational>()));
      const sum = addRationals(units.get(unit) ?? ZERO, amount);
      if (exceedsDenominatorLimit(sum)) this.delegatedLeftOut += 1;
      else units.set(unit, sum);
    }
  }
}

function delegatedOf(amount: Rational | undefined): { delegated?: string } {
  return amount === undefined || amount.n === 0n ? {} : { delegated: formatExactly(amount) };
}

function toRule({ tools, approvers, above, count = 1, max_age_s: age }: ApprovalRule): ActivityApprovalRule {
  return {
    tools: tools.slice(0, MAX_PATTERNS),
    tools_total: tools.length,
    approvers: [...approvers],
    ...(above && {
      above: above.map(({ unit, amount }) => ({ unit, amount: formatExactly(toRational(amount)) })),
    }),
    count,
    ...defined({ max_age_s: age }),
  };
}

function lengthOf({ tools, approvers, above = [] }: ActivityApprovalRule): number {
  const texts = [...tools, ...approvers, ...above.flatMap(({ unit, amount }) => [unit, amount])];
  return texts.reduce((all, text) => all + text.length, 0);
}
