/** The body of a request to a model: read strictly, since the provider must not read it otherwise than the gate does. */

import { decodeUtf8, encodeUtf8 } from '../../base/bytes/text.js';
import { type IngestCode, ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { MAX_COUNT, MAX_NAME_LENGTH } from '../price/usage.js';
import type { RefusalCode } from './model-api.js';

/** A request that is not forwarded. The message names members and limits, never values. */
export class RequestFault extends Error {
  readonly status: number;
  readonly code: RefusalCode;

  constructor(status: number, code: RefusalCode, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function invalid(message: string): RequestFault {
  return new RequestFault(400, 'REQUEST_INVALID', message);
}

export interface ParsedBody {
  readonly object: JsonObject;
  /** Whether it has a canonical form: no integer beyond ±(2^53−1), no -0. */
  readonly isCanonical: boolean;
}

/** What a value may have that its canonical form cannot: schemas of tools state the limits of 64-bit integers. */
const NOT_CANONICAL: ReadonlySet<IngestCode> = new Set(['UNSAFE_INTEGER', 'NEGATIVE_ZERO', 'NUMBER_INEXACT']);

/** @throws RequestFault unless it is one JSON object without duplicate keys, lone surrogates, numbers beyond doubles, deep nesting */
export function parseBody(bytes: Uint8Array): ParsedBody {
  const { value: exact, issues } = ingestJson(bytes, { numbers: 'double' });
  const fault = issues.find(({ code }) => !NOT_CANONICAL.has(code));
  const isCanonical = exact !== undefined;
  if (!isCanonical && (fault !== undefined || issues.length === 0)) {
    const found = `${fault?.code ?? 'NOT_JSON'} at byte ${fault?.offset ?? 0}`;
    throw new RequestFault(400, 'REQUEST_NOT_JSON', `the body is not sound JSON: ${found}`);
  }
  const value = isCanonical ? exact : (JSON.parse(decodeUtf8(bytes)) as JsonValue);
  if (!isJsonObject(value)) throw invalid('the body: expected an object');
  return { object: value, isCanonical };
}

/** Whether a name may be repeated in a refusal: others may be anything. */
export function isPlainName(name: string): boolean {
  return /^[a-z][a-z0-9_]{0,63}$/.test(name);
}

export function shownName(name: string): string {
  return isPlainName(name) ? name : 'of another name';
}

/** The members of a body. What is never asked for, and does not cost nothing, is not bounded. */
export class RequestMembers {
  readonly #object: JsonObject;
  readonly #asked = new Set<string>();

  constructor(object: JsonObject) {
    this.#object = object;
  }

  /** Undefined where it is absent or null. */
  any(name: string): JsonValue | undefined {
    this.#asked.add(name);
    return Object.hasOwn(this.#object, name) ? (this.#object[name] ?? undefined) : undefined;
  }

  has(name: string): boolean {
    return this.any(name) !== undefined;
  }

  /** @throws RequestFault for what is neither true nor false */
  flag(name: string): boolean {
    const value = this.any(name) ?? false;
    if (typeof value !== 'boolean') throw invalid(`${name}: expected true or false`);
    return value;
  }

  /** @throws RequestFault for what is no whole number from `min` to `max` */
  count(name: string, min: number, max: number = MAX_COUNT): number | undefined {
    const value = this.any(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
      throw invalid(`${name}: expected a whole number from ${min} to ${max}`);
    return value;
  }

  /** @throws RequestFault for what is no list */
  list(name: string): readonly JsonValue[] {
    const value = this.any(name) ?? [];
    if (!Array.isArray(value)) throw invalid(`${name}: expected an array`);
    return value;
  }

  /** @throws RequestFault for what is no object */
  object(name: string): JsonObject | undefined {
    const value = this.any(name);
    if (value !== undefined && !isJsonObject(value)) throw invalid(`${name}: expected an object`);
    return value;
  }

  /** Whether a member is absent or one of these texts. */
  isOneOf(name: string, ...texts: readonly string[]): boolean {
    const value = this.any(name);
    return value === undefined || (typeof value === 'string' && texts.includes(value));
  }

  /** @throws RequestFault unless `model` is a name */
  model(): string {
    const value = this.any('model');
    if (value === undefined) throw invalid('model: expected the name of a model, found none');
    return checkModel(value);
  }

  /**
   * The names that were not asked for and are not in `free`: of members that may cost what is not known here.
   * @throws RequestFault for a name that differs from a known one in its case alone, which some providers take for it
   */
  unknown(free: ReadonlySet<string>): string[] {
    const unknown: string[] = [];
    for (const name of Object.keys(this.#object)) {
      if (this.#asked.has(name) || free.has(name)) continue;
      const folded = name.normalize('NFKC').toLowerCase();
      if (this.#asked.has(folded) || free.has(folded))
        throw invalid(`${folded}: found it in another spelling of its letters`);
      unknown.push(`member ${shownName(name)}`);
    }
    return unknown;
  }
}

/** @throws RequestFault unless it is a name that prices and records can have */
export function checkModel(value: JsonValue): string {
  if (typeof value !== 'string' || value === '' || value.length > MAX_NAME_LENGTH || !isPlainText(value))
    throw invalid(`model: expected a name of 1 to ${MAX_NAME_LENGTH} characters`);
  return value;
}

function isPlainText(text: string): boolean {
  return !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/u.test(text);
}

/**
 * A bound of the tokens of what is written in the body. No tokenizer makes more than one token of a byte; but some first write a text in
 * another normal form (NFKC), in which it may be longer.
 */
export function textBound(bytes: Uint8Array, value: JsonValue): number {
  if (isAscii(bytes)) return bytes.length;
  return Math.max(bytes.length, encodeUtf8(JSON.stringify(value).normalize('NFKC')).length);
}

const BACKSLASH = 0x5c;
const LOWER_U = 0x75;

/** Whether no character beyond ASCII is in it, escaped ones included. */
function isAscii(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte > 0x7e || (byte === BACKSLASH && bytes[at + 1] === LOWER_U)) return false;
  }
  return true;
}
