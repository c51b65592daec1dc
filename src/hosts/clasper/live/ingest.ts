/**
 * Telemetry: what adapters report of executions that were allowed. The signature comes first, then the ids, the execution, whether it was
 * reported before, and the scope; what passes ends the call that it is about. A report that is signed and wrong is kept as evidence.
 */

import { NorthrootError } from '../../../base/error.js';
import type { SourceObject } from '../../../base/json/source-json.js';
import type { JsonObject } from '../../../base/json/value.js';
import type { AmountsByUnit } from '../../../base/value/meter.js';
import { formatQuantity, type Quantity } from '../../../base/value/quantity.js';
import type { CallOutcome, Settled } from '../../../gate/gate.js';
import type { Appended } from '../../../log/writer/ledger.js';
import { stableHash } from '../../shared/forms/stable.js';
import { codeOf, sourceIdOf, wellFormed } from '../../shared/names.js';
import { exceeds } from '../../shared/usage.js';
import { amountOf, listAt, numberAt, objectAt, textAt } from '../../shared/values.js';
import { checkEnvelope, isEnvelope } from '../envelope.js';
import { claimId } from '../state.js';
import { scopeDigest } from '../trace.js';
import { isOf } from './adapters.js';
import type { KnownGrant } from './book.js';
import { decideSteps } from './executions.js';
import { appendEvidence, type Asked, COST, METRICS, ownExecution, sourceOf } from './office.js';
import { checkFields, type Fields, Refusal } from './refusal.js';
import { telemetryKeyOf } from './registry.js';
import type { Report, ReportType } from './report.js';
import { checkTrace, checkTraceForm, settleCalls, type TracedCall } from './traces.js';

const ZERO: Quantity = { t: 'int', v: '0' };
const MAX_FACT_LENGTH = 256;
const IDS: Fields = {
  tenant_id: 'text',
  workspace_id: 'text',
  execution_id: 'id',
  trace_id: 'id',
  adapter_id: 'text',
};
const FIELDS: Readonly<Record<ReportType, Fields>> = {
  trace: { ...IDS, trace: 'object' },
  audit: { ...IDS, event_type: 'id', message: 'text?', event_data: 'object?', occurred_at: 'text' },
  cost: {
    ...IDS,
    cost_usd: 'number',
    input_tokens: 'number?',
    output_tokens: 'number?',
    model: 'text?',
    provider: 'text?',
    recorded_at: 'text',
  },
  metrics: { ...IDS, step_count: 'number', duration_ms: 'number', recorded_at: 'text' },
  violations: { ...IDS, violation_type: 'id', message: 'text', occurred_at: 'text', data: 'object?' },
};
const MESSAGES: Readonly<Record<string, string>> = {
  missing_key: 'Missing telemetry key',
  payload_hash_mismatch: 'Payload hash mismatch',
  timestamp_skew: 'Issued_at outside allowed skew',
  invalid_signature: 'Invalid signature',
  unsupported_algorithm: 'Unsupported algorithm',
};

/** Answers `POST /api/ingest/TYPE`. */
export async function ingest(
  asked: Asked,
  type: ReportType,
  body: SourceObject,
  bytes: Uint8Array,
): Promise<object> {
  const { adapter, book } = asked;
  const payload = readPayload(asked, type, body);
  if (!isOf(payload, adapter)) throw new Refusal(403, 'Adapter scope mismatch');
  checkFields(payload, FIELDS[type]);
  if (type === 'trace') checkTraceForm(payload);
  const report: Report = {
    type,
    payload,
    executionId: textAt(payload, 'execution_id') ?? '',
    traceId: textAt(payload, 'trace_id') ?? '',
    hash: stableHash(payload),
    isSigned: payload !== body,
    bytes,
  };
  const different = ['execution_id', 'trace_id', 'adapter_id'].filter(
    (name) => report.isSigned && textAt(body, name) !== textAt(payload, name),
  );
  if (different.length > 0)
    throw await refuse(asked, report, 'id_mismatch', `The envelope has another ${different.join(', ')}`);
  const execution = ownExecution(asked, report.executionId);
  const grant = book.grant(execution?.grantId ?? '');
  if (grant === undefined)
    throw await refuse(asked, report, 'execution_not_allowed', 'Execution not allowed', 403);
  const before = book.report(adapter.principal, idOf(asked, report));
  if (before !== undefined && before.hash !== report.hash) return conflict(asked, report);
  const calls = await check(asked, report, grant, before !== undefined);
  // What was accepted before this process, or another, died is carried through.
  const isNew = await accept(asked, report, grant, calls);
  if (isNew) return { status: 'ok' };
  const kept = book.report(adapter.principal, idOf(asked, report));
  return kept === undefined || kept.hash === report.hash ? { status: 'duplicate' } : conflict(asked, report);
}

