/**
 * Policy bundles of CGF: their hash (CGF-14), and what a bundle decides about a proposal (CGF-15). The operators are a closed set; a
 * regular expression that is not decided (`regex.ts`) leaves the whole decision undecided wherever it would matter.
 */

import { parseDecimal } from '../../base/json/decimal.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { compareCodePoints } from '../shared/forms/cac.js';
import { isPythonInt, pythonFloat, pythonJson, pythonNumber, pythonSha256 } from '../shared/forms/python.js';
import { listAt, numberAt, objectAt, textAt } from '../shared/values.js';
import { pythonSearch, SearchBudget } from './regex.js';

/** The most rules of a bundle, and the most conditions of a rule, that are evaluated. */
const MAX_RULES = 10_000;
const MAX_CONDITIONS = 256;

interface Condition {
  readonly field: string;
  readonly op: string;
  readonly value: SourceValue;
}

export interface PolicyRule {
  readonly id: string;
  readonly priority: number;
  readonly when: readonly Condition[];
  readonly decision: string;
  readonly constraintType: string | undefined;
  readonly constraintParams: SourceObject | undefined;
  /** As the bundle writes it. */
  readonly confidence: string | undefined;
}

export interface PolicyBundle {
  readonly version: string | undefined;
  /** `bundle_hash` as it is stated; undefined where it is missing or empty. */
  readonly statedHash: string | undefined;
  /** SHA-256 over the host's form, 64 hexadecimal digits. */
  readonly computedHash: string;
  readonly rules: readonly PolicyRule[];
  /** By `action_type:risk_tier`. */
  readonly failModes: ReadonlyMap<string, string>;
}

/** Reads a policy bundle; undefined for what is not one: an object with a list `rules`. */
export function readPolicyBundle(value: SourceValue): PolicyBundle | undefined {
  if (!(value instanceof SourceObject)) return undefined;
  const list = listAt(value, 'rules');
  if (list === undefined || list.length > MAX_RULES) return undefined;
  const rules = list.map(readRule);
  if (rules.includes(undefined)) return undefined;
  const sorted = (rules as PolicyRule[]).sort(
    (a, b) => b.priority - a.priority || compareCodePoints(a.id, b.id),
  );
  const stated = textAt(value, 'bundle_hash');
  return {
    version: textAt(value, 'policy_version'),
    statedHash: stated === '' ? undefined : stated,
    computedHash: pythonSha256(asHashed(value), 'py-json-sorted-compact-ascii'),
    rules: sorted,
    failModes: readFailModes(value) ?? new Map(),
  };
}

/** The fail modes of a bundle (`fail_modes`), a registration (`fail_mode_table`) or a bare list of rows, by `action_type:risk_tier`. */
export function readFailModes(value: SourceValue): ReadonlyMap<string, string> | undefined {
  const rows =
    listAt(value, 'fail_mode_table') ??
    listAt(value, 'fail_modes') ??
    (Array.isArray(value) ? value : undefined);
  if (rows === undefined) return undefined;
  const modes = new Map<string, string>();
  for (const row of rows as readonly SourceValue[]) {
    const [action, tier, mode] = ['action_type', 'risk_tier', 'fail_mode'].map((name) => textAt(row, name));
    const key = `${action}:${tier}`;
    if (action !== undefined && tier !== undefined && mode !== undefined && !modes.has(key))
      modes.set(key, mode);
  }
  return modes;
}

function readRule(value: SourceValue): PolicyRule | undefined {
  const id = textAt(value, 'id');
  const decision = textAt(value, 'decision');
  const when = listAt(value, 'when') ?? [];
  const priority = Number(numberAt(value, 'priority') ?? '0');
  if (
    id === undefined ||
    decision === undefined ||
    when.length > MAX_CONDITIONS ||
    !Number.isFinite(priority)
  )
    return undefined;
  const conditions = when.map((each) => ({
    field: textAt(each, 'field') ?? '',
    op: textAt(each, 'op') ?? '',
    value: each instanceof SourceObject ? (each.get('value') ?? null) : null,
  }));
  return {
    id,
    priority,
    when: conditions,
    decision,
    constraintType: textAt(value, 'constraint', 'type'),
    constraintParams: objectAt(value, 'constraint', 'params'),
    confidence: numberAt(value, 'confidence'),
  };
}

