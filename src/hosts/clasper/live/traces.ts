/** Traces: their steps form a chain, and each call of a tool names the token by which it was allowed. */

import type { SourceObject, SourceValue } from '../../../base/json/source-json.js';
import type { Quantity } from '../../../base/value/quantity.js';
import type { CallOutcome } from '../../../gate/gate.js';
import { keyOfCall } from '../../../gate/request-key.js';
import { codeOf, toolOf } from '../../shared/names.js';
import { exceeds } from '../../shared/usage.js';
import {
  amountOf,
  jcsDigest,
  listAt,
  numberAt,
  objectAt,
  textAt,
  timeOfText,
  valueAt,
} from '../../shared/values.js';
import { checkSteps } from '../steps.js';
import type { KnownGrant } from './book.js';
import { after, type Asked, sourceOf } from './office.js';
import { checkFields, Refusal } from './refusal.js';
import type { Report } from './report.js';
import { TOOL_TOKEN_SECONDS } from './tools.js';

export interface TracedCall {
  readonly jti: string;
  readonly done: CallOutcome;
}

interface TraceCheck {
  readonly calls: readonly TracedCall[];
  readonly fault?: Refusal | undefined;
}

interface Steps {
  readonly id: string;
  readonly call: SourceValue | undefined;
  readonly result: SourceValue | undefined;
}

/** @throws Refusal for what is not of the trace's schema */
export function checkTraceForm(payload: SourceObject): void {
  checkFields(objectAt(payload, 'trace')!, {
    id: 'text',
    tenantId: 'text',
    workspaceId: 'text',
    startedAt: 'text',
    skillVersions: 'object',
    model: 'text',
    provider: 'text',
    input: 'object',
    steps: 'list',
    usage: 'object',
  });
}

/** @param isKnown - Whether the same trace was recorded before */
export async function checkTrace(
  asked: Asked,
  { payload, executionId, traceId }: Report,
  grant: KnownGrant,
  isKnown: boolean,
): Promise<TraceCheck> {
  const trace = objectAt(payload, 'trace')!;
  const { adapter } = asked;
  const fault = (code: string, message: string, details?: object): TraceCheck => ({
    calls: [],
    fault: new Refusal(400, message, code, details),
  });
  const isOwn =
    textAt(trace, 'id') === traceId &&
    textAt(trace, 'tenantId') === adapter.tenant &&
    textAt(trace, 'workspaceId') === adapter.workspace;
  if (!isOwn) return fault('id_mismatch', 'Trace identity mismatch for ingest payload');
  const steps = listAt(trace, 'steps') ?? [];
  const broken = checkSteps(trace).filter(({ kind }) => !UNSIGNED.includes(kind));
  if (broken.length > 0) {
    const failures = broken.slice(0, MAX_FAILURES).map(({ step, kind }) => `step_${step ?? 0}_${kind}`);
    return fault('trace_compromised', 'The steps of the trace form no chain', { failures });
  }
  const cap = (unit: string): Quantity | undefined => grant.caps.get(unit);
  if (exceeds({ t: 'int', v: String(steps.length) }, cap('clasper.steps')))
    return fault('steps_exceeded', 'More than max_steps were made');
  const cost = numberAt(trace, 'usage', 'totalCost');
  const spent = amountOf(cost);
  if (cost !== undefined && spent === undefined)
    return fault('amount_invalid', 'totalCost: expected an amount, at least 0');
  if (exceeds(spent, cap('usd'))) return fault('cost_exceeded', 'More than max_cost was spent');
  const calls: TracedCall[] = [];
  const used = new Set<string>();
  for (const each of callsOf(steps)) {
    const data = objectAt(each.call, 'data');
    const isBlocked = valueAt(data, 'permitted') === false;
    if (isBlocked && each.result === undefined) continue;
    if (isBlocked) return fault('ran_though_not_permitted', 'A call that was not permitted has a result');
    const jti = textAt(data, 'tool_token_jti') ?? '';
    if (jti === '') return fault('tool_token_missing', 'A call of a tool names no token');
    const code = used.has(jti)
      ? 'tool_token_invalid_or_reused'
      : await faultOf(asked, executionId, jti, each, isKnown);
    if (code !== undefined) return fault(code, 'A call of a tool was not allowed as its token says');
    used.add(jti);
    calls.push({ jti, done: outcomeOf(each) });
  }
  return { calls };
}

