/** What PostgreSQL and the way to it report, as errors of this library. No message has a password. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';

export type Outcome =
  /** The server refused it: it changed nothing. */
  | 'refused'
  /** The connection ended, or the server did while it ran: it may have been done. */
  | 'unknown';

const DENIED = new Set(['28000', '28P01', '42501']);
const NO_DATABASE = '3D000';
const MISSING = new Set([NO_DATABASE, '3F000', '42P01']);
/** The server or the session ends, or the commit was interrupted: not an answer to the statement. */
const ENDING = /^(?:08|57P0|58|XX|40003)/;

/** The SQLSTATE, or the system's error code. */
export function codeOf(error: unknown): string | undefined {
  const code: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** Whether an error has a SQLSTATE, and so comes from the server. */
function sqlState(error: unknown): string | undefined {
  const code = codeOf(error);
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E') ? code : undefined;
}

export function outcomeOf(error: unknown): Outcome {
  const state = sqlState(error);
  return state === undefined || ENDING.test(state) ? 'unknown' : 'refused';
}

/** @param name - The store's, without its password */
export function toStoreError(error: unknown, name: string): NorthrootError {
  if (error instanceof NorthrootError) return error;
  const state = sqlState(error);
  const why = printable(error instanceof Error ? error.message : String(error));
  // The original may quote what was given to the driver.
  const cause = new Error(why);
  if (state !== undefined && DENIED.has(state))
    return new NorthrootError('ACCESS_DENIED', `${name} refuses: ${why}`, {
      cause,
      hint: 'check the role, its password, and what it was granted',
    });
  if (state !== undefined && MISSING.has(state))
    return new NorthrootError('FILE_NOT_FOUND', `there is no ledger ${name}: ${why}`, {
      cause,
      hint: state === NO_DATABASE ? 'make the database first: createdb' : 'make it first',
    });
  if (state === '53100')
    return new NorthrootError('DISK_FULL', `${name}: ${why}`, { cause, hint: 'make room for the database' });
  if (outcomeOf(error) === 'unknown' || state === '53300' || state === '57014') return unreachable(name, why);
  if (state === '25006') return unreachable(name, 'it is a standby, and takes no records');
  return new NorthrootError('IO_FAILED', `${name}: ${why}`, {
    cause,
    hint: 'find the reason in the log of the database',
  });
}

/** Nothing was done that is not known. */
export function unreachable(name: string, why: string): NorthrootError {
  return new NorthrootError('STORE_UNREACHABLE', `cannot reach ${name}: ${why}`, {
    cause: new Error(why),
    hint: 'check that the database runs and is the primary, and the way to it',
  });
}

/** What the way to a server says that trying again at once does not change, and what to check. */
const ABSENT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there: check that the database runs, and the host and the port of the URL',
  ENOTFOUND: 'there is no such host: check the host of the URL',
  EAI_AGAIN: 'the name of the host cannot be looked up: check the network, and the host of the URL',
  ENOENT: 'there is no such socket: check that the database runs, and the folder and the port of the URL',
  EACCES: 'the socket is not open to this user',
  EHOSTUNREACH: 'there is no way to the host: check the network, and the host of the URL',
  ENETUNREACH: 'there is no way to the host: check the network, and the host of the URL',
};

/** No server is where the URL says. */
export class AbsentError extends NorthrootError {}

/** For a connection that was not made. @param silentMs - How long it was waited for in vain */
export function notConnected(name: string, error: unknown, silentMs: number | undefined): NorthrootError {
  const code = codeOf(error) ?? '';
  const why = printable((error instanceof Error && error.message) || code || String(error));
  const hint =
    silentMs !== undefined
      ? `nothing answered within ${silentMs / 1_000} seconds: check the host, the port, and firewalls on the way`
      : Object.hasOwn(ABSENT, code)
        ? ABSENT[code]
        : undefined;
  if (hint === undefined) return unreachable(name, why);
  return new AbsentError('STORE_UNREACHABLE', `cannot reach ${name}: ${why}`, {
    cause: new Error(why),
    hint,
  });
}

export function malformed(name: string, why: string): NorthrootError {
  return new NorthrootError('STORE_MALFORMED', `${name} answers what no ledger has: ${why}`, {
    hint: 'verify the ledger, and find out who changed the tables',
  });
}
