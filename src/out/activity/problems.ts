/** The problems of an activity report: each code, how many records have it, and the first of them. */

import { defined } from '../../base/defined.js';
import { toDigestText } from '../../base/value/digest.js';
import { isPrincipalId } from '../../base/value/principal.js';
import { isToolName } from '../../base/value/tool.js';
import type { FindingCode } from '../../format/finding/catalog.js';
import type { Finding } from '../../format/finding/finding.js';
import { describeFinding } from '../../format/finding/words.js';
import type { ActivityProblem } from '../../format/schema/generated/types.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { MAX_GROUPS } from './groups.js';
import { MAX_LISTED } from './limits.js';

/** The most places that are listed of one code. */
const MAX_LISTED_PER_CODE = 10;

export class Problems {
  readonly #byCode = new Map<string, ActivityProblem>();
  #listed = 0;
  /** Executions whose authorization has not come, by the id that they name. */
  readonly #waiting = new Map<string, { readonly finding: Finding; records: number }>();

  /** Adds the findings of a record; each code counts once. */
  addRecord(findings: readonly Finding[]): void {
    const seen = new Set<string>();
    for (const finding of findings) {
      if (seen.has(finding.code)) continue;
      seen.add(finding.code);
      this.add(finding);
    }
  }

  add(finding: Finding, { records = 1, isOfLedger = false } = {}): void {
    if (finding.class === 'none') return;
    const { code, at, seq, eventId, context } = finding;
    let problem = this.#byCode.get(code);
    if (problem === undefined) {
      problem = { code, class: finding.class, records: 0, first: [] };
      this.#byCode.set(code, problem);
    }
    if (isOfLedger) problem.of_ledger = true;
    problem.records += records;
    if (problem.first.length >= MAX_LISTED_PER_CODE || this.#listed >= MAX_LISTED) return;
    this.#listed += 1;
    const { principalId, toolName } = context;
    problem.first.push({
      file: at.file,
      line: at.line,
      ...defined({ seq, event_id: eventId }),
      ...(principalId !== undefined && isPrincipalId(principalId) ? { principal_id: principalId } : {}),
      ...(toolName !== undefined && isToolName(toolName) ? { tool_name: toolName } : {}),
      ...defined({ over: excessOf(finding) }),
      message: describeFinding(finding),
    });
  }

  /** Notes an execution that names an authorization which has not come yet: only the end shows whether it comes. */
  wait(record: VerifiedRecord, id: string): void {
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
        ...defined({ principalId: examined?.principalId, toolName: examined?.toolName }),
      },
    };
    // Of further ids none is looked up again.
    const key = this.#waiting.has(id) || this.#waiting.size < MAX_GROUPS ? id : '';
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, { finding, records: 1 });
    else waiting.records += 1;
  }

  /** Adds the executions that waited, when the ledger has ended. */
  settle(state: VerifyState): void {
    for (const [id, { finding, records }] of this.#waiting) {
      const kind = state.events.find(id)?.kind;
      const isElse = kind === 'other' || kind === 'execution';
      const late: FindingCode = isElse ? 'AUTH_NOT_AN_AUTHORIZATION' : 'AUTH_AFTER_EXECUTION';
      this.add(kind === undefined ? finding : { ...finding, code: late }, { records });
    }
  }

  /** Invalid first, then the most frequent. */
  list(): ActivityProblem[] {
    const rank = { invalid: 0, violation: 1 };
    return [...this.#byCode.values()].sort((a, b) => rank[a.class] - rank[b.class] || b.records - a.records);
  }
}

type Excess = NonNullable<ActivityProblem['first'][number]['over']>;

/** Parses the words of the bounds rules: `usd at most 0.5 …`, `…: 0.05 over`. */
function excessOf({ expected = '', actual = '', related }: Finding): Excess | undefined {
  const [, unit] = /^(\S+) at most /.exec(expected) ?? [];
  const [, amount] = /(\S+) over$/.exec(actual) ?? [];
  if (unit === undefined || amount === undefined) return undefined;
  return { unit, amount, ...defined({ grant_event_id: related?.[0]?.eventId }) };
}