/** The bundle as the host's own model writes it: what is left out has its default, what is not known is left out. */
function asHashed(bundle: SourceObject): SourceObject {
  const list = (name: string, make: (value: SourceValue) => SourceValue): readonly SourceValue[] =>
    (listAt(bundle, name) ?? []).map(make);
  return object({
    policy_version: bundle.get('policy_version') ?? null,
    rules: list('rules', (rule) =>
      object({
        id: member(rule, 'id', null),
        priority: member(rule, 'priority', new SourceNumber('0')),
        when: (listAt(rule, 'when') ?? []).map((condition) =>
          object({
            field: member(condition, 'field', null),
            op: member(condition, 'op', null),
            value: member(condition, 'value', null),
          }),
        ),
        decision: member(rule, 'decision', null),
        constraint: constraintOf(objectAt(rule, 'constraint')),
        audit: member(rule, 'audit', false),
        confidence: asFloat(member(rule, 'confidence', null)),
      }),
    ),
    fail_modes: list('fail_modes', (row) =>
      object({
        action_type: member(row, 'action_type', null),
        risk_tier: member(row, 'risk_tier', null),
        fail_mode: member(row, 'fail_mode', null),
        timeout_ms: member(row, 'timeout_ms', new SourceNumber('500')),
        rationale: member(row, 'rationale', ''),
      }),
    ),
  });
}

function constraintOf(constraint: SourceObject | undefined): SourceValue {
  if (constraint === undefined) return null;
  return object({ type: member(constraint, 'type', null), params: member(constraint, 'params', object({})) });
}

function asFloat(value: SourceValue): SourceValue {
  if (!(value instanceof SourceNumber) || !isPythonInt(value.text)) return value;
  return new SourceNumber(pythonFloat(Number(value.text)));
}

function object(members: Readonly<Record<string, SourceValue>>): SourceObject {
  return new SourceObject(new Map(Object.entries(members)));
}

function member(value: SourceValue, name: string, otherwise: SourceValue): SourceValue {
  return (value instanceof SourceObject ? value.get(name) : undefined) ?? otherwise;
}

/** What a decision is made about, as the host's own server puts it before its policy. */
interface PolicyInput {
  /** The members that rules can ask about, `proposal.tool_name`. */
  readonly fields: ReadonlyMap<string, SourceValue>;
  /** Whether the source says anything of `signals.…`. */
  readonly hasSignals: boolean;
}

/** The input of a proposal as requests and replay packs have it. */
export function policyInput(proposal: SourceObject, signals: SourceObject | undefined): PolicyInput {
  const params = objectAt(proposal, 'action_params');
  const cost = objectAt(proposal, 'estimated_cost');
  const zero = new SourceNumber('0');
  const of = (from: SourceObject | undefined, name: string, otherwise: SourceValue): SourceValue => {
    const inner = from?.get(name);
    return inner === undefined ? otherwise : inner;
  };
  const fields = new Map<string, SourceValue>([
    ['proposal.action_type', of(proposal, 'action_type', null)],
    ['proposal.tool_name', of(params, 'tool_name', '')],
    ['proposal.target_path', of(params, 'target_path', '')],
    ['proposal.size_bytes', of(params, 'size_bytes', zero)],
    ['proposal.sensitivity_hint', of(params, 'sensitivity_hint', 'medium')],
    ['proposal.risk_tier', of(proposal, 'risk_tier', 'medium')],
    ['proposal.estimated_cost.tokens', of(cost, 'tokens', zero)],
  ]);
  if (signals !== undefined) {
    const float = new SourceNumber('0.0');
    fields.set('signals.token_rate_60s', signals.get('token_rate') ?? float);
    fields.set('signals.error_rate', signals.get('error_rate') ?? float);
    fields.set('signals.avg_latency_ms', float);
  }
  return { fields, hasSignals: signals !== undefined };
}

export type PolicyResult =
  | { readonly decided: true; readonly rule: PolicyRule | undefined }
  /** A condition that is not decided is in the way; `by` is its rule. */
  | { readonly decided: false; readonly by: string };

/** The first rule that matches, by priority and then id; none means ALLOW. A member that is missing matches nothing. */
export function evaluatePolicy(
  bundle: PolicyBundle,
  input: PolicyInput,
  budget = new SearchBudget(),
): PolicyResult {
  budget.beginDecision();
  for (const rule of bundle.rules) {
    const results = rule.when.map((condition) => matches(condition, input, budget));
    if (results.includes(false)) continue;
    if (results.includes(undefined)) return { decided: false, by: rule.id };
    return { decided: true, rule };
  }
  return { decided: true, rule: undefined };
}

