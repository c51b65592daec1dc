/** The audit ledger of 2026.9 and its decision receipts: metadata without parameters, exported newest first. */

import { addTo, amountOf, listAt, numberAt, textAt, timeOf } from '../shared/values.js';
import type { SourceObject } from '../../base/json/source-json.js';
import type { Check } from '../../format/schema/generated/types.js';
import type { ActionClaim, ExecutionClaim } from '../shared/host.js';
import { codeOf, principalOf } from '../shared/names.js';
import type { Call, Calls } from './calls.js';
import { type ClaimBase, type Context, factsOf, hexOf, SYSTEM } from './context.js';
import type { Entry } from './entries.js';
import { isSame } from './same.js';
import { callMeters, ONE_CALL } from '../shared/usage.js';

const SEQUENCE = /^[1-9]\d{0,14}$/;
const FINGERPRINT = /^sha256:[0-9a-f]{64}$/;

interface AuditRow {
  readonly entry: Entry;
  readonly base: ClaimBase;
  readonly sequence: number;
  /** `RUN/FINGERPRINT` of a tool's, `RUN` of a run's. */
  readonly key: string;
  readonly runId: string | undefined;
  readonly callId: string | undefined;
}

/** All audit records and receipts of one reading. */
export class Audit {
  readonly #context: Context;
  readonly #calls: Calls;
  readonly #rows = new Map<number, AuditRow>();
  /** Receipts that may authorize a call, by its id or its fingerprint. */
  readonly #decisions = new Map<string, string>();
  #hasMessages = false;

  constructor(context: Context, calls: Calls) {
    this.#context = context;
    this.#calls = calls;
  }

  /** A recording has the messages: audit records of them say no more. */
  messagesAreRecorded(): void {
    this.#hasMessages = true;
  }

  read(entry: Entry): void {
    const { value, at } = entry;
    const context = this.#context;
    const sequenceText = numberAt(value, 'sequence') ?? '';
    const base = context.base(entry, timeOf(numberAt(value, 'occurredAt'), 'ms'), principalOfRow(value));
    if (base === undefined) return;
    const sequence = SEQUENCE.test(sequenceText) ? Number(sequenceText) : 0;
    const known = this.#rows.get(sequence);
    if (known !== undefined && isSame(known.entry.value, value)) {
      context.fate(entry, 'repeated', 'SAME_RECORD');
      return;
    }
    if (sequence === 0 || known !== undefined) {
      context.find(sequence === 0 ? 'SEQUENCE_INVALID' : 'SEQUENCE_CONFLICT', at, {
        about: textAt(value, 'eventId'),
        actual: sequenceText,
        ...(known === undefined ? {} : { related: [known.entry.at] }),
      });
      context.evidence(entry, base, `audit:~${hexOf(entry.bytes).slice(0, 32)}`, 'audit', factsOfRow(value));
      return;
    }
    const runId = textAt(value, 'runId');
    const callId = textAt(value, 'toolCallId');
    if (callId !== undefined && !FINGERPRINT.test(callId))
      context.find('FINGERPRINT_INVALID', at, { about: callId });
    const key = [textAt(value, 'sessionId') ?? runId ?? '~', ...(callId === undefined ? [] : [callId])].join(
      '/',
    );
    this.#rows.set(sequence, { entry, base, sequence, key, runId, callId });
  }