/** The payload: of an envelope whose signature is right, or without one where that is enough. @throws Refusal */
function readPayload(
  { adapter, book, settings, gate }: Asked,
  type: ReportType,
  body: SourceObject,
): SourceObject {
  if (!isEnvelope(body) && !body.has('envelope_version')) {
    if (settings.signatures === 'enforce')
      throw new Refusal(400, 'Missing signed telemetry envelope', 'missing_key');
    return body;
  }
  const payload = objectAt(body, 'payload');
  const stated = textAt(body, 'payload_type');
  if (stated !== undefined && stated !== type)
    throw new Refusal(400, `Signed payload type mismatch: expected ${type}`, 'payload_type_mismatch');
  const version = textAt(body, 'adapter_version') ?? '';
  const key = telemetryKeyOf(book, adapter.tenant, textAt(body, 'adapter_id') ?? '', version);
  const { maxSkewSeconds } = settings;
  const checked = checkEnvelope(body, { key, receivedAt: gate.ledger.now(), maxSkewSeconds });
  if (checked.result !== 'ok')
    throw new Refusal(400, MESSAGES[checked.result] ?? 'Invalid signature', checked.result);
  if (!checked.hasShape || payload === undefined || checked.unsigned.length > 0)
    throw new Refusal(400, 'Invalid signed telemetry envelope', 'invalid_payload');
  return payload;
}

/** The name by which a report is known: of an execution and an event type there is one. */
function idOf({ adapter: { tenant } }: Asked, { type, executionId, payload }: Report): string {
  const text = (name: string): string => textAt(payload, name) ?? '';
  if (type === 'audit') return sourceIdOf(claimId('audit', tenant, executionId, text('event_type')));
  if (type === 'violations')
    return sourceIdOf(claimId('violation', tenant, executionId, text('violation_type')));
  return sourceIdOf(claimId(type === 'trace' ? 'traced' : type, tenant, executionId));
}

/** Whether the report is within what was granted. @throws Refusal, with the evidence recorded */
async function check(
  asked: Asked,
  report: Report,
  grant: KnownGrant,
  isKnown: boolean,
): Promise<readonly TracedCall[]> {
  const { type, payload } = report;
  const cap = (unit: string): Quantity | undefined => grant.caps.get(unit);
  const amount = async (name: string): Promise<Quantity | undefined> => {
    const text = numberAt(payload, name);
    const read = amountOf(text);
    if (text !== undefined && read === undefined)
      throw await refuse(asked, report, 'amount_invalid', `${name}: expected an amount, at least 0`);
    return read;
  };
  if (type === 'cost') {
    await amount('input_tokens');
    await amount('output_tokens');
    if (exceeds(await amount('cost_usd'), cap('usd')))
      throw await refuse(asked, report, 'cost_exceeded', 'More than max_cost was spent');
  }
  if (type === 'metrics') {
    await amount('duration_ms');
    if (exceeds(await amount('step_count'), cap('clasper.steps')))
      throw await refuse(asked, report, 'steps_exceeded', 'More than max_steps were made');
  }
  if (type !== 'trace') return [];
  const { fault, calls } = await checkTrace(asked, report, grant, isKnown);
  if (fault !== undefined)
    throw await refuse(
      asked,
      report,
      fault.code ?? 'trace_invalid',
      fault.message,
      fault.status,
      fault.details,
    );
  return calls;
}

