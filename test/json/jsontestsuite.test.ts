/** JSONTestSuite (github.com/nst/JSONTestSuite): every text, with the verdict that SPEC §1 gives it, frozen. */

import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { diagnoseCanonical } from '../../src/base/json/diagnose.js';
import { ingestJson } from '../../src/base/json/ingest.js';
import { scanCanonical } from '../../src/base/json/scan.js';
import { hasVectors, listVectors, readVector } from './vectors.js';

const PARSING = 'jsontestsuite/test_parsing';
const TRANSFORM = 'jsontestsuite/test_transform';

/** The codes that `ingestJson` gives to texts of kind y, where it gives any. */
const ACCEPTED_EXCEPT: Record<string, string> = {
  'y_number_minus_zero.json': 'Invalid NEGATIVE_ZERO',
  'y_number_negative_zero.json': 'Invalid NEGATIVE_ZERO',
  'y_object_duplicated_key.json': 'Ambiguous DUPLICATE_KEYS',
  'y_object_duplicated_key_and_value.json': 'Ambiguous DUPLICATE_KEYS',
};

/** The same of kind n, where it is not NOT_JSON alone. */
const REFUSED_OTHERWISE: Record<string, string> = {
  'n_array_a_invalid_utf8.json': 'Invalid INVALID_UTF8',
  'n_array_invalid_utf8.json': 'Invalid INVALID_UTF8',
  'n_number_invalid-utf-8-in-bigger-int.json': 'Invalid INVALID_UTF8',
  'n_number_invalid-utf-8-in-exponent.json': 'Invalid INVALID_UTF8',
  'n_number_invalid-utf-8-in-int.json': 'Invalid INVALID_UTF8',
  'n_number_real_with_invalid_utf8_after_e.json': 'Invalid INVALID_UTF8',
  'n_object_lone_continuation_byte_in_key_and_trailing_comma.json': 'Invalid INVALID_UTF8',
  'n_string_invalid-utf-8-in-escape.json': 'Invalid INVALID_UTF8',
  'n_string_invalid_utf8_after_escape.json': 'Invalid INVALID_UTF8',
  'n_structure_100000_opening_arrays.json': 'Invalid NESTING_TOO_DEEP',
  'n_structure_UTF8_BOM_no_data.json': 'Invalid BYTE_ORDER_MARK NOT_JSON',
  'n_structure_incomplete_UTF8_BOM.json': 'Invalid INVALID_UTF8',
  'n_structure_lone-invalid-utf-8.json': 'Invalid INVALID_UTF8',
  'n_structure_open_array_object.json': 'Invalid NESTING_TOO_DEEP',
  'n_structure_single_eacute.json': 'Invalid INVALID_UTF8',
};

/** The texts of kind i, by outcome: all are refused. */
const IMPLEMENTATION_DEFINED: Record<string, string[]> = {
  'Invalid NUMBER_INEXACT': ['number_double_huge_neg_exp', 'number_real_underflow'],
  'Invalid NON_FINITE_NUMBER': [
    'number_huge_exp',
    'number_neg_int_huge_exp',
    'number_pos_double_huge_exp',
    'number_real_neg_overflow',
    'number_real_pos_overflow',
  ],
  'Invalid UNSAFE_INTEGER': [
    'number_too_big_neg_int',
    'number_too_big_pos_int',
    'number_very_big_negative_int',
  ],
  'Invalid LONE_SURROGATE': [
    'object_key_lone_2nd_surrogate',
    'string_1st_surrogate_but_2nd_missing',
    'string_1st_valid_surrogate_2nd_invalid',
    'string_incomplete_surrogate_and_escape_valid',
    'string_incomplete_surrogate_pair',
    'string_incomplete_surrogates_escape_valid',
    'string_invalid_lonely_surrogate',
    'string_invalid_surrogate',
    'string_inverted_surrogates_U+1D11E',
    'string_lone_second_surrogate',
  ],
  'Invalid INVALID_UTF8': [
    'string_UTF-16LE_with_BOM',
    'string_UTF-8_invalid_sequence',
    'string_UTF8_surrogate_U+D800',
    'string_invalid_utf-8',
    'string_iso_latin_1',
    'string_lone_utf8_continuation_byte',
    'string_not_in_unicode_range',
    'string_overlong_sequence_2_bytes',
    'string_overlong_sequence_6_bytes',
    'string_overlong_sequence_6_bytes_null',
    'string_truncated-utf-8',
    'string_utf16BE_no_BOM',
    'string_utf16LE_no_BOM',
  ],
  'Invalid NESTING_TOO_DEEP': ['structure_500_nested_arrays'],
  'Invalid BYTE_ORDER_MARK': ['structure_UTF-8_BOM_empty_object'],
};