  /** What somebody decided. Only what was enforced is a decision. */
  receipt(entry: Entry): void {
    const { value } = entry;
    const context = this.#context;
    const base = context.base(
      entry,
      timeOf(numberAt(value, 'occurredAt'), 'ms'),
      principalOf('service', SYSTEM),
    );
    if (base === undefined) return;
    const outcome = textAt(value, 'decision', 'outcome');
    const coverage = textAt(value, 'enforcement', 'coverageState') ?? 'unknown';
    const reason = textAt(value, 'decision', 'reasonCode') ?? 'unknown';
    const receiptId = textAt(value, 'receiptId') ?? textAt(value, 'selectorId');
    const id = `receipt:${receiptId ?? `~${hexOf(entry.bytes).slice(0, 32)}`}`;
    const missing = listAt(value, 'missingEvidence') ?? [];
    const isUnverified = textAt(value, 'provenance', 'state') === 'unverified';
    const isDecision =
      coverage === 'enforced' &&
      missing.length === 0 &&
      !isUnverified &&
      (outcome === 'allowed' || outcome === 'denied');
    if (!isDecision) {
      const facts = factsOf({
        ...{ run: textAt(value, 'runId'), family: textAt(value, 'action', 'family') },
        ...{ operation: textAt(value, 'action', 'operation'), outcome, coverage, reason },
        provenance: textAt(value, 'provenance', 'state'),
      });
      if (outcome === 'allowed' || outcome === 'denied')
        context.find('DECISION_NOT_ENFORCED', entry.at, {
          about: receiptId,
          actual: [
            coverage,
            ...(isUnverified ? ['unverified'] : []),
            ...(missing.length > 0 ? ['evidence missing'] : []),
          ].join(', '),
        });
      context.evidence(entry, base, id, 'decision_receipt', facts);
      return;
    }
    const unique = context.uniqueId(id);
    if (unique !== id) {
      context.find('RECEIPT_REPEATED', entry.at, { about: receiptId });
      context.fate(entry, 'repeated', 'SAME_RECEIPT');
      return;
    }
    const checks: readonly Check[] = [{ check: 'openclaw.coverage', result: 'pass', code: 'ENFORCED' }];
    const claim: ActionClaim = {
      ...base,
      kind: 'action',
      id,
      tool:
        textAt(value, 'action', 'resourceRef') ??
        `openclaw.${textAt(value, 'action', 'family') ?? ''}.${textAt(value, 'action', 'operation') ?? ''}`,
      decision: outcome === 'allowed' ? 'allow' : 'deny',
      decisionCode: codeOf(`OPENCLAW_${reason}`),
      checks: outcome === 'allowed' ? checks : [],
      ...policyOf(value),
    };
    context.builder.claim(claim);
    const actionId = textAt(value, 'actionId');
    if (actionId !== undefined) this.#decisions.set(`${textAt(value, 'runId') ?? '~'}/${actionId}`, id);
    context.fate(entry, 'mapped');
  }

