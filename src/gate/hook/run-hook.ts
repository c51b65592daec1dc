/**
 * One hook call: what a host said becomes a step, the desk decides or records, and the host is answered. Whatever goes wrong denies a call
 * that is to be decided, and lets all else pass: a hook that only reports must not stop the host. What is said never has parameters, output
 * or errors of tools in it.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytesWithout } from '../../base/json/omit-undefined.js';
import { isJsonObject } from '../../base/json/value.js';
import { formatDigest, sha256Digest } from '../../base/value/digest.js';
import { escapeToolName } from '../../base/value/tool.js';
import { type Desk, type DeskCall, type DeskDecision, isRefusal } from './desk.js';
import { DEFAULT_DEADLINE_MS, type HookOptions } from './options.js';
import { principalFor } from './principal.js';
import { type HookCall, type HookProfile, type HookStep, type HookVerdict } from './profile.js';
import { type HookEvent, readEvent } from './read-event.js';

/** What the process is to print, and to end with. */
export interface HookAnswer {
  readonly stdout: string;
  /** Lines for people; each ends with `\n`. */
  readonly stderr: string;
  /** 0, or 2 where a call is denied because it could not be decided: every host blocks on 2, and takes anything else for no hook. */
  readonly status: 0 | 2;
}

const NOTHING: HookAnswer = { stdout: '', stderr: '', status: 0 };
const MAX_REASON = 600;

/**
 * Answers a hook call.
 * @param input - Standard input, whole
 * @param open - Opens the desk; not called for an event that needs none
 * @returns Never rejects
 */
export async function runHook(
  profile: HookProfile,
  input: Uint8Array,
  open: () => Promise<Desk>,
  options: HookOptions,
): Promise<HookAnswer> {
  let read: HookEvent | undefined;
  try {
    read = readEvent(input);
    const isDecision = read.name === profile.decides;
    if (isDecision && read.fault !== undefined)
      throw new NorthrootError('HOOK_INPUT_INVALID', `the call is no strict JSON: ${read.fault}`);
    const step = profile.read(read.event, read.name);
    if (step.kind === 'none') return NOTHING;
    return await withDeadline(options, (signal) => perform(profile, step, open, options, signal));
  } catch (error) {
    // What cannot be read could be a decision.
    const isDecision = read === undefined || read.name === profile.decides;
    return isDecision ? failToDecide(profile, error, options) : { ...NOTHING, stderr: lineOf(error) };
  }
}

/** What is answered where the options of a hook are wrong, or nothing could be started. */
export function failToDecide(
  profile: HookProfile,
  error: unknown,
  { fail }: Pick<HookOptions, 'fail'>,
): HookAnswer {
  const line = lineOf(error);
  if (fail === 'open' && !isRefusal(error))
    return { ...NOTHING, stderr: `${line}northroot: allowed without a record, as it is to fail open\n` };
  return { stdout: jsonOf(profile, { effect: 'deny', reason: line.trimEnd() }), stderr: line, status: 2 };
}

async function perform(
  profile: HookProfile,
  step: Exclude<HookStep, { kind: 'none' }>,
  open: () => Promise<Desk>,
  options: HookOptions,
  signal: AbortSignal,
): Promise<HookAnswer> {
  const toCall = (call: HookCall): DeskCall => ({
    ref: call.ref,
    session: call.session,
    principal: principalFor(call.agentType, options),
    tool: escapeToolName(call.tool),
    params: call.params,
  });
  if (step.kind === 'decide') {
    const call = toCall(step.call);
    // What cannot be made canonical is refused before anybody is asked.
    canonicalBytesWithout(call.params);
    const desk = await open();
    const decision = await desk.decide(call, { waitMs: options.waitMs ?? 0 }, signal);
    const verdict = verdictOf(profile, decision, options);
    // Allowed, and yet not to run.
    if (decision.effect === 'rewrite' && verdict.effect === 'deny')
      await desk.release({ ...call, ref: decision.ref }, signal);
    return verdict.effect === 'pass' ? NOTHING : { ...NOTHING, stdout: jsonOf(profile, verdict) };
  }
  const desk = await open();
  if (step.kind === 'settle') {
    const { outcome, output, errorCode, durationMs } = step;
    await desk.settle(
      toCall(step.call),
      { outcome, outputDigest: digestOf(output), errorCode, durationMs },
      signal,
    );
  } else if (step.kind === 'release') {
    for (const call of step.calls) await ignoreUnknown(desk.release(toCall(call), signal));
  } else {
    await desk.releaseSession(step.session, step.mayHaveRun === true, signal);
  }
  return NOTHING;
}

