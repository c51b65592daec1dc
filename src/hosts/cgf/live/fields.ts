/**
 * Bodies of CGF's requests, read as strictly as their schemas say: what is missing, of another type or too large is refused in the words of
 * the server that CGF's adapters know. Members that no schema has are allowed. No value of a request is in an answer.
 */

import { printable } from '../../../base/bytes/printable.js';
import {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceValue,
} from '../../../base/json/source-json.js';
import type { HttpRequest } from '../../../base/platform/serve-http.js';
import { isCompatible } from '../vocabulary.js';

/** An answer that refuses: `{"detail":…}`. */
export class Refusal extends Error {
  readonly status: number;
  readonly detail: string | readonly object[];

  constructor(status: number, detail: string | readonly object[]) {
    super(typeof detail === 'string' ? detail : 'the request is malformed');
    this.status = status;
    this.detail = detail;
  }
}

/** What is wrong with a member, as pydantic says it. */
interface FieldError {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

const MAX_ERRORS = 20;
/** Of ids. */
export const MAX_ID = 256;
const MAX_NAME = 256;
const MAX_LIST = 1_024;
const MAX_TEXT = 65_536;

/** Members of an object, read with their types; all that is wrong is told together by {@link Fields.end}. */
export class Fields {
  readonly object: SourceObject;
  readonly #at: readonly string[];
  readonly #errors: FieldError[];

  constructor(object: SourceObject, at: readonly string[] = ['body'], errors: FieldError[] = []) {
    this.object = object;
    this.#at = at;
    this.#errors = errors;
  }

  /** A text of at most `most` characters; undefined, with an error, where it is missing or none. */
  text(name: string, most = MAX_NAME): string | undefined {
    const value = this.#required(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'string') return this.fault(name, 'str type expected', 'type_error.str');
    if (value.length <= most) return value;
    return this.fault(
      name,
      `ensure this value has at most ${most} characters`,
      'value_error.any_str.max_length',
    );
  }

  /** An id: as {@link Fields.text}, and not empty. */
  id(name: string): string | undefined {
    const text = this.text(name, MAX_ID);
    if (text !== '') return text;
    return this.fault(name, 'ensure this value has at least 1 characters', 'value_error.any_str.min_length');
  }

  optionalText(name: string, most = MAX_NAME): string | undefined {
    return this.#has(name) ? this.text(name, most) : undefined;
  }

  /** The text of a number, with its spelling. */
  number(name: string, isSigned = true): string | undefined {
    const value = this.#required(name);
    if (value === undefined) return undefined;
    if (!(value instanceof SourceNumber) || !Number.isFinite(Number(value.text)))
      return this.fault(name, 'value is not a valid float', 'type_error.float');
    if (isSigned || Number(value.text) >= 0) return value.text;
    return this.fault(name, 'ensure this value is greater than or equal to 0', 'value_error.number.not_ge');
  }

  optionalNumber(name: string, isSigned = true): string | undefined {
    return this.#has(name) ? this.number(name, isSigned) : undefined;
  }

  flag(name: string): boolean | undefined {
    const value = this.#required(name);
    if (value === undefined || typeof value === 'boolean') return value;
    return this.fault(name, 'value could not be parsed to a boolean', 'type_error.bool');
  }

  optionalFlag(name: string): boolean | undefined {
    return this.#has(name) ? this.flag(name) : undefined;
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.#required(name);
    if (value === undefined || choices.includes(value as T)) return value as T | undefined;
    const msg = `value is not a valid enumeration member; permitted: ${choices.map((each) => `'${each}'`).join(', ')}`;
    return this.fault(name, msg, 'type_error.enum');
  }

  fields(name: string): Fields | undefined {
    const value = this.#required(name);
    if (value === undefined) return undefined;
    if (value instanceof SourceObject) return new Fields(value, [...this.#at, name], this.#errors);
    return this.fault(name, 'value is not a valid dict', 'type_error.dict');
  }

  optionalFields(name: string): Fields | undefined {
    return this.#has(name) ? this.fields(name) : undefined;
  }

  /** A list of at most 1,024 texts. */
  texts(name: string, most = MAX_NAME): readonly string[] | undefined {
    const value = this.#required(name);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) return this.fault(name, 'value is not a valid list', 'type_error.list');
    const list = value as readonly SourceValue[];
    if (list.length > MAX_LIST)
      return this.fault(
        name,
        `ensure this value has at most ${MAX_LIST} items`,
        'value_error.list.max_items',
      );
    const isText = (each: SourceValue): each is string => typeof each === 'string' && each.length <= most;
    if (list.every(isText)) return list;
    return this.fault(name, `expected texts of at most ${most} characters`, 'type_error.str');
  }

  optionalTexts(name: string, most = MAX_NAME): readonly string[] | undefined {
    return this.#has(name) ? this.texts(name, most) : undefined;
  }

  /** `schema_version`, which a member of a request may leave out. */
  version(): void {
    const version = this.optionalText('schema_version');
    if (version !== undefined && !isCompatible(version))
      this.fault('schema_version', 'Incompatible schema_version', 'value_error');
  }

  fault(name: string, msg: string, type: string): undefined {
    if (this.#errors.length < MAX_ERRORS) this.#errors.push({ loc: [...this.#at, name], msg, type });
    return undefined;
  }

  /** @throws Refusal 422 */
  end(): void {
    if (this.#errors.length > 0) throw new Refusal(422, this.#errors);
  }

  #has(name: string): boolean {
    const value = this.object.get(name);
    return value !== undefined && value !== null;
  }

  #required(name: string): SourceValue | undefined {
    const value = this.object.get(name);
    if (value !== undefined) return value;
    return this.fault(name, 'field required', 'value_error.missing');
  }
}

/**
 * The body of a request, with a version that is understood.
 * @throws Refusal 400, 415, 422
 */
export function readFields({ headers, body }: HttpRequest): Fields {
  // A page of another origin can send forms without being asked, but no JSON.
  if (!/^application\/json\s*(?:;|$)/i.test(headers['content-type'] ?? ''))
    throw new Refusal(415, 'Unsupported Media Type');
  const decoded = decodeSourceJson(body);
  if (!decoded.ok) {
    const { code, offset } = decoded.fault;
    const msg = code === 'DUPLICATE_KEY' ? 'a member is there twice' : 'the body is not valid JSON';
    throw new Refusal(422, [{ loc: ['body', offset], msg, type: 'value_error.jsondecode' }]);
  }
  if (!(decoded.value instanceof SourceObject))
    throw new Refusal(422, [{ loc: ['body'], msg: 'value is not a valid dict', type: 'type_error.dict' }]);
  const fields = new Fields(decoded.value);
  const version = fields.optionalText('schema_version');
  fields.end();
  if (version !== undefined && !isCompatible(version))
    throw new Refusal(400, `Incompatible schema version: ${printable(version, 32)}. Min: 0.2.0`);
  return fields;
}

/** Of errors, summaries and side effects. */
export { MAX_TEXT };
