/**
 * What shows that no stored line was changed, so that an index of them need not hash all of them again: which server, table and ledger it
 * is, how often lines were changed or deleted (counted by a trigger), and that the trigger is the same. Appending does not change it.
 */

import type { Session } from './session.js';

const STAMP = `select concat_ws(':', (select system_identifier from pg_control_system()), h.id, c.last_value, c.is_called,
  t.tgrelid, t.oid, t.tgenabled, t.xmin, (select oid from pg_database where datname = current_database())) as stamp
  from northroot.head h, northroot.changed c, pg_trigger t
  where h.name = $1 and t.tgname = 'changed' and t.tgrelid = 'northroot.line'::regclass`;

/** Undefined where the role may not see it, or there is no such ledger. @throws as the session does */
export async function readStamp(session: Session, ledger: string): Promise<string | undefined> {
  const stamp: unknown = (await session.ask(STAMP, [ledger], 'northroot-stamp')).rows[0]?.['stamp'];
  return typeof stamp === 'string' && stamp !== '' ? stamp : undefined;
}
