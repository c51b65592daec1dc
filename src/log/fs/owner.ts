/** Whether what a folder holds may be believed: as ssh asks of its files, nobody else must be able to write it. */

import { lstat } from 'node:fs/promises';

const WRITABLE_BY_GROUP = 0o020;
const WRITABLE_BY_ALL = 0o002;

/**
 * Whether a folder is one, and can be written by nobody but this user, root, the owner of another file, and those who can write that.
 *
 * @param folder - A path; a symbolic link is not followed.
 * @param beside - The file or folder that it belongs to.
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
