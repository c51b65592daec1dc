/**
 * AuthZEN Authorization API 1.0 (OpenID, 2026): access evaluation and its batch. An evaluation only asks: gateways cache and repeat it, and
 * none of them may spend. With `context.northroot` it decides as `/v1/decide`: it records and reserves.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { escapeToolName } from '../../base/value/tool.js';
import type { Gate, GateCall } from '../gate.js';
import type { Bearer } from './tokens.js';
import { malformed, Members, readDecide, writeAnswer, writeDecision } from './wire.js';

export const AUTHZEN_PATHS = ['/access/v1/evaluation', '/access/v1/evaluations'] as const;

const MAX_EVALUATIONS = 100;
const SEMANTICS = ['execute_all', 'deny_on_first_deny', 'permit_on_first_permit'] as const;
const KINDS: readonly string[] = ['human', 'service', 'agent', 'org'];

interface Evaluation {
  readonly decision: boolean;
  readonly context: object;
}

/** @throws NorthrootError `USAGE`, `NOT_ALLOWED` */
export async function answerAuthZen(
  gate: Gate,
  path: (typeof AUTHZEN_PATHS)[number],
  body: JsonObject,
  bearer: Bearer,
  signal: AbortSignal,
  facts: { code?: string | undefined; effect?: string | undefined },
): Promise<object> {
  const evaluations = body['evaluations'];
  if (path === '/access/v1/evaluation' || evaluations === undefined) {
    const evaluation = await evaluate(gate, body, bearer, signal);
    facts.effect = evaluation.decision ? 'allow' : 'deny';
    return evaluation;
  }
  if (!Array.isArray(evaluations) || evaluations.length > MAX_EVALUATIONS)
    throw malformed(`/evaluations: expected a list of at most ${MAX_EVALUATIONS}`);
  const semantic = semanticOf(body['options']);
  const { subject, action, resource, context } = body;
  const defaults = { subject, action, resource, context };
  const answers: Evaluation[] = [];
  for (const each of evaluations) {
    const own = isJsonObject(each) ? each : {};
    const whole = Object.fromEntries(
      Object.entries({ ...defaults, ...own }).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]],
      ),
    );
    const answer = await evaluate(gate, whole, bearer, signal).catch(failed);
    answers.push(answer);
    if (semantic === 'deny_on_first_deny' && !answer.decision) break;
    if (semantic === 'permit_on_first_permit' && answer.decision) break;
  }
  return { evaluations: answers };
}

export function writeAuthZenConfiguration(url: string | undefined): object {
  const base = url ?? '';
  return {
    policy_decision_point: base,
    access_evaluation_endpoint: `${base}${AUTHZEN_PATHS[0]}`,
    access_evaluations_endpoint: `${base}${AUTHZEN_PATHS[1]}`,
  };
}

function semanticOf(options: JsonValue | undefined): (typeof SEMANTICS)[number] {
  const value = isJsonObject(options) ? options['evaluations_semantic'] : undefined;
  if (value === undefined) return 'execute_all';
  const found = SEMANTICS.find((semantic) => semantic === value);
  if (found === undefined) throw malformed(`/options/evaluations_semantic: expected ${SEMANTICS.join(', ')}`);
  return found;
}

/** The error of one evaluation in a batch denies it. */
function failed(error: unknown): Evaluation {
  const isKnown =
    error instanceof NorthrootError || error instanceof TypeError || error instanceof RangeError;
  const code = error instanceof NorthrootError ? error.code : isKnown ? 'USAGE' : 'INTERNAL_ERROR';
  const status = code === 'NOT_ALLOWED' ? 403 : isKnown ? 400 : 500;
  const message = isKnown ? printable(error.message, 500) : 'something went wrong here';
  return { decision: false, context: { error: { status, message }, code } };
}

async function evaluate(
  gate: Gate,
  body: JsonObject,
  bearer: Bearer,
  signal: AbortSignal,
): Promise<Evaluation> {
  const { call, ours } = readEvaluation(body);
  const { principal = '' } = call;
  if (!bearer.mayBe(principal))
    throw new NorthrootError('NOT_ALLOWED', `this token may not speak for ${printable(principal)}`);
  if (!bearer.mayCall(call.tool))
    throw new NorthrootError('NOT_ALLOWED', `this token may not call ${printable(call.tool, 128)}`);
  if (ours === undefined) {
    const answer = await gate.ask(call, { signal });
    const { code, reason } = answer;
    return { decision: answer.effect === 'allow', context: { code, reason, northroot: writeAnswer(answer) } };
  }
  const { call: more, waitMs } = readDecide({ ...ours, tool: call.tool });
  const decision = await gate.decide(
    {
      ...call,
      ...Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined)),
      principal,
      tool: call.tool,
    },
    { signal, ...(waitMs === undefined ? {} : { waitMs }) },
  );
  // A gateway cannot rewrite what it sends on.
  const { effect, code, reason } = decision;
  return { decision: effect === 'allow', context: { code, reason, northroot: writeDecision(decision) } };
}

function readEvaluation(body: JsonObject): {
  readonly call: GateCall;
  readonly ours: JsonObject | undefined;
} {
  const members = new Members(body);
  const subject = members.object('subject');
  const action = members.object('action');
  const resource = members.object('resource');
  const context = members.object('context');
  if (subject === undefined || action === undefined || resource === undefined)
    throw malformed('expected subject, action and resource');
  const [type, id] = [subject.text('type'), subject.text('id')];
  const [kind, reference] = [resource.text('type'), resource.text('id')];
  const name = action.text('name');
  if (type === undefined || id === undefined) throw malformed('/subject: expected type and id');
  if (kind === undefined || reference === undefined) throw malformed('/resource: expected type and id');
  if (name === undefined || name === '') throw malformed('/action: expected name');
  const principal = KINDS.includes(type) && !id.startsWith(`${type}:`) ? `${type}:${id}` : id;
  const isTool = kind === 'tool';
  const ours = context?.any('northroot');
  if (ours !== undefined && !isJsonObject(ours)) throw malformed('/context/northroot: expected an object');
  const properties = action.any('properties');
  return {
    call: {
      principal,
      tool: escapeToolName(isTool && reference !== '' ? reference : name),
      params: properties ?? {},
      ...(isTool ? {} : { resources: [{ kind, reference }] }),
      coverage: 'proxy',
    },
    ours: ours,
  };
}
