/** Findings of hosts as sentences: the one place where they become words. */

import { printable } from '../../base/bytes/printable.js';
import type { HostFinding } from './host.js';

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
