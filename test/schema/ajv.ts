/** The project's schemas as a validator of others compiles them: what northroot only writes has no validator of its own. */

import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

const SCHEMAS = new URL('../../schemas/', import.meta.url);

const ajv = new Ajv2020({ strict: true });
for (const file of readdirSync(SCHEMAS).filter((name) => name.endsWith('.json'))) {
  ajv.addSchema(JSON.parse(readFileSync(new URL(file, SCHEMAS), 'utf8')) as object);
}

/** @param name - Of the schema's file, without `.json`. */
export function validatorOf(name: string): ValidateFunction {
  const found = ajv.getSchema(`https://northroot.dev/schemas/v1/${name}.json`);
  if (found === undefined) throw new Error(`no schema ${name}`);
  return found;
}
