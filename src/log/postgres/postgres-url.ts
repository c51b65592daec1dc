/**
 * The place of a ledger in PostgreSQL: `postgres://USER@HOST:PORT/DATABASE?OPTIONS#NAME`. Several hosts, `HOST:PORT,HOST:PORT`, are one
 * primary and its standbys: the writer takes the one that is no standby.
 */

import { printable } from '../../base/bytes/printable.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { NorthrootError } from '../../base/error.js';

export interface PostgresPlace {
  /** For messages and findings: the URL without its password and its options, but those that say which server it is. */
  readonly name: string;
  /** The same for all who connect to it: the name without the user, and with the server and database that the driver takes by default. */
  readonly shared: string;
  /** The ledger's name in the database. */
  readonly ledger: string;
  /** A connection string for each host, in order; they MAY contain a password. */
  readonly servers: readonly string[];
}

const SCHEME = /^postgres(?:ql)?:\/\//i;
const URL_PARTS = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^/?#@]*)(\/[^?#]*)?(\?[^#]*)?#(.*)$/is;
const LEDGER_NAME = /^[A-Za-z0-9._-]{1,128}$/;
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._%-]*)(?::\d{1,5})?$/;
const MAX_URL = 4_096;
const MAX_HOSTS = 16;

/** @throws NorthrootError `STORE_URL_INVALID` */
export function parsePostgresUrl(url: string): PostgresPlace {
  if (!SCHEME.test(url))
    throw invalid('it does not begin with postgres://; a file of such a name begins with ./');
  const [, userInfo, hosts = '', path = '', query = '', ledger = ''] =
    (url.length <= MAX_URL && URL_PARTS.exec(url)) || [];
  if (!LEDGER_NAME.test(ledger))
    throw invalid('it does not end in # and the name of a ledger (letters, digits, ".", "_" and "-")');
  const each = hosts.split(',');
  if (each.length > MAX_HOSTS || !each.every((host) => HOST.test(host))) throw invalid('its host is no host');
  // Behind the host: a password with "/" or "?" that was not encoded would be shown as a path.
  if (path.includes('@') || (path === '' && hosts !== '' && query.includes('@')))
    throw invalid('"@" follows its host: in a password write "/" as %2F, "?" as %3F and "@" as %40');
  const user = userInfo === undefined ? '' : `${userInfo.replace(/:.*$/s, '')}@`;
  const login = userInfo === undefined ? '' : `${userInfo}@`;
  return {
    name: printable(`postgres://${user}${hosts}${path}${serverIn(query, path)}#${ledger}`, 1_000),
    shared: sharedName({ user, hosts, path, query, ledger }),
    ledger,
    servers: each.map((host) => `postgres://${login}${host}${path}${query}`),
  };
}

/** Options that name another server than the URL before them: the folder of a socket, and its number; and what names the database. */
function serverIn(query: string, path: string): string {
  const options = new URLSearchParams(query);
  const named = isEmpty(path) ? ['host', 'port', 'user'] : ['host', 'port'];
  const found = named.flatMap((name) => {
    const value = lastOf(options, name);
    return value === '' ? [] : [`${name}=${encodeURIComponent(value)}`];
  });
  return found.length === 0 ? '' : `?${found.join('&')}`;
}

/** A database that is not named is that of the user. */
function isEmpty(path: string): boolean {
  return path === '' || path === '/';
}

/** The driver takes the last of several. */
function lastOf(options: URLSearchParams, name: string): string {
  return options.getAll(name).at(-1) ?? '';
}

interface UrlParts {
  /** With its `@`, if there is one. */
  readonly user: string;
  readonly hosts: string;
  readonly path: string;
  readonly query: string;
  readonly ledger: string;
}

function sharedName({ user, hosts, path, query, ledger }: UrlParts): string {
  const { PGHOST = '', PGPORT = '', PGDATABASE = '', PGUSER = '', USER = '' } = process.env;
  const options = new URLSearchParams(query);
  const named = hosts === '' && lastOf(options, 'host') === '' ? PGHOST : hosts;
  const port = lastOf(options, 'port') === '' && PGPORT !== '' ? `:${PGPORT}` : '';
  const servers = named.split(',').map((host) => (/:\d+$/.test(host) ? host : `${host}${port}`));
  const owner = lastOf(options, 'user') || user.slice(0, -1) || PGUSER || USER;
  const database = isEmpty(path) ? `/${PGDATABASE || owner}` : path;
  return `postgres://${servers.join(',')}${database}${serverIn(query, database)}#${ledger}`;
}

/** A number of 31 bits that stands for a name, for locks and channels: two names MAY share it. */
export function numberOf(name: string): number {
  return Buffer.from(sha256Base64url(Buffer.from(name)), 'base64url').readUInt32BE(0) >>> 1;
}

// The URL is not shown: what is malformed may be the password.
function invalid(why: string): NorthrootError {
  return new NorthrootError('STORE_URL_INVALID', `the URL of a ledger in PostgreSQL is malformed: ${why}`, {
    hint: 'write postgres://USER@HOST/DATABASE#NAME',
  });
}
