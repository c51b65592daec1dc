/** Finds misspelt members of events of open types, where no schema refuses an unknown member. */

import { didYouMean } from '../../base/bytes/did-you-mean.js';
import { printable } from '../../base/bytes/printable.js';
import { schemaOfEventType } from '../schema/fault-words.js';
import { SHAPES } from '../schema/generated/shapes.js';

const MAX_NAME_LENGTH = 80;

/**
 * The member that may be meant to be the one missing at `pointer`.
 *
 * @returns `the member "event_tpye"`; undefined if none is similar, and for types with a closed schema.
 */
export function findMisspelt(event: object, pointer: string): string | undefined {
  const missing = pointer.slice(1);
  if (missing.includes('/')) return undefined;
  if (schemaOfEventType((event as { readonly event_type?: unknown }).event_type) !== undefined)
    return undefined;
  const { properties = {} } = (SHAPES['event'] ?? {}) as { readonly properties?: object };
  const found = Object.keys(event).find(
    (name) => !Object.hasOwn(properties, name) && didYouMean(name, [missing]) !== undefined,
  );
  return found && `the member "${printable(found, MAX_NAME_LENGTH)}"`;
}