/** Records the report. @returns Whether it was not recorded before */
async function accept(
  asked: Asked,
  report: Report,
  grant: KnownGrant,
  calls: readonly TracedCall[],
): Promise<boolean> {
  const { type, payload } = report;
  if (type === 'cost') return settleOwn(asked, report, COST, costOf(payload));
  if (type === 'metrics') {
    // They are reserved now, unless the tenant's grant bounds steps: then they were from the beginning. After the end of the grant the
    // report is kept as one that came late.
    if (asked.book.report(asked.adapter.principal, idOf(asked, report)) === undefined)
      await decideSteps(
        asked,
        grant,
        { executionId: report.executionId, capabilities: [], requestHash: report.hash },
        amountOf(numberAt(payload, 'step_count')) ?? ZERO,
      );
    return settleOwn(asked, report, METRICS, metricsOf(payload));
  }
  const isNew = await appendOnce(asked, report);
  if (isNew !== 'other') await settleCalls(asked, report, calls);
  return isNew === 'new';
}

/** Ends the execution's own call with what was reported of it. */
async function settleOwn(
  asked: Asked,
  report: Report,
  ref: string,
  done: Omit<CallOutcome, 'outcome'>,
): Promise<boolean> {
  const { gate, adapter, book } = asked;
  const id = idOf(asked, report);
  if (book.report(adapter.principal, id) !== undefined) return false;
  const name = { ref, session: report.executionId, principal: adapter.principal };
  const outcome: CallOutcome = {
    // No report says how the execution ended.
    outcome: 'unknown',
    meterBasis: 'reported',
    outputDigest: scopeDigest(report.hash)!,
    source: sourceOf(id, report.bytes),
    ...done,
  };
  const recorded = await settle(() => gate.settle(name, outcome));
  if (recorded !== undefined) {
    book.noteReport(adapter.principal, id, { hash: report.hash, seq: recorded.seq });
    return true;
  }
  await book.sync();
  if (book.report(adapter.principal, id) !== undefined) return false;
  // It was ended, and charged as reserved, before anybody reported of it.
  return (await appendOnce(asked, report)) === 'new';
}

/** Undefined where the call was ended before, or could not be begun any more. */
async function settle(ask: () => Promise<Settled>): Promise<Appended | undefined> {
  try {
    return (await ask()).recorded;
  } catch (error) {
    if (error instanceof NorthrootError && error.code === 'CALL_NOT_FOUND') return undefined;
    throw error;
  }
}

function costOf(payload: SourceObject): Pick<CallOutcome, 'used' | 'modelId' | 'provider'> {
  const [modelId, provider] = ['model', 'provider'].map((name) => nameIn(payload, name));
  return {
    used: usedOf(payload, {
      usd: 'cost_usd',
      'tokens.input': 'input_tokens',
      'tokens.output': 'output_tokens',
    }),
    ...(modelId === undefined ? {} : { modelId }),
    ...(provider === undefined ? {} : { provider }),
  };
}

function metricsOf(payload: SourceObject): Pick<CallOutcome, 'used'> {
  return { used: usedOf(payload, { 'clasper.steps': 'step_count', 'clasper.time.ms': 'duration_ms' }) };
}

function usedOf(payload: SourceObject, units: Readonly<Record<string, string>>): AmountsByUnit {
  return Object.fromEntries(
    Object.entries(units).flatMap(([unit, member]) => {
      const amount = amountOf(numberAt(payload, member));
      return amount === undefined ? [] : [[unit, formatQuantity(amount)]];
    }),
  );
}

function nameIn(payload: SourceObject, name: string): string | undefined {
  const text = wellFormed((textAt(payload, name) ?? '').slice(0, MAX_FACT_LENGTH));
  return text === '' ? undefined : text;
}

