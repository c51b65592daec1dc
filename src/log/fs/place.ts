/**
 * Where a ledger is: a path, or the URL of a database with the ledger's name, `postgres://…#NAME`. What stands beside a path stands, for a
 * URL, in the user's state folder: a URL has no neighbours.
 */

import { homedir } from 'node:os';
import { join } from 'node:path';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { parsePostgresUrl } from '../postgres/postgres-url.js';

/** Malformed ones too: a file whose name begins so is written `./postgres:…`. */
const STORE_URL = /^\s*postgres(?:ql)?\s*:/i;

/** URLs by the names that are shown of them. */
const urls = new Map<string, string>();

/** Whether a place is the URL of a store, which may be malformed, rather than a path. */
export function isStoreUrl(place: string): boolean {
  return STORE_URL.test(place);
}

/**
 * The name by which a place is shown, and by which this process can open it again: a path as it is, a URL without password and options.
 * @throws NorthrootError `STORE_URL_INVALID`
 */
export function placeName(place: string): string {
  if (!isStoreUrl(place)) return place;
  const { name } = parsePostgresUrl(place);
  // A name that is given again leaves the URL that it was made of.
  if (name !== place) urls.set(name, place);
  return name;
}

/** What to connect to: of a name that {@link placeName} made, the URL that it was made of. */
export function placeUrl(place: string): string {
  return urls.get(place) ?? place;
}

/**
 * A path beside a ledger, such as `LEDGER.key`: out of a folder of segments; for a URL in {@link stateFolder}.
 * @throws NorthrootError `STORE_URL_INVALID`
 */
export function besidePath(place: string, ending: string): string {
  if (!isStoreUrl(place)) return `${place.replace(/\/+$/, '')}${ending}`;
  const { shared, ledger } = parsePostgresUrl(place);
  const digest = sha256Base64url(Buffer.from(shared));
  return join(stateFolder(), `${ledger}-${digest.slice(0, 12)}${ending}`);
}

/** Where a user's programs keep what outlives them: `northroot` in XDG_STATE_HOME, by default in `~/.local/state`. */
export function stateFolder(): string {
  const folder = process.env['XDG_STATE_HOME'] ?? '';
  // Relative ones are to be ignored (XDG Base Directory Specification).
  return join(folder.startsWith('/') ? folder : join(homedir(), '.local', 'state'), 'northroot');
}
