/**
 * The table of calls that were begun and whose execution says that their end is unknown, with what was reported of them later. No rule reads
 * it: it is kept so that every process records a late report once, and knows it again. Only such calls take room, about 180 bytes each.
 */

import type { Action, Amounts } from '../bounds/grant.js';
import { ID_KEY } from './approval-tables.js';
import { type Packing, PackedTable } from './packed-table.js';

export interface LostCall extends Pick<Action, 'principalId' | 'toolName' | 'params' | 'intent'> {
  readonly startedAt: string;
  readonly reservation: Amounts;
  /** What the settlement says was used. */
  readonly used: Amounts;
  /** The execution that says so, base64url. */
  readonly settlement: string;
  /** What was reported first, by `digestReport`. */
  readonly reported: string | undefined;
  readonly isDebited: boolean;
}

const LOST: Packing<LostCall> = {
  ...ID_KEY,
  write: (writer, call) => {
    writer.name(call.principalId);
    writer.name(call.toolName);
    writer.digest(call.params);
    writer.digest(call.intent);
    writer.time(call.startedAt);
    writer.amounts(call.reservation);
    writer.amounts(call.used);
    writer.id(call.settlement);
    writer.number((call.reported === undefined ? 0 : 1) + (call.isDebited ? 2 : 0));
    if (call.reported !== undefined) writer.id(call.reported);
    return true;
  },
  read: (reader) => {
    const call = {
      principalId: reader.name(),
      toolName: reader.name(),
      params: reader.digest() as string,
      intent: reader.digest() as string,
      startedAt: reader.time() as string,
      reservation: reader.amounts(),
      used: reader.amounts(),
      settlement: reader.id(),
    };
    const flags = reader.number();
    return { ...call, isDebited: flags >= 2, reported: flags % 2 === 1 ? reader.id() : undefined };
  },
};

export function lostCalls(): PackedTable<LostCall> {
  return new PackedTable(LOST);
}
