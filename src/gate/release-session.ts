/**
 * Ends a session. Calls that no process has kept are found in the ledger, by request keys (SPEC §8 rule 18) that are made of the session. A call whose key is a digest of its id cannot be told; it is released when it expires.
 */

import { NorthrootError } from '../base/error.js';
import { tryInGroups } from '../base/in-groups.js';
import { parseDigest } from '../base/value/digest.js';
import { isJsonObject, type JsonObject } from '../base/json/value.js';
import type { CallName, Gate, OpenCall } from './gate.js';
import { keyOfOrder, refOfKey } from './request-key.js';

/** The most open calls that are looked at: their records are read again. */
const MAX_LOOKED_AT = 256;
const PASSED_OVER: ReadonlySet<string> = new Set(['CALL_NOT_FOUND', 'NOT_ALLOWED']);

export interface ReleaseSessionOptions {
  readonly signal: AbortSignal;
  /** Whose calls are released. Default: everybody's. */
  readonly mayRelease?: ((principalId: string) => boolean) | undefined;
  /** Whether calls of this tool are released. Default: of any. */
  readonly mayEnd?: ((toolName: string) => boolean) | undefined;
  /** Whether its calls may have run: they are settled as unknown, and charged. Default false. */
  readonly mayHaveRun?: boolean | undefined;
}

interface Limits {
  readonly mayRelease: (principalId: string) => boolean;
  readonly end: (call: CallName) => Promise<boolean>;
}

/** Why it is not known how a call ended. */
export const SESSION_ENDED = 'SESSION_ENDED';

/**
 * Ends a session: releases its calls that were allowed, by any process, and not begun; settles as unknown what this gate has begun, and
 * with `mayHaveRun` all of them.
 * @returns How many
 * @throws NorthrootError as `Gate.release`, for the first that failed after all others were released
 */
export async function releaseSession(
  gate: Gate,
  session: string,
  { signal, mayRelease = () => true, mayEnd = () => true, mayHaveRun = false }: ReleaseSessionOptions,
): Promise<number> {
  const own = gate.listOpen(session).filter(({ principal, tool }) => mayRelease(principal) && mayEnd(tool));
  const end = async (call: CallName): Promise<boolean> => {
    const ended = mayHaveRun
      ? await gate.settle(call, { outcome: 'unknown', errorCode: SESSION_ENDED }, { signal, mayEnd })
      : await gate.release(call, { signal, mayEnd });
    return ended.recorded !== undefined;
  };
  const endOwn = ({ ref, principal }: OpenCall): Promise<boolean> => end({ ref, session, principal });
  const ends = await tryInGroups(own, endOwn, signal);
  // What could not be released keeps others' calls from nothing.
  ends.push(...(await releaseOthers(gate, session, signal, { mayRelease, end })));
  return ends.filter((ended) => {
    if (ended.status === 'rejected') throw ended.reason;
    return ended.value;
  }).length;
}

async function releaseOthers(
  gate: Gate,
  session: string,
  signal: AbortSignal,
  { mayRelease, end }: Limits,
): Promise<PromiseSettledResult<boolean>[]> {
  const { ledger } = gate;
  // Only records of files can be read again.
  if (!ledger.isInFiles) return [];
  const open = new Map(
    (await ledger.budget()).flatMap(({ unstarted }) => unstarted.map((action) => [action.eventId, action])),
  );
  if (open.size === 0) return [];
  const looked = [...open.values()]
    .filter(({ principalId }) => mayRelease(principalId))
    .slice(-MAX_LOOKED_AT)
    .map(({ eventId }) => eventId);
  const records = await ledger.view({ signal }).findEvents(looked);
  const calls: CallName[] = [];
  for (const [eventId, { event }] of records) {
    const ref = refWithin(event, session);
    const principal = open.get(eventId)?.principalId;
    if (ref !== undefined && principal !== undefined) calls.push({ ...ref, principal });
  }
  const release = async (call: CallName): Promise<boolean> => {
    try {
      return await end(call);
    } catch (error) {
      // Another process has ended it, or it is of a tool whose calls stay.
      if (!(error instanceof NorthrootError && PASSED_OVER.has(error.code))) throw error;
      return false;
    }
  };
  return tryInGroups(calls, release, signal);
}

/** How the gate names the call of an event, if it is of this session. */
function refWithin(event: JsonObject, session: string): { ref: string; session?: string } | undefined {
  const { authorization } = event;
  const action = isJsonObject(authorization) ? authorization['action'] : undefined;
  if (!isJsonObject(action)) return undefined;
  const { request_key: key, tool_name: tool, tool_params_digest: params } = action;
  if (typeof key !== 'string' || typeof tool !== 'string' || !isJsonObject(params)) return undefined;
  const own = refOfKey(session, key);
  if (own !== undefined) return { ref: own, session };
  const [, order] = /^nth:[\w-]{43}\/(\d{1,7})$/.exec(key) ?? [];
  if (order === undefined) return undefined;
  const { alg, b64 } = params;
  if (typeof alg !== 'string' || typeof b64 !== 'string') return undefined;
  const base = { session, tool, digest: parseDigest(`${alg}:${b64}`) };
  return keyOfOrder(base, Number(order)) === key ? { ref: key } : undefined;
}
