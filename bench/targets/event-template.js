/**
 * Events by the million: each kind is built once by northroot, and others of its kind are made by putting values into that text. What is
 * put in is as long as what it replaces, or plain ASCII, so the text stays canonical.
 */

import { hash, sign } from 'node:crypto';
import { buildEvent, canonicalBytes } from '../../dist/api/index.js';
import { PAYLOAD_TYPE } from '../../dist/api/internals.js';

const EVENT_ID_PREFIX = 'northroot:event:v1\0';
/** Stands for a digest in a draft; no other digest has it. */
export const slotDigest = (name) => ({
  alg: 'sha-256',
  b64: `${name.padEnd(20, '_')}SLOT${'_'.repeat(18)}A`,
});
/** Stands for a time in a draft. */
export const slotTime = (number) => `20${String(number).padStart(2, '0')}-11-11T11:11:11.111Z`;

/** Makes the events of one kind. */
export class EventTemplate {
  #whole;
  #payload;

  /** @param slots - The names of the values, by the text that stands for each in the draft. */
  constructor(draft, ledgerId, slots) {
    const text = Buffer.from(canonicalBytes(buildEvent(draft, { ledgerId }))).toString();
    const [id, digest] = ['event_id', 'payload_digest'].map(
      (member) => new RegExp(`"${member}":\\{"alg":"sha-256","b64":"([^"]{43})"\\},`).exec(text) ?? fail(),
    );
    // Of links to other events there are slots too, so these two are found by their own values.
    this.#whole = cut(text, { ...slots, [id[1]]: 'eventId', [digest[1]]: 'payloadDigest' });
    this.#payload = cut(text.replace(id[0], '').replace(digest[0], ''), slots);
  }

  /** The event's text, and its id. */
  make(values) {
    const payload = fill(this.#payload, values);
    const payloadDigest = hash('sha256', payload, 'base64url');
    const eventId = hash('sha256', EVENT_ID_PREFIX + payload, 'base64url');
    return { text: fill(this.#whole, { ...values, eventId, payloadDigest }), eventId };
  }
}

/** The `signatures` of a record with this event. */
export function signaturesOf(text, { keyid, privateKey } = {}) {
  if (privateKey === undefined) return '[]';
  const message = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${text.length} ${text}`;
  const sig = sign(null, Buffer.from(message, 'latin1'), privateKey).toString('base64url');
  return `[{"keyid":"${keyid}","sig":"${sig}"}]`;
}

/** The text as its fixed parts with the names of what stands between them. */
function cut(text, slots) {
  const places = Object.entries(slots).map(([mark, name]) => ({ mark, name, at: text.indexOf(mark) }));
  for (const { mark, at } of places) if (at === -1 || text.indexOf(mark, at + 1) !== -1) fail();
  places.sort((a, b) => a.at - b.at);
  const fixed = [];
  let from = 0;
  for (const { mark, at } of places) {
    fixed.push(text.slice(from, at));
    from = at + mark.length;
  }
  return { fixed, names: places.map(({ name }) => name), last: text.slice(from) };
}

function fill({ fixed, names, last }, values) {
  let text = '';
  for (let i = 0; i < names.length; i += 1) text += fixed[i] + values[names[i]];
  return text + last;
}

function fail() {
  throw new Error('the event is not as the template needs it');
}
