/** Events of grants, actions and executions, all in `usd` unless told otherwise, and a checkpoint that a user has kept. */

import { type AnyEvent, type Signer } from '../../src/api/index.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { signNote } from '../../src/format/note/note-key.js';
import { formatNote } from '../../src/format/note/signed-note.js';
import { appendLeaf, emptyRange, leafHash, rangeRoot } from '../../src/format/tree/compact-range.js';
import { DIGEST, event, genesis, ledger } from './ledger-kit.js';

export const int = (value: number) => ({ t: 'int', v: String(value) });
export const usd = (value: number) => [{ unit: 'usd', amount: int(value) }];

/** What allows `authorized`, which is a grant's or an action's. */
export function authorization(authorized: object, members: object = {}): AnyEvent {
  return event('authorization', {
    intents: { intent_digest: DIGEST },
    policy_id: 'p',
    policy_digest: DIGEST,
    decision: 'allow',
    decision_code: 'CODE',
    authorization: authorized,
    ...members,
  });
}

const under = (parent: AnyEvent | undefined) =>
  parent === undefined ? {} : { grant_event_id: parent.event_id };

/** A grant of ten `usd` for every tool, but for what is given. */
export function grant(bounds: object = {}, parent?: AnyEvent, members: object = {}): AnyEvent {
  const whole = { allowed_tools: ['*'], meter_caps: usd(10), ...bounds };
  return authorization({ kind: 'grant', bounds: whole, ...under(parent) }, members);
}

export function action(parent: AnyEvent | undefined, reservation: number, members: object = {}): AnyEvent {
  const fixed = { tool_name: 'fs.read', tool_params_digest: DIGEST, meter_reservation: usd(reservation) };
  return authorization({ kind: 'action', ...under(parent), action: fixed }, members);
}

export function execution(on: AnyEvent, used: number, members: object = {}): AnyEvent {
  return event('execution', {
    intents: { intent_digest: DIGEST },
    auth_event_id: on.event_id,
    tool_name: 'fs.read',
    tool_params_digest: DIGEST,
    meter_used: used === 0 ? [] : usd(used),
    outcome: 'success',
    ...members,
  });
}

/** Genesis without keys, and events that nobody signed. */
export function unsigned(...events: readonly object[]): Buffer {
  return ledger(...[genesis(), ...events].map((each) => ({ event: each as AnyEvent })));
}

/** What a user keeps of a ledger: the note of a checkpoint over its first lines, or all of them. */
export function anchorOf(
  bytes: Buffer,
  by: Signer,
  size?: number,
  origin = 'example.com/test',
): { name: string; note: Uint8Array } {
  const tree = emptyRange();
  const lines = bytes.toString().split('\n').slice(0, -1).slice(0, size);
  for (const line of lines) appendLeaf(tree, leafHash(Buffer.from(line)));
  const text = formatCheckpoint({
    origin,
    size: size ?? lines.length,
    root: rangeRoot(tree),
    extensions: [],
  });
  const signatures = [signNote(text, origin, by)];
  return { name: 'kept.checkpoint', note: Buffer.from(formatNote({ text, signatures })) };
}
