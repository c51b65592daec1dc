/**
 * What the guards of agent SDKs share: a guarded call whose result may say that it failed, and one whose result comes in pieces. The SDKs
 * are no dependencies: the guards know them by structure alone. `usage.ts` meters calls of models.
 */

import { printable } from '../../base/bytes/printable.js';
import { joinSignals } from '../../base/deadline.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytesWithout } from '../../base/json/omit-undefined.js';
import { checkString, describeValue } from '../../base/options.js';
import { type Digest, sha256Digest } from '../../base/value/digest.js';
import { escapeToolName } from '../../base/value/tool.js';
import { DeniedError } from '../../log/agent/errors.js';
import type { GuardContext, GuardOptions } from '../../log/agent/guard.js';
import type { LiveLedger } from '../../log/agent/live-ledger.js';
import { readGuarded } from '../guard-stream.js';
import { type Answerer, wasRefused } from './refused.js';

/** How calls are guarded: as {@link GuardOptions}, for every call of a kit. */
export type CallGuardOptions = Omit<GuardOptions, 'signal' | 'intent' | 'intentDigest' | 'contextDigest'>;

/** How a denial reaches the caller: `tell` hands it to the model as the call's error, `throw` throws a `DeniedError`. */
export type OnDenied = 'tell' | 'throw';

export interface KitCall {
  /** As the SDK names the tool; recorded as `escapeToolName` writes it. */
  readonly tool: string;
  /** What the digest of the parameters is of. */
  readonly params: unknown;
  readonly signal?: AbortSignal | undefined;
  /** Where it is not run here: what it throws gives the reservation back only if it {@link wasRefused}. */
  readonly answerer?: Answerer | undefined;
}

export type GuardingLedger = Pick<LiveLedger, 'guard'>;

export interface ReadResult {
  /** What the recorded digest is of. */
  readonly output?: unknown;
  /** The code (SPEC §2) of a result that is an error. */
  readonly fault?: string | undefined;
}

/** A result that says that the call failed: thrown through the guard, so that a failure is recorded, and caught behind it. */
class Fault extends Error {
  readonly code: string;
  readonly value: unknown;

  constructor(code: string, value: unknown) {
    super(code);
    this.code = code;
    this.value = value;
  }
}

/**
 * Guards one call, and records the digest of its result. One that is an error is recorded as a failure, charged as any result, and returned.
 * One that throws is a failure, and not charged; or `unknown`, charged as reserved, if it is not run here and was not refused.
 * @throws as `LiveLedger.guard`
 */
export async function guardCall<T>(
  ledger: GuardingLedger,
  { tool, params, signal: given, answerer }: KitCall,
  run: (context: GuardContext) => T | PromiseLike<T>,
  read: (value: T, context: GuardContext) => ReadResult,
  options: CallGuardOptions,
): Promise<T> {
  const broken = new AbortController();
  const { signal, clear } = joinSignals([given, broken.signal]);
  const runOnce = async (context: GuardContext): Promise<T> => {
    try {
      return await run(context);
    } catch (error) {
      // An aborted guard records that how it ended is unknown.
      if (answerer !== undefined && !wasRefused(error, answerer)) broken.abort(error);
      throw error;
    }
  };
  try {
    return await ledger.guard(
      escapeToolName(tool),
      toJson(params),
      async (context) => {
        const value = await runOnce(context);
        const { output, fault } = read(value, context);
        const digest = tryDigest(output);
        if (digest !== undefined) context.setOutputDigest(digest);
        if (fault !== undefined) throw new Fault(fault, value);
        return value;
      },
      { ...options, signal },
    );
  } catch (error) {
    if (error instanceof Fault) return error.value as T;
    throw error;
  } finally {
    clear();
  }
}

/**
 * As {@link guardCall}; a denial is returned as what `tell` makes of its text, unless it is to be thrown.
 * @throws as `LiveLedger.guard`
 */
export async function guardTold<T>(
  ledger: GuardingLedger,
  call: KitCall,
  run: (context: GuardContext) => T | PromiseLike<T>,
  read: (value: T, context: GuardContext) => ReadResult,
  { onDenied = 'tell', ...options }: CallGuardOptions & { readonly onDenied?: OnDenied | undefined },
  tell: (text: string) => T,
): Promise<T> {
  try {
    return await guardCall(ledger, call, run, read, options);
  } catch (error) {
    const text = onDenied === 'tell' ? denialText(error) : undefined;
    if (text === undefined) throw error;
    return tell(text);
  }
}

/** A result that comes in pieces, and what comes with it before them. */
export interface Streamed<H, P> {
  readonly head: H;
  readonly pieces: AsyncIterable<P>;
}

/**
 * Guards a call of a model whose result comes in pieces; resolves when it has begun. Recorded is `success` when the pieces end, and `unknown`,
 * charged as reserved, when they break, a piece is an error, the reader leaves or the signal is aborted: what was streamed until then is paid
 * for. One that throws before its first piece is recorded as by {@link guardCall}.
 * @param read - Looks at each piece
 * @throws as `LiveLedger.guard`; so does reading the pieces
 */
