/**
 * What it is to be valid by a schema of the project (`generated/shapes.ts`), with the keywords of JSON Schema 2020-12 that they use and
 * no others; `schemas/generate.js` refuses a schema with more. Faults come in the order in which ajv gives them with `allErrors`.
 */

import { SHAPES } from './generated/shapes.js';
import { textLength } from './text-length.js';
import { escapePointer } from '../../base/json/pointer.js';

/** The errors that are kept of one value: one with more is junk. */
const MAX_ERRORS = 1000;

export interface SchemaError {
  /** RFC 6901 pointer to the failing value. */
  readonly instancePath: string;
  readonly keyword: string;
  readonly schema: SchemaNode;
  readonly data: unknown;
  /** The member that is missing (`required`), unknown (`additionalProperties`), or the tag of a union (`discriminator`). */
  readonly member: string | undefined;
}

/** A schema, with the keywords that the project's schemas use. */
export interface SchemaNode {
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: string;
  readonly enum?: readonly (string | number)[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: SchemaNode;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false | SchemaNode;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly allOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
  /** The member whose value says which branch of `oneOf` is meant. */
  readonly discriminator?: { readonly propertyName: string };
  readonly not?: SchemaNode;
  readonly if?: SchemaNode;
  readonly then?: SchemaNode;
  readonly else?: SchemaNode;
  /** `file.json` or `file.json#/$defs/name`. */
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, SchemaNode>>;
}

/** The schema that a `$ref` names, or the given one. */
export function resolveNode(node: SchemaNode): SchemaNode {
  return node.$ref === undefined ? node : referred(node.$ref);
}

function referred(ref: string): SchemaNode {
  const [file = '', name] = ref.split('.json#/$defs/');
  const document: SchemaNode | undefined = SHAPES[file.replace('.json', '')];
  const node = name === undefined ? document : document?.$defs?.[name];
  if (node === undefined) throw new RangeError(`no schema is called ${ref}`);
  return node;
}

interface Property {
  readonly name: string;
  readonly shape: Shape;
  /** What its pointer adds to that of the object. */
  readonly step: string;
}

export class Shape {
  readonly node: SchemaNode;
  readonly types: readonly string[];
  /** Whether the type is looked at before all else: ajv does where no keyword is for this type alone. */
  readonly isTypeFirst: boolean;
  readonly ref: Shape | undefined;

  readonly hasConditions: boolean;
  readonly const: string | undefined;
  readonly enum: ReadonlySet<unknown> | undefined;
  readonly not: Shape | undefined;
  readonly allOf: readonly Shape[];
  readonly if: Shape | undefined;
  readonly then: Shape | undefined;
  readonly else: Shape | undefined;

  readonly isOfNumbers: boolean;
  readonly minimum: number;
  readonly maximum: number;

  readonly isOfTexts: boolean;
  readonly minLength: number;
  readonly maxLength: number;
  readonly pattern: RegExp | undefined;

  readonly isOfArrays: boolean;
  readonly minItems: number;
  readonly maxItems: number;
  readonly items: Shape | undefined;

  readonly isOfObjects: boolean;
  readonly minProperties: number;
  readonly maxProperties: number;
  readonly required: readonly string[];
  readonly properties: readonly Property[];
  readonly names: ReadonlySet<string>;
  /** Whether members that have no schema of their own are looked at. */
  readonly isClosed: boolean;
  readonly additional: Shape | undefined;
  readonly tag: string | undefined;
  readonly branches: ReadonlyMap<unknown, Shape>;

