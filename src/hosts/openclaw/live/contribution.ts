/** Contributions: what extensions register to run in a stage, checked when they are registered. */

import { types } from 'node:util';
import { printable } from '../../../base/bytes/printable.js';
import { NorthrootError } from '../../../base/error.js';
import { checkOptions, describeValue, type OptionTypes } from '../../../base/options.js';
import { HANDLER_CLASSES, type HandlerClass, PIPELINE_FAMILIES, type StageRule } from '../families.js';
import { comparePlaces, failsClosed } from '../stage-rules.js';
import type { FrozenObject, PipelineEvent } from './event.js';

/** What a handler is told beside the event and the working object. */
export interface StageView {
  readonly stage: string;
  /** What augmenters have added so far; frozen. */
  readonly context: FrozenObject;
  /** Aborted when the handler's time is over: what it returns then is ignored. */
  readonly signal: AbortSignal;
}

/**
 * What runs. It returns nothing, or by its class `{add}`, `{patch}`, `{decision, reason}` or `{candidates}`. In a synchronous stage it
 * MUST NOT return a promise.
 *
 * @param working - What the mutators before it have made of the stage's object; frozen.
 */
export type StageHandler = (event: PipelineEvent, working: FrozenObject, view: StageView) => unknown;

export interface Contribution {
  readonly extensionId: string;
  /** Unique within the extension and the stage. */
  readonly contributionId: string;
  /** A family of the pipeline. */
  readonly stage: string;
  readonly class: HandlerClass;
  /** A safe integer; higher runs earlier. Default 0. */
  readonly priority?: number | undefined;
  /** Whether an error cancels the stage; not for observers. Default: only of mutators whose purpose is `credential` or `auth`. */
  readonly failClosed?: boolean | undefined;
  /** Whether it may replace the system prompt. The host says so, never the extension. Default false. */
  readonly trusted?: boolean | undefined;
  /** What a mutator changes, where that is more than the message. */
  readonly purpose?: 'credential' | 'auth' | undefined;
  /** How long it may take, in milliseconds: 1 to 600,000. Default: the pipeline's. */
  readonly timeoutMs?: number | undefined;
  readonly handler: StageHandler;
}

export interface Registered {
  readonly extension: string;
  readonly contribution: string;
  readonly stage: string;
  readonly kind: HandlerClass;
  readonly priority: number;
  readonly isClosed: boolean;
  readonly isTrusted: boolean;
  readonly timeoutMs: number;
  readonly handler: StageHandler;
  /** What its traces say of it. */
  readonly facts: FrozenObject;
}

/** The priority of what must be last: below it no other contribution may be. */
export const LAST_PRIORITY = Number.MIN_SAFE_INTEGER;

/** The extension of the gate's own contributions. */
export const GATE_EXTENSION = 'northroot';

/** The longest time that a handler may be given, in milliseconds. */
const MAX_TIMEOUT_MS = 600_000;

/** Characters of the ids of extensions and contributions. */
const MAX_ID_LENGTH = 256;

/** Contributions that may have the last priority. */
const mayBeLast = new WeakSet<Contribution>();

/** The gate's contribution: the last of its stage. */
export function asLast(contribution: Omit<Contribution, 'priority' | 'extensionId'>): Contribution {
  const last = { ...contribution, extensionId: GATE_EXTENSION, priority: LAST_PRIORITY };
  mayBeLast.add(last);
  return last;
}

const TYPES: OptionTypes<Contribution> = {
  extensionId: 'string',
  contributionId: 'string',
  stage: 'string',
  class: 'string',
  priority: 'number',
  failClosed: 'boolean',
  trusted: 'boolean',
  purpose: 'string',
  timeoutMs: 'number',
  handler: 'function',
};

/**
 * What a contribution is kept as.
 *
 * @param rules - The rules of the stages that have one.
 * @throws NorthrootError `FAMILY_UNKNOWN`, `STAGE_UNSPECIFIED`, `CLASS_NOT_ALLOWED`, `ASYNC_IN_SYNC_STAGE`
 * @throws TypeError, RangeError for a malformed contribution
 */
