/** How a call ended, by what the host says of it: as `northroot import --from openclaw` reads the same. */

import { asJson, codeOf, digestOf } from './values.js';

/** What stands for no run: it was blocked, or it waits for an approval of the host's own. */
const NOT_RUN = new Set(['blocked', 'skipped', 'approval-pending', 'approval-unavailable']);
const FAILED = new Set(['error', 'failed', 'timeout', 'timed_out', 'cancelled', 'aborted', 'killed']);

/**
 * @typedef {object} Outcome
 * @property {boolean} ran - False where the host says that it did not
 * @property {boolean} isError
 * @property {'success' | 'failure' | 'unknown'} outcome
 * @property {string | undefined} errorCode
 * @property {number | undefined} durationMs
 * @property {string | undefined} outputDigest
 */

/**
 * @param {{ readonly result?: unknown, readonly error?: unknown, readonly durationMs?: unknown }} event - An after_tool_call
 * @returns {Outcome}
 */
export function outcomeOf({ result, error, durationMs }) {
  const details = member(result, 'details');
  const text = member(details, 'status');
  const status = typeof text === 'string' ? text : undefined;
  const isError = (error !== undefined && error !== null) || (status !== undefined && FAILED.has(status));
  const took = [member(details, 'durationMs'), durationMs].find(isDuration);
  const base = { isError, durationMs: took };
  if (status !== undefined && NOT_RUN.has(status)) {
    const why = member(details, 'deniedReason');
    const reason = typeof why === 'string' ? why : status;
    // What waits may yet be run by the host, which no hook is told.
    const outcome = status === 'approval-pending' ? 'unknown' : 'failure';
    const errorCode = codeOf(`OPENCLAW_${reason === 'blocked' ? reason : `BLOCKED_${reason}`}`);
    return { ...base, ran: false, outcome, errorCode, durationMs: 0, outputDigest: undefined };
  }
  return {
    ...base,
    ran: true,
    ...endOf(result, details, status, isError),
    outputDigest: digestOf(asJson(result)),
  };
}

/**
 * @param {unknown} result
 * @param {unknown} details
 * @param {string | undefined} status
 * @param {boolean} isError
 * @returns {Pick<Outcome, 'outcome' | 'errorCode'>}
 */
function endOf(result, details, status, isError) {
  if (isError) {
    const isNamed = status !== undefined && FAILED.has(status) && status !== 'error' && status !== 'failed';
    return { outcome: 'failure', errorCode: isNamed ? codeOf(`TOOL_${status}`) : 'TOOL_ERROR' };
  }
  // A command that goes on in the background, and a call of which nothing is said.
  if (status === 'running' || result === undefined || result === null)
    return { outcome: 'unknown', errorCode: undefined };
  const exit = member(details, 'exitCode');
  return typeof exit === 'number' && exit !== 0
    ? { outcome: 'failure', errorCode: codeOf(`EXIT_${exit}`) }
    : { outcome: 'success', errorCode: undefined };
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {unknown}
 */
function member(value, name) {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? /** @type {Record<string, unknown>} */ (value)[name]
    : undefined;
}

/**
 * @param {unknown} value
 * @returns {value is number}
 */
function isDuration(value) {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}
