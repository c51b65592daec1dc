/** What is wrong with JSON from outside, in words. */

import type { IngestCode, Ingested, IngestIssue } from '../base/json/ingest.js';
import { CommandError } from './command-error.js';

const WORDS: Readonly<Record<IngestCode, string>> = {
  INVALID_UTF8: 'the text is not valid UTF-8',
  BYTE_ORDER_MARK: 'the text starts with a byte order mark',
  NOT_JSON: 'the text is not JSON',
  NESTING_TOO_DEEP: 'the JSON is nested more than 64 deep',
  DUPLICATE_KEYS: 'an object has the same key twice',
  LONE_SURROGATE: 'a string has a lone surrogate',
  NON_FINITE_NUMBER: 'a number is too large for a double',
  UNSAFE_INTEGER: 'an integer is beyond ±(2^53−1), where JSON numbers are not exact',
  NEGATIVE_ZERO: 'a number is -0, which canonical JSON has not',
  NUMBER_INEXACT: 'a number has more digits than can be kept',
  NUMBER_COERCED: 'a number was turned into a quantity',
};

/** What to do about it, where the form of the whole text is not in question. */
const HINTS: Readonly<Partial<Record<IngestCode, string>>> = {
  DUPLICATE_KEYS: 'keep one of the two',
  NON_FINITE_NUMBER: 'write it as a string, or an amount as a quantity',
  UNSAFE_INTEGER: 'write it as a string, or an amount as a quantity: {"t":"int","v":"9007199254740993"}',
  NEGATIVE_ZERO: 'write 0',
  NUMBER_INEXACT: 'write it as a string, or an amount as a quantity: {"t":"dec","m":"125","s":2}',
};

/** The first of what made it Ambiguous or Invalid. */
export function firstIssue({ issues }: Ingested): IngestIssue {
  return issues.find(({ code }) => code !== 'NUMBER_COERCED') ?? { code: 'NOT_JSON', offset: 0, pointer: '' };
}

/**
 * Why {@link Ingested} has no value, and where.
 *
 * @param where - What the place is called; by default the byte.
 */
export function ingestError(
  ingested: Ingested,
  hint: string | ((offset: number) => string),
  where = `byte ${firstIssue(ingested).offset}`,
): CommandError {
  const { code, offset, pointer } = firstIssue(ingested);
  const at = pointer === '' ? '' : ` at ${pointer}`;
  return new CommandError(code, `${WORDS[code]}${at} (${where})`, {
    hint: HINTS[code] ?? (typeof hint === 'string' ? hint : hint(offset)),
  });
}
