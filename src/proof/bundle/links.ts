/** The events that an event names and a bundle must include. */

import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';

/** Ids in base64url. */
export interface EventLinks {
  /** Events that its validity depends on, followed transitively: authorizations, grants, approvals, executions, checkpoints. */
  readonly needed: readonly string[];
  /** Predecessors, of which only the nearest is included: one chain may run through a whole ledger. */
  readonly before: readonly string[];
}

const NAMES_EVENT = /_event_ids?$/;
const BEFORE: ReadonlySet<string> = new Set(['prev_event_id', 'chain_tip_event_id']);

/** The events that an event names. It need not be well-formed. */
export function linksOf(event: JsonObject): EventLinks {
  const needed: string[] = [];
  const before: string[] = [];
  const collect = (object: JsonObject): void => {
    for (const [name, value] of Object.entries(object)) {
      if (!NAMES_EVENT.test(name)) continue;
      const ids = (Array.isArray(value) ? value : [value]).flatMap((each) => idOf(each) ?? []);
      (BEFORE.has(name) ? before : needed).push(...ids);
    }
  };
  collect(event);
  const { authorization } = event;
  if (isJsonObject(authorization)) {
    collect(authorization);
    if (isJsonObject(authorization['action'])) collect(authorization['action']);
  }
  return { needed, before };
}

/** The base64url of an id. */
export function idOf(value: JsonValue): string | undefined {
  if (!isJsonObject(value)) return undefined;
  const { alg, b64 } = value;
  return alg === 'sha-256' && typeof b64 === 'string' ? b64 : undefined;
}
