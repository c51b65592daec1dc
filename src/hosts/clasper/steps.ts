/** The chain of a trace's steps. */

import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { stableHash } from '../shared/forms/stable.js';
import { listAt, textAt, valueAt } from '../shared/values.js';

/** What is wrong with a step, in the host's own words; those without a number are about the trace. */
interface StepFault {
  readonly kind:
    | 'no_steps'
    | 'missing_step_hashes'
    | 'missing_hash'
    | 'prev_hash_mismatch'
    | 'hash_mismatch'
    | 'stripped';
  /** From 0. */
  readonly step?: number | undefined;
  readonly expected?: string | undefined;
  readonly actual?: string | undefined;
}

/** The members that the host knows of the data of each kind of step, and those that it must find. It drops all others. */
const DATA: readonly { readonly required: readonly string[]; readonly optional: readonly string[] }[] = [
  {
    required: ['model', 'provider', 'inputTokens', 'outputTokens', 'cost', 'hasToolCalls'],
    optional: ['finishReason'],
  },
  {
    required: ['toolCallId', 'toolName', 'permitted'],
    optional: ['arguments', 'permissionReason', 'tool_token_jti', 'tool_token_scope_hash'],
  },
  { required: ['toolCallId', 'toolName', 'success'], optional: ['result', 'error'] },
  { required: ['code', 'message', 'recoverable'], optional: [] },
];

/**
 * Checks a trace's steps: each hash over its step, each step naming the hash of the one before it. The host hashes what it keeps of a
 * step's data, an adapter may have hashed all of it: a hash over either is right, and `stripped` says that it is over all.
 */
export function checkSteps(trace: SourceObject): readonly StepFault[] {
  const steps = listAt(trace, 'steps') ?? [];
  if (steps.length === 0) return [{ kind: 'no_steps' }];
  if (steps.every((step) => !hashOf(step))) return [{ kind: 'missing_step_hashes' }];
  const faults: StepFault[] = [];
  let before: string | null = null;
  for (const [i, step] of steps.entries()) {
    const stated = hashOf(step);
    const previous = valueAt(step, 'prev_step_hash') ?? null;
    if (stated === undefined) faults.push({ kind: 'missing_hash', step: i });
    else {
      if (previous !== before)
        faults.push({
          kind: 'prev_hash_mismatch',
          step: i,
          expected: before ?? 'null',
          actual: typeof previous === 'string' ? previous : previous === null ? 'null' : 'something else',
        });
      const kept = stepHash(step, true);
      if (stated !== kept) {
        const isWhole = stated === stepHash(step, false);
        faults.push({
          kind: isWhole ? 'stripped' : 'hash_mismatch',
          step: i,
          expected: kept,
          actual: stated,
        });
      }
    }
    before = stated ?? null;
  }
  return faults;
}

/** The hash of a step; of what the host keeps of its data, or of all. */
export function stepHash(step: SourceValue, stripped: boolean): string {
  const members: [string, SourceValue][] = [
    ['step_id', textAt(step, 'step_id') || null],
    ['prev_step_hash', valueAt(step, 'prev_step_hash') ?? null],
  ];
  for (const name of ['type', 'timestamp', 'durationMs']) {
    const value = valueAt(step, name);
    if (value !== undefined) members.push([name, value]);
  }
  const data = valueAt(step, 'data');
  if (data !== undefined) members.push(['data', stripped ? stripData(data) : data]);
  return stableHash(new SourceObject(new Map(members)));
}

function stripData(data: SourceValue): SourceValue {
  if (!(data instanceof SourceObject)) return data;
  const shape = DATA.find(({ required }) => required.every((name) => data.has(name)));
  if (shape === undefined) return data;
  const known = [...shape.required, ...shape.optional];
  return new SourceObject(new Map(data.entries().filter(([name]) => known.includes(name))));
}

function hashOf(step: SourceValue): string | undefined {
  return textAt(step, 'step_hash') || undefined;
}
