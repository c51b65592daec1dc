/** Validates values by the project's schemas: `acceptance.ts` accepts nearly all that are valid, `shape.ts` says what is wrong with others. */

import { type Test, testOf } from './acceptance.js';
import { isValid, referredShape, type SchemaError } from './shape.js';

/** Whether a value has the schema's shape; if not, `errors` holds its first thousand failed keywords until the next call. */
export interface Validator {
  (value: unknown): boolean;
  errors?: readonly SchemaError[] | undefined;
}

/** @param ref - `file.json` or `file.json#/$defs/name` */
export function validatorOf(ref: string): Validator {
  let accepts: Test | undefined;
  const validate: Validator = (value) => {
    validate.errors = undefined;
    accepts ??= testOf({ $ref: ref });
    if (accepts(value)) return true;
    const errors: SchemaError[] = [];
    if (isValid(referredShape(ref), value, '', errors)) return true;
    validate.errors = errors;
    return false;
  };
  return validate;
}
