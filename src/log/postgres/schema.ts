/**
 * The tables of ledgers, in the schema `northroot` of a database: `head` has one row a ledger, `line` its lines, `witness` the positions of
 * ledgers in other databases. Who may not create them has them created by {@link POSTGRES_SCHEMA}.
 */

import { NorthrootError } from '../../base/error.js';
import { codeOf, malformed } from './postgres-error.js';
import type { Session } from './session.js';

/** The version of the tables that this library reads and writes. */
const VERSION = 1;
/** The first key of all advisory locks; the second is a ledger's number, or 0 for migrations. */
export const LOCK_SPACE = 0x6e6f7274;

/** Migrations, in order: the first makes version 1 of nothing. */
const MIGRATIONS: readonly string[] = [
  `create schema if not exists northroot;
create table northroot.version (
  version integer not null,
  one boolean primary key default true check (one)
);
create table northroot.head (
  id integer generated always as identity primary key,
  name text collate "C" not null unique check (name ~ '^[A-Za-z0-9._-]{1,128}$'),
  size bigint not null check (size > 0),
  tip text collate "C" not null check (tip ~ '^[A-Za-z0-9_-]{43}$'),
  end_offset bigint not null check (end_offset > 0),
  touched bigint not null default 0
) with (fillfactor = 50);
create table northroot.line (
  ledger integer not null,
  seq bigint not null check (seq >= 0),
  end_offset bigint not null check (end_offset > 0),
  bytes bytea not null,
  primary key (ledger, seq)
);
alter table northroot.line alter column bytes set storage external;
create sequence northroot.changed;
create function northroot.count_change() returns trigger language plpgsql security definer set search_path = pg_catalog
  as $$ begin perform nextval('northroot.changed'); return null; end $$;
create trigger changed after update or delete or truncate on northroot.line
  for each statement execute function northroot.count_change();
alter table northroot.line enable always trigger changed;
create table northroot.witness (
  name text collate "C" primary key check (name ~ '^[A-Za-z0-9._-]{1,128}$'),
  size bigint not null check (size > 0),
  tip text collate "C" not null check (tip ~ '^[A-Za-z0-9_-]{43}$')
) with (fillfactor = 50);
insert into northroot.version (version) values (1);`,
];

/** What makes the tables of this version in a database that has none: for its administrator, where the program may not. */
export const POSTGRES_SCHEMA: string = `begin;\n${MIGRATIONS.join('\n')}\ncommit;\n`;

/**
 * The version of the tables; 0 if there are none.
 * @throws NorthrootError `STORE_UNSUPPORTED` for tables of a later version; `ACCESS_DENIED`
 */
export async function readVersion(session: Session): Promise<number> {
  const found = await session.ask('select version from northroot.version', []).catch((error: unknown) => {
    const code = codeOf(error);
    if (code === '42P01' || code === '3F000') return undefined;
    throw error;
  });
  if (found === undefined) return 0;
  const version: unknown = found.rows[0]?.['version'];
  if (!Number.isSafeInteger(version)) throw malformed(session.name, 'the version of its tables is no number');
  if ((version as number) <= VERSION) return version as number;
  throw new NorthrootError('STORE_UNSUPPORTED', `${session.name} has tables of a later version`, {
    hint: 'use the version of this program that made them, or a later one',
  });
}

/** Brings the tables up to date, one process at a time. @throws NorthrootError `ACCESS_DENIED`, `STORE_UNSUPPORTED` */
export async function migrate(session: Session): Promise<void> {
  if ((await readVersion(session)) === VERSION) return;
  try {
    await session.run(`begin; select pg_advisory_xact_lock(${LOCK_SPACE}, 0)`);
    const version = await readVersionWithin(session);
    const missing = MIGRATIONS.slice(version);
    if (missing.length > 0) await session.run(missing.join('\n'));
    await session.run('commit');
  } catch (error) {
    await session.run('rollback').catch(() => undefined);
    if (codeOf(error) !== '42501') throw error;
    throw new NorthrootError('ACCESS_DENIED', `${session.name} has no tables, and its role may create none`, {
      hint: 'have the tables created by the administrator of the database',
    });
  }
}

/** In a transaction, which a failed statement would end. */
async function readVersionWithin(session: Session): Promise<number> {
  const found = await session.ask(`select to_regclass('northroot.version') is not null as has`, []);
  return found.rows[0]?.['has'] === true ? readVersion(session) : 0;
}
