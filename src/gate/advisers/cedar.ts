/**
 * Cedar as an adviser, by `@cedar-policy/cedar-wasm` 4, which the caller loads. Asked is `Action::"call"` by `Agent::"NAME"`
 * (`Human`, `Service`, `Org`) on `Tool::"NAME"`, with `context.params`, `context.reserve` and `context.session`. Cedar skips a policy that
 * fails, so that a broken `forbid` forbids nothing: any such error denies (`CEDAR_ERROR`).
 */

import { canonicalBytes } from '../../base/json/canonicalize.js';
import { describeValue } from '../../base/options.js';
import { sha256Digest } from '../../base/value/digest.js';
import { meters } from '../../base/value/meter.js';
import { formatQuantity } from '../../base/value/quantity.js';
import { NorthrootError } from '../../base/error.js';
import type { AdvisedCall, Adviser, AdviserAnswer } from './adviser.js';

/** What is used of `@cedar-policy/cedar-wasm/nodejs`. */
export interface CedarModule {
  preparsePolicySet(id: string, policies: { readonly staticPolicies: string }): CedarParsed;
  statefulIsAuthorized(call: object): CedarAnswer;
  validate(call: object): CedarValidated;
}

interface CedarFault {
  readonly message: string;
}

type CedarParsed =
  | { readonly type: 'success' }
  | { readonly type: 'failure'; readonly errors: readonly CedarFault[] };

type CedarValidated =
  | { readonly type: 'success'; readonly validationErrors: readonly { readonly error: CedarFault }[] }
  | { readonly type: 'failure'; readonly errors: readonly CedarFault[] };

type CedarAnswer =
  | {
      readonly type: 'success';
      readonly response: {
        readonly decision: string;
        readonly diagnostics: {
          readonly reason: readonly string[];
          readonly errors: readonly { readonly error: CedarFault }[];
        };
      };
    }
  | { readonly type: 'failure'; readonly errors: readonly CedarFault[] };

export interface CedarOptions {
  /** Policies in Cedar's text. */
  readonly policies: string;
  /** A schema in Cedar's text; policies are validated by it. */
  readonly schema?: string | undefined;
  /** Entities in Cedar's JSON. Default: none. */
  readonly entities?: readonly object[] | undefined;
  /** Default `cedar`. */
  readonly name?: string | undefined;
}

const KINDS: Readonly<Record<string, string>> = {
  human: 'Human',
  service: 'Service',
  agent: 'Agent',
  org: 'Org',
};
/** Names that Cedar's JSON gives a meaning: parameters could pretend to be entities. */
const RESERVED: readonly string[] = ['__entity', '__extn', '__expr'];
const MAX_DECIMALS = 4;
let loaded = 0;

/**
 * An adviser that asks Cedar policies.
 * @throws NorthrootError `POLICY_INVALID` for policies that do not parse, or that do not validate by the schema
 */
export function cedarAdviser(cedar: CedarModule, options: CedarOptions): Adviser {
  const { policies, schema, entities = [], name = 'cedar' } = options;
  const id = `northroot-${(loaded += 1)}`;
  const parsed = cedar.preparsePolicySet(id, { staticPolicies: policies });
  if (parsed.type === 'failure') throw invalid(parsed.errors);
  if (schema !== undefined) {
    const checked = cedar.validate({ schema, policies: { staticPolicies: policies } });
    if (checked.type === 'failure') throw invalid(checked.errors);
    if (checked.validationErrors.length > 0)
      throw invalid(checked.validationErrors.map(({ error }) => error));
  }
  const digested = { policies, entities: entities as never, ...(schema === undefined ? {} : { schema }) };
  return {
    name,
    policyDigest: sha256Digest(canonicalBytes(digested)),
    advise: (call) => advise(cedar, id, entities, call),
  };
}

function advise(
  cedar: CedarModule,
  id: string,
  entities: readonly object[],
  call: AdvisedCall,
): AdviserAnswer {
  const { principalId, toolName, params, reserve, session } = call;
  const [kind = '', ...rest] = principalId.split(':');
  const type = KINDS[kind];
  if (type === undefined) return deny('CEDAR_ERROR', 'the principal has no type');
  const answer = cedar.statefulIsAuthorized({
    principal: { type, id: rest.join(':') },
    action: { type: 'Action', id: 'call' },
    resource: { type: 'Tool', id: toolName },
    context: {
      params: toCedar(params),
      reserve: Object.fromEntries(
        meters(reserve).map(({ unit, amount }) => [unit, toNumber(formatQuantity(amount))]),
      ),
      ...(session === undefined ? {} : { session }),
    },
    preparsedPolicySetId: id,
    entities,
  });
  if (answer.type === 'failure') return deny('CEDAR_ERROR', answer.errors[0]?.message ?? 'it failed');
  const { decision, diagnostics } = answer.response;
  const [failed] = diagnostics.errors;
  if (failed !== undefined) return deny('CEDAR_ERROR', failed.error.message);
  if (decision === 'allow') return { effect: 'permit' };
  const [policy] = diagnostics.reason;
  return deny('CEDAR_DENIED', policy === undefined ? 'no policy permits it' : `forbidden by ${policy}`);
}

function deny(code: string, reason: string): AdviserAnswer {
  return { effect: 'deny', code, reason };
}

/** JSON as Cedar's values: null members are left out, fractions are decimals. @throws TypeError for what Cedar cannot have */
function toCedar(value: unknown): unknown {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : toNumber(String(value));
  if (Array.isArray(value)) return value.filter((each) => each !== null).map(toCedar);
  if (typeof value !== 'object' || value === null)
    throw new TypeError(`Cedar has no ${describeValue(value)}`);
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      if (RESERVED.includes(name)) throw new TypeError(`parameters may not have the member ${name}`);
      return member === null || member === undefined ? [] : [[name, toCedar(member)]];
    }),
  );
}

/** A decimal of at most four places; a longer one stays a text, with which no policy can calculate. */
function toNumber(text: string): unknown {
  const [, whole = '', places = ''] = /^(-?\d{1,14})(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === '' || places.length > MAX_DECIMALS) return text;
  return { __extn: { fn: 'decimal', arg: `${whole}.${places === '' ? '0' : places}` } };
}

function invalid(errors: readonly CedarFault[]): NorthrootError {
  return new NorthrootError(
    'POLICY_INVALID',
    `the policies are not valid: ${errors[0]?.message ?? 'unknown'}`,
  );
}
