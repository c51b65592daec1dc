/**
 * Advisers over HTTP: Open Policy Agent's data API, and AuthZEN Authorization API 1.0. An answer other than 200, a malformed, a late or a
 * missing one denies.
 */

import { NorthrootError } from '../../base/error.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import type { Digest } from '../../base/value/digest.js';
import { requestJson } from '../json-client.js';
import type { AdvisedCall, Adviser, AdviserAnswer } from './adviser.js';

export interface HttpAdviserOptions {
  /** Of the rule, such as `http://127.0.0.1:8181/v1/data/agents/allow`; or of the evaluation endpoint. */
  readonly url: string;
  /** A bearer token. It goes to no log and no record. */
  readonly token?: string | undefined;
  /** Default `opa` or `authzen`. */
  readonly name?: string | undefined;
  readonly timeoutMs?: number | undefined;
  /** The digest of the policies, where it is known. */
  readonly policyDigest?: Digest | undefined;
}

const MAX_ANSWER_BYTES = 64 * 1024;

/**
 * Open Policy Agent: `{"input":{principal, tool, params, reserve, resources, session}}` is posted. The result is true or false, or an
 * object with `allow` and optionally `code`, `reason`; or with `effect` and the members of {@link AdviserAnswer} in snake_case. An undefined
 * result denies.
 * @throws TypeError for a malformed URL
 */
export function opaAdviser(options: HttpAdviserOptions): Adviser {
  return adviserOf(
    'opa',
    options,
    (call) => ({ input: inputOf(call) }),
    (body) => readResult(body['result']),
  );
}

/** What `@open-policy-agent/opa-wasm`'s `loadPolicy` gives. */
export interface OpaWasmPolicy {
  evaluate(input: unknown): readonly { readonly result?: unknown }[] | null | undefined;
}

/** A policy compiled to WebAssembly, loaded by `@open-policy-agent/opa-wasm`. Results as of {@link opaAdviser}. */
export function opaWasmAdviser(
  policy: OpaWasmPolicy,
  { name = 'opa', policyDigest }: Pick<HttpAdviserOptions, 'name' | 'policyDigest'> = {},
): Adviser {
  return {
    name,
    policyDigest,
    advise: (call) => readResult(policy.evaluate(inputOf(call))?.[0]?.result as JsonValue | undefined),
  };
}

/**
 * AuthZEN: the principal is the subject, the tool the resource, the parameters are `action.properties`.
 * @throws TypeError for a malformed URL
 */
export function authZenAdviser(options: HttpAdviserOptions): Adviser {
  const toBody = ({ principalId, toolName, params, reserve, resources, session }: AdvisedCall): object => {
    const [type = '', ...rest] = principalId.split(':');
    return {
      subject: { type, id: rest.join(':') },
      action: { name: 'call', properties: params },
      resource: { type: 'tool', id: toolName },
      context: { reserve: textsOf(reserve), resources, session },
    };
  };
  return adviserOf('authzen', options, toBody, ({ decision, context }) => {
    if (typeof decision !== 'boolean') throw new Error('the answer has no decision');
    const said = isJsonObject(context) ? context : {};
    return decision ? { effect: 'permit' } : { effect: 'deny', ...textMembers(said) };
  });
}

function adviserOf(
  kind: string,
  { url, token, name = kind, timeoutMs, policyDigest }: HttpAdviserOptions,
  toBody: (call: AdvisedCall) => object,
  read: (body: JsonObject) => AdviserAnswer,
): Adviser {
  const target = new URL(url);
  if (target.protocol !== 'http:' && target.protocol !== 'https:')
    throw new TypeError(`${name}: expected an http URL`);
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  return {
    name,
    timeoutMs,
    policyDigest,
    advise: async (call, { signal }) => {
      const { status, bytes } = await requestJson({
        url: target,
        headers,
        body: JSON.stringify(toBody(call)),
        signal,
        maxBytes: MAX_ANSWER_BYTES,
      });
      if (status !== 200) throw new NorthrootError('ADVISER_FAILED', `answered with status ${status}`);
      const { value } = ingestJson(bytes, { numbers: 'double' });
      if (!isJsonObject(value)) throw new NorthrootError('ADVISER_FAILED', 'answered with no JSON object');
      return read(value);
    },
  };
}

function inputOf({ principalId, toolName, params, reserve, resources, session }: AdvisedCall): object {
  return { principal: principalId, tool: toolName, params, reserve: textsOf(reserve), resources, session };
}

function textsOf(reserve: AdvisedCall['reserve']): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(reserve).map(([unit, amount]) => [
      unit,
      typeof amount === 'object' ? amount : String(amount),
    ]),
  );
}

function readResult(result: JsonValue | undefined): AdviserAnswer {
  if (result === true) return { effect: 'permit' };
  if (result === false) return { effect: 'deny' };
  if (result === undefined || !isJsonObject(result))
    return { effect: 'deny', code: 'POLICY_UNDEFINED', reason: 'the policy has no answer' };
  const { effect, allow, params, approvers } = result;
  if (effect === undefined) return { effect: allow === true ? 'permit' : 'deny', ...textMembers(result) };
  // Checked with every adviser's answer.
  return { effect, params, approvers, ...textMembers(result) } as AdviserAnswer;
}

/** Only what has the form of a code is one. */
function textMembers({ code, reason }: JsonObject): Pick<AdviserAnswer, 'code' | 'reason'> {
  return {
    ...(typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? { code } : {}),
    ...(typeof reason === 'string' ? { reason } : {}),
  };
}
