/** Whether a folder's content may be trusted: as with ssh, other users must not be able to write it. */

import { lstat } from 'node:fs/promises';

const WRITABLE_BY_GROUP = 0o020;
const WRITABLE_BY_ALL = 0o002;

/**
 * Whether a folder belongs to this user, root or the owner of `beside`, and others can write it only if they can write `beside` too. A
 * symbolic link is not followed.
 */
export async function isOwnFolder(folder: string, beside: string): Promise<boolean> {
  try {
    const [own, other] = await Promise.all([lstat(folder), lstat(beside)]);
    const owners = [process.getuid?.() ?? own.uid, 0, other.uid];
    const extra = own.mode & ~other.mode & (WRITABLE_BY_GROUP | WRITABLE_BY_ALL);
    return own.isDirectory() && owners.includes(own.uid) && extra === 0;
  } catch {
    return false;
  }
}