  constructor(node: SchemaNode) {
    this.node = node;
    this.types = [node.type ?? []].flat();
    this.ref = node.$ref === undefined ? undefined : referredShape(node.$ref);

    this.const = node.const;
    this.enum = node.enum && new Set(node.enum);
    this.not = node.not && shapeOf(node.not);
    this.allOf = (node.allOf ?? []).map(shapeOf);
    this.if = node.if && shapeOf(node.if);
    this.then = node.then && shapeOf(node.then);
    this.else = node.else && shapeOf(node.else);
    this.hasConditions = (['const', 'enum', 'not', 'allOf', 'if'] as const).some((each) => each in node);

    this.minimum = node.minimum ?? -Infinity;
    this.maximum = node.maximum ?? Infinity;
    this.isOfNumbers = 'minimum' in node || 'maximum' in node;

    this.minLength = node.minLength ?? 0;
    this.maxLength = node.maxLength ?? Infinity;
    this.pattern = node.pattern === undefined ? undefined : new RegExp(node.pattern, 'u');
    this.isOfTexts = 'minLength' in node || 'maxLength' in node || 'pattern' in node;

    this.minItems = node.minItems ?? 0;
    this.maxItems = node.maxItems ?? Infinity;
    this.items = node.items && shapeOf(node.items);
    this.isOfArrays = 'minItems' in node || 'maxItems' in node || 'items' in node;

    this.minProperties = node.minProperties ?? 0;
    this.maxProperties = node.maxProperties ?? Infinity;
    this.required = node.required ?? [];
    this.properties = Object.entries(node.properties ?? {}).map(([name, inner]) => ({
      name,
      shape: shapeOf(inner),
      step: stepTo(name),
    }));
    this.names = new Set(this.properties.map(({ name }) => name));
    this.isClosed = 'additionalProperties' in node;
    this.additional = node.additionalProperties ? shapeOf(node.additionalProperties) : undefined;
    const tag = node.discriminator?.propertyName;
    this.tag = tag;
    this.branches = new Map(
      tag === undefined
        ? []
        : (node.oneOf ?? []).map((each) => [resolveNode(each).properties?.[tag]?.const, shapeOf(each)]),
    );
    this.isOfObjects =
      'required' in node ||
      'properties' in node ||
      'minProperties' in node ||
      'maxProperties' in node ||
      this.isClosed ||
      tag !== undefined;

    const isForTypeAlone =
      (node.type === 'string' && this.isOfTexts) ||
      (node.type === 'array' && this.isOfArrays) ||
      (node.type === 'object' && this.isOfObjects);
    this.isTypeFirst = this.types.length > 0 && !isForTypeAlone;
  }
}

/** Bounded by the number of definitions. No schema refers to itself. */
const shapes = new Map<string, Shape>();

export function referredShape(ref: string): Shape {
  let shape = shapes.get(ref);
  if (shape === undefined) {
    shape = new Shape(referred(ref));
    shapes.set(ref, shape);
  }
  return shape;
}

export function shapeOf(node: SchemaNode): Shape {
  // Most only refer to a definition.
  return node.$ref !== undefined && Object.keys(node).length === 1
    ? referredShape(node.$ref)
    : new Shape(node);
}

/** @param errors - Where failed keywords go; without it, only the verdict counts */
export function isValid(shape: Shape, value: unknown, path = '', errors?: SchemaError[]): boolean {
  const { ref } = shape;
  let valid = true;
  if (shape.isTypeFirst && !shape.types.some((type) => isOfType(type, value)))
    valid = fail(errors, path, 'type', shape, value);
  if (ref !== undefined && !isValid(ref, value, path, errors)) valid = false;
  if (shape.hasConditions && !meetsConditions(shape, value, path, errors)) valid = false;
  if (shape.isOfNumbers && typeof value === 'number' && Number.isFinite(value)) {
    if (value > shape.maximum) valid = fail(errors, path, 'maximum', shape, value);
    if (value < shape.minimum) valid = fail(errors, path, 'minimum', shape, value);
  }
  if (shape.isOfTexts) {
    if (typeof value === 'string') {
      // A character is one or two units.
      if (value.length > shape.maxLength && textLength(value) > shape.maxLength)
        valid = fail(errors, path, 'maxLength', shape, value);
      if (value.length < 2 * shape.minLength && textLength(value) < shape.minLength)
        valid = fail(errors, path, 'minLength', shape, value);
      if (shape.pattern?.test(value) === false) valid = fail(errors, path, 'pattern', shape, value);
    } else if (shape.node.type === 'string') valid = fail(errors, path, 'type', shape, value);
  }
  if (shape.isOfArrays) {
    if (Array.isArray(value)) {
      if (value.length > shape.maxItems) valid = fail(errors, path, 'maxItems', shape, value);
      if (value.length < shape.minItems) valid = fail(errors, path, 'minItems', shape, value);
      const { items } = shape;
      for (let i = 0; items !== undefined && i < value.length; i++)
        if (!isValid(items, value[i], errors && `${path}/${i}`, errors)) valid = false;
    } else if (shape.node.type === 'array') valid = fail(errors, path, 'type', shape, value);
  }
  if (shape.isOfObjects) {
    if (isObject(value)) {
      if (!hasMembers(shape, value, path, errors)) valid = false;
    } else if (shape.node.type === 'object') valid = fail(errors, path, 'type', shape, value);
  }
  return valid;
}

/** The keywords for values of any type. */
function meetsConditions(shape: Shape, value: unknown, path: string, errors?: SchemaError[]): boolean {
  let valid = true;
  if (shape.const !== undefined && shape.const !== value) valid = fail(errors, path, 'const', shape, value);
  if (shape.enum?.has(value) === false) valid = fail(errors, path, 'enum', shape, value);
  if (shape.not !== undefined && isValid(shape.not, value)) valid = fail(errors, path, 'not', shape, value);
  for (const each of shape.allOf) if (!isValid(each, value, path, errors)) valid = false;
  if (shape.if !== undefined) {
    const clause = isValid(shape.if, value) ? shape.then : shape.else;
    if (clause !== undefined && !isValid(clause, value, path, errors))
      valid = fail(errors, path, 'if', shape, value);
  }
  return valid;
}

/** The keywords for objects. */
function hasMembers(
  shape: Shape,
  value: Readonly<Record<string, unknown>>,
  path: string,
  errors?: SchemaError[],
): boolean {
  const { additional, tag } = shape;
  let valid = true;
  if (shape.maxProperties < Infinity && Object.keys(value).length > shape.maxProperties)
    valid = fail(errors, path, 'maxProperties', shape, value);
  if (shape.minProperties > 0 && Object.keys(value).length < shape.minProperties)
    valid = fail(errors, path, 'minProperties', shape, value);
  for (const name of shape.required)
    if (value[name] === undefined) valid = fail(errors, path, 'required', shape, value, name);
  if (shape.isClosed) {
    for (const name in value) {
      if (shape.names.has(name)) continue;
      if (additional === undefined) valid = fail(errors, path, 'additionalProperties', shape, value, name);
      else if (!isValid(additional, value[name], errors && path + stepTo(name), errors)) valid = false;
    }
  }
  // Not only what `for … in` tells of: a getter of a class is a member, too.
  for (const { name, shape: inner, step } of shape.properties) {
    const member = value[name];
    if (member !== undefined && !isValid(inner, member, errors && path + step, errors)) valid = false;
  }
  if (tag !== undefined) {
    const branch = shape.branches.get(value[tag]);
    if (branch === undefined) valid = fail(errors, path, 'discriminator', shape, value, tag);
    else if (!isValid(branch, value, path, errors)) valid = false;
  }
  return valid;
}

function fail(
  errors: SchemaError[] | undefined,
  instancePath: string,
  keyword: string,
  { node: schema }: Shape,
  data: unknown,
  member?: string,
): false {
  if (errors !== undefined && errors.length < MAX_ERRORS)
    errors.push({ instancePath, keyword, schema, data, member });
  return false;
}

/** Of the whole name, however long: places are compared by it. */
function stepTo(name: string): string {
  return `/${escapePointer(name)}`;
}

export function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
