/**
 * What a server promises of commits. It is asked after each connection is made: a standby that was promoted may promise less. Each append
 * demands that its settings are still the same: they can be changed while it runs.
 */

import { NorthrootError } from '../../base/error.js';
import type { Durability } from '../store/ledger-store.js';
import { malformed } from './postgres-error.js';
import type { Session } from './session.js';

export interface Promises {
  readonly durability: Durability;
  /** Whether standbys follow that no commit waits for: a failover may lose what was acknowledged. */
  readonly isAsynchronous: boolean;
  /** The settings by {@link SETTINGS}. */
  readonly settings: string;
}

/** SQL for the settings that promise anything, of which a server takes others while it runs. */
export const SETTINGS = `concat_ws(' ', current_setting('fsync'), current_setting('synchronous_standby_names'))`;

/**
 * A row a standby. Who may not see their states sees them as null. Who receives a backup or a logical stream is no standby.
 */
const QUERY = `select ${SETTINGS} as settings, current_setting('fsync') as fsync,
  current_setting('synchronous_standby_names') as names,
  (select count(*)::int from pg_stat_replication as r where ${isStandby()}) as standbys,
  (select count(*)::int from pg_stat_replication as r where ${isStandby()}
    and (r.sync_state is null or r.sync_state in ('sync', 'quorum'))) as synchronous`;

function isStandby(): string {
  return `(r.state is null or r.state in ('startup', 'catchup', 'streaming')) and not exists
    (select from pg_replication_slots as s where s.active_pid = r.pid and s.slot_type = 'logical')`;
}

/** @throws NorthrootError `STORE_NOT_DURABLE` if commits are not even written to a disk */
export async function readPromises(session: Session): Promise<Promises> {
  const [row = {}] = (await session.ask(QUERY, [])).rows;
  const { settings, fsync, names, standbys, synchronous } = row;
  const isSaid = typeof settings === 'string' && typeof names === 'string';
  if (!isSaid || typeof standbys !== 'number' || typeof synchronous !== 'number')
    throw malformed(session.name, 'it does not say what it promises');
  if (fsync !== 'on')
    throw notDurable(session.name, 'it does not write to a disk (fsync)', 'set fsync to on');
  // Where names are set, commits wait, even for standbys that are away.
  const waits = names.trim() !== '';
  return {
    durability: waits && synchronous > 0 ? 'replicated' : 'local',
    isAsynchronous: !waits && standbys > 0,
    settings,
  };
}

/** @throws as the session does */
export async function readSettings(session: Session): Promise<unknown> {
  return (await session.ask(`select ${SETTINGS} as settings`, [])).rows[0]?.['settings'];
}

/** Standbys follow that no commit waits for, and no witness of positions was named. */
export class UnwitnessedError extends NorthrootError {
  constructor(name: string) {
    super(
      'STORE_NOT_DURABLE',
      `${name} does not keep what is acknowledged: standbys follow that no commit waits for, so a failover would lose records unseen`,
      { hint: 'set synchronous_standby_names, or name a witness of positions' },
    );
  }
}

export function notDurable(name: string, why: string, hint: string): NorthrootError {
  return new NorthrootError('STORE_NOT_DURABLE', `${name} does not keep what is acknowledged: ${why}`, {
    hint,
  });
}
