/** Whether a ledger and a source say the same of one call, and where they do not. */

import { printable } from '../../base/bytes/printable.js';
import type { ReconcileFinding } from '../../format/schema/generated/types.js';
import { type Digest, formatDigest } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { compareQuantities, formatQuantity } from '../../base/value/quantity.js';
import type { LedgerCall } from './ledger-calls.js';
import type { Seen } from './reconcile-sources.js';

export type CallAspect = 'tool' | 'params' | 'decision' | 'execution' | 'outcome' | 'meters';
interface Difference {
  readonly code: ReconcileCode;
  readonly class: 'invalid' | 'violation';
  readonly expected: string;
  readonly actual: string;
  readonly at: Seen;
}

/** How a source stands to a call of the ledger. */
export interface Comparison {
  readonly differences: readonly Difference[];
  /** What both state, and alike. */
  readonly agreed: ReadonlySet<CallAspect>;
  /** Whether the source shows what the ledger shows: that it was executed, or of one that was not, what was decided. */
  readonly confirms: boolean;
  readonly unrecorded: Seen | undefined;
}

/** Whether an observation may be of the call by what it is about. */
export function isCompatible({ tool, paramsDigest }: LedgerCall, seen: Seen): boolean {
  if (isSameTool(tool, seen.tool) === false) return false;
  return isSameDigest(paramsDigest, seen.observation.paramsDigest) !== false;
}

/** Whether observations of one source can be one call that is reported in several places: at most one says what came of it. */
export function isOneCall(group: readonly Seen[]): boolean {
  const outcomes = group.filter(({ observation }) => observation.outcome !== undefined);
  const decisions = group.flatMap(({ observation: { decision } }) =>
    decision === undefined ? [] : [decision],
  );
  const digests = group.flatMap(({ observation: { paramsDigest } }) =>
    paramsDigest === undefined ? [] : [formatDigest(paramsDigest)],
  );
  return outcomes.length <= 1 && new Set(decisions).size <= 1 && new Set(digests).size <= 1;
}

function isImported({ entries }: LedgerCall): boolean {
  return entries.some(({ source }) => source !== undefined);
}

/** Compares a call with what a source says of it, in one place or in several. */
export function compareCall(call: LedgerCall, group: readonly Seen[]): Comparison {
  const differences: Difference[] = [];
  const agreed = new Set<CallAspect>();
  const ran = call.outcome !== undefined;
  let unrecorded: Seen | undefined;
  let decisions = 0;
  let executions = 0;
  for (const at of group) {
    const { tool, observation } = at;
    const { decision, outcome } = observation;
    const differ = (
      code: ReconcileCode,
      expected: string,
      actual: string,
      of: Difference['class'] = 'invalid',
    ): void => {
      differences.push({ code, class: of, expected, actual, at });
    };
    const sameTool = isSameTool(call.tool, tool);
    if (sameTool === true) agreed.add('tool');
    else if (sameTool === false) differ('TOOL_DIFFERS', call.tool, tool ?? '');
    const sameParams = isSameDigest(call.paramsDigest, observation.paramsDigest);
    if (sameParams === true) agreed.add('params');
    else if (sameParams === false)
      differ('PARAMS_DIFFER', digestText(call.paramsDigest), digestText(observation.paramsDigest));
    const hasRun = outcome !== undefined;
    if (decision !== undefined) decisions += 1;
    if (hasRun) executions += 1;
    if (hasRun && !ran && call.decision === 'deny') {
      differ('RAN_THOUGH_DENIED', 'denied, and not executed', `executed, ${outcome}`, 'violation');
    } else if (ran && !hasRun && decision === 'deny') {
      differ('RAN_THOUGH_DENIED', `executed, ${call.outcome}`, 'denied, and not executed', 'violation');
    } else {
      if (decision !== undefined && call.decision !== undefined) {
        if (decision === call.decision) agreed.add('decision');
        // A host may refuse what a gate allowed: its decision is another one.
        else if (ran || hasRun || call.decision === 'deny' || isImported(call))
          differ('DECISION_DIFFERS', call.decision, decision);
      }
      if (hasRun && !ran) unrecorded = at;
      if (hasRun && ran) {
        agreed.add('execution');
        if (outcome === call.outcome) agreed.add('outcome');
        else if (outcome !== 'unknown' && call.outcome !== 'unknown')
          differ('OUTCOME_DIFFERS', call.outcome, outcome);
        for (const { unit, ledger, source } of sharedUnits(call, observation.meters)) {
          if (compareQuantities(ledger, source) === 0) agreed.add('meters');
          else if (!call.estimated.includes(unit))
            differ('METERS_DIFFER', `${formatQuantity(ledger)} ${unit}`, `${formatQuantity(source)} ${unit}`);
        }
      }
    }
  }
  return {
    differences,
    agreed,
    confirms: differences.length === 0 && unrecorded === undefined && (ran ? executions > 0 : decisions > 0),
    unrecorded,
  };
}