/** A call that was denied, or that another hook never saw, has nothing to be released. */
async function ignoreUnknown(released: Promise<void>): Promise<void> {
  try {
    await released;
  } catch (error) {
    if (!(error instanceof NorthrootError && error.code === 'CALL_NOT_FOUND')) throw error;
  }
}

/** What the host is told, as far as it can hear it. */
function verdictOf(profile: HookProfile, decision: DeskDecision, options: HookOptions): HookVerdict {
  const { effect } = decision;
  const { hears } = profile;
  switch (effect) {
    case 'allow':
      return options.onAllow === 'allow' && hears.includes('allow')
        ? { effect, reason: 'northroot: allowed' }
        : { effect: 'pass' };
    case 'rewrite': {
      const { params } = decision;
      if (hears.includes('rewrite') && isJsonObject(params))
        return { effect, reason: reasonOf(decision), params };
      return {
        effect: 'deny',
        // The code is that of an allowance, which the agent would take it for.
        reason: `northroot: allowed only with other parameters, which ${profile.title} cannot be given`,
      };
    }
    case 'ask':
      return {
        effect: options.onAsk === 'ask' && hears.includes('ask') ? 'ask' : 'deny',
        reason: `${reasonOf(decision)}; ${howToApprove(decision, options)}`,
      };
    case 'deny':
      return { effect, reason: reasonOf(decision) };
  }
}

function reasonOf({ code, reason }: DeskDecision): string {
  return printable(`northroot: ${code}${reason === undefined ? '' : `: ${reason}`}`, MAX_REASON);
}

function howToApprove({ authorization, approvers = [] }: DeskDecision, options: HookOptions): string {
  const who = approvers.length === 0 ? 'somebody' : approvers.join(', ');
  const how = options.howToApprove?.(authorization);
  return printable(
    `${who} can approve ${authorization}${how === undefined ? '' : `: ${how}`}; then make the same call again`,
    MAX_REASON,
  );
}

function jsonOf(profile: HookProfile, verdict: Exclude<HookVerdict, { effect: 'pass' }>): string {
  return `${JSON.stringify(profile.answer(verdict))}\n`;
}

/** One line, without what the host gave. */
function lineOf(error: unknown): string {
  const known = error instanceof NorthrootError ? error : undefined;
  // Messages of other errors may quote what was given.
  const text = known === undefined ? 'INTERNAL_ERROR: the hook failed' : `${known.code}: ${known.message}`;
  const hint = known?.hint === undefined ? '' : ` (${known.hint})`;
  return `northroot: ${printable(`${text}${hint}`, MAX_REASON)}\n`;
}

/** Undefined for what has no canonical form: that it ended counts more. */
function digestOf(output: unknown): string | undefined {
  if (output === undefined) return undefined;
  try {
    return formatDigest(sha256Digest(canonicalBytesWithout(output)));
  } catch {
    return undefined;
  }
}

/** A host kills a hook that is late, and goes on without it: the answer must come before. */
async function withDeadline<T>(
  { deadlineMs = DEFAULT_DEADLINE_MS, waitMs = 0 }: HookOptions,
  act: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = new NorthrootError(
        'HOOK_TIMEOUT',
        `nobody decided within ${(deadlineMs + waitMs) / 1000} s`,
      );
      reject(error);
      abort.abort(error);
    }, deadlineMs + waitMs);
  });
  try {
    return await Promise.race([act(abort.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}
