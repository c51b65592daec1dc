/** What adapters report: envelopes, and the five types of payloads in them. */

import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { Meter } from '../../base/value/meter.js';
import { STABLE_FORM, stableHash } from '../shared/forms/stable.js';
import { findingOf } from '../shared/findings.js';
import type { ForeignDigest, HostPlace } from '../shared/host.js';
import { codeOf, wellFormed } from '../shared/names.js';
import { amountOf, numberAt, objectAt, textAt, timeOfText, valueAt } from '../shared/values.js';
import { adapterPrincipal, amountFact, type Desk, type Facts, mark } from './desk.js';
import { checkEnvelope, type EnvelopeCheck } from './envelope.js';
import type { TelemetryKey } from './keys.js';
import type { Part } from './parts.js';
import { EXECUTION_TOOL, isNotBefore } from './scope.js';
import { claimId, type ClasperState, type Decided, firstText, type Ids, KEPT, keyOf } from './state.js';
import type { TokenClaims } from './tokens.js';
import type { TraceReader } from './trace.js';
import { exceeds, shownAmount } from '../shared/usage.js';

interface Reported {
  /** `cost`; undefined where neither the endpoint nor the envelope says one. */
  readonly type: string | undefined;
  /** What was sent: an envelope, or a payload without one. */
  readonly body: SourceObject;
  readonly isEnvelope: boolean;
  /** False where the host refused it. */
  readonly accepted: boolean;
  /** The host's answer: `ok`, `duplicate`; its code where it refused. */
  readonly answer?: string | undefined;
  readonly status?: string | undefined;
  readonly token?: TokenClaims | undefined;
}

interface Report {
  readonly part: Part;
  readonly type: string;
  readonly payload: SourceObject;
  readonly ids: Ids;
  readonly issuedAt: string | undefined;
  readonly digests: readonly ForeignDigest[];
  readonly itemType: string;
}

const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  trace: ['trace'],
  audit: ['event_type'],
  cost: ['cost_usd'],
  metrics: ['step_count', 'duration_ms'],
  violations: ['violation_type'],
};

export class TelemetryReader {
  readonly #desk: Desk;
  readonly #state: ClasperState;
  readonly #traces: TraceReader;
  readonly #pinned: readonly TelemetryKey[] | undefined;

  /** @param pinned The only keys that count, where there are some. */
  constructor(
    desk: Desk,
    state: ClasperState,
    traces: TraceReader,
    pinned: readonly TelemetryKey[] | undefined,
  ) {
    this.#desk = desk;
    this.#state = state;
    this.#traces = traces;
    this.#pinned = pinned;
  }

