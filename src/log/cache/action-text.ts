/** An action as an index entry: a JSON list, shorter and faster to write than an object. */

import { toDigestText } from '../../base/value/digest.js';
import type { Rational } from '../../base/value/rational.js';
import type { Action } from '../../rules/bounds/grant.js';
import type { ActionForm } from '../../rules/verify/state-form.js';
import { encodeText, type FileNames } from './codec.js';
import { IndexFault } from './entry-store.js';
import { isCount } from './tables.js';

const AMOUNT = /^(-?\d{1,4096})(?:\/(\d{1,4096}))?$/;
/** The list's length before the amounts, which are pairs of unit and amount. */
const MEMBERS = 14;

/** @param id - base64url */
export function encodeAction(id: string, action: Action, names: FileNames): string {
  const { place, decision, principalId, occurredAt, intent, userIntent, grant, toolName, params } = action;
  const isOwn = place.eventId === toDigestText(id);
  let text = `[${encodeText(names.toIndex(place.file))},${place.line},${place.seq},${isOwn ? '0' : encodeText(place.eventId)}`;
  text += `,${decision === 'allow' ? 1 : 0},${grant === undefined ? -1 : grant.index}`;
  text += `,${encodeText(principalId)},${encodeText(toolName)},${encodeText(occurredAt)}`;
  text += `,${encodeText(intent)},${userIntent === undefined ? '0' : encodeText(userIntent)},${encodeText(params)}`;
  for (const each of [action.expiresAt, action.system])
    text += `,${each === undefined ? '0' : encodeText(each)}`;
  for (const [unit, amount] of action.reservation) text += `,${encodeText(unit)},"${textOfAmount(amount)}"`;
  return `${text}]`;
}

/** @throws IndexFault when malformed */
export function decodeAction(id: string, form: unknown, names: FileNames): ActionForm {
  if (!Array.isArray(form) || form.length < MEMBERS || form.length % 2 !== 0) throw malformed();
  const list = form as readonly unknown[];
  const [file, line, seq, eventId, allows, grant, ...texts] = list.slice(0, MEMBERS);
  const [principalId, toolName, occurredAt, intent, userIntent, params, expiresAt, system] = texts.map(
    (each, index) => (each === 0 && OPTIONAL.has(index) ? undefined : textOf(each)),
  ) as [string, string, string, string, string | undefined, string, string | undefined, string | undefined];
  if (!isCount(line) || !isCount(seq) || !Number.isSafeInteger(grant)) throw malformed();
  const reservation = new Map<string, Rational>();
  for (let at = MEMBERS; at < list.length; at += 2)
    reservation.set(textOf(list[at]), amountOf(textOf(list[at + 1])));
  return {
    place: {
      file: names.fromIndex(textOf(file)),
      line,
      seq,
      eventId: eventId === 0 ? toDigestText(id) : textOf(eventId),
    },
    decision: allows === 1 ? 'allow' : 'deny',
    principalId,
    occurredAt,
    intent,
    userIntent,
    toolName,
    params,
    reservation,
    expiresAt,
    system,
    grant: grant === -1 ? undefined : (grant as number),
  };
}

/** The user's intent, expiry and system, by their place among the texts. */
const OPTIONAL: ReadonlySet<number> = new Set([4, 6, 7]);

function textOfAmount({ n, d }: Rational): string {
  return d === 1n ? String(n) : `${n}/${d}`;
}

function amountOf(text: string): Rational {
  const [, n, d = '1'] = AMOUNT.exec(text) ?? [];
  if (n === undefined) throw malformed();
  return { n: BigInt(n), d: BigInt(d) };
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw malformed();
  return value;
}

function malformed(): IndexFault {
  return new IndexFault('the entry of an action is malformed');
}
