/** What a parent's service answers to its children: the next slice, and the settlement of what they had. */

import { NorthrootError } from '../../base/error.js';
import { type JsonObject, isJsonObject } from '../../base/json/value.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { fromDigestText } from '../../base/value/digest.js';
import { decodeCheckpoint } from '../../format/note/checkpoint.js';
import { DeniedError } from '../../log/agent/errors.js';
import type { LiveLedger } from '../../log/agent/live-ledger.js';
import { openNextSlice } from '../../log/fleet/next-slice.js';
import { recordSettlement, type SliceSettlement } from '../../log/fleet/settle.js';
import { formatSlice, readMeters } from '../../log/fleet/slice-json.js';
import { sliceParamsDigest } from '../../rules/bounds/slice.js';
import { SLICE_TOOL } from '../../rules/bounds/tool-set.js';
import { isUsedUp } from '../../rules/verify/event-index.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Bearer } from './tokens.js';
import { malformed, Members } from './wire.js';

const MAX_NUMBER = 1_000_000;
const MAX_SETTLED = 1_024;
const MAX_NOTE_CHARACTERS = 64 * 1024;

/** Sets the next slice aside. @throws NorthrootError `USAGE`, `NOT_ALLOWED`; as `openNextSlice` */
export async function answerNextSlice(
  parent: LiveLedger,
  body: JsonObject,
  bearer: Bearer,
  signal: AbortSignal,
): Promise<object> {
  const members = new Members(body);
  const request = { childId: readId(members, 'child_ledger_id'), after: readId(members, 'after') };
  const number = members.whole('number', MAX_NUMBER) ?? 0;
  members.end();
  if (number < 1) throw malformed(`/number: expected 1 to ${MAX_NUMBER}`);
  if (!bearer.mayCall(SLICE_TOOL)) throw new NorthrootError('NOT_ALLOWED', 'this token may not take slices');
  const mayTake = (principal: string): boolean => bearer.mayBe(principal);
  const now = (): string => parent.now();
  try {
    return formatSlice(
      await parent.use((ledger) => openNextSlice(ledger, { ...request, number, mayTake, now, signal })),
    );
  } catch (error) {
    if (error instanceof DeniedError) throw new NorthrootError('SLICE_DENIED', error.message);
    throw error;
  }
}

/**
 * Records what a child says that it used. Whether that is so shows when the two ledgers are verified together.
 * @throws NorthrootError `USAGE`, `NOT_ALLOWED`, `SLICE_NOT_FOUND`; as `recordSettlement`
 */
export async function answerSettleSlices(
  parent: LiveLedger,
  body: JsonObject,
  bearer: Bearer,
  signal: AbortSignal,
): Promise<object> {
  const members = new Members(body);
  const childId = readId(members, 'child_ledger_id');
  const settlements = (members.list('slices', MAX_SETTLED) ?? []).map(readSettlement);
  members.end();
  const settled: object[] = [];
  for (const each of settlements) {
    const isSettled = await parent.use((ledger) =>
      ledger.inspect((_, state) => assertSlice(state, each.sliceId, childId, bearer), { signal }),
    );
    const recorded = isSettled
      ? undefined
      : await parent.use((ledger) => recordSettlement(ledger, each, { now: () => parent.now(), signal }));
    settled.push({ event_id: each.sliceId, status: recorded === undefined ? 'exists' : 'appended' });
  }
  return { settled };
}

/**
 * @returns Whether it was settled before
 * @throws NorthrootError `SLICE_NOT_FOUND`, `NOT_ALLOWED`
 */
function assertSlice(state: VerifyState, sliceId: string, childId: string, bearer: Bearer): boolean {
  const id = fromDigestText(sliceId);
  const action = state.links.actions.get(id);
  // An action that was executed is no longer open. A grant could be executed, too, and is no slice.
  if (action === undefined && isUsedUp(state.events.find(id)?.kind)) return true;
  if (action?.toolName !== SLICE_TOOL || action.params !== sliceParamsDigest(childId))
    throw new NorthrootError('SLICE_NOT_FOUND', 'there is no such slice for this ledger');
  if (!bearer.mayBe(action.principalId))
    throw new NorthrootError('NOT_ALLOWED', 'this token may not speak for the principal of this slice');
  return false;
}

function readId(members: Members, name: string): string {
  const digest = members.digest(name);
  if (digest?.alg !== 'sha-256') throw malformed(`/${name}: expected an id, sha-256:…`);
  return `sha-256:${digest.b64}`;
}

function readSettlement(value: unknown, index: number): SliceSettlement {
  if (!isJsonObject(value)) throw malformed(`/slices/${index}: expected an object`);
  const members = new Members(value, `/slices/${index}`);
  const sliceId = readId(members, 'event_id');
  const note = members.text('note', MAX_NOTE_CHARACTERS);
  const used = members.any('meter_used');
  members.end();
  if (note === undefined || !decodeCheckpoint(encodeUtf8(note)).ok)
    throw malformed(`/slices/${index}/note: expected the note of a checkpoint`);
  return { sliceId, note, used: readMeters(`/slices/${index}/meter_used`, used, 0) };
}