/** Keeps a report as evidence, once in all processes. */
async function appendOnce(asked: Asked, report: Report): Promise<'new' | 'same' | 'other'> {
  const { adapter, book } = asked;
  const id = idOf(asked, report);
  if (book.report(adapter.principal, id) === undefined) {
    const source = { id, bytes: report.bytes };
    const recorded = await appendEvidence(
      asked,
      KINDS[report.type],
      adapter.principal,
      factsOf(report),
      source,
    );
    await book.sync();
    if (book.report(adapter.principal, id)?.seq === recorded.seq) return 'new';
  }
  return book.report(adapter.principal, id)?.hash === report.hash ? 'same' : 'other';
}

const KINDS: Readonly<Record<ReportType, string>> = {
  trace: 'trace',
  audit: 'audit_event',
  violations: 'violation_reported',
  cost: 'late_report',
  metrics: 'late_report',
};

/** Of a report what tells it apart: ids, amounts and digests, nothing of its content. */
function factsOf({ type, payload, executionId, traceId, hash, isSigned }: Report): JsonObject {
  const trace = objectAt(payload, 'trace');
  const amounts: Readonly<Record<string, string | undefined>> = {
    usd: numberAt(payload, 'cost_usd') ?? numberAt(trace, 'usage', 'totalCost'),
    'tokens.input': numberAt(payload, 'input_tokens') ?? numberAt(trace, 'usage', 'inputTokens'),
    'tokens.output': numberAt(payload, 'output_tokens') ?? numberAt(trace, 'usage', 'outputTokens'),
    steps: numberAt(payload, 'step_count') ?? stepsText(trace),
  };
  return {
    execution_id: executionId,
    trace_id: traceId,
    adapter_id: textAt(payload, 'adapter_id') ?? '',
    payload_type: type,
    payload_hash: hash,
    ...(isSigned ? {} : { unsigned: true }),
    ...(type === 'audit' ? { audit_type: textAt(payload, 'event_type') ?? '' } : {}),
    ...(type === 'violations' ? { violation_type: textAt(payload, 'violation_type') ?? '' } : {}),
    ...Object.fromEntries(
      Object.entries(amounts).flatMap(([name, text]) => {
        // A negative amount is no quantity, and its text is what there is to say of it.
        const amount = amountOf(text);
        if (text === undefined) return [];
        return [[name, amount === undefined ? text.slice(0, MAX_FACT_LENGTH) : { ...amount }]];
      }),
    ),
  };
}

function stepsText(trace: SourceObject | undefined): string | undefined {
  const steps = listAt(trace, 'steps');
  return steps === undefined ? undefined : String(steps.length);
}

/** What is refused once its sender is known is evidence, once for each content and reason. */
async function refuse(
  asked: Asked,
  report: Report,
  code: string,
  message: string,
  status = 400,
  details?: object,
): Promise<Refusal> {
  await appendAttempt(asked, report, 'refused', codeOf(code));
  return new Refusal(status, message, code, details);
}

/** Another report of what was reported: the first counts. */
async function conflict(asked: Asked, report: Report): Promise<object> {
  await appendAttempt(asked, report, 'conflict', '');
  if (asked.settings.isCompatible) return { status: 'duplicate' };
  throw new Refusal(409, 'Reported before with other content', 'conflict');
}

async function appendAttempt(
  asked: Asked,
  report: Report,
  kind: 'refused' | 'conflict',
  reason: string,
): Promise<void> {
  const { adapter, book } = asked;
  const { executionId, type, hash, bytes } = report;
  const id = sourceIdOf(claimId(kind, adapter.tenant, executionId, type, hash, reason));
  if (book.report(adapter.principal, id) !== undefined) return;
  const facts = { ...factsOf(report), ...(reason === '' ? {} : { reason }) };
  await appendEvidence(asked, `telemetry_${kind}`, adapter.principal, facts, { id, bytes });
}
