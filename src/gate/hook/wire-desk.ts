/** A desk over the socket of the service. Anything but an answer that is known counts as none. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalText } from '../../base/json/canonicalize.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { type Desk, type DeskCall, type DeskDecision, type DeskOutcome, HOOK_TTL_MS } from './desk.js';
import { Wire } from './wire.js';

const EFFECTS = ['allow', 'deny', 'ask', 'rewrite'] as const;
const CODE = /^[A-Z0-9_]{1,64}$/;
/** What a service may say of a request that can never be answered otherwise. */
const REFUSED_BELOW = 500;

/** Decides for hooks by asking the service at a Unix socket. Errors are a NorthrootError: `SERVICE_FAILED`, or the service's own code. */
export class WireDesk implements Desk {
  readonly #wire: Wire;
  /** Whether the connection broke, and somebody else may be asked. */
  isBroken = false;

  private constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** @returns Undefined where nobody listens */
  static async connect(path: string, token: string | undefined): Promise<WireDesk | undefined> {
    const wire = await Wire.connect(path, token);
    return wire && new WireDesk(wire);
  }

  close(): void {
    this.#wire.close();
  }

  async decide(call: DeskCall, { waitMs }: { readonly waitMs: number }): Promise<DeskDecision> {
    const answer = await this.#post('/v1/decide', {
      ...namesOf(call),
      tool: call.tool,
      params: call.params,
      ttl_ms: HOOK_TTL_MS,
      // Another rule of the host may yet refuse it.
      start: false,
      coverage: 'hook',
      ...(waitMs === 0 ? {} : { wait_ms: waitMs }),
    });
    const { effect: said, code, reason, ref, authorization, need, params } = answer;
    const effect = EFFECTS.find((each) => each === said);
    if (effect === undefined || typeof code !== 'string' || !CODE.test(code)) throw unknownAnswer();
    if (typeof ref !== 'string' || typeof authorization !== 'string') throw unknownAnswer();
    const approvers = isJsonObject(need) && Array.isArray(need['approvers']) ? need['approvers'] : [];
    return {
      effect,
      code,
      reason: typeof reason === 'string' ? reason : undefined,
      ref,
      authorization,
      params,
      approvers: approvers.filter((each) => typeof each === 'string'),
    };
  }

  async settle(call: DeskCall, outcome: DeskOutcome): Promise<void> {
    const { outputDigest, errorCode, durationMs } = outcome;
    await this.#post('/v1/settle', {
      ...nameOf(call),
      outcome: outcome.outcome,
      ...(outputDigest === undefined ? {} : { output_digest: outputDigest }),
      ...(errorCode === undefined ? {} : { error_code: errorCode }),
      ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
    });
  }

  async release(call: DeskCall): Promise<void> {
    await this.#post('/v1/release', nameOf(call));
  }

  async releaseSession(session: string, mayHaveRun: boolean): Promise<void> {
    await this.#post('/v1/release', { session, ...(mayHaveRun ? { may_have_run: true } : {}) });
  }

  async #post(target: string, body: JsonObject): Promise<JsonObject> {
    const text = canonicalText(body);
    const { status, body: bytes } = await this.#wire.request('POST', target, text).catch((error: unknown) => {
      this.isBroken = true;
      throw error;
    });
    const { value } = ingestJson(bytes);
    if (status !== 200) throw errorOf(status, value);
    if (!isJsonObject(value)) throw unknownAnswer();
    return value;
  }
}

function namesOf({ ref, session, principal }: DeskCall): JsonObject {
  return { ...(ref === undefined ? {} : { ref }), session, principal };
}

/** A call to be settled: by its id, or by what was asked for. */
function nameOf(call: DeskCall): JsonObject {
  return { ...namesOf(call), ...(call.ref === undefined ? { tool: call.tool, params: call.params } : {}) };
}

function errorOf(status: number, body: JsonValue | undefined): NorthrootError {
  const said = isJsonObject(body) && isJsonObject(body['error']) ? body['error'] : {};
  const { code, message } = said;
  const isKnown = typeof code === 'string' && CODE.test(code);
  // Without a code of its own, what is below 500 still refuses this very request.
  const own = isKnown ? code : status < REFUSED_BELOW ? 'NOT_ALLOWED' : 'SERVICE_FAILED';
  const why = typeof message === 'string' ? `: ${printable(message, 400)}` : '';
  return new NorthrootError(own, `the service answered ${status}${why}`);
}

function unknownAnswer(): NorthrootError {
  return new NorthrootError('SERVICE_FAILED', 'the service gave an answer that is not known');
}
