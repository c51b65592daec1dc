/** What the compiled validators (`generated/validators.ts`) are to the rest of the code. */

/** One failed keyword. */
export interface SchemaError {
  /** RFC 6901 pointer to the value that fails. */
  readonly instancePath: string;
  readonly keyword: string;
  /** The schema that the keyword stands in. */
  readonly schema: SchemaNode;
  /** The value that fails. */
  readonly data: unknown;
  /** The member meant: missing (`required`), too many (`additionalProperties`), telling the branches apart (`discriminator`). */
  readonly member: string | undefined;
}

/** A schema, as far as faults are told from it. */
export interface SchemaNode {
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: string;
  readonly enum?: readonly (string | number)[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly oneOf?: readonly SchemaNode[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, SchemaNode>>;
}

/** True when a value has the schema's shape; otherwise `errors` holds every failed keyword until the next call. */
export interface Validator {
  (value: unknown): boolean;
  errors?: readonly SchemaError[] | null;
}

/**
 * Adds an error to the list of one run of a validator; the list is made with the first.
 * @public The compiled validators import it.
 */
export function addError(
  list: SchemaError[] | null,
  instancePath: string,
  keyword: string,
  schema: SchemaNode,
  data: unknown,
  member?: string,
): SchemaError[] {
  const error = { instancePath, keyword, schema, data, member };
  if (list === null) return [error];
  list.push(error);
  return list;
}

/**
 * Appends in place: each list belongs to one run of a validator, so nothing else holds it.
 * @public The compiled validators import it.
 */
export function joinErrors(list: SchemaError[] | null, more: SchemaError[]): SchemaError[] {
  if (list === null) return more;
  for (const error of more) list.push(error);
  return list;
}
