/** Rules and findings of hosts as tables. A finding's row has what is the same each time; the caller adds the place and the rest. */

import { printable } from '../../base/bytes/printable.js';
import type { HostFinding, HostPlace, HostRule } from './host.js';

/**
 * How much a finding weighs. `undecided`: a tool ran, and nothing in the files says that it was allowed. Evidence is missing then, as
 * AUTH_NOT_FOUND says of the ledger; where a ledger has the decision, a reconciliation does not count it.
 */
const WEIGHTS = {
  violation: { severity: 'error', class: 'violation' },
  invalid: { severity: 'error', class: 'invalid' },
  undecided: { severity: 'error', class: 'invalid', lacks: 'decision' },
  warning: { severity: 'warning', class: 'none' },
  info: { severity: 'info', class: 'none' },
} as const satisfies Readonly<Record<string, Pick<HostFinding, 'severity' | 'class' | 'lacks'>>>;

export type Weight = keyof typeof WEIGHTS;

/** The rule, the weight, and what is expected and found where that is the same each time. */
type Row = readonly [rule: string, weight: Weight, expected?: string | undefined, actual?: string];

/** What a call adds to the table, or says instead of it. */
export interface FindingDetails extends Partial<
  Pick<HostFinding, 'about' | 'expected' | 'actual' | 'related'>
> {
  readonly rule?: string;
  readonly weight?: Weight;
}

/** A finding whose code no table has: it comes from a fault that was found elsewhere. */
export function findingOf(
  rule: string,
  weight: Weight,
  code: string,
  at: HostPlace,
  details: Omit<FindingDetails, 'rule' | 'weight'>,
): HostFinding {
  return { rule, code, ...WEIGHTS[weight], at, ...details };
}

/** A function that makes findings of the codes of a table. */
export function findingsOf<Code extends string>(
  table: Readonly<Record<Code, Row>>,
): (code: Code, at: HostPlace, details?: FindingDetails) => HostFinding {
  return (code, at, details = {}) => {
    const [rule, weight, expected, actual] = table[code];
    const { rule: ownRule = rule, weight: ownWeight = weight, ...own } = details;
    const said = { expected: own.expected ?? expected, actual: own.actual ?? actual };
    return { rule: ownRule, code, ...WEIGHTS[ownWeight], at, ...own, ...said };
  };
}

/** Rules from their statements by id; of a rule that files cannot decide, the statement and the reason. */
export function rulesOf(
  statements: Readonly<Record<string, string | readonly [statement: string, undecidable: string]>>,
): readonly HostRule[] {
  return Object.entries(statements).map(([id, text]) =>
    typeof text === 'string' ? { id, statement: text } : { id, statement: text[0], undecidable: text[1] },
  );
}

const CLASSES = ['invalid', 'violation', 'none'] as const;
const SEVERITIES = ['error', 'warning', 'info'] as const;
export const RANKS = SEVERITIES.length * CLASSES.length;

/** Worst first: errors before warnings, and invalid before violation. */
export function rankOf({ severity, class: of }: Pick<HostFinding, 'severity' | 'class'>): number {
  return SEVERITIES.indexOf(severity) * CLASSES.length + CLASSES.indexOf(of);
}

const MAX_VALUE = 200;

/** The sentence of a finding, printable. What its rule says must hold stands with the rule. */
export function describeHostFinding(finding: HostFinding): string {
  const { code, about, expected, actual } = finding;
  const what = code.toLowerCase().replaceAll('_', ' ');
  return [
    about === undefined ? what : `${what}: ${printable(about, MAX_VALUE)}`,
    ...(expected === undefined ? [] : [`; expected ${printable(expected, MAX_VALUE)}`]),
    ...(actual === undefined ? [] : [`; found ${actual === '' ? 'nothing' : printable(actual, MAX_VALUE)}`]),
  ].join('');
}
