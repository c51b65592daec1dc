/** Whether an answer is the expected one; in words where not. */

import { printable } from './printable.js';

/** Of reports not compared: what is in words, or names the implementation. */
const IN_WORDS = new Set(['message', 'expected', 'actual', 'amounts', 'decimals']);

/**
 * What differs first, or undefined. Members that are not expected are ignored; an expected null is met by absence.
 * `{"$oneOf":[…]}` is met by each of its values, `{"$type":…}` by every value of that type of JavaScript.
 */
export function findDifference(expected, actual, path = '') {
  if (expected === null)
    return actual === null || actual === undefined ? undefined : tell(path, expected, actual);
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return tell(path, expected, actual);
    for (const [index, item] of expected.entries()) {
      if (index >= actual.length) return tell(`${path}/${index}`, item, undefined);
      const found = findDifference(item, actual[index], `${path}/${index}`);
      if (found !== undefined) return found;
    }
    return actual.length === expected.length
      ? undefined
      : tell(`${path}/${expected.length}`, undefined, actual[expected.length]);
  }
  if (typeof expected !== 'object')
    return Object.is(expected, actual) ? undefined : tell(path, expected, actual);
  if ('$type' in expected) return typeof actual === expected.$type ? undefined : tell(path, expected, actual);
  if ('$oneOf' in expected) {
    const isOne = expected.$oneOf.some((each) => findDifference(each, actual, path) === undefined);
    return isOne ? undefined : tell(path, expected.$oneOf, actual);
  }
  if (typeof actual !== 'object' || actual === null || Array.isArray(actual))
    return tell(path, expected, actual);
  for (const [name, value] of Object.entries(expected)) {
    const found = findDifference(
      value,
      Object.hasOwn(actual, name) ? actual[name] : undefined,
      `${path}/${name}`,
    );
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What differs first between two reports, or undefined: every member that is contract is compared. */
export function findReportDifference(expected, actual) {
  const own = comparableReport(expected);
  const given = comparableReport(actual);
  return findDifference(own, given, '/report') ?? findAddition(own, given, '/report');
}

/** The first member that is not expected; what is given holds no patterns, whatever its names are. Null is as absence. */
function findAddition(expected, given, path) {
  if (given === null || typeof given !== 'object') return undefined;
  for (const [name, value] of Object.entries(given)) {
    const isThere = typeof expected === 'object' && expected !== null && Object.hasOwn(expected, name);
    if (!isThere && value !== null) return tell(`${path}/${name}`, undefined, value);
    const found = isThere ? findAddition(expected[name], value, `${path}/${name}`) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A report without what is no contract. */
export function comparableReport(report) {
  const { tool, ...rest } = strip(report) ?? {};
  void tool;
  if (typeof rest.ledger === 'object' && rest.ledger !== null) delete rest.ledger.paths;
  if (Array.isArray(rest.not_checked)) rest.not_checked = rest.not_checked.map((each) => each?.code ?? each);
  return rest;
}

function strip(value) {
  if (Array.isArray(value)) return value.map((item) => strip(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, item]) => !IN_WORDS.has(name) && item !== undefined)
      .map(([name, item]) => [name, strip(item)]),
  );
}

function tell(path, expected, actual) {
  const shown = (value) => (value === undefined ? 'nothing' : printable(JSON.stringify(value), 200));
  return `${printable(path) || 'the result'}: expected ${shown(expected)}, got ${shown(actual)}`;
}
