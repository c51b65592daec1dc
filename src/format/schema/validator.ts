/** The interface of the compiled validators (`generated/validators.ts`). */

/** One failed keyword. */
export interface SchemaError {
  /** RFC 6901 pointer to the failing value. */
  readonly instancePath: string;
  readonly keyword: string;
  readonly schema: SchemaNode;
  /** The failing value. */
  readonly data: unknown;
  /** The member that is missing (`required`), unknown (`additionalProperties`), or the tag of a union (`discriminator`). */
  readonly member: string | undefined;
}

/** The parts of a schema that faults are described from. */
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

/** Whether a value has the schema's shape; if not, `errors` holds every failed keyword until the next call. */
export interface Validator {
  (value: unknown): boolean;
  errors?: readonly SchemaError[] | null;
}

/**
 * Adds an error to the list of one run of a validator, made on first use.
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
 * Appends in place: each list belongs to one run of a validator.
 * @public The compiled validators import it.
 */
export function joinErrors(list: SchemaError[] | null, more: SchemaError[]): SchemaError[] {
  if (list === null) return more;
  for (const error of more) list.push(error);
  return list;
}