/** Faults of steps that state no hashes: the envelope is what signs them then. */
const UNSIGNED: readonly string[] = ['no_steps', 'missing_step_hashes', 'stripped'];
const MAX_FAILURES = 32;
const MAX_JTI_LENGTH = 128;

/** What is wrong with the token of a call; undefined for nothing. */
async function faultOf(
  { gate, adapter, book, settings }: Asked,
  executionId: string,
  jti: string,
  { call }: Steps,
  isKnown: boolean,
): Promise<string | undefined> {
  if (jti.length > MAX_JTI_LENGTH) return 'tool_token_invalid_or_reused';
  const { open, spent } = await gate.ledger.findCall(adapter.principal, keyOfCall(executionId, jti));
  if (open === undefined) {
    if (spent === undefined) return 'tool_token_invalid_or_reused';
    // What nobody reported in time was ended as unknown: the token was used by no trace.
    return book.report(adapter.principal, jti) === undefined || isKnown
      ? undefined
      : 'tool_token_invalid_or_reused';
  }
  if (open.toolName !== toolOf(textAt(call, 'data', 'toolName') ?? '')) return 'tool_token_other_tool';
  const time = timeOfText(textAt(call, 'timestamp'));
  const end = after(open.allowedAt, (TOOL_TOKEN_SECONDS + settings.maxSkewSeconds) * 1000);
  return time !== undefined && Date.parse(time) >= Date.parse(end) ? 'tool_token_expired' : undefined;
}

/** Ends the calls that a trace tells of. To repeat it is harmless. */
export async function settleCalls(
  { gate, adapter, book }: Asked,
  { executionId, bytes }: Report,
  calls: readonly TracedCall[],
): Promise<void> {
  await Promise.all(
    calls.map(async ({ jti, done }) => {
      const name = { ref: jti, session: executionId, principal: adapter.principal };
      const { recorded } = await gate.settle(name, { ...done, source: sourceOf(jti, bytes) });
      if (recorded !== undefined)
        book.noteReport(adapter.principal, jti, { hash: undefined, seq: recorded.seq });
    }),
  );
}

/** The calls of tools among the steps, each with its result. */
function callsOf(steps: readonly SourceValue[]): readonly Steps[] {
  const calls: { -readonly [K in keyof Steps]: Steps[K] }[] = [];
  for (const step of steps) {
    const type = textAt(step, 'type');
    if (type !== 'tool_call' && type !== 'tool_result') continue;
    const id = textAt(step, 'data', 'toolCallId') ?? '';
    const open = calls.find((each) => each.id === id && each.result === undefined);
    if (type === 'tool_call') calls.push({ id, call: step, result: undefined });
    else if (open !== undefined) open.result = step;
    else calls.push({ id, call: undefined, result: step });
  }
  return calls;
}

function outcomeOf({ call, result }: Steps): CallOutcome {
  const success = valueAt(result, 'data', 'success');
  const outcome = success === true ? 'success' : success === false ? 'failure' : 'unknown';
  const ofCall = Number(numberAt(call, 'durationMs') ?? 0);
  const durationMs = ofCall > 0 ? ofCall : Number(numberAt(result, 'durationMs') ?? 0);
  const output = jcsDigest(valueAt(result, 'data', 'result'));
  return {
    outcome,
    ...(durationMs >= 0 && durationMs <= MAX_DURATION_MS ? { durationMs } : {}),
    ...(output === undefined ? {} : { outputDigest: output }),
    ...(outcome === 'failure' ? { errorCode: codeOf(textAt(result, 'data', 'code') ?? 'TOOL_FAILED') } : {}),
  };
}

const MAX_DURATION_MS = 10 * 365 * 24 * 3_600_000;
