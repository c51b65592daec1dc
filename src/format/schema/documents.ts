/** The JSON Schemas of every event type, record, key, trust policy and report, as documents for other tools (JSON Schema 2020-12). */

import { SCHEMAS } from './generated/schemas.js';

/** The names of the schemas, sorted: `authorization`, `common`, `record`, … */
export function schemaNames(): string[] {
  return Object.keys(SCHEMAS);
}

/** A copy of the schema of that name, or `undefined` when there is none. Its `$ref`s name the other schemas by file. */
export function schemaDocument(name: string): object | undefined {
  return Object.hasOwn(SCHEMAS, name) ? structuredClone(SCHEMAS[name]) : undefined;
}
