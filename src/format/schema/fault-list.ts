/**
 * Turns the errors of validators into faults with the codes of SPEC §8: one per place, none for keywords that only combine
 * others. Keeps the first {@link MAX_FAULTS} in the order of the canonical document (members by UTF-16 code units, items by index, a
 * missing member where it would be), in whatever order they are found.
 */

import type { ValueFault } from '../../base/fault.js';
import { jsonPointer } from '../../base/json/pointer.js';
import { excerptJson } from './excerpt.js';
import { textLength } from './text-length.js';
import { resolveNode, type SchemaError, type SchemaNode } from './shape.js';

/** The codes of SPEC §8 for shapes and values. */
export type ShapeCode =
  | 'SCHEMA'
  | 'TIMESTAMP_INVALID'
  | 'QUANTITY_INVALID'
  | 'METER_UNIT_DUPLICATE'
  | 'METER_NEGATIVE'
  | 'PROFILE_UNKNOWN'
  | 'EVENT_VERSION_UNKNOWN';

/** The most faults reported of one value. */
export const MAX_FAULTS = 16;

/** The code of a text or number with invalid content, by the title of its schema. */
const CODES: Readonly<Record<string, ShapeCode>> = {
  Timestamp: 'TIMESTAMP_INVALID',
  IntegerText: 'QUANTITY_INVALID',
  PositiveIntegerText: 'QUANTITY_INVALID',
  Scale: 'QUANTITY_INVALID',
  F64Bits: 'QUANTITY_INVALID',
  Quantity: 'QUANTITY_INVALID',
  PositiveIntQuantity: 'QUANTITY_INVALID',
  EventVersion: 'EVENT_VERSION_UNKNOWN',
  CanonicalProfileId: 'PROFILE_UNKNOWN',
};

/** A wrong type is reported before a wrong form, and that before a well-formed but unknown value. */
const RANKS: Readonly<Record<string, number>> = { type: 0, const: 2, enum: 2 };
const VALUE_RANK = 3;

const TYPE_PHRASES: Readonly<Record<string, string>> = {
  array: 'an array',
  integer: 'an integer',
  null: 'null',
  object: 'an object',
  string: 'a string',
};

interface RuleFault {
  readonly code: ShapeCode;
  readonly expected: string;
  readonly data: unknown;
}

interface Entry {
  readonly pointer: string;
  readonly rank: number;
  readonly fault: SchemaError | RuleFault;
}

export class FaultList {
  readonly #root: unknown;
  /** In order, at most {@link MAX_FAULTS}. Described only at the end: there may be thousands. */
  readonly #entries: Entry[] = [];

  constructor(root: unknown) {
    this.#root = root;
  }

  /** Adds a fault of a value rule, unless its place has a fault. */
  add(code: ShapeCode, pointer: string, expected: string, data: unknown): void {
    this.#insert(pointer, VALUE_RANK, { code, expected, data });
  }

  addErrors(errors: readonly SchemaError[]): void {
    for (const error of errors) {
      const { keyword, instancePath, member } = error;
      if (keyword === 'if') continue;
      const pointer = member === undefined ? instancePath : instancePath + jsonPointer([member]);
      this.#insert(pointer, RANKS[keyword] ?? 1, error);
    }
  }

  faults(): ValueFault<ShapeCode>[] {
    return this.#entries.map(({ pointer, fault }) => {
      const { code, expected, actual } =
        'keyword' in fault ? describeError(fault) : { ...fault, actual: excerptJson(fault.data) };
      return { code, pointer, expected, actual };
    });
  }

  #insert(pointer: string, rank: number, fault: Entry['fault']): void {
    const entry = { pointer, rank, fault };
    let at = this.#entries.length;
    for (; at > 0; at--) {
      const before = this.#entries[at - 1] as Entry;
      if (before.pointer === pointer) {
        if (rank < before.rank) this.#entries[at - 1] = entry;
        return;
      }
      if (this.#isBefore(before.pointer, pointer)) break;
    }
    this.#entries.splice(at, 0, entry);
    if (this.#entries.length > MAX_FAULTS) this.#entries.pop();
  }

  /** Whether one place comes before another; a place comes before all within it. */
  #isBefore(first: string, second: string): boolean {
    let container = this.#root;
    // Nearly all are members of the root whose names need no unescaping.
    const isFlat = first.lastIndexOf('/') === 0 && second.lastIndexOf('/') === 0;
    const isObject = container !== null && typeof container === 'object' && !Array.isArray(container);
    if (isObject && isFlat && !`${first}${second}`.includes('~')) return first < second;
    const a = first.split('/').slice(1);
    const b = second.split('/').slice(1);
    for (let i = 0; i < a.length && i < b.length; i++) {
      const x = unescape(a[i] as string);
      const y = unescape(b[i] as string);
      if (x !== y) return Array.isArray(container) ? Number(x) < Number(y) : x < y;
      container = (container as Record<string, unknown> | undefined)?.[x];
    }
    return a.length < b.length;
  }
}