/** test_transform: the outcome in each mode for numbers. */
const TRANSFORMED: Record<string, [exact: string, double: string, quantity: string]> = {
  'number_-9223372036854775808.json': [
    'Invalid UNSAFE_INTEGER',
    'Invalid UNSAFE_INTEGER',
    'Lossy NUMBER_COERCED',
  ],
  'number_-9223372036854775809.json': [
    'Invalid UNSAFE_INTEGER',
    'Invalid UNSAFE_INTEGER',
    'Lossy NUMBER_COERCED',
  ],
  'number_1.0.json': ['Ok', 'Ok', 'Lossy NUMBER_COERCED'],
  'number_1.000000000000000005.json': [
    'Invalid NUMBER_INEXACT',
    'Lossy NUMBER_INEXACT',
    'Lossy NUMBER_COERCED',
  ],
  'number_1000000000000000.json': ['Ok', 'Ok', 'Lossy NUMBER_COERCED'],
  'number_10000000000000000999.json': [
    'Invalid UNSAFE_INTEGER',
    'Invalid UNSAFE_INTEGER',
    'Lossy NUMBER_COERCED',
  ],
  'number_1e-999.json': ['Invalid NUMBER_INEXACT', 'Lossy NUMBER_INEXACT', 'Invalid NUMBER_INEXACT'],
  'number_1e6.json': ['Ok', 'Ok', 'Lossy NUMBER_COERCED'],
  'number_9223372036854775807.json': [
    'Invalid UNSAFE_INTEGER',
    'Invalid UNSAFE_INTEGER',
    'Lossy NUMBER_COERCED',
  ],
  'number_9223372036854775808.json': [
    'Invalid UNSAFE_INTEGER',
    'Invalid UNSAFE_INTEGER',
    'Lossy NUMBER_COERCED',
  ],
  'object_key_nfc_nfd.json': ['Ok', 'Ok', 'Ok'],
  'object_key_nfd_nfc.json': ['Ok', 'Ok', 'Ok'],
  'object_same_key_different_values.json': [
    'Ambiguous DUPLICATE_KEYS',
    'Ambiguous DUPLICATE_KEYS',
    'Ambiguous DUPLICATE_KEYS NUMBER_COERCED',
  ],
  'object_same_key_same_value.json': [
    'Ambiguous DUPLICATE_KEYS',
    'Ambiguous DUPLICATE_KEYS',
    'Ambiguous DUPLICATE_KEYS NUMBER_COERCED',
  ],
  'object_same_key_unclear_values.json': [
    'Invalid DUPLICATE_KEYS NEGATIVE_ZERO',
    'Invalid DUPLICATE_KEYS NEGATIVE_ZERO',
    'Ambiguous DUPLICATE_KEYS NEGATIVE_ZERO NUMBER_COERCED',
  ],
  'string_1_escaped_invalid_codepoint.json': allModes('Invalid LONE_SURROGATE'),
  'string_1_invalid_codepoint.json': allModes('Invalid INVALID_UTF8'),
  'string_2_escaped_invalid_codepoints.json': allModes('Invalid LONE_SURROGATE'),
  'string_2_invalid_codepoints.json': allModes('Invalid INVALID_UTF8'),
  'string_3_escaped_invalid_codepoints.json': allModes('Invalid LONE_SURROGATE'),
  'string_3_invalid_codepoints.json': allModes('Invalid INVALID_UTF8'),
  'string_with_escaped_NULL.json': ['Ok', 'Ok', 'Ok'],
};

function allModes(outcome: string): [string, string, string] {
  return [outcome, outcome, outcome];
}

function outcomeOf(bytes: Uint8Array, numbers: 'exact' | 'double' | 'quantity' = 'exact'): string {
  const { report } = ingestJson(bytes, { numbers });
  return [report.status, ...report.warnings].join(' ');
}

function expectedOf(name: string): string {
  if (name.startsWith('y_')) return ACCEPTED_EXCEPT[name] ?? 'Ok';
  if (name.startsWith('n_')) return REFUSED_OTHERWISE[name] ?? 'Invalid NOT_JSON';
  const stem = name.slice('i_'.length, -'.json'.length);
  return Object.entries(IMPLEMENTATION_DEFINED).find(([, stems]) => stems.includes(stem))?.[0] ?? 'undecided';
}

describe.skipIf(!hasVectors(PARSING))('test_parsing', () => {
  const names = listVectors(PARSING);

  test('is there whole', () => {
    expect(names).toHaveLength(318);
  });

  test.each(names)('%s has its verdict', (name) => {
    const bytes = readVector(`${PARSING}/${name}`);
    expect(outcomeOf(bytes)).toBe(expectedOf(name));
    const { value, issues } = ingestJson(bytes);
    if (expectedOf(name) === 'Ok') {
      expect(isDeepStrictEqual(value, JSON.parse(bytes.toString()))).toBe(true);
      const canonical = canonicalBytes(value);
      expect(scanCanonical(canonical, 0, canonical.length)).toBe(-1);
    } else {
      expect(value).toBeUndefined();
      expect(issues.length).toBeGreaterThan(0);
    }
    expect(scanCanonical(bytes, 0, bytes.length) === -1).toBe(diagnoseCanonical(bytes) === undefined);
    if (!name.startsWith('y_')) expect(diagnoseCanonical(bytes)).toBeDefined();
  });
});

describe.skipIf(!hasVectors(TRANSFORM))('test_transform', () => {
  const names = listVectors(TRANSFORM);

  test('is there whole', () => {
    expect(names).toEqual(Object.keys(TRANSFORMED).sort());
  });

  test.each(names)('%s is read in each mode as expected', (name) => {
    const bytes = readVector(`${TRANSFORM}/${name}`);
    const outcomes = (['exact', 'double', 'quantity'] as const).map((numbers) => outcomeOf(bytes, numbers));
    expect(outcomes).toEqual(TRANSFORMED[name]);
  });
});