export async function guardPieces<H, P>(
  ledger: GuardingLedger,
  { tool, params, signal }: KitCall,
  begin: (context: GuardContext) => Streamed<H, P> | PromiseLike<Streamed<H, P>>,
  read: (piece: P, context: GuardContext) => Pick<ReadResult, 'fault'>,
  options: CallGuardOptions,
): Promise<{ readonly head: H; readonly pieces: AsyncGenerator<P, void, void> }> {
  const broken = new AbortController();
  const stream = readGuarded<Streamed<H, P>['head'] | P>(
    ledger,
    escapeToolName(tool),
    toJson(params),
    async function* (context) {
      let hasBegun = false;
      try {
        const { head, pieces } = await begin(context);
        yield head;
        let fault: string | undefined;
        for await (const piece of pieces) {
          hasBegun = true;
          fault = read(piece, context).fault ?? fault;
          yield piece;
        }
        if (fault !== undefined) throw new Fault(fault, undefined);
      } catch (error) {
        if (hasBegun || !wasRefused(error, 'model')) broken.abort(error);
        throw error;
      }
    },
    { ...options, signal },
    broken.signal,
  );
  const first = await stream.next();
  return { head: first.value as H, pieces: hideFaults(stream as AsyncGenerator<P, void, void>) };
}

/** The reader has seen the piece that is an error; the pieces then end for it as they did. */
function hideFaults<P>(stream: AsyncGenerator<P, void, void>): AsyncGenerator<P, void, void> {
  const next = async (): Promise<IteratorResult<P, void>> => {
    try {
      return await stream.next();
    } catch (error) {
      if (error instanceof Fault) return { done: true, value: undefined };
      throw error;
    }
  };
  const hiding = overriding(stream, { next, [Symbol.asyncIterator]: () => hiding });
  return hiding;
}

/** What the model is told of a call that was not run because the grants deny it; undefined for any other error. */
export function denialText(error: unknown): string | undefined {
  return error instanceof DeniedError ? refusalText(error.code, error.message) : undefined;
}

/** Likewise, of a decision. */
export function refusalText(code: string, reason = ''): string {
  return `${code}: ${printable(reason, MAX_REASON)}. The call was not run.`;
}

/** Of what a model is told. */
const MAX_REASON = 600;

/** The fault of a result in the form of MCP, which several SDKs hand on. */
export function mcpFault(result: unknown): string | undefined {
  const isError = typeof result === 'object' && result !== null && 'isError' in result && result.isError;
  return isError === true ? 'MCP_TOOL_ERROR' : undefined;
}

/** An object as it is, but for some members. Its own methods see the object itself, so that private members work. */
export function overriding<T extends object>(target: T, members: object): T {
  return new Proxy(target, {
    get: (object, name): unknown => {
      if (Object.hasOwn(members, name)) return (members as Record<string | symbol, unknown>)[name];
      const value: unknown = Reflect.get(object, name, object);
      const isMethod = typeof value === 'function' && !Object.hasOwn(object, name);
      return isMethod ? (value as () => unknown).bind(object) : value;
    },
  });
}

/** @throws TypeError unless it is an object with the method */
export function checkMethod(where: string, what: string, value: unknown, method: string): void {
  if (typeof (value as Record<string, unknown> | null | undefined)?.[method] === 'function') return;
  throw new TypeError(`${where}: expected ${what} with ${method}, found ${describeValue(value)}`);
}

/** Checks what guards one function under a name. @throws TypeError for a malformed argument */
export function checkGuarded(
  where: string,
  ledger: unknown,
  name: unknown,
  what: string,
  run: unknown,
): asserts run is (...args: unknown[]) => unknown {
  checkMethod(where, 'a ledger', ledger, 'guard');
  checkString(where, 'name', name);
  if (typeof run !== 'function')
    throw new TypeError(`${where}: expected ${what}, found ${describeValue(run)}`);
}

/** The digest of an output that is JSON, can be made so, or is bytes; undefined for any other, as no output may be lost by it. */
export function tryDigest(output: unknown): Digest | undefined {
  if (output === undefined) return undefined;
  try {
    return sha256Digest(output instanceof Uint8Array ? output : canonicalBytesWithout(toJson(output)));
  } catch {
    return undefined;
  }
}

/**
 * A value of an SDK as JSON: as it is if it is JSON; else as `JSON.stringify` writes it, with digests for bytes and texts for big integers.
 * @throws NorthrootError `PARAMS_NOT_JSON`, as what cannot be digested cannot be allowed
 */
export function toJson(value: unknown): unknown {
  try {
    if (value === undefined) return null;
    canonicalBytesWithout(value);
    return value;
  } catch {
    try {
      return JSON.parse(JSON.stringify(value, replace) ?? 'null');
    } catch (cause) {
      throw new NorthrootError('PARAMS_NOT_JSON', 'the parameters of a call are no JSON', { cause });
    }
  }
}

/** `JSON.stringify` calls it with the holder, where a value is still what it was before its own `toJSON`. */
function replace(this: unknown, name: string, value: unknown): unknown {
  const own = (this as Readonly<Record<string, unknown>>)[name];
  if (own instanceof Uint8Array) return { 'sha-256': sha256Digest(own).b64 };
  return typeof value === 'bigint' ? String(value) : value;
}