export function toRegistered(
  contribution: Contribution,
  rules: ReadonlyMap<string, StageRule>,
  timeoutMs: number,
): Registered {
  // Read once: what is checked is what is kept.
  const given = { ...contribution };
  checkOptions('register', given, TYPES);
  const { extensionId, contributionId, stage, class: kind, priority = 0, handler } = given;
  const { failClosed, trusted = false, purpose, timeoutMs: own = timeoutMs } = given;
  checkId('extensionId', extensionId);
  checkId('contributionId', contributionId);
  const name = `${printable(extensionId, 80)}/${printable(contributionId, 80)}`;
  if (typeof handler !== 'function')
    throw new TypeError(`${name}: handler: expected a function, found ${describeValue(handler)}`);
  const rule = ruleOf(stage, rules);
  if (!HANDLER_CLASSES.includes(kind))
    throw new RangeError(`${name}: class: expected one of ${HANDLER_CLASSES.join(', ')}`);
  if (!rule.classes.includes(kind))
    throw new NorthrootError('CLASS_NOT_ALLOWED', `${name}: ${stage} allows no ${kind}`, {
      hint: `it allows: ${rule.classes.join(', ')}`,
    });
  if (rule.mode === 'sync-sequential' && types.isAsyncFunction(handler)) throw asyncHandler(name, stage);
  if (!Number.isSafeInteger(priority)) throw new RangeError(`${name}: priority: expected a safe integer`);
  if ((priority === LAST_PRIORITY || extensionId === GATE_EXTENSION) && !mayBeLast.has(contribution))
    throw new RangeError(`${name}: the priority ${LAST_PRIORITY} and that extension are the gate's`);
  if (failClosed === true && kind === 'observer')
    throw new RangeError(`${name}: failClosed: an observer decides nothing`);
  if (purpose !== undefined && (kind !== 'mutator' || !['credential', 'auth'].includes(purpose)))
    throw new RangeError(`${name}: purpose: expected credential or auth, of a mutator`);
  if (trusted && kind !== 'mutator') throw new RangeError(`${name}: trusted: expected a mutator`);
  checkTimeout(name, own);
  return {
    ...{ extension: extensionId, contribution: contributionId, stage, kind, handler },
    priority: priority === 0 ? 0 : priority,
    isClosed: failsClosed(kind, failClosed, purpose, rule.failPolicy === 'closed'),
    isTrusted: trusted,
    timeoutMs: own,
    facts: Object.freeze({
      ...{ class: kind, extensionId, contributionId },
      ...(priority === 0 ? {} : { priority }),
      ...(failClosed === undefined ? {} : { failClosed }),
      ...(purpose === undefined ? {} : { purpose }),
      ...(trusted ? { trusted } : {}),
    }),
  };
}

/**
 * The rule of a stage.
 * @throws NorthrootError `FAMILY_UNKNOWN`, `STAGE_UNSPECIFIED`
 */
export function ruleOf(stage: string, rules: ReadonlyMap<string, StageRule>): StageRule {
  const rule = rules.get(stage);
  if (rule !== undefined) return rule;
  if (!PIPELINE_FAMILIES.has(stage))
    throw new NorthrootError('FAMILY_UNKNOWN', `there is no family ${printable(stage, 80)}`);
  throw new NorthrootError('STAGE_UNSPECIFIED', `nothing says what the stage ${stage} allows`, {
    hint: 'the host can say so itself, in the option stages of the pipeline',
  });
}

/** That a synchronous stage takes no asynchronous handler. */
export function asyncHandler(name: string, stage: string): NorthrootError {
  return new NorthrootError('ASYNC_IN_SYNC_STAGE', `${name}: ${stage} takes no asynchronous handler`);
}

/** @throws RangeError unless it is a time that a handler may be given */
export function checkTimeout(name: string, timeoutMs: number): void {
  if (!(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS))
    throw new RangeError(`${name}: timeoutMs: expected 1 to ${MAX_TIMEOUT_MS} milliseconds`);
}

/** Below 0 where `a` runs before `b`. */
export function compareRegistered(a: Registered, b: Registered): number {
  return comparePlaces(a, b, (x, y) => x < y);
}

function checkId(member: string, id: unknown): void {
  if (typeof id !== 'string')
    throw new TypeError(`register: ${member}: expected a string, found ${describeValue(id)}`);
  if (id === '' || id.length > MAX_ID_LENGTH || /[\p{Surrogate}\p{Cc}]/u.test(id))
    throw new RangeError(`register: ${member}: expected 1 to ${MAX_ID_LENGTH} characters of plain text`);
}
