/** What handlers return, read as hostile: copied, bounded, and held to what their class may give and their stage may change. */

import { MAX_DEPTH } from '../../../base/json/scan.js';
import type { JsonObject, JsonValue } from '../../../base/json/value.js';
import { isJsonObject } from '../../../base/json/value.js';
import { wellFormed } from '../../shared/names.js';
import type { HandlerClass } from '../families.js';
import { choosesRoute, needsTrust, RESULTS } from '../stage-rules.js';
import type { Registered } from './contribution.js';
import { copyJson, deepFreeze, type FrozenJson, type FrozenObject } from './event.js';

/** What is wrong with what a handler did, by a code. */
export type FaultCode =
  | 'HANDLER_FAILED'
  | 'HANDLER_TIMEOUT'
  | 'ASYNC_RESULT'
  | 'RESULT_INVALID'
  | 'RESULT_TOO_LARGE'
  | 'PATCH_NOT_ALLOWED'
  | 'NOT_TRUSTED';

export class HandlerFault extends Error {
  readonly code: FaultCode;

  constructor(code: FaultCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'HandlerFault';
    this.code = code;
    faults.add(this);
  }
}

/** Errors that were made here: `instanceof` would ask what a handler has thrown. */
const faults = new WeakSet<object>();

/** Whether it is a {@link HandlerFault}; asks the value nothing. */
export function isFault(value: unknown): value is HandlerFault {
  return typeof value === 'object' && value !== null && faults.has(value);
}

export interface Candidate {
  readonly target: FrozenJson;
  readonly rank: number;
  readonly isExplicit: boolean;
  readonly isValid: boolean;
}

export interface StageResult {
  readonly add?: FrozenObject;
  readonly patch?: FrozenObject;
  readonly decision?: 'allow' | 'cancel';
  readonly reason?: string;
  readonly candidates?: readonly Candidate[];
  readonly traced: JsonObject;
}

/** A result, and the bytes of its canonical form. */
export interface SizedResult extends StageResult {
  readonly length: number;
}

/** What a handler returns, in bytes of its canonical form, is at most this long. */
export const MAX_RESULT_BYTES = 1_048_576;

/** What all handlers of a stage return for one event, likewise. */
export const MAX_RESULTS_BYTES = 8_388_608;

/** So many levels deep is a result in a trace. */
export const TRACE_DEPTH = 4;

const MAX_CANDIDATES = 1_000;

const MAX_REASON_LENGTH = 1_024;

/**
 * What was returned; undefined for nothing.
 *
 * @param working - The object that a mutator's patch is for.
 * @param before - How many bytes the stage's handlers have returned before it.
 * @throws HandlerFault
 */
export function readResult(
  registered: Registered,
  returned: unknown,
  working: ReadonlyMap<string, FrozenJson>,
  before: number,
): SizedResult | undefined {
  const { kind, isClosed } = registered;
  if (returned === undefined || returned === null) {
    // Who must decide and does not has failed.
    if (kind === 'veto' && isClosed) throw wrong('expected a decision, found none');
    return undefined;
  }
  if (kind === 'observer') return undefined;
  const { copy, length } = copyOf(returned);
  const most = Math.min(MAX_RESULT_BYTES, MAX_RESULTS_BYTES - before);
  if (length > most)
    throw new HandlerFault('RESULT_TOO_LARGE', `expected at most ${most} bytes, found ${length}`);
  if (!isJsonObject(copy)) throw wrong('expected an object');
  for (const member of Object.keys(copy)) {
    if (
      (RESULTS as Readonly<Record<string, string>>)[member] !== kind &&
      !(kind === 'veto' && member === 'reason')
    )
      throw wrong(`a ${kind} gives no other member than its own`);
  }
  return { ...readAs(kind, registered, copy, working), length };
}

function readAs(
  kind: Exclude<HandlerClass, 'observer'>,
  registered: Registered,
  given: JsonObject,
  working: ReadonlyMap<string, FrozenJson>,
): StageResult {
  switch (kind) {
    case 'augmenter':
      return readAdditions(registered, given);
    case 'mutator':
      return readPatch(registered, given, working);
    case 'veto':
      return readDecision(given);
    case 'resolver':
      return readCandidates(given);
  }
}

