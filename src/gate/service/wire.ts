/**
 * The wire of the gate: JSON with members in snake_case (`schemas/openapi/gate.json`). Requests are strict: duplicate keys, unknown members
 * and wrong types are refused.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { type Digest, tryParseDigest } from '../../base/value/digest.js';
import type { AmountsByUnit } from '../../base/value/meter.js';
import type { MeterBasis, ResourceRef } from '../../format/schema/generated/types.js';
import type {
  CallName,
  CallOutcome,
  Coverage,
  GateAnswer,
  GateCall,
  GateDecision,
  Settled,
} from '../gate.js';

/** @throws NorthrootError `USAGE` */
export function readBody(body: Uint8Array): JsonObject {
  const { value, issues } = ingestJson(body, { numbers: 'double' });
  const [issue] = issues;
  if (value === undefined)
    throw malformed(`the body is not sound JSON: ${issue?.code} at byte ${issue?.offset}`);
  if (!isJsonObject(value)) throw malformed('expected an object');
  return value;
}

/** Reads members of known types; what is left over is refused. */
export class Members {
  readonly #object: JsonObject;
  readonly #where: string;
  readonly #read = new Set<string>();

  constructor(object: JsonObject, where = '') {
    this.#object = object;
    this.#where = where;
  }

  any(name: string): JsonValue | undefined {
    this.#read.add(name);
    return Object.hasOwn(this.#object, name) ? this.#object[name] : undefined;
  }

  text(name: string, max = 4_096): string | undefined {
    const value = this.any(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'string' && value.length <= max) return value;
    throw this.#wrong(name, `a text of at most ${max} characters`);
  }

  whole(name: string, max: number): number | undefined {
    const value = this.any(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'number' && value >= 0 && value <= max) return value;
    throw this.#wrong(name, `a number from 0 to ${max}`);
  }

  flag(name: string): boolean | undefined {
    const value = this.any(name);
    if (value === undefined || value === null || typeof value === 'boolean') return value ?? undefined;
    throw this.#wrong(name, 'true or false');
  }

  digest(name: string): Digest | undefined {
    const text = this.text(name);
    const digest = text === undefined ? undefined : tryParseDigest(text);
    if (digest !== undefined || text === undefined) return digest;
    throw this.#wrong(name, 'a digest, sha-256:…');
  }

  object(name: string): Members | undefined {
    const value = this.any(name);
    if (value === undefined || value === null) return undefined;
    if (isJsonObject(value)) return new Members(value, `${this.#where}/${name}`);
    throw this.#wrong(name, 'an object');
  }

  /** Amounts as texts, such as `{"usd":"0.10"}`; whole numbers count too. */
  amounts(name: string): AmountsByUnit | undefined {
    const value = this.any(name);
    if (value === undefined || value === null) return undefined;
    const isAmount = (each: JsonValue): each is string | number =>
      typeof each === 'string' ? each.length <= 64 : typeof each === 'number' && Number.isSafeInteger(each);
    if (!isJsonObject(value) || !Object.values(value).every(isAmount))
      throw this.#wrong(name, 'amounts by unit as texts, such as {"usd":"0.10"}');
    return value as AmountsByUnit;
  }

  list(name: string, max: number): readonly JsonValue[] | undefined {
    const value = this.any(name);
    if (value === undefined || value === null) return undefined;
    if (Array.isArray(value) && value.length <= max) return value;
    throw this.#wrong(name, `a list of at most ${max}`);
  }

  /** @throws NorthrootError `USAGE` for a member that was not read */
  end(): void {
    for (const name of Object.keys(this.#object))
      if (!this.#read.has(name))
        throw malformed(`there is no member ${printable(name, 80)} in ${this.#where || 'the body'}`);
  }

  #wrong(name: string, expected: string): NorthrootError {
    return malformed(`${this.#where}/${name}: expected ${expected}`);
  }
}

export interface DecideRequest {
  readonly call: GateCall;
  readonly waitMs: number | undefined;
}

const MAX_WAIT_MS = 3_600_000;
const MAX_MS = Number.MAX_SAFE_INTEGER;

/** @throws NorthrootError `USAGE` */
export function readDecide(body: JsonObject): DecideRequest {
  const members = new Members(body);
  const tool = members.text('tool');
  if (tool === undefined) throw malformed('/tool: expected the name of a tool');
  const resources = members.list('resources', 64)?.map(readResource);
  const call: GateCall = {
    tool,
    params: members.any('params') ?? {},
    ref: members.text('ref'),
    session: members.text('session'),
    principal: members.text('principal'),
    reserve: members.amounts('reserve'),
    resources,
    intent: members.any('intent'),
    grantId: members.text('grant_id'),
    ttlMs: members.whole('ttl_ms', MAX_MS),
    start: members.flag('start'),
    coverage: members.text('coverage') as Coverage | undefined,
  };
  const waitMs = members.whole('wait_ms', MAX_WAIT_MS);
  members.end();
  return { call, waitMs };
}

function readResource(value: JsonValue): ResourceRef {
  const { kind, reference } = isJsonObject(value) ? value : {};
  if (typeof kind === 'string' && typeof reference === 'string') return { kind, reference };
  throw malformed('/resources: expected a list of {kind, reference}');
}

/** Which call, or all of a session. @throws NorthrootError `USAGE` */
export function readName(members: Members): CallName {
  return {
    ref: members.text('ref'),
    session: members.text('session'),
    principal: members.text('principal'),
    tool: members.text('tool'),
    params: members.any('params'),
  };
}

/** @throws NorthrootError `USAGE` */
export function readSettle(body: JsonObject): { readonly name: CallName; readonly outcome: CallOutcome } {
  const members = new Members(body);
  const name = readName(members);
  const outcome = {
    outcome: members.text('outcome') as CallOutcome['outcome'],
    used: members.amounts('used'),
    output: members.any('output'),
    outputDigest: members.digest('output_digest'),
    paramsDigest: members.digest('params_digest'),
    errorCode: members.text('error_code'),
    durationMs: members.whole('duration_ms', MAX_MS),
    meterBasis: members.text('meter_basis') as MeterBasis | undefined,
    modelId: members.text('model_id'),
    provider: members.text('provider'),
  };
  members.end();
  return { name, outcome };
}

export function writeAnswer({ effect, code, reason, params, remaining, need }: GateAnswer): object {
  return {
    effect,
    code,
    reason,
    params,
    remaining,
    need: need && {
      grant_id: need.grantId,
      approvers: need.approvers,
      count: need.count,
      grant_ids: need.grantIds,
    },
  };
}

export function writeDecision(decision: GateDecision): object {
  const { ref, authorization, start, expires, isRepeated, shadow } = decision;
  return { ...writeAnswer(decision), ref, authorization, start, expires, is_repeated: isRepeated, shadow };
}

export function writeSettled({ authorization, recorded }: Settled): object {
  return {
    authorization: authorization ?? null,
    recorded:
      recorded === undefined
        ? null
        : { seq: recorded.seq, event_id: recorded.eventId, verdict: recorded.verdict ?? null },
  };
}

export function malformed(message: string): NorthrootError {
  return new NorthrootError('USAGE', message);
}
