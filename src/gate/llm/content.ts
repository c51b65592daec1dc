/** Members of what is in requests and answers. */

import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { invalid, isPlainName } from './request-body.js';

/** @throws RequestFault */
export function objectsOf(list: readonly JsonValue[], where: string): JsonObject[] {
  return list.map((each, index) => {
    if (!isJsonObject(each)) throw invalid(`${where}.${index}: expected an object`);
    return each;
  });
}

export function typeOf(object: JsonObject): string | undefined {
  const type = Object.hasOwn(object, 'type') ? object['type'] : undefined;
  return typeof type === 'string' ? type : undefined;
}

export function memberOf(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

/** How a tool without a bound is called. */
export function toolName(type: string | undefined): string {
  return type !== undefined && isPlainName(type) ? `tool ${type}` : 'tool of another type';
}
