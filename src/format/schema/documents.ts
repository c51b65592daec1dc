/** The JSON Schemas (2020-12) of event types, records, keys, trust policies and reports, as documents for other tools. */

import { SCHEMAS } from './generated/schemas.js';

/** The names of the schemas, sorted: `authorization`, `common`, `record`, … */
export function schemaNames(): string[] {
  return Object.keys(SCHEMAS);
}

/** A copy of a schema; `undefined` if the name is unknown. Its `$ref`s name other schemas by file. */
export function schemaDocument(name: string): object | undefined {
  return Object.hasOwn(SCHEMAS, name) ? structuredClone(SCHEMAS[name]) : undefined;
}