function describeError(error: SchemaError): Omit<ValueFault<ShapeCode>, 'pointer'> {
  const { keyword, schema, data, member } = error;
  if (member === undefined)
    return { code: codeOf(error), expected: expectation(error), actual: actuality(error) };
  const value = (data as Record<string, unknown>)[member];
  const actual = value === undefined ? 'absent' : excerptJson(value);
  if (keyword === 'additionalProperties') return { code: 'SCHEMA', expected: 'no such member', actual };
  if (keyword === 'required') {
    const type = typeOf(schema.properties?.[member]);
    return { code: 'SCHEMA', expected: type === undefined ? 'present' : `present (${type})`, actual };
  }
  // What is left is `discriminator`: the member that tells the branches of a union apart.
  if (value === undefined) return { code: 'SCHEMA', expected: 'present (string)', actual };
  if (typeof value !== 'string') return { code: 'SCHEMA', expected: 'a string', actual };
  const tags = tagsOf(schema, member);
  return { code: CODES[schema.title ?? ''] ?? 'SCHEMA', expected: oneOf(tags), actual };
}

function codeOf({ keyword, schema, data }: SchemaError): ShapeCode {
  // 1.5 has the right JSON type for an integer.
  const isWrongType = keyword === 'type' && !(schema.type === 'integer' && typeof data === 'number');
  // A malformed profile id is not an unknown one.
  const isNoProfile = keyword === 'pattern' && schema.title === 'CanonicalProfileId';
  return (isWrongType || isNoProfile ? undefined : CODES[schema.title ?? '']) ?? 'SCHEMA';
}

function expectation({ keyword, schema }: SchemaError): string {
  switch (keyword) {
    case 'type':
      return [schema.type ?? []]
        .flat()
        .map((type) => TYPE_PHRASES[type] ?? type)
        .join(' or ');
    case 'const':
      return JSON.stringify(schema.const);
    case 'enum':
      return oneOf(schema.enum ?? []);
    case 'minLength':
    case 'maxLength':
      return range(schema.minLength, schema.maxLength, 'characters');
    case 'minItems':
    case 'maxItems':
      return range(schema.minItems, schema.maxItems, 'items');
    default:
      return schema.description ?? schema.pattern ?? keyword;
  }
}

function actuality({ keyword, data }: SchemaError): string {
  if (keyword === 'minItems' || keyword === 'maxItems') return `${(data as unknown[]).length} items`;
  if (keyword === 'minLength' || keyword === 'maxLength') return `${textLength(data as string)} characters`;
  return excerptJson(data);
}

function oneOf(values: readonly (string | number | undefined)[]): string {
  return values.length === 1 ? String(values[0]) : `one of ${values.join(', ')}`;
}

function range(least: number | undefined, most: number | undefined, what: string): string {
  if (most === undefined) return `at least ${least} ${least === 1 ? what.slice(0, -1) : what}`;
  return least === undefined ? `at most ${most} ${what}` : `${least} to ${most} ${what}`;
}

/** The values that tell a union's branches apart. */
function tagsOf(schema: SchemaNode, member: string): (string | undefined)[] {
  return (schema.oneOf ?? []).map((branch) => resolveNode(branch).properties?.[member]?.const);
}

/** A cache, bounded by the number of compiled schemas. */
const types = new WeakMap<SchemaNode, string>();

function typeOf(schema: SchemaNode | undefined): string | undefined {
  if (schema === undefined) return undefined;
  let type = types.get(schema);
  if (type === undefined) {
    type = [resolveNode(schema).type ?? []].flat().join(' or ');
    types.set(schema, type);
  }
  return type || undefined;
}

function unescape(token: string): string {
  return token.includes('~') ? token.replaceAll('~1', '/').replaceAll('~0', '~') : token;
}
