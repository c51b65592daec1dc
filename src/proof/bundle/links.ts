/** Which events an event names, as far as a bundle has to hold them. */

import type { JsonObject, JsonValue } from '../../base/json/value.js';

/** Ids in base64url. */
export interface EventLinks {
  /** What its own validity hangs on: authorizations, grants, executions, checkpoints. They are followed to their ends. */
  readonly needed: readonly string[];
  /** What it only says that it comes after. Of these the nearest is enough: one chain may run through a whole ledger. */
  readonly before: readonly string[];
}

const NAMES_EVENT = /_event_id$/;
const BEFORE: ReadonlySet<string> = new Set(['prev_event_id', 'chain_tip_event_id']);

/** The events that an event names, well-formed or not. */
export function linksOf(event: JsonObject): EventLinks {
  const needed: string[] = [];
  const before: string[] = [];
  const collect = (object: JsonObject): void => {
    for (const [name, value] of Object.entries(object)) {
      const id = NAMES_EVENT.test(name) ? idOf(value) : undefined;
      if (id !== undefined) (BEFORE.has(name) ? before : needed).push(id);
    }
  };
  collect(event);
  const { authorization } = event;
  if (isObject(authorization)) collect(authorization);
  return { needed, before };
}

function idOf(value: JsonValue): string | undefined {
  if (!isObject(value)) return undefined;
  const { alg, b64 } = value;
  return alg === 'sha-256' && typeof b64 === 'string' ? b64 : undefined;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