  /** Maps the records, oldest first, once all of them and all hooks are known. */
  finish(): void {
    const rows = [...this.#rows.values()].sort((a, b) => a.sequence - b.sequence);
    this.#checkGaps(rows);
    const hooked = this.#hooked();
    const started = new Map<string, AuditRow[]>();
    const joined = new Set<Call>();
    const runs = new Set<string>();
    for (const row of rows) {
      const { value } = row.entry;
      const kind = textAt(value, 'kind');
      const action = textAt(value, 'action') ?? '';
      if (kind === 'tool_action' && row.runId !== undefined) runs.add(row.runId);
      const startKey = `${kind ?? ''}\n${row.key}`;
      if (action.endsWith('.started')) {
        addTo(started, startKey, row);
        this.#evidence(row);
        continue;
      }
      if (action.endsWith('.finished') && (kind === 'tool_action' || kind === 'agent_run')) {
        const start = started.get(startKey)?.shift();
        if (start === undefined && textAt(value, 'status') !== 'blocked')
          this.#startMissing(row, rows[0]!.sequence);
        if (kind === 'tool_action') {
          const call =
            row.callId === undefined ? undefined : hooked.get(`${row.runId ?? ''}\n${row.callId}`)?.shift();
          if (call !== undefined) joined.add(call);
          this.#tool(row, call, runs);
          continue;
        }
      }
      if (action === 'message.outbound.finished') this.#message(row);
      else this.#evidence(row);
    }
    this.#checkJoin(runs, joined);
  }

  #checkGaps(rows: readonly AuditRow[]): void {
    let last: AuditRow | undefined;
    for (const row of rows) {
      if (last !== undefined && row.sequence !== last.sequence + 1)
        this.#context.find('AUDIT_INCOMPLETE', row.entry.at, {
          expected: `${last.sequence + 1}`,
          actual: `${row.sequence}; rows may have been filtered out, pruned or dropped`,
          related: [last.entry.at],
        });
      last = row;
    }
  }

  #startMissing({ entry, key }: AuditRow, first: number): void {
    const isCut = first > 1;
    this.#context.find('START_MISSING', entry.at, {
      about: key,
      actual: isCut ? `none from ${first} on` : 'none',
    });
  }

  /** Calls of hooks by run and fingerprint, in order. */
  #hooked(): Map<string, Call[]> {
    const hooked = new Map<string, Call[]>();
    for (const call of this.#calls.all) {
      if (call.callId === undefined || call.runId === undefined) continue;
      const key = `${call.runId}\nsha256:${hexOf(call.callId)}`;
      addTo(hooked, key, call);
    }
    return hooked;
  }

  #tool(row: AuditRow, call: Call | undefined, runs: ReadonlySet<string>): void {
    const context = this.#context;
    const { entry, base, key, runId, callId } = row;
    const status = textAt(entry.value, 'status') ?? 'unknown';
    if (call !== undefined) {
      this.#compare(row, call, status);
      context.fate(entry, 'repeated', 'SAME_CALL');
      return;
    }
    if (runId !== undefined && runs.has(runId) && this.#recordedRuns().has(runId))
      context.find('CALL_NOT_IN_HOOKS', entry.at, { about: key });
    const tool = textAt(entry.value, 'toolName') ?? '';
    const id = context.uniqueId(`audit-call:${key}`).slice('audit-call:'.length);
    if (status === 'blocked') {
      const decisionCode = codeOf(`OPENCLAW_${textAt(entry.value, 'errorCode') ?? 'tool_blocked'}`);
      context.builder.claim({
        ...base,
        kind: 'action',
        id: `audit-blocked:${id}`,
        tool,
        decision: 'deny',
        decisionCode,
      });
      context.fate(entry, 'mapped');
      this.#observe(row, tool, 'deny', undefined);
      return;
    }
    const authorization = callId === undefined ? undefined : this.#decisions.get(`${runId ?? '~'}/${callId}`);
    if (authorization === undefined)
      context.find('DECISION_NOT_RECORDED', entry.at, {
        about: id,
        expected: 'an enforced decision of this call',
        actual: 'none; audit records are metadata only',
      });
    const { outcome, errorCode } = outcomeOf(status, textAt(entry.value, 'errorCode'));
    context.builder.claim({
      ...base,
      kind: 'execution',
      id: `audit-run:${id}`,
      authorization,
      tool,
      endedAt: base.occurredAt,
      meters: [ONE_CALL],
      outcome,
      errorCode,
    });
    context.fate(entry, 'mapped');
    this.#observe(row, tool, undefined, outcome);
  }

  #observe(
    row: AuditRow,
    tool: string,
    decision: 'deny' | undefined,
    outcome: ExecutionClaim['outcome'] | undefined,
  ): void {
    const { entry, base, key, callId } = row;
    const callIds = callId === undefined ? [key] : [callId, key];
    const meters = outcome === undefined ? [] : [ONE_CALL];
    this.#context.builder.observe({
      at: entry.at,
      callIds,
      tool,
      decision,
      outcome,
      meters,
      occurredAt: base.occurredAt,
    });
  }

  /** OC-12: what hooks and audit say of one call. */
  #compare({ entry, key }: AuditRow, call: Call, status: string): void {
    if (call.end === undefined) return;
    const ran = status !== 'blocked';
    const failed = ['failed', 'cancelled', 'timed_out'].includes(status);
    const agrees = call.end.ran
      ? ran &&
        (!failed || call.end.isError || call.end.outcome !== 'success') &&
        (status !== 'succeeded' || !call.end.isError)
      : !ran || status === 'failed' || status === 'unknown';
    if (agrees) return;
    this.#context.find('RESULTS_DISAGREE', entry.at, {
      about: key,
      expected: call.end.ran ? `an end with ${call.end.isError ? 'an' : 'no'} error` : 'blocked',
      actual: status,
      related: [call.end.at],
    });
  }

  #checkJoin(runs: ReadonlySet<string>, joined: ReadonlySet<Call>): void {
    for (const call of this.#calls.all) {
      if (call.runId === undefined || !runs.has(call.runId) || call.callId === undefined || joined.has(call))
        continue;
      this.#context.find('CALL_NOT_IN_AUDIT', call.at, {
        about: call.key,
        expected: `a finished record of sha256:${hexOf(call.callId)}`,
      });
    }
  }

  #recorded: ReadonlySet<string> | undefined;

  #recordedRuns(): ReadonlySet<string> {
    this.#recorded ??= new Set(this.#calls.all.flatMap(({ runId }) => (runId === undefined ? [] : [runId])));
    return this.#recorded;
  }

  #message(row: AuditRow): void {
    const { entry, base } = row;
    const status = textAt(entry.value, 'status') ?? 'unknown';
    if (this.#hasMessages || status === 'blocked') {
      this.#evidence(row);
      return;
    }
    const { outcome, errorCode } = outcomeOf(status, textAt(entry.value, 'errorCode'));
    this.#context.builder.claim({
      ...base,
      kind: 'execution',
      id: `send:${textAt(entry.value, 'eventId') ?? `~${row.sequence}`}`,
      tool: 'openclaw.message.send',
      endedAt: base.occurredAt,
      meters: callMeters(amountOf(numberAt(entry.value, 'durationMs'))),
      outcome,
      errorCode,
    });
    this.#context.fate(entry, 'mapped');
  }

  #evidence({ entry, base, sequence }: AuditRow): void {
    const id = textAt(entry.value, 'eventId') ?? `~${sequence}`;
    this.#context.evidence(entry, base, `audit:${id}`, 'audit', factsOfRow(entry.value));
  }
}

