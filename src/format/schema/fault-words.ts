/** The words for faults in the shape of an event: the member, what was expected, and a suggestion. */

import { didYouMean } from '../../base/bytes/did-you-mean.js';
import { printable } from '../../base/bytes/printable.js';
import type { ValueFault } from '../../base/fault.js';
import { quantityFromNumberText } from '../../base/value/quantity.js';
import { isKnownEventType } from './check.js';
import { SHAPES } from './generated/shapes.js';

const DIGEST = '"sha-256:…"';
const AMOUNT = '{"t":"int","v":"5"}';

/** Examples of members that are often missing. */
const EXAMPLES: Readonly<Record<string, string>> = {
  amount: AMOUNT,
  decision: '"allow"',
  decision_code: '"OK"',
  event_type: '"x.build"',
  intents: `{"intent_digest":${DIGEST}}`,
  meter_caps: `[{"unit":"usd","amount":${AMOUNT}}]`,
  meter_used: `[{"unit":"usd","amount":${AMOUNT}}]`,
  meters: `[{"unit":"usd","amount":${AMOUNT}}]`,
  occurred_at: '"2026-03-01T12:00:00Z"',
  outcome: '"success"',
  policy_id: '"manual"',
  principal_id: '"agent:a1"',
  tool_name: '"fs.read"',
  unit: '"usd"',
};

/** The places of quantities; elsewhere JSON numbers may be valid. */
const QUANTITY = /\/(?:amount|concurrency_limit)$/;

/** The members that are digests, event ids included. */
const DIGEST_MEMBER = /(?:^|_)(?:digest|event_id)$|^ledger_id$/;

/** The name of a type's schema; undefined for a type without one. */
export function schemaOfEventType(type: unknown): string | undefined {
  if (typeof type !== 'string' || !isKnownEventType(type)) return undefined;
  return type === 'key' ? 'key-event' : type;
}

/**
 * A fault in words, with its place and a suggestion if there is one: lower case, no full stop, printable.
 *
 * @param eventType - The event's type, whose members are suggested for an unknown one.
 */
export function describeFault({ pointer, expected, actual }: ValueFault, eventType?: unknown): string {
  const place = pointer === '' ? 'the event' : printable(pointer.slice(1));
  const name = unescape(pointer.slice(pointer.lastIndexOf('/') + 1));
  if (expected === 'no such member') {
    const meant = didYouMean(name, membersOf(schemaOfEventType(eventType) ?? 'event'));
    const within = pointer.slice(1, Math.max(1, pointer.lastIndexOf('/')));
    const where = within === '' ? '' : ` in ${printable(within)}`;
    return `unknown member "${printable(name, 80)}"${where}${meant === undefined ? '' : `, ${meant}`}`;
  }
  const example = EXAMPLES[name] ?? (DIGEST_MEMBER.test(name) ? DIGEST : undefined);
  const [, type] = /^present(?: \((.*)\))?$/.exec(expected) ?? [];
  if (expected.startsWith('present')) {
    const form = example === undefined ? (type === undefined ? '' : ` (${type})`) : `, such as ${example}`;
    const instead = actual === 'absent' ? '' : `; found ${printable(actual)}, did you mean ${name}?`;
    return `${place} is missing${form}${instead}`;
  }
  const found = `found ${printable(actual)}`;
  const number = /^-?\d[\d.eE+-]*$/.test(actual) && QUANTITY.test(pointer) ? toQuantity(actual) : undefined;
  if (number !== undefined) return `${place}: ${found}, write the amount as ${number}`;
  if (expected === 'an object' && example === DIGEST)
    return `${place}: expected a digest such as ${DIGEST}, ${found}`;
  return `${place}: expected ${printable(expected)}, ${found}`;
}

function toQuantity(text: string): string | undefined {
  try {
    return JSON.stringify(quantityFromNumberText(text));
  } catch {
    return undefined;
  }
}

/** All member names in a schema, at any depth. */
function membersOf(schema: string): readonly string[] {
  const names = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    for (const [name, value] of Object.entries(node)) {
      if (name === 'properties') for (const member of Object.keys(value as object)) names.add(member);
      visit(value);
    }
  };
  visit(SHAPES[schema]);
  visit(SHAPES['common']);
  return [...names];
}

function unescape(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}