function readAdditions({ stage }: Registered, { add }: JsonObject): StageResult {
  if (!isJsonObject(add)) throw wrong('add: expected an object');
  for (const field of Object.keys(add))
    if (choosesRoute(stage, field)) throw notAllowed(`${stage} chooses no route`);
  return { add: deepFreeze(add) as FrozenObject, traced: { add } };
}

function readPatch(
  { stage, isTrusted }: Registered,
  { patch }: JsonObject,
  working: ReadonlyMap<string, FrozenJson>,
): StageResult {
  if (!isJsonObject(patch)) throw wrong('patch: expected an object');
  for (const [field, value] of Object.entries(patch)) {
    if (choosesRoute(stage, field)) throw notAllowed(`${stage} chooses no route`);
    if (needsTrust(stage, field) && !isTrusted)
      throw new HandlerFault('NOT_TRUSTED', 'only a trusted mutator replaces the system prompt');
    const schema = PATCHES[stage];
    if (schema !== undefined && !schema(field, value, working))
      throw notAllowed(`${stage} lets no patch do this`);
  }
  return { patch: deepFreeze(patch) as FrozenObject, traced: { patch } };
}

function readDecision({ decision, reason }: JsonObject): StageResult {
  if (decision !== 'allow' && decision !== 'cancel') throw wrong('decision: expected allow or cancel');
  if (reason !== undefined && typeof reason !== 'string') throw wrong('reason: expected a text');
  const said = reason === undefined ? {} : { reason: wellFormed(reason.slice(0, MAX_REASON_LENGTH)) };
  return { decision, ...said, traced: { decision, ...said } };
}

function readCandidates({ candidates }: JsonObject): StageResult {
  if (!Array.isArray(candidates) || candidates.length > MAX_CANDIDATES)
    throw wrong(`candidates: expected a list of at most ${MAX_CANDIDATES}`);
  return { candidates: candidates.map(readCandidate), traced: { candidates } };
}

function readCandidate(given: JsonValue): Candidate {
  if (!isJsonObject(given)) throw wrong('candidates: expected objects');
  const { target, rank = 0, explicit = false, valid = true, ...more } = given;
  if (Object.keys(more).length > 0) throw wrong('candidates: expected target, rank, explicit, valid');
  if (!(typeof target === 'string' && target !== '') && !isJsonObject(target))
    throw wrong('target: expected a text or an object');
  if (typeof rank !== 'number') throw wrong('rank: expected a number');
  if (typeof explicit !== 'boolean' || typeof valid !== 'boolean')
    throw wrong('explicit, valid: expected true or false');
  return { target: deepFreeze(target), rank, isExplicit: explicit, isValid: valid };
}

function copyOf(returned: unknown): ReturnType<typeof copyJson> {
  try {
    return copyJson(returned, MAX_DEPTH - TRACE_DEPTH);
  } catch (cause) {
    throw new HandlerFault('RESULT_INVALID', 'expected plain JSON', cause);
  }
}

type PatchSchema = (field: string, value: JsonValue, working: ReadonlyMap<string, FrozenJson>) => boolean;

const isText = (value: unknown): boolean => typeof value === 'string';

/** A message keeps what it is, and the call that it answers. */
const ofMessage: PatchSchema = (field, value, working) =>
  (field !== 'role' && field !== 'toolCallId') || working.get(field) === value;

/** What patches may change, where that is not any field. */
const PATCHES: Readonly<Record<string, PatchSchema | undefined>> = {
  'agent.model.resolving': (field, value) =>
    (field === 'model' || field === 'provider') && (value === null || (isText(value) && value !== '')),
  'agent.prompt.building': (field, value) =>
    field === 'systemPrompt'
      ? isText(value)
      : PROMPT_LISTS.includes(field) && (isText(value) || (Array.isArray(value) && value.every(isText))),
  'transcript.tool-result.persisting': ofMessage,
  'transcript.message.writing': ofMessage,
};

/** What patches of the prompt append to, in the order in which they compose. */
export const PROMPT_LISTS: readonly string[] = ['staticGuidance', 'ephemeral'];

function wrong(message: string): HandlerFault {
  return new HandlerFault('RESULT_INVALID', message);
}

function notAllowed(message: string): HandlerFault {
  return new HandlerFault('PATCH_NOT_ALLOWED', message);
}
