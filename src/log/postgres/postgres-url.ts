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
    name: printable(`postgres://${user}${hosts}${path}${serverIn(query)}#${ledger}`, 1_000),
    ledger,
    servers: each.map((host) => `postgres://${login}${host}${path}${query}`),
  };
}

/** Options that name another server than the URL before them: the folder of a socket, and its number. */
function serverIn(query: string): string {
  const options = new URLSearchParams(query);
  const found = ['host', 'port'].flatMap((name) => {
    // The driver takes the last of several.
    const value = options.getAll(name).at(-1) ?? '';
    return value === '' ? [] : [`${name}=${encodeURIComponent(value)}`];
  });
  return found.length === 0 ? '' : `?${found.join('&')}`;
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
