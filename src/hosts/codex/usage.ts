/** What answers of models used: totals that are told again and again, and what the last answer added to them. */

import type { SourceObject } from '../../base/json/source-json.js';
import { countIn, numberTextOf, objectAt } from '../shared/values.js';

/** Amounts of one kind of tokens each; those that are not stated are left out. */
export type Tokens = Readonly<Record<string, bigint>>;

/** Input has the cached tokens within it, output those of reasoning. */
export const TOKENS = [
  'input_tokens',
  'cached_input_tokens',
  'cache_write_input_tokens',
  'output_tokens',
  'reasoning_output_tokens',
  'total_tokens',
] as const;

export interface UsageFault {
  readonly code: 'AMOUNT_INVALID' | 'PART_EXCEEDS_TOTAL' | 'USAGE_DISAGREES';
  readonly expected: string;
  readonly actual: string;
}

export class UsageCount {
  readonly #isFork: boolean;
  #total: Tokens | undefined;

  constructor(isFork: boolean) {
    this.#isFork = isFork;
  }

  /** What was used before the session's own lines. */
  skip(info: SourceObject): void {
    this.#total = tokensOf(info, 'total_token_usage', []) ?? this.#total;
  }

  /** What an event adds; undefined where it adds nothing. What does not agree is put into `faults`. */
  add(info: SourceObject, faults: UsageFault[]): Tokens | undefined {
    const total = tokensOf(info, 'total_token_usage', faults);
    const last = tokensOf(info, 'last_token_usage', faults);
    if (faults.some(({ code }) => code === 'AMOUNT_INVALID')) return undefined;
    for (const each of [total, last]) if (each !== undefined) findParts(each, faults);
    if (total === undefined) {
      faults.push({ ...DISAGREES, expected: 'total_token_usage', actual: 'none' });
      return last;
    }
    const before = this.#total;
    this.#total = total;
    // A fork's first total has what its parent used within it.
    if (before === undefined && this.#isFork) return last ?? total;
    const grown = minus(total, before ?? {});
    if (isZero(grown)) return undefined;
    if (grown === undefined) {
      // A context window that is full sets the total to its size, which nobody used.
      if (last === undefined || isZero(last, ['total_tokens'])) return undefined;
      faults.push({ ...DISAGREES, expected: 'a total that grows', actual: 'it fell' });
      return last;
    }
    if (last !== undefined && !isZero(minus(grown, last)))
      faults.push({ ...DISAGREES, expected: `total grown by ${shown(last)}`, actual: `by ${shown(grown)}` });
    return grown;
  }
}

const DISAGREES = { code: 'USAGE_DISAGREES' } as const;

function tokensOf(info: SourceObject, name: string, faults: UsageFault[]): Tokens | undefined {
  const stated = objectAt(info, name);
  if (stated === undefined) return undefined;
  const tokens: Record<string, bigint> = {};
  for (const member of TOKENS) {
    const value = stated.get(member);
    if (value === undefined || value === null) continue;
    const amount = countIn(value);
    const expected = `${name}.${member}, a whole number that is not negative`;
    if (amount === undefined) faults.push({ code: 'AMOUNT_INVALID', expected, actual: numberTextOf(value) });
    else tokens[member] = BigInt(amount.v);
  }
  return tokens;
}

function findParts(tokens: Tokens, faults: UsageFault[]): void {
  for (const [part, whole] of [
    ['cached_input_tokens', 'input_tokens'],
    ['reasoning_output_tokens', 'output_tokens'],
  ] as const) {
    const [a, b] = [tokens[part], tokens[whole]];
    if (
      a === undefined ||
      b === undefined ||
      a <= b ||
      faults.some(({ code }) => code === 'PART_EXCEEDS_TOTAL')
    )
      continue;
    faults.push({
      code: 'PART_EXCEEDS_TOTAL',
      expected: `${part} within ${whole}`,
      actual: `${a} of ${b}`,
    });
  }
}

/** The difference; undefined where anything fell. */
function minus(one: Tokens, other: Tokens): Tokens | undefined {
  const difference: Record<string, bigint> = {};
  for (const name of TOKENS) {
    const is = one[name];
    if (is === undefined) continue;
    const left = is - (other[name] ?? 0n);
    if (left < 0n) return undefined;
    difference[name] = left;
  }
  return difference;
}

function isZero(tokens: Tokens | undefined, but: readonly string[] = []): boolean {
  return (
    tokens !== undefined &&
    Object.entries(tokens).every(([name, amount]) => amount === 0n || but.includes(name))
  );
}

function shown(tokens: Tokens): string {
  return TOKENS.flatMap((name) => (tokens[name] === undefined ? [] : [`${name} ${tokens[name]}`])).join(', ');
}
