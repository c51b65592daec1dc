/**
 * Reads what a host puts on standard input: one JSON object, at most {@link MAX_EVENT_BYTES}. A call to be decided must be strict JSON: two
 * readings of it would be two calls. What only reports the end of a call is read even if it is not, so that a call that ran is settled
 * whatever it gave.
 */

import { decodeUtf8 } from '../../base/bytes/text.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonObject } from '../../base/json/value.js';
import { invalidInput } from './profile.js';

/** The most that is read of an event, in bytes: it holds what a tool was given and gave. */
export const MAX_EVENT_BYTES = 32 * 1024 * 1024;

export interface HookEvent {
  readonly name: string;
  readonly event: JsonObject;
  /** Why it is not strict JSON; undefined if it is. */
  readonly fault: string | undefined;
}

/** Reads standard input of a hook. @throws NorthrootError `HOOK_INPUT_INVALID`; never with what was given */
export function readEvent(bytes: Uint8Array): HookEvent {
  if (bytes.length > MAX_EVENT_BYTES)
    throw invalidInput(`expected at most ${MAX_EVENT_BYTES} bytes on standard input`);
  const { value, issues } = ingestJson(bytes);
  const [issue] = issues;
  const fault = issue && `${issue.code} at byte ${issue.offset}`;
  const event: unknown = value ?? readAnyhow(bytes);
  if (!isJsonObject(event))
    throw invalidInput(`expected a JSON object on standard input: ${fault ?? 'found none'}`);
  const name = event['hook_event_name'];
  if (typeof name !== 'string' || name === '') throw invalidInput('hook_event_name: expected a text');
  return { name, event, fault };
}

function readAnyhow(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decodeUtf8(bytes));
  } catch {
    return undefined;
  }
}