function matches(
  { field, op, value: target }: Condition,
  input: PolicyInput,
  budget: SearchBudget,
): boolean | undefined {
  const found = input.fields.get(field);
  if (found === undefined) return field.startsWith('signals.') && !input.hasSignals ? undefined : false;
  if (found === null) return false;
  switch (op) {
    case 'eq':
      return isEqual(found, target);
    case 'ne':
      return !isEqual(found, target);
    case 'in':
      return isIn(found, target) ?? false;
    case 'not_in':
      return !(isIn(found, target) ?? true);
    case 'contains':
      return isIn(target, found) ?? false;
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return isOrdered(op, compare(found, target));
    case 'regex':
      return typeof target === 'string' ? pythonSearch(target, asText(found), budget) : false;
    default:
      return false;
  }
}

function isOrdered(op: 'gt' | 'gte' | 'lt' | 'lte', order: number | undefined): boolean {
  if (order === undefined) return false;
  if (op === 'gt') return order > 0;
  if (op === 'gte') return order >= 0;
  return op === 'lt' ? order < 0 : order <= 0;
}

/** Python's `str`. */
function asText(value: SourceValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value instanceof SourceNumber) return pythonNumber(value.text);
  return pythonJson(value, 'py-json-unsorted-spaced-ascii');
}

/** Python's `in`; undefined where Python raises a TypeError. */
function isIn(value: SourceValue, container: SourceValue): boolean | undefined {
  if (typeof container === 'string') return typeof value === 'string' ? container.includes(value) : undefined;
  if (Array.isArray(container)) return (container as SourceValue[]).some((each) => isEqual(each, value));
  if (container instanceof SourceObject) return typeof value === 'string' && container.has(value);
  return undefined;
}

/** Python's `==`: numbers by value, `True` is 1. */
function isEqual(a: SourceValue, b: SourceValue): boolean {
  const [x, y] = [numberOf(a), numberOf(b)];
  if (x !== undefined || y !== undefined) return x !== undefined && y !== undefined && order(x, y) === 0;
  if (a instanceof SourceObject || b instanceof SourceObject) {
    if (!(a instanceof SourceObject && b instanceof SourceObject) || a.keys().length !== b.keys().length)
      return false;
    return a.entries().every(([name, each]) => b.has(name) && isEqual(each, b.get(name)!));
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return (a as SourceValue[]).every((each, i) => isEqual(each, (b as SourceValue[])[i]!));
  }
  return a === b;
}

/** Below, at or above 0; undefined where Python raises a TypeError. */
function compare(a: SourceValue, b: SourceValue): number | undefined {
  const [x, y] = [numberOf(a), numberOf(b)];
  if (x !== undefined && y !== undefined) return order(x, y);
  return typeof a === 'string' && typeof b === 'string' ? compareCodePoints(a, b) : undefined;
}

/** The text of a number as Python reads it; of True and False too. */
function numberOf(value: SourceValue): string | undefined {
  if (typeof value === 'boolean') return value ? '1' : '0';
  return value instanceof SourceNumber ? pythonNumber(value.text) : undefined;
}

/** Numbers as decimals: integers of any length are not doubles. Those that Python writes are at most a few hundred digits apart. */
function order(a: string, b: string): number {
  if (/[IN]/.test(a + b)) return Number(a) - Number(b) || (a === b ? 0 : 1);
  const [x, y] = [parseDecimal(a), parseDecimal(b)];
  if (x.negative !== y.negative && (x.digits !== '' || y.digits !== '')) return x.negative ? -1 : 1;
  const sign = x.negative ? -1 : 1;
  if (x.digits === '' || y.digits === '') return sign * (Number(x.digits !== '') - Number(y.digits !== ''));
  const size = x.digits.length + x.exponent - (y.digits.length + y.exponent);
  if (size !== 0) return sign * size;
  const length = Math.max(x.digits.length, y.digits.length);
  const [p, q] = [x.digits.padEnd(length, '0'), y.digits.padEnd(length, '0')];
  return p === q ? 0 : sign * (p < q ? -1 : 1);
}

/** Whether two values are the same for Python. */
export function isSameInPython(a: SourceValue, b: SourceValue): boolean {
  return isEqual(a, b);
}

/** Whether two number texts have the same value for Python. */
export function isSameNumber(a: string, b: string): boolean {
  return order(pythonNumber(a), pythonNumber(b)) === 0;
}