/** The date or the number of a version of a model, which requests leave out and responses state. */
const MODEL_VERSION = /^[-@:](?:v?\d[\d.:-]*|latest)$/;

/**
 * Undefined where one of them is missing, and where both are calls of models and only named otherwise: providers have another name in each
 * vocabulary, and `llm.chat` names no model at all. Another model is another tool.
 */
function isSameTool(ledger: string, source: string | undefined): boolean | undefined {
  if (source === undefined) return undefined;
  if (ledger === source) return true;
  if (!ledger.startsWith('llm.') || !source.startsWith('llm.')) return false;
  if (!ledger.includes('/') || !source.includes('/')) return undefined;
  const [one, other] = [modelOf(ledger), modelOf(source)];
  return isVersionOf(one, other) || isVersionOf(other, one) ? undefined : false;
}

function isVersionOf(model: string, longer: string): boolean {
  return longer.startsWith(model) && (longer === model || MODEL_VERSION.test(longer.slice(model.length)));
}

function modelOf(tool: string): string {
  return tool.slice(tool.lastIndexOf('/') + 1);
}

function sharedUnits(
  call: LedgerCall,
  meters: MeterVector,
): { unit: string; ledger: MeterVector[number]['amount']; source: MeterVector[number]['amount'] }[] {
  return call.meters.flatMap(({ unit, amount }) => {
    const other = meters.find((meter) => meter.unit === unit);
    return other === undefined ? [] : [{ unit, ledger: amount, source: other.amount }];
  });
}

/** Undefined where one of them is missing, or they are of different kinds and say nothing about each other. */
function isSameDigest(a: Digest | undefined, b: Digest | undefined): boolean | undefined {
  if (a === undefined || b === undefined || a.alg !== b.alg) return undefined;
  return a.b64 === b.b64;
}

function digestText(digest: Digest | undefined): string {
  return digest === undefined ? 'none' : formatDigest(digest);
}

const MAX_VALUE = 200;

const WORDS = {
  TOOL_DIFFERS: 'ledger and source name different tools for one call',
  PARAMS_DIFFER: 'ledger and source have different parameters of one call',
  DECISION_DIFFERS: 'ledger and source state different decisions about one call',
  OUTCOME_DIFFERS: 'ledger and source state different outcomes of one call',
  METERS_DIFFER: 'ledger and source state different amounts of one call',
  RAN_THOUGH_DENIED: 'one side denied the call, and the other executed it',
  EXECUTION_NOT_IN_LEDGER: 'a source shows an execution that the ledger does not have',
  DECISION_NOT_IN_LEDGER: 'a source shows a call that the ledger does not have; it shows no execution of it',
  NOT_IN_SOURCES: 'no source shows what the ledger has of this call',
  CALL_AMBIGUOUS: 'which call of the source this is cannot be told; nothing is guessed',
  LEDGER_RECORD_INVALID: 'a record of this call is invalid, and corroborates nothing',
  LEDGER_INVALID: 'the ledger is invalid by itself; its own verification says why',
  LEDGER_VIOLATION: 'the ledger shows by itself what was not allowed; its own verification says what',
  SOURCE_INVALID: 'the source is broken by the rules of its host; checking it for an import says why',
  SOURCE_VIOLATION:
    'the source shows what was not allowed by the rules of its host; checking it for an import says what',
  SOURCE_CORRECTED: 'a source says elsewhere that what it shows of this call is wrong',
  SAME_FILE: 'records were made from this very file, which therefore corroborates nothing that they say',
  TOOL_MISSING: 'a promised tool was not called as often as promised',
  TOOL_NOT_PROMISED: 'a call of a tool that was not promised',
  COUNT_MISSING: 'there are fewer calls than were promised',
  COUNT_EXCEEDED: 'there are more calls than were promised',
  OUTSIDE_WINDOW: 'a call outside the promised window of time',
  SEQUENCE_MISSING: 'promised numbers are missing',
  SEQUENCE_NOT_PROMISED: 'there are numbers that were not promised',
} as const;

export type ReconcileCode = keyof typeof WORDS;

/** A finding as a sentence; everything that comes from outside is made printable. */
export function describeReconcileFinding(
  code: ReconcileCode,
  { call_ids: [id] = [], source, expected, actual }: Omit<ReconcileFinding, 'code' | 'message'>,
): string {
  return [
    WORDS[code],
    ...(id === undefined ? [] : [` (${printable(id, MAX_VALUE)})`]),
    ...(expected === undefined ? [] : [`; expected ${printable(expected, MAX_VALUE)}`]),
    ...(actual === undefined ? [] : [`; found ${printable(actual, MAX_VALUE)}`]),
    ...(source === undefined ? [] : [`, in ${printable(source, MAX_VALUE)}`]),
  ].join('');
}