  read(part: Part, reported: Reported): void {
    const { body, isEnvelope, accepted, token } = reported;
    const payload = isEnvelope ? objectAt(body, 'payload') : body;
    const ids = idsOf(body, payload, token);
    const check = isEnvelope ? this.#check(part.at, body, ids, reported) : undefined;
    this.#ids(part.at, payload, ids, reported, check);
    const type = reported.type ?? textAt(body, 'payload_type');
    const issuedAt = isEnvelope ? timeOfText(textAt(body, 'issued_at')) : undefined;
    if (!accepted) {
      this.#refused(part, type, ids, reported);
      return;
    }
    if (!isEnvelope) this.#desk.find('TELEMETRY_UNSIGNED', part.at, { about: ids.executionId });
    const required = REQUIRED[type ?? ''];
    const missing = required?.find((name) => (valueAt(payload, name) ?? null) === null);
    if (payload === undefined || required === undefined || missing !== undefined || ids.executionId === '') {
      this.#desk.find('MEMBER_MISSING', part.at, {
        about: ids.executionId,
        expected: required === undefined ? 'a type of telemetry' : (missing ?? 'execution_id'),
        actual: required === undefined ? (type ?? 'none') : 'none',
      });
      this.#desk.builder.drop(part.at, `ingest_${type ?? 'unknown'}`, 'MEMBER_MISSING');
      return;
    }
    // The host stamps nothing of its own on a report: what the adapter signed is as near as there is, and it was checked against the clock.
    if (issuedAt !== undefined && reported.status !== undefined) this.#desk.note(part.at, issuedAt);
    const digests: ForeignDigest[] = [];
    const stated = textAt(body, 'payload_hash');
    if (check !== undefined && stated !== undefined) {
      const match = stated === check.payloadHash ? 'match' : 'mismatch';
      digests.push({ of: 'payload', form: STABLE_FORM, stated: stated.slice(0, 256), check: match });
    }
    const report = { part, type: type!, payload, ids, issuedAt, digests, itemType: `ingest_${type}` };
    this.#take(report, reported.answer);
  }

  /** Takes what was reported, whoever says that it was. */
  #take(report: Report, answer: string | undefined): void {
    const { part, type, payload, ids, itemType } = report;
    const { at } = part;
    const eventType = eventTypeOf(type, payload);
    const key = keyOf(ids.tenant, ids.executionId, eventType);
    const payloadHash = stableHash(payload);
    const before = this.#state.ingested.get(key);
    if (before?.payloadHash !== undefined) {
      const isSame = before.payloadHash === payloadHash;
      if (isSame) this.#desk.item(part, itemType, 'repeated', 'DUPLICATE');
      else this.#conflict(report, eventType, payloadHash, before.at);
      return;
    }
    if (answer === 'duplicate') {
      const [code, actual] =
        before === undefined
          ? ['DUPLICATE_OF_UNKNOWN', 'nothing before it that it would repeat']
          : ['RETRY_LOST', 'a retry of what was malformed, passed over as its duplicate'];
      this.#desk.builder.find(
        findingOf('CLA-7', 'warning', code, at, {
          about: ids.executionId,
          expected: 'a repetition',
          actual,
          ...(before === undefined ? {} : { related: [before.at] }),
        }),
      );
    }
    this.#state.ingested.set(key, {
      payloadHash,
      contentHash: contentHash(type, payload),
      from: 'report',
      at,
    });
    if (type === 'trace') {
      const trace = objectAt(payload, 'trace');
      if (trace === undefined) this.#desk.builder.drop(at, itemType, 'MEMBER_MISSING');
      else {
        const { issuedAt, digests } = report;
        this.#traces.read(part, trace, { ...ids, type: itemType, issuedAt, digests, isStored: false });
      }
    } else this.record(report);
  }

  /** Records cost, metrics, audit events and violations. */
  record(report: Report): void {
    const { part, type, payload, ids, digests, itemType } = report;
    const { at } = part;
    const { tenant, executionId, adapterId } = ids;
    const text = textAt(payload, type === 'cost' || type === 'metrics' ? 'recorded_at' : 'occurred_at');
    const stated = timeOfText(text);
    if (text !== undefined && stated === undefined)
      this.#desk.find('TIME_INVALID', at, { about: executionId, actual: text.slice(0, 64) });
    const time = stated ?? report.issuedAt ?? this.#desk.timeOf(part, itemType, undefined, executionId);
    if (time === undefined) return;
    if (type === 'cost' || type === 'metrics') {
      this.#spent(report, type, time);
      return;
    }
    const kind = type === 'audit' ? 'audit_event' : 'violation_reported';
    const name = firstText(textAt(payload, type === 'audit' ? 'event_type' : 'violation_type'));
    if (type === 'violations')
      this.#desk.find('VIOLATION_REPORTED', at, {
        about: executionId,
        actual: `the adapter itself reports ${name.slice(0, 128)}`,
      });
    this.under(part.at, ids);
    this.#desk.evidence(part, kind, {
      id: claimId(type === 'audit' ? 'audit' : 'violation', tenant, executionId, name),
      occurredAt: time,
      principalId: adapterPrincipal(tenant, adapterId),
      facts: { ...idFacts(ids), [type === 'audit' ? 'audit_type' : 'violation_type']: name },
      foreignDigests: digests,
    });
  }

  #spent({ part, payload, ids, digests, itemType }: Report, type: 'cost' | 'metrics', time: string): void {
    const { at } = part;
    const { tenant, executionId, adapterId, traceId } = ids;
    const execution = this.#state.execution(tenant, executionId);
    const decided = this.under(at, ids);
    const meters =
      type === 'cost'
        ? this.#meters(at, payload, {
            usd: 'cost_usd',
            'tokens.input': 'input_tokens',
            'tokens.output': 'output_tokens',
          })
        : this.#meters(at, payload, { 'clasper.steps': 'step_count', 'clasper.time.ms': 'duration_ms' });
    if (type === 'cost') execution.cost = numberAt(payload, 'cost_usd') ?? '';
    const scope = decided?.kind === 'allow' ? decided.scope : undefined;
    const [unit, limit, code] =
      type === 'cost'
        ? (['usd', scope?.maxCost, 'COST_EXCEEDED'] as const)
        : (['clasper.steps', scope?.maxSteps, 'STEPS_EXCEEDED'] as const);
    const used = meters.find((meter) => meter.unit === unit)?.amount;
    if (exceeds(used, limit))
      this.#desk.builder.find(
        findingOf('CLA-4', 'violation', code, at, {
          about: executionId,
          expected: `at most ${shownAmount(limit)}`,
          actual: shownAmount(used),
        }),
      );
    // Telemetry may be late; what it is about may not.
    if (isNotBefore(time, scope?.expiresAt) && execution.startedAt === undefined) {
      const details = { about: executionId, expected: `before ${scope?.expiresAt ?? ''}`, actual: time };
      this.#desk.find('REPORTED_AFTER_EXPIRY', at, details);
    }
    const claim = {
      kind: 'execution',
      id: claimId(type, tenant, executionId),
      at,
      bytes: part.bytes,
      occurredAt: time,
      principalId: decided?.principalId ?? adapterPrincipal(tenant, adapterId),
      authorization: decided?.claim,
      tool: EXECUTION_TOOL,
      startedAt: execution.startedAt,
      meters,
      meterBasis: 'reported',
      // Neither says how the execution ended.
      outcome: 'unknown',
      modelId: named(textAt(payload, 'model')),
      provider: named(textAt(payload, 'provider')),
      foreignDigests: digests,
    } as const;
    const isNew = this.#desk.claim(claim);
    this.#desk.mapped(part, itemType, isNew);
    if (!isNew) return;
    this.#desk.builder.observe({
      at,
      callIds: [executionId, traceId].filter((id) => id !== ''),
      tool: EXECUTION_TOOL,
      decision: decided === undefined ? undefined : decided.kind === 'allow' ? 'allow' : 'deny',
      outcome: 'unknown',
      meters,
      occurredAt: time,
    });
  }

  #meters(at: HostPlace, payload: SourceObject, units: Readonly<Record<string, string>>): Meter[] {
    return Object.entries(units).flatMap(([unit, member]) => {
      const value = valueAt(payload, member);
      if (value === undefined || value === null) return [];
      const amount = amountOf(numberAt(payload, member));
      if (amount !== undefined) return [{ unit, amount }];
      this.#desk.find(
        'AMOUNT_INVALID',
        { ...at, pointer: `/${member}` },
        { actual: (numberAt(payload, member) ?? typeof value).slice(0, 64) },
      );
      return [];
    });
  }

  /**
   * What allows an execution: its last grant; else what denied it, or left it pending, with a finding; undefined where the files say
   * nothing, with a finding too.
   */
  under(at: HostPlace, { tenant, executionId, adapterId }: Omit<Ids, 'traceId'>): Decided | undefined {
    const execution = this.#state.execution(tenant, executionId);
    const decided = execution.current;
    const tell = (
      rule: string,
      code: string,
      grade: 'invalid' | 'violation' | 'warning',
      expected: string,
    ): void => {
      if (execution.told.has(code)) return;
      execution.told.add(code);
      const related = decided === undefined ? {} : { related: [decided.at] };
      this.#desk.builder.find(findingOf(rule, grade, code, at, { about: executionId, expected, ...related }));
    };
    if (decided === undefined) {
      const grade = this.#state.hasRequests ? 'invalid' : 'warning';
      tell('CLA-3', 'EXECUTION_NOT_REQUESTED', grade, 'a decision that allows it');
    } else if (decided.kind === 'deny')
      tell('CLA-3', 'EXECUTED_AFTER_DENY', 'violation', 'nothing: it was denied');
    else if (decided.kind === 'pending')
      tell('CLA-3', 'EXECUTED_WHILE_PENDING', 'violation', 'nothing before the approval');
    else {
      if (decided.adapterId !== adapterId)
        tell('CLA-3', 'ADAPTER_NOT_GRANTED', 'violation', `adapter ${decided.adapterId}`);
      if (decided.claim === undefined) tell('CLA-3', 'GRANT_NOT_STATED', 'warning', 'what was granted');
      const decision = this.#state.decisions.get(decided.decisionId ?? '');
      if (decision !== undefined && decision.tokens.size > 0 && decision.consumedAt === undefined)
        tell('CLA-5', 'DECISION_TOKEN_NOT_CONSUMED', 'warning', 'the token to be consumed first');
    }
    return decided;
  }

  #conflict(
    { part, type, payload, ids, issuedAt, itemType }: Report,
    eventType: string,
    payloadHash: string,
    before: HostPlace,
  ): void {
    this.#desk.find('IDEMPOTENCY_CONFLICT', part.at, {
      about: ids.executionId,
      expected: `the content that was ingested before as ${eventType.slice(0, 128)}`,
      related: [before],
    });
    const stated = timeOfText(textAt(payload, 'recorded_at') ?? textAt(payload, 'occurred_at'));
    const time = issuedAt ?? stated ?? this.#desk.timeOf(part, itemType, undefined, ids.executionId);
    if (time === undefined) return;
    this.#desk.evidence(part, 'telemetry_conflict', {
      id: claimId('conflict', ids.tenant, ids.executionId, eventType, payloadHash),
      occurredAt: time,
      principalId: adapterPrincipal(ids.tenant, ids.adapterId),
      facts: {
        ...idFacts(ids),
        payload_type: type,
        payload_hash: payloadHash,
        usd: amountFact(numberAt(payload, 'cost_usd')),
        steps: amountFact(numberAt(payload, 'step_count')),
      },
    });
  }

  /** What the host refused is evidence of an attempt, and of nothing else. */
  #refused(part: Part, type: string | undefined, ids: Ids, { answer, status, body }: Reported): void {
    if (type !== undefined && status === '400' && answer === undefined && ids.executionId !== '') {
      // The host takes note of the ids before it looks at what is in the payload: the same again will be a duplicate of nothing.
      const payload = objectAt(body, 'payload') ?? body;
      const key = keyOf(ids.tenant, ids.executionId, eventTypeOf(type, payload));
      if (!this.#state.ingested.has(key))
        this.#state.ingested.set(key, {
          payloadHash: undefined,
          contentHash: undefined,
          from: 'report',
          at: part.at,
        });
    }
    const time = this.#desk.timeOf(part, 'telemetry_refused', undefined, ids.executionId);
    if (time === undefined) return;
    this.#desk.evidence(part, 'telemetry_refused', {
      id: claimId('refused', ids.tenant, ids.executionId, mark(part.bytes)),
      occurredAt: time,
      principalId: adapterPrincipal(ids.tenant, ids.adapterId),
      facts: { ...idFacts(ids), payload_type: type, status, reason: answer },
    });
  }

  /** The rules about envelopes. What the host refused broke nothing: it is reported as a warning. */
  #check(at: HostPlace, envelope: SourceObject, ids: Ids, reported: Reported): EnvelopeCheck {
    const { accepted, answer, type } = reported;
    const key = this.#keyOf(ids, textAt(envelope, 'adapter_version'));
    const check = checkEnvelope(envelope, { key });
    const about = ids.executionId;
    const bad = accepted ? 'invalid' : 'warning';
    const stated = textAt(envelope, 'payload_type');
    if (check.result === 'missing_key') {
      // Whether the signature is right is then not known, and nothing says that it is.
      if (key === undefined)
        this.#desk.find('KEY_NOT_KNOWN', at, { about, expected: `a key of ${ids.adapterId}` });
      else this.#desk.find('KEY_REVOKED', at, { about, weight: bad });
      if (textAt(envelope, 'payload_hash') !== check.payloadHash) {
        const actual = (textAt(envelope, 'payload_hash') ?? 'none').slice(0, 128);
        this.#desk.find('PAYLOAD_HASH_MISMATCH', at, {
          about,
          expected: check.payloadHash,
          actual,
          weight: bad,
        });
      }
    } else if (check.result !== 'ok') {
      const [expected, actual] =
        check.result === 'payload_hash_mismatch'
          ? [check.payloadHash, (textAt(envelope, 'payload_hash') ?? 'none').slice(0, 128)]
          : [`a signature by ${key?.keyId ?? ids.adapterId}`, check.result];
      this.#desk.builder.find(findingOf('CLA-1', bad, codeOf(check.result), at, { about, expected, actual }));
    } else if (!check.hasShape) this.#desk.find('INVALID_PAYLOAD', at, { about, weight: bad });
    else if (type !== undefined && stated !== type)
      this.#desk.find('PAYLOAD_TYPE_MISMATCH', at, { about, expected: type, actual: stated, weight: bad });
    else if (!accepted && answer === 'timestamp_skew')
      this.#desk.find('TIMESTAMP_SKEW', at, { about, actual: textAt(envelope, 'issued_at') });
    else if (!accepted && (answer === 'invalid_signature' || answer === 'payload_hash_mismatch'))
      this.#desk.find('REFUSED_THOUGH_VALID', at, { about, actual: answer });
    for (const pointer of check.unsigned)
      this.#desk.find('MEMBER_NOT_SIGNED', { ...at, pointer: pointer.slice(0, 256) }, { about, weight: bad });
    return check;
  }

  /** CLA-2: what else names the ids of a report, signed or not. */
  #ids(
    at: HostPlace,
    payload: SourceValue | undefined,
    ids: Ids,
    reported: Reported,
    check?: EnvelopeCheck,
  ): void {
    const { accepted, token } = reported;
    const trace = objectAt(payload, 'trace');
    const differing = [
      ...(check?.differing ?? []),
      ...(accepted ? otherIds(token?.claims, payload, TOKEN_IDS).map((name) => `${name} in the token`) : []),
      ...(trace?.has('id') === true && textAt(trace, 'id') !== ids.traceId ? ['trace.id'] : []),
      ...otherIds(trace, payload, TRACE_IDS).map((name) => `trace.${name}`),
    ];
    if (differing.length === 0) return;
    this.#desk.find('ID_MISMATCH', at, {
      about: ids.executionId,
      actual: `another ${differing.join(', ')}`,
      weight: accepted ? 'invalid' : 'warning',
    });
  }

  #keyOf({ adapterId, tenant }: Ids, version: string | undefined): TelemetryKey | undefined {
    const fits = (key: TelemetryKey): boolean =>
      key.adapterId === adapterId && (key.adapterVersion === undefined || key.adapterVersion === version);
    if (this.#pinned !== undefined) return this.#pinned.findLast(fits);
    return this.#state.keyOf(tenant, adapterId, version ?? '');
  }
}