function outcomeOf(
  status: string,
  errorCode: string | undefined,
): Pick<ExecutionClaim, 'outcome' | 'errorCode'> {
  if (status === 'succeeded') return { outcome: 'success' };
  if (['failed', 'cancelled', 'timed_out'].includes(status))
    return { outcome: 'failure', errorCode: codeOf(errorCode ?? status) };
  return { outcome: 'unknown' };
}

function principalOfRow(value: SourceObject): string {
  const agent = textAt(value, 'agentId');
  // `unknown` is what the host writes where it does not know.
  if (agent === undefined || (agent === 'unknown' && textAt(value, 'actor', 'type') !== 'agent'))
    return principalOf('service', SYSTEM);
  return principalOf('agent', SYSTEM, agent);
}

function policyOf(value: SourceObject): Pick<ActionClaim, 'policyId'> {
  const [first] = listAt(value, 'enforcement', 'policyRefs') ?? [];
  return typeof first === 'string' && first !== '' && first.length <= 256 ? { policyId: first } : {};
}

function factsOfRow(value: SourceObject): ReturnType<typeof factsOf> {
  return factsOf({
    ...{ run: textAt(value, 'runId'), session: textAt(value, 'sessionId'), action: textAt(value, 'action') },
    ...{
      status: textAt(value, 'status'),
      error: textAt(value, 'errorCode'),
      tool: textAt(value, 'toolName'),
    },
    ...{
      call: textAt(value, 'toolCallId'),
      sequence: numberAt(value, 'sequence'),
      channel: textAt(value, 'channel'),
    },
  });
}
