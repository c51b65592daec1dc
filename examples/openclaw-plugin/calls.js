/**
 * The calls that are decided and have not ended. The host may load a plugin's modules several times in one process: they share one table.
 */

/**
 * @typedef {object} Call
 * @property {string | undefined} key - Undefined for a call without an id
 * @property {string | undefined} id - The host's own id of it
 * @property {string | undefined} runId
 * @property {string | undefined} session
 * @property {string | undefined} principal
 * @property {string} tool
 * @property {Record<string, unknown>} params - What was asked for
 * @property {string | undefined} asked - Its digest
 * @property {string | undefined} authorized - The digest of what was authorized
 * @property {string | undefined} ref - The gate's name of it
 * @property {'deciding' | 'open' | 'blocked' | 'unrecorded'} state - `unrecorded`: runs although nobody decided
 * @property {boolean} hasEnded - Whether the host has already told its end
 * @property {Promise<object | undefined> | undefined} answer - What the host is told
 */

/** Further ones push the oldest out: a host that tells no ends must not fill the memory. The service settles them in time. */
const MAX_CALLS = 10_000;
const TABLE = Symbol.for('northroot.openclaw.calls.1');

/**
 * @typedef {object} Table
 * @property {Map<string, Call>} named - By key
 * @property {Set<Call>} unnamed - In the order of their beginning
 * @property {Set<string>} ended - Keys of the last that have ended
 * @property {Set<Promise<void>>} reports - What is being told to the service
 */

/** @returns {Table} */
export function tableOfCalls() {
  const all = /** @type {Record<symbol, Table | undefined>} */ (/** @type {unknown} */ (globalThis));
  return (all[TABLE] ??= { named: new Map(), unnamed: new Set(), ended: new Set(), reports: new Set() });
}

/**
 * @param {Table} table
 * @param {Call} call
 */
export function addCall({ named, unnamed }, call) {
  if (call.key === undefined) bound(unnamed.add(call));
  else bound(named.set(call.key, call));
}

/**
 * @param {Table} table
 * @param {Call} call
 */
export function removeCall({ named, unnamed, ended }, call) {
  if (call.key === undefined) unnamed.delete(call);
  // Another may have its key by now.
  else if (named.get(call.key) === call) named.delete(call.key);
  if (call.key !== undefined) bound(ended.add(call.key));
}

/**
 * The call whose end is told: by its id; without one, the oldest with these parameters, else the only one of the tool. Nothing is guessed.
 * @param {Table} table
 * @param {Pick<Call, 'key' | 'runId' | 'session' | 'tool'>} about
 * @param {string | undefined} ran - The digest of what it ran with
 * @returns {Call | undefined}
 */
export function findCall({ named, unnamed }, { key, runId, session, tool }, ran) {
  if (key !== undefined) return named.get(key);
  const alike = [...unnamed].filter(
    (call) => call.tool === tool && (runId === undefined ? call.session === session : call.runId === runId),
  );
  const same = alike.find(({ authorized, asked }) => (authorized ?? asked) === ran);
  return same ?? (alike.length === 1 ? alike[0] : undefined);
}

/** @param {Map<string, unknown> | Set<unknown>} all */
function bound(all) {
  if (all.size <= MAX_CALLS) return;
  for (const oldest of all.keys()) {
    /** @type {Map<unknown, unknown> | Set<unknown>} */ (all).delete(oldest);
    return;
  }
}