/** Members of the adapter's token that its reports have to agree with. */
const TOKEN_IDS: Readonly<Record<string, string>> = {
  tenant_id: 'tenant_id',
  workspace_id: 'workspace_id',
  adapter_id: 'adapter_id',
};
/** Members of a trace, by those of the payload that it is in. */
const TRACE_IDS: Readonly<Record<string, string>> = {
  tenantId: 'tenant_id',
  workspaceId: 'workspace_id',
  adapter_id: 'adapter_id',
};

/** Which ids something states otherwise than the payload. */
function otherIds(
  other: SourceValue | undefined,
  payload: SourceValue | undefined,
  names: Readonly<Record<string, string>>,
): string[] {
  return Object.entries(names).flatMap(([name, own]) => {
    const [stated, expected] = [textAt(other, name), textAt(payload, own)];
    return stated === undefined || expected === undefined || stated === expected ? [] : [name];
  });
}

/** The ids that count are those of the payload: it is what the host keeps. */
function idsOf(body: SourceObject, payload: SourceObject | undefined, token: TokenClaims | undefined): Ids {
  const text = (name: string): string =>
    firstText(textAt(payload, name), textAt(body, name), textAt(token?.claims, name));
  return {
    tenant: text('tenant_id'),
    adapterId: text('adapter_id'),
    executionId: text('execution_id'),
    traceId: text('trace_id'),
  };
}

function idFacts({ executionId, traceId, adapterId }: Ids): Facts {
  return { execution_id: executionId, trace_id: traceId === '' ? undefined : traceId, adapter_id: adapterId };
}

/** The type by which the host tells repetitions. */
export function eventTypeOf(type: string, payload: SourceObject): string {
  if (type === 'audit') return `audit:${firstText(textAt(payload, 'event_type'))}`;
  if (type === 'violations') return `violation:${firstText(textAt(payload, 'violation_type'))}`;
  return type;
}

/** The hash of what the host keeps of a payload; undefined of traces. */
export function contentHash(type: string, payload: SourceObject): string | undefined {
  const kept = KEPT[type];
  if (kept === undefined) return undefined;
  return stableHash(new SourceObject(new Map(payload.entries().filter(([name]) => kept.includes(name)))));
}

/** A name as an event can hold it. */
function named(name: string | undefined): string | undefined {
  return name === undefined || name === '' ? undefined : wellFormed(name.slice(0, 256));
}
