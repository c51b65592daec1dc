/** Members that an event of an open type has instead of those that it lacks: nothing else says of a misspelt name that it is one. */

import { didYouMean } from '../../base/bytes/did-you-mean.js';
import { printable } from '../../base/bytes/printable.js';
import { schemaOfEventType } from '../schema/fault-words.js';
import { SCHEMAS } from '../schema/generated/schemas.js';

const MAX_NAME_LENGTH = 80;

/**
 * What stands where a member is missing.
 *
 * @param pointer - Where it is missing.
 * @returns `the member "event_tpye"`; undefined where nothing is like it, and for types that name their unknown members.
 */
export function findMisspelt(event: object, pointer: string): string | undefined {
  const missing = pointer.slice(1);
  if (missing.includes('/')) return undefined;
  if (schemaOfEventType((event as { readonly event_type?: unknown }).event_type) !== undefined)
    return undefined;
  const { properties = {} } = (SCHEMAS['event'] ?? {}) as { readonly properties?: object };
  const found = Object.keys(event).find(
    (name) => !Object.hasOwn(properties, name) && didYouMean(name, [missing]) !== undefined,
  );
  return found && `the member "${printable(found, MAX_NAME_LENGTH)}"`;
}
