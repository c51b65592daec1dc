/** Answers of the contract that refuse something. */

import {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceValue,
} from '../../../base/json/source-json.js';

/** An answer that is no success: its status, and its body in the contract's own words. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string | undefined;
  readonly details: object | undefined;

  constructor(status: number, message: string, code?: string, details?: object) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }

  get body(): object {
    return {
      error: this.message,
      ...(this.code === undefined ? {} : { code: this.code }),
      ...this.details,
    };
  }
}

/** A body that is not of its schema, as the contract answers it. */
export function invalidPayload(fields: Readonly<Record<string, string>>): Refusal {
  const fieldErrors = Object.fromEntries(Object.entries(fields).map(([name, fault]) => [name, [fault]]));
  return new Refusal(400, 'Invalid payload', undefined, { details: { formErrors: [], fieldErrors } });
}

/** What a member must be. */
export type FieldKind =
  | 'text'
  | 'id'
  | 'number'
  | 'amount'
  | 'count'
  | 'boolean'
  | 'texts'
  | 'object'
  | 'list';

/** Members by name; with `?` at its end a kind is optional. */
export type Fields = Readonly<Record<string, FieldKind | `${FieldKind}?`>>;

const MAX_ID_LENGTH = 256;
const MAX_TEXTS = 64;
const MAX_TEXT_LENGTH = 128;
const MAX_DEPTH = 64;

/** @throws Refusal for what is no JSON object, or has a member twice */
export function readObject(body: Uint8Array): SourceObject {
  const decoded = decodeSourceJson(body, { maxDepth: MAX_DEPTH });
  if (decoded.ok && decoded.value instanceof SourceObject) return decoded.value;
  throw new Refusal(400, 'Invalid JSON', 'invalid_json');
}

/** @throws Refusal naming the members that are missing, or something else */
export function checkFields(object: SourceObject, fields: Fields): void {
  const faults: Record<string, string> = {};
  for (const [name, stated] of Object.entries(fields)) {
    const isOptional = stated.endsWith('?');
    const kind = (isOptional ? stated.slice(0, -1) : stated) as FieldKind;
    const value = object.get(name);
    if (value === undefined) {
      if (!isOptional) faults[name] = 'Required';
    } else if (!IS[kind](value)) faults[name] = `Expected ${WORDS[kind]}`;
  }
  if (Object.keys(faults).length > 0) throw invalidPayload(faults);
}

function isText(value: SourceValue, most: number): boolean {
  return typeof value === 'string' && value.length <= most && !/\p{Surrogate}/u.test(value);
}

const IS: Readonly<Record<FieldKind, (value: SourceValue) => boolean>> = {
  text: (value) => typeof value === 'string',
  id: (value) => value !== '' && isText(value, MAX_ID_LENGTH),
  number: (value) => value instanceof SourceNumber,
  amount: (value) => value instanceof SourceNumber && Number(value.text) >= 0,
  count: (value) => value instanceof SourceNumber && /^\d{1,15}$/.test(value.text),
  boolean: (value) => typeof value === 'boolean',
  texts: (value) =>
    Array.isArray(value) &&
    value.length <= MAX_TEXTS &&
    (value as readonly SourceValue[]).every((each) => each !== '' && isText(each, MAX_TEXT_LENGTH)),
  object: (value) => value instanceof SourceObject,
  list: (value) => Array.isArray(value),
};

const WORDS: Readonly<Record<FieldKind, string>> = {
  text: 'string',
  id: `string of 1 to ${MAX_ID_LENGTH} characters`,
  number: 'number',
  amount: 'number, at least 0',
  count: 'whole number, at least 0',
  boolean: 'boolean',
  texts: `array of at most ${MAX_TEXTS} strings of 1 to ${MAX_TEXT_LENGTH} characters`,
  object: 'object',
  list: 'array',
};
